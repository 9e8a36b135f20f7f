"""The plain HTTP tools of the example: one that honours a key, one that does not, and a network that loses answers.

POST /customers/{customer}/charges   honours Idempotency-Key: the same key is one charge, however often it is sent
POST /announcements                  knows no key: every request is one announcement
GET  /totals                         what was asked and what was done
The first answer of either POST is lost on purpose: the effect is done, then the connection is closed without a word.
Usage: office.py [PORT]; prints the port it listens on.
"""
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Office:
    def __init__(self):
        self.lock = threading.Lock()
        self.charges, self.by_key, self.announcements = [], {}, []
        self.asked = {"charge": 0, "announce": 0}

    def charge(self, key, customer, body):
        """Returns the answer, and whether it gets lost."""
        with self.lock:
            self.asked["charge"] += 1
            if key not in self.by_key:
                charge = {"id": f"charge-{len(self.charges) + 1}", "customer": customer, "amount": body.get("amount")}
                self.charges.append(charge)
                self.by_key[key] = charge
            return self.by_key[key], self.asked["charge"] == 1

    def announce(self, body):
        with self.lock:
            self.asked["announce"] += 1
            self.announcements.append({"id": f"announcement-{len(self.announcements) + 1}", "text": body.get("text")})
            return self.announcements[-1], self.asked["announce"] == 1

    def totals(self):
        with self.lock:
            return {"charge": {"requests": self.asked["charge"], "effects": len(self.charges)},
                    "announce": {"requests": self.asked["announce"], "effects": len(self.announcements)},
                    "last_announcement": self.announcements[-1] if self.announcements else None}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *_):
        pass

    def answer(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/totals":
            return self.answer(200, self.server.office.totals())
        return self.answer(404, {"error": "no such page"})

    def do_POST(self):
        try:
            body = json.loads(self.rfile.read(min(int(self.headers.get("Content-Length", 0)), 1 << 20)) or b"{}")
        except ValueError:
            return self.answer(400, {"error": "not JSON"})
        parts = self.path.strip("/").split("/")
        if parts == ["announcements"]:
            document, lost = self.server.office.announce(body)
        elif len(parts) == 3 and parts[0] == "customers" and parts[2] == "charges":
            key = self.headers.get("Idempotency-Key")
            if not key:
                return self.answer(400, {"error": "Idempotency-Key is missing"})
            document, lost = self.server.office.charge(key, parts[1], body)
        else:
            return self.answer(404, {"error": "no such page"})
        if lost:
            self.close_connection = True
            return None
        return self.answer(201, document)


def main():
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Handler)
    server.daemon_threads = True
    server.office = Office()
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
