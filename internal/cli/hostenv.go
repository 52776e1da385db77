package cli

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/agentcli/agent/internal/settings"
	"github.com/agentcli/agent/internal/streamjson"
	"github.com/agentcli/agent/internal/tools"
)

// hostEnv is a variable of the environment that counts only when a Claude Agent
// SDK started us: in a person's shell it is meant for another program.
func (w *wiring) hostEnv(name string) string {
	if !w.o.hostedBy(streamjson.Claude) {
		return ""
	}
	return w.cio.Getenv(name)
}

// hostLimits are what the environment of an SDK's session says of tools; zero
// values are the defaults.
type hostLimits struct {
	shellTimeout    time.Duration // of commands that ask for none
	maxShellTimeout time.Duration // of commands that ask for more
	serverText      int           // bytes of a text that a tool of an MCP server returns
	foreground      bool          // nothing runs in the background
}

// readHostEnv takes limits from the environment of an SDK's session where no
// flag says otherwise. What is no number, or out of range, has no effect.
func (w *wiring) readHostEnv(flags map[string]any) {
	w.limits = hostLimits{
		shellTimeout: w.envTime("BASH_DEFAULT_TIMEOUT_MS"), maxShellTimeout: w.envTime("BASH_MAX_TIMEOUT_MS"),
		foreground: isTrue(w.hostEnv("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS")),
	}
	if w.limits.maxShellTimeout == 0 { // what the default asks for is allowed
		w.limits.maxShellTimeout = max(w.limits.shellTimeout, tools.MaxShellTimeout)
	}
	if n, ok := w.envNumber("MAX_MCP_OUTPUT_TOKENS"); ok {
		w.limits.serverText = n * bytesPerToken
	}
	if n, ok := w.envNumber("MAX_THINKING_TOKENS"); ok && !w.o.changed("max-thinking-tokens") && !w.o.changed("thinking") {
		if w.o.maxThinking = n; n == 0 {
			w.o.thinking = "disabled"
		}
	}
	if n, ok := w.envNumber("BASH_MAX_OUTPUT_LENGTH"); ok {
		for _, k := range settings.Keys() {
			if k.Name == settings.ShellMaxOutputChars && n >= k.Min && n <= k.Max {
				flags[k.Name] = n
			}
		}
	}
	if name := w.cio.Getenv("QWEN_MODEL"); name != "" && w.o.model == "" && w.o.hostedBy(streamjson.Qwen) && w.cio.Getenv("OPENAI_MODEL") == "" {
		flags[settings.Model] = name
	}
}

// readQwen takes from qwen-code's settings files what its SDK's users expect of
// them, where no flag or variable says otherwise.
func (w *wiring) readQwen(flags map[string]any) {
	if !w.o.hostedBy(streamjson.Qwen) {
		return
	}
	q := settings.Qwen(w.ruleOptions())
	if q.Model != "" && flags[settings.Model] == nil && w.cio.Getenv("OPENAI_MODEL") == "" {
		flags[settings.Model] = q.Model
	}
	if len(w.o.coreTools) == 0 {
		w.o.coreTools = q.CoreTools
	}
	w.foreignServers = q.Servers
}

// envNumber is the value of a variable of hostEnv if it is a whole number.
func (w *wiring) envNumber(name string) (int, bool) {
	text := w.hostEnv(name)
	if text == "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > math.MaxInt32 {
		w.log.Warn("a variable of the environment has no effect: it is no whole number, or too big a one", "name", name)
		return 0, false
	}
	return n, true
}

// envTime is a time in milliseconds; 0: none is given.
func (w *wiring) envTime(name string) time.Duration {
	n, _ := w.envNumber(name)
	return time.Duration(n) * time.Millisecond
}

// clientApp is how the application of an SDK's user wants to be told of in the
// User-Agent of model requests; "": not at all. What no header can hold has no
// effect.
func (w *wiring) clientApp() string {
	app := w.hostEnv("CLAUDE_AGENT_SDK_CLIENT_APP")
	if strings.ContainsFunc(app, func(r rune) bool { return r < ' ' || r > '~' }) {
		w.log.Warn("a variable of the environment has no effect: it can't be sent in a header", "name", "CLAUDE_AGENT_SDK_CLIENT_APP")
		return ""
	}
	return app
}
