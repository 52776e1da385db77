// Package policy decides, without any I/O, whether a tool call may run: mode
// and rules and the facts of the call give allow, deny or ask. It also holds
// the questions that can be put to a person or host, and who can answer them.
// It imports nothing of ours.
package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
)

// Class says what a tool call does to the world, as far as policy cares.
type Class string

// Classes of tools.
const (
	ClassRead     Class = "read"     // looks at files beneath the roots
	ClassEdit     Class = "edit"     // changes files beneath the roots
	ClassExec     Class = "exec"     // runs commands
	ClassFetch    Class = "fetch"    // talks to the network
	ClassInteract Class = "interact" // asks the user something
	ClassInternal Class = "internal" // changes only the agent's own state (todo list, task control)
	ClassMCP      Class = "mcp"
	ClassPlan     Class = "plan" // asks for a plan to be approved
	ClassOther    Class = "other"
)

// classes are all of them.
var classes = [...]Class{ClassRead, ClassEdit, ClassExec, ClassFetch, ClassInteract, ClassInternal, ClassMCP, ClassPlan, ClassOther}

// Question is something only a person (or the host in their place) can
// answer: ToolPermission or AskUser.
type Question interface{ isQuestion() }

// ToolPermission asks whether a call may run.
type ToolPermission struct {
	ToolName  string
	ToolUseID string
	Input     json.RawMessage
	Class     Class
	Title     string // one line: what would happen
	Reason    string // why it asks
	Why       Why    // the kind of reason
	Path      string // the path that made it ask; empty: none did
	Agent     string // id of the sub-agent that calls; empty: the conversation itself

	Suggestions []Suggestion
	Always      *Rule  // would allow this call from now on; nil: no rule can
	Hash        string // of the tool and the exact input: see Bind
}

// Bind returns what an approval of a call is bound to besides its id: a hash of
// the tool's name and the exact bytes of its input.
func Bind(tool string, input json.RawMessage) string {
	h := sha256.New()
	h.Write([]byte(tool))
	h.Write([]byte{0})
	h.Write(input)
	return hex.EncodeToString(h.Sum(nil))
}

// Allow returns the answer that allows this call and no other one.
func (q ToolPermission) Allow() Answer {
	return Answer{Allow: true, ToolUseID: q.ToolUseID, Hash: q.Hash}
}

// AskUser carries the model's own questions to the user.
type AskUser struct {
	ToolUseID string
	Agent     string // id of the sub-agent that asks; empty: the conversation itself
	Questions []UserQuestion
}

// UserQuestion is one question with its choices. Free text is always allowed.
type UserQuestion struct {
	Question    string       `json:"question"`
	Header      string       `json:"header,omitempty"`
	Options     []UserOption `json:"options,omitempty"`
	MultiSelect bool         `json:"multiSelect,omitempty"`
}

// UserOption is one choice of a UserQuestion.
type UserOption struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
	Preview     string `json:"preview,omitempty"` // to be shown while the choice is looked at
}

func (ToolPermission) isQuestion() {}
func (AskUser) isQuestion()        {}

// Scope says for how long, and where, an approval holds.
type Scope string

// Scopes.
const (
	ScopeOnce    Scope = ""        // for this call
	ScopeSession Scope = "session" // while the program runs
	ScopeLocal   Scope = "local"   // in this project, for this user
	ScopeUser    Scope = "user"    // everywhere, for this user
)

// Answer is the reply to a Question. The zero value denies. An Answer that
// allows a call carries the call's id and hash (see ToolPermission.Allow): one
// that is bound to another call denies.
type Answer struct {
	Allow        bool
	ToolUseID    string
	Hash         string
	Remember     Scope             // of an allowed call: also from now on, by the question's Always
	Message      string            // shown to the model on denial
	UpdatedInput json.RawMessage   // nil: unchanged
	Interrupt    bool              // a denial that also ends the turn
	Answers      map[string]string // AskUser: question text to answer
	Updates      []Update          // changes of the permissions that came with the answer, to be applied in order before the call runs
}

// ErrNoUser means that nobody is there to answer. For a permission it is a
// denial; for AskUser the model is told so. It is never an invented answer.
var ErrNoUser = errors.New("nobody is there to answer")

// Asker puts a Question to somebody. It blocks until there is an answer or ctx
// ends; any error is a denial. It may be called from several goroutines.
type Asker interface {
	Ask(ctx context.Context, q Question) (Answer, error)
}

// Nobody is the Asker of a run without a user: always ErrNoUser.
type Nobody struct{}

// Ask implements Asker.
func (Nobody) Ask(context.Context, Question) (Answer, error) { return Answer{}, ErrNoUser }
