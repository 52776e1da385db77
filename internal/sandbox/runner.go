package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

const (
	// defaultGrace is the time between SIGTERM and SIGKILL.
	defaultGrace = 500 * time.Millisecond
	// killTime is how long SIGKILL is repeated before the rest is given up.
	killTime = 750 * time.Millisecond
	// lingerTime is granted to what outlives its leader and still holds our
	// pipe, to say its last words: `exec > >(tee log)` ends that way.
	lingerTime = 300 * time.Millisecond
	// drainTime is granted to the output once all writers should be dead.
	drainTime = 200 * time.Millisecond
)

// New returns a Runner that starts children with our own rights (ProfileNone,
// the only profile so far; any other is an error of Start). The first Start
// makes this process the reaper of its orphaned descendants (Linux), which is
// why code of this process that starts children without a Runner must leave
// them in our session, as os/exec does unless told otherwise.
func New() Runner { return runner{} }

type runner struct{}

// Start implements Runner.
func (runner) Start(ctx context.Context, c Command) (Process, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("starting a command: %w", context.Cause(ctx))
	}
	if c.Profile != "" && c.Profile != ProfileNone {
		return nil, fmt.Errorf("starting a command: profile %q is not supported", c.Profile)
	}
	if len(c.Argv) == 0 {
		return nil, errors.New("starting a command: it is empty")
	}
	path, err := lookPath(c.Argv[0], c.Env)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Argv[0], err)
	}
	out, err := openOutputs(c)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Argv[0], err)
	}
	p := &process{
		out:      out,
		grace:    c.Grace,
		begun:    time.Now(),
		exited:   make(chan struct{}),
		stopping: make(chan struct{}),
		done:     make(chan struct{}),
	}
	if p.grace <= 0 {
		p.grace = defaultGrace
	}
	p.tree, c.Env = newTree(c.Env, out.pipes())
	started := make(chan error, 1)
	go p.lead(path, c, started) // ends when the leader has exited
	if err := <-started; err != nil {
		out.abandon()
		return nil, fmt.Errorf("starting %s: %w", c.Argv[0], explainStart(err, c.Dir))
	}
	out.start()
	go p.supervise(ctx) // ends when the whole tree is gone; Wait waits for it
	return p, nil
}

// explainStart says so when the true reason of a failed start is its directory.
func explainStart(err error, dir string) error {
	if dir == "" {
		return err
	}
	info, statErr := os.Stat(dir)
	switch {
	case statErr != nil:
		return fmt.Errorf("working directory: %w", statErr)
	case !info.IsDir():
		return fmt.Errorf("working directory: %s is not a directory", dir)
	}
	return err
}

// process is one started leader with its tree.
type process struct {
	tree  *tree
	out   *outputs
	grace time.Duration
	begun time.Time
	pid   int

	exited chan struct{} // closed when the leader was reaped; state is set before
	state  *os.ProcessState

	stopOnce sync.Once
	stopping chan struct{}

	done chan struct{} // closed by supervise; exit is set before
	exit Exit
}

// lead starts the leader and reaps it, on one OS thread that does nothing else:
// the kernel ties the death signal to the thread that forked, so this thread
// must live as long as the leader.
func (p *process) lead(path string, c Command, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	leader, err := p.tree.startLeader(path, c.Argv, &os.ProcAttr{
		Dir:   c.Dir,
		Env:   c.Env,
		Files: p.out.childFiles(),
		Sys:   sysProcAttr(),
	})
	if err != nil {
		started <- err
		return
	}
	p.pid = leader.Pid
	started <- nil
	p.tree.started(c.Env)
	p.state, _ = leader.Wait() // an error leaves state nil: ended, not known how
	p.tree.leaderReaped()
	close(p.exited)
}

// supervise waits for the end, takes down what is left of the tree and sees the
// output through.
func (p *process) supervise(ctx context.Context) {
	defer close(p.done)
	select {
	case <-p.exited:
		p.linger(ctx)
	case <-ctx.Done():
	case <-p.stopping:
	}
	natural := closed(p.exited)
	stopped, survivors := p.tree.takeDown(p.grace)
	ended := waitFor(p.exited, drainTime)
	p.tree.forget()
	p.out.finish(drainTime)

	p.exit = Exit{Code: -1, Duration: time.Since(p.begun), Survivors: survivors}
	if ended && p.state != nil {
		p.exit.Code, p.exit.Signal = exitOf(p.state)
	}
	if natural {
		p.exit.Leftovers = stopped
	}
}

// linger lets the output of a leader that has exited come to its own end.
func (p *process) linger(ctx context.Context) {
	timer := time.NewTimer(lingerTime)
	defer timer.Stop()
	select {
	case <-p.out.done:
	case <-timer.C:
	case <-ctx.Done():
	case <-p.stopping:
	}
}

// PID implements Process.
func (p *process) PID() int { return p.pid }

// Wait implements Process.
func (p *process) Wait() Exit {
	<-p.done
	return p.exit
}

// Stop implements Process.
func (p *process) Stop() {
	p.stopOnce.Do(func() { close(p.stopping) })
	<-p.done
}

// WaitingForInput implements Process.
func (p *process) WaitingForInput() bool {
	return !closed(p.exited) && p.tree.waitingForInput()
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// waitFor waits for c, at most d, and reports whether it was closed.
func waitFor(c <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
		return closed(c)
	}
}
