package policy

import (
	"fmt"
	"strings"
)

// Mode is how much runs without asking.
type Mode string

// Modes, from the most careful on.
const (
	ModePlan     Mode = "plan"      // looking only: nothing is changed, run or fetched
	ModeDefault  Mode = "default"   // looking is free, the rest asks
	ModeAutoEdit Mode = "auto-edit" // edits beneath the roots are free too
	ModeYolo     Mode = "yolo"      // everything that no rule denies and nothing protects
	ModeDontAsk  Mode = "dont-ask"  // as default, but what would ask is denied
)

// Modes lists the modes in the order shown to users.
var Modes = [...]Mode{ModeDefault, ModePlan, ModeAutoEdit, ModeYolo, ModeDontAsk}

// ParseMode reads a mode by its name or an alias that other tools use
// (acceptEdits, autoEdit, auto_edit, auto, bypassPermissions, dontAsk, manual). The error
// lists the valid ones.
func ParseMode(s string) (Mode, error) {
	switch s {
	case "default", "manual":
		return ModeDefault, nil
	case "plan":
		return ModePlan, nil
	case "auto-edit", "auto_edit", "autoEdit", "acceptEdits", "auto":
		return ModeAutoEdit, nil
	case "yolo", "bypassPermissions":
		return ModeYolo, nil
	case "dont-ask", "dontAsk":
		return ModeDontAsk, nil
	}
	names := make([]string, len(Modes))
	for i, m := range Modes {
		names[i] = string(m)
	}
	return "", fmt.Errorf("unknown permission mode %q: use one of %s", s, strings.Join(names, ", "))
}

// modeNames are the names that modes have in other dialects. Where a dialect
// has no such mode it is the one that a host understands best.
var modeNames = map[string]map[Mode]string{
	"claude": {ModeAutoEdit: "acceptEdits", ModeYolo: "bypassPermissions", ModeDontAsk: "dontAsk"},
	"qwen":   {ModeDontAsk: "default"},
	"gemini": {ModeAutoEdit: "auto_edit", ModeDontAsk: "default"},
}

// ModeName returns the name that a mode has in a dialect (native, claude, qwen,
// gemini); ParseMode reads all of them.
func ModeName(dialect string, m Mode) string {
	if n, ok := modeNames[dialect][m]; ok {
		return n
	}
	return string(m)
}
