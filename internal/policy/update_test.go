package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUpdatesRoundTrip(t *testing.T) {
	for _, text := range []string{
		`{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"echo a > (b)"}],"behavior":"allow","destination":"localSettings"}`,
		`{"type":"replaceRules","rules":[{"toolName":"mcp__s__t"},{"toolName":"Read","ruleContent":"/x"}],"behavior":"deny","destination":"session"}`,
		`{"type":"removeRules","rules":[{"toolName":"WebFetch","ruleContent":"domain:a.b"}],"behavior":"ask","destination":"userSettings"}`,
		`{"type":"setMode","mode":"plan","destination":"projectSettings"}`,
		`{"type":"addDirectories","directories":["/a","b"],"destination":"cliArg"}`,
		`{"type":"removeDirectories","directories":["/a"],"destination":"session"}`,
	} {
		list, err := ParseUpdates(json.RawMessage("["+text+"]"), "the host")
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %v, %v", text, list, err)
		}
		got, err := list[0].MarshalJSON()
		if diff := cmp.Diff(text, string(got)); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	}
}

func TestParseUpdates(t *testing.T) {
	for _, raw := range []string{"", "null", "[]"} {
		if list, err := ParseUpdates(json.RawMessage(raw), ""); len(list) != 0 || err != nil {
			t.Errorf("%q: %v, %v", raw, list, err)
		}
	}
	list, err := ParseUpdates(json.RawMessage(`[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":null}],"behavior":"allow"},{"type":"setMode","mode":"acceptEdits","x":1}]`), "the host")
	if err != nil || list[0].Destination != ToSession || list[0].Rules[0].Text != "Bash" || list[0].Rules[0].Origin != "the host" || list[1].Mode != ModeAutoEdit {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestParseUpdatesRefuses(t *testing.T) {
	for raw, want := range map[string]string{
		`{}`:                              "want a list",
		`[1]`:                             "update 0",
		`[null]`:                          "want an object",
		`[{}]`:                            "unknown type",
		`[{"type":"setMode","mode":"x"}]`: "unknown permission mode",
		`[{"type":"setMode","mode":"plan"},{"type":"addRules","behavior":"allow"}]`:              "update 1: addRules has no rules",
		`[{"type":"addRules","rules":[{"toolName":"Bash"}]}]`:                                    "unknown behavior",
		`[{"type":"addRules","rules":[{"toolName":"*"}],"behavior":"allow"}]`:                    "*",
		`[{"type":"addDirectories"}]`:                                                            "no directories",
		`[{"type":"addDirectories","directories":[" "]}]`:                                        "is no directory",
		`[{"type":"setMode","mode":"plan","destination":"moon"}]`:                                "unknown destination",
		`[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":3}],"behavior":"allow"}]`: "update 0",
		`[{"type":"addRules","rules":[{"toolName":"","ruleContent":"x"}],"behavior":"allow"}]`:   "malformed",
	} {
		if list, err := ParseUpdates(json.RawMessage(raw), ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", raw, list, err, want)
		}
	}
}
