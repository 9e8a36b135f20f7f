"""An MCP server over stdio with one plain write, `append`: stdio_tool.py LOG. It shares the recorder's log; its child-ness is the point: it
dies with the product, and what stood in the pipe by then still takes effect."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from recorder import Log  # noqa: E402


def answer(rid, result):
    try:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": rid, "result": result}) + "\n")
        sys.stdout.flush()
    except OSError:
        pass  # nobody is there to hear it; the effect stands


log, number = Log(sys.argv[1]), 0
for line in sys.stdin:
    message = json.loads(line)
    method, rid = message.get("method"), message.get("id")
    if method == "initialize":
        answer(rid, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "files", "version": "1"}})
    elif method == "tools/list":
        answer(rid, {"tools": [{"name": "append", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        number += 1
        marker, mine = message["params"]["arguments"].get("m"), f"{os.getpid()}.{number}"
        log.note(what="hit", tool="append", m=marker, n=mine, key="", sha="")
        log.note(what="effect", tool="append", m=marker)
        answer(rid, {"content": [], "isError": False})
        log.note(what="end", n=mine)
    elif rid is not None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": rid, "error": {"code": -32601, "message": "no such method"}}) + "\n")
        sys.stdout.flush()
