package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// maxLinks is how many symlinks one path may pass through.
const maxLinks = 255

// ErrOutside is the cause of every refusal of a path that is, or leads through
// symlinks, outside of all roots.
var ErrOutside = errors.New("outside of the allowed directories")

// RootsConfig says where the tools may act.
type RootsConfig struct {
	// Dirs are the allowed directories, which must exist; the first one is the
	// working directory, from which relative paths are resolved. They come from
	// the operator, never from the model.
	Dirs []string
	// Home replaces a leading "~" in paths; empty: "~" is refused.
	Home string
}

// Roots are the directories beneath which tools may act. Each is held open, so
// that what is done goes through the directory that was allowed (os.Root,
// openat) and never through a path looked up again: a symlink swapped in
// between check and use cannot lead outside. Roots is safe for concurrent use,
// also while directories come and go.
type Roots struct {
	set  *rootSet // shared with what With returned
	home string
	// granted are paths outside of dirs that may be acted on too; see With.
	granted []string

	// writing serialises replacements of files within this process.
	writing *sync.Mutex
}

// rootSet is the directories of now.
type rootSet struct {
	mu   sync.RWMutex
	dirs []rootDir // never changed in place; the working directory first
	gone []rootDir // removed, but maybe still in use: open until Close
}

// dirs returns the directories of now.
func (r *Roots) dirs() []rootDir {
	r.set.mu.RLock()
	defer r.set.mu.RUnlock()
	return r.set.dirs
}

// Add allows one more directory, which must exist, for the calls that begin
// from now on. One that is allowed already is not added again.
func (r *Roots) Add(dir string) error {
	d, err := openRoot(dir)
	if err != nil {
		return err
	}
	r.set.mu.Lock()
	defer r.set.mu.Unlock()
	if slices.ContainsFunc(r.set.dirs, func(o rootDir) bool { return o.path == d.path }) {
		return d.root.Close()
	}
	r.set.dirs = append(slices.Clip(r.set.dirs), d)
	return nil
}

// Remove takes a directory away that was given or added by this path, or by
// what it resolves to, and reports whether there was one. Calls that run go on.
// The working directory stays.
func (r *Roots) Remove(dir string) bool {
	r.set.mu.Lock()
	defer r.set.mu.Unlock()
	dir = filepath.Clean(dir)
	for i, d := range r.set.dirs {
		if i > 0 && (d.path == dir || d.given == dir) {
			r.set.gone = append(r.set.gone, d)
			r.set.dirs = slices.Delete(slices.Clone(r.set.dirs), i, i+1)
			return true
		}
	}
	return false
}

// rootDir is one allowed directory: its path with symlinks resolved, and as
// the operator gave it. For what was granted it is the top of the file system,
// and root is nil: it is opened for each use.
type rootDir struct {
	path  string
	given string
	root  *os.Root
}

// Place is where a path leads: beneath a root, symlinks resolved.
type Place struct {
	// Path is absolute and free of symlinks, as far as it exists.
	Path string
	// Named is the absolute path as it was asked for, for display.
	Named string
	// Exists says whether something was there at the time.
	Exists bool

	dir rootDir
	rel string // beneath dir, "." for dir itself
}

// OpenRoots opens the allowed directories. The caller closes the Roots.
func OpenRoots(c RootsConfig) (*Roots, error) {
	if len(c.Dirs) == 0 {
		return nil, errors.New("opening the allowed directories: none was given")
	}
	r := &Roots{set: new(rootSet), home: c.Home, writing: new(sync.Mutex)}
	for _, d := range c.Dirs {
		dir, err := openRoot(d)
		if err != nil {
			r.Close()
			return nil, err
		}
		r.set.dirs = append(r.set.dirs, dir)
	}
	return r, nil
}

func openRoot(dir string) (rootDir, error) {
	given, err := filepath.Abs(dir)
	if err != nil {
		return rootDir{}, fmt.Errorf("opening allowed directory %s: %w", dir, err)
	}
	path, err := filepath.EvalSymlinks(given)
	if err != nil {
		return rootDir{}, fmt.Errorf("opening allowed directory %s: %w", dir, err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return rootDir{}, fmt.Errorf("opening allowed directory %s: %w", dir, err)
	}
	return rootDir{path: path, given: given, root: root}, nil
}

// Close releases the directories. No tool may run after it.
func (r *Roots) Close() error {
	r.set.mu.Lock()
	defer r.set.mu.Unlock()
	var all []error
	for _, d := range slices.Concat(r.set.dirs, r.set.gone) {
		all = append(all, d.root.Close())
	}
	return errors.Join(all...)
}

// With returns roots that also reach what was granted for one call: absolute
// paths, symlinks resolved, and for directories what is beneath them. Other
// forms of paths grant nothing, and what leads to a granted path only through
// a symlink that appeared since is refused. It shares the directories of r and
// is not closed.
func (r *Roots) With(granted []string) *Roots {
	if len(granted) == 0 {
		return r
	}
	with := *r
	with.granted = nil
	for _, g := range granted {
		if filepath.IsAbs(g) && filepath.Clean(g) == g {
			with.granted = append(with.granted, g)
		}
	}
	return &with
}

// Dir returns the working directory, symlinks resolved.
func (r *Roots) Dir() string { return r.dirs()[0].path }

// All returns the allowed directories, symlinks resolved, the working
// directory first.
func (r *Roots) All() []string {
	dirs := r.dirs()
	all := make([]string, len(dirs))
	for i, d := range dirs {
		all[i] = d.path
	}
	return all
}

// Resolve finds where path leads: "~" is the home directory, a relative path
// starts in the working directory, symlinks and ".." are followed as the
// system would. What doesn't exist yet is placed beneath its deepest existing
// ancestor. The error says which directories are allowed when the path leaves
// them all (ErrOutside). Resolving allows nothing by itself: what acts on a
// Place goes through its root's open directory.
func (r *Roots) Resolve(path string) (Place, error) {
	named, err := r.absolute(path)
	if err != nil {
		return Place{}, err
	}
	if vol := filepath.VolumeName(named); vol != "" && !r.hasVolume(vol) {
		return Place{}, r.outside(path, named) // never touch foreign shares
	}
	real, info, err := followLinks(named)
	if err != nil {
		return Place{}, fmt.Errorf("path %s: %w", quotePath(path), err)
	}
	dir, rel, ok := r.beneath(real)
	if !ok {
		dir, rel, ok = r.grantFor(real)
	}
	if !ok {
		return Place{}, r.outside(path, real)
	}
	if isKernelFS(real) && !isKernelFS(dir.path) {
		return Place{}, fmt.Errorf("path %s: %s belongs to the kernel's own file systems and is not for file tools", quotePath(path), real)
	}
	return Place{Path: real, Named: filepath.Clean(named), Exists: info != nil, dir: dir, rel: rel}, nil
}

// Relative shortens a path for display: relative to the working directory when
// it is beneath it, else as it is.
func (r *Roots) Relative(path string) string {
	for _, base := range []string{r.dirs()[0].path, r.dirs()[0].given} {
		if rel, ok := cutRoot(base, path); ok {
			return rel
		}
	}
	return path
}

// absolute makes path absolute without cleaning it, so that ".." after a
// symlink keeps its meaning.
func (r *Roots) absolute(path string) (string, error) {
	switch {
	case path == "":
		return "", errors.New("the path is empty")
	case strings.ContainsRune(path, 0):
		return "", fmt.Errorf("path %q contains a NUL byte", path)
	case path == "~" || strings.HasPrefix(path, "~/"):
		if r.home == "" {
			return "", fmt.Errorf("path %s: the home directory is not known", quotePath(path))
		}
		return r.home + path[1:], nil
	case filepath.IsAbs(path):
		return path, nil
	case filepath.VolumeName(path) != "":
		return "", fmt.Errorf("path %s is relative to a drive: give an absolute path", quotePath(path))
	}
	return r.dirs()[0].given + string(filepath.Separator) + path, nil
}

func (r *Roots) hasVolume(vol string) bool {
	for _, d := range r.dirs() {
		if strings.EqualFold(filepath.VolumeName(d.path), vol) || strings.EqualFold(filepath.VolumeName(d.given), vol) {
			return true
		}
	}
	return slices.ContainsFunc(r.granted, func(g string) bool { return strings.EqualFold(filepath.VolumeName(g), vol) })
}

// beneath finds the deepest root that contains real.
func (r *Roots) beneath(real string) (dir rootDir, rel string, ok bool) {
	for _, d := range r.dirs() {
		if sub, in := cutRoot(d.path, real); in && (!ok || len(d.path) > len(dir.path)) {
			dir, rel, ok = d, sub, true
		}
	}
	return dir, rel, ok
}

// grantFor finds the grant that covers real. What is beneath a granted path
// counts only while that is a directory: the grant of a new file is not one of
// a directory of that name.
func (r *Roots) grantFor(real string) (dir rootDir, rel string, ok bool) {
	for _, g := range r.granted {
		sub, in := cutRoot(g, real)
		if !in || sub != "." && !isDirectory(g) {
			continue
		}
		top := filepath.VolumeName(g) + string(filepath.Separator)
		rel, ok = cutRoot(top, real)
		return rootDir{path: top, given: top}, rel, ok
	}
	return rootDir{}, "", false
}

func isDirectory(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// cutRoot returns path relative to base, when it is base or beneath it. Whole
// components count: /srv/app-evil is not beneath /srv/app.
func cutRoot(base, path string) (string, bool) {
	if path == base {
		return ".", true
	}
	if !strings.HasSuffix(base, string(filepath.Separator)) {
		base += string(filepath.Separator)
	}
	return strings.CutPrefix(path, base)
}

func (r *Roots) outside(path, real string) error {
	where := ""
	if real != filepath.Clean(path) {
		where = " leads to " + real + ", which"
	}
	return fmt.Errorf("path %s%s is %w: %s", quotePath(path), where, ErrOutside, strings.Join(r.All(), ", "))
}

// followLinks resolves every symlink and ".." of an absolute path, component
// by component. Components that don't exist (or can't be looked at) are kept;
// info is nil if the last one is such.
func followLinks(path string) (real string, info fs.FileInfo, err error) {
	vol := filepath.VolumeName(path)
	sep := string(filepath.Separator)
	real = vol + sep
	known := false // whether info is of real
	rest, links := path[len(vol):], 0
	for rest != "" {
		var name string
		name, rest = cutComponent(rest)
		switch name {
		case "", ".":
			continue
		case "..":
			real, known = filepath.Dir(real), false
			continue
		}
		next := filepath.Join(real, name)
		info, err = os.Lstat(next)
		known = true
		if err != nil {
			info = nil
		}
		if info == nil || info.Mode()&fs.ModeSymlink == 0 {
			real = next
			continue
		}
		if links++; links > maxLinks {
			return "", nil, errors.New("too many symlinks")
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", nil, err
		}
		if filepath.IsAbs(target) {
			vol = filepath.VolumeName(target)
			real, target = vol+sep, target[len(vol):]
		}
		rest, known = target+sep+rest, false
	}
	if !known {
		if info, err = os.Lstat(real); err != nil {
			info = nil
		}
	}
	return real, info, nil
}

func cutComponent(path string) (name, rest string) {
	for i := range len(path) {
		if os.IsPathSeparator(path[i]) {
			return path[:i], path[i+1:]
		}
	}
	return path, ""
}

// isKernelFS reports whether path is in /proc or /sys, where reading can leak
// our own memory and environment, or never ends.
func isKernelFS(path string) bool {
	if runtime.GOOS != "linux" {
		return false
	}
	for _, base := range []string{"/proc", "/sys"} {
		if _, in := cutRoot(base, path); in {
			return true
		}
	}
	return false
}

// errSwapped says that a path leads through a symlink which was not there when
// it was resolved.
var errSwapped = errors.New("a symlink took its place, or that of a directory above it, at the same moment; nothing was done")

// open opens what is at the place for reading, without ever blocking on a FIFO
// or device, and refuses what isn't a regular file or directory.
func (p Place) open() (*os.File, fs.FileInfo, error) {
	dir, err := p.openDir(filepath.Dir(p.rel), false)
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	return openIn(dir, filepath.Base(p.rel), os.O_RDONLY)
}

// openDir opens the directory rel beneath the root that p is in, and creates it
// if told to. The caller closes it.
func (p Place) openDir(rel string, create bool) (*os.Root, error) {
	top := p.dir.root
	if top == nil {
		var err error
		if top, err = os.OpenRoot(p.dir.path); err != nil {
			return nil, err
		}
		defer top.Close()
	}
	return openExactly(top, rel, create)
}

// granted reports whether only a grant allows the place.
func (p Place) granted() bool { return p.dir.root == nil }

// child is what the walk of a directory found at the slash-separated rel.
func (p Place) child(rel string) Place {
	rel = filepath.FromSlash(rel)
	return Place{
		Path: filepath.Join(p.Path, rel), Named: filepath.Join(p.Named, rel), Exists: true,
		dir: p.dir, rel: filepath.Join(p.rel, rel),
	}
}

// openExactly opens the directory rel beneath top, step by step and through
// directories only, whereas os.Root alone would follow the symlinks that stay
// beneath it: what was resolved has none, so a symlink was put there since.
func openExactly(top *os.Root, rel string, create bool) (*os.Root, error) {
	at, err := top.OpenRoot(".")
	for err == nil && rel != "" && rel != "." {
		var name string
		name, rel = cutComponent(rel)
		above := at
		at, err = openStep(above, name, create)
		above.Close()
	}
	if err != nil {
		return nil, err
	}
	return at, nil
}

// openStep opens one directory in another.
func openStep(dir *os.Root, name string, create bool) (*os.Root, error) {
	info, err := dir.Lstat(name)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err = dir.Mkdir(name, 0o777); err == nil || errors.Is(err, fs.ErrExist) {
			info, err = dir.Lstat(name)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, errSwapped
	case !info.IsDir(): // opening a FIFO would wait
		return nil, syscall.ENOTDIR
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := next.Stat(".")
	if err == nil && !isEntry(dir, name, opened) {
		err = errSwapped
	}
	if err != nil {
		next.Close()
		return nil, err
	}
	return next, nil
}

// isEntry reports whether name in dir is what was opened: itself, not a
// symlink to it.
func isEntry(dir *os.Root, name string, opened fs.FileInfo) bool {
	info, err := dir.Lstat(name)
	return err == nil && os.SameFile(info, opened)
}

// openIn opens an existing regular file or directory in dir, never by way of a
// symlink.
func openIn(dir *os.Root, name string, flag int) (*os.File, fs.FileInfo, error) {
	info, err := dir.Lstat(name) // before opening: that alone can have effects on a device
	if err != nil {
		return nil, nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil, nil, errSwapped
	}
	if err := checkKind(info.Mode()); err != nil {
		return nil, nil, err
	}
	f, err := dir.OpenFile(name, flag|openNonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err = f.Stat()
	if err == nil {
		err = checkKind(info.Mode())
	}
	if err == nil && !isEntry(dir, name, info) {
		err = errSwapped
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// kindError says that something is neither a regular file nor a directory.
type kindError string

func (e kindError) Error() string { return "it is " + string(e) + ", not a regular file" }

func checkKind(mode fs.FileMode) error {
	switch {
	case mode.IsRegular() || mode.IsDir():
		return nil
	case mode&fs.ModeNamedPipe != 0:
		return kindError("a named pipe (FIFO)")
	case mode&fs.ModeSocket != 0:
		return kindError("a socket")
	case mode&fs.ModeDevice != 0:
		return kindError("a device")
	default:
		return kindError("a special file")
	}
}

// quotePath shows a path in a message: as it is, or quoted when it would
// confuse the reader.
func quotePath(path string) string {
	for _, c := range path {
		if c < ' ' || c == 0x7f || c == 0xfffd {
			return fmt.Sprintf("%q", path)
		}
	}
	return path
}

// pathError puts a failure of a file operation in words for the model.
func pathError(doing, named string, err error) error {
	var kind kindError
	switch {
	case errors.As(err, &kind):
		return fmt.Errorf("%s %s: %w", doing, quotePath(named), kind)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s %s: no such file or directory", doing, quotePath(named))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s %s: permission denied", doing, quotePath(named))
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s %s: %w", doing, quotePath(named), err)
}
