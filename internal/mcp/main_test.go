package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// The test binary is the servers too: MCP_TEST_SERVER says which.
func TestMain(m *testing.M) {
	if kind, ok := os.LookupEnv("MCP_TEST_SERVER"); ok {
		serve(kind)
		return
	}
	goleak.VerifyTestMain(m)
}

type addInput struct {
	A int `json:"a"`
	B int `json:"b"`
}

// newServer returns a server with tools, a resource and a prompt.
func newServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "calc", Version: "1.2"}, &sdk.ServerOptions{Instructions: "add well"})
	sdk.AddTool(s, &sdk.Tool{Name: "add", Description: "adds", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(ctx context.Context, r *sdk.CallToolRequest, in addInput) (*sdk.CallToolResult, any, error) {
			meta, _ := json.Marshal(r.Params.Meta)
			return &sdk.CallToolResult{Content: []sdk.Content{
				&sdk.TextContent{Text: fmt.Sprint(in.A + in.B)}, &sdk.TextContent{Text: string(meta)},
			}}, nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "fail"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return nil, nil, fmt.Errorf("it is broken")
	})
	sdk.AddTool(s, &sdk.Tool{Name: "slow"}, func(ctx context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		if t := r.Params.GetProgressToken(); t != nil {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: t, Progress: 1, Total: 2, Message: "half"})
		}
		<-ctx.Done()
		fmt.Fprintln(os.Stderr, "slow was cancelled")
		return nil, nil, ctx.Err()
	})
	sdk.AddTool(s, &sdk.Tool{Name: "die"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, "last words")
		os.Exit(7)
		return nil, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "more"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		sdk.AddTool(s, &sdk.Tool{Name: "extra"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{}, nil, nil
		})
		return &sdk.CallToolResult{}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "env"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.Join(os.Environ(), "\n")}}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "roots"}, func(ctx context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		list, err := r.Session.ListRoots(ctx, nil)
		if err != nil {
			return nil, nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: list.Roots[0].URI}}}, nil, nil
	})
	s.AddResource(&sdk.Resource{URI: "file:///note.txt", Name: "note", MIMEType: "text/plain"},
		func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "file:///note.txt", Text: "hello"}}}, nil
		})
	s.AddPrompt(&sdk.Prompt{Name: "greet", Arguments: []*sdk.PromptArgument{{Name: "who", Required: true}}},
		func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "greet " + r.Params.Arguments["who"]}}}}, nil
		})
	return s
}

// serve plays one server over stdin and stdout.
func serve(kind string) {
	switch kind {
	case "good":
		_ = newServer().Run(context.Background(), &sdk.StdioTransport{})
	case "noisy":
		fmt.Println("starting up ...\n{\"method\":\"initialized\"}\n{}\n\n[1,2]")
		fmt.Fprintln(os.Stderr, strings.Repeat("noise ", 1<<18)) // more than a pipe holds
		_ = newServer().Run(context.Background(), &sdk.StdioTransport{})
	case "exit":
		fmt.Fprintln(os.Stderr, "no such database")
		os.Exit(3)
	case "silent":
		select {}
	case "stubborn": // ignores SIGTERM and the end of stdin, and has a child of the same kind
		signal.Ignore(syscall.SIGTERM)
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "MCP_TEST_SERVER=deaf")
		if err := child.Start(); err != nil {
			os.Exit(1)
		}
		if err := os.WriteFile(os.Getenv("PIDS"), fmt.Appendf(nil, "%d %d", os.Getpid(), child.Process.Pid), 0o600); err != nil {
			os.Exit(1)
		}
		_ = newServer().Run(context.Background(), &sdk.StdioTransport{})
		select {}
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
		for {
			time.Sleep(time.Hour)
		}
	case "flood": // answers initialize with a message without end
		bufio.NewReader(os.Stdin).ReadString('\n')
		for line := []byte(strings.Repeat("x", 1<<20)); ; {
			if _, err := os.Stdout.Write(line); err != nil {
				os.Exit(0)
			}
		}
	case "brief": // is there, and is gone
		go func() {
			_ = newServer().Run(context.Background(), &sdk.StdioTransport{})
		}()
		for {
			if _, err := os.Stat(os.Getenv("LEAVE")); err == nil {
				os.Exit(9)
			}
			time.Sleep(time.Millisecond)
		}
	case "future": // a version that nobody knows
		in := bufio.NewScanner(os.Stdin)
		in.Scan()
		fmt.Println(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2999-01-01","capabilities":{},"serverInfo":{"name":"x","version":"0"}}}`)
		for in.Scan() {
		}
	case "old": // by hand: an old version, no tools, no lists
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			var r struct {
				ID     json.RawMessage
				Method string
			}
			if json.Unmarshal(in.Bytes(), &r) != nil || r.ID == nil {
				continue
			}
			if r.Method == "initialize" {
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"old","version":"0"}}}`+"\n", r.ID)
				continue
			}
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", r.ID)
		}
	}
}
