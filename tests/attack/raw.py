"""Connections that send exactly the bytes they are told to, and leave as rudely as they are told to."""
import selectors
import socket
import struct
import time


def connect(address, source=None, limit=10.0):
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.settimeout(limit)
    if source:
        sock.bind((source, 0))
    sock.connect(address)
    return sock


def reset(sock):
    """Leaves with an RST."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def send_all_it_takes(sock, data):
    """False when the other side took no more."""
    try:
        sock.sendall(data)
        return True
    except OSError:
        return False


def length_of(head):
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return None


class Answers:
    """The answers on one connection, one after the other."""

    def __init__(self, sock):
        self.sock, self.buffer = sock, b""

    def more(self):
        try:
            piece = self.sock.recv(1 << 16)
        except (ConnectionResetError, BrokenPipeError):
            return False
        self.buffer += piece
        return bool(piece)

    def next(self):
        """(status, head, body) of the next answer, or None at the connection's end."""
        while b"\r\n\r\n" not in self.buffer:
            if not self.more():
                return None
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        if head.startswith(b"HTTP/1.1 100"):
            return self.next()
        length = length_of(head) or 0
        while len(self.buffer) < length:
            if not self.more():
                return None
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return int(head.split(b" ", 2)[1]), head.decode("latin-1"), body

    def rest(self):
        """What still comes until the end."""
        while self.more():
            pass
        return self.buffer


def ask(address, request, limit=10.0):
    """Sends `request` on a connection of its own: the first answer, or None, and how many came until the end, which the answer announces."""
    sock = connect(address, limit=limit)
    try:
        send_all_it_takes(sock, request)
        answers = Answers(sock)
        first = answers.next()
        if first is None or "connection: close" not in first[1].lower():
            return first, 1 if first else 0
        count = 1
        while answers.next():
            count += 1
        return first, count
    finally:
        sock.close()


def ended_within(socks, seconds):
    """How many of the connections the server has ended before the time is over, and the statuses it gave."""
    selector, statuses, open_count = selectors.DefaultSelector(), [], len(socks)
    for sock in socks:
        sock.setblocking(False)
        selector.register(sock, selectors.EVENT_READ, [b""])
    until = time.monotonic() + seconds
    while open_count and time.monotonic() < until:
        for key, _ in selector.select(max(0.0, until - time.monotonic())):
            try:
                piece = key.fileobj.recv(1 << 16)
            except BlockingIOError:
                continue
            except OSError:
                piece = b""
            key.data[0] += piece[:64]
            if not piece:
                open_count -= 1
                selector.unregister(key.fileobj)
                if key.data[0].startswith(b"HTTP/1.1 "):
                    statuses.append(int(key.data[0][9:12]))
    selector.close()
    return len(socks) - open_count, statuses
