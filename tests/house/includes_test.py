#!/usr/bin/env python3
"""The include check finds what it is for, on made-up trees."""
import os
import subprocess
import sys
import tempfile
import unittest

import includes


class Tree(unittest.TestCase):
    def faults(self, **sources):
        """Faults of a tree with these files; `__` stands for `/` and a trailing `_h` or `_cpp` for the ending."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in sources.items():
                path = os.path.join(root, name.replace("__", "/").replace("_cpp", ".cpp").replace("_h", ".h"))
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            return includes.faults(root)

    def bad(self, fragment, **sources):
        found = self.faults(**sources)
        self.assertEqual(len(found), 1, found)
        self.assertIn(fragment, found[0])

    def good(self, **sources):
        self.assertEqual(self.faults(**sources), [])

    def test_every_arrow_that_runs_up_or_sideways_is_found(self):
        for layer, below in includes.BELOW.items():
            for target in includes.BELOW:
                line = f'#include "holdfast/{target}/x.h"\n'
                allowed = target == layer or target in below
                with self.subTest(f"{layer} -> {target}"):
                    self.assertEqual(self.faults(**{f"src__{layer}__a_cpp": line}) == [], allowed)
                    self.assertEqual(self.faults(**{f"src__{layer}__deep__a_cpp": line.replace("holdfast/", "")}) == [], allowed)
                    self.assertEqual(self.faults(**{f"include__holdfast__{layer}__a_h": line}) == [], allowed)

    def test_the_design_of_the_house(self):
        for layer, target in (("core", "policy"), ("policy", "run"), ("run", "ledger"), ("ledger", "tools"), ("tools", "ledger"), ("ledger", "engine"),
                              ("tools", "engine"), ("engine", "api"), ("engine", "http"), ("http", "engine"), ("http", "run"), ("api", "cli")):
            self.assertNotIn(target, includes.BELOW[layer])

    def test_the_line_is_named(self):
        self.bad("src/core/a.cpp:3:", src__core__a_cpp='// one\n\n#  include  <holdfast/run/run.h>\n')

    def test_a_path_that_climbs_is_followed(self):
        self.bad("policy must not include ../run/b.h", src__policy__a_cpp='#include "../run/b.h"\n', src__run__b_h="")
        self.good(src__run__a_cpp='#include "b.h"\n', src__run__b_h="")

    def test_comments_are_no_includes_and_strings_are_no_comments(self):
        self.good(src__policy__a_cpp='// #include <thread>\n/*\n#include <fstream>\nsteady_clock::now()\n*/\n')
        self.bad("a.cpp:2: policy has no I/O", src__policy__a_cpp='const char* url = "http://x/*";\n#include <thread>\n')

    def test_decisions_have_no_io_clock_or_randomness(self):
        for layer in includes.PURE_LAYERS:
            for header in ("fstream", "filesystem", "unistd.h", "sys/socket.h", "sys/random.h", "random", "thread", "mutex", "curl/curl.h", "sqlite3.h", "SQLiteCpp/Database.h"):
                with self.subTest(f"{layer} {header}"):
                    self.bad("must not include " + header, **{f"src__{layer}__a_cpp": f"#include <{header}>\n"})
                    self.good(**{f"src__ledger__a_cpp": f"#include <{header}>\n"})
            for call in ("std::chrono::system_clock::now()", "SystemClock c;", "auto c = std::chrono::steady_clock::now;", "std::time(nullptr)", "rand()", "system_random()", "std::random_device d;"):
                with self.subTest(f"{layer} {call}"):
                    self.assertTrue(self.faults(**{f"src__{layer}__a_cpp": f"auto f() {{ {call}; }}\n"}))
            for call in ("deadline_time(x)", "run.time()", "const Instant now", "random.up_to(3)", "seeded_random(1)"):
                with self.subTest(f"{layer} {call}"):
                    self.good(**{f"src__{layer}__a_cpp": f"auto f() {{ {call}; }}\n"})

    def test_the_http_library_stays_where_it_is_tamed(self):
        self.good(src__http__a_cpp="#include <httplib.h>\n")
        for layer in ("core", "tools", "engine", "api", "cli"):
            self.bad("httplib.h is for src/http alone", **{f"src__{layer}__a_cpp": "#include <httplib.h>\n"})

    def test_public_headers_are_light_and_lean_on_nothing_private(self):
        for header in ("nlohmann/json.hpp", "curl/curl.h", "sqlite3.h", "SQLiteCpp/SQLiteCpp.h", "spdlog/spdlog.h", "openssl/evp.h"):
            with self.subTest(header):
                self.bad("a public header must not need", include__holdfast__engine__a_h=f"#include <{header}>\n")
                self.good(src__engine__a_cpp=f"#include <{header}>\n")
        self.assertTrue(self.faults(include__holdfast__http__a_h="#include <httplib.h>\n"))
        self.bad("which is private", include__holdfast__run__a_h='#include "run/machine_detail.h"\n')

    def test_a_file_outside_the_layers_and_an_empty_tree_are_faults(self):
        self.bad("no layer", src__util__a_cpp="")
        self.bad("no layer", src__a_cpp="")
        self.good(src__precompiled_h="#include <mutex>\n")
        self.bad("no sources", other__a_cpp="")

    def test_the_exit_status_says_it(self):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "src/core"))
            for text, status in (("#include <string>\n", 0), ('#include "run/a.h"\n', 1)):
                with open(os.path.join(root, "src/core/a.cpp"), "w", encoding="utf-8") as file:
                    file.write(text)
                done = subprocess.run([sys.executable, includes.__file__, root], stdout=subprocess.DEVNULL, check=False)
                self.assertEqual(done.returncode, status)


if __name__ == "__main__":
    unittest.main()
