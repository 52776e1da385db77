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
	f.Tool, f.Class = "write_file", ClassEdit
	if d := e.Decide(f); d.Behavior != Deny {
		t.Errorf("write_file: %+v", d)
	}
}
