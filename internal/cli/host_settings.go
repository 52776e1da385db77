package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/agentcli/agent/internal/control"
	"github.com/agentcli/agent/internal/hooks"
	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/streamjson"
)

// RegisterHooks implements control.Hooks. A guard for an event that never comes
// would guard nothing, so that is an error; SDKs register more events than there
// are here.
func (h *host) RegisterHooks(list []control.HookRegistration) error {
	var out []hooks.Registration
	for _, r := range list {
		if events := hooks.Events(); h.o.host.dialect == streamjson.Native && !slices.Contains(events, hooks.Event(r.Event)) {
			return fmt.Errorf("hooks: there is no event %q: the events are %v", r.Event, events)
		}
		for _, id := range r.CallbackIDs {
			out = append(out, hooks.Registration{
				Event: hooks.Event(r.Event), Matcher: r.Matcher, CallbackID: id, Timeout: r.Timeout, Blocks: r.OnFailure == "block",
			})
		}
	}
	return h.w.hooks.Replace(out)
}

// flagSettings are the settings that apply_flag_settings can change while a
// session runs.
type flagSettings struct {
	model       *string
	permissions *flagPermissions
}

// flagPermissions are the permissions among them.
type flagPermissions struct {
	Allow                 []string `json:"allow"`
	Ask                   []string `json:"ask"`
	Deny                  []string `json:"deny"`
	DefaultMode           string   `json:"defaultMode"`
	AdditionalDirectories []string `json:"additionalDirectories"`
}

// flagOrigin says in rules where they came from.
const flagOrigin = "settings that the host applied"

// ApplyFlagSettings implements control.Settings. All of it is looked at before
// any of it holds; what can't change while a session runs is an error that
// names it.
func (h *host) ApplyFlagSettings(_ context.Context, raw json.RawMessage) error {
	s, err := readFlagSettings(raw)
	if err != nil {
		return err
	}
	var updates []policy.Update
	if s.permissions != nil {
		if updates, err = s.permissions.updates(); err != nil {
			return err
		}
	}
	if s.model != nil {
		h.w.models.choose(*s.model)
		if _, err := h.conv.SetModel(*s.model); err != nil {
			return fmt.Errorf("model: %w", messageOf(err))
		}
	}
	for _, u := range updates {
		if err := h.w.perms.apply(u); err != nil {
			return err
		}
	}
	return nil
}

func readFlagSettings(raw json.RawMessage) (flagSettings, error) {
	var s flagSettings
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return s, fmt.Errorf("settings: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		value, clear := keys[key], string(keys[key]) == "null"
		var err error
		switch key {
		case "model":
			s.model = new(string)
			if !clear {
				err = plainError(json.Unmarshal(value, s.model))
			}
		case "permissions":
			s.permissions = new(flagPermissions)
			if !clear {
				err = plainError(json.Unmarshal(value, s.permissions))
			}
		default:
			err = fmt.Errorf("can't be changed while a session runs: only model and permissions can")
		}
		if err != nil {
			return s, fmt.Errorf("settings.%s: %w", key, err)
		}
	}
	return s, nil
}

// plainError says what is wrong with a JSON value without the Go types that it
// was read into.
func plainError(err error) error {
	var kind *json.UnmarshalTypeError
	if !errors.As(err, &kind) {
		return err
	}
	want := "an object"
	switch kind.Type.Kind() {
	case reflect.String:
		want = "a string"
	case reflect.Slice:
		want = "a list of strings"
	}
	if kind.Field != "" {
		return fmt.Errorf("%s: have a JSON %s, want %s", kind.Field, kind.Value, want)
	}
	return fmt.Errorf("have a JSON %s, want %s", kind.Value, want)
}

// updates puts the permissions in the place of those that were applied before.
func (p *flagPermissions) updates() ([]policy.Update, error) {
	var out []policy.Update
	for _, list := range []struct {
		behavior policy.Behavior
		texts    []string
	}{{policy.Allow, p.Allow}, {policy.Ask, p.Ask}, {policy.Deny, p.Deny}} {
		u := policy.Update{Type: policy.UpdateReplaceRules, Behavior: list.behavior, Destination: policy.ToCLIArg}
		for _, text := range list.texts {
			r, err := policy.ParseRule(text, list.behavior, flagOrigin)
			if err != nil {
				return nil, fmt.Errorf("settings.permissions.%s: %w", list.behavior, err)
			}
			u.Rules = append(u.Rules, r)
		}
		out = append(out, u)
	}
	if p.DefaultMode != "" {
		mode, err := policy.ParseMode(p.DefaultMode)
		if err != nil {
			return nil, fmt.Errorf("settings.permissions.defaultMode: %w", err)
		}
		out = append(out, policy.Update{Type: policy.UpdateSetMode, Mode: mode, Destination: policy.ToSession})
	}
	if len(p.AdditionalDirectories) > 0 {
		out = append(out, policy.Update{Type: policy.UpdateAddDirectories, Directories: p.AdditionalDirectories, Destination: policy.ToSession})
	}
	return out, nil
}
