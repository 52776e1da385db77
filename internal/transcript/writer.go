package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// ErrExists says that there is a session of that id already.
var ErrExists = errors.New("a session with this id exists already")

// Options are the constants of a session's records.
type Options struct {
	Path      string // of the file; its folder is made
	SessionID string
	Cwd       string
	Version   string
	GitBranch string
	Layout    Layout // empty: Native
	Agent     *Agent // whose transcript it is; nil: the main conversation's
	// Mirror is called with records once they are in the file, in order, one
	// call at a time; it must not block, nor call the Writer. nil: nobody wants
	// them.
	Mirror func(path string, records []json.RawMessage)
}

// Writer appends to one session's file. It makes the file with the first
// entry. A record that cannot be written is kept and written before the next
// one, so that a full disk that gets room again loses nothing. It is safe for
// concurrent use.
type Writer struct {
	o Options

	mu      sync.Mutex // guards the rest
	file    *os.File
	size    int64  // of what is whole in the file
	torn    bool   // there is half a record behind it
	told    bool   // the mirror knows whose transcript it is
	backlog []byte // whole records that are not in the file yet
	parent  string
	seq     int64
	closed  bool
}

// maxBacklog bounds what is kept while the file cannot be written, in bytes; one
// entry is kept whatever its length.
const maxBacklog = 64 << 20

// New returns a Writer. It fails with ErrExists when the file is there; it
// does not make it yet.
func New(o Options) (*Writer, error) {
	if _, err := os.Lstat(o.Path); err == nil {
		return nil, fmt.Errorf("session %s: %w: %s", o.SessionID, ErrExists, o.Path)
	}
	return &Writer{o: o}, nil
}

// Path returns the file's path.
func (w *Writer) Path() string { return w.o.Path }

// Append writes one entry: its parent is the entry appended before. On an error
// the entry is kept for the next Append, Sync or Close.
func (w *Writer) Append(e Entry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errors.New("appending to a closed transcript")
	}
	line, err := w.encode(e)
	if err != nil {
		return err
	}
	if len(w.backlog) > 0 && len(w.backlog)+len(line) > maxBacklog {
		return fmt.Errorf("transcript %s: entry %s is lost: too much waits to be written", w.o.Path, e.UUID)
	}
	w.backlog = append(w.backlog, line...)
	w.parent = e.UUID
	w.seq++
	return w.flush()
}

// flush writes the backlog. A record that went in by half is cut off again.
func (w *Writer) flush() error {
	if len(w.backlog) == 0 {
		return nil
	}
	if err := w.open(); err != nil {
		return err
	}
	if err := w.catchUp(); err != nil {
		return fmt.Errorf("writing transcript: %w", err)
	}
	n, err := w.file.WriteAt(w.backlog, w.size)
	if err == nil {
		w.mirror()
		w.size += int64(n)
		w.backlog = w.backlog[:0]
		return nil
	}
	w.torn = true
	if terr := w.file.Truncate(w.size); terr != nil {
		err = errors.Join(err, terr)
	} else {
		w.torn = false
	}
	return fmt.Errorf("writing transcript: %w", err)
}

// catchUp finds the end of the file: the session helpers of hosts add lines,
// such as a title, while the session runs.
func (w *Writer) catchUp() error {
	if w.torn { // what is beyond size is half a record of ours
		if err := w.file.Truncate(w.size); err != nil {
			return err
		}
		w.torn = false
	}
	info, err := w.file.Stat()
	if err != nil || info.Size() == w.size {
		return err
	}
	w.size = info.Size()
	var last [1]byte
	if w.size == 0 {
		return nil
	}
	if _, err := w.file.ReadAt(last[:], w.size-1); err != nil || last[0] == '\n' {
		return err
	}
	n, err := w.file.WriteAt([]byte("\n"), w.size)
	w.size += int64(n)
	return err
}

// mirror passes on the backlog, which is in the file now.
func (w *Writer) mirror() {
	if w.o.Mirror == nil {
		return
	}
	var records []json.RawMessage
	if !w.told && w.o.Agent != nil {
		w.told = true
		records = append(records, w.o.Agent.mirrored())
	}
	for line := range bytes.Lines(w.backlog) {
		records = append(records, bytes.Clone(bytes.TrimSuffix(line, []byte("\n"))))
	}
	w.o.Mirror(w.o.Path, records)
}

func (w *Writer) open() error {
	if w.file != nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(w.o.Path), 0o700); err != nil {
		return fmt.Errorf("making the folder of the transcript: %w", err)
	}
	f, err := os.OpenFile(w.o.Path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("session %s: %w: %s", w.o.SessionID, ErrExists, w.o.Path)
	}
	if err != nil {
		return fmt.Errorf("making the transcript: %w", err)
	}
	w.file = f
	if w.o.Agent != nil {
		if err := os.WriteFile(metaPath(w.o.Path), w.o.Agent.meta(), 0o600); err != nil {
			return fmt.Errorf("saying whose transcript it is: %w", err)
		}
	}
	return nil
}

// Sync makes everything appended durable.
func (w *Writer) Sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.flush(); err != nil {
		return err
	}
	if w.file == nil {
		return nil
	}
	if err := w.file.Sync(); err != nil {
		return fmt.Errorf("making the transcript durable: %w", err)
	}
	return nil
}

// Close writes what waits and closes the file. It may be called twice.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	err := w.flush()
	w.closed = true
	if w.file != nil {
		err = errors.Join(err, w.file.Close())
	}
	return err
}
