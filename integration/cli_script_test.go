package integration

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agentcli/agent/internal/testkit"
)

var update = flag.Bool("update", false, "write what came out as what is expected: scripts and golden files")

// TestScripts runs testdata/script: one behaviour of the command line per file.
// Besides testscript's own, the files use these commands:
//
//	exits CODE PROGRAM [ARG...]   runs it and demands the exit code; its output
//	                              is checked by stdout and stderr as after exec
//	serve SCRIPT [FLAG...]        plays a model script over HTTP; sets $URL, and
//	                              $REQUESTS to the file with a line per request
//	frame KIND PATH VALUE         demands of the last frame of a kind in stdout
//	                              that it has this value (as JSON, or as it is)
//	frames [KIND N]...            checks all of stdout as frames, and how many
//	                              there are of a kind
func TestScripts(t *testing.T) {
	t.Parallel()
	bin := filepath.Join(t.TempDir(), "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(agentPath(t), filepath.Join(bin, "agent")); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true, UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, ".home")
			e.Vars = append(e.Vars, "HOME="+home, "AGENT_HOME="+filepath.Join(home, "agent"), "LANG=C.UTF-8", "AGENT="+filepath.Join(bin, "agent"),
				"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "M=--model=scripted/"+filepath.Join(e.WorkDir, "model.jsonc"))
			return os.Mkdir(home, 0o755)
		},
		Condition: scriptCondition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": scriptExits, "serve": scriptServe, "frame": scriptFrame, "frames": scriptFrames,
		},
	})
}

// scriptCondition knows [mounts]: a command can have mounts of its own.
func scriptCondition(cond string) (bool, error) {
	if cond == "mounts" {
		return canMount(), nil
	}
	return false, fmt.Errorf("unknown condition %q", cond)
}

// canMount reports whether unshare gives us a mount namespace of our own.
func canMount() bool {
	return exec.Command("unshare", "-rm", "true").Run() == nil
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got, err := 0, ts.Exec(args[1], args[2:]...)
	var status *exec.ExitError
	if errors.As(err, &status) {
		got, err = status.ExitCode(), nil
	}
	ts.Check(err)
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func scriptServe(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: serve SCRIPT [FLAG...]")
	}
	log := ts.MkAbs("requests.jsonl")
	path, err := program.Path()
	ts.Check(err)
	proc, err := testkit.Start(testkit.Spec{
		Path: path, Args: append([]string{"model", "serve", "--script", ts.MkAbs(args[0]), "--log", log}, args[1:]...),
		Env: []string{"HOME=" + ts.Getenv("HOME")}, HoldStdin: true,
	})
	ts.Check(err)
	ts.Defer(func() {
		proc.Signal(syscall.SIGTERM)
		if _, err := proc.Wait(10 * time.Second); err != nil {
			ts.Logf("model server: %v", err)
		}
	})
	url, err := servedAt(proc)
	ts.Check(err)
	ts.Setenv("URL", url)
	ts.Setenv("REQUESTS", log)
}

// lastFrame returns the last frame of a kind in what the last command printed.
func lastFrame(ts *testscript.TestScript, kind string) testkit.Frame {
	list := stdoutFrames(ts)
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Kind() == kind {
			return list[i]
		}
	}
	ts.Fatalf("no %s frame", kind)
	return nil
}

func stdoutFrames(ts *testscript.TestScript) []testkit.Frame {
	var list []testkit.Frame
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		f, err := testkit.Parse([]byte(line))
		ts.Check(err)
		list = append(list, f)
	}
	return list
}

func scriptFrame(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 && !(neg && len(args) == 2) {
		ts.Fatalf("usage: frame KIND PATH VALUE, or: ! frame KIND PATH")
	}
	got, ok := lastFrame(ts, args[0]).Get(args[1])
	if neg && len(args) == 2 {
		if ok {
			ts.Fatalf("%s has %s: %v", args[0], args[1], got)
		}
		return
	}
	raw, err := json.Marshal(got)
	ts.Check(err)
	text, isText := got.(string)
	if same := ok && (string(raw) == args[2] || isText && text == args[2]); same == neg {
		ts.Fatalf("%s.%s is %s", args[0], args[1], raw)
	}
}

func scriptFrames(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args)%2 != 0 {
		ts.Fatalf("usage: frames [KIND N]...")
	}
	list := stdoutFrames(ts)
	ts.Check(testkit.CheckTurns(list))
	for i := 0; i < len(args); i += 2 {
		n := 0
		for _, f := range list {
			if f.Kind() == args[i] {
				n++
			}
		}
		if strconv.Itoa(n) != args[i+1] {
			ts.Fatalf("%d %s frames, want %s", n, args[i], args[i+1])
		}
	}
}
