"""A validating client with the Claude Agent SDK.

Plays scenarios against the program and checks what the SDK makes of them; then
each line that went over the pipe is held against the program's own JSON Schema.
Needs the model of ../with-model.sh. VALIDATE_KEEP=DIR keeps the lines there.
"""

import asyncio
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import jsonschema
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)
from claude_agent_sdk.types import StreamEvent

AGENT = os.environ.get("AGENT") or shutil.which("agent")
SCENARIOS = []


def scenario(f):
    SCENARIOS.append(f)
    return f


class Run:
    """A scenario: its folder, and a client with the messages that came."""

    def __init__(self, name, folder):
        self.folder, self.lines, self.seen = folder, folder.parent / f"{name}.jsonl", []

    def options(self, **more):
        return ClaudeAgentOptions(cli_path=AGENT, cwd=self.folder, extra_args={"record-protocol": str(self.lines)}, **more)

    def client(self, **more):
        return ClaudeSDKClient(self.options(**more))

    async def turn(self, client, prompt):
        """Sends a prompt and returns the result of its turn."""
        await client.query(prompt)
        async for message in client.receive_response():
            self.seen.append(message)
        return self.seen[-1]

    def note(self):
        path = self.folder / "note.txt"
        return path.read_text() if path.exists() else None

    def check(self):
        """What holds for every conversation."""
        results = [m for m in self.seen if isinstance(m, ResultMessage)]
        assert results and isinstance(self.seen[-1], ResultMessage), "the last message is a result"
        assert len({r.session_id for r in results}) == 1, "one session"
        calls, answers = [], []
        for m in self.seen:
            if isinstance(m, (AssistantMessage, UserMessage)) and isinstance(m.content, list):
                calls += [b.id for b in m.content if type(b).__name__ == "ToolUseBlock"]
                answers += [b.tool_use_id for b in m.content if type(b).__name__ == "ToolResultBlock"]
        assert sorted(calls) == sorted(answers), "each call has its result"


@scenario
async def question(run):
    async for message in query(prompt="Hello!", options=run.options()):
        run.seen.append(message)
    assert run.seen[-1].result == "Hello, what can I do for you?"


@scenario
async def conversation(run):
    async with run.client() as client:
        await run.turn(client, "My number is 7.")
        result = await run.turn(client, "What is my number?")
    assert result.result == "Your number is 7.", result


@scenario
async def partial(run):
    async with run.client(include_partial_messages=True) as client:
        result = await run.turn(client, "Hello!")
    pieces = [m.event["delta"]["text"] for m in run.seen if isinstance(m, StreamEvent) and m.event["type"] == "content_block_delta"]
    assert len(pieces) > 1 and "".join(pieces) == result.result, pieces


async def write_note(run, answer):
    """A turn whose one call is answered; returns what was asked."""
    asked = []

    async def can_use_tool(name, given, context):
        asked.append((name, given))
        return answer

    async with run.client(can_use_tool=can_use_tool) as client:
        result = await run.turn(client, "Write a note.")
    assert asked == [("Write", {"file_path": "note.txt", "content": "Buy milk.\n"})], asked
    return result


@scenario
async def allow(run):
    await write_note(run, PermissionResultAllow())
    assert run.note() == "Buy milk.\n", run.note()


@scenario
async def deny(run):
    result = await write_note(run, PermissionResultDeny(message="not now"))
    assert run.note() is None and len(result.permission_denials) == 1, result


@scenario
async def changed_input(run):
    await write_note(run, PermissionResultAllow(updated_input={"file_path": "note.txt", "content": "Buy bread.\n"}))
    assert run.note() == "Buy bread.\n", run.note()


@scenario
async def hook(run):
    async def guard(given, tool_use_id, context):
        reason = {"permissionDecision": "deny", "permissionDecisionReason": "no notes on Sundays"}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **reason}}

    hooks = {"PreToolUse": [HookMatcher(matcher="Write", hooks=[guard])]}
    async with run.client(hooks=hooks, permission_mode="bypassPermissions") as client:
        await run.turn(client, "Write a note.")
    assert run.note() is None
    assert any("no notes on Sundays" in str(m) for m in run.seen if isinstance(m, UserMessage))


@scenario
async def mcp_tool(run):
    @tool("add", "Adds two numbers.", {"a": int, "b": int})
    async def add(args):
        return {"content": [{"type": "text", "text": str(args["a"] + args["b"])}]}

    calc = create_sdk_mcp_server(name="calc", tools=[add])
    async with run.client(mcp_servers={"calc": calc}, allowed_tools=["mcp__calc__add"]) as client:
        result = await run.turn(client, "Add two and three.")
    assert result.result == "It is 5.", result


@scenario
async def permission_mode(run):
    async with run.client() as client:
        await client.set_permission_mode("acceptEdits")
        await run.turn(client, "Write a note.")
    assert run.note() == "Buy milk.\n"


@scenario
async def model(run):
    async with run.client() as client:
        await client.set_model("claude-opus-4-1")
        result = await run.turn(client, "Which model are you?")
    assert result.result == "I am claude-opus-4-1.", result


@scenario
async def interrupt(run):
    async with run.client(include_partial_messages=True) as client:
        await client.query("Recite a poem.")
        interrupted = False
        async for message in client.receive_response():
            run.seen.append(message)
            if isinstance(message, StreamEvent) and message.event["type"] == "content_block_delta" and not interrupted:
                interrupted = True
                await client.interrupt()
        assert run.seen[-1].is_error is False, run.seen[-1]
        result = await run.turn(client, "Hello!")
    assert result.subtype == "success", result


@scenario
async def model_error(run):
    async with run.client() as client:
        result = await run.turn(client, "Please fail.")
        assert result.is_error and "as it was asked to" in result.result, result
        result = await run.turn(client, "Hello!")
    assert not result.is_error, result


def validate(path, schema):
    """Holds each recorded line against the schema of its direction."""
    ways = {way: jsonschema.Draft202012Validator({**schema, "$ref": f"#/$defs/{way}"}) for way in ("in", "out")}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines, "nothing was recorded"
    for line in lines:
        for error in ways[line["dir"]].iter_errors(line["msg"]):
            raise AssertionError(f"{line['dir']}: {error.message[:300]} in {json.dumps(line['msg'])[:300]}")


async def main():
    schema = json.loads(subprocess.check_output([AGENT, "protocol", "schema"]))
    failed = 0
    with tempfile.TemporaryDirectory() as tmp:
        for f in SCENARIOS:
            folder = pathlib.Path(tmp) / f.__name__
            folder.mkdir()
            run = Run(f.__name__, folder)
            try:
                await asyncio.wait_for(f(run), 60)
                run.check()
                validate(run.lines, schema)
                print("ok  ", f.__name__, flush=True)
            except Exception as e:
                failed += 1
                print("FAIL", f.__name__, repr(e), flush=True)
            if keep := os.environ.get("VALIDATE_KEEP"):
                shutil.copy(run.lines, keep)
    sys.exit(f"{failed} failed" if failed else 0)


asyncio.run(main())
