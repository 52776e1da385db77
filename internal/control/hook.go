package control

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// HookController calls hooks of the host, and runs hooks that it asks for.
type HookController struct {
	d *Dispatcher

	mu   sync.Mutex
	list []HookRegistration       // of the last initialize
	host map[string]time.Duration // callbacks that the host registered, with their timeouts; 0: the default
}

// HookRegistration is a hook that the host registers: its callbacks are called
// when the event happens and the matcher matches.
type HookRegistration struct {
	Event       string
	Matcher     string // "": everything
	CallbackIDs []string
	Timeout     time.Duration // 0: the default
	OnFailure   string        // continue, block or "": the default
}

// hookEntry is a registration on the wire.
type hookEntry struct {
	Event        string         `json:"event"`
	Matcher      *string        `json:"matcher"`
	CallbackIDs  []string       `json:"hookCallbackIds"`
	CallbackID   string         `json:"callbackId"`
	CallbackID2  string         `json:"callback_id"`
	TimeoutField jsontext.Value `json:"timeout"`
	OnFailure    string         `json:"onFailure"`
}

// parseHooks reads the hooks of initialize: by event, or as a list.
func parseHooks(raw jsontext.Value) ([]HookRegistration, error) {
	var out []HookRegistration
	switch kind := raw.Kind(); {
	case isNull(raw):
	case kind == '[':
		var list []jsontext.Value
		if err := decode(raw, &list); err != nil {
			return nil, badField("hooks", "want a list")
		}
		for i, one := range list {
			h, err := parseHook(fmt.Sprintf("hooks.%d", i), "", one)
			if err != nil {
				return nil, err
			}
			out = append(out, h)
		}
	case kind == '{':
		events, err := members("hooks", raw)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if isNull(e.value) {
				continue
			}
			var list []jsontext.Value
			if err := decode(e.value, &list); err != nil {
				return nil, badField("hooks."+e.name, "want a list")
			}
			for i, one := range list {
				h, err := parseHook(fmt.Sprintf("hooks.%s.%d", e.name, i), e.name, one)
				if err != nil {
					return nil, err
				}
				out = append(out, h)
			}
		}
	default:
		return nil, badField("hooks", "have %s, want an object by event or a list", kindName(kind))
	}
	return out, nil
}

// parseHook reads one registration, for an event if that isn't in it.
func parseHook(field, event string, raw jsontext.Value) (HookRegistration, error) {
	var w hookEntry
	if err := decode(raw, &w); err != nil {
		return HookRegistration{}, fmt.Errorf("field %q: %w", field, err)
	}
	out := HookRegistration{Event: orElse(event, w.Event), CallbackIDs: w.CallbackIDs, OnFailure: w.OnFailure}
	if w.Matcher != nil {
		out.Matcher = *w.Matcher
	}
	if id := orElse(w.CallbackID, w.CallbackID2); id != "" {
		out.CallbackIDs = append(out.CallbackIDs, id)
	}
	switch {
	case out.Event == "":
		return out, badField(field+".event", "is missing")
	case len(out.CallbackIDs) == 0:
		return out, badField(field+".hookCallbackIds", "is missing")
	case w.OnFailure != "" && w.OnFailure != "continue" && w.OnFailure != "block":
		return out, badField(field+".onFailure", "is %q: use continue or block", w.OnFailure)
	}
	if isNull(w.TimeoutField) {
		return out, nil
	}
	var seconds float64
	if err := decode(w.TimeoutField, &seconds); err != nil || seconds < 0 || seconds > math.MaxInt32 {
		return out, badField(field+".timeout", "want seconds")
	}
	out.Timeout = time.Duration(seconds * float64(time.Second))
	return out, nil
}

// register puts the hooks of initialize in force in place of the earlier ones.
// On an error nothing has changed; undo brings the earlier ones back.
func (h *HookController) register(list []HookRegistration) (undo func(), err error) {
	if h.d.effects.Hooks != nil {
		if err := h.d.effects.Hooks.RegisterHooks(list); err != nil {
			return nil, err
		}
	}
	host := map[string]time.Duration{}
	for _, r := range list {
		for _, id := range r.CallbackIDs {
			host[id] = max(host[id], r.Timeout)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.list
	h.list, h.host = list, host
	return func() {
		if _, err := h.register(old); err != nil { // they were in force
			h.d.log.Error("the hooks of before can't be put in force again", "error", err)
		}
	}, nil
}

// timeoutOf is a registered callback's timeout, and whether there is such a
// callback.
func (h *HookController) timeoutOf(id string) (time.Duration, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, ok := h.host[id]
	return t, ok
}

// HookCallbackRequest is hook_callback, both ways. No tool is null.
type HookCallbackRequest struct {
	CallbackID string         `json:"callback_id"`
	Input      jsontext.Value `json:"input"`
	ToolUseID  *string        `json:"tool_use_id"`
}

// CallHook calls a hook of the host and returns its output, an object. An empty
// toolUseID is none. The wait ends with the timeout that the hook was
// registered with, or else the default.
func (h *HookController) CallHook(ctx context.Context, callbackID string, input json.RawMessage, toolUseID string) (json.RawMessage, error) {
	within, _ := h.timeoutOf(callbackID)
	if within == 0 {
		within = h.d.calls.deadline(callHook)
	}
	if _, limited := ctx.Deadline(); limited {
		within = 0 // one deadline, and one way to say so: the caller's
	}
	req := &HookCallbackRequest{CallbackID: callbackID, Input: jsontext.Value(input)}
	if len(input) == 0 {
		req.Input = jsontext.Value("{}")
	}
	if toolUseID != "" {
		req.ToolUseID = &toolUseID
	}
	raw, err := h.d.callWithin(ctx, callHook, req, within)
	if err != nil {
		return nil, err
	}
	if isNull(raw) {
		return json.RawMessage("{}"), nil
	}
	if !isObject(raw) {
		return nil, fmt.Errorf("%w: the output of the hook %q is %s, want an object", ErrMalformed, callbackID, kindName(jsontext.Value(raw).Kind()))
	}
	return raw, nil
}

// HookCallbackResponse is the response to hook_callback.
type HookCallbackResponse struct {
	Result     jsontext.Value `json:"result"`
	CallbackID string         `json:"callback_id"`
}

// callback is hook_callback from the host: it runs the hook of that id. One of
// the program's own runs here; one that the host registered is called like for
// an event.
func (h *HookController) callback(r *request) (any, error) {
	var in HookCallbackRequest
	if err := decode(r.body, &in); err != nil {
		return nil, err
	}
	if in.CallbackID == "" {
		return nil, badField("callback_id", "is missing")
	}
	input, err := object("input", in.Input)
	if err != nil {
		return nil, err
	}
	toolUseID := ""
	if in.ToolUseID != nil {
		toolUseID = *in.ToolUseID
	}
	out, err := h.run(r.ctx, in.CallbackID, json.RawMessage(input), toolUseID)
	if err != nil {
		return nil, err
	}
	return &HookCallbackResponse{Result: jsontext.Value(out), CallbackID: in.CallbackID}, nil
}

func (h *HookController) run(ctx context.Context, id string, input json.RawMessage, toolUseID string) (json.RawMessage, error) {
	if own := h.d.services.Hooks.find(id); own != nil {
		ctx, cancel := context.WithTimeout(ctx, hookTimeout)
		defer cancel()
		out, err := own(ctx, input, toolUseID)
		switch {
		case err != nil:
			return nil, fmt.Errorf("hook %q failed: %w", id, err)
		case isNull(out):
			return json.RawMessage("{}"), nil
		case !isObject(out):
			return nil, fmt.Errorf("hook %q failed: its output is no object", id)
		}
		return out, nil
	}
	if _, ok := h.timeoutOf(id); ok {
		return h.CallHook(ctx, id, input, toolUseID)
	}
	return nil, fmt.Errorf("there is no hook callback %q", id)
}
