"""A small client with the Claude Agent SDK: client.py PROMPT...

Each prompt is a turn of one conversation. Prints what the model says, and
asks on the terminal before a tool does what has to be asked about.
"""

import asyncio
import json
import os
import shutil
import sys

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    TextBlock,
    ToolUseBlock,
)


async def ask(tool, given, context):
    reply = await asyncio.to_thread(input, f"May it run {tool} {json.dumps(given)}? [y/N] ")
    print()
    if reply == "y":
        return PermissionResultAllow()
    return PermissionResultDeny(message="The user said no.")


async def main(prompts):
    options = ClaudeAgentOptions(
        cli_path=os.environ.get("AGENT") or shutil.which("agent"),  # the only line that is about us
        can_use_tool=ask,
    )
    async with ClaudeSDKClient(options) as client:
        for prompt in prompts:
            print(">", prompt)
            await client.query(prompt)
            async for message in client.receive_response():
                if isinstance(message, AssistantMessage) and not message.error:
                    for block in message.content:
                        if isinstance(block, TextBlock):
                            print(block.text)
                        elif isinstance(block, ToolUseBlock):
                            print(f"[{block.name}]")
                elif isinstance(message, ResultMessage) and message.is_error:
                    sys.exit(message.result)


asyncio.run(main(sys.argv[1:]))
