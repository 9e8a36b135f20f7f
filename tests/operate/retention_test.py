"""`retention`: settled runs leave, and the API no longer knows them.
Usage: retention_test.py BINARY [unittest arguments]
"""
from bench import Bench, main


class Retention(Bench):
    def test_an_old_run_is_404_and_its_key_is_free(self):
        self.configure(retention="1s", servers={"api": self.server(go="/go")})
        product = self.product()
        old = self.submit(product, ("api", "go"), key="night-1")
        for path in ("", "/events", "/attempts"):
            self.assertEqual(self.get(product, f"/v1/runs/{old}{path}?wait=10s" if not path else f"/v1/runs/{old}{path}").status, 200)
        newest = self.submit(product, ("api", "go"))
        self.wait_for(lambda: self.get(product, f"/v1/runs/{old}").status == 404, "the run leaves")
        for path in ("/events", "/attempts", "/steps/s0"):
            answer = self.get(product, f"/v1/runs/{old}{path}")
            self.assertEqual((answer.status, answer.json["code"]), (404, "run_not_found"))
        self.assertEqual([run["id"] for run in self.get(product, "/v1/runs").json["items"]], [newest])
        self.assertNotEqual(self.submit(product, ("api", "go"), key="night-1"), old)
        self.assertTrue([line for line in self.log() if "deleted settled runs" in line["message"]])


if __name__ == "__main__":
    main()
