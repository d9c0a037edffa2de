"""scripts/run-cases.py with a made-up ctest and a made-up doctest program."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "run-cases.py"
# Knows cases whose names begin with `known`. Those with `bad` in it fail, those with `hangs` take a minute.
PROGRAM = r"""#!/usr/bin/env python3
import os, re, sys, time
cases = [case.replace("\\,", ",") for case in re.split(r"(?<!\\),", sys.argv[1].removeprefix("--test-case="))]
known = [case for case in cases if case.startswith("known")]
for case in known:
    print(f"0.5 s: {case}")
    if "hangs" in case: time.sleep(60)
    if "skips" in case: print("SKIPPED: " + os.environ["WHY"])
print(f"[doctest] test cases:  {len(known)} |  {len(known)} passed")
sys.exit(1 if any("bad" in case for case in known) else 77 if all("skips" in case for case in known) else 0)
"""


class RunCases(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program = self.executable("a_test", PROGRAM)

    def executable(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def entry(self, case, timeout=30, **properties):
        properties |= {"TIMEOUT": timeout, "WORKING_DIRECTORY": str(self.folder), "ENVIRONMENT": ["WHY=no reason"]}
        return {"name": f"a_test:{case}", "command": [self.program, "--test-case=" + case.replace(",", "\\,")],
                "properties": [{"name": name, "value": value} for name, value in properties.items()]}

    def run_cases(self, *entries, unbuilt=()):
        listed, others = (json.dumps({"tests": tests}) for tests in (entries, unbuilt))
        self.executable("ctest", "#!/bin/sh\ncase \"$*\" in *_NOT_BUILT*) cat <<'END'\n"
                                 f"{others}\nEND\n;; *) cat <<'END'\n{listed}\nEND\n;; esac\n")
        return subprocess.run([sys.executable, SCRIPT, self.folder, "2", self.folder / "log", "-R", "x"], check=False,
                              capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"})

    def test_many_cases_run_in_few_processes(self):
        done = self.run_cases(*(self.entry(f"known {i}, of 40") for i in range(39)), self.entry("known one that skips"))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("40 cases in 3 processes, of which 0 failed\nSKIPPED: no reason\nSlowest:\n  0.50 s  known", done.stdout)
        self.assertEqual((self.folder / "log").read_text().count("0.5 s: "), 40)

    def test_a_case_that_fails_fails_the_run(self):
        done = self.run_cases(self.entry("known"), self.entry("known bad"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("status 1, 2 of 2 cases ran: ", done.stdout)

    def test_cases_that_all_are_skipped_pass(self):
        done = self.run_cases(self.entry("known one that skips"))
        self.assertEqual(done.returncode, 0, done.stdout)
        done = self.run_cases(self.entry("known one that skips"), self.entry("known bad one that skips"))
        self.assertEqual(done.returncode, 1)

    def test_a_case_that_the_program_does_not_know_fails_the_run(self):
        done = self.run_cases(self.entry("known"), self.entry("a name that was cut"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("status 0, 1 of 2 cases ran: ", done.stdout)

    def test_a_case_that_never_ends_is_ended(self):
        done = self.run_cases(self.entry("known that hangs", timeout=0.5))
        self.assertEqual(done.returncode, 1)
        self.assertIn("more than 0.5 s", done.stdout)

    def test_what_cases_need_is_made_before_them(self):
        maker = self.executable("maker", "#!/bin/sh\nexit 3\n")
        done = self.run_cases(self.entry("known", FIXTURES_REQUIRED=["models"]), {
            "name": "made", "command": [maker], "properties": [{"name": "FIXTURES_SETUP", "value": ["models"]}]})
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"status 3: {maker}", done.stdout)
        self.assertIn("1 cases in 1 processes, of which 1 failed", done.stdout)

    def test_a_program_that_is_not_built_fails_the_run(self):
        done = self.run_cases(self.entry("known"), unbuilt=[{"name": "b_test_NOT_BUILT"}])
        self.assertEqual(done.returncode, 1)
        self.assertIn("b_test_NOT_BUILT: build first", done.stderr)

    def test_no_case_is_a_mistake(self):
        done = self.run_cases()
        self.assertEqual(done.returncode, 1)
        self.assertIn("no case is selected", done.stderr)


if __name__ == "__main__":
    unittest.main()
