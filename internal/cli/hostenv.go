package cli

import (
	"strconv"

	"github.com/agentcli/agent/internal/settings"
	"github.com/agentcli/agent/internal/streamjson"
)

// hostEnv is a variable of the environment that counts only when a Claude Agent
// SDK started us: in a person's shell it is meant for another program.
func (w *wiring) hostEnv(name string) string {
	if !w.o.hostedBy(streamjson.Claude) {
		return ""
	}
	return w.cio.Getenv(name)
}

// readHostEnv takes limits from the environment of an SDK's session where no
// flag says otherwise. What is no number, or out of range, has no effect.
func (w *wiring) readHostEnv(flags map[string]any) {
	if n, ok := w.envNumber("MAX_THINKING_TOKENS"); ok && !w.o.changed("max-thinking-tokens") && !w.o.changed("thinking") {
		if w.o.maxThinking = n; n == 0 {
			w.o.thinking = "disabled"
		}
	}
	for variable, key := range map[string]string{
		"BASH_DEFAULT_TIMEOUT_MS": settings.ShellTimeoutMs, "BASH_MAX_OUTPUT_LENGTH": settings.ShellMaxOutputChars,
	} {
		n, ok := w.envNumber(variable)
		if !ok {
			continue
		}
		for _, k := range settings.Keys() {
			if k.Name == key && n >= k.Min && n <= k.Max {
				flags[key] = n
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
	if err != nil || n < 0 {
		w.log.Warn("a variable of the environment has no effect: it is no whole number", "name", name)
		return 0, false
	}
	return n, true
}
