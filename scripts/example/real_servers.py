"""The real MCP servers that scripts/real_tools installs: where they are, and how they are started."""
import os
import signal
import socket
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGES = os.path.join(ROOT, "build", "real_tools", "node_modules", "@modelcontextprotocol")
EVERYTHING = os.path.join(PACKAGES, "server-everything", "dist", "index.js")
FILES = os.path.join(PACKAGES, "server-filesystem", "dist", "index.js")


def missing():
    """What to say when they are not installed, or None."""
    if os.path.exists(EVERYTHING) and os.path.exists(FILES):
        return None
    return "The real MCP servers are not installed; `scripts/real_tools` installs them (it needs npm)."


def free_port(wanted=0):
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return probe.getsockname()[1]
    raise OSError("no free port")


def answers(port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def spawn(command, log, environment=None, **more):
    """A process in a session of its own, so that Ctrl-C reaches only its starter, who ends it in order."""
    with open(log, "ab") as output:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=output, start_new_session=True,
                                env={**os.environ, **(environment or {})}, **{"stdout": output, **more})


def wait_until(condition, process, what, limit=60.0):
    end = time.monotonic() + limit
    while not condition():
        if process.poll() is not None:
            raise RuntimeError(f"{what} ended with {process.returncode}")
        if time.monotonic() > end:
            raise RuntimeError(f"{what} did not get ready within {limit:g} s")
        time.sleep(0.05)


def node():
    """How node is called. The servers use the global `crypto`, which node 18, Debian 12's own, has only when asked."""
    version = subprocess.run(["node", "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout
    return ["node"] if int(version.lstrip("v").split(".")[0]) >= 20 else ["node", "--experimental-global-webcrypto"]


def start_everything(port, log):
    """server-everything over streamable HTTP. It listens on every interface."""
    process = spawn([*node(), EVERYTHING, "streamableHttp"], log, {"PORT": str(port)})
    try:
        wait_until(lambda: answers(port), process, "server-everything")
    except BaseException:
        end(process)
        raise
    return process


def end(process, limit=15.0):
    """Asks first; then nothing of the process's group is left."""
    for ask in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            process.send_signal(ask)
            try:
                process.wait(limit)
            except subprocess.TimeoutExpired:
                pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
