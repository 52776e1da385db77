package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// userServer is the configuration of an MCP server that this test binary plays.
func userServer(t testing.TB, kind, mark, dir string) map[string]any {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"INTEGRATION_MCP": kind, "INTEGRATION_MCP_DIR": dir}
	if k, v, ok := strings.Cut(mark, "="); ok {
		env[k] = v
	}
	return map[string]any{"type": "stdio", "command": self, "env": env}
}

// mcpFlag configures servers by name.
func mcpFlag(servers map[string]any) string {
	raw, _ := json.Marshal(map[string]any{"mcpServers": servers})
	return "--mcp-config=" + string(raw)
}

// serveMCP is an MCP server over stdin and stdout. Kinds: good; noisy (writes
// to stderr more than a pipe holds, all the time); late (is ready once there is
// a file "go"); deaf (never answers); stubborn (ends by nothing but SIGKILL, and
// has a child of the same kind); stranger (speaks a version that there is not);
// many (has 200 tools); guide (says how it is to be used).
func serveMCP(kind string) {
	dir := os.Getenv("INTEGRATION_MCP_DIR")
	_ = os.WriteFile(filepath.Join(dir, "server-"+strconv.Itoa(os.Getpid())), nil, 0o600)
	switch kind {
	case "late":
		for !fileThere(filepath.Join(dir, "go")) {
			<-time.After(5 * time.Millisecond)
		}
	case "stubborn":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "INTEGRATION_MCP=child")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			os.Exit(1)
		}
		defer func() { select {} }()
	case "child":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
		for {
			<-time.After(time.Hour)
		}
	case "noisy":
		go func() { // ends with the process
			for {
				if _, err := fmt.Fprintln(os.Stderr, strings.Repeat("noise ", 10_000)); err != nil {
					return
				}
				<-time.After(time.Millisecond)
			}
		}()
	}
	in := bufio.NewReader(os.Stdin)
	for {
		text, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var r struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name      string          `json:"name"`
				Version   string          `json:"protocolVersion"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"params"`
		}
		if json.Unmarshal(text, &r) != nil || r.ID == nil || kind == "deaf" {
			continue
		}
		var result any = map[string]any{}
		switch r.Method {
		case "initialize":
			version := r.Params.Version
			if kind == "stranger" {
				version = "1848-03-18"
			}
			result = map[string]any{
				"protocolVersion": version, "capabilities": map[string]any{"tools": map[string]any{}},
				"serverInfo": map[string]any{"name": "fake", "version": "1"},
			}
			if kind == "guide" {
				result.(map[string]any)["instructions"] = "Ask twice.\r\n# Rules\nturn \u202ethis\x1b[31m" + strings.Repeat("x", 5000)
			}
		case "tools/list":
			result = map[string]any{"tools": fakeTools(kind)}
		case "tools/call":
			switch r.Params.Name {
			case "die":
				fmt.Fprintln(os.Stderr, "last words")
				os.Exit(7)
			case "never":
				_ = os.WriteFile(filepath.Join(dir, "called"), nil, 0o600)
				continue
			case "touch":
				_ = os.WriteFile(filepath.Join(dir, "touched"), nil, 0o600)
			}
			result = map[string]any{"content": []any{map[string]any{"type": "text", "text": r.Params.Name + ": " + string(r.Params.Arguments)}}}
		}
		raw, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": r.ID, "result": result})
		fmt.Println(string(raw))
	}
}

func fileThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func fakeTools(kind string) []any {
	names := []string{"echo", "die", "never", "touch"}
	what := "says what it is told"
	if kind == "many" {
		names, what = nil, strings.Repeat("does a thing that takes many words to tell; ", 20)
		for i := range 200 {
			names = append(names, fmt.Sprintf("tool_%d_of_many", i))
		}
	}
	var list []any
	for _, n := range names {
		list = append(list, map[string]any{
			"name": n, "description": n + " " + what,
			"inputSchema": map[string]any{"type": "object", "properties": map[string]any{"text": map[string]any{"type": "string", "description": what}}},
		})
	}
	return list
}
