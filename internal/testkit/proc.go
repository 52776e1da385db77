package testkit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Spec says how to spawn a program.
type Spec struct {
	Path  string
	Args  []string
	Dir   string
	Env   []string // whole environment
	Stdin string   // written, then closed; see HoldStdin
	// HoldStdin leaves stdin open until CloseStdin.
	HoldStdin bool
	// NoRead leaves stdout unread until Read is called.
	NoRead bool
	// Stdout replaces the pipe by a file.
	Stdout *os.File
}

// Line is one line of stdout with its time since the start.
type Line struct {
	At   time.Duration
	Text []byte // without the newline
}

// Exit says how a program ended and what it used.
type Exit struct {
	Code   int // -1: by a signal
	Wall   time.Duration
	CPU    time.Duration // user and system, with waited-for children
	MaxRSS int64         // peak of the process, in bytes
}

// Proc is a spawned program. Its stdout is read as it comes.
type Proc struct {
	cmd    *exec.Cmd
	begin  time.Time
	stdin  io.WriteCloser
	stdout *os.File
	stderr errorText

	reading sync.Once
	done    chan struct{} // closed at the end of stdout
	mu      sync.Mutex    // guards the rest
	grown   sync.Cond
	lines   []Line
	ended   bool
	torn    []byte // bytes after the last newline
}

// heldLimit is how long children that hold stderr open may outlive the program.
const heldLimit = 5 * time.Second

// Start spawns the program.
func Start(s Spec) (*Proc, error) {
	p := &Proc{cmd: exec.Command(s.Path, s.Args...), done: make(chan struct{})}
	p.grown.L = &p.mu
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = s.Dir, s.Env, &p.stderr
	p.cmd.WaitDelay = heldLimit
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	var w *os.File
	if s.Stdout != nil {
		p.cmd.Stdout = s.Stdout
	} else {
		if p.stdout, w, err = os.Pipe(); err != nil {
			return nil, err
		}
		p.cmd.Stdout = w
	}
	p.begin = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", s.Path, err)
	}
	if w != nil {
		w.Close()
	}
	if s.Stdin != "" {
		go func() { // ends when the program reads or ends
			_, _ = io.WriteString(stdin, s.Stdin) // it may have ended
			if !s.HoldStdin {
				_ = stdin.Close()
			}
		}()
	} else if !s.HoldStdin {
		_ = stdin.Close()
	}
	if !s.NoRead {
		p.Read(0)
	}
	return p, nil
}

// Read starts reading stdout, at most bytesPerSecond if that is positive.
func (p *Proc) Read(bytesPerSecond int) {
	p.reading.Do(func() {
		if p.stdout == nil {
			close(p.done)
			return
		}
		var src io.Reader = p.stdout
		if bytesPerSecond > 0 {
			src = &throttled{src: src, perSecond: bytesPerSecond}
		}
		go p.pump(src) // ends with stdout
	})
}

func (p *Proc) pump(src io.Reader) {
	defer close(p.done)
	br := bufio.NewReaderSize(src, 256<<10)
	for {
		text, err := br.ReadBytes('\n')
		p.mu.Lock()
		if n := len(text); n > 0 && text[n-1] == '\n' {
			p.lines = append(p.lines, Line{time.Since(p.begin), text[:n-1]})
		} else {
			p.torn = text
		}
		p.ended = err != nil
		p.grown.Broadcast()
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

type throttled struct {
	src       io.Reader
	perSecond int
}

func (t *throttled) Read(b []byte) (int, error) {
	n, err := t.src.Read(b[:min(len(b), max(t.perSecond/20, 1))])
	<-time.After(time.Duration(n) * time.Second / time.Duration(t.perSecond))
	return n, err
}

// ErrEnded says that stdout ended before what was waited for came.
var ErrEnded = errors.New("stdout ended")

// Await waits for the first line from index on that want accepts, and returns
// it and the index behind it.
func (p *Proc) Await(from int, limit time.Duration, want func(Line) bool) (Line, int, error) {
	expired := false
	timer := time.AfterFunc(limit, func() {
		p.mu.Lock()
		expired = true
		p.grown.Broadcast()
		p.mu.Unlock()
	})
	defer timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := from; ; {
		for ; i < len(p.lines); i++ {
			if want(p.lines[i]) {
				return p.lines[i], i + 1, nil
			}
		}
		switch {
		case p.ended:
			return Line{}, i, ErrEnded
		case expired:
			return Line{}, i, fmt.Errorf("not within %s", limit)
		}
		p.grown.Wait()
	}
}

// Send writes a line to stdin.
func (p *Proc) Send(line string) error {
	_, err := io.WriteString(p.stdin, line+"\n")
	return err
}

// Write writes to stdin as it is.
func (p *Proc) Write(b []byte) (int, error) { return p.stdin.Write(b) }

// CloseStdin ends stdin.
func (p *Proc) CloseStdin() { _ = p.stdin.Close() }

// CloseStdout makes the reader of stdout go away.
func (p *Proc) CloseStdout() { _ = p.stdout.Close() }

// Signal sends a signal to the process alone.
func (p *Proc) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// PID is the process id.
func (p *Proc) PID() int { return p.cmd.Process.Pid }

// Wait waits for the end, at most limit: then the process is killed and the
// error says so.
func (p *Proc) Wait(limit time.Duration) (Exit, error) {
	late := false
	timer := time.AfterFunc(limit, func() {
		late = true
		_ = p.cmd.Process.Kill()
	})
	err := p.cmd.Wait()
	wall := time.Since(p.begin)
	timer.Stop()
	if p.stdout != nil {
		p.Read(0)
		if late || errors.Is(err, exec.ErrWaitDelay) {
			_ = p.stdout.Close() // a child may hold it open for ever
		}
		<-p.done
		_ = p.stdout.Close()
	}
	var status *exec.ExitError
	switch {
	case late:
		return Exit{}, fmt.Errorf("not ended within %s; stderr: %s", limit, p.Stderr())
	case err != nil && !errors.As(err, &status):
		return Exit{}, err
	}
	return p.exit(wall), nil
}

func (p *Proc) exit(wall time.Duration) Exit {
	st := p.cmd.ProcessState
	e := Exit{Code: st.ExitCode(), Wall: wall, CPU: st.UserTime() + st.SystemTime()}
	if ru, ok := st.SysUsage().(*syscall.Rusage); ok {
		e.MaxRSS = ru.Maxrss << 10
	}
	return e
}

// Lines returns the lines so far.
func (p *Proc) Lines() []Line {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines
}

// Output returns stdout so far as a whole.
func (p *Proc) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var sb bytes.Buffer
	for _, l := range p.lines {
		sb.Write(l.Text)
		sb.WriteByte('\n')
	}
	sb.Write(p.torn)
	return sb.String()
}

// Stderr returns stderr as far as it has come; after Wait that is all.
func (p *Proc) Stderr() string {
	p.stderr.mu.Lock()
	defer p.stderr.mu.Unlock()
	return p.stderr.text.String()
}

// errorText keeps what is written to it.
type errorText struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

// Write implements io.Writer.
func (e *errorText) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.text.Write(b)
}

// Frames parses all lines as frames and checks each.
func (p *Proc) Frames() ([]Frame, error) {
	var out []Frame
	for i, l := range p.Lines() {
		f, err := Parse(l.Text)
		if err != nil {
			return out, fmt.Errorf("line %d: %w", i+1, err)
		}
		out = append(out, f)
	}
	return out, nil
}
