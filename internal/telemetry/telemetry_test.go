package telemetry

import (
	"errors"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

func TestTheRemoteParentIsRead(t *testing.T) {
	t.Parallel()
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	ctx := WithTraceParent(t.Context(), "00-"+id+"-00f067aa0ba902b7-01", "vendor=1")
	sc := trace.SpanContextFromContext(ctx)
	if sc.TraceID().String() != id || !sc.IsRemote() || sc.TraceState().Get("vendor") != "1" {
		t.Errorf("span context = %+v", sc)
	}
	ctx, span := Start(ctx, SpanTurn, AttrSession.String("s"))
	defer End(span, errors.New("x"))
	if got := trace.SpanContextFromContext(ctx).TraceID().String(); got != id {
		t.Errorf("the span's trace is %s, want the remote one", got)
	}
}

func TestABadParentIsNone(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"", "garbage", "00-00000000000000000000000000000000-00f067aa0ba902b7-01"} {
		if sc := trace.SpanContextFromContext(WithTraceParent(t.Context(), header, "")); sc.IsValid() {
			t.Errorf("header %q gave %+v", header, sc)
		}
	}
}
