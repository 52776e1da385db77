// Package telemetry names every span and attribute once and hands out the
// tracer. It uses the OpenTelemetry API only: without a configured SDK every
// span is a no-op that costs nanoseconds. It imports nothing of ours.
package telemetry

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Span names, after the OpenTelemetry GenAI conventions.
const (
	SpanTurn    = "invoke_agent"
	SpanRequest = "chat"
	SpanTool    = "execute_tool"
)

// Attribute keys.
const (
	AttrSession      = attribute.Key("gen_ai.conversation.id")
	AttrPrompt       = attribute.Key("agent.prompt.id")
	AttrProvider     = attribute.Key("gen_ai.provider.name")
	AttrModel        = attribute.Key("gen_ai.request.model")
	AttrInputTokens  = attribute.Key("gen_ai.usage.input_tokens")
	AttrOutputTokens = attribute.Key("gen_ai.usage.output_tokens")
	AttrTool         = attribute.Key("gen_ai.tool.name")
	AttrToolCall     = attribute.Key("gen_ai.tool.call.id")
	AttrDecision     = attribute.Key("agent.permission.decision")
	AttrStop         = attribute.Key("agent.turn.terminal_reason")
)

// Start begins a span of our instrumentation scope.
func Start(ctx context.Context, name string, attrs ...attribute.KeyValue) (context.Context, trace.Span) {
	return otel.Tracer("github.com/agentcli/agent").Start(ctx, name, trace.WithAttributes(attrs...))
}

// End ends a span, marking it failed when err is not nil.
func End(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// WithTraceParent returns ctx carrying the remote parent that the W3C headers
// traceparent and tracestate name; ctx itself when they name none.
func WithTraceParent(ctx context.Context, traceparent, tracestate string) context.Context {
	if traceparent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{
		"traceparent": traceparent, "tracestate": tracestate,
	})
}
