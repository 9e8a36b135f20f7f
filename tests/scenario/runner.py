#!/usr/bin/env python3
"""Runs scenario files against the built binary: runner.py <binary> <file.scenario>... Exit 0 when all hold."""
import http.client
import json
import os
import re
import shutil
import shlex
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]
import behaviour  # noqa: E402
import expectations  # noqa: E402
import fault_server  # noqa: E402
import scenario_file  # noqa: E402
import secret_search as secrets  # noqa: E402
from listening import Listening  # noqa: E402
from load import Load  # noqa: E402
from operating import Operating  # noqa: E402
from planting import SECRET, planted  # noqa: E402
from product import Product  # noqa: E402
from surroundings import NotHere, Surroundings  # noqa: E402

PREAMBLE = "listen: 127.0.0.1:0\nadmin_listen: 127.0.0.1:0\n"
DATABASE = "database: holdfast.db\n"
WAIT_SECONDS = 15.0
EXIT_NOT_HERE = 77


class World(Listening, Load, Operating, Surroundings):
    """One variant of a scenario while it runs."""

    def __init__(self, scenario, binary, folder):
        self.scenario, self.faults, self.product = scenario, fault_server.FaultServer(), Product(binary, folder)
        self.runs, self.run_ids, self.submission_of, self.submitted_at, self.settled_at, self.ordered = {}, set(), {}, {}, {}, {}
        self.problems, self.timers, self.may_be_open, self.tried = [], [], False, set()
        self.product.environment["PLANTED_SECRET"] = SECRET
        self.product.watch_for(SECRET)
        self.faults.on_kill = self.product.kill
        self.plain = self.plain_tools()
        self.write_config(folder)
        for number, line in scenario.tools:
            self.plan(number, line)

    def plain_tools(self):
        """Tools named by a comment `# plain: api.w crm.w` of the configuration are held to one effect per step."""
        return {word for line in re.findall(r"# plain: (.*)", self.scenario.config) for word in line.split()}

    def write_config(self, folder):
        for name in set(re.findall(r"@(\w+)@", self.scenario.config)) - {"bridge"}:
            self.faults.listener(name)
        with open(os.path.join(folder, "holdfast.yaml"), "w") as f:
            own = "" if re.search("^database:", self.scenario.config, re.M) else DATABASE
            f.write(PREAMBLE + own + self.faults.fill(planted(self.scenario.config)))

    def plan(self, number, line):
        where, which, actions = re.fullmatch(r"(\S+) #(\d+|\*): (.*)", line).groups()
        try:
            self.tool(where).plan(which, behaviour.parse(actions))
        except ValueError as e:
            raise ValueError(f"line {number}: {e}") from e

    # --- looking ---

    def tool(self, where):
        listener, _, tool = where.partition(".")
        return self.faults.listener(listener).tool(tool)

    def get_id(self, run_id):
        answer = self.product.request("GET", f"/v1/runs/{run_id}")
        if answer.status != 200:
            raise AssertionError(f"run {run_id}: {answer.status} {answer.body[:200]}")
        return answer.json

    def get(self, name):
        return self.get_id(self.runs[name])

    def runs_of(self, submission):
        return {run_id for run_id, name in self.submission_of.items() if name == submission}

    def step(self, place):
        name, _, step = place.partition(".")
        return next(s for s in self.get(name)["steps"] if s["id"] == step)

    def pages(self, path, admin=False):
        items, cursor = [], None
        while True:
            answer = self.product.request("GET", path + (f"?cursor={cursor}" if cursor else ""), admin=admin).json
            if isinstance(answer, list):
                return answer
            items += answer["items"]
            cursor = answer.get("next_cursor")
            if not cursor:
                return items

    def rows_of(self, run_id):
        return self.pages(f"/v1/runs/{run_id}/attempts")

    def rows(self, place):
        name, _, step = place.partition(".")
        return [row for row in self.rows_of(self.runs[name]) if row["step"] == step]

    def events(self, name):
        return self.product.request("GET", f"/v1/runs/{self.runs[name]}/events?after=0").json["events"]

    def until(self, ready, what, limit=WAIT_SECONDS):
        """Asks again until it holds; the product's own long poll does the waiting where there is one."""
        end = time.monotonic() + limit
        while not ready():
            if time.monotonic() > end:
                raise AssertionError(f"{what}: not within {limit:g} s")
            time.sleep(0.01)

    # --- doing ---

    def do_start(self):
        self.product.start()

    def do_kill(self, word="", after="0ms"):
        """`kill`, or `kill in 20ms` for later."""
        if word != "in":
            self.product.kill()
            return
        timer = threading.Timer(behaviour.seconds(after), self.product.kill)
        self.timers.append(timer)
        timer.start()

    def do_restart(self):
        for timer in self.timers:
            timer.join()
        if self.product.running():
            self.product.kill()
        self.product.start()

    def do_terminate(self):
        self.check(self.product.terminate() == 0, "SIGTERM did not end in exit 0")

    def marked(self, name):
        """The submission's text, each step's arguments with a marker by which its requests are known. Text that is no JSON goes as it is."""
        text = fault_server.large(self.faults.fill(self.scenario.submissions[name]).replace("$big", "x" * (5 << 20)))
        try:
            body = json.loads(text)
            for step in body["steps"]:
                step.setdefault("args", {}).setdefault("m", f"{name.partition('~')[0]}.{step['id']}")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return text
        return json.dumps(body)

    def send(self, name, key, label):
        headers = [("Idempotency-Key", key)] if key else []
        self.submitted_at.setdefault(label, time.monotonic())
        answer = self.product.request("POST", "/v1/runs", self.marked(name), headers)
        if answer.status in (200, 201):
            self.runs[label] = answer.json["id"]
            self.run_ids.add(answer.json["id"])
            self.submission_of[answer.json["id"]] = name.partition("~")[0]
        return answer

    def do_submit(self, name, *words):
        """`submit a [as b] [key K] [times N] [-> STATUS [code]]`"""
        options = dict(zip(words[::2], words[1::2])) if "->" not in words else dict(zip(words[:words.index("->")][::2], words[:words.index("->")][1::2]))
        wanted = words[words.index("->") + 1:] if "->" in words else ("200/201",)
        label, times = options.get("as", name), int(options.get("times", 1))
        answers = [None] * times
        labels = [label if i == 0 else f"{label}#{i + 1}" for i in range(times)]

        def one(i):
            try:
                answers[i] = self.send(name, options.get("key"), labels[i])
            except (OSError, http.client.HTTPException) as e:
                self.problems.append(f"submit {name}: {type(e).__name__}: {e}")
        threads = [threading.Thread(target=one, args=(i,)) for i in range(times)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for answer in answers:
            if answer is None:
                continue
            self.check(str(answer.status) in wanted[0].split("/"), f"submit {name}: {answer.status} {answer.body[:300]}")
            if len(wanted) > 1:
                self.check(answer.json.get("code") == wanted[1], f"submit {name}: code {answer.json.get('code')}")

    def do_try(self, verb, *words):
        """A request that may lose its connection because the product dies."""
        self.tried.add(words[0])
        try:
            self.send(words[0], words[2] if "key" in words else None, words[0])
        except (OSError, http.client.HTTPException):
            pass

    def do_same(self, first, *others):
        """All of them are one run. What was only tried may have got no answer, and is then left out."""
        known = {self.runs[name] for name in (first, *others) if name in self.runs or name not in self.tried}
        self.check(len(known) == 1, f"{first} and {others} are {len(known)} runs")

    def do_distinct(self, *names):
        self.check(len({self.runs[n] for n in names}) == len(names), f"{names} are not {len(names)} runs")

    def do_wait(self, what, *words):
        """`wait a succeeded/failed [15s]`, `wait a settled`, `wait all a settled`, `wait hits api.w 2`, `wait step a.w waiting`, `wait dead`,
        `wait event a run.settled`"""
        if what in ("hits", "seen"):
            tool, count = self.tool(words[0]), int(words[1])
            self.until(lambda: (len(tool.hits) if what == "hits" else tool.seen) >= count, f"{count} requests at {words[0]}")
            return
        if what == "dead":
            self.until(lambda: not self.product.running(), "the product's end")
            return
        if what == "event":
            self.until(lambda: words[1] in [e["type"] for e in self.events(words[0])], f"event {words[1]}")
            return
        if hasattr(self, "wait_for_" + what):
            getattr(self, "wait_for_" + what)(*words)
            return
        if what == "all":
            for label in [n for n in self.runs if n.partition("#")[0] == words[0]]:
                self.do_wait(label, *words[1:])
            return
        if what == "step":
            self.until(lambda: self.step(words[0])["status"] in words[1].split("/"), f"step {words[0]} {words[1]}")
            return
        wanted = "succeeded/failed/cancelled/unknown" if words[0] == "settled" else words[0]
        limit = behaviour.seconds(words[1]) if len(words) > 1 else WAIT_SECONDS
        end = time.monotonic() + limit
        while True:
            left = max(1, int((end - time.monotonic()) * 1000))
            run = self.product.request("GET", f"/v1/runs/{self.runs[what]}?wait={min(left, 200 if 'waiting' in wanted or 'running' in wanted else 5000)}ms").json
            if run["status"] in wanted.split("/"):
                self.settled_at[what] = time.monotonic()
                return
            if time.monotonic() > end:
                raise AssertionError(f"run {what} is {run['status']} and not {wanted} after {limit:g} s: {json.dumps(run)[:600]}")

    def do_sleep(self, span):
        time.sleep(behaviour.seconds(span))

    def do_open(self, gate):
        self.faults.gate(gate).set()

    def do_forget(self, listener):
        self.faults.listener(listener).sessions.clear()

    def do_dead(self, listener, *actions):
        self.faults.listener(listener).dead = " ".join(actions)

    def do_refuse(self, listener):
        """Nobody listens there any more."""
        self.faults.listener(listener).close()

    def do_return(self, listener):
        """It listens again, at the same port."""
        self.faults.listener(listener).open(self.faults.listener(listener).port)

    def do_leave(self, _open):
        self.may_be_open = True

    def do_cancel(self, name):
        answer = self.product.request("POST", f"/v1/runs/{self.runs[name]}/cancel", '{"reason": "the scenario says so"}')
        self.check(answer.status == 200, f"cancel {name}: {answer.status} {answer.body[:200]}")

    def do_resolve(self, place, verdict, *words):
        """`resolve a.w landed [{"result": 1}] [-> 409]`"""
        status = words[words.index("->") + 1] if "->" in words else "200"
        text = " ".join(words[:words.index("->")] if "->" in words else words)
        body = {"verdict": verdict, "note": "looked it up"}
        if text:
            body["result"] = json.loads(text)
        write = self.step(place)["write"]["id"]
        if verdict == "not_landed" and status == "200":
            name, _, step = place.partition(".")
            self.ordered[f"{name}.{step}"] = self.ordered.get(f"{name}.{step}", 0) + 1
        answer = self.product.request("POST", f"/v1/unknowns/{write}/resolve", json.dumps(body), admin=True)
        self.check(str(answer.status) == status, f"resolve {place} {verdict}: {answer.status} {answer.body[:300]}")

    def check(self, holds, problem):
        if not holds:
            self.problems.append(problem)

    # --- the script ---

    def carry_out(self, number, line):
        words = words_of(line)
        if words[0] == "expect":
            words = words[1:]
        expected = expectations.WORDS.get(words[0]) or getattr(type(self), "expect_" + words[0], None)
        if expected:
            fault = expected(self, *words[1:])
            self.check(not fault, f"line {number}: {fault}; wanted: {line}")
            return
        before = len(self.problems)
        getattr(self, "do_" + words[0])(*words[1:])
        self.problems[before:] = [f"line {number}: {p}" for p in self.problems[before:]]

    def run(self):
        number = 0
        try:
            for number, line in self.scenario.do + self.scenario.expect:
                self.carry_out(number, line)
            self.problems += expectations.after_every_scenario(self)
            self.problems += secrets.after_every_scenario(self, SECRET)
        except NotHere:
            raise
        except Exception as e:
            self.problems.append(f"line {number}: {type(e).__name__}: {e}")
        return self.problems

    def stop(self):
        for timer in self.timers:
            timer.cancel()
        self.stop_listening()
        self.faults.stop()
        if self.product.running() and os.environ.get("HOLDFAST_TEST_END") == "terminate":
            self.do_terminate()  # a sanitizer looks for leaks when a process ends by itself
        if self.product.running():
            self.product.kill()
        self.unmount()


def words_of(line):
    """White space separates words; JSON in braces, and text in quotes, is one."""
    found = re.match(r"(.*?)\s(\{.*\}|\[.*\])(.*)$", line)
    if found:
        return shlex.split(found[1]) + [found[2]] + found[3].split()
    return shlex.split(line)


def run_file(path, binary):
    """The problems of all variants, and how many variants there are."""
    problems, variants = [], scenario_file.parse(path)
    for name, scenario in variants:
        folder = tempfile.mkdtemp(prefix="holdfast-scenario-")
        try:
            world = World(scenario, binary, folder)
        except ValueError as e:
            problems.append(f"{name}: {e}")
            shutil.rmtree(folder)
            continue
        try:
            found = world.run()
        finally:
            world.stop()
        problems += [f"{name}: {p}" for p in found]
        if found:
            problems.append(f"{name}: log: {world.product.errors()!r}")
        shutil.rmtree(folder, ignore_errors=True)
    return problems, len(variants)


def main(arguments):
    binary, *files = arguments
    failed = 0
    for path in files:
        try:
            problems, variants = run_file(path, os.path.abspath(binary))
        except NotHere as e:
            print(f"skip {os.path.basename(path)}: {e}")
            return EXIT_NOT_HERE
        print(f"{'FAIL' if problems else 'ok  '} {os.path.basename(path)} ({variants})")
        for problem in problems:
            print(f"     {problem}")
        failed += bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
