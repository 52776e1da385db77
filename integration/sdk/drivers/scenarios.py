"""What the Python drivers share: the scenarios, and playing them.

Each line of stdin asks for a scenario: {"id", "scenario", "cwd", "env"}. They run
side by side.
"""

import asyncio
import json
import sys

SCENARIOS = {}


def scenario(f):
    SCENARIOS[f.__name__] = f
    return f


async def play(run, name):
    try:
        await SCENARIOS[name](run)
    except Exception as e:
        run.emit("raised", type=type(e).__name__, message=str(e))
    run.emit("end")


async def serve(new_run):
    """Plays what stdin asks for; new_run makes a run of such a line."""
    reader = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with asyncio.TaskGroup() as group:
        while line := await reader.readline():
            spec = json.loads(line)
            group.create_task(play(new_run(spec), spec["scenario"]))
