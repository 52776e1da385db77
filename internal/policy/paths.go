package policy

import (
	"path"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Paths looks at the file system for the engine, which does no I/O of its
// own. It is called from the goroutine that decides and may be called from
// several at once.
type Paths interface {
	// Resolve follows an absolute path the way the kernel would. The path may
	// hold "..", which must be taken after the links before it.
	Resolve(path string) Path
}

// Path is where a path really leads.
type Path struct {
	Real   string // absolute, without links; of a path that doesn't exist: the real parent and the rest. Empty: can't be told
	Exists bool
}

// PathFacts are what is known of one path before any rule sees it.
type PathFacts struct {
	Abs       string // cleaned; empty: not certain
	Real      string // where it leads; Abs when nothing can look
	Exists    bool   // false also when nothing can look
	Inside    bool   // certainly beneath a root, by its text and in reality
	Protected string // why it must not be written without a person's word; empty: it isn't protected
	Secret    string // why it must not be read without a person's word; empty: no secret
	Device    bool   // a harmless device such as /dev/null
}

// Path judges a path that a tool was given. Relative paths are meant from
// Cwd, and ~ is Home.
func (f *Facts) Path(raw string) PathFacts { return f.pathFrom(raw, f.Cwd) }

// pathFrom judges a path as seen from the directory cwd (empty: not known).
func (f *Facts) pathFrom(raw, cwd string) PathFacts {
	t := loaded()
	out := f.locate(raw, cwd)
	if out.Device {
		return out
	}
	if out.Real == "" || !endsWith(out.Abs, raw) {
		t.names(raw, &out)
	}
	if out.Real == "" {
		return out
	}
	t.names(out.Abs, &out)
	if out.Real != out.Abs {
		t.names(out.Real, &out)
	}
	f.guard(&out)
	out.Inside = f.beneathRoots(out.Abs) && (out.Real == out.Abs || f.realBeneathRoots(out.Real))
	return out
}

// endsWith reports whether the last names of an absolute path are those of rel,
// which then needn't be looked at by themselves.
func endsWith(abs, rel string) bool {
	rel = strings.TrimPrefix(rel, "./")
	n := len(abs) - len(rel)
	return strings.HasSuffix(abs, rel) && (n == 0 || abs[n-1] == '/')
}

// locate says where a path as seen from the directory cwd (empty: not known)
// leads, and nothing else of it. Of one that isn't certain Real is empty, and
// Abs too if not even the text is.
func (f *Facts) locate(raw, cwd string) (out PathFacts) {
	full, ok := f.absolute(raw, cwd)
	if !ok {
		return out
	}
	clean := path.Clean(full)
	if loaded().device(clean) {
		return PathFacts{Abs: clean, Real: clean, Device: true, Exists: true}
	}
	through, certain := throughProc(full, clean, cwd)
	if !certain {
		return out
	}
	if through != full {
		clean = path.Clean(through)
	}
	out.Abs, out.Real = clean, clean
	if f.Paths != nil {
		p := f.Paths.Resolve(through)
		out.Real, out.Exists = p.Real, p.Exists
	}
	return out
}

// device reports whether a cleaned path is a harmless device.
func (t *tables) device(p string) bool { return strings.HasPrefix(p, "/dev/") && t.devices[p] }

// absolute makes raw absolute without cleaning it, for what ".." means
// depends on links.
func (f *Facts) absolute(raw, cwd string) (string, bool) {
	switch {
	case raw == "" || strings.IndexByte(raw, 0) >= 0:
		return "", false
	case raw[0] == '/':
		return raw, true
	case raw == "~" || strings.HasPrefix(raw, "~/"):
		return f.Home + raw[1:], f.Home != ""
	case raw[0] == '~' || cwd == "":
		return "", false
	}
	return cwd + "/" + raw, true
}

// throughProc follows the links of /proc that lead back into the tree; clean
// is p cleaned. The second result is false if it leads where only the process
// itself knows.
func throughProc(p, clean, cwd string) (string, bool) {
	for range 8 {
		if strings.HasPrefix(clean, "/dev/fd") || strings.HasPrefix(clean, "/dev/std") {
			return "", false
		}
		rest, ok := strings.CutPrefix(clean, "/proc/")
		if !ok {
			return p, true
		}
		parts := strings.SplitN(rest, "/", 3)
		if len(parts) > 1 && parts[1] == "task" {
			return "", false
		}
		if len(parts) < 2 {
			return p, true
		}
		tail := ""
		if len(parts) == 3 {
			tail = "/" + parts[2]
		}
		switch {
		case parts[1] == "root":
			p = tail + "/"
		case parts[1] == "cwd" && cwd != "" && (parts[0] == "self" || parts[0] == "thread-self"):
			p = cwd + tail
		case parts[1] == "cwd", parts[1] == "fd", parts[1] == "map_files", parts[1] == "exe":
			return "", false
		default:
			return p, true
		}
		clean = path.Clean(p)
	}
	return "", false
}

func (f *Facts) roots() []string {
	if len(f.Roots) == 0 && f.Cwd != "" {
		return []string{f.Cwd}
	}
	return f.Roots
}

func (f *Facts) beneathRoots(abs string) bool {
	if len(f.Roots) == 0 {
		return f.Cwd != "" && beneath(abs, f.Cwd)
	}
	for _, r := range f.Roots {
		if beneath(abs, r) {
			return true
		}
	}
	return false
}

// realBeneathRoots is beneathRoots for a path without links: a root may be
// one itself.
func (f *Facts) realBeneathRoots(real string) bool {
	if f.beneathRoots(real) {
		return true
	}
	if f.Paths == nil {
		return false
	}
	for _, r := range f.roots() {
		if p := f.Paths.Resolve(r); p.Real != "" && beneath(real, p.Real) {
			return true
		}
	}
	return false
}

// guard marks the paths that the caller protects.
func (f *Facts) guard(out *PathFacts) {
	for _, g := range f.Guarded {
		for _, p := range [...]string{out.Abs, out.Real} {
			if g != "" && out.Protected == "" && beneath(foldName(p), foldName(path.Clean(g))) {
				out.Protected = "the agent's own files"
			}
		}
	}
}

// beneath reports whether p is dir or something in it, by whole components.
// An empty or relative dir holds nothing.
func beneath(p, dir string) bool {
	if dir == "" || dir[0] != '/' {
		return false
	}
	if len(dir) > 1 {
		if dir[len(dir)-1] == '/' || strings.Contains(dir, "/.") || strings.Contains(dir, "//") {
			dir = path.Clean(dir)
		}
	}
	if dir == "/" {
		return p != "" && p[0] == '/'
	}
	return strings.HasPrefix(p, dir) && (len(p) == len(dir) || p[len(dir)] == '/')
}

// names marks what a path is by the names in it, at any depth and whether it
// exists or not, also as file systems spell them that fold case or Unicode
// forms.
func (t *tables) names(p string, out *PathFacts) {
	if out.Protected != "" && out.Secret != "" {
		return
	}
	p = foldName(p)
	start := 0
	for start <= len(p) {
		end := strings.IndexByte(p[start:], '/')
		last := end < 0
		if last {
			end = len(p) - start
		}
		name := p[start : start+end]
		if name != "" {
			t.component(p, start, name, out)
		}
		start += end + 1
	}
}

func (t *tables) component(p string, start int, name string, out *PathFacts) {
	rest := strings.TrimRight(p[start:], "/")
	if out.Protected == "" {
		if t.protectedFirst.has(name[0]) {
			for _, e := range t.protected[name] {
				if rest == e.path || strings.HasPrefix(rest, e.path) && rest[len(e.path)] == '/' {
					out.Protected = e.why
					break
				}
			}
		}
		if out.Protected == "" && strings.HasPrefix(name, "git~") {
			out.Protected = "git's own files can run commands (hooks, config)"
		}
	}
	if out.Secret == "" {
		switch {
		case t.secretDirs.holds(name, rest) && !t.notSecret.match(lastName(p)):
			out.Secret = "a place where keys are kept"
		case t.secretFiles.match(name) && !t.notSecret.match(name) && secretPlace(p, start, name):
			out.Secret = "a file that usually holds secrets"
		}
	}
}

// secretPlace keeps names that are secret in one place only from being so
// elsewhere.
func secretPlace(p string, start int, name string) bool {
	switch name {
	case "shadow", "gshadow", "sudoers":
		return strings.HasSuffix(p[:start], "/etc/")
	case "environ":
		return strings.HasPrefix(p, "/proc/")
	}
	return true
}

func lastName(p string) string {
	p = strings.TrimRight(p, "/")
	return p[strings.LastIndexByte(p, '/')+1:]
}

// foldName brings a path into the form in which a file system that folds
// case, Unicode forms and ignorable characters would compare it. It may make
// different names equal, never equal names different.
func foldName(s string) string {
	plain, ascii := true, true
	for i := range len(s) {
		c := s[i]
		if c >= 0x80 || c == '\\' || (c == '.' || c == ' ') && (i+1 == len(s) || s[i+1] == '/') || c == ':' {
			plain, ascii = false, false
			break
		}
		plain = plain && (c < 'A' || c > 'Z')
	}
	switch {
	case plain:
		return s
	case ascii: // the letters' case is all there is
		return strings.ToLower(s)
	}
	var b strings.Builder
	b.Grow(len(s))
	for part := range strings.SplitSeq(strings.ReplaceAll(s, "\\", "/"), "/") {
		if b.Len() > 0 || s[0] == '/' || s[0] == '\\' {
			b.WriteByte('/')
		}
		b.WriteString(foldComponent(part))
	}
	out := b.String()
	if strings.HasPrefix(out, "//") {
		out = out[1:]
	}
	return out
}

func foldComponent(s string) string {
	if s == "." || s == ".." {
		return s
	}
	if i := strings.IndexByte(s, ':'); i > 0 { // alternate data streams
		s = s[:i]
	}
	if isASCII(s) {
		s = strings.ToLower(s)
	} else {
		s = foldUnicode(s)
	}
	if trimmed := strings.TrimRight(s, ". "); trimmed != "" {
		s = trimmed
	}
	return s
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func foldUnicode(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) {
			return -1
		}
		return foldRune(r)
	}, norm.NFKC.String(s))
}

// foldRune maps all runes that differ in case only to one of them.
func foldRune(r rune) rune {
	if r < 0x80 {
		return unicode.ToLower(r)
	}
	least := r
	for x := unicode.SimpleFold(r); x != r; x = unicode.SimpleFold(x) {
		least = min(least, x)
	}
	return unicode.ToLower(least)
}

// nameSet holds patterns with at most a few stars, sorted by how they are
// looked up.
type nameSet struct {
	exact  map[string]bool
	suffix []string // "*x"
	globs  []string

	// to tell most names apart without looking further
	exactFirst byteSet // first bytes in exact
	suffixLast byteSet // last bytes of suffix
	globFirst  byteSet // bytes that a name which a glob matches may begin with
}

type byteSet [4]uint64

func (s *byteSet) add(c byte)      { s[c>>6] |= 1 << (c & 63) }
func (s *byteSet) has(c byte) bool { return s[c>>6]>>(c&63)&1 != 0 }

func newNameSet(patterns []string) nameSet {
	s := nameSet{exact: make(map[string]bool, len(patterns))}
	for _, p := range patterns {
		switch n := strings.Count(p, "*"); {
		case n == 0:
			s.exact[p] = true
			s.exactFirst.add(p[0])
		case n == 1 && p[0] == '*' && len(p) > 1:
			s.suffix = append(s.suffix, p[1:])
			s.suffixLast.add(p[len(p)-1])
		default:
			s.globs = append(s.globs, p)
			if p[0] != '*' && p[0] != '?' {
				s.globFirst.add(p[0])
				continue
			}
			for c := range 256 {
				s.globFirst.add(byte(c))
			}
		}
	}
	return s
}

func (s *nameSet) match(name string) bool {
	if name == "" {
		return false
	}
	if s.exactFirst.has(name[0]) && s.exact[name] {
		return true
	}
	if s.suffixLast.has(name[len(name)-1]) {
		for _, x := range s.suffix {
			if strings.HasSuffix(name, x) {
				return true
			}
		}
	}
	if s.globFirst.has(name[0]) {
		for _, g := range s.globs {
			if starMatch(g, name) {
				return true
			}
		}
	}
	return false
}

// holds reports whether rest, which begins with the component name, is or
// lies in one of the directories of the set.
func (s *nameSet) holds(name, rest string) bool {
	if name == "" || !s.exactFirst.has(name[0]) {
		return false
	}
	if s.exact[name] {
		return true
	}
	i := strings.IndexByte(rest, '/')
	if i < 0 {
		return false
	}
	two := rest
	if k := strings.IndexByte(rest[i+1:], '/'); k >= 0 {
		two = rest[:i+1+k]
	}
	return s.exact[two]
}

// starMatch matches a pattern in which * stands for any run of bytes and ?
// for one.
func starMatch(pattern, s string) bool {
	p, i, star, mark := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			p = star + 1
			mark++
			i = mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// samples are names of secrets that a pattern of the shell is tried on.
var secretSamples = [...]string{
	".env", ".env.local", ".env.production", ".envrc", ".netrc", ".npmrc", ".pgpass", ".git-credentials", ".ssh", ".aws", ".gnupg", ".kube",
	"id_rsa", "id_ed25519", "id_ecdsa", "credentials", "credentials.json", "secrets.yml", "secrets.yaml", "secrets.json", "master.key", "server.pem", "server.key", "service-account.json", "shadow",
}

// globSecret reports whether a pattern of the shell seems meant for a
// secret. A bare * or *.json is no such thing, nor is what searches a whole
// tree; .e* and id_* are.
func (t *tables) globSecret(p string) bool {
	for part := range strings.SplitSeq(foldName(p), "/") {
		if part == "" || !hasGlob(part) {
			continue
		}
		if i := strings.LastIndexByte(part, '*'); i == 0 && len(part) > 1 {
			if t.secretFiles.match("x"+part[1:]) || t.secretFiles.exact[part[1:]] {
				return true
			}
			continue
		}
		if strings.Trim(part, "*?") == "" {
			continue
		}
		for _, s := range secretSamples {
			if (s[0] != '.' || part[0] == '.' || part[0] == '[') && classMatch(part, s) {
				return true
			}
		}
	}
	return false
}

// classMatch is starMatch with [...] taken as any one byte.
func classMatch(pattern, s string) bool {
	if strings.IndexByte(pattern, '[') >= 0 {
		var b strings.Builder
		for i := 0; i < len(pattern); i++ {
			if pattern[i] == '[' {
				if k := strings.IndexByte(pattern[i:], ']'); k > 1 {
					b.WriteByte('?')
					i += k
					continue
				}
			}
			b.WriteByte(pattern[i])
		}
		pattern = b.String()
	}
	return starMatch(pattern, s)
}

func hasGlob(s string) bool { return strings.ContainsAny(s, "*?[") }
