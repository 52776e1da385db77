package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/agentcli/agent/internal/testkit"
)

// mcpServerEnv makes the test binary an MCP server on its stdin and stdout.
const mcpServerEnv = "INTEGRATION_MCP_SERVER"

// toolAnswers are what the tools of an MCP server answer: the members result or
// error of a JSON-RPC response; "" leaves the call to the play.
type toolAnswers map[string]func(args map[string]any) string

// calcTools are those of the servers in these tests.
var calcTools = toolAnswers{
	"add": func(args map[string]any) string {
		a, _ := args["a"].(float64)
		b, _ := args["b"].(float64)
		return mcpText(fmt.Sprint(a+b), false)
	},
	"boom":  func(map[string]any) string { return mcpText("it went wrong", true) },
	"break": func(map[string]any) string { return `"error":{"code":-32000,"message":"it broke"}` },
	"play":  func(map[string]any) string { return "" },
}

func mcpText(text string, isError bool) string {
	return fmt.Sprintf(`"result":{"content":[{"type":"text","text":%s}],"isError":%t}`, quote(text), isError)
}

// toolList is the answer to tools/list.
const toolList = `"result":{"tools":[
	{"name":"add","description":"Adds two numbers.","inputSchema":{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}}},"annotations":{"readOnlyHint":true}},
	{"name":"boom","description":"Fails.","inputSchema":{"type":"object"}},
	{"name":"break","description":"Fails more.","inputSchema":{"type":"object"}},
	{"name":"play","description":"Answers as it likes.","inputSchema":{"type":"object"}}]}`

// rpc is a JSON-RPC message.
type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name            string         `json:"name"`
		Arguments       map[string]any `json:"arguments"`
		ProtocolVersion string         `json:"protocolVersion"`
	} `json:"params"`
}

// reply is the answer of a server to a message; "" is none.
func (a toolAnswers) reply(m rpc) string {
	var body string
	switch m.Method {
	case "initialize":
		body = `"result":{"protocolVersion":` + quote(m.Params.ProtocolVersion) + `,"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"calc","version":"1.0.0"}}`
	case "tools/list":
		body = toolList
	case "tools/call":
		if tool := a[m.Params.Name]; tool != nil {
			body = tool(m.Params.Arguments)
		}
	case "ping":
		body = `"result":{}`
	default:
		body = `"error":{"code":-32601,"message":"no such method"}`
	}
	if body == "" || m.ID == nil {
		return ""
	}
	return strings.ReplaceAll(`{"jsonrpc":"2.0","id":`+string(m.ID)+`,`+body+`}`, "\n", "")
}

// serveStdio is an MCP server over lines; it ends with in.
func serveStdio(in io.Reader, out io.Writer) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var m rpc
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			continue
		}
		if answer := calcTools.reply(m); answer != "" {
			fmt.Fprintln(out, answer)
		}
	}
}

// serve answers a message to an MCP server in the host, if it plays one.
func (h *scriptedHost) serve(f testkit.Frame) bool {
	h.t.Helper()
	if h.tools == nil || f.Kind() != "control_request" || f.String("request.subtype") != "mcp_message" {
		return false
	}
	message, _ := f.Get("request.message")
	raw, err := json.Marshal(message)
	var m rpc
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	if m.ID == nil {
		h.answer(f, `{"mcp_response":{"jsonrpc":"2.0","result":{},"id":0}}`)
		return true
	}
	answer := h.tools.reply(m)
	if answer != "" {
		h.answer(f, `{"mcp_response":`+answer+`}`)
	}
	return answer != ""
}

// serving is initialize with an MCP server in the host, which answers.
func (h *scriptedHost) serving(more string) {
	h.t.Helper()
	h.tools = calcTools
	servers := `"sdkMcpServers":{"calc":{"type":"sdk","name":"calc"}}`
	if more != "" {
		servers += "," + more
	}
	h.initialize(servers)
}
