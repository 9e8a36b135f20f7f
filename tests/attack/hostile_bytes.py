"""Requests that must be refused before anything of them is believed, and the statuses that are right."""
HEAD = "Host: x\r\n"
GHOST = "GET /healthz HTTP/1.1\r\nHost: ghost\r\n\r\n"


def post(headers, body="", path="/v1/runs"):
    return (f"POST {path} HTTP/1.1\r\n{HEAD}{headers}\r\n{body}").encode("latin-1")


def get(path, headers=""):
    return (f"GET {path} HTTP/1.1\r\n{HEAD}{headers}\r\n").encode("latin-1")


# name, bytes, allowed statuses. Each has at most one answer, and the connection ends after it.
REFUSED = [
    ("CL with TE", post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n" + GHOST), {400}),
    ("TE with CL", post("Transfer-Encoding: chunked\r\nContent-Length: 6\r\n", "0\r\n\r\nX" + GHOST), {400}),
    ("chunked", post("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n" + GHOST), {411, 400, 501}),
    ("chunked overflow", post("Transfer-Encoding: chunked\r\n", "FFFFFFFFFFFFFFFFF\r\n" + "x" * 100_000), {411, 400, 501}),
    ("negative chunk", post("Transfer-Encoding: chunked\r\n", "-1\r\nhello\r\n"), {411, 400, 501}),
    ("TE in capitals", post("TRANSFER-ENCODING: CHUNKED\r\n", "0\r\n\r\n" + GHOST), {411, 400, 501}),
    ("TE with a space before the colon", post("Transfer-Encoding : chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n" + GHOST), {400}),
    ("TE folded", post("Content-Length: 5\r\nX: y\r\n Transfer-Encoding: chunked\r\n", "0\r\n\r\n" + GHOST), {400}),
    ("TE after a bare line feed", post("X: y\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n" + GHOST), {400}),
    ("TE after a bare carriage return", post("X: y\rTransfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"), {400}),
    ("TE with a vertical tab", post("Transfer-Encoding: \x0bchunked\r\nContent-Length: 5\r\n", "0\r\n\r\n" + GHOST), {400}),
    ("two TE", post("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n" + GHOST), {411, 400, 501}),
    ("duplicate CL", post("Content-Length: 2\r\nContent-Length: 2\r\n", "{}"), {400}),
    ("conflicting CL", post("Content-Length: 2\r\nContent-Length: 60\r\n", "{}" + GHOST), {400}),
    ("list of CL", post("Content-Length: 2, 2\r\n", "{}"), {400}),
    ("signed CL", post("Content-Length: +2\r\n", "{}"), {400}),
    ("negative CL", post("Content-Length: -1\r\n", "{}"), {400}),
    ("hexadecimal CL", post("Content-Length: 0x2\r\n", "{}"), {400}),
    ("CL beyond 64 bits", post("Content-Length: 18446744073709551617\r\n", "{}"), {400, 413}),
    ("CL over the limit", post("Content-Length: 99999999999\r\n", "{}"), {413}),
    ("gzip bomb", post("Content-Encoding: gzip\r\nContent-Length: 8\r\n", "\x1f\x8b\x08\x00abcd"), {415}),
    ("br", post("Content-Encoding: br\r\nContent-Length: 4\r\n", "abcd"), {415}),
    ("multipart", post("Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 4\r\n", "--x-"), {415}),
    ("no Host", b"GET /healthz HTTP/1.1\r\n\r\n", {400}),
    ("two Hosts", get("/healthz", "Host: y\r\n"), {400}),
    ("NUL in a header", get("/healthz", "X: a\x00b\r\n"), {400}),
    ("no name in a header", get("/healthz", ": y\r\n"), {400}),
    ("20,000 headers", get("/healthz", "".join(f"X-{i}: y\r\n" for i in range(20_000))), {431, 400}),
    ("a long header", get("/healthz", "X: " + "y" * 100_000 + "\r\n"), {431, 400}),
    ("an endless line", b"GET /" + b"a" * 4_000_000, {414, 400, 431}),
    ("an endless header", get("/healthz", "X: y\r\n").removesuffix(b"\r\n") + b"Y: " + b"z" * 4_000_000, {431, 400}),
    ("an 8 KB path", get("/" + "a" * 8192), {414, 404}),
    ("a path of escapes", get("/" + "%41" * 2600), {414, 404}),
    ("path with a broken escape", get("/v1/runs/%zz"), {400}),
    ("path with NUL", get("/v1/runs/%00"), {400, 404}),
    ("path that climbs", get("/v1/../../etc/passwd"), {404, 400}),
    ("a query of 10,000 fields", get("/v1/runs?" + "a&" * 3000), {400, 414}),
    ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {505, 501, 400}),
    ("HTTP/0.9", b"GET /healthz\r\n\r\n", {400}),
    ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200), {400}),
    ("CONNECT", b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: x\r\n\r\n", {501, 405, 400}),
    ("TRACE", b"TRACE / HTTP/1.1\r\nHost: x\r\n\r\n", {501, 405, 400}),
    ("noise", bytes(range(128, 256)) * 64, {400}),
    ("only line ends", b"\r\n" * 5000, {400}),
]
