"""An MCP server over stdio in front of a fault server: `python3 stdio_bridge.py http://127.0.0.1:PORT/mcp`.

Each line is one request to that address and its answer one line, so that the same lines of behaviour serve both transports. An answer that never
comes, or a connection that breaks, ends the process, as a crash of the tool would. The secret of its environment goes with each request, and is told on stderr.
"""
import http.client
import json
import os
import sys
import threading
import urllib.parse

URL = urllib.parse.urlsplit(sys.argv[1])
SECRET = {"X-Planted": "Bearer " + os.environ["TOOL_SECRET"]} if "TOOL_SECRET" in os.environ else {}
writing, session = threading.Lock(), {}


def say(text):
    with writing:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def carry(line):
    message = json.loads(line)
    connection = http.client.HTTPConnection(URL.hostname, URL.port, timeout=300)
    try:
        connection.request("POST", URL.path, line, {"Content-Type": "application/json", **SECRET, **session})
        response = connection.getresponse()
        body = response.read().decode()
    except (OSError, http.client.HTTPException):
        os._exit(1)
    if message.get("method") == "initialize" and response.headers["Mcp-Session-Id"]:
        session["Mcp-Session-Id"] = response.headers["Mcp-Session-Id"]
    if "id" in message:
        say(" ".join(body.split("\n")))


print("my environment has", SECRET, file=sys.stderr, flush=True)
for text in sys.stdin:
    method = json.loads(text).get("method")
    if method == "tools/call":
        threading.Thread(target=carry, args=(text,), daemon=True).start()
    else:
        carry(text)
