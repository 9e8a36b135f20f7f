"""Clients and an operator that go on whatever dies: they repeat what was not answered, with the same key."""
import random
import threading
import zlib

TOOLS = [("api", "read"), ("api", "plain"), ("api", "keyed"), ("api", "checked"), ("crm", "look"), ("crm", "post"), ("files", "append")]
WEIGHTS = [3, 4, 4, 2, 1, 2, 2]


class Client(threading.Thread):
    def __init__(self, world, number):
        super().__init__(daemon=True)
        self.world, self.number, self.draws = world, number, random.Random(f"{world.seed}/{number}")
        self.stop, self.made = threading.Event(), 0

    def run(self):
        try:
            while not self.stop.is_set() and not self.world.over.is_set():
                self.made += 1
                name = f"c{self.number}-{self.made}"
                if self.draws.random() < 0.25:
                    self.open_run(name)
                else:
                    self.plan(name)
        except Exception as e:  # a client that dies would hide everything after it
            self.world.problem(f"client {self.number}: {type(e).__name__}: {e}")

    def step(self, name, number):
        server, tool = self.draws.choices(TOOLS, WEIGHTS)[0]
        return {"id": f"s{number}", "server": server, "tool": tool, "args": {"m": f"{name}/s{number}"}}

    def submit(self, name, body):
        """The run's id. What was answered once must be answered so for ever."""
        self.world.submitted.add(name)
        answer = self.world.insist("POST", "/v1/runs", body, [("Idempotency-Key", name)])
        if answer is None:
            return None
        if answer.status not in (200, 201):
            self.world.problem(f"submit {name}: {answer.status} {answer.body[:200]}")
            return None
        run_id, before = answer.json["id"], self.world.promised.get(name)
        if before not in (None, run_id):
            self.world.problem(f"{name} was {before} and is {run_id} now")
        self.world.promised[name] = run_id
        return run_id

    def plan(self, name):
        steps = [self.step(name, i) for i in range(self.draws.choice([1, 1, 2, 3, 5]))]
        for step in steps:
            if self.draws.random() < 0.3:
                step["after"] = []
            if self.draws.random() < 0.3:
                step["on_failure"] = "continue"
        body = {"name": name, "steps": steps}
        run_id = self.submit(name, body)
        if run_id is None:
            return
        if self.draws.random() < 0.2:
            self.submit(name, body)
        if self.draws.random() < 0.05:
            self.expect(self.world.insist("POST", f"/v1/runs/{run_id}/cancel", {"reason": "changed my mind"}), f"cancel {name}", 200)
        if self.draws.random() < 0.5:
            self.expect(self.world.insist("GET", f"/v1/runs/{run_id}?wait={self.draws.choice([50, 300, 1000])}ms"), f"get {name}", 200)

    def open_run(self, name):
        run_id = self.submit(name, {"name": name, "mode": "open"})
        if run_id is None:
            return
        for i in range(self.draws.choice([1, 2, 3])):
            answer = self.world.insist("POST", f"/v1/runs/{run_id}/steps?wait=500ms", self.step(name, i))
            self.expect(answer, f"step {i} of {name}", 200, 201, 409)  # 409: the deadline has passed meanwhile
            if answer is None or answer.status == 409 or answer.json["status"] not in ("succeeded", "failed"):
                return  # its run ends by its deadline, or waits for a verdict
        self.expect(self.world.insist("POST", f"/v1/runs/{run_id}/finish", {"status": "succeeded", "result": None}), f"finish {name}", 200, 409)

    def expect(self, answer, what, *wanted):
        if answer is not None and answer.status not in wanted:
            self.world.problem(f"{what}: {answer.status} {answer.body[:200]}")


class Operator(threading.Thread):
    """Settles unknown writes by what the tool's side has recorded, once nothing of the write can still be on its way."""

    def __init__(self, world):
        super().__init__(daemon=True)
        self.world, self.settled = world, 0

    def run(self):
        while not self.world.over.wait(0.3):
            answer = self.world.ask("GET", "/v1/unknowns?state=open&limit=200", admin=True)
            if answer is None or answer.status != 200:
                continue
            try:
                self.settle([u for u in answer.json["items"] if zlib.crc32(u["id"].encode()) % 3])
            except Exception as e:
                self.world.problem(f"operator: {type(e).__name__}: {e}")
                return

    def settle(self, unknowns):
        # An unknown's connection is closed: past the fence, what it carried has been seen. Nobody can say that of a pipe.
        if not unknowns or not self.world.fence():
            return
        facts = self.world.facts()
        ended = {f["n"] for f in facts if f["what"] == "end"}
        still_out = {f["m"] for f in facts if f["what"] == "hit" and f["n"] not in ended}
        done = {f["m"] for f in facts if f["what"] == "effect"}
        for unknown in unknowns:
            run = self.world.ask("GET", f"/v1/runs/{unknown['run']}")
            if run is None or run.status != 200:
                continue
            marker = f"{run.json['name']}/{unknown['step']}"
            if marker in still_out or (unknown["server"] == "files" and marker not in done):
                continue
            verdict = {"verdict": "landed" if marker in done else "not_landed", "note": "looked at the tool's own log"}
            answer = self.world.ask("POST", f"/v1/unknowns/{unknown['id']}/resolve", verdict, admin=True)
            self.settled += answer is not None and answer.status == 200
