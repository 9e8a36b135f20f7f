"""The runner's own tests; they need no product."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import expectations  # noqa: E402
import planting  # noqa: E402
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


class Planting(unittest.TestCase):
    HEADER, VARIABLE = planting.HEADER, planting.VARIABLE

    def test_every_server_gets_the_secret_whatever_it_has_of_its_own(self):
        for config, wanted in (
                ('s: {http: {base_url: "@api@"}}', f's: {{headers: {{{self.HEADER}}}, http: {{base_url: "@api@"}}}}'),
                ('  s:\n    mcp: {url: "@api@/mcp"}', f'  s:\n    headers: {{{self.HEADER}}}\n    mcp: {{url: "@api@/mcp"}}'),
                ('    http: {base_url: "x"}\n    tools:\n      w: {}\n    headers: {A: b}', f'    http: {{base_url: "x"}}\n    tools:\n      w: {{}}\n    headers: {{{self.HEADER}, A: b}}'),
                ('    headers: {A: b}\n    mcp: {url: "x"}', f'    headers: {{{self.HEADER}, A: b}}\n    mcp: {{url: "x"}}'),
                ('  s:\n    headers: {A: b}\n    http: {base_url: "x"}\n  t:\n    http: {base_url: "y"}',
                 f'  s:\n    headers: {{{self.HEADER}, A: b}}\n    http: {{base_url: "x"}}\n  t:\n    headers: {{{self.HEADER}}}\n    http: {{base_url: "y"}}'),
                ('    mcp: {command: [a]}', f'    mcp: {{env: {{{self.VARIABLE}}}, command: [a]}}'),
                ('    mcp: {command: [a], env: {B: c}}', f'    mcp: {{command: [a], env: {{{self.VARIABLE}, B: c}}}}')):
            self.assertEqual(planting.planted(config), wanted)

    def test_a_configuration_that_would_leave_one_out_is_refused(self):
        for config in ("servers: {}", '    http:\n      base_url: "x"', 's: {headers: {A: b}, http: {base_url: "x"}}',
                       '  s:\n    http: {base_url: "x"}\n  t:\n    mcp: {env: {}, command: [a]}'):
            with self.assertRaises(ValueError, msg=config):
                planting.planted(config)


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
