"""A small MCP server on stdin and stdout, without any library. Like some real
ones it says something nobody asked for when it starts."""

import json
import sys


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def number(description):
    return {"type": "number", "description": description}


def tool(name, description):
    schema = {"type": "object", "properties": {"a": number("first"), "b": number("second")}, "required": ["a", "b"]}
    return {"name": name, "description": description, "inputSchema": schema}


TOOLS = [tool("add", "Adds two numbers."), tool("multiply", "Multiplies two numbers.")]

send(method="initialized")
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method, params = request.get("method"), request.get("params") or {}
    if method == "initialize":
        result = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {"name": "ext", "version": "1.0.0"}}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call":
        a, b = params["arguments"]["a"], params["arguments"]["b"]
        result = {"content": [{"type": "text", "text": str(a + b if params["name"] == "add" else a * b)}]}
    elif method == "ping":
        result = {}
    else:
        send(id=request["id"], error={"code": -32601, "message": "no such method: " + str(method)})
        continue
    send(id=request["id"], result=result)
