package tools

import (
	"path/filepath"
	"slices"
	"strings"
)

// Commands get the environment of the agent less three things:
//
//   - credentials: those of the model providers, and by the form of the name
//     those of everything else, because what a command sees the model can read
//     and a command can send away. ShellConfig.KeepEnv names exceptions.
//   - what makes a shell run code or behave differently before the command
//     (BASH_ENV, exported functions, SHELLOPTS ...).
//   - PATH entries that are empty or relative: they would take programs from
//     the working directory.
//
// and with settings under which programs that want a person fail at once, and
// say so, instead of waiting.

// droppedPrefixes are variables of model providers, credentials or endpoints.
var droppedPrefixes = []string{
	"ANTHROPIC_", "OPENAI_", "DASHSCOPE_", "OPENROUTER_", "CLAUDE_CODE_OAUTH", "GEMINI_API", "QWEN_API",
}

// droppedSuffixes are the forms that names of credentials have.
var droppedSuffixes = []string{
	"API_KEY", "APIKEY", "_TOKEN", "_SECRET", "_SECRETS", "_SECRET_KEY", "_ACCESS_KEY", "_ACCESS_KEY_ID",
	"_PRIVATE_KEY", "_SIGNING_KEY", "_ENCRYPTION_KEY", "_PASSWORD", "_PASSWD", "_PASSPHRASE", "_CREDENTIAL", "_CREDENTIALS", "_AUTH", "AUTHTOKEN",
}

// droppedNames are single credentials, and what changes how a shell starts.
var droppedNames = []string{
	"TOKEN", "SECRET", "PASSWORD", "PASSWD", "APIKEY", "PGPASSWORD", "MYSQL_PWD", "REDISCLI_AUTH", "GH_ENTERPRISE_TOKEN",
	"BASH_ENV", "ENV", "PROMPT_COMMAND", "PS0", "PS4", "SHELLOPTS", "BASHOPTS", "BASH_XTRACEFD", "BASH_LOADABLES_PATH",
	"CDPATH", "GLOBIGNORE", "EXECIGNORE", "POSIXLY_CORRECT", "OLDPWD", "_",
}

// editorCommand stands where an editor should be. Run by a shell it says what to
// do and fails; split into words and run directly it is "false", and fails too.
const editorCommand = `false || { echo "agent: no editor: nobody can type here. Give the text on the command line (git commit -m, --no-edit), or set GIT_EDITOR / GIT_SEQUENCE_EDITOR for this command to a program that does the edit" >&2; exit 1; }; :`

// headlessEnv are the settings for programs that would ask, page or draw.
var headlessEnv = []string{
	"AGENT=1",
	"TERM=dumb",
	"PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat", "SYSTEMD_PAGER=cat", "GH_PAGER=cat", "AWS_PAGER=cat",
	"EDITOR=" + editorCommand, "VISUAL=" + editorCommand,
	"GIT_EDITOR=" + editorCommand, "GIT_SEQUENCE_EDITOR=" + editorCommand,
	"GIT_TERMINAL_PROMPT=0",
	"SSH_ASKPASS_REQUIRE=force",
	"DEBIAN_FRONTEND=noninteractive",
	"GH_PROMPT_DISABLED=1",
	"PIP_NO_INPUT=1",
}

// gitLocks, when 0, keeps git from writing its index while it only looks. The
// user's own word on it counts.
const gitLocks = "GIT_OPTIONAL_LOCKS"

// shellEnv returns the environment of commands; falsePath is the program that
// answers password prompts by failing.
func shellEnv(base, keep []string, falsePath string) []string {
	set := slices.Concat(headlessEnv, []string{
		"SSH_ASKPASS=" + falsePath, "GIT_ASKPASS=" + falsePath, "SUDO_ASKPASS=" + falsePath,
	})
	ours := map[string]bool{}
	for _, kv := range set {
		k, _, _ := strings.Cut(kv, "=")
		ours[k] = true
	}
	env := slices.DeleteFunc(CleanEnv(base, keep), func(kv string) bool {
		k, _, _ := strings.Cut(kv, "=")
		return ours[k]
	})
	if !slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, gitLocks+"=") }) {
		env = append(env, gitLocks+"=0")
	}
	return append(env, set...)
}

// CleanEnv returns an environment for programs that the agent starts: base
// without credentials, without what makes a shell run code, and without PATH
// entries that are not absolute. keep names variables that stay all the same.
// base is not changed.
func CleanEnv(base, keep []string) []string {
	var env []string
	for _, kv := range base {
		k, v, ok := strings.Cut(kv, "=")
		switch {
		case !ok || k == "":
		case slices.Contains(keep, k):
			env = append(env, kv)
		case dropped(k):
		case k == "PATH":
			env = append(env, "PATH="+absoluteEntries(v))
		default:
			env = append(env, kv)
		}
	}
	return env
}

// dropped reports whether commands must not see the variable.
func dropped(name string) bool {
	if strings.HasPrefix(name, "BASH_FUNC_") {
		return true
	}
	upper := strings.ToUpper(name)
	return slices.Contains(droppedNames, upper) ||
		slices.ContainsFunc(droppedPrefixes, func(p string) bool { return strings.HasPrefix(upper, p) }) ||
		slices.ContainsFunc(droppedSuffixes, func(s string) bool { return strings.HasSuffix(upper, s) })
}

// absoluteEntries drops the empty and relative entries of a PATH.
func absoluteEntries(path string) string {
	entries := slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool { return !filepath.IsAbs(dir) })
	return strings.Join(entries, string(filepath.ListSeparator))
}

// setEnv returns env with name set to value.
func setEnv(env []string, name, value string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	return append(out, name+"="+value)
}
