package policy

import (
	"encoding/json"
	"testing"
)

func TestThePlanIsPutToTheUserInPlanMode(t *testing.T) {
	t.Parallel()
	e := NewEngine(nil)
	f := Facts{Tool: "exit_plan_mode", Class: ClassPlan, Input: json.RawMessage(`{"plan":"x"}`), Mode: ModePlan, Interactive: true}
	if d := e.Decide(f); d.Behavior != Ask {
		t.Errorf("exit_plan_mode: %+v", d)
	}
	rule, err := ParseRule("ExitPlanMode", Allow, "test")
	if err != nil {
		t.Fatal(err)
	}
	if d := NewEngine([]Rule{rule}).Decide(f); d.Behavior != Ask {
		t.Errorf("exit_plan_mode, allowed by a rule: %+v", d)
	}
	if always := e.Always(f); always != nil {
		t.Errorf("the rule %q is offered, and would approve plans that nobody has seen", always.Text)
	}
	f.Tool, f.Class = "write_file", ClassEdit
	if d := e.Decide(f); d.Behavior != Deny {
		t.Errorf("write_file: %+v", d)
	}
}
