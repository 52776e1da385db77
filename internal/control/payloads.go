package control

import "github.com/agentcli/agent/internal/streamjson"

// Payload is one kind of control request: what goes over the wire with it.
type Payload struct {
	Subtype string
	// FromProgram says that we send it, and the host answers.
	FromProgram bool
	// Dialects are those in which it looks so; nil: all.
	Dialects []streamjson.Dialect
	// Does says in one sentence what the request does.
	Does string
	// Notes say what members mean that hold more than one plain value; one
	// sentence each.
	Notes []string
	// Request and Response are zero values of the Go types of the payloads; nil
	// is a request that is only its subtype, and a response that is {} or any
	// object.
	Request, Response any
	// Needs are the members without which the request is an error, and
	// AnswerNeeds those of a response of the host.
	Needs, AnswerNeeds []string
}

var (
	inNative       = []streamjson.Dialect{streamjson.Native}
	inClaude       = []streamjson.Dialect{streamjson.Claude}
	inQwen         = []streamjson.Dialect{streamjson.Qwen}
	inNativeQwen   = []streamjson.Dialect{streamjson.Native, streamjson.Qwen}
	inNativeClaude = []streamjson.Dialect{streamjson.Native, streamjson.Claude}
)

var initNotes = []string{
	"`hooks`: by event a list of `{matcher, hookCallbackIds, timeout}`, or one list of such objects with `event` in each; `timeout` in seconds. An event that there is not is an error in the native dialect.",
	"`sdkMcpServers`: the names of MCP servers in the host, as a list or as the keys of an object.",
	"`mcpServers`: configurations by name.",
	"`agents`: definitions by name, or a list of them with `name` in each: `description`, `prompt` or `systemPrompt`, `tools`, `disallowedTools`, `model` or `modelConfig` `{model, temp, topP}`, `effort`, `runConfig` `{maxTurns, maxTimeMinutes}`, `permissionMode`, `background`, `level` (session, project, user or builtin: which of several of one name counts), `color`, `filePath`.",
	"`systemPrompt`: a text, or a list of texts, in the place of the default one; `appendSystemPrompt` follows it.",
	"`jsonSchema`: the object that the answer must fit.",
	"`skills`: a list of names; there are no skills yet, so it has no effect.",
	"`timeout`: `{canUseTool, hook, mcp}` in milliseconds, 0 for no limit.",
	"`effort`: as in set_effort.",
}

var updateNotes = []string{
	"`behavior`: allow or deny; `message` says to the model why. In the claude dialect `allow` (true or false) with `input` and `reason` is understood too, as SDKs had it before.",
	"`updatedInput`: the input to run the call with; missing or `{}` changes nothing.",
	"`updatedPermissions`: a list of permission updates, or of the suggestions that the host chose.",
	"`interrupt`: ends the turn as well as the call.",
}

// Payloads lists all control requests, those of hosts first, each sorted by
// subtype. It is what the protocol's schema and its documentation are made of.
func Payloads() []Payload {
	return []Payload{
		{Subtype: "apply_flag_settings", Notes: []string{"`settings`: an object, as in a settings file."}, Does: "Merges settings into the layer of the command line; null clears a key.", Request: ApplySettingsRequest{}, Response: Done{}, Needs: []string{"settings"}},
		{Subtype: "can_use_tool", Does: "Judges a call as if the model made it; nothing runs. What would be asked about is denied, with the decision ask.", Request: JudgeRequest{}, Response: CanUseToolResponse{}, Needs: []string{"tool_name"}},
		{Subtype: "command_hints", Does: "Completes what a person types: / commands, @ files and MCP servers, ? topics of the help.", Request: HintsRequest{}, Response: HintsResponse{}, Needs: []string{"prefix"}},
		{Subtype: "continue_last_turn", Does: "Goes on with a turn that was interrupted.", Response: ContinueResponse{}},
		{Subtype: "get_available_models", Does: "Lists the models that can be set.", Response: ModelsResponse{}},
		{Subtype: "get_context_usage", Dialects: inNativeQwen, Does: "Tells what fills the context window.", Request: ContextRequest{}, Response: ContextResponse{}},
		{Subtype: "get_context_usage", Dialects: inClaude, Does: "Tells what fills the context window.", Request: ContextRequest{}, Response: ClaudeContextResponse{}},
		{Subtype: "get_usage_info", Does: "Tells what was used within a range of time. Only this process is known, so all of it is of today.", Request: UsageRequest{}, Response: UsageResponse{}},
		{Subtype: "heartbeat", Does: "Tells that the program is alive, and what it is doing.", Response: HeartbeatResponse{}},
		{Subtype: "hook_callback", Dialects: inNativeClaude, Does: "Runs the hook that is registered under an id.", Request: HookCallbackRequest{}, Response: HookCallbackResponse{}, Needs: []string{"callback_id"}},
		{Subtype: "initialize", Dialects: inNative, Does: "Opens the session: registers hooks, MCP servers, agents. A second one registers anew.", Notes: initNotes, Request: InitRequest{}, Response: InitResponse{}},
		{Subtype: "initialize", Dialects: inClaude, Does: "Opens the session: registers hooks, MCP servers, agents. A second one registers anew.", Notes: initNotes, Request: InitRequest{}, Response: ClaudeInitResponse{}},
		{Subtype: "initialize", Dialects: inQwen, Does: "Opens the session: registers hooks, MCP servers, agents. A second one registers anew.", Notes: initNotes, Request: InitRequest{}, Response: QwenInitResponse{}},
		{Subtype: "interrupt", Dialects: inNativeClaude, Does: "Ends the running turn, whatever it is doing. Idle, it has no effect.", Request: InterruptRequest{}, Response: InterruptResponse{}},
		{Subtype: "interrupt", Dialects: inQwen, Does: "Ends the running turn, whatever it is doing. Idle, it has no effect.", Request: InterruptRequest{}, Response: Done{}},
		{Subtype: "keep_alive", Does: "Does nothing."},
		{Subtype: "mcp_message", Notes: []string{"`message` and `mcp_response`: JSON-RPC objects."}, Dialects: inNativeClaude, Does: "Carries a JSON-RPC message to an MCP server of the program's, or into the tunnel of one in the host.", Request: MCPMessageRequest{}, Response: MCPMessageResponse{}, Needs: []string{"server_name", "message"}},
		{Subtype: "mcp_reconnect", Notes: []string{"One of the two names is needed."}, Does: "Connects an MCP server anew.", Request: ServerRequest{}, Response: Done{}},
		{Subtype: "mcp_server_status", Does: "Tells the state of each MCP server.", Response: ServerStatusResponse{}},
		{Subtype: "mcp_set_servers", Notes: []string{"`servers`: configurations by name."}, Does: "Replaces the MCP servers that came from the host.", Request: SetServersRequest{}, Response: SetServersResponse{}, Needs: []string{"servers"}},
		{Subtype: "mcp_status", Does: "Tells the state of each MCP server, with its tools.", Response: MCPStatusResponse{}},
		{Subtype: "mcp_toggle", Notes: []string{"One of the two names is needed."}, Does: "Starts or stops an MCP server.", Request: ToggleRequest{}, Response: Done{}, Needs: []string{"enabled"}},
		{Subtype: "rewind_files", Notes: []string{"An error where no file checkpoints are kept."}, Does: "Brings files back to what they were before a message.", Request: RewindRequest{}, Needs: []string{"user_message_id"}},
		{Subtype: "set_effort", Notes: []string{"`effort`: a text."}, Does: "Sets how hard the model thinks: low, medium, high, xhigh or max.", Request: SetEffortRequest{}, Response: SetEffortResponse{}, Needs: []string{"effort"}},
		{Subtype: "set_max_thinking_tokens", Does: "Limits the tokens of the model's thinking; null is the default.", Request: SetThinkingRequest{}, Response: Done{}},
		{Subtype: "set_model", Dialects: inNativeQwen, Notes: []string{"`model`: a text or null."}, Does: "Changes the model from the next request on; null is the default one (in the qwen dialect an error). On an error the old one stays.", Request: SetModelRequest{}, Response: SetModelResponse{}},
		{Subtype: "set_model", Dialects: inClaude, Notes: []string{"`model`: a text or null."}, Does: "Changes the model from the next request on; null is the default one (in the qwen dialect an error). On an error the old one stays.", Request: SetModelRequest{}, Response: Done{}},
		{Subtype: "set_permission_mode", Notes: []string{"`mode`: a text: default, plan, auto-edit, yolo or dont-ask, or an alias of these."}, Does: "Sets the permission mode, also for calls that wait to be judged.", Request: SetModeRequest{}, Response: SetModeResponse{}, Needs: []string{"mode"}},
		{Subtype: "stop_task", Does: "Stops what runs in the background.", Request: StopTaskRequest{}, Response: Done{}, Needs: []string{"task_id"}},
		{Subtype: "supported_commands", Does: "Lists the slash commands.", Response: CommandsResponse{}},

		{Subtype: callCanUseTool, FromProgram: true, Dialects: inNativeQwen, Does: "Asks whether a call may run.", Request: CanUseToolRequest{}, Response: PermissionAnswer{}, AnswerNeeds: []string{"behavior"}, Notes: updateNotes, Needs: []string{"tool_name", "input"}},
		{Subtype: callCanUseTool, FromProgram: true, Dialects: inClaude, Does: "Asks whether a call may run.", Request: ClaudeCanUseToolRequest{}, Response: PermissionAnswer{}, AnswerNeeds: []string{"behavior"}, Notes: updateNotes, Needs: []string{"tool_name", "input"}},
		{Subtype: callHook, Notes: []string{"`input`: what happened; `hook_event_name` in it says what."}, FromProgram: true, Dialects: inNativeClaude, Does: "Calls a hook that the host registered. The answer is the hook's output object.", Request: HookCallbackRequest{}, Needs: []string{"callback_id", "input"}},
		{Subtype: callMCP, Notes: []string{"`message` and `mcp_response`: JSON-RPC objects; a notification is answered too, and the answer not looked at."}, FromProgram: true, Does: "Carries a JSON-RPC message to an MCP server in the host.", Request: MCPMessageRequest{}, Response: MCPMessageReply{}, AnswerNeeds: []string{"mcp_response"}, Needs: []string{"server_name", "message"}},
	}
}
