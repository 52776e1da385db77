package tools

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxRewriteBytes is the largest file that is edited or replaced.
const maxRewriteBytes = 64 << 20

// changedError says that a file was changed by somebody else while it was
// being replaced; nothing of theirs was lost.
type changedError struct {
	now   []byte // what is there now; nil when it is gone or not a file
	saved string // name of a file beside it that holds a version nobody has seen; usually empty
}

func (e *changedError) Error() string {
	if e.saved != "" {
		return "the file was changed at the same moment; one of the versions was kept as " + e.saved
	}
	return "the file was changed at the same moment; nothing was written"
}

// rewritten is what a replacement did.
type rewritten struct {
	old, next []byte
	created   bool
}

// rewrite replaces the file at p by what build makes of its current content
// (nil, false when it doesn't exist), without ever destroying a content that
// build has not seen: what is there is compared again immediately before the
// replacement and, where the system can exchange two files, after it.
//
// The replacement is atomic (a new file beside it takes its place); mode, owner
// and extended attributes are kept. It is written in place instead where a new
// file could not stand in for the old one: hard links (the other names must go
// on showing the same file), an owner we can't give it, a directory we can't
// write to, a file that is a mount point. Missing parents are made when the
// file is new. An error of build is returned as it is.
func (r *Roots) rewrite(ctx context.Context, p Place, build func(current []byte, exists bool) ([]byte, error)) (rewritten, error) {
	r.writing.Lock()
	defer r.writing.Unlock()
	dir, err := openParent(p)
	if err != nil {
		return rewritten{}, err
	}
	defer dir.close()
	unlock := lockDir(ctx, dir.file)
	defer unlock()

	t := target{dir: dir, name: filepath.Base(p.rel)}
	old, exists, err := t.load()
	if err != nil {
		return rewritten{}, err
	}
	next, err := build(old, exists)
	if err != nil {
		return rewritten{}, err
	}
	if err := ctx.Err(); err != nil {
		return rewritten{}, context.Cause(ctx)
	}
	if exists {
		err = t.replace(old, next)
	} else {
		err = t.create(next)
	}
	return rewritten{old: old, next: next, created: !exists}, err
}

// parent is an open directory in which a file is replaced. Everything happens
// in this directory, whatever its path comes to mean meanwhile.
type parent struct {
	root *os.Root
	file *os.File
}

func openParent(p Place) (parent, error) {
	if p.rel == "." {
		return parent{}, errIsDir
	}
	root, err := p.openDir(filepath.Dir(p.rel), !p.Exists)
	if err != nil {
		return parent{}, err
	}
	file, err := root.Open(".")
	if err != nil {
		root.Close()
		return parent{}, err
	}
	return parent{root: root, file: file}, nil
}

func (d parent) close() {
	d.file.Close()
	d.root.Close()
}

var errIsDir = errors.New("it is a directory")

// target is the file to be replaced: a name in an open directory.
type target struct {
	dir  parent
	name string
	info fs.FileInfo // of the file that load read
}

// load reads the current content. It asks for write access at once, so that a
// read-only file is refused though its directory would allow replacing it.
func (t *target) load() (content []byte, exists bool, err error) {
	f, err := t.open(os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	if t.info, err = f.Stat(); err != nil {
		return nil, false, err
	}
	if t.info.Size() > maxRewriteBytes {
		return nil, false, fmt.Errorf("it has %d bytes, more than this tool changes (%d): use a command", t.info.Size(), maxRewriteBytes)
	}
	content, err = readSized(f, t.info.Size())
	return content, true, err
}

// open opens the target itself, which must be a regular file: a symlink here
// was put in place after the path was resolved.
func (t *target) open(flag int) (*os.File, error) {
	info, err := t.dir.root.Lstat(t.name)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil, &changedError{}
	}
	if info.IsDir() {
		return nil, errIsDir
	}
	f, _, err := openIn(t.dir.root, t.name, flag)
	if errors.Is(err, errSwapped) {
		err = &changedError{}
	}
	return f, err
}

// current returns what is there now, nil when it can't be read.
func (t *target) current() []byte {
	f, err := t.open(os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer f.Close()
	content, err := readSized(io.LimitReader(f, maxRewriteBytes), 0)
	if err != nil {
		return nil
	}
	return content
}

// replace puts next in the place of old.
func (t *target) replace(old, next []byte) error {
	if linkCount(t.info) > 1 {
		return t.overwrite(old, next) // a new file would part from its other names
	}
	tmp, err := t.writeTemp(next)
	if err != nil {
		if errors.Is(err, errCannotStandIn) || errors.Is(err, fs.ErrPermission) {
			return t.overwrite(old, next)
		}
		return err
	}
	if now := t.current(); !bytes.Equal(now, old) || now == nil && old != nil {
		t.dir.root.Remove(tmp)
		return &changedError{now: now}
	}
	err = t.swap(tmp, old, next)
	if err == nil {
		return nil
	}
	var changed *changedError
	if !errors.As(err, &changed) || changed.saved == "" {
		t.dir.root.Remove(tmp)
	}
	if isInPlaceOnly(err) {
		return t.overwrite(old, next)
	}
	return err
}

// swap makes tmp take the target's place. With exchange, the file that was
// replaced is at hand afterwards and is compared once more: a change that came
// at the last moment is put back.
func (t *target) swap(tmp string, old, next []byte) error {
	err := exchange(t.dir.file, tmp, t.name)
	if errors.Is(err, errors.ErrUnsupported) {
		return t.dir.root.Rename(tmp, t.name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &changedError{}
	}
	if err != nil {
		return err
	}
	replaced := target{dir: t.dir, name: tmp}
	was := replaced.current()
	if was != nil && bytes.Equal(was, old) {
		return t.dir.root.Remove(tmp)
	}
	if err := exchange(t.dir.file, tmp, t.name); err != nil {
		return &changedError{now: next, saved: tmp}
	}
	if ours := replaced.current(); !bytes.Equal(ours, next) {
		return &changedError{now: was, saved: tmp}
	}
	return &changedError{now: was}
}

// errCannotStandIn says that a new file can't be given what the old one had.
var errCannotStandIn = errors.New("a new file cannot have the same owner")

// writeTemp writes next to a new file in the same directory, with the mode,
// owner and attributes of the target if that exists.
func (t *target) writeTemp(next []byte) (name string, err error) {
	mode := fs.FileMode(0o666)
	if t.info != nil {
		mode = 0o600 // until it is what it shall be
	}
	f, name, err := t.createTemp(mode)
	if err != nil {
		return "", err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			t.dir.root.Remove(name)
		}
	}()
	if _, err := f.Write(next); err != nil {
		return "", err
	}
	if t.info == nil {
		return name, nil
	}
	if err := copyOwner(f, t.info); err != nil {
		return "", errCannotStandIn
	}
	if err := f.Chmod(t.info.Mode()); err != nil {
		return "", errCannotStandIn
	}
	t.copyAttributes(f)
	return name, nil
}

func (t *target) copyAttributes(to *os.File) {
	from, err := t.open(os.O_RDONLY)
	if err != nil {
		return // write-only files keep no attributes
	}
	defer from.Close()
	copyXattrs(from, to)
}

func (t *target) createTemp(mode fs.FileMode) (*os.File, string, error) {
	for range 10 {
		var random [8]byte
		rand.Read(random[:])
		name := ".agent-" + hex.EncodeToString(random[:]) + ".tmp"
		f, err := t.dir.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, fs.ErrExist) {
			return f, name, err
		}
	}
	return nil, "", errors.New("making a temporary file: every name is taken")
}

// overwrite changes the file in place. It is not atomic: a crash in the middle
// leaves a mixture. When writing fails the old content is put back.
func (t *target) overwrite(old, next []byte) error {
	f, err := t.open(os.O_RDWR)
	if err != nil {
		return err
	}
	defer f.Close()
	now, err := readSized(io.LimitReader(f, maxRewriteBytes), 0)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, old) {
		return &changedError{now: now}
	}
	if err := fill(f, next); err != nil {
		return errors.Join(err, fill(f, old))
	}
	return nil
}

func fill(f *os.File, content []byte) error {
	if _, err := f.WriteAt(content, 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(content)))
}

// create makes the file, which must not exist: whole at once where the file
// system has hard links.
func (t *target) create(content []byte) error {
	tmp, err := t.writeTemp(content)
	if err != nil {
		return err
	}
	defer t.dir.root.Remove(tmp)
	err = t.dir.root.Link(tmp, t.name)
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrExist) {
		err = t.createDirectly(content)
	}
	if errors.Is(err, fs.ErrExist) {
		return &changedError{now: t.current()}
	}
	return err
}

func (t *target) createDirectly(content []byte) error {
	f, err := t.dir.root.OpenFile(t.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		t.dir.root.Remove(t.name)
	}
	return err
}

// readSized reads all of r, which probably has size bytes.
func readSized(r io.Reader, size int64) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	_, err := b.ReadFrom(r)
	return b.Bytes(), err
}
