package sandbox

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// outputs carries what a child writes to the writers of its Command: one pipe
// for each, or one for both when they are the same value. It also carries the
// other way what the child is given to read.
type outputs struct {
	null    *os.File   // stdin if there is none, and the output that nobody wants
	stdin   *input     // nil: there is none
	child   []*os.File // fds 0, 1, 2 of the child
	streams []stream
	left    atomic.Int32
	done    chan struct{} // closed when all streams have ended
}

type stream struct {
	r, w *os.File
	dst  io.Writer
}

// input is what a child is given to read.
type input struct {
	r, w *os.File
	text []byte
	done chan struct{} // closed when all is written, or nobody reads it any more
}

// write hands the text over. Close of w ends it.
func (i *input) write() {
	defer close(i.done)
	_, _ = i.w.Write(i.text) // a child need not read it
	_ = i.w.Close()
}

// openOutputs opens the pipes. finish or abandon closes them.
func openOutputs(c Command) (*outputs, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	o := &outputs{null: null, child: []*os.File{null}, done: make(chan struct{})}
	switch {
	case c.StdinFile != nil:
		o.child[0] = c.StdinFile
	case c.Stdin != nil:
		r, w, err := os.Pipe()
		if err != nil {
			o.abandon()
			return nil, fmt.Errorf("opening a pipe: %w", err)
		}
		o.stdin = &input{r: r, w: w, text: c.Stdin, done: make(chan struct{})}
		o.child[0] = r
	}
	out, err := o.open(c.Stdout)
	if err != nil {
		o.abandon()
		return nil, err
	}
	errOut := out
	if !same(c.Stdout, c.Stderr) {
		if errOut, err = o.open(c.Stderr); err != nil {
			o.abandon()
			return nil, err
		}
	}
	o.child = append(o.child, out, errOut)
	o.left.Store(int32(len(o.streams)))
	if len(o.streams) == 0 {
		close(o.done)
	}
	return o, nil
}

// same reports whether a and b are one writer; false where they can't be compared.
func same(a, b io.Writer) (equal bool) {
	defer func() {
		if recover() != nil {
			equal = false
		}
	}()
	return a == b
}

// open returns the file that the child writes to so that it reaches dst.
func (o *outputs) open(dst io.Writer) (*os.File, error) {
	if dst == nil {
		return o.null, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("opening a pipe: %w", err)
	}
	o.streams = append(o.streams, stream{r: r, w: w, dst: dst})
	return w, nil
}

// pipes returns our copies of the ends that the child writes to.
func (o *outputs) pipes() []*os.File {
	var ws []*os.File
	for _, s := range o.streams {
		ws = append(ws, s.w)
	}
	return ws
}

// childFiles returns the child's fds 0, 1 and 2.
func (o *outputs) childFiles() []*os.File { return o.child }

// abandon closes everything; nothing was started.
func (o *outputs) abandon() {
	o.closeChildSide()
	if o.stdin != nil {
		_ = o.stdin.w.Close()
	}
	for _, s := range o.streams {
		_ = s.r.Close()
	}
}

func (o *outputs) closeChildSide() {
	_ = o.null.Close()
	if o.stdin != nil {
		_ = o.stdin.r.Close()
	}
	for _, s := range o.streams {
		_ = s.w.Close()
	}
}

// start begins to copy; the child has its ends by now. finish ends it.
func (o *outputs) start() {
	o.closeChildSide()
	if o.stdin != nil {
		go o.stdin.write()
	}
	for _, s := range o.streams {
		go o.copy(s)
	}
}

// copy reads until the last writer is gone, whatever becomes of dst: a child
// must never block on, or die of, a reader that lost interest.
func (o *outputs) copy(s stream) {
	defer func() {
		if o.left.Add(-1) == 0 {
			close(o.done)
		}
	}()
	buf := make([]byte, 32<<10)
	for dst := s.dst; ; {
		n, err := s.r.Read(buf)
		if n > 0 && dst != nil {
			if _, werr := dst.Write(buf[:n]); werr != nil {
				dst = nil
			}
		}
		if err != nil {
			return
		}
	}
}

// finish waits for the copying to end, at most d, then cuts it: by now only
// somebody outside the tree can hold a pipe open. No copier is left after it.
func (o *outputs) finish(d time.Duration) {
	if o.stdin != nil {
		_ = o.stdin.w.Close() // it ends a write that nobody reads
		<-o.stdin.done
	}
	if !waitFor(o.done, d) {
		for _, s := range o.streams {
			if s.r.SetReadDeadline(time.Now()) != nil {
				_ = s.r.Close()
			}
		}
		<-o.done
	}
	for _, s := range o.streams {
		_ = s.r.Close()
	}
}
