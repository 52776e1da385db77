package mcp

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

func TestStreamTakesLinesInAnyPieces(t *testing.T) {
	t.Parallel()
	text := "junk\n" + `{"jsonrpc":"2.0","method":"a"}` + "\r\n\n" +
		`[{"jsonrpc":"2.0","method":"b"},{"jsonrpc":"2.0","method":"c"}]` + "\n" + `{"method":"initialized"}` + "\n" +
		`{"jsonrpc":"2.0","method":"d"}` // the last one has no end
	for size := range len(text) {
		_, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		s := newStream(w, slog.New(slog.DiscardHandler))
		in := &lines{s: s}
		for rest := text; rest != ""; {
			n := min(size+1, len(rest))
			if _, err := in.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		in.flush()
		s.end(errors.New("over"))
		var got string
		for {
			m, err := s.Read(context.Background())
			if err != nil {
				if err.Error() != "over" {
					t.Errorf("ended with %v", err)
				}
				break
			}
			got += m.(*jsonrpc.Request).Method
		}
		if got != "abcd" {
			t.Errorf("pieces of %d: %q", size+1, got)
		}
	}
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
