"""Asks what other clients ask, over and over, and says how long each took: probe.py CLIENT_PORT ADMIN_PORT SHORT_PATH.

A process of its own, so that the attackers' work is not in its figures. Each line is the instant (monotonic), the kind and the
milliseconds, or -1 for no good answer. `control` is a server in Python beside it: how slow the machine itself is at that moment.
"""
import socket
import sys
import threading
import time

sys.path[:0] = [__file__.rpartition("/")[0]]
import raw  # noqa: E402

PAUSE_SECONDS = 0.02


def control_server():
    """Answers each connection at once."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)

    def serve():
        while True:
            sock, _ = listener.accept()
            with sock:
                sock.recv(4096)
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()


def took_ms(address, path):
    begun = time.monotonic()
    try:
        answer, _ = raw.ask(address, f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode(), limit=5.0)
        good = answer is not None and answer[0] == 200
    except OSError:
        good = False
    return (time.monotonic() - begun) * 1000 if good else -1.0


def main():
    client, admin = (("127.0.0.1", int(port)) for port in sys.argv[1:3])
    control = control_server()
    wanted = [("health", client, "/healthz"), ("admin", admin, "/healthz"), ("short", client, sys.argv[3]), ("control", control, "/")]
    while True:
        for kind, address, path in wanted:
            at = time.monotonic()
            print(f"{at:.6f} {kind} {took_ms(address, path):.3f}", flush=True)
        time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    main()
