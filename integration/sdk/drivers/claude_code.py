"""Runs scenarios with claude-code-sdk, as claude.py does with its successor.

This SDK has no option for the program's path: it looks for "claude" in PATH.
"""

import asyncio
import dataclasses
import json
import os
import tempfile

from claude_code_sdk import (
    AssistantMessage,
    ClaudeCodeOptions,
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

from scenarios import scenario, serve

MODEL = "claude-sonnet-4-5"


class Run:
    """One scenario: its folder, its environment, and what it says."""

    def __init__(self, spec):
        self.id, self.cwd, self.env = spec["id"], spec["cwd"], spec["env"]

    def emit(self, ev, **more):
        print(json.dumps({"id": self.id, "ev": ev, **more}), flush=True)

    def options(self, **more):
        more.setdefault("model", MODEL)
        return ClaudeCodeOptions(cwd=self.cwd, env=self.env, **more)

    def saw(self, message):
        if isinstance(message, (AssistantMessage, UserMessage)):
            blocks = [] if isinstance(message.content, str) else message.content
            for block in blocks:
                kind = type(block).__name__
                if kind == "TextBlock":
                    self.emit("text" if isinstance(message, AssistantMessage) else "user_text", text=block.text)
                elif kind == "ToolUseBlock":
                    self.emit("tool_use", name=block.name, input=block.input, use=block.id)
                elif kind == "ToolResultBlock":
                    text = block.content if isinstance(block.content, str) else "".join(b.get("text", "") for b in block.content or [])
                    self.emit("tool_result", text=text, error=bool(block.is_error), use=block.tool_use_id)
        elif isinstance(message, ResultMessage):
            self.emit("result", **dataclasses.asdict(message))
        elif isinstance(message, SystemMessage):
            self.emit("init" if message.subtype == "init" else "system", subtype=message.subtype, data=message.data)
        else:
            self.emit("message", kind=type(message).__name__)
        return message

    async def ask(self, prompt, **options):
        async for message in query(prompt=prompt, options=self.options(**options)):
            self.saw(message)

    async def turns(self, *texts, **options):
        async with ClaudeSDKClient(self.options(**options)) as client:
            for text in texts:
                await client.query(text)
                async for message in client.receive_response():
                    self.saw(message)

    def asked(self, answer):
        async def can_use_tool(name, given, context):
            self.emit("ask", name=name, input=given, suggestions=context.suggestions)
            return answer(given)

        return can_use_tool


@scenario
async def simple(run):
    await run.ask("hello")


@scenario
async def multi_turn(run):
    await run.turns("my number is 7", "what is my number?")


@scenario
async def older_allowed_tools(run):
    await run.ask("write it", allowed_tools=["Read", "Write"], system_prompt="Write files.", max_turns=5)


@scenario
async def ask_updated_input(run):
    await run.turns("write it", can_use_tool=run.asked(lambda given: PermissionResultAllow(updated_input={**given, "content": "changed"})))


@scenario
async def ask_deny(run):
    await run.turns("write it", can_use_tool=run.asked(lambda given: PermissionResultDeny(message="not this file")))


@scenario
async def older_hook(run):
    async def called(given, tool_use_id, context):
        run.emit("hook", event=given["hook_event_name"], input=given)
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "the hook says no"}}

    await run.turns("write it", hooks={"PreToolUse": [HookMatcher(matcher="Write", hooks=[called])]})


@scenario
async def older_server(run):
    @tool("add", "Adds two numbers.", {"a": int, "b": int})
    async def add(args):
        return {"content": [{"type": "text", "text": str(args["a"] + args["b"])}]}

    server = create_sdk_mcp_server(name="calc", version="1.0.0", tools=[add])
    await run.turns("add", mcp_servers={"calc": server}, allowed_tools=["mcp__calc__add"])


@scenario
async def older_failure(run):
    await run.ask("hello", extra_args={"max-turns": "many"})


with tempfile.TemporaryDirectory() as bin:
    os.symlink(os.environ["AGENT"], os.path.join(bin, "claude"))
    os.environ["PATH"] = bin + os.pathsep + os.environ["PATH"]
    asyncio.run(serve(Run))
