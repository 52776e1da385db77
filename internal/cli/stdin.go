package cli

import (
	"errors"
	"io"
	"os"
	"sync"
)

// errNoStdin says that there is no stdin at all: it was closed.
var errNoStdin = errors.New("stdin is closed")

// stdin is a reader whose pending Read can be ended.
type stdin interface {
	io.Reader
	// Unblock ends the pending and every later Read with io.EOF.
	Unblock()
	// release frees what the reader holds. It is called once, after the last Read
	// and Unblock.
	release()
}

// newStdin returns a reader of src, which it does not close. Nothing is read
// before the first Read. The caller must release it.
func newStdin(src io.Reader) stdin {
	if f, ok := src.(*os.File); ok {
		if in := newPolledStdin(f); in != nil {
			return in
		}
	}
	return &pumpedStdin{src: src, chunks: make(chan chunk), stop: make(chan struct{})}
}

// readError is the error of a Read as it is shown.
func readError(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return errNoStdin
	}
	return err
}

// pumpedStdin reads any source by a goroutine of its own. A read that the source
// is stuck in stays behind until that ends: for the process's own stdin that is
// the end of the process.
type pumpedStdin struct {
	src    io.Reader
	chunks chan chunk
	stop   chan struct{}
	once   sync.Once
	start  sync.Once
	rest   []byte
}

type chunk struct {
	data []byte
	err  error
}

// Read implements io.Reader.
func (s *pumpedStdin) Read(p []byte) (int, error) {
	s.start.Do(func() { go s.pump() })
	if len(s.rest) == 0 {
		select {
		case c, ok := <-s.chunks:
			if !ok {
				return 0, io.EOF
			}
			if c.err != nil {
				return 0, c.err
			}
			s.rest = c.data
		case <-s.stop:
			return 0, io.EOF
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// pump ends with src, or with stop at the next chunk.
func (s *pumpedStdin) pump() {
	defer close(s.chunks)
	for {
		buf := make([]byte, 64<<10)
		n, err := s.src.Read(buf)
		if n > 0 && !s.pass(chunk{data: buf[:n]}) {
			return
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				s.pass(chunk{err: readError(err)})
			}
			return
		}
	}
}

func (s *pumpedStdin) pass(c chunk) bool {
	select {
	case s.chunks <- c:
		return true
	case <-s.stop:
		return false
	}
}

// Unblock implements stdin.
func (s *pumpedStdin) Unblock() { s.once.Do(func() { close(s.stop) }) }

func (s *pumpedStdin) release() {}
