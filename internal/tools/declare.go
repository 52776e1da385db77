package tools

import (
	"encoding/json"
	"reflect"
)

// WithInput returns the spec with the input declared as the struct that in is:
// its tags say the keys, as those of the built-in tools do. Canonical then
// brings the inputs of calls to that form, so that policy reads in them what
// the tool will. For tools outside of this package.
func (s Spec) WithInput(in any) Spec {
	s.input = reflect.TypeOf(in)
	return s
}

// Decode reads the input of a call into the declared struct, which in points
// to. The error is written for the model.
func (s Spec) Decode(input json.RawMessage, in any) error { return s.decode(input, in) }
