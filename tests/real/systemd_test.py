"""The Debian package under a running systemd: installed, started, reloaded, killed, upgraded while it runs, stopped, removed, purged.
Usage: systemd_test.py BUILD_FOLDER [unittest arguments]. Skips where no machine can be made (tests/support/machine.py).
"""
import json
import os
import shutil
import sys
import tempfile
import time
import unittest

SUPPORT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support")
sys.path.insert(0, SUPPORT)
from deb import CONF, build, newer  # noqa: E402
from machine import Machine, NoMachine  # noqa: E402

BUILD = None
TOOLS = """
servers:
  local:
    mcp: {command: [/usr/bin/python3, /opt/stdio_tools.py, legacy]}
    tools: {ok: {effect: read}}
"""
CALL = {"name": "call", "steps": [{"id": "one", "server": "local", "tool": "ok", "args": {"n": 1}}]}


class UnderSystemd(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="holdfast-package-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        try:
            cls.machine = Machine()
        except NoMachine as e:
            raise unittest.SkipTest(str(e))
        cls.addClassCleanup(cls.machine.stop)
        cls.deb = build(BUILD, cls.folder)
        with open(os.path.join(SUPPORT, "stdio_tools.py")) as file:
            cls.machine.put("/opt/stdio_tools.py", file.read())

    def install(self, deb):
        with open(deb, "rb") as file:
            self.machine.put("/tmp/holdfast.deb", file.read())
        self.machine.run("dpkg", "--force-confdef", "-i", "/tmp/holdfast.deb")

    def said(self, *command, ok=0):
        return self.machine.run(*command, ok=ok).stdout.strip()

    def state(self, field):
        return self.said("systemctl", "show", "-P", field, "holdfast")

    def until(self, ready, what):
        end = time.monotonic() + 20
        while not ready():
            if time.monotonic() > end:
                self.fail(f"{what}: not within 20 s\n" + self.said("journalctl", "-u", "holdfast", "-n", "30", "--no-pager"))
            time.sleep(0.05)

    def is_ready(self):
        return self.machine.run("holdfast", "list", ok=None).returncode == 0

    def configure(self, text):
        self.machine.put(f"/{CONF}", text)

    def submit(self, submission, *more):
        self.machine.put("/tmp/run.json", json.dumps(submission))
        return json.loads(self.said("holdfast", "submit", "/tmp/run.json", "-o", "json", *more))

    def test_from_installation_to_purge(self):
        self.install(self.deb)
        self.until(self.is_ready, "ready after the installation")
        self.assertEqual(self.said("systemctl", "is-enabled", "holdfast"), "enabled")
        first = self.state("MainPID")
        self.assertNotEqual(self.said("stat", "-c", "%u", f"/proc/{first}"), "0")

        with self.subTest("tools are added while it runs, and a tool server over stdio works within the unit's walls"):
            shipped = self.said("cat", f"/{CONF}")
            self.configure(shipped.replace("servers: {}", TOOLS))
            self.said("systemctl", "reload", "holdfast")
            self.until(lambda: "local" in self.said("holdfast", "tools"), "the reload")
            self.assertEqual(self.submit(CALL, "--wait", "--timeout", "20s")["status"], "succeeded")
            self.assertEqual(self.state("MainPID"), first)
        kept = self.submit({"name": "kept", "mode": "open", "deadline": "1h"})["id"]

        with self.subTest("it comes back after a kill"):
            self.said("systemctl", "kill", "-s", "KILL", "holdfast")
            self.until(lambda: self.state("MainPID") not in ("0", first) and self.is_ready(), "the start after a kill")
            self.assertIn('"waiting"', self.said("holdfast", "get", kept, "-o", "json", ok=5))
        second = self.state("MainPID")

        with self.subTest("an upgrade restarts it with the new binary, and keeps the configuration and the runs"):
            mine = self.said("cat", f"/{CONF}")
            self.install(newer(self.deb, self.folder))
            self.until(self.is_ready, "ready after the upgrade")
            self.assertNotIn(self.state("MainPID"), ("0", second))
            self.assertIn("99.0", self.said("dpkg-query", "-W", "holdfast"))
            self.assertEqual(self.said("cat", f"/{CONF}"), mine)
            self.assertIn('"waiting"', self.said("holdfast", "get", kept, "-o", "json", ok=5))
            self.assertEqual(self.submit(CALL, "--wait", "--timeout", "20s")["status"], "succeeded")

        with self.subTest("a stop is clean, and a mistake in the configuration is not started again and again"):
            self.said("systemctl", "stop", "holdfast")
            self.assertEqual((self.state("ActiveState"), self.state("Result"), self.state("ExecMainStatus")), ("inactive", "success", "0"))
            self.configure("nonsense: 1\n")
            self.machine.run("systemctl", "start", "holdfast", ok=None)
            self.until(lambda: self.state("ActiveState") == "failed", "the end by a mistake")
            self.assertEqual((self.state("ExecMainStatus"), self.state("NRestarts")), ("2", "0"))
            self.configure(mine)
            self.said("systemctl", "start", "holdfast")
            self.until(self.is_ready, "ready again")

        with self.subTest("removed, it is stopped and gone but for configuration and ledger; purged, only the ledger is left"):
            self.said("dpkg", "-r", "holdfast")
            self.assertEqual(self.said("systemctl", "is-active", "holdfast", ok=3), "inactive")
            self.assertFalse(self.machine.exists("/usr/bin/holdfast") or self.machine.exists("/lib/systemd/system/holdfast.service"))
            self.assertTrue(self.machine.exists(f"/{CONF}"))
            self.said("dpkg", "-P", "holdfast")
            self.assertFalse(self.machine.exists("/etc/holdfast"))
            self.assertTrue(self.machine.exists("/var/lib/private/holdfast/holdfast.db"))
            self.assertEqual(self.state("LoadState"), "not-found")
            self.assertEqual(self.said("find", "/etc/systemd/system", "-name", "holdfast*"), "")


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2, warnings="ignore")
