package control

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/agentcli/agent/internal/streamjson"
)

// stateLimit is how long a state change may take. One that takes longer is
// answered by an error and told by its context to give up.
const stateLimit = 30 * time.Second

// maxRunning is how many requests of one pool run at once.
const maxRunning = 64

// maxHeld bounds what the requests that aren't over take, in bytes; each takes
// requestCost besides its body. One that would exceed it is answered by an
// error, unless it is one that the reader serves at once.
const (
	maxHeld     = 256 << 20
	requestCost = 4 << 10
)

// pool is requests that change no state, and run as soon as there is a place.
type pool struct {
	waiting []*request // for a place
	running int
}

// later is what is left of a request whose change of state is done: it runs
// like a request that waits for others, and returns the payload.
type later func() (any, error)

// admit takes a request into account, or says why it can't be taken. d.mu is
// held.
func (d *Dispatcher) admit(r *request) error {
	if d.closed {
		return ErrClosed
	}
	size := len(r.body) + requestCost
	if r.route.lane != laneNow && d.held+size > maxHeld {
		return fmt.Errorf("%s was not taken: the requests that are not answered yet take %d MiB, which is the most there can be: wait for their answers", r.subtype, maxHeld>>20)
	}
	d.held += size
	return nil
}

// start runs a request, or files it until there is a place. d.mu is held.
func (d *Dispatcher) start(r *request) {
	p := &d.free
	if r.route.lane == laneOutside {
		p = &d.outside
	}
	if p.running == maxRunning {
		p.waiting = append(p.waiting, r)
		return
	}
	p.running++
	go d.run(p, r) // ends with the last request that waits; Close waits for each request
}

// runStates runs state changes in order until none waits.
func (d *Dispatcher) runStates() {
	for {
		d.mu.Lock()
		if len(d.states) == 0 {
			d.states, d.stating = nil, false
			d.mu.Unlock()
			return
		}
		r := d.states[0]
		d.states[0] = nil
		d.states = d.states[1:]
		d.mu.Unlock()
		r.serve()
	}
}

// run runs r and then what waits for a place.
func (d *Dispatcher) run(p *pool, r *request) {
	for r != nil {
		r.serve()
		r = d.nextWaiting(p)
	}
}

func (d *Dispatcher) nextWaiting(p *pool) *request {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(p.waiting) == 0 {
		p.waiting = nil
		p.running--
		return nil
	}
	r := p.waiting[0]
	p.waiting[0] = nil
	p.waiting = p.waiting[1:]
	return r
}

// serve runs the handler and sees to it that there is an answer.
func (r *request) serve() {
	if !r.isPending() {
		r.over() // withdrawn before its turn
		return
	}
	payload, err := r.handle()
	if rest, ok := payload.(later); ok && err == nil {
		r.goOn(rest)
		return
	}
	defer r.over()
	if err != nil {
		r.answer(streamjson.Failure(r.id, err.Error()))
		return
	}
	r.succeed(payload)
}

// goOn lets the next state change run while the rest of this one does.
func (r *request) goOn(rest later) {
	d := r.d
	d.mu.Lock()
	defer d.mu.Unlock()
	r.settle()
	r.route = route{laneOutside, func(*request) (any, error) { return rest() }}
	d.start(r)
}

// late gives a state change up.
func (r *request) late() {
	r.answer(streamjson.Failure(r.id, fmt.Sprintf("%s was given up: it was not done within %s", r.subtype, stateLimit)))
	r.cancel()
}

// over marks a request as done.
func (r *request) over() {
	d := r.d
	r.cancel()
	d.mu.Lock()
	r.settle()
	d.held -= len(r.body) + requestCost
	d.mu.Unlock()
	d.work.Done()
}

// settle marks a state change as done. d.mu is held.
func (r *request) settle() {
	if r.done == nil || r.settled {
		return
	}
	if r.d.last == r {
		r.d.last = nil
	}
	if r.d.opening == r {
		r.d.opening = nil
	}
	r.settled = true
	close(r.done)
}

func (r *request) isPending() bool {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	return r.d.pending[r.id] == r
}

// handle calls the handler; a panic is an error.
func (r *request) handle() (payload any, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.d.log.Error("a control request failed by a panic", "subtype", r.subtype, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("internal error in %s: %v", r.subtype, p)
		}
	}()
	if r.route.lane == laneState {
		defer time.AfterFunc(stateLimit, r.late).Stop()
	}
	return r.route.handle(r)
}
