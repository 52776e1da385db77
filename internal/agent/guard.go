package agent

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"

	"github.com/agentcli/agent/internal/model"
)

// Limits of the loop guard: repeats of the same calls with the same results
// before the model is warned, and before the turn is ended.
const (
	warnRepeats = 4
	stopRepeats = 8
	// maxMalformed bounds answers in a row whose every call was unreadable.
	maxMalformed = 3
)

var errMalformed = fmt.Errorf("%w: the model's tool calls could not be read", ErrLoop)

// loopGuard notices a model that makes no progress: the same calls, answered by
// the same results, over and over. Waiting for something that changes is not a
// loop. The zero value is ready.
type loopGuard struct {
	last      uint64
	repeats   int // how often last was seen in a row
	malformed int
}

// see takes an answer and its results. It returns a note for the model when it
// seems stuck, and an error when the turn has to end.
func (g *loopGuard) see(answer, results *model.Message) (warning string, err error) {
	if allInvalid(answer) {
		g.malformed++
		if g.malformed >= maxMalformed {
			return "", fmt.Errorf("%w %d times in a row", errMalformed, g.malformed)
		}
	} else {
		g.malformed = 0
	}
	sum := fingerprint(answer, results)
	if sum != g.last {
		g.last, g.repeats = sum, 1
		return "", nil
	}
	g.repeats++
	switch {
	case g.repeats >= stopRepeats:
		return "", fmt.Errorf("%w: the same tool calls gave the same results %d times in a row", ErrLoop, g.repeats)
	case g.repeats == warnRepeats:
		return "You made the same call and got the same result several times in a row. Do something else, or answer with what you know.", nil
	}
	return "", nil
}

func loopTerminal(err error) Terminal {
	if errors.Is(err, errMalformed) {
		return MalformedToolUse
	}
	return LoopGuard
}

func allInvalid(m *model.Message) bool {
	for _, u := range toolUses(m) {
		if u.Invalid == "" {
			return false
		}
	}
	return true
}

// fingerprint hashes what was called and what came of it, ids left out.
func fingerprint(answer, results *model.Message) uint64 {
	h := fnv.New64a()
	for _, u := range toolUses(answer) {
		io.WriteString(h, u.Name)
		h.Write(u.Input)
		h.Write([]byte{0})
	}
	for _, b := range results.Blocks {
		res, ok := b.(model.ToolResult)
		if !ok {
			continue
		}
		for _, inner := range res.Blocks {
			if text, ok := inner.(model.Text); ok {
				io.WriteString(h, text.Text)
			}
		}
		h.Write([]byte{1})
	}
	return h.Sum64()
}
