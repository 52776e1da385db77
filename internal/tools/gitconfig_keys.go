package tools

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path/filepath"
	"strings"
)

// gitSetting is one line of a repository's settings.
type gitSetting struct {
	section, sub, name string // section and name in lower case
	value              string
	bare               bool // there is no value, which means true
}

func (s *gitSetting) key() string {
	if s.sub == "" {
		return s.section + "." + s.name
	}
	return s.section + "." + s.sub + "." + s.name
}

// runs says why settings make git run programs or use others' settings.
func (r gitPlace) runs(settings []gitSetting) string {
	promisor, fetches := false, ""
	for i := range settings {
		s := &settings[i]
		switch s.section {
		case "include", "includeif":
			return "the repository's settings include others (" + s.key() + ")"
		case "remote":
			promisor = promisor || s.name == "promisor" && !s.isFalse() || s.name == "partialclonefilter"
			if s.name == "uploadpack" || s.name == "receivepack" || s.name == "vcs" || s.name == "url" && !remoteURL(s.value) {
				fetches = s.key()
			}
		case "extensions":
			promisor = promisor || s.name == "partialclone"
		case "url":
			fetches = s.key()
		}
		if s.name == "worktree" && s.section == "core" && s.sub == "" {
			if !r.ownTree(s.value) {
				return "the repository's settings say that its files are elsewhere (core.worktree)"
			}
			continue
		}
		if s.runs() {
			return "the repository's settings make git run a program (" + s.key() + ")"
		}
	}
	if promisor && fetches != "" {
		return "git may fetch what is missing in a way that the repository's settings name (" + fetches + ")"
	}
	return ""
}

// ownTree reports whether a working tree is the one that was found.
func (r gitPlace) ownTree(value string) bool {
	if r.tree == "" || value == "" {
		return false
	}
	at, err := filepath.EvalSymlinks(under(r.dir, value))
	return err == nil && at == r.tree
}

// remoteURL reports whether an address is certainly of another machine, and
// needs no program but git's own.
func remoteURL(url string) bool {
	for _, scheme := range [...]string{"https://", "http://", "ssh://", "git://"} {
		if strings.HasPrefix(url, scheme) {
			return true
		}
	}
	host, _, ok := strings.Cut(url, ":")
	return ok && host != "" && !strings.Contains(host, "/") && !strings.Contains(url, "::") && !strings.HasPrefix(url, "-")
}

// runs reports whether a setting names a program, or makes git start one.
func (s *gitSetting) runs() bool {
	switch s.section {
	case "core":
		switch s.name {
		case "fsmonitor":
			return !s.isBool()
		case "hookspath", "pager", "editor", "sshcommand", "gitproxy", "askpass", "alternaterefscommand":
			return true
		}
	case "diff":
		return s.name == "external" || s.name == "command" || s.name == "textconv" || s.name == "submodule" && s.value != "short"
	case "filter":
		return s.name == "clean" || s.name == "smudge" || s.name == "process"
	case "merge":
		return s.name == "driver"
	case "gpg":
		return s.name == "program" || s.name == "defaultkeycommand"
	case "log":
		return s.name == "showsignature" && !s.isFalse()
	case "status":
		return s.name == "submodulesummary" && !s.isFalse()
	case "alias":
		return strings.HasPrefix(strings.TrimSpace(s.value), "!") || s.name == "whatchanged"
	case "pager":
		return !s.isBool()
	case "credential":
		return s.name == "helper"
	case "sequence":
		return s.name == "editor"
	case "interactive":
		return s.name == "difffilter"
	case "protocol":
		return s.name == "allow" && s.value != "never"
	case "trailer":
		return s.name == "command" || s.name == "cmd"
	case "lfs":
		return strings.HasPrefix(s.sub, "customtransfer.") || strings.HasPrefix(s.sub, "extension.") || s.name == "standalonetransferagent"
	}
	return false
}

func (s *gitSetting) isFalse() bool {
	switch strings.ToLower(s.value) {
	case "false", "no", "off", "0", "":
		return !s.bare
	}
	return false
}

func (s *gitSetting) isBool() bool {
	switch strings.ToLower(s.value) {
	case "true", "yes", "on", "1":
		return true
	}
	return s.bare || s.isFalse()
}

var (
	errGitSection = errors.New("the name of a section is broken")
	errGitKey     = errors.New("the name of a setting is broken")
	errGitValue   = errors.New("a value is broken")
)

// gitParser reads settings as git does.
type gitParser struct {
	s            string
	section, sub string
	out          []gitSetting
}

func parseGitConfig(text string) ([]gitSetting, error) {
	p := gitParser{s: strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")}
	for p.s != "" {
		c := p.s[0]
		var err error
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f':
			p.s = p.s[1:]
		case c == '#' || c == ';':
			p.line()
		case c == '[':
			err = p.header()
		default:
			err = p.setting()
		}
		if err != nil {
			return nil, err
		}
	}
	return p.out, nil
}

// line takes the rest of the line.
func (p *gitParser) line() {
	_, p.s, _ = strings.Cut(p.s, "\n")
}

func gitKeyByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-'
}

// header reads [section], [section "sub"] and [section.sub].
func (p *gitParser) header() error {
	i := 1
	for i < len(p.s) && (gitKeyByte(p.s[i]) || p.s[i] == '.') {
		i++
	}
	name := strings.ToLower(p.s[1:i])
	p.section, p.sub, _ = strings.Cut(name, ".")
	quoted := false
	for i < len(p.s) && (p.s[i] == ' ' || p.s[i] == '\t') {
		i++
		quoted = true
	}
	if i < len(p.s) && p.s[i] == '"' && quoted {
		sub := []byte(nil)
		for i++; ; i++ {
			if i < len(p.s) && p.s[i] == '\\' {
				i++
			} else if i < len(p.s) && p.s[i] == '"' {
				break
			}
			if i >= len(p.s) || p.s[i] == '\n' {
				return errGitSection
			}
			sub = append(sub, p.s[i])
		}
		i++
		if p.sub != "" {
			p.sub += "."
		}
		p.sub += string(sub)
	}
	if i >= len(p.s) || p.s[i] != ']' || name == "" {
		return errGitSection
	}
	p.s = p.s[i+1:]
	return nil
}

// setting reads a name and its value, if there is one.
func (p *gitParser) setting() error {
	i := 0
	for i < len(p.s) && gitKeyByte(p.s[i]) {
		i++
	}
	if i == 0 || p.section == "" {
		return errGitKey
	}
	s := gitSetting{section: p.section, sub: p.sub, name: strings.ToLower(p.s[:i]), bare: true}
	p.s = strings.TrimLeft(p.s[i:], " \t")
	switch {
	case p.s == "" || p.s[0] == '\n':
	case p.s[0] == '#' || p.s[0] == ';':
		p.line()
	case p.s[0] == '=':
		p.s = p.s[1:]
		value, err := p.value()
		if err != nil {
			return err
		}
		s.value, s.bare = value, false
	default:
		return errGitKey
	}
	p.out = append(p.out, s)
	return nil
}

// value reads what stands behind an equals sign, up to the end of the line that
// no backslash continues.
func (p *gitParser) value() (string, error) {
	var b []byte
	p.s = strings.TrimLeft(p.s, " \t")
	quoted, kept := false, 0 // b up to kept doesn't end in blanks that nothing quotes
	for i := 0; ; i++ {
		if i >= len(p.s) || p.s[i] == '\n' {
			if quoted {
				return "", errGitValue
			}
			p.s = p.s[i:]
			return string(b[:kept]), nil
		}
		switch c := p.s[i]; {
		case c == '"':
			quoted = !quoted
			kept = len(b)
		case c == '\\':
			if i++; i >= len(p.s) {
				return "", errGitValue
			}
			at := strings.IndexByte("\n\"\\ntb", p.s[i])
			if at < 0 {
				return "", errGitValue
			}
			if at > 0 {
				b = append(b, "\x00\"\\\n\t\b"[at])
				kept = len(b)
			}
		case !quoted && (c == '#' || c == ';'):
			p.s = p.s[i:]
			p.line()
			return string(b[:kept]), nil
		default:
			b = append(b, c)
			if quoted || c != ' ' && c != '\t' {
				kept = len(b)
			}
		}
	}
}

// hashSize is how many bytes the names of a repository's objects have.
func hashSize(settings []gitSetting) int {
	for i := range settings {
		if s := &settings[i]; s.section == "extensions" && s.name == "objectformat" && strings.EqualFold(s.value, "sha256") {
			return 32
		}
	}
	return 20
}

// gitLinks returns the working trees of the submodules that an index names: git
// looks into those, too, and with their own settings.
func gitLinks(index []byte, tree string, hash int) ([]string, error) {
	if len(index) == 0 {
		return nil, nil
	}
	if len(index) < 12 || !bytes.HasPrefix(index, []byte("DIRC")) {
		return nil, errors.New("it is none")
	}
	version := binary.BigEndian.Uint32(index[4:])
	var out []string
	for at := 12; ; at++ {
		i := bytes.Index(index[at:], []byte{0, 0, 0xe0, 0}) // the mode of a submodule
		if i < 0 {
			return out, nil
		}
		at += i
		flags := at + 4 + 12 + hash // behind the mode: owner, group, size; the commit's name
		if flags+2 > len(index) {
			return out, nil
		}
		if version != 2 && version != 3 {
			return nil, errors.New("it has submodules, in a form that isn't read")
		}
		name := index[flags+2:]
		if index[flags]&0x40 != 0 && len(name) > 2 { // there are more flags
			name = name[2:]
		}
		name, _, _ = bytes.Cut(name, []byte{0})
		if len(name) > 0 && len(name) < 4096 {
			out = append(out, filepath.Join(tree, string(name)))
		}
		if len(out) > maxGitInner {
			return nil, errors.New("it has too many submodules")
		}
	}
}
