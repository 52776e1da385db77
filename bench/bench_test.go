package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agentcli/agent/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestARatioOverItsLimitIsAMiss(t *testing.T) {
	t.Parallel()
	ours, floor := []time.Duration{30, 10, 20}, []time.Duration{10, 9, 30}
	if r := against("x", ours, floor, 2); r.verdict != ok || r.ratio != "2.00" {
		t.Errorf("median 20 against 10, at most 2x: %+v", r)
	}
	if r := against("x", ours, floor, 1.9); r.verdict != miss {
		t.Errorf("median 20 against 10, at most 1.9x: %+v", r)
	}
	if r := against("x", ours, floor, 0); r.verdict != info {
		t.Errorf("without a target: %+v", r)
	}
}

func TestGapsAreReadFromTheServersLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	const lines = `{"time":"2026-01-01T00:00:00.5Z","ms":250,"status":200,"bytes":10}
{"time":"2026-01-01T00:00:00.8Z","ms":1,"status":200,"bytes":20}
{"time":"2026-01-01T00:00:00.9Z","ms`
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	l := requestLog{path: path}
	list, err := l.next(2)
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	if gap := list[1].Time.Sub(list[0].end()); gap != 50*time.Millisecond {
		t.Errorf("the gap is %s", gap)
	}
	if list, _, err = l.read(); err != nil || len(list) != 0 {
		t.Errorf("what was seen comes again: %v, %v", list, err)
	}
}

func TestARefusedRequestEndsTheMeasure(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(`{"status":400}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (&requestLog{path: path}).next(1); err == nil {
		t.Error("no error")
	}
}

func TestLostPiecesAreNoticed(t *testing.T) {
	t.Parallel()
	const (
		start = `{"type":"stream_event","uuid":"u","session_id":"s","parent_tool_use_id":null,"event":{"type":"%s","index":0}}`
		piece = `{"type":"stream_event","uuid":"u","session_id":"s","parent_tool_use_id":null,"event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"word "}}}`
	)
	begin := []string{fmt.Sprintf(start, "message_start"), fmt.Sprintf(start, "content_block_start")}
	for _, out := range [][]string{nil, begin, append(begin, piece, piece)} {
		file := filepath.Join(t.TempDir(), "out")
		if err := os.WriteFile(file, []byte(strings.Join(out, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		proc, err := testkit.Start(testkit.Spec{Path: "/bin/cat", Args: []string{file}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := proc.Wait(time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := whole(proc, 2); err == nil {
			t.Errorf("%d lines without a result passed as whole", len(out))
		}
	}
}
