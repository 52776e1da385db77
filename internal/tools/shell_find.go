package tools

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// shellArgv returns the shell that commands are given to: bash without start-up
// files, from the system's own places before PATH, so that a repository or a
// virtual environment cannot put one of its own there; sh where there is no bash.
func shellArgv(env []string) []string {
	if bash := findProgram(env, "bash"); bash != "" {
		return []string{bash, "--noprofile", "--norc", "-c"}
	}
	if sh := findProgram(env, "sh"); sh != "" {
		return []string{sh, "-c"}
	}
	return []string{"bash", "--noprofile", "--norc", "-c"} // the Runner says that it isn't there
}

// findProgram returns the absolute path of a program; empty if there is none.
func findProgram(env []string, name string) string {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, dir := range append([]string{"/bin", "/usr/bin"}, filepath.SplitList(path)...) {
		if !filepath.IsAbs(dir) {
			continue
		}
		full := filepath.Join(dir, name)
		if info, err := os.Stat(full); err == nil && info.Mode().IsRegular() {
			return full
		}
	}
	return ""
}
