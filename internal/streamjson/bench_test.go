package streamjson

import (
	"io"
	"strings"
	"testing"
)

var benchDelta = &StreamDelta{
	SessionID: "5b1c6c1e-0d0f-4f0e-9a55-3f6f0a1b2c3d", Index: 1, Kind: DeltaText,
	Text: "thirty bytes of streamed text.",
}

func BenchmarkAppendDelta(b *testing.B) {
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		buf, _ = Append(buf[:0], benchDelta)
	}
}

func BenchmarkSendDelta(b *testing.B) {
	b.ReportAllocs()
	w := NewWriter(io.Discard, WriterOptions{})
	for b.Loop() {
		if err := w.SendDelta(b.Context(), benchDelta); err != nil {
			b.Fatal(err)
		}
	}
	mustClose(b, w)
}

func BenchmarkSendDeltaJoined(b *testing.B) {
	b.ReportAllocs()
	g := newGate()
	w := NewWriter(g, WriterOptions{HighWater: 1, Budget: 1 << 40})
	for b.Loop() {
		if err := w.SendDelta(b.Context(), benchDelta); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	g.open()
	mustClose(b, w)
}

func BenchmarkSendDeltaPipe(b *testing.B) {
	b.ReportAllocs()
	r, f := pipe(b)
	go io.Copy(io.Discard, r) //nolint:errcheck // ends with the pipe
	w := NewWriter(f, WriterOptions{})
	for b.Loop() {
		if err := w.SendDelta(b.Context(), benchDelta); err != nil {
			b.Fatal(err)
		}
	}
	mustClose(b, w)
}

func BenchmarkAppendUUID(b *testing.B) {
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		buf = AppendUUID(buf[:0])
	}
}

func benchMessage(b *testing.B, prefix string) Message {
	b.Helper()
	for _, line := range fixtureLines(b, "frames.jsonl") {
		if strings.HasPrefix(string(line), prefix) {
			m, err := Decode(line)
			if err != nil {
				b.Fatal(err)
			}
			return m
		}
	}
	b.Fatalf("no fixture begins with %s", prefix)
	return nil
}

func BenchmarkAppendFrame(b *testing.B) {
	for name, prefix := range map[string]string{"assistant": `{"type":"assistant"`, "user": `{"type":"user"`, "result": `{"type":"result"`, "init": `{"type":"system","subtype":"init"`} {
		m := benchMessage(b, prefix)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				buf, _ = Append(buf[:0], m)
			}
		})
	}
}

func BenchmarkSizeOfALongResult(b *testing.B) {
	m := &UserLine{Message: UserMessage{Content: BlockContent(ToolResultBlock{ToolUseID: "t", Content: TextContent(strings.Repeat("some output of a tool\n", 40_000))})}}
	b.SetBytes(int64(Size(m)))
	b.ReportAllocs()
	for b.Loop() {
		Size(m)
	}
}

func BenchmarkDecode(b *testing.B) {
	long, _ := Append(nil, &UserLine{Message: UserMessage{Content: BlockContent(TextBlock{Text: strings.Repeat("some text ", 100_000)})}})
	delta, _ := Append(nil, benchDelta)
	for name, line := range map[string][]byte{
		"delta": delta, "request": fixtureLines(b, "input.jsonl")[0], "user": fixtureLines(b, "input.jsonl")[1], "user of 1 MB": long,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Decode(line); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
