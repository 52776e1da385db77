package policy

import (
	"encoding/json"
	"strings"
	"testing"
)

func callOf(tool string, class Class, input string) Facts {
	return Facts{Tool: tool, Class: class, Input: json.RawMessage(input), Mode: ModeDefault, Cwd: "/w", Roots: []string{"/w"}, Home: "/home/u", Interactive: true}
}

func shellCall(command string) Facts {
	in, _ := json.Marshal(map[string]string{"command": command})
	return callOf(shellTool, ClassExec, string(in))
}

func TestAlwaysIsTheNarrowestRule(t *testing.T) {
	t.Parallel()
	tests := []struct {
		call Facts
		rule string // "": none can be
		near Facts  // must still ask
	}{
		{shellCall("npm test"), "Bash(npm test)", shellCall("npm test -- --watch")},
		{shellCall("  go  build ./... && go vet ./...\n"), "Bash(go  build ./... && go vet ./...)", shellCall("go build ./... && go vet ./... && go run .")},
		{shellCall("echo x > out.txt"), "Bash(echo x > out.txt)", shellCall("echo x > other.txt")},
		{shellCall("rm *.log"), `Bash(rm \*.log)`, shellCall("rm x.log y.log")},
		{shellCall(`rm \*.log`), `Bash(rm \\*.log)`, shellCall("rm x.log")},
		{shellCall("make a:*"), `Bash(make a:\*)`, shellCall("make a")},
		{shellCall("CI=1 npm test"), "Bash(CI=1 npm test)", shellCall("CI=0 npm test")},
		{shellCall("git reset --hard"), "Bash(git reset --hard)", shellCall("git reset --hard HEAD~1")},
		{shellCall("cat .env"), "Read(/.env)", shellCall("cat a/.env")},
		{shellCall("head -3 /srv/log.txt | wc -l"), "Bash(head -3 /srv/log.txt | wc -l)", shellCall("head -3 /srv/log.txt | wc -c")},
		{shellCall("cat .env > x.txt"), "", shellCall("cat .env")},
		{shellCall("echo $(date) (x)"), "", shellCall("ls $X")},
		{shellCall("(npm test)"), "Bash((npm test))", shellCall("(npm run test)")},
		{shellCall("echo x > .git/config"), "", shellCall("npm test")},
		{shellCall("npm\u200b test"), "", shellCall("npm test")},
		{callOf("edit", ClassEdit, `{"file_path":"src/a.go"}`), "Edit(/src/a.go)", callOf("edit", ClassEdit, `{"file_path":"src/b.go"}`)},
		{callOf("edit", ClassEdit, `{"file_path":"src/[id]/a*?.go"}`), `Edit(/src/[id]/a\*\?.go)`, callOf("edit", ClassEdit, `{"file_path":"src/i/abc.go"}`)},
		{callOf("write_file", ClassEdit, `{"file_path":"/w/.git/hooks/x"}`), "", callOf("write_file", ClassEdit, `{"file_path":"x"}`)},
		{callOf("read_file", ClassRead, `{"file_path":"/srv/x"}`), "Read(//srv/x)", callOf("read_file", ClassRead, `{"file_path":"/srv/y"}`)},
		{callOf("read_file", ClassRead, `{"file_path":".env"}`), "Read(/.env)", callOf("read_file", ClassRead, `{"file_path":"a/.env"}`)},
		{callOf("web_fetch", ClassFetch, `{"url":"https://Example.com/x"}`), "WebFetch(domain:example.com)", callOf("web_fetch", ClassFetch, `{"url":"https://example.com.evil.org"}`)},
		{callOf("mcp__a__b", ClassMCP, `{}`), "mcp__a__b", callOf("mcp__a__c", ClassMCP, `{}`)},
	}
	for _, tt := range tests {
		e := NewEngine(nil)
		name := string(tt.call.Input)
		if d := e.Decide(tt.call); d.Behavior != Ask {
			t.Errorf("%s: %+v, want a question to begin with", name, d)
			continue
		}
		r := e.Always(tt.call)
		if (r != nil) != (tt.rule != "") || r != nil && r.Text != tt.rule {
			t.Errorf("%s: Always = %+v; want %q", name, r, tt.rule)
		}
		if r == nil {
			continue
		}
		again, err := ParseRule(r.Text, Allow, "file") // as a second process reads it
		if err != nil {
			t.Fatalf("%s: the rule %s can't be read: %v", name, r.Text, err)
		}
		e.Add(again)
		if d := e.Decide(tt.call); d.Behavior != Allow {
			t.Errorf("%s: %+v with its rule, want allow", name, d)
		}
		if d := e.Decide(tt.near); d.Behavior != Ask {
			t.Errorf("%s: %s allows %s too", name, r.Text, tt.near.Input)
		}
	}
}

func TestAlwaysIsMeantFromTheProject(t *testing.T) {
	t.Parallel()
	call := callOf("edit", ClassEdit, `{"file_path":"a.go"}`)
	call.Cwd, call.Roots, call.Project = "/w/sub", []string{"/w/sub"}, "/w"
	e := NewEngine(nil)
	r := e.Always(call)
	if r == nil || r.Text != "Edit(/sub/a.go)" {
		t.Fatalf("Always = %+v", r)
	}
	r.Base = "/w" // as the settings of the project give it
	e.Add(*r)
	if d := e.Decide(call); d.Behavior != Allow {
		t.Errorf("Decide = %+v", d)
	}
}

func TestSuggestionsByClass(t *testing.T) {
	t.Parallel()
	// The texts are those of wire/qwen-sdk.md, 4.1.
	tests := []struct {
		call  Facts
		want  string
		modes string
	}{
		{shellCall("npm test"), "allow/Allow Command/Execute: npm test/Bash(npm test) deny/Deny/Block this command execution/", ""},
		{callOf("write_file", ClassEdit, `{"file_path":"src/a.txt"}`), "allow/Allow Edit/Edit file: a.txt/Edit(/src/a.txt) deny/Deny/Block this file edit/ modify/Review Changes/Review the proposed changes before applying/", ""},
		{callOf("exit_plan_mode", ClassPlan, `{}`), "allow/Approve Plan/Execute the proposed plan/ deny/Reject Plan/Do not execute this plan/", ""},
		{callOf("mcp__srv__add", ClassMCP, `{}`), "allow/Allow MCP Call/srv: add/mcp__srv__add deny/Deny/Block this MCP server call/", ""},
		{callOf("web_fetch", ClassFetch, `{"url":"http://example.com/"}`), "allow/Allow Info Request/http://example.com//WebFetch(domain:example.com) deny/Deny/Block this information request/ modify/Milder/Fetch it over https/", `{"url":"https://example.com/"}`},
		{callOf("x", ClassOther, `{}`), "allow/Allow/Allow x operation/x deny/Deny/Block x operation/", ""},
		{shellCall("git push -f origin main"), "allow/Allow Command/Execute: git push -f origin main/Bash(git push -f origin main) deny/Deny/Block this command execution/ modify/Milder/Push only if nobody else has pushed since/", `{"command":"git push --force-with-lease origin main"}`},
		{shellCall("git clean -fdx"), "allow/Allow Command/Execute: git clean -fdx/Bash(git clean -fdx) deny/Deny/Block this command execution/ modify/Milder/Only list what would be deleted/", `{"command":"git clean -n -dx"}`},
	}
	for _, tt := range tests {
		var got []string
		changed := ""
		for _, s := range Suggest(tt.call, NewEngine(nil).Always(tt.call)) {
			got = append(got, s.Type+"/"+s.Label+"/"+s.Description+"/"+s.Rule)
			changed += string(s.ModifiedInput)
		}
		if strings.Join(got, " ") != tt.want || changed != tt.modes {
			t.Errorf("%s:\n got %s %s\nwant %s %s", tt.call.Input, strings.Join(got, " "), changed, tt.want, tt.modes)
		}
	}
}

// FuzzAlways checks that the rule offered for a command allows it and not the
// same command with something before or after it.
func FuzzAlways(f *testing.F) {
	for _, s := range []string{"npm test", "make 'a b'", `x \* y`, "a && b", "rm -rf x", "a:*", "x (", "npm run *", "echo \"a\" > b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		call := shellCall(s)
		e := NewEngine(nil)
		r := e.Always(call)
		if r == nil || e.Decide(call).Behavior != Ask {
			return
		}
		again, err := ParseRule(r.Text, Allow, "file")
		if err != nil {
			t.Fatalf("%q gives the rule %q, which can't be read: %v", s, r.Text, err)
		}
		e.Add(again)
		if d := e.Decide(call); d.Behavior != Allow {
			t.Fatalf("%q with %q: %+v", s, r.Text, d)
		}
		for _, other := range []string{"xyzzy; " + s, s + "\nxyzzy", "xyzzy && " + s, s + " | xyzzy"} {
			if d := e.Decide(shellCall(other)); d.Behavior == Allow {
				t.Fatalf("%q allows %q", r.Text, other)
			}
		}
	})
}
