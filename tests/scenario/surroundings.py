"""Words about what surrounds the product: its files, its log, its memory, a small disk. A mixin of the runner's World."""
import os
import re
import subprocess

import expectations

SLACK = float(os.environ.get("HOLDFAST_TEST_SLACK", "1"))  # of processor time and memory: what a sanitizer costs beyond the program


class NotHere(Exception):
    """This machine can't carry the scenario out."""


class Surroundings:
    volumes, marks = (), {}

    def path(self, name):
        return os.path.join(self.product.folder, name)

    # --- a small disk ---

    def do_volume(self, size):
        """A file system of this size at `volume`, where the configuration puts its database."""
        os.mkdir(self.path("volume"))
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", self.path("volume")], capture_output=True, text=True)
        if made.returncode:
            raise NotHere("a file system can't be mounted here: " + made.stderr.strip())
        self.volumes = (self.path("volume"),)

    def do_fill(self):
        """Not a byte is left on the volume."""
        with open(self.path("volume/filler"), "ab", buffering=0) as out:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while out.write(b"\0" * size) == size:
                        pass
                except OSError:
                    pass

    def do_free(self):
        os.truncate(self.path("volume/filler"), 0)

    def wait_for_ready(self):
        self.until(lambda: self.product.request("GET", "/readyz").status == 200, "/readyz")

    def do_environment(self, name, value):
        """`environment TOKEN abc`: of the product, from its next start. `./x` is made a path."""
        self.product.environment[name] = self.path(value[2:]) if value.startswith("./") else value

    def unmount(self):
        for volume in self.volumes:
            subprocess.run(["umount", "-l", volume], capture_output=True)

    # --- log, processor, memory ---

    def used(self):
        with open(f"/proc/{self.product.process.pid}/stat") as f:
            ticks = sum(map(int, f.read().rpartition(")")[2].split()[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def peak(self):
        with open(f"/proc/{self.product.process.pid}/status") as f:
            return int(re.search(r"VmHWM:\s+(\d+) kB", f.read())[1]) / 1024

    def lines(self):
        with open(self.path("err.log"), errors="replace") as f:
            return f.read().count("\n")

    def do_mark(self):
        """From here on log lines, processor time and memory are counted."""
        self.marks = {"lines": self.lines(), "used": self.used(), "peak": self.peak()}

    def expect_lines(self, wanted):
        lines = self.lines() - self.marks["lines"]
        if not expectations.within(lines, wanted):
            return f"{lines} log lines: {self.product.errors()!r}"

    def expect_busy(self, wanted):
        """Processor time since the mark."""
        busy = self.used() - self.marks["used"]
        if not expectations.within(busy / SLACK, wanted):
            return f"{busy:.2f} s of processor time"

    def expect_memory(self, wanted):
        """MiB above the mark, at most at any time."""
        more = max(0.0, self.peak() - self.marks["peak"])  # the kernel counts pages roughly
        if not expectations.within(more / SLACK, wanted):
            return f"{more:.1f} MiB more"

    def expect_nowhere(self, *words):
        """This text is in no file of the product (database, its log, messages) and in no answer."""
        text = " ".join(words).encode()
        found = []
        for folder, _, names in os.walk(self.product.folder):
            for name in names:
                with open(os.path.join(folder, name), "rb") as f:
                    if text in f.read() and name not in ("holdfast.yaml",):
                        found.append(name)
        pages = [("/v1/runs", False), ("/v1/unknowns", True), ("/v1/breakers", True), ("/v1/tools", True), ("/v1/audit", True), ("/metrics", True)]
        pages += [(f"/v1/runs/{run_id}{part}", False) for run_id in self.run_ids for part in ("", "/attempts", "/events")]
        for page, admin in pages:
            if text in self.product.request("GET", page, admin=admin).body:
                found.append(page)
        if found:
            return f"it is in {', '.join(found)}"
