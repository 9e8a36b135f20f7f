"""A machine of its own with systemd as its first process: namespaces, and a throw-away layer over this system's files. Needs root."""
import os
import shutil
import subprocess
import tempfile
import time

# Runs in the new namespaces; $1 is an empty folder. The kernel's own settings, and what this machine starts by itself, are out of reach.
BOOT = r"""
set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 scratch "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
cd "$1/root"
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,ro,bind proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/pts dev/shm tmp/outside
for device in null zero full random urandom tty; do touch dev/$device; mount --bind /dev/$device dev/$device; done
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
rm -rf etc/systemd/system/*.wants usr/sbin/policy-rc.d
: > etc/machine-id
pivot_root . tmp/outside
umount -l /tmp/outside
exec env -i container=holdfast-test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=basic.target --show-status=0
"""


class NoMachine(Exception):
    """This machine can't carry another one, for the reason given."""


def cgroups():
    with open("/proc/mounts") as f:
        for line in f:
            _, place, kind, *_ = line.split()
            if kind == "cgroup2":
                return place
    raise NoMachine("no cgroup2 file system is mounted")


class Machine:
    """Boots in the constructor. `run` runs a command in it."""

    def __init__(self, limit=30.0):
        if os.geteuid() != 0:
            raise NoMachine("only root may make one")
        for program in ("/lib/systemd/systemd", "unshare", "nsenter", "pivot_root"):
            if not shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin"):
                raise NoMachine(f"there is no {program}")
        self.folder, self.process = tempfile.mkdtemp(prefix="holdfast-machine-"), None
        os.mkdir(os.path.join(self.folder, "root"))
        self.group = os.path.join(cgroups(), os.path.basename(self.folder))
        try:
            self.make_group()
            self.boot(limit)
        except BaseException:
            self.stop()
            raise

    def make_group(self):
        try:
            os.mkdir(self.group)
        except OSError as e:
            raise NoMachine(f"no group of its own for its processes: {e}") from e

    def boot(self, limit):
        with open(os.path.join(self.folder, "log"), "wb") as log:
            join = f'echo $$ > "{self.group}/cgroup.procs" && exec "$@"'  # before the namespace of cgroups begins there
            self.process = subprocess.Popen(
                ["sh", "-c", join, "sh", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--net", "--cgroup",
                 "sh", "-c", BOOT, "sh", os.path.join(self.folder, "root")], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/")
        end = time.monotonic() + limit
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                with open(os.path.join(self.folder, "log"), errors="replace") as log:
                    raise NoMachine("systemd does not start here: " + (log.read().strip()[-300:] or "it never answers"))
            time.sleep(0.05)

    def first(self):
        """The machine's first process, as this one counts."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as f:
            return f.read().split()[0]

    def answers(self):
        try:
            return self.run("systemctl", "is-system-running", "--wait", ok=None).stdout.strip() in ("running", "degraded")
        except (OSError, IndexError):
            return False

    def run(self, *command, ok=0, text=None):
        """The finished command. `ok`: the exit code that it must have, None for any."""
        enter = ["nsenter", "-t", self.first(), "-m", "-p", "-n", "-u", "-i", "-C", "-r", "-w"]
        stdin = {"stdin": subprocess.DEVNULL} if text is None else {"input": text}
        done = subprocess.run([*enter, *command], capture_output=True, timeout=60, **stdin,
                              text=not isinstance(text, bytes), env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"})
        if ok is not None and done.returncode != ok:
            raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def put(self, path, content):
        self.run("sh", "-c", 'mkdir -p "$(dirname "$1")" && cat > "$1"', "sh", path, text=content)

    def exists(self, path):
        return self.run("test", "-e", path, ok=None).returncode == 0

    def stop(self):
        """Its processes and groups end with it; what was mounted goes with the namespace."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait(20)
        end = time.monotonic() + 10
        while os.path.exists(self.group) and time.monotonic() < end:
            for folder, _, _ in os.walk(self.group, topdown=False):
                try:
                    os.rmdir(folder)
                except OSError:
                    time.sleep(0.01)  # its last process is still ending
        shutil.rmtree(self.folder, ignore_errors=True)
