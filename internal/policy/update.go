package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// UpdateType says what an Update does.
type UpdateType string

// Types of updates.
const (
	UpdateAddRules          UpdateType = "addRules"
	UpdateReplaceRules      UpdateType = "replaceRules" // all rules of that behaviour at the destination
	UpdateRemoveRules       UpdateType = "removeRules"
	UpdateSetMode           UpdateType = "setMode"
	UpdateAddDirectories    UpdateType = "addDirectories"
	UpdateRemoveDirectories UpdateType = "removeDirectories"
)

// Destination says where an Update is kept.
type Destination string

// Destinations.
const (
	ToSession Destination = "session" // while the program runs
	ToCLIArg  Destination = "cliArg"  // as a flag would: while the program runs
	ToLocal   Destination = "localSettings"
	ToProject Destination = "projectSettings"
	ToUser    Destination = "userSettings"
)

// Update is one change of the permissions that came with an answer: which
// fields count depends on the type.
type Update struct {
	Type        UpdateType
	Rules       []Rule   // addRules, replaceRules, removeRules
	Behavior    Behavior // of the rules
	Mode        Mode     // setMode
	Directories []string // addDirectories, removeDirectories; not empty, as they were given
	Destination Destination
}

// ruleValue is a rule on the wire.
type ruleValue struct {
	ToolName    string `json:"toolName"`
	RuleContent string `json:"ruleContent,omitempty"`
}

// wireUpdate is an Update on the wire.
type wireUpdate struct {
	Type        UpdateType  `json:"type"`
	Rules       []ruleValue `json:"rules,omitempty"`
	Behavior    Behavior    `json:"behavior,omitempty"`
	Mode        string      `json:"mode,omitempty"`
	Directories []string    `json:"directories,omitempty"`
	Destination Destination `json:"destination,omitempty"`
}

// MarshalJSON implements json.Marshaler: the form that ParseUpdates reads.
// HTML is not escaped.
func (u Update) MarshalJSON() ([]byte, error) {
	w := wireUpdate{Type: u.Type, Behavior: u.Behavior, Mode: string(u.Mode), Directories: u.Directories, Destination: u.Destination}
	for i := range u.Rules {
		tool, content, _ := strings.Cut(u.Rules[i].Text, "(")
		w.Rules = append(w.Rules, ruleValue{tool, strings.TrimSuffix(content, ")")})
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(w); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// ParseUpdates reads a list of updates as hosts send them. Absent or null is
// none. A missing destination is the session. One bad update makes the whole
// list an error, which names it: half of an answer is never what was meant.
// Origin says in the rules where they came from.
func ParseUpdates(raw json.RawMessage, origin string) ([]Update, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("want a list of permission updates")
	}
	out := make([]Update, 0, len(list))
	for i, item := range list {
		u, err := parseUpdate(item, origin)
		if err != nil {
			return nil, fmt.Errorf("update %d: %w", i, err)
		}
		out = append(out, u)
	}
	return out, nil
}

func parseUpdate(raw json.RawMessage, origin string) (Update, error) {
	var w wireUpdate
	if err := json.Unmarshal(raw, &w); err != nil || len(raw) == 0 || raw[0] != '{' {
		return Update{}, fmt.Errorf("not a permission update: %w", orNotObject(err))
	}
	u := Update{Type: w.Type, Destination: w.Destination}
	switch w.Destination {
	case "":
		u.Destination = ToSession
	case ToSession, ToCLIArg, ToLocal, ToProject, ToUser:
	default:
		return Update{}, fmt.Errorf("unknown destination %q: use one of %s, %s, %s, %s, %s", w.Destination, ToUser, ToProject, ToLocal, ToSession, ToCLIArg)
	}
	var err error
	switch w.Type {
	case UpdateAddRules, UpdateReplaceRules, UpdateRemoveRules:
		err = u.setRules(&w, origin)
	case UpdateSetMode:
		u.Mode, err = ParseMode(w.Mode)
	case UpdateAddDirectories, UpdateRemoveDirectories:
		err = u.setDirectories(w.Directories)
	default:
		err = fmt.Errorf("unknown type %q: use one of %s, %s, %s, %s, %s, %s", w.Type, UpdateAddRules, UpdateReplaceRules,
			UpdateRemoveRules, UpdateSetMode, UpdateAddDirectories, UpdateRemoveDirectories)
	}
	return u, err
}

func orNotObject(err error) error {
	if err == nil {
		return fmt.Errorf("want an object")
	}
	return err
}

func (u *Update) setRules(w *wireUpdate, origin string) error {
	switch w.Behavior {
	case Allow, Ask, Deny:
		u.Behavior = w.Behavior
	default:
		return fmt.Errorf("unknown behavior %q: use one of allow, deny, ask", w.Behavior)
	}
	if len(w.Rules) == 0 && w.Type != UpdateReplaceRules {
		return fmt.Errorf("%s has no rules", w.Type)
	}
	for _, v := range w.Rules {
		text := v.ToolName
		if v.RuleContent != "" {
			text += "(" + v.RuleContent + ")"
		}
		r, err := ParseRule(text, u.Behavior, origin)
		if err != nil {
			return err
		}
		u.Rules = append(u.Rules, r)
	}
	return nil
}

func (u *Update) setDirectories(list []string) error {
	if len(list) == 0 {
		return fmt.Errorf("%s has no directories", u.Type)
	}
	for _, dir := range list {
		if strings.TrimSpace(dir) == "" || strings.ContainsRune(dir, 0) {
			return fmt.Errorf("%q is no directory", dir)
		}
	}
	u.Directories = list
	return nil
}
