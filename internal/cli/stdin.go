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
type stdin struct {
	src   io.Reader
	lines chan chunk
	stop  chan struct{}
	once  sync.Once
	start sync.Once
	rest  []byte
}

type chunk struct {
	data []byte
	err  error
}

// newStdin returns a reader of src that Unblock ends. Nothing is read before
// the first Read. A read that src is stuck in stays behind until src ends: for
// the process's own stdin that is the end of the process.
func newStdin(src io.Reader) *stdin {
	return &stdin{src: src, lines: make(chan chunk), stop: make(chan struct{})}
}

// Read implements io.Reader.
func (s *stdin) Read(p []byte) (int, error) {
	s.start.Do(func() { go s.pump() })
	if len(s.rest) == 0 {
		select {
		case c, ok := <-s.lines:
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
func (s *stdin) pump() {
	defer close(s.lines)
	for {
		buf := make([]byte, 64<<10)
		n, err := s.src.Read(buf)
		if n > 0 && !s.pass(chunk{data: buf[:n]}) {
			return
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				if errors.Is(err, os.ErrClosed) {
					err = errNoStdin
				}
				s.pass(chunk{err: err})
			}
			return
		}
	}
}

func (s *stdin) pass(c chunk) bool {
	select {
	case s.lines <- c:
		return true
	case <-s.stop:
		return false
	}
}

// Unblock ends the pending and every later Read with io.EOF.
func (s *stdin) Unblock() { s.once.Do(func() { close(s.stop) }) }
