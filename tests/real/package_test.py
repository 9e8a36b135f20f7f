"""The Debian package: built, installed into a folder of its own, started as its unit says, upgraded, removed, purged.
Usage: package_test.py BUILD_FOLDER [unittest arguments]
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from deb import CONF, build, newer, run  # noqa: E402
from product import Product  # noqa: E402

BUILD = None


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="holdfast-package-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.deb = build(BUILD, cls.folder)

    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="root-", dir=self.folder)
        for name in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "usr/bin", "lib/systemd/system"):
            os.makedirs(self.path(name))
        for name in ("status", "available"):
            open(self.path("var/lib/dpkg", name), "w").close()

    def path(self, *names):
        return os.path.join(self.root, *names)

    def dpkg(self, *arguments):
        # Its dependencies are those of the system that built it (looked at below), not of the empty folder.
        return run("dpkg", f"--root={self.root}", "--force-script-chrootless", "--force-depends", "--force-not-root", "--force-confdef",
                   "--log=/dev/null", *arguments)

    def installed(self):
        """Every file of the folder that is not dpkg's own, nor the system's note on units."""
        return sorted(os.path.relpath(os.path.join(folder, name), self.root) for folder, _, names in os.walk(self.root) for name in names
                      if "/var/lib/dpkg" not in folder and "/deb-systemd-helper" not in folder and "/etc/systemd" not in folder)

    def start(self):
        """As the unit would: its command, in its working directory, with its folders."""
        with open(self.path("lib/systemd/system/holdfast.service")) as file:
            unit = file.read()
        command = re.search(r"^ExecStart=(.*)$", unit, re.M)[1]
        self.assertEqual(command, "/usr/bin/holdfast serve --config /etc/holdfast/holdfast.yaml")
        state = self.path(re.search(r"^WorkingDirectory=/(.*)$", unit, re.M)[1])
        os.makedirs(state, exist_ok=True)
        product = Product(self.path("usr/bin/holdfast"), state)
        product.config = self.path(CONF)
        self.addCleanup(lambda: product.running() and product.kill())
        product.start()
        return product

    def edit(self):
        """The operator's own configuration: free ports."""
        with open(self.path(CONF)) as file:
            text = file.read()
        with open(self.path(CONF), "w") as file:
            file.write(text.replace("127.0.0.1:4653", "127.0.0.1:0").replace("127.0.0.1:4654", "127.0.0.1:0"))

    def verifiable(self, unit):
        """The unit with the commands where this folder has them."""
        with open(unit) as file:
            text = file.read().replace("=/usr/bin/holdfast ", f"={self.path('usr/bin/holdfast')} ")
        copy = os.path.join(tempfile.mkdtemp(dir=self.folder), "holdfast.service")
        with open(copy, "w") as file:
            file.write(text)
        return copy

    def test_it_says_what_it_needs(self):
        fields = run("dpkg-deb", "-f", self.deb)
        depends = re.search(r"^Depends: (.*)$", fields, re.M)[1]
        names = [re.match(r"[^ (|]+", part.strip())[0] for part in depends.split(",")]
        for library in ("libc6", "libstdc++6", "libsqlite3-0", "libssl3", "libyaml-cpp0.7"):
            self.assertIn(library, names)
        self.assertTrue(any(name.startswith("libcurl") for name in names) and any(name.startswith("libcpp-httplib") for name in names), names)
        self.assertFalse([name for name in names if name.endswith("-dev")], names)
        for name in set(names) - {"init-system-helpers"}:
            self.assertIn("installed", run("dpkg-query", "-W", "-f", "${db:Status-Status}", name), name)

    def test_its_files_are_in_their_places(self):
        listing = run("dpkg-deb", "-c", self.deb)
        for mode, name in (("-rwxr-xr-x", "./usr/bin/holdfast"), ("-rw-r--r--", f"./{CONF}"), ("-rw-r--r--", "./lib/systemd/system/holdfast.service"),
                           ("-rw-r--r--", "./usr/share/doc/holdfast/docs/operations.md"), ("-rw-r--r--", "./usr/share/doc/holdfast/copyright"), ("-rw-r--r--", "./usr/share/holdfast/openapi.yaml")):
            self.assertRegex(listing, rf"(?m)^{mode} root/root .* {re.escape(name)}$")
        self.assertEqual(run("dpkg-deb", "-I", self.deb, "conffiles").split(), [f"/{CONF}"])

    def test_its_unit_is_understood_and_closed(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze here")
        self.dpkg("-i", self.deb)
        unit = self.path("lib/systemd/system/holdfast.service")
        # Words that systemd does not know are said on stderr, and are no error to it.
        verified = subprocess.run(["systemd-analyze", "verify", "--man=no", self.verifiable(unit)], capture_output=True, text=True, timeout=60)
        self.assertEqual((verified.returncode, verified.stderr), (0, ""))
        verdict = run("systemd-analyze", "security", "--offline=true", "--threshold=25", unit)
        self.assertRegex(verdict, r"Overall exposure level for holdfast.service: [012]\.")

    def test_installed_started_upgraded_removed_and_purged(self):
        self.dpkg("-i", self.deb)
        self.edit()
        with open(self.path(CONF)) as file:
            mine = file.read()
        product = self.start()
        run_id = product.request("POST", "/v1/runs", '{"name": "kept", "mode": "open"}', [("Idempotency-Key", "one")]).json["id"]
        self.assertEqual(product.request("GET", "/readyz", admin=True).status, 200)
        self.assertEqual(product.terminate(), 0)

        self.dpkg("-i", newer(self.deb, self.folder))
        self.assertIn("99.0", run("dpkg-query", f"--admindir={self.path('var/lib/dpkg')}", "-W", "-f", "${Version}", "holdfast"))
        with open(self.path(CONF)) as file:
            self.assertEqual(file.read(), mine)
        product = self.start()
        answer = product.request("GET", f"/v1/runs/{run_id}")
        self.assertEqual((answer.status, json.loads(answer.body)["status"]), (200, "waiting"))
        self.assertEqual(product.terminate(), 0)

        self.dpkg("-r", "holdfast")
        left = self.installed()
        self.assertIn(CONF, left)
        self.assertFalse([name for name in left if name.startswith(("usr/", "lib/"))], left)
        self.dpkg("-P", "holdfast")
        left = self.installed()
        self.assertTrue(left and all(name.startswith("var/lib/holdfast/") for name in left), left)
        self.assertIn("var/lib/holdfast/holdfast.db", left)
        self.assertFalse(os.path.exists(self.path("etc/holdfast")))


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2, warnings="ignore")
