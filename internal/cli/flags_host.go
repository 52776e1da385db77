package cli

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/agentcli/agent/internal/settings"
	"github.com/agentcli/agent/internal/streamjson"
)

// hostOptions are the flags that hosts give: programs that spawn us.
type hostOptions struct {
	host hostArgs

	dialect    string
	channel    string
	promptTool string // --permission-prompt-tool
	prompts    string // --permission-prompts

	skipPermissions bool

	settingsGiven   string // JSON or the path of a file
	settingSources  string
	managedSettings string
	mcpConfig       []string
	strictMCP       bool
	agents          string
	agent           string

	hookEvents    bool
	subagentText  bool
	replayUser    bool
	sessionMirror bool
	noPersistence bool
	heartbeat     int

	thinking    string
	maxThinking int
	effort      string
	jsonSchema  string
	fallback    []string
	maxBudget   float64
	betas       []string

	coreTools []string
	authType  string
	maxDepth  int
	awaitInit bool
}

func (o *options) bindHost(f *pflag.FlagSet) {
	f.StringVar(&o.dialect, "dialect", "", "whose form of the JSON lines is spoken: native, claude, qwen or gemini (default: what the SDK that started it speaks, else native)")
	f.StringVar(&o.promptTool, "permission-prompt-tool", "", `who answers permission questions: "stdio" asks the host over can_use_tool`)
	f.StringVar(&o.prompts, "permission-prompts", "", `"none": nobody answers questions, so what would ask is denied`)
	f.BoolVarP(&o.skipPermissions, "yolo", "y", false, "the same as --permission-mode yolo")
	f.StringVar(&o.settingsGiven, "settings", "", "settings that win over all files but managed ones: JSON, or the path of a file")
	f.StringVar(&o.settingSources, "setting-sources", "", `which settings files count: of user, project, local; comma-separated, "" for none`)
	f.StringVar(&o.managedSettings, "managed-settings", "", "settings that win over all others: JSON, or the path of a file")
	f.StringArrayVar(&o.mcpConfig, "mcp-config", nil, `MCP servers: JSON such as {"mcpServers":{"name":{"command":"..."}}}, or the path of a file`)
	f.BoolVar(&o.strictMCP, "strict-mcp-config", false, "only the MCP servers of --mcp-config and of the host")
	f.StringVar(&o.agents, "agents", "", `sub-agents: JSON such as {"name":{"description":"...","prompt":"..."}}`)
	f.StringVar(&o.agent, "agent", "", "the agent that the conversation itself is: it has that agent's prompt, tools and model")
	f.BoolVar(&o.hookEvents, "include-hook-events", false, "with stream-json output: also a line when a hook starts and ends")
	f.BoolVar(&o.subagentText, "forward-subagent-text", false, "with stream-json output: also what sub-agents say, not only their tool calls")
	f.BoolVar(&o.replayUser, "replay-user-messages", false, "with stream-json output: send user lines back when their turn begins")
	f.BoolVar(&o.sessionMirror, "session-mirror", false, "with stream-json output: also a line for what is added to the transcript")
	f.BoolVar(&o.noPersistence, "no-session-persistence", false, "keep no transcript")
	f.IntVar(&o.heartbeat, "heartbeat", 0, "with stream-json output: a heartbeat line every so many seconds (0: none)")
	f.StringVar(&o.thinking, "thinking", "", "adaptive, enabled or disabled")
	f.IntVar(&o.maxThinking, "max-thinking-tokens", 0, "the most tokens that the model may think for in one answer")
	f.StringVar(&o.effort, "effort", "", "how hard the model thinks: low, medium, high, xhigh or max")
	f.StringVar(&o.jsonSchema, "json-schema", "", "the answer must be an object that this JSON Schema describes")
	f.StringSliceVar(&o.fallback, "fallback-model", nil, "models to go on with while the first one is overloaded or gone; comma-separated")
	f.Float64Var(&o.maxBudget, "max-budget-usd", 0, "end when the models have cost this much, in US dollars (0: no limit)")
	f.StringSliceVar(&o.betas, "betas", nil, "beta features to ask Anthropic's API for; comma-separated")
	f.StringArrayVar(&o.coreTools, "core-tools", nil, "the built-in tools to offer besides those that only serve the agent itself; comma-separated")
	f.StringVar(&o.authType, "auth-type", "", "whose API the models are asked over: openai, anthropic, gemini or vertex-ai (default: by the model's name)")
	f.IntVar(&o.maxDepth, "max-subagent-depth", 1, "how deep sub-agents may start sub-agents of their own")
	f.StringVar(&o.channel, "channel", "", "")
	f.BoolVar(&o.awaitInit, "await-initialize", false, "")
	for _, name := range []string{"channel", "await-initialize"} { // said by SDKs, of no use to people
		if err := f.MarkHidden(name); err != nil {
			panic(err) // there is no such flag
		}
	}
}

// vendors of --auth-type.
var authTypes = map[string]string{
	"openai": "openai", "openai-responses": "openai", "anthropic": "anthropic", "gemini": "gemini", "vertex-ai": "vertex",
}

// checkHost is check for the flags of hosts.
func (o *options) checkHost() error {
	if o.dialect != "" {
		if _, err := streamjson.ParseDialect(o.dialect); err != nil {
			return fail(ExitUsage, "--dialect: %w", err)
		}
	}
	if o.prompts != "" {
		if err := oneOf("permission-prompts", o.prompts, "none", "default"); err != nil {
			return err
		}
	}
	if o.thinking != "" {
		if err := oneOf("thinking", o.thinking, "adaptive", "enabled", "disabled"); err != nil {
			return err
		}
	}
	if o.effort != "" {
		if err := oneOf("effort", o.effort, "low", "medium", "high", "xhigh", "max"); err != nil {
			return err
		}
	}
	if o.authType != "" && authTypes[o.authType] == "" {
		return fail(ExitUsage, "--auth-type is %q: use one of openai, openai-responses, anthropic, gemini, vertex-ai", o.authType)
	}
	for _, source := range o.sources() {
		if err := oneOf("setting-sources", source, "user", "project", "local"); err != nil {
			return err
		}
	}
	if err := o.checkForeign(); err != nil {
		return err
	}
	switch {
	case o.host.dialect == streamjson.Gemini && o.inputFormat == formatStreamJSON:
		return fail(ExitUsage, "--dialect gemini is a form of output only: leave out --input-format stream-json, or take another dialect")
	case o.promptTool != "" && o.promptTool != "stdio" && !isPromptTool(o.promptTool):
		return fail(ExitUsage, `--permission-prompt-tool is %q: give "stdio", or a tool of an MCP server such as mcp__server__tool`, o.promptTool)
	case o.inputFormat != formatStreamJSON && (o.promptTool == "stdio" || o.heartbeat != 0 || o.sessionMirror || o.replayUser):
		return fail(ExitUsage, "--permission-prompt-tool stdio, --heartbeat, --session-mirror and --replay-user-messages serve a host: they need --input-format stream-json")
	case o.jsonSchema != "" && !json.Valid([]byte(o.jsonSchema)):
		return fail(ExitUsage, "--json-schema is not JSON")
	}
	return o.checkNumbers()
}

// checkNumbers refuses limits that are none.
func (o *options) checkNumbers() error {
	for _, n := range []struct {
		flag  string
		value float64
	}{
		{"heartbeat", float64(o.heartbeat)}, {"max-budget-usd", o.maxBudget},
		{"max-thinking-tokens", float64(o.maxThinking)}, {"max-subagent-depth", float64(o.maxDepth)},
	} {
		if n.value < 0 || math.IsNaN(n.value) || math.IsInf(n.value, 0) {
			return fail(ExitUsage, "--%s is %v: give 0 or more", n.flag, n.value)
		}
	}
	return nil
}

// sources are the settings files that count, when --setting-sources names them.
func (o *options) sources() []string {
	var out []string
	for s := range strings.SplitSeq(o.settingSources, ",") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// reads reports whether the settings files of a source count.
func (o *options) reads(source string) bool {
	return o.changed == nil || !o.changed("setting-sources") || slices.Contains(o.sources(), source)
}

// hosted reports whether a published SDK started us: its users see no stderr,
// or take each line of it for a fault.
func (o *options) hosted() bool {
	return (o.inputFormat == formatStreamJSON || o.host.printed) && (o.host.dialect == streamjson.Claude || o.host.dialect == streamjson.Qwen)
}

// hostedBy reports whether an SDK of that dialect started us.
func (o *options) hostedBy(d streamjson.Dialect) bool { return o.hosted() && o.host.dialect == d }

// skippedLayers are the layers of settings files that don't count.
func (o *options) skippedLayers() []settings.Layer {
	var out []settings.Layer
	for _, l := range []settings.Layer{settings.User, settings.Project, settings.Local} {
		if !o.reads(l.String()) {
			out = append(out, l)
		}
	}
	return out
}

// documents are the settings that flags carry, of which some only restrict.
func (o *options) documents(dir string) (given, restrict []settings.Document, err error) {
	if o.settingsGiven != "" {
		doc, err := readDocument("--settings", o.settingsGiven, dir)
		if err != nil {
			return nil, nil, err
		}
		given = append(given, doc)
	}
	if o.managedSettings != "" {
		doc, err := readDocument("--managed-settings", o.managedSettings, dir)
		if err != nil {
			return nil, nil, err
		}
		restrict = append(restrict, doc)
	}
	return given, restrict, nil
}

// readDocument returns the settings that a flag gives: JSON, or the path of a
// file with it.
func readDocument(flag, value, dir string) (settings.Document, error) {
	if strings.HasPrefix(strings.TrimSpace(value), "{") {
		doc := settings.Document{Name: filepath.Join(dir, flag), Data: []byte(value)}
		return doc, refuseMissing(flag, doc)
	}
	data, err := readTextFile(flag, value)
	if err != nil {
		return settings.Document{}, err
	}
	if !filepath.IsAbs(value) {
		value = filepath.Join(dir, value)
	}
	doc := settings.Document{Name: value, Data: []byte(data)}
	return doc, refuseMissing(flag, doc)
}

// refuseMissing refuses settings that ask for a guard that isn't there: who
// relies on one must not go without it unawares.
func refuseMissing(flag string, doc settings.Document) error {
	switch d := settings.ReadClaude(doc); {
	case d.Sandbox:
		return fail(ExitSettings, "%s asks for a sandbox (sandbox.enabled), and this version has none: leave it out to run without", flag)
	case len(d.Guards) > 0:
		return fail(ExitSettings, "%s has hooks that may guard what runs (%s), and this version runs only those of the host: leave them out, or register them with initialize",
			flag, strings.Join(d.Guards, ", "))
	}
	return nil
}

// thinkingBudget is what --thinking and --max-thinking-tokens say, as model
// requests have it.
func (o *options) thinkingBudget() int {
	if o.thinking == "disabled" {
		return -1
	}
	return o.maxThinking
}
