"""Words about clients that wait for a run: long polls and event streams. A mixin of the runner's World."""
import http.client
import json
import socket
import threading
import time

import behaviour
import expectations


class Stream:
    """One subscriber of a run's events, on a thread."""

    def __init__(self, product, run_id, after, slow):
        self.events, self.ids, self.ended, self.status, self.stopped, self.slow = [], [], False, None, False, slow
        self.connection = http.client.HTTPConnection(*product.client, timeout=60)
        headers = {"Accept": "text/event-stream"}
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        self.connection.request("GET", f"/v1/runs/{run_id}/events", headers=headers)
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self):
        try:
            response = self.connection.getresponse()
            self.status = response.status
            for line in response:
                if line.startswith(b"id: "):
                    self.ids.append(int(line[4:]))
                if line.startswith(b"data: "):
                    self.events.append(json.loads(line[6:]))
                    self.slow.wait(60)
        except (OSError, http.client.HTTPException, ValueError, AttributeError):
            pass
        self.ended = True

    def stop(self):
        self.stopped = True
        try:
            self.connection.sock.shutdown(socket.SHUT_RDWR)
        except (OSError, AttributeError):
            pass


class Listening:
    def started(self, what):
        """The clients of one kind, by name."""
        return self.__dict__.setdefault(what, {})

    def do_follow(self, name, *words):
        """`follow a [as reader] [from reader] [when GATE]`: an event stream; `from` goes on where another one stood, `when` reads no further before the gate opens."""
        options = dict(zip(words[::2], words[1::2]))
        other = self.started("streams").get(options.get("from"))
        slow = self.faults.gate(options["when"]) if "when" in options else threading.Event()
        if "when" not in options:
            slow.set()
        self.started("streams")[options.get("as", name)] = Stream(self.product, self.runs[name], other.ids[-1] if other and other.ids else None, slow)

    def do_leave_stream(self, name):
        """The reader goes away."""
        self.started("streams")[name].stop()

    def wait_for_stream(self, name, what):
        """`wait stream reader ended`, or an event type."""
        stream = self.started("streams")[name]
        self.until(lambda: stream.ended if what == "ended" else what in [e["type"] for e in stream.events], f"stream {name} {what}")

    def expect_stream(self, name, *kinds):
        """`stream reader ended run.submitted … run.settled`: exactly these events, each id once and rising."""
        stream = self.started("streams")[name]
        ended, kinds = kinds[:1] == ("ended",), kinds[1:] if kinds[:1] == ("ended",) else kinds
        seen = [e["type"] for e in stream.events]
        if stream.ended != ended or seen != list(kinds):
            return f"stream {name} {'has ended' if stream.ended else 'goes on'} ({stream.status}) after {seen}"
        if stream.ids != sorted(set(stream.ids)) or stream.ids != [e["seq"] for e in stream.events]:
            return f"stream {name} has ids {stream.ids}"

    def expect_once(self, name, kind):
        """The run has exactly one event of this type."""
        found = [e["seq"] for e in self.events(name) if e["type"] == kind]
        if len(found) != 1:
            return f"{name} has {len(found)} events {kind}"

    def do_poll(self, name, *words):
        """`poll a 30s [as p] [gone in 50ms]`: a long poll on a thread, whose client may go away meanwhile."""
        span, options = words[0], dict(zip(words[1::2], words[2::2]))
        poll = {"run": None, "took": None, "at": time.monotonic()}
        self.started("polls")[options.get("as", name)] = poll
        address, run_id = self.product.client, self.runs[name]

        def ask():
            connection = http.client.HTTPConnection(*address, timeout=90)
            try:
                connection.request("GET", f"/v1/runs/{run_id}?wait={span}")
                response = connection.getresponse()
                poll["status"], poll["run"] = response.status, json.loads(response.read())
            except (OSError, http.client.HTTPException, ValueError, AttributeError) as e:
                poll["status"] = type(e).__name__
            poll["took"] = time.monotonic() - poll["at"]
        poll["thread"] = threading.Thread(target=ask, daemon=True)
        if "gone" in options:
            connection = http.client.HTTPConnection(*address, timeout=90)
            connection.request("GET", f"/v1/runs/{run_id}?wait={span}")
            time.sleep(behaviour.seconds(words[-1]))
            connection.close()
            return
        poll["thread"].start()

    def expect_polled(self, name, status, span):
        """`polled p unknown 0s..2s`: what the long poll was answered, and when."""
        poll = self.started("polls")[name]
        poll["thread"].join(90)
        found = (poll["run"] or {}).get("status", poll.get("status"))
        if not expectations.same(found, status) or poll["took"] is None or not expectations.within(poll["took"], span):
            return f"poll {name} was answered {found} after {poll['took']} s"

    def stop_listening(self):
        for stream in self.started("streams").values():
            stream.slow.set()
            stream.stop()
