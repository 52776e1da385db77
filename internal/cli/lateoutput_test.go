package cli

import (
	"errors"
	"testing"

	"github.com/agentcli/agent/internal/session"
	"github.com/agentcli/agent/internal/streamjson"
)

// outputs keeps what is sent.
type outputs struct {
	session.Output
	sent chan streamjson.Message
}

func (o outputs) Send(m streamjson.Message) error { o.sent <- m; return nil }

func TestALateOutputIsWaitedFor(t *testing.T) {
	t.Parallel()
	l := lateOutput{known: make(chan struct{})}
	result := make(chan error)
	go func() { result <- l.Send(&streamjson.KeepAlive{}) }()
	out := outputs{sent: make(chan streamjson.Message, 2)}
	l.set(out)
	if err := <-result; err != nil || len(out.sent) != 1 {
		t.Errorf("%v, %d lines", err, len(out.sent))
	}
	l.set(nil)
	if err := l.Send(&streamjson.KeepAlive{}); err != nil {
		t.Errorf("the first word counts: %v", err)
	}
	never := lateOutput{known: make(chan struct{})}
	never.set(nil)
	if err := never.Send(&streamjson.KeepAlive{}); !errors.Is(err, errNoOutput) {
		t.Errorf("%v", err)
	}
}
