package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/agentcli/agent/internal/policy"
)

// Level says where a definition comes from. One of a higher level replaces one
// of the same name.
type Level int

// Levels, the lowest first.
const (
	LevelBuiltin Level = iota
	LevelUser
	LevelProject
	LevelSession
)

var levelNames = [...]string{"builtin", "user", "project", "session"}

// String returns the level's name.
func (l Level) String() string {
	if l >= 0 && int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("Level(%d)", int(l))
}

// Definition describes a kind of sub-agent.
type Definition struct {
	Name        string
	Description string // when to use it, for the model that calls it
	Prompt      string // its system prompt
	// Tools are the tools it may use, by any alias; nil: all that its caller has.
	// mcp__server and mcp__server__* are all tools of a server. DisallowedTools
	// are taken away.
	Tools           []string
	DisallowedTools []string
	Model           string // empty: its caller's
	Temperature     *float64
	TopP            *float64
	Effort          string        // how hard it thinks; empty: as its caller
	MaxTurns        int           // model round trips; 0: as its caller
	MaxTime         time.Duration // 0: no limit
	// PermissionMode makes it more careful than its caller; a laxer mode has no
	// effect. Empty: its caller's.
	PermissionMode policy.Mode
	Background     bool // its caller never waits for it
	Color          string
	Level          Level
	FilePath       string // empty: of no file
}

const (
	maxAgents    = 500     // definitions of one initialize
	maxAgentName = 100     // characters
	maxAgentText = 4 << 20 // bytes of one prompt or description
)

// General is the name of the agent that a call means which names none.
const General = "general-purpose"

// BuiltinDefinitions are the agents that are there without being defined.
func BuiltinDefinitions() []Definition {
	return []Definition{
		{
			Name:        General,
			Description: "For work of several steps that needs no word from you in between: looking into a question across many files, or making a change from start to end. It has all tools.",
			Prompt:      generalPrompt,
		},
		{
			Name:        "explore",
			Description: "For finding things: where something is done, how parts belong together, which files a change would touch. It only looks and changes nothing.",
			Prompt:      explorePrompt,
			Tools:       []string{"read_file", "glob", "grep_search", "list_directory"},
		},
	}
}

const generalPrompt = `You are a sub-agent: another agent has given you one piece of work, and sees nothing of what you do but your last message. Nobody answers questions, so decide what is open yourself, and say what you decided.

Do all that was asked, and nothing besides. Look before you change anything, and check what you did. End with a short report: what you found or did, the files and lines that matter, and what is left or doubtful. Say what failed.`

const explorePrompt = `You are a sub-agent that finds things in a code base: another agent has asked you something, and sees nothing of what you do but your last message. You only look; you change nothing.

Search broadly first, then read what matters; make several searches at once. End with the answer: the paths, with line numbers, and what is there, in few words. Say what you did not find, and where you looked.`

// ParseDefinitions reads the agents of an initialize request: a list of objects
// with a name, or an object by name. Nothing and null are none. Unknown keys
// are ignored; an error names the agent and the field, and then nothing is
// read. Those that say no level are of LevelSession.
func ParseDefinitions(data json.RawMessage) ([]Definition, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || string(data) == "null" {
		return nil, nil
	}
	if data[0] == '{' {
		return parseByName(data)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, errors.New("agents must be a list, or an object by name")
	}
	if len(list) > maxAgents {
		return nil, fmt.Errorf("agents: there can be at most %d, got %d", maxAgents, len(list))
	}
	out := make([]Definition, 0, len(list))
	for i, item := range list {
		f, err := newFields(fmt.Sprintf("agents[%d]", i), item)
		if err != nil {
			return nil, err
		}
		name := f.text("name")
		if f.err != nil {
			return nil, f.err
		}
		d, err := f.definition(name)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return distinct(out)
}

func parseByName(data json.RawMessage) ([]Definition, error) {
	var byName map[string]json.RawMessage
	if err := json.Unmarshal(data, &byName); err != nil {
		return nil, errors.New("agents must be a list, or an object by name")
	}
	if len(byName) > maxAgents {
		return nil, fmt.Errorf("agents: there can be at most %d, got %d", maxAgents, len(byName))
	}
	out := make([]Definition, 0, len(byName))
	for name, item := range byName {
		f, err := newFields(fmt.Sprintf("agent %q", name), item)
		if err != nil {
			return nil, err
		}
		d, err := f.definition(name)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b Definition) int { return cmp.Compare(a.Name, b.Name) })
	return distinct(out)
}

func distinct(list []Definition) ([]Definition, error) {
	seen := map[string]bool{}
	for _, d := range list {
		if seen[d.Name] {
			return nil, fmt.Errorf("agent %q is there twice", d.Name)
		}
		seen[d.Name] = true
	}
	return list, nil
}

// fields reads the keys of one definition. The first error is kept.
type fields struct {
	where string
	keys  map[string]json.RawMessage
	err   error
}

func newFields(where string, object json.RawMessage) (*fields, error) {
	f := &fields{where: where}
	if err := json.Unmarshal(object, &f.keys); err != nil || f.keys == nil {
		return nil, fmt.Errorf("%s must be an object", where)
	}
	return f, nil
}

// definition reads all of an agent.
func (f *fields) definition(name string) (Definition, error) {
	d := Definition{Name: name, Level: LevelSession}
	if err := checkAgentName(name); err != nil {
		return d, fmt.Errorf("%s: name: %w", f.where, err)
	}
	f.where = fmt.Sprintf("agent %q", name)
	d.Description = f.text("description")
	d.Prompt = f.text("prompt", "systemPrompt", "system_prompt")
	d.Tools = f.list("tools")
	if slices.Contains(d.Tools, "*") {
		d.Tools = nil
	}
	d.DisallowedTools = f.list("disallowedTools", "disallowed_tools")
	d.Effort = f.effort("effort")
	d.MaxTurns = f.count("maxTurns", "max_turns")
	d.MaxTime = f.minutes("maxTimeMinutes", "max_time_minutes")
	d.Background = f.flag("background")
	d.Color = f.text("color")
	d.FilePath = f.text("filePath", "file_path")
	d.Level = f.level("level")
	d.Model = f.text("model")
	f.modelConfig(&d)
	f.runConfig(&d)
	if d.Model == "inherit" {
		d.Model = ""
	}
	if mode := f.text("permissionMode", "permission_mode"); mode != "" && f.err == nil {
		var err error
		if d.PermissionMode, err = policy.ParseMode(mode); err != nil {
			f.fail("permissionMode", err.Error())
		}
	}
	return d, f.err
}

func (f *fields) modelConfig(d *Definition) {
	in := f.object("modelConfig", "model_config")
	if d.Model == "" {
		d.Model = in.text("model")
	}
	d.Temperature = in.number("temp", "temperature")
	d.TopP = in.number("topP", "top_p")
	f.adopt(in)
}

func (f *fields) runConfig(d *Definition) {
	in := f.object("runConfig", "run_config")
	if n := in.count("maxTurns", "max_turns"); n > 0 {
		d.MaxTurns = n
	}
	if limit := in.minutes("maxTimeMinutes", "max_time_minutes"); limit > 0 {
		d.MaxTime = limit
	}
	f.adopt(in)
}

func (f *fields) adopt(in *fields) {
	if f.err == nil {
		f.err = in.err
	}
}

func (f *fields) fail(key, problem string) {
	if f.err == nil {
		f.err = fmt.Errorf("%s: %s: %s", f.where, key, problem)
	}
}

// get returns the first of the keys that is there, and not null.
func (f *fields) get(keys []string) (value json.RawMessage, key string) {
	for _, k := range keys {
		if v, ok := f.keys[k]; ok && string(v) != "null" {
			return v, k
		}
	}
	return nil, ""
}

// read decodes the first of the keys into v, and reports whether there was one
// that could be.
func (f *fields) read(v any, want string, keys []string) bool {
	value, key := f.get(keys)
	if value == nil {
		return false
	}
	if json.Unmarshal(value, v) != nil {
		f.fail(key, "it must be "+want)
		return false
	}
	return true
}

func (f *fields) text(keys ...string) (s string) {
	f.read(&s, "a text", keys)
	if len(s) > maxAgentText {
		f.fail(keys[0], fmt.Sprintf("it is longer than %d bytes", maxAgentText))
	}
	return s
}

func (f *fields) flag(keys ...string) (b bool) {
	f.read(&b, "true or false", keys)
	return b
}

// list reads a list of words, or one text with commas between them; nil if the
// key is absent.
func (f *fields) list(keys ...string) []string {
	value, key := f.get(keys)
	if value == nil {
		return nil
	}
	var words []string
	if json.Unmarshal(value, &words) != nil {
		var text string
		if json.Unmarshal(value, &text) != nil {
			f.fail(key, "it must be a list of texts")
			return nil
		}
		words = policy.SplitRules(text)
	}
	out := make([]string, 0, len(words))
	for _, w := range words {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}

func (f *fields) number(keys ...string) *float64 {
	var n float64
	if !f.read(&n, "a number", keys) {
		return nil
	}
	if n < 0 || n > 100 {
		f.fail(keys[0], "it must be between 0 and 100")
	}
	return &n
}

func (f *fields) count(keys ...string) int {
	var n float64
	if !f.read(&n, "a whole number", keys) {
		return 0
	}
	if n < 0 || n > 1e6 || n != math.Trunc(n) {
		f.fail(keys[0], "it must be a whole number between 0 and 1000000")
		return 0
	}
	return int(n)
}

func (f *fields) minutes(keys ...string) time.Duration {
	var n float64
	if !f.read(&n, "a number of minutes", keys) {
		return 0
	}
	if n < 0 || n > 1e5 {
		f.fail(keys[0], "it must be a number of minutes between 0 and 100000")
		return 0
	}
	return time.Duration(n * float64(time.Minute))
}

// effort reads a level by its name, or as a number that hosts may send.
func (f *fields) effort(key string) string {
	value, _ := f.get([]string{key})
	if len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9') {
		return string(value)
	}
	return f.text(key)
}

// level reads where an agent comes from: a host may pass on what it found
// elsewhere, so that the project's own agent of that name wins over the user's.
func (f *fields) level(key string) Level {
	name := f.text(key)
	switch i := slices.Index(levelNames[:], name); {
	case name == "":
	case name == "extension": // which the user installed
		return LevelUser
	case i < 0:
		f.fail(key, fmt.Sprintf("it is %q: use one of %s", name, strings.Join(levelNames[:], ", ")))
	default:
		return Level(i)
	}
	return LevelSession
}

// object returns the fields of an object; of none if the key is absent.
func (f *fields) object(keys ...string) *fields {
	value, key := f.get(keys)
	if value == nil {
		return &fields{where: f.where}
	}
	in, err := newFields(f.where+": "+key, value)
	if err != nil {
		f.fail(key, "it must be an object")
		return &fields{where: f.where}
	}
	return in
}

// checkAgentName refuses names that could not be shown, or named in a rule.
func checkAgentName(name string) error {
	switch {
	case name == "":
		return errors.New("it is missing")
	case utf8.RuneCountInString(name) > maxAgentName:
		return fmt.Errorf("it is longer than %d characters", maxAgentName)
	case strings.TrimSpace(name) != name:
		return fmt.Errorf("%q begins or ends with a space", name)
	}
	for _, r := range name {
		if r == utf8.RuneError || !unicode.IsPrint(r) || strings.ContainsRune(`()/\,`, r) {
			return fmt.Errorf("%q contains %q, which names of agents must not", name, r)
		}
	}
	return nil
}
