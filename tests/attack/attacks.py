"""What hostile and clumsy clients do. Each function attacks a front and returns what went wrong, one sentence each.

`LONG` attacks last as long as the product's own time limits; they run beside each other.
"""
import gzip
import json
import random
import socket
import time

import raw
from front import until
from hostile_bytes import HEAD, REFUSED, get, post

HEALTH = get("/healthz")
HEADER_SECONDS, BODY_SECONDS, WRITE_SECONDS, SLACK_SECONDS = 10.0, 30.0, 30.0, 4.0


def problems_of(wanted):
    return [sentence for holds, sentence in wanted if not holds]


# --- quick ones ---


def refused_bytes(front):
    """Each hostile request has at most one answer, a right one, and its connection ends."""
    wrong = []
    for name, request, allowed in REFUSED:
        answer, count = raw.ask(front.client, request)
        if answer is None or answer[0] not in allowed or count != 1:
            wrong.append(f"{name}: {answer and answer[0]}, {count} answers")
        elif answer[2] and "application/problem+json" not in answer[1]:
            wrong.append(f"{name}: the answer is no problem")
    return wrong


def smuggled_request(front):
    """A request hidden behind another is not carried out: the run it would cancel goes on."""
    run = front.submit({"name": "n", "mode": "open", "deadline": "1h"})
    hidden = post("Content-Length: 2\r\n", "{}", f"/v1/runs/{run}/cancel").decode()
    outer = [
        get("/healthz") + hidden.encode(),
        post(f"Content-Length: {len(hidden)}\r\n", hidden),
        post("Content-Length: 0\r\n", hidden, "/v1/runs"),
        post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", f"{len(hidden):x}\r\n{hidden}\r\n0\r\n\r\n"),
        get("/healthz", "Content-Length: 0\r\n") + hidden.encode(),
        (f"GET /healthz HTTP/1.1\r\n{HEAD}Content-Length: {len(hidden)}\r\n\r\n{hidden}").encode(),
    ]
    wrong = []
    for i, request in enumerate(outer):
        sock = raw.connect(front.client)
        raw.send_all_it_takes(sock, request)
        sock.shutdown(socket.SHUT_WR)
        answers = raw.Answers(sock)
        count = 0
        while answers.next():
            count += 1
        sock.close()
        if count != 1:
            wrong.append(f"smuggling {i}: {count} answers")
    state = front.product.request("GET", f"/v1/runs/{run}").json
    if state["settled"]:
        wrong.append(f"the hidden request was carried out: {state['status']}")
    return wrong


def injected_header(front):
    """Percent-encoded line ends in a key stay what they are, and reach no answer's head."""
    body = json.dumps({"name": "n", "mode": "open", "deadline": "1h"})
    ids = set()
    wrong = []
    for key in ("a%0d%0aX-Extra: 1", "b%41", "bA", "c%00"):
        answer, _ = raw.ask(front.client, post(f"Idempotency-Key: {key}\r\nContent-Length: {len(body)}\r\n", body), limit=5)
        if answer is None or answer[0] not in (201, 400):
            wrong.append(f"key {key}: {answer and answer[0]}")
        elif answer[0] == 201:
            ids.add(json.loads(answer[2])["id"])
            if "x-extra" in answer[1].lower():
                wrong.append(f"key {key} came back as a header")
    if len(ids) < 2:
        wrong.append("two keys that differ in an escape are one run")
    return wrong


def gzip_bomb(front):
    bomb = gzip.compress(bytes(200 << 20), 9)
    answer, _ = raw.ask(front.client, post(f"Content-Encoding: gzip\r\nContent-Length: {len(bomb)}\r\n") + bomb)
    return problems_of([(answer is not None and answer[0] == 415, f"gzip bomb: {answer and answer[0]}")])


def half_closed(front):
    """Who has said everything and closes his side is answered; who closes in the middle is let go at once."""
    whole = raw.connect(front.client)
    whole.sendall(HEALTH)
    whole.shutdown(socket.SHUT_WR)
    answer = raw.Answers(whole).next()
    broken = []
    for part in (b"", b"GET /heal", HEALTH[:-2], post("Content-Length: 100\r\n", "{")):
        sock = raw.connect(front.client)
        sock.sendall(part)
        sock.shutdown(socket.SHUT_WR)
        broken.append(sock)
    ended, _ = raw.ended_within(broken, 3)
    for sock in (whole, *broken):
        sock.close()
    return problems_of([(answer and answer[0] == 200, "a half-closed client got no answer"), (ended == len(broken), f"{ended} of {len(broken)} half requests let go")])


def reset_storm(front):
    """1,000 connections, nearly at once, that are reset at any point of a request."""
    choice = random.Random(5)
    whole = [HEALTH, get("/v1/runs"), post("Content-Length: 500\r\n", "{" + " " * 498 + "}"), get(f"/v1/runs/{front.run}?wait=20s"), get(f"/v1/runs/{front.big}")]
    for _ in range(1000):
        sock = raw.connect(front.client)
        request = choice.choice(whole)
        raw.send_all_it_takes(sock, request[: choice.randint(0, len(request))])
        if choice.random() < 0.5:
            raw.reset(sock)
        else:
            sock.close()
    return []


def reset_while_streaming(front):
    """Event streams that are reset while they wait, and while they are written to."""
    socks = []
    for _ in range(200):
        sock = raw.connect(front.client)
        sock.sendall(get(f"/v1/runs/{front.run}/events", "Accept: text/event-stream\r\n"))
        socks.append(sock)
    wrong = []
    for sock in socks[:20]:
        if not sock.recv(4096).startswith(b"HTTP/1.1 200"):
            wrong.append("a stream did not begin")
    for sock in socks:
        raw.reset(sock)
    return wrong


def pollers_that_leave(front):
    """A 5 MB result, asked for by 200 pollers that go away before, while and after it comes."""
    choice = random.Random(7)
    for i in range(200):
        sock = raw.connect(front.client)
        sock.sendall(get(f"/v1/runs/{front.big}?wait=10s"))
        if i % 4:
            sock.recv(choice.choice((1, 1000, 60_000)))
        if i % 2:
            raw.reset(sock)
        else:
            sock.close()
    answer = front.product.request("GET", f"/v1/runs/{front.big}")
    return problems_of([(answer.status == 200 and len(answer.json["result"]["x"]) == 5 << 20, "the result did not arrive whole afterwards")])


def body_before_token(front):
    """Route and size are decided by the head alone: the answer comes although no byte of the body was sent."""
    cases = [("/v1/nowhere", 10, 404), ("/healthz", 10, 405), ("/v1/runs", 9 << 20, 413)]
    wrong = []
    for path, length, status in cases:
        sock = raw.connect(front.client, limit=3.0)
        sock.sendall(post(f"Content-Length: {length}\r\n", "", path))
        answer = raw.Answers(sock).next()
        sock.close()
        if answer is None or answer[0] != status:
            wrong.append(f"{path}: {answer and answer[0]} before the body")
    return wrong


def long_polls(front):
    """1,000 long polls are open and hold no thread; those that hang up are forgotten."""
    others = 12  # what the watchers and the ledger's readers open and close meanwhile
    until(lambda: front.descriptors() <= front.at_rest + others, "the end of the attack before", 15)
    socks = []
    for _ in range(1000):
        sock = raw.connect(front.client)
        sock.sendall(get(f"/v1/runs/{front.run}?wait=60s"))
        socks.append(sock)
    until(lambda: front.descriptors() >= front.at_rest + 1000 - others, "1,000 long polls")
    begun = time.monotonic()
    while time.monotonic() < begun + 2.0:
        time.sleep(0.05)
    slowest = front.slowest(begun)
    for sock in socks:
        sock.close()
    allowed = 50.0 + slowest.get("control", 0.0)
    return problems_of([(0 <= ms <= allowed, f"{kind} took {ms:.0f} ms with 1,000 long polls open; control {slowest['control']:.0f} ms")
                        for kind, ms in slowest.items() if kind != "control"])


QUICK = [refused_bytes, smuggled_request, injected_header, gzip_bomb, half_closed, body_before_token, reset_storm, reset_while_streaming,
         pollers_that_leave, long_polls]


# --- as long as the product's limits ---


def trickle(front, count, request, pause, limit):
    """`count` connections send a byte of `request` each `pause` seconds. All are ended by the product in time."""
    socks = []
    for _ in range(count):
        sock = raw.connect(front.client)
        socks.append(sock)
    begun = time.monotonic()
    alive = list(socks)
    for i in range(len(request)):
        if time.monotonic() > begun + limit - 2 * pause:
            break
        alive = [sock for sock in alive if raw.send_all_it_takes(sock, request[i:i + 1])]
        time.sleep(pause)
    ended, statuses = raw.ended_within(socks, max(0.5, begun + limit + SLACK_SECONDS - time.monotonic()))
    took = time.monotonic() - begun
    for sock in socks:
        sock.close()
    return problems_of([(ended == count, f"{ended} of {count} ended within {took:.0f} s"),
                        (all(s == 408 for s in statuses), f"statuses {sorted(set(statuses))}")])


def slow_heads(front):
    return trickle(front, 50, get("/healthz", "X: " + "y" * 1000 + "\r\n"), 0.2, HEADER_SECONDS)


def many_trickling(front):
    return trickle(front, 1000, get("/v1/runs", "X: " + "y" * 1000 + "\r\n"), 0.5, HEADER_SECONDS)


def slow_bodies(front):
    head, body = post("Content-Length: 100000\r\n"), b"x" * 1000
    socks = [raw.connect(front.client) for _ in range(50)]
    begun = time.monotonic()
    for sock in socks:
        sock.sendall(head)
    for i in range(len(body)):
        if time.monotonic() > begun + BODY_SECONDS - 1:
            break
        for sock in socks:
            raw.send_all_it_takes(sock, body[i:i + 1])
        time.sleep(0.25)
    ended, statuses = raw.ended_within(socks, max(0.5, begun + BODY_SECONDS + SLACK_SECONDS - time.monotonic()))
    for sock in socks:
        sock.close()
    return problems_of([(ended == 50, f"{ended} of 50 slow bodies ended"), (set(statuses) <= {408}, f"statuses {sorted(set(statuses))}")])


def silent(front):
    """Connections that never say anything."""
    socks = [raw.connect(front.client) for _ in range(200)]
    ended, _ = raw.ended_within(socks, HEADER_SECONDS + SLACK_SECONDS)
    for sock in socks:
        sock.close()
    return problems_of([(ended == 200, f"{ended} of 200 silent connections ended")])


def answers_not_read(front):
    """Clients that ask for 5 MB and never read them."""
    socks = []
    for _ in range(40):
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(10)
        sock.connect(front.client)
        sock.sendall(get(f"/v1/runs/{front.big}"))
        socks.append(sock)
    before = front.descriptors()
    until(lambda: front.descriptors() <= before - 30, "the end of clients that read nothing", WRITE_SECONDS + SLACK_SECONDS)
    for sock in socks:
        sock.close()
    return []


LONG = [slow_heads, many_trickling, slow_bodies, silent, answers_not_read]
