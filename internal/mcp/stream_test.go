package mcp

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// methods returns the methods of the requests in text, which comes in pieces of
// size bytes.
func methods(t *testing.T, text string, size int) []string {
	t.Helper()
	_, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := newStream(w, slog.New(slog.DiscardHandler))
	go func() { // ends with the text
		in := &lines{s: s}
		for piece := range slices.Chunk([]byte(text), size) {
			if _, err := in.Write(piece); err != nil {
				t.Error(err)
			}
		}
		in.flush()
		s.end(errors.New("over"))
	}()
	var out []string
	for {
		m, err := s.Read(context.Background())
		if err != nil {
			if err.Error() != "over" {
				t.Errorf("ended with %v", err)
			}
			return out
		}
		if r, ok := m.(*jsonrpc.Request); ok {
			out = append(out, r.Method)
		}
	}
}

func TestStreamTakesLinesInAnyPieces(t *testing.T) {
	t.Parallel()
	text := "junk\n" + `{"jsonrpc":"2.0","method":"a"}` + "\r\n\n" +
		`[{"jsonrpc":"2.0","method":"b"},[{"jsonrpc":"2.0","method":"no batch in a batch"}],7,{"jsonrpc":"2.0","method":"c"}]` + "\n" + `{"method":"initialized"}` + "\n" +
		`{"jsonrpc":"2.0","method":"d"}` // the last one has no end
	for size := range len(text) {
		if diff := cmp.Diff([]string{"a", "b", "c", "d"}, methods(t, text, size+1)); diff != "" {
			t.Errorf("pieces of %d: %s", size+1, diff)
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add("junk\n"+`{"jsonrpc":"2.0","method":"a"}`+"\r\n", uint8(3))
	f.Add(`[{"jsonrpc":"2.0","method":"b"},[[]],7,{"jsonrpc":"2.0","id":1,"result":{}}]`, uint8(1))
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		if diff := cmp.Diff(methods(t, text, max(len(text), 1)), methods(t, text, int(size)+1)); diff != "" {
			t.Errorf("in pieces of %d: %s", int(size)+1, diff)
		}
	})
}

func TestStreamWhosePeerDoesNotRead(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := newStream(w, slog.New(slog.DiscardHandler))
	defer s.Close()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = r.Read(make([]byte, 1)) // the message has begun
		cancel()
	}()
	big := &jsonrpc.Request{Method: strings.Repeat("x", 1<<20)}
	if err := s.Write(ctx, big); !errors.Is(err, context.Canceled) {
		t.Errorf("a blocked write: %v", err)
	}
	if err := s.Write(context.Background(), big); err == nil || !strings.Contains(err.Error(), "middle of a message") {
		t.Errorf("after half a message: %v", err)
	}
}
