"""Runs scenarios with the Python Claude Agent SDK and says what its user sees.

Each line of stdin asks for a scenario: {"id", "scenario", "cwd", "env"}. Each
line of stdout is one thing that happened in it: {"id", "ev", ...}. Scenarios run
side by side, each with a program of its own. What is seen is put in the same
words by all drivers, so that one test can look at any SDK.
"""

import asyncio
import dataclasses
import json
import os
import sys

from claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    SystemMessage,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)
from claude_agent_sdk.types import PermissionRuleValue, PermissionUpdate, StreamEvent

from scenarios import scenario, serve

AGENT = os.environ["AGENT"]
MODEL = "claude-sonnet-4-5"


def text_of(content):
    """The text of a tool result, which is a string or a list of blocks."""
    if isinstance(content, list):
        return "".join(b.get("text", "") for b in content)
    return content or ""


class Run:
    """One scenario: its folder, its environment, and what it says."""

    def __init__(self, spec):
        self.id, self.cwd, self.env = spec["id"], spec["cwd"], spec["env"]

    def emit(self, ev, **more):
        print(json.dumps({"id": self.id, "ev": ev, **more}), flush=True)

    def options(self, **more):
        more.setdefault("model", MODEL)
        return ClaudeAgentOptions(cli_path=AGENT, cwd=self.cwd, env=self.env, **more)

    def block(self, block, parent, text="text"):
        kind = type(block).__name__
        if kind == "TextBlock":
            self.emit(text, text=block.text, parent=parent)
        elif kind == "ThinkingBlock":
            self.emit("thinking", text=block.thinking, parent=parent)
        elif kind == "ToolUseBlock":
            self.emit("tool_use", name=block.name, input=block.input, use=block.id, parent=parent)
        elif kind == "ToolResultBlock":
            self.emit("tool_result", text=text_of(block.content), error=bool(block.is_error), use=block.tool_use_id, parent=parent)
        else:
            self.emit("block", kind=kind)

    def saw(self, message):
        """Says what a message is, and returns it."""
        if isinstance(message, (AssistantMessage, UserMessage)):
            if isinstance(message.content, str):
                self.emit("user_text", text=message.content, parent=message.parent_tool_use_id)
                return message
            if getattr(message, "error", None):
                self.emit("assistant_error", error=message.error)
            for block in message.content:
                self.block(block, message.parent_tool_use_id, "user_text" if isinstance(message, UserMessage) else "text")
        elif isinstance(message, ResultMessage):
            self.emit("result", **dataclasses.asdict(message))
        elif isinstance(message, StreamEvent):
            delta = message.event.get("delta", {})
            self.emit("partial", type=message.event["type"], delta=delta.get("type"), text=delta.get("text", delta.get("thinking", "")))
        elif isinstance(message, SystemMessage):
            self.emit("init" if message.subtype == "init" else "system", subtype=message.subtype, data=message.data)
        else:
            self.emit("message", kind=type(message).__name__)
        return message

    async def ask(self, prompt, **options):
        """A one-shot query."""
        async for message in query(prompt=prompt, options=self.options(**options)):
            self.saw(message)

    async def turn(self, client, prompt):
        """A turn of a client, to its result."""
        await client.query(prompt)
        async for message in client.receive_response():
            self.saw(message)

    def asked(self, answer):
        """A can_use_tool callback that says that it was asked and gives answer."""

        async def can_use_tool(name, given, context):
            self.emit("ask", name=name, input=given, use=context.tool_use_id, suggestions=[dataclasses.asdict(s) for s in context.suggestions], agent=context.agent_id, path=context.blocked_path)
            made = answer(name, given) if callable(answer) else answer
            return await made if asyncio.iscoroutine(made) else made

        return can_use_tool

    def hook(self, output, matcher=None, timeout=None):
        """A list with one hook that says that it was called and gives output."""

        async def called(given, tool_use_id, context):
            self.emit("hook", event=given["hook_event_name"], input=given, use=tool_use_id)
            if isinstance(output, Exception):
                raise output
            return output

        return [HookMatcher(matcher=matcher, hooks=[called], timeout=timeout)]

    async def until_file(self, name):
        """Waits until a tool has made a file in the working folder."""
        while not os.path.exists(os.path.join(self.cwd, name)):
            await asyncio.sleep(0.01)

    async def until(self, client, wanted):
        """Reads messages up to the first that wanted accepts."""
        async for message in client.receive_messages():
            self.saw(message)
            if wanted(message):
                return message

    def server(self):
        """An SDK MCP server whose tools work, fail, and wait."""

        @tool("add", "Adds two numbers.", {"a": int, "b": int})
        async def add(args):
            self.emit("call", name="add", input=args)
            return {"content": [{"type": "text", "text": str(args["a"] + args["b"])}]}

        @tool("fail", "Always fails.", {})
        async def fail(args):
            self.emit("call", name="fail", input=args)
            raise RuntimeError("failed on purpose")

        @tool("slow", "Waits for a file.", {})
        async def slow(args):
            self.emit("call", name="slow", input=args)
            await self.until_file("go")
            return {"content": [{"type": "text", "text": "waited"}]}

        return create_sdk_mcp_server(name="calc", version="1.0.0", tools=[add, fail, slow])


def is_tool_use(message):
    return isinstance(message, AssistantMessage) and any(type(b).__name__ == "ToolUseBlock" for b in message.content)


def is_delta(message):
    return isinstance(message, StreamEvent) and message.event["type"] == "content_block_delta"


# Conversations.


@scenario
async def simple(run):
    await run.ask("hello")


@scenario
async def multi_turn(run):
    async with ClaudeSDKClient(run.options()) as client:
        await run.turn(client, "my number is 7")
        await run.turn(client, "what is my number?")


async def prompts(*texts):
    for text in texts:
        yield {"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None, "session_id": "default"}


@scenario
async def streamed_prompts(run):
    await run.ask(prompts("my number is 7", "what is my number?"))


@scenario
async def partial(run):
    await run.ask("hello", include_partial_messages=True)


@scenario
async def no_partial(run):
    await run.ask("hello")


@scenario
async def stderr_silent(run):
    await run.ask("hello", stderr=lambda line: run.emit("stderr", text=line))


@scenario
async def origin(run):
    async with ClaudeSDKClient(run.options()) as client:

        async def prompts(**more):
            yield {"type": "user", "message": {"role": "user", "content": "hello"}, "parent_tool_use_id": None, "session_id": "default", **more}

        for more in ({"origin": {"kind": "human"}}, {}):
            await client.query(prompts(**more))
            async for message in client.receive_response():
                run.saw(message)


@scenario
async def clear(run):
    async with ClaudeSDKClient(run.options()) as client:
        await run.turn(client, "hello")
        await run.turn(client, "/clear")
        await run.turn(client, "hello")


@scenario
async def sources_default(run):
    await run.ask("hello")


@scenario
async def sources_project(run):
    await run.ask("hello", setting_sources=["user", "project", "local"])


@scenario
async def sources_user(run):
    await run.ask("hello", setting_sources=["user"])


# Permissions.


@scenario
async def ask_allow(run):
    await run.ask_write(PermissionResultAllow())


@scenario
async def ask_deny(run):
    await run.ask_write(PermissionResultDeny(message="not this file"))


@scenario
async def ask_deny_interrupt(run):
    await run.ask_write(PermissionResultDeny(message="stop at once", interrupt=True))


@scenario
async def ask_updated_input(run):
    await run.ask_write(lambda name, given: PermissionResultAllow(updated_input={**given, "content": "changed"}))


@scenario
async def ask_empty_input(run):
    await run.ask_write(PermissionResultAllow(updated_input={}))


@scenario
async def ask_raises(run):
    def broken(name, given):
        raise RuntimeError("the callback broke")

    await run.ask_write(broken)


@scenario
async def ask_updated_permissions(run):
    """Takes the suggestion for good: the second call is not asked about."""

    async def can_use_tool(name, given, context):
        run.emit("ask", name=name, input=given, use=context.tool_use_id, suggestions=[dataclasses.asdict(s) for s in context.suggestions])
        rule = PermissionUpdate(type="addRules", rules=[PermissionRuleValue(tool_name="Bash", rule_content="touch:*")], behavior="allow", destination="session")
        return PermissionResultAllow(updated_permissions=[rule])

    async with ClaudeSDKClient(run.options(can_use_tool=can_use_tool)) as client:
        await run.turn(client, "touch a")
        await run.turn(client, "touch b")


async def ask_write(run, answer):
    async with ClaudeSDKClient(run.options(can_use_tool=run.asked(answer))) as client:
        await run.turn(client, "write it")


Run.ask_write = ask_write


@scenario
async def ask_one_shot(run):
    """A string prompt with a callback: stdin stays open for the answer."""
    await run.ask("write it", can_use_tool=run.asked(PermissionResultAllow()))


@scenario
async def ask_streamed(run):
    """The same with a prompt that is streamed."""

    await run.ask(prompts("write it"), can_use_tool=run.asked(PermissionResultAllow()))


@scenario
async def ask_shell(run):
    await run.ask("run it", can_use_tool=run.asked(PermissionResultAllow()))


@scenario
async def ask_nobody(run):
    """No callback: what would ask is denied."""
    await run.ask("write it")


@scenario
async def ask_late(run):
    """The answer comes after the question was withdrawn; the session goes on."""
    gate = asyncio.Event()
    asked = asyncio.Event()

    async def late(name, given):
        asked.set()
        try:
            await gate.wait()
        except asyncio.CancelledError:
            run.emit("withdrawn")
            raise
        return PermissionResultAllow()

    async with ClaudeSDKClient(run.options(can_use_tool=run.asked(late))) as client:
        await client.query("write it")
        reader = asyncio.create_task(run.until(client, lambda m: isinstance(m, ResultMessage)))
        await asked.wait()
        await client.interrupt()
        await reader
        gate.set()
        await run.turn(client, "and now?")


@scenario
async def ask_never(run):
    """Nobody ever answers, and the host goes away."""
    asked = asyncio.Event()

    async def never(name, given):
        asked.set()
        await asyncio.Event().wait()

    async with ClaudeSDKClient(run.options(can_use_tool=run.asked(never))) as client:
        await client.query("write it")
        reader = asyncio.create_task(run.until(client, lambda m: isinstance(m, ResultMessage)))
        await asked.wait()
        reader.cancel()


@scenario
async def ask_eof(run):
    """The SDK closes stdin after the first result, whatever is still to be done."""
    await run.ask(prompts("hello", "write it"), can_use_tool=run.asked(PermissionResultAllow()))


@scenario
async def ask_oversize(run):
    """A question that the SDK could not read: over its limit of 1 MiB."""
    await run.ask_write(PermissionResultAllow())


# Hooks.


async def with_hooks(run, hooks, prompt="run it", **options):
    options.setdefault("can_use_tool", run.asked(PermissionResultAllow()))
    async with ClaudeSDKClient(run.options(hooks=hooks, **options)) as client:
        await run.turn(client, prompt)


def pre(**more):
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **more}}


@scenario
async def hook_pre_deny(run):
    await with_hooks(run, {"PreToolUse": run.hook(pre(permissionDecision="deny", permissionDecisionReason="no such thing"), "Bash")})


@scenario
async def hook_pre_allow(run):
    await with_hooks(run, {"PreToolUse": run.hook(pre(permissionDecision="allow"))})


@scenario
async def hook_pre_ask(run):
    await with_hooks(run, {"PreToolUse": run.hook(pre(permissionDecision="ask", permissionDecisionReason="look twice"))})


@scenario
async def hook_pre_updated_input(run):
    await with_hooks(run, {"PreToolUse": run.hook(pre(permissionDecision="allow", updatedInput={"command": "echo changed"}))})


@scenario
async def hook_pre_context(run):
    await with_hooks(run, {"PreToolUse": run.hook(pre(additionalContext="the moon is full"))})


@scenario
async def hook_pre_other_tool(run):
    await with_hooks(run, {"PreToolUse": run.hook({}, "Write|Edit")})


@scenario
async def hook_pre_raises(run):
    await with_hooks(run, {"PreToolUse": run.hook(RuntimeError("the hook broke"))})


@scenario
async def hook_pre_stop(run):
    await with_hooks(run, {"PreToolUse": run.hook({"continue_": False, "stopReason": "enough"})})


@scenario
async def hook_pre_block(run):
    await with_hooks(run, {"PreToolUse": run.hook({"decision": "block", "reason": "the old way"})})


@scenario
async def hook_async(run):
    await with_hooks(run, {"PreToolUse": run.hook({"async_": True, "asyncTimeout": 1000})})


@scenario
async def hook_timeout(run):
    async def never(given, tool_use_id, context):
        run.emit("hook", event=given["hook_event_name"], input=given, use=tool_use_id)
        await asyncio.Event().wait()

    await with_hooks(run, {"PreToolUse": [HookMatcher(hooks=[never], timeout=0.2)]})


@scenario
async def hook_post_context(run):
    output = {"systemMessage": "seen", "suppressOutput": True, "hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "the sea is calm"}}
    await with_hooks(run, {"PostToolUse": run.hook(output)})


@scenario
async def hook_pre_and_post(run):
    await with_hooks(run, {"PreToolUse": run.hook({}), "PostToolUse": run.hook({}, "Bash"), "Notification": run.hook({})})


@scenario
async def hook_post_stop(run):
    await with_hooks(run, {"PostToolUse": run.hook({"continue_": False, "stopReason": "enough"})})


@scenario
async def hook_post_failure(run):
    output = {"hookSpecificOutput": {"hookEventName": "PostToolUseFailure", "additionalContext": "try the other door"}}
    await with_hooks(run, {"PostToolUseFailure": run.hook(output)})


@scenario
async def hook_prompt_context(run):
    output = {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "today is a holiday"}}
    await with_hooks(run, {"UserPromptSubmit": run.hook(output)}, prompt="hello")


@scenario
async def hook_prompt_block(run):
    await with_hooks(run, {"UserPromptSubmit": run.hook({"decision": "block", "reason": "not that prompt"})}, prompt="hello")


@scenario
async def hook_stop_block(run):
    """A Stop hook that sends the model back to work, once."""
    count = 0

    async def once(given, tool_use_id, context):
        nonlocal count
        count += 1
        run.emit("hook", event=given["hook_event_name"], input=given, use=tool_use_id)
        return {"decision": "block", "reason": "not done yet"} if count == 1 else {}

    await with_hooks(run, {"Stop": [HookMatcher(hooks=[once])]}, prompt="hello")


@scenario
async def hook_compact(run):
    async with ClaudeSDKClient(run.options(hooks={"PreCompact": run.hook({})})) as client:
        await run.turn(client, "hello")
        await run.turn(client, "/compact")


@scenario
async def hook_notification(run):
    await with_hooks(run, {"Notification": run.hook({})})


@scenario
async def hook_permission_allow(run):
    output = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}
    await with_hooks(run, {"PermissionRequest": run.hook(output)})


@scenario
async def hook_permission_deny(run):
    output = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "deny", "message": "the hook says no"}}}
    await with_hooks(run, {"PermissionRequest": run.hook(output)})


@scenario
async def hook_session(run):
    """Python's types lack these two; the wire takes them."""
    await with_hooks(run, {"SessionStart": run.hook({}), "SessionEnd": run.hook({})}, prompt="hello")


@scenario
async def hook_fifty(run):
    """Fifty callbacks at once: none returns before all were called."""
    waiting, full = 0, asyncio.Event()

    async def barrier(given, tool_use_id, context):
        nonlocal waiting
        waiting += 1
        if waiting == 50:
            run.emit("all_there")
            full.set()
        await full.wait()
        return {}

    await with_hooks(run, {"PreToolUse": [HookMatcher(hooks=[barrier] * 50)]})


@scenario
async def hook_events(run):
    await with_hooks(run, {"PreToolUse": run.hook({})}, include_hook_events=True)


# MCP servers.


@scenario
async def mcp_sdk(run):
    allowed = ["mcp__calc__add", "mcp__calc__fail"]
    await run.ask("use the tools", mcp_servers={"calc": run.server()}, allowed_tools=allowed)


@scenario
async def mcp_sdk_denied(run):
    await run.ask("add", mcp_servers={"calc": run.server()})


@scenario
async def fifty_calls(run):
    async with ClaudeSDKClient(run.options(mcp_servers={"calc": run.server()}, can_use_tool=run.asked(PermissionResultAllow()))) as client:
        await run.turn(client, "add")


@scenario
async def mcp_sdk_slow(run):
    """Other control traffic passes while a tool of ours is busy."""
    async with ClaudeSDKClient(run.options(mcp_servers={"calc": run.server()}, allowed_tools=["mcp__calc__slow"])) as client:
        await client.query("wait")
        await run.until(client, is_tool_use)
        run.emit("status", servers=[{"name": s["name"], "status": s["status"]} for s in (await client.get_mcp_status())["mcpServers"]])
        open(os.path.join(run.cwd, "go"), "w").close()
        await run.until(client, lambda m: isinstance(m, ResultMessage))


@scenario
async def mcp_external(run):
    servers = {"ext": {"command": sys.executable, "args": [os.environ["MCP_SERVER"]]}}
    async with ClaudeSDKClient(run.options(mcp_servers=servers, allowed_tools=["mcp__ext__multiply"])) as client:
        await run.turn(client, "multiply")
        run.emit("status", servers=[{"name": s["name"], "status": s["status"]} for s in (await client.get_mcp_status())["mcpServers"]])
        await client.toggle_mcp_server("ext", False)
        run.emit("status", servers=[{"name": s["name"], "status": s["status"]} for s in (await client.get_mcp_status())["mcpServers"]])
        await client.toggle_mcp_server("ext", True)
        await client.reconnect_mcp_server("ext")
        await run.turn(client, "again")


@scenario
async def mcp_external_broken(run):
    async with ClaudeSDKClient(run.options(mcp_servers={"ext": {"command": "false"}})) as client:
        await run.turn(client, "hello")
        run.emit("status", servers=[{"name": s["name"], "status": s["status"]} for s in (await client.get_mcp_status())["mcpServers"]])


# Agents.


def reader_agent(**more):
    return {"reader": AgentDefinition(description="Reads files.", prompt="You read files.", tools=["Read"], **more)}


@scenario
async def agents(run):
    await run.ask("delegate", agents=reader_agent())


@scenario
async def agents_client(run):
    many = {f"big-{i}": AgentDefinition(description="d" * 100, prompt="p" * 13000) for i in range(20)}
    async with ClaudeSDKClient(run.options(agents={**reader_agent(), **many})) as client:
        await run.turn(client, "hello")


@scenario
async def agents_files(run):
    await run.ask("hello", setting_sources=["project"])


@scenario
async def agents_text(run):
    await run.ask("delegate", agents=reader_agent(), forward_subagent_text=True)


@scenario
async def agents_hooks(run):
    hooks = {"SubagentStart": run.hook({}), "SubagentStop": run.hook({}), "PreToolUse": run.hook({})}
    await with_hooks(run, hooks, prompt="delegate", agents=reader_agent())


@scenario
async def agents_large(run):
    many = {f"big-{i}": AgentDefinition(description="d" * 100, prompt="p" * 13000) for i in range(20)}
    await run.ask("hello", agents=many)


# Control.


async def interrupted(run, wanted, **options):
    """Interrupts after the first message that wanted accepts; the session goes on."""
    async with ClaudeSDKClient(run.options(**options)) as client:
        await client.query("begin")
        await wanted(client)
        await client.interrupt()
        run.emit("interrupted")
        await run.until(client, lambda m: isinstance(m, ResultMessage))
        await run.turn(client, "and now?")


@scenario
async def interrupt_stream(run):
    await interrupted(run, lambda client: run.until(client, is_delta), include_partial_messages=True)


@scenario
async def interrupt_tool(run):
    async def started(client):
        await run.until(client, is_tool_use)
        await run.until_file("started")

    await interrupted(run, started, allowed_tools=["Bash"])


@scenario
async def interrupt_question(run):
    asked = asyncio.Event()

    async def never(name, given):
        asked.set()
        await asyncio.Event().wait()

    await interrupted(run, lambda client: asked.wait(), can_use_tool=run.asked(never))


@scenario
async def interrupt_retry(run):
    def is_retry(message):
        return isinstance(message, SystemMessage) and message.subtype == "api_retry"

    await interrupted(run, lambda client: run.until(client, is_retry))


@scenario
async def interrupt_idle(run):
    async with ClaudeSDKClient(run.options()) as client:
        await client.interrupt()
        run.emit("interrupted")
        await run.turn(client, "hello")


@scenario
async def set_model(run):
    async with ClaudeSDKClient(run.options()) as client:
        await run.turn(client, "hello")
        await client.set_model("claude-opus-4-5")
        await run.turn(client, "hello")
        await client.set_model(None)
        await run.turn(client, "hello")


@scenario
async def set_mode(run):
    async with ClaudeSDKClient(run.options(can_use_tool=run.asked(PermissionResultDeny(message="asked")))) as client:
        await run.turn(client, "write it")
        await client.set_permission_mode("acceptEdits")
        await run.turn(client, "write it")
        await client.set_permission_mode("plan")
        await run.turn(client, "write it")
        try:
            await client.set_permission_mode("bogus")
        except Exception as e:
            run.emit("refused", message=str(e))


@scenario
async def context_usage(run):
    async with ClaudeSDKClient(run.options()) as client:
        await run.turn(client, "hello")
        run.emit("usage", data=await client.get_context_usage())


@scenario
async def server_info(run):
    async with ClaudeSDKClient(run.options()) as client:
        run.emit("info", data=await client.get_server_info())


@scenario
async def rewind_refused(run):
    async with ClaudeSDKClient(run.options()) as client:
        await run.turn(client, "hello")
        try:
            await client.rewind_files("00000000-0000-4000-8000-000000000000")
        except Exception as e:
            run.emit("refused", message=str(e))


@scenario
async def stop_task_unknown(run):
    async with ClaudeSDKClient(run.options()) as client:
        try:
            await client.stop_task("no-such-task")
        except Exception as e:
            run.emit("refused", message=str(e))


# Ends.


@scenario
async def structured(run):
    schema = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
    await run.ask("how many?", output_format={"type": "json_schema", "schema": schema})


@scenario
async def structured_after_tool(run):
    schema = {"type": "object", "properties": {"answer": {"type": "integer"}, "kind": {"enum": ["a", "b"]}, "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}}}, "required": ["answer", "kind"]}
    await run.ask("how many?", output_format={"type": "json_schema", "schema": schema}, allowed_tools=["Bash"])


@scenario
async def max_turns(run):
    await run.ask("go on", max_turns=2, allowed_tools=["Bash"])


@scenario
async def api_error(run):
    await run.ask("hello")


@scenario
async def api_error_goes_on(run):
    async with ClaudeSDKClient(run.options()) as client:
        await run.turn(client, "hello")
        await run.turn(client, "hello")


@scenario
async def eof_tool(run):
    """Stdin closes after the prompt; the turn goes on."""

    async def go():
        await run.until_file("started")
        open(os.path.join(run.cwd, "go"), "w").close()

    async with asyncio.TaskGroup() as group:
        group.create_task(go())
        await run.ask(prompts("begin"), allowed_tools=["Bash"])


@scenario
async def big_answer(run):
    await run.ask("say much")


@scenario
async def big_output(run):
    await run.ask("print much", allowed_tools=["Bash"])


@scenario
async def big_prompt(run):
    await run.ask("x" * (2 << 20))


@scenario
async def consumer_killed(run):
    """Waits inside of a turn; the test kills this process."""
    async with ClaudeSDKClient(run.options(allowed_tools=["Bash"])) as client:
        await client.query("begin")
        await run.until_file("started")
        run.emit("kill_me")
        await asyncio.Event().wait()


@scenario
async def quick_start(run):
    """The README's quick start, with only the executable's path (and the place) changed."""
    async for message in query(prompt="What is 2 + 2?", options=ClaudeAgentOptions(cli_path=AGENT, cwd=run.cwd, env=run.env)):
        run.saw(message)


asyncio.run(serve(Run))
