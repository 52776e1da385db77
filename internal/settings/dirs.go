package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ManagedFile is where an administrator's settings lie on this machine; they
// win over all others.
const ManagedFile = "/etc/agent/settings.json"

// fileName is the settings file's name in the user's directory and, beneath
// projectDir, in a project.
const (
	fileName      = "settings.json"
	localFileName = "settings.local.json"
	projectDir    = ".agent"
)

// ErrNoHome means that something must be kept in the user's directories and
// there is no telling where they are.
var ErrNoHome = errors.New("no home directory: set HOME, or AGENT_HOME to a directory for all of agent's files")

// Dirs says where everything lies that belongs to the user. A field is empty
// when neither AGENT_HOME nor an XDG variable nor HOME gives it: then nothing
// is read from there, and what must write there fails with ErrNoHome.
type Dirs struct {
	Home     string // the user's home; expands ~/ in settings
	Config   string // settings.json
	State    string // what must survive but is not configuration
	Cache    string // what can be deleted at any time
	Sessions string // transcripts; beneath State

	// Claude and Qwen are where the user keeps the files of those programs
	// instead of beneath Home; empty: nowhere else. See OfTool.
	Claude, Qwen string
}

// OfTool returns the directory of the user's files of another tool: claude,
// qwen or gemini. It is empty if there is no telling.
func (d Dirs) OfTool(tool string) string {
	switch {
	case tool == claude && d.Claude != "":
		return d.Claude
	case tool == qwen && d.Qwen != "":
		return d.Qwen
	case d.Home == "":
		return ""
	}
	return filepath.Join(d.Home, "."+tool)
}

// FindDirs works the directories out from the environment alone: AGENT_HOME
// moves all of them; else the XDG base directories, beneath HOME by default
// (on windows APPDATA, LOCALAPPDATA and USERPROFILE); CLAUDE_CONFIG_DIR and
// QWEN_HOME say where those programs' files are. goos is a [runtime.GOOS]. It touches no file. The error says that AGENT_HOME is not
// absolute.
func FindDirs(getenv func(string) string, goos string) (Dirs, error) {
	d := Dirs{Home: absolute(getenv("HOME"), goos)}
	if goos == "windows" {
		d.Home = absolute(getenv("USERPROFILE"), goos)
	}
	d.Claude, d.Qwen = absolute(getenv("CLAUDE_CONFIG_DIR"), goos), absolute(getenv("QWEN_HOME"), goos)
	if all := getenv("AGENT_HOME"); all != "" {
		if absolute(all, goos) == "" {
			return Dirs{}, fmt.Errorf("AGENT_HOME is %q: it must be an absolute path", all)
		}
		d.Config, d.State, d.Cache = filepath.Clean(all), filepath.Join(all, "state"), filepath.Join(all, "cache")
		d.Sessions = filepath.Join(d.State, "sessions")
		return d, nil
	}
	base := func(xdg, windows string, beneathHome ...string) string {
		if dir := absolute(getenv(xdg), goos); dir != "" { // XDG: relative ones count as unset
			return filepath.Join(dir, "agent")
		}
		if goos == "windows" {
			if dir := absolute(getenv(windows), goos); dir != "" {
				return filepath.Join(dir, "agent")
			}
		}
		if d.Home == "" {
			return ""
		}
		return filepath.Join(d.Home, filepath.Join(beneathHome...), "agent")
	}
	d.Config = base("XDG_CONFIG_HOME", "APPDATA", ".config")
	d.State = base("XDG_STATE_HOME", "LOCALAPPDATA", ".local", "state")
	d.Cache = base("XDG_CACHE_HOME", "LOCALAPPDATA", ".cache")
	if d.Cache == d.State && d.Cache != "" { // windows has one place for both
		d.Cache = filepath.Join(d.Cache, "cache")
	}
	if d.State != "" {
		d.Sessions = filepath.Join(d.State, "sessions")
	}
	return d, nil
}

// absolute returns path if it is absolute on goos, else "".
func absolute(path, goos string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	if goos == "windows" && (strings.HasPrefix(path, `\\`) || len(path) > 2 && path[1] == ':' && (path[2] == '\\' || path[2] == '/')) {
		return path
	}
	return ""
}

// UserFile returns the path of the user's settings file, or ErrNoHome.
func (d Dirs) UserFile() (string, error) {
	if d.Config == "" {
		return "", ErrNoHome
	}
	return filepath.Join(d.Config, fileName), nil
}

// SessionsDir returns the directory of transcripts, or ErrNoHome.
func (d Dirs) SessionsDir() (string, error) {
	if d.Sessions == "" {
		return "", ErrNoHome
	}
	return d.Sessions, nil
}

// ProjectFile and LocalFile return a project's two settings files: the one that
// is shared with others and the one that is not.
func ProjectFile(root string) string { return filepath.Join(root, projectDir, fileName) }

// LocalFile is described at [ProjectFile].
func LocalFile(root string) string { return filepath.Join(root, projectDir, localFileName) }

// FindRoot returns the project that dir lies in: the nearest directory at or
// above it that holds a .git or a .agent, else dir itself. dir must be
// absolute.
func FindRoot(dir string) string {
	for at := filepath.Clean(dir); ; {
		for _, mark := range []string{".git", projectDir} {
			if _, err := os.Lstat(filepath.Join(at, mark)); err == nil {
				return at
			}
		}
		up := filepath.Dir(at)
		if up == at {
			return dir
		}
		at = up
	}
}
