"""`holdfast backup` on a live server under load: the copy is whole, and a server starts on it.
Usage: backup_test.py BINARY [unittest arguments]
"""
import os
import subprocess
import threading

from bench import Bench, main
from rows import rows_of


class Backup(Bench):
    def test_a_copy_taken_under_load_is_whole_and_can_be_started(self):
        self.configure(servers={"api": self.server(go="/go")})
        product = self.product()
        accepted, stop = [], threading.Event()

        def load(worker):
            n = 0
            while not stop.is_set():
                accepted.append(self.submit(product, ("api", "go"), ("api", "go"), key=f"{worker}-{n}"))
                n += 1
        threads = [threading.Thread(target=load, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        try:
            self.wait_for(lambda: len(accepted) > 100, "load")
            self.wait_for(lambda: len(self.get(product, "/v1/runs?status=succeeded&limit=200").json["items"]) > 50, "runs that have ended")
            before = list(accepted)
            environment = {**product.environment, "HOLDFAST_ADMIN_URL": f"http://127.0.0.1:{product.admin[1]}"}
            copy = self.path("copy/holdfast.db")
            os.mkdir(self.path("copy"))
            taken = subprocess.run([self.binary, "backup", copy], env=environment, capture_output=True, text=True, timeout=60)
            self.assertEqual(taken.returncode, 0, taken.stderr)
            self.wait_for(lambda: len(accepted) > len(before) + 50, "load goes on")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        settled = {run: self.get(product, f"/v1/runs/{run}?wait=20s").json for run in before}
        again = subprocess.run([self.binary, "backup", copy], env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(again.returncode, 1, again.stderr)  # a backup never takes another file's place
        product.kill()

        self.assertEqual(os.stat(copy).st_mode & 0o777, 0o600)
        with rows_of(copy, self.binary) as database:
            database.row_factory = None
            self.assertEqual(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
            self.assertEqual(database.execute("PRAGMA foreign_key_check").fetchall(), [])
            gaps = database.execute("SELECT count(*) FROM (SELECT run_seq FROM events GROUP BY run_seq HAVING count(*) <> max(seq))").fetchone()
            self.assertEqual(gaps, (0,))
            done = {run for run, in database.execute("SELECT id FROM runs WHERE status = 'succeeded'")}
        self.configure(folder=self.path("copy"), servers={"api": self.server(go="/go")})
        restored = self.product(self.path("copy"))
        self.assertGreater(len(done), 50)
        for run in before:
            answer = self.get(restored, f"/v1/runs/{run}")
            self.assertEqual(answer.status, 200, f"{run} was accepted before the backup began")
            if run in done:
                self.assertEqual({**answer.json, "remaining_ms": 0}, {**settled[run], "remaining_ms": 0})


if __name__ == "__main__":
    main()
