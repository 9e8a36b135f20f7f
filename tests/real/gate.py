"""Stands between Holdfast and a real MCP server over stdio, and can keep one message back, as a slow pipe would.

Usage: gate.py FOLDER COMMAND…
While FOLDER/hold_requests exists, a tools/call is kept from the server; while FOLDER/hold_answers exists, its answer is kept from
Holdfast. FOLDER/held appears once something is kept. The server is started and ended with the gate.
"""
import json
import os
import subprocess
import sys
import threading


def main():
    folder, command = sys.argv[1], sys.argv[2:]
    calls = set()

    def held(name):
        if not os.path.exists(os.path.join(folder, name)):
            return False
        open(os.path.join(folder, "held"), "w").close()
        return True

    def message(line):
        try:
            read = json.loads(line)
        except ValueError:
            return {}
        return read if isinstance(read, dict) else {}

    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def answers():
        for line in server.stdout:
            answer = message(line)
            if "method" not in answer and answer.get("id") in calls and held("hold_answers"):
                continue
            try:
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
            except BrokenPipeError:
                return

    threading.Thread(target=answers, daemon=True).start()
    for line in sys.stdin.buffer:
        request = message(line)
        if request.get("method") == "tools/call":
            if held("hold_requests"):
                continue
            calls.add(request.get("id"))
        server.stdin.write(line)
        server.stdin.flush()
    server.stdin.close()
    try:
        server.wait(5)
    except subprocess.TimeoutExpired:
        server.kill()
    os._exit(0)


if __name__ == "__main__":
    main()
