"""The example that scripts/start shows: one nightly run over three real tool servers, one of whose answers gets lost.

Usage: nightly.py [--keep | --stop] [--binary FILE]
"""
import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request

import kept
from real_servers import FILES, ROOT, end, free_port, missing, spawn, start_everything, wait_until

EXAMPLE = os.path.dirname(os.path.abspath(__file__))
READY = re.compile(r"^holdfast ready client=\S+ admin=\S+$", re.MULTILINE)


def say(text=""):
    print(text, flush=True)


class Failed(Exception):
    pass


def require(condition, sentence):
    if not condition:
        raise Failed(sentence)


class Example:
    def __init__(self, binary, folder, keep):
        self.binary, self.folder, self.keep = binary, folder, keep
        self.processes, self.office = {}, None
        self.environment = dict(os.environ)

    def path(self, name):
        return os.path.join(self.folder, name)

    def text(self, name):
        with open(self.path(name)) as file:
            return file.read()

    # --- start ----------------------------------------------------------------------------------------------------------

    def start(self):
        os.makedirs(self.path("files"))
        with open(self.path("files/journal.txt"), "w") as journal:
            journal.write("The journal of the nightly runs.\n-- end --\n")
        shutil.copy(os.path.join(EXAMPLE, "nightly.json"), self.path("nightly.json"))
        office = self.processes["office"] = spawn([sys.executable, "-B", os.path.join(EXAMPLE, "office.py")], self.path("office.log"))
        everything = free_port()
        self.processes["everything"] = start_everything(everything, self.path("everything.log"))
        wait_until(lambda: self.text("office.log").endswith("\n"), office, "the office")
        self.office = f"http://127.0.0.1:{self.text('office.log').split()[0]}"
        self.write_configuration(everything)
        server = self.processes["holdfast"] = spawn([self.binary, "serve", "--config", "holdfast.yaml"], self.path("holdfast.log"), cwd=self.folder,
                                                    stdout=open(self.path("holdfast.out"), "wb"))
        wait_until(lambda: READY.search(self.text("holdfast.out")), server, "holdfast")
        self.write_environment()

    def write_configuration(self, everything):
        values = {"CLIENT_PORT": free_port(4653) if self.keep else free_port(), "ADMIN_PORT": free_port(4654) if self.keep else free_port(),
                  "EVERYTHING_PORT": everything, "OFFICE_PORT": self.office.rsplit(":", 1)[1], "FILES_SERVER": FILES,
                  "FILES_FOLDER": self.path("files")}
        with open(os.path.join(EXAMPLE, "holdfast.yaml")) as file:
            text = re.sub(r"@([A-Z_]+)@", lambda found: str(values[found[1]]), file.read())
        with open(self.path("holdfast.yaml"), "w") as file:
            file.write(text)

    def write_environment(self):
        client, admin = re.search(r"client=(\S+) admin=(\S+)", self.text("holdfast.out")).groups()
        own = {"HOLDFAST_URL": f"http://{client}", "HOLDFAST_ADMIN_URL": f"http://{admin}", "OFFICE_URL": self.office,
               "NO_PROXY": "127.0.0.1,localhost"}
        self.environment.update(own)
        self.environment["PATH"] = os.path.dirname(self.binary) + os.pathsep + self.environment["PATH"]
        with open(self.path("env"), "w") as file:
            file.writelines(f"export {name}={shlex.quote(value)}\n" for name, value in own.items())
            file.write(f'export PATH={shlex.quote(os.path.dirname(self.binary))}:"$PATH"\n')

    def stop(self):
        for name in ("holdfast", "everything", "office"):
            if name in self.processes:
                end(self.processes.pop(name))

    # --- look -----------------------------------------------------------------------------------------------------------

    def holdfast(self, *arguments, show=True, expect=0):
        if show:
            say("  $ holdfast " + " ".join(shlex.quote(a) for a in arguments))
        done = subprocess.run([self.binary, *arguments], env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        if show:
            say("".join(f"    {line}\n" for line in done.stdout.splitlines()))
        require(expect in (None, done.returncode), f"`holdfast {arguments[0]}` ended with {done.returncode}, not {expect}: {done.stdout}")
        return done.stdout.strip()

    def totals(self):
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{self.office}/totals", timeout=10) as answer:
            return json.load(answer)

    def effects(self):
        """What the tools themselves say was asked and done."""
        totals = self.totals()
        lines = self.text("files/journal.txt").count("acme: charge-1")
        say(f"    charge    {totals['charge']['requests']} requests, {totals['charge']['effects']} charge")
        say(f"    announce  {totals['announce']['requests']} request,  {totals['announce']['effects']} announcement")
        say(f"    journal   {lines} line in files/journal.txt\n")
        require(totals["charge"] == {"requests": 2, "effects": 1}, f"the charge was not made exactly once: {totals}")
        require(totals["announce"] == {"requests": 1, "effects": 1}, f"the announcement was not made exactly once: {totals}")
        require(lines == 1, f"the journal has {lines} lines of this run")
        return totals

    # --- the story ------------------------------------------------------------------------------------------------------

    def show(self):
        say("1. Submit a run: a read, a charge with a key, a line through MCP over stdio, an announcement, a report.")
        say("   The first answers of `charge` and `announce` get lost after the work is done.")
        run = self.holdfast("submit", "nightly.json", "--key", "nightly-1", "--wait", "-o", "ids", expect=None).splitlines()[0]
        say("2. What happened. `charge` was sent again with the same key; `announce` knows no key and was not.")
        self.holdfast("get", run, expect=3)
        say("3. The announcement may have been made. Nothing proves it, so it waits for a person.")
        self.holdfast("unknowns")
        say("4. Ask the tools: it was made, once.")
        made = self.effects()["last_announcement"]
        say("5. Say so, and the run goes on from there.")
        write = self.holdfast("unknowns", "-o", "ids", show=False)
        result = json.dumps({"id": made["id"]})
        self.holdfast("resolve", write, "--landed", "--note", "the office lists it", "--result", result)
        self.holdfast("watch", run, "--timeout", "60s", show=False)
        self.holdfast("get", run)
        say("6. Every effect, counted at the tools:")
        self.effects()
        say("7. The same submission once more is the same run, and nothing is done again.")
        again = self.holdfast("submit", "nightly.json", "--key", "nightly-1", "--wait", "-o", "ids").splitlines()[0]
        require(again == run, f"the second submission became another run: {again}")
        self.effects()


def interrupted(number, _frame):
    raise KeyboardInterrupt(signal.Signals(number).name)


def next_steps(example):
    where = os.path.relpath(example.path("env"))
    say(f"""Still running, in {os.path.relpath(example.folder)}. What to type next:
    . {where}
    holdfast list
    holdfast submit {os.path.relpath(example.path('nightly.json'))} --wait
    holdfast tools
    curl "$OFFICE_URL/totals"
    curl "$HOLDFAST_ADMIN_URL/metrics"
    ./scripts/start --stop""")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--stop", action="store_true")
    parser.add_argument("--binary", default=os.path.join(ROOT, "build", "release", "bin", "holdfast"))
    options = parser.parse_args()
    if options.stop:
        say("Stopped." if kept.stop() else "Nothing is running.")
        return 0
    if missing():
        say(missing())
        return 1
    if options.keep:
        kept.stop()
        shutil.rmtree(kept.FOLDER, ignore_errors=True)
        os.makedirs(kept.FOLDER)
    folder = kept.FOLDER if options.keep else tempfile.mkdtemp(prefix="holdfast-start-")
    example = Example(os.path.abspath(options.binary), folder, options.keep)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    keep = False
    try:
        say("Starting server-everything (MCP over HTTP), the office (plain HTTP) and Holdfast.\n")
        example.start()
        example.show()
        keep = options.keep
        if keep:
            kept.remember(example.processes.values())
            next_steps(example)
        return 0
    except KeyboardInterrupt as why:
        say(f"\nStopped by {why}.")
        return 130
    except (Failed, RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        say(f"\nThis is not what should happen: {error}")
        for log in ("holdfast.log", "holdfast.out", "everything.log"):
            if os.path.exists(example.path(log)):
                say(f"--- the end of {log}\n{example.text(log)[-2000:]}")
        return 1
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        if not keep:
            example.stop()
            if not options.keep:
                shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
