"""A test that fails is never a skipped one: what programs and scripts that say `SKIPPED: ` end with."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = """
import unittest
class All(unittest.TestCase):
    def test_a(self): self.skipTest("no reason")
class Some(All):
    def test_b(self): pass
class Fails(All):
    def test_c(self):
        print("SKIPPED: no reason")
        self.fail()
class Told(Some):
    def test_d(self):
        print("SKIPPED: no reason")
class Class(All):
    @classmethod
    def setUpClass(cls): raise unittest.SkipTest("no reason")
unittest.main()
"""


class Program(unittest.TestCase):
    def status(self, *cases, count=None):
        more = {} if count is None else {"SLIDESTREAM_TEST_CASES": str(count)}
        return subprocess.run([os.environ["SKIPPING_CASES"], "--test-case=" + ",".join(cases)], check=False,
                              capture_output=True, env=os.environ | more).returncode

    def test_the_reason_begins_a_line(self):
        for case in "reports it", "says it":
            text = subprocess.run([os.environ["SKIPPING_CASES"], "--test-case=" + case], check=False, capture_output=True,
                                  text=True).stdout
            self.assertEqual(text.splitlines().count("SKIPPED: no reason"), 1, text)

    def test_skipped_if_nothing_else_ran(self):
        self.assertEqual(self.status("reports it"), 77)
        self.assertEqual(self.status("reports it", "says it"), 77)
        self.assertEqual(self.status("reports it", "passes"), 0)
        self.assertEqual(self.status("skips one part of two"), 0)
        self.assertEqual(self.status("passes"), 0)

    def test_what_fails_is_not_skipped(self):
        self.assertEqual(self.status("reports it and fails"), 1)
        self.assertEqual(self.status("says it", "reports it and fails"), 1)

    def test_a_case_that_is_missing_is_a_failure(self):
        self.assertEqual(self.status("passes", "gone", count=2), 1)
        self.assertEqual(self.status("passes", "says it", count=2), 0)


class Script(unittest.TestCase):
    def status(self, *arguments, text=SCRIPT, **environment):
        return self.ended(*arguments, text=text, **environment).returncode

    def ended(self, *arguments, text=SCRIPT, **environment):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "a_test.py"
            script.write_text(text)
            return subprocess.run([os.environ["PYTHON_TEST"], "-B", script, *arguments], check=False,
                                  capture_output=True, text=True, env=os.environ | environment)

    def test_how_many_are_skipped_is_told(self):
        for name, line in ("All", "SKIPPED: 1 of 1 cases"), ("Some", "SKIPPED: 1 of 2 cases"), ("Class", "SKIPPED: 1 of 0 cases"):
            self.assertIn(line, self.ended("-q", name).stdout)

    def test_skipped_if_nothing_else_ran(self):
        self.assertEqual(self.status("-q", "All"), 77)
        self.assertEqual(self.status("-q", "Class"), 77)
        self.assertEqual(self.status("-q", "Some"), 0)
        self.assertEqual(self.status("-q", "Told"), 0)
        self.assertEqual(self.status(text="print('SKIPPED: no reason')"), 77)

    def test_what_fails_is_not_skipped(self):
        self.assertEqual(self.status("-q", "Fails"), 1)
        self.assertEqual(self.status(text="print('SKIPPED: no reason'); raise SystemExit(3)"), 3)

    def test_what_ends_before_its_first_case_fails(self):
        self.assertEqual(self.status(text="print('Ran away')"), 1)
        self.assertEqual(self.status(text="import unittest; unittest.main(exit=False)"), 1)
        self.assertEqual(self.status(text="import os, unittest\nclass A(unittest.TestCase):\n"
                                          "    def test_a(self): os._exit(0)\nunittest.main()"), 1)

    def test_another_interpreter_may_be_named(self):
        self.assertEqual(self.status("-q", "Some", TEST_INTERPRETER="/bin/false"), 1)
        self.assertEqual(self.status(text="raise SystemExit(5)", TEST_INTERPRETER=sys.executable), 5)

    def test_a_program_with_sanitizers_is_waited_for_longer(self):
        plain = {name: value for name, value in os.environ.items() if name != "SANITIZED"}
        for more, seconds in ({}, 120), ({"SANITIZED": "1"}, 600):
            told = subprocess.run([sys.executable, "-B", "-c", "from time_limits import time_limit; print(time_limit(120))"],
                                  check=True, capture_output=True, text=True, cwd=ROOT / "tests" / "support", env=plain | more)
            self.assertEqual(told.stdout, f"{seconds}\n")


class Registered(unittest.TestCase):
    def test_every_script_is_skipped_by_its_status(self):
        runner = os.environ["PYTHON_TEST"]
        with tempfile.TemporaryDirectory() as folder:
            # Elsewhere, as CTest begins a log even to list tests, and the build folder's is being written.
            pathlib.Path(folder, "CTestTestfile.cmake").write_text(f'subdirs("{pathlib.Path(runner).parents[1]}")\n')
            listed = subprocess.run(["ctest", "-C", "Everything", "--show-only=json-v1"], check=True, capture_output=True,
                                    text=True, cwd=folder).stdout
        scripts = [test for test in json.loads(listed)["tests"] if test.get("command", [""])[0] == runner]
        self.assertTrue(scripts)
        for test in scripts:
            self.assertIn({"name": "SKIP_RETURN_CODE", "value": 77}, test["properties"], test["name"])

    def test_what_is_printed_decides_nothing_unless_it_is_all(self):
        for file in [ROOT / "cmake" / "Targets.cmake", *ROOT.glob("tests/**/CMakeLists.txt"),
                     *(ROOT / folder / "CMakeLists.txt" for folder in ("bench", "fuzz", "python"))]:
            # With it CTest doesn't look at the status.
            self.assertNotIn("PASS_REGULAR_EXPRESSION", file.read_text(), file)
            for expression in re.findall(r'SKIP_REGULAR_EXPRESSION\s+(\S+ ?)', file.read_text()):
                self.assertTrue(expression.startswith('"^'), f"{file}: {expression}")


if __name__ == "__main__":
    unittest.main()
