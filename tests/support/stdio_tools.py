"""An MCP server over stdio for tests: `python3 stdio_tools.py MODE`. Nothing in it waits for time; tools do what their names say."""
import json
import os
import signal
import sys

MODE = sys.argv[1]
seen, held = [], []


def send(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def answer(rid, **body):
    send(json.dumps({"jsonrpc": "2.0", "id": rid, **body}))


def result(rid, value):
    answer(rid, result={"content": [{"type": "text", "text": "done"}], "structuredContent": value, "isError": False})


def call(rid, params):
    tool = params["name"]
    if tool == "ok":
        result(rid, {"pid": os.getpid(), "arguments": params["arguments"], "meta": params.get("_meta")})
    elif tool == "noise":
        send("stray words")
        send('{"not": "a message"')
        send("")
        result(rid, {})
    elif tool == "hold":
        held.append(rid)
    elif tool == "release":
        while held:
            result(held.pop(), {"late": True})
        result(rid, {})
    elif tool in ("spoil", "spoil_deep", "spoil_big"):  # answers what is held with what nobody can use
        held_id, deep = held.pop(), "[" * 200 + "]" * 200
        spoilt = {"spoil": {"result": {}, "error": {}}, "spoil_big": {"result": {"x": "x" * 200_000}}}
        if tool == "spoil_deep":
            send('{"jsonrpc":"2.0","id":%d,"result":{"x":%s}}' % (held_id, deep))
        else:
            answer(held_id, **spoilt[tool])
        result(rid, {})
    elif tool == "exit":
        os._exit(1)
    elif tool == "half":
        sys.stdout.write('{"jsonrpc":"2.0","id":%d,"res' % rid)
        sys.stdout.flush()
        os._exit(1)
    elif tool == "answer_and_exit":
        result(rid, {"pid": os.getpid()})
        os._exit(0)
    elif tool == "big":
        result(rid, {"x": "x" * 200_000})
    elif tool == "deep":
        send('{"jsonrpc":"2.0","id":%d,"result":{"x":%s%s}}' % (rid, "[" * 200, "]" * 200))
    elif tool == "error":
        answer(rid, error={"code": -32602, "message": "no such luck"})
    elif tool == "seen":
        result(rid, {"methods": seen})
    elif tool == "environment":
        result(rid, {"names": sorted(os.environ), "extra": os.environ.get("EXTRA")})
    elif tool == "stall":
        result(rid, {})
        signal.pause()  # reads no more
    elif tool == "ask":
        answer(rid="s-1", method="ping")
        held.append(rid)


if MODE == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if MODE == "noise":
    send("Server starting on stdio")
for line in sys.stdin:
    message = json.loads(line)
    method, rid = message.get("method"), message.get("id")
    seen.append(method or "answer")
    if method == "server/discover" and MODE == "swallow":
        continue
    if method == "initialize" and MODE in ("refuse", "modern"):
        answer(rid, error={"code": -32600, "message": "no"})
    elif method == "initialize" and MODE == "hang":
        continue
    elif method == "initialize":
        answer(rid, result={"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "t", "version": "1"}})
    elif method == "server/discover" and MODE == "modern":
        answer(rid, result={"resultType": "complete", "supportedVersions": ["2026-07-28"]})
    elif method == "tools/list":
        tools = ["ok", "look"]
        answer(rid, result={"tools": [{"name": t, "annotations": {"readOnlyHint": t == "look"}} for t in tools]})
    elif method == "tools/call":
        call(rid, message["params"])
    elif method is None and held:
        result(held.pop(), {"answered": message})
    elif rid is not None:
        answer(rid, error={"code": -32601, "message": "method not found"})
if MODE == "stubborn":
    while True:
        signal.pause()
