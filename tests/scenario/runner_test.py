"""The runner's own tests; they need no product."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import expectations  # noqa: E402
import runner  # noqa: E402
import scenario_file  # noqa: E402

TEXT = """# A title
# of two lines

[rows]
name | status
one  | 500
two  | 503

[config]
servers: {api: {http: {base_url: "@api@"}}}   # plain: api.w

[tools]
api.w #1: effect; status <status> {"a": [1]}
api.w #*: reset

[submit a]
{"name": "x"}

[do]
start
submit a
  key K
# nothing

[expect]
run a failed
"""


class Files(unittest.TestCase):
    def setUp(self):
        with tempfile.NamedTemporaryFile("w", suffix=".scenario", delete=False) as f:
            f.write(TEXT)
        self.path = f.name

    def tearDown(self):
        os.unlink(self.path)

    def test_a_file_becomes_one_scenario_per_row(self):
        variants = scenario_file.parse(self.path)
        self.assertEqual([name for name, _ in variants], ["one", "two"])
        scenario = variants[1][1]
        self.assertEqual(scenario.title, "A title of two lines")
        self.assertEqual(scenario.tools[0][1], 'api.w #1: effect; status 503 {"a": [1]}')
        self.assertEqual([line for _, line in scenario.do], ["start", "submit a key K"])
        self.assertEqual(scenario.submissions["a"].strip(), '{"name": "x"}')

    def test_a_world_fills_in_urls_and_knows_the_plain_tools(self):
        with tempfile.TemporaryDirectory() as folder:
            world = runner.World(scenario_file.parse(self.path)[0][1], "/bin/false", folder)
            with open(os.path.join(folder, "holdfast.yaml")) as f:
                self.assertIn(world.faults.listener("api").url, f.read())
            self.assertEqual(world.plain, {"api.w"})
            self.assertTrue(world.run(), "a product that doesn't start is a failure")
            world.stop()


class Words(unittest.TestCase):
    def test_json_is_one_word(self):
        self.assertEqual(runner.words_of('resolve a.w landed {"a b": 1} -> 409'), ["resolve", "a.w", "landed", '{"a b": 1}', "->", "409"])

    def test_alternatives_absence_and_ranges(self):
        self.assertTrue(expectations.same(None, "-"))
        self.assertTrue(expectations.same("b", "a/b"))
        self.assertFalse(expectations.same("c", "a/b"))
        self.assertTrue(expectations.within(2.2, "2s..2.5s"))
        self.assertFalse(expectations.within(1.9, "2s.."))
        self.assertFalse(expectations.within(2, "1"))


if __name__ == "__main__":
    unittest.main()
