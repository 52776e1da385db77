package agent

import (
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
)

// Input is one line of the user: it becomes one turn.
type Input struct {
	UUID       string // of the user message; made up if empty
	Blocks     []model.Block
	AppendOnly bool // add to the history, start no turn
	Priority   Priority
	// Composed says that the host put the text together: a "/" at its start is
	// no command.
	Composed bool
	// Injected says that the program made the input, not the user. Without
	// Blocks its turn goes on where the history ends.
	Injected bool
	// Origin is where the input came from, a JSON value in the wire's form; it
	// comes back in the result. nil: not told.
	Origin json.RawMessage

	// These hold for this turn only.
	Model    string       // empty: the conversation's
	Mode     *policy.Mode // nil: the conversation's
	MaxTurns int          // 0: the conversation's

	// Ready, if not nil, is closed when the turn may begin: whatever changes
	// the state of the conversation and came before this input is done then.
	Ready <-chan struct{}

	// Size is what the input takes in memory, in bytes; it counts against the
	// queue's limit.
	Size int
	// Err makes the input a failed one: its turn ends at once with this error.
	Err error

	clear       bool  // empty the history instead, see Conversation.Clear
	interrupted error // why its turn ends as it begins; nil: it does not
}

// Priority is an input's place in the queue: before all of lower priority,
// behind all of the same. It ends no turn.
type Priority int

// The priorities, as the wire names them. Next, the zero value, is that of
// inputs which say nothing.
const (
	Later Priority = iota - 1
	Next
	Now
)

// inbox is the ordered queue of inputs. It never blocks the one who puts.
type inbox struct {
	mu     sync.Mutex
	items  [3][]Input // by falling priority; oldest first
	bytes  int        // sum of the items' sizes
	closed bool
	holds  int           // inputs of our own that will come, closed or not
	ready  chan struct{} // one slot; filled when there may be something to take
}

func newInbox() *inbox { return &inbox{ready: make(chan struct{}, 1)} }

// maxQueued bounds the sizes of the inputs that wait, in bytes.
const maxQueued = 256 << 20

// ErrQueueFull says that an input was refused because too much waits already.
var ErrQueueFull = errors.New("too much input is waiting already: send this again after the next result")

// put adds in, or what it refused of it, and reports whether the inbox was
// still open.
func (b *inbox) put(in Input) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	if b.bytes+in.Size > maxQueued {
		in = Input{UUID: in.UUID, Err: ErrQueueFull}
	}
	b.add(in)
	b.wake()
	return true
}

// add is called with mu held.
func (b *inbox) add(in Input) {
	b.bytes += in.Size
	queue := &b.items[Now-in.Priority]
	*queue = append(*queue, in)
}

// all yields the inputs in the order in which they are taken. mu is held.
func (b *inbox) all() iter.Seq[*Input] {
	return func(yield func(*Input) bool) {
		for _, queue := range b.items {
			for i := range queue {
				if !yield(&queue[i]) {
					return
				}
			}
		}
	}
}

func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.wake()
}

func (b *inbox) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// exhausted reports whether nothing waits and nothing comes any more.
func (b *inbox) exhausted() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed && b.holds == 0 && b.count() == 0
}

// abandon closes, and lets nothing that is held come any more.
func (b *inbox) abandon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.holds = true, 0
	b.wake()
}

// hold says that an input of our own will come. Each one is released.
func (b *inbox) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holds++
}

// release ends a hold, with its input if it comes.
func (b *inbox) release(in Input, comes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.holds == 0 { // abandoned
		return
	}
	b.holds--
	if comes {
		b.add(in)
	}
	b.wake()
}

// wake is called with mu held.
func (b *inbox) wake() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// take returns the first input, if there is one, and whether more may come.
func (b *inbox) take() (in Input, ok, open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, queue := range b.items {
		if len(queue) == 0 {
			continue
		}
		in = queue[0]
		b.bytes -= in.Size
		queue[0] = Input{}
		b.items[i] = queue[1:]
		return in, true, true
	}
	return Input{}, false, !b.closed || b.holds > 0
}

func (b *inbox) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count()
}

// count is called with mu held.
func (b *inbox) count() int {
	n := 0
	for _, queue := range b.items {
		n += len(queue)
	}
	return n
}

// pending returns the uuids of the inputs that wait, but for those that the
// program made. With a cause the first one that will have a turn counts as
// running instead: its turn ends with cause as it begins.
func (b *inbox) pending(cause error) (ids []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for in := range b.all() {
		switch {
		case in.clear:
		case cause != nil && in.hasTurn():
			in.interrupted, cause = cause, nil
		case !in.Injected:
			ids = append(ids, in.UUID)
		}
	}
	return ids
}

// drop takes the inputs with these uuids away.
func (b *inbox) drop(ids []string) {
	gone := make(map[string]bool, len(ids))
	for _, id := range ids {
		gone[id] = true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.items {
		b.items[i] = slices.DeleteFunc(b.items[i], func(in Input) bool {
			if in.clear || !gone[in.UUID] {
				return false
			}
			b.bytes -= in.Size
			return true
		})
	}
}

// hasTurn reports whether the input becomes a turn.
func (in *Input) hasTurn() bool { return !in.clear && (!in.AppendOnly || in.Err != nil) }
