"""scripts/gpu-check.sh and gpu_check_table.py: what is counted, merged and judged, and when they fail."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import gpu_check_table as checked  # noqa: E402

REPORT = """<?xml version="1.0" encoding="UTF-8"?>
<doctest binary="a_test" version="2.4.9">
  <TestSuite>
    <TestCase name="one &lt;is&gt; fine" filename="a" line="1">
      <OverallResultsAsserts successes="3" failures="0" test_case_success="true"/>
    </TestCase>
    <TestCase name="two wants more" filename="a" line="2">
SKIPPED: needs 2 GPUs
      <OverallResultsAsserts successes="0" failures="0" test_case_success="true"/>
    </TestCase>
    <TestCase name="left out" filename="a" line="3" skipped="true"/>
    <TestCase name="three is wrong" filename="a" line="4">
      <OverallResultsAsserts successes="0" failures="1" test_case_success="false"/>
    </TestCase>
"""
GOOD = """<TestCase name="fine" filename="a" line="1">
<OverallResultsAsserts successes="3" failures="0" test_case_success="true"/>
"""


def entry(name, value, target=None, direction="at_most", **more):
    return {"name": name, "value": value, "unit": "ms", "target": target, "direction": direction, **more}


class Counting(unittest.TestCase):
    def test_doctest_reports(self):
        self.assertEqual(checked.test_results(REPORT),
                         (["one <is> fine"], ["three is wrong"], ["two wants more (needs 2 GPUs)"]))

    def test_a_test_that_did_not_end_failed(self):
        cut = REPORT[:REPORT.index("      <OverallResultsAsserts successes=\"0\" failures=\"1\"")]
        self.assertEqual(checked.test_results(cut)[1], ["three is wrong (did not end)"])

    def figures(self, report, **files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                pathlib.Path(folder, name.replace("__", ".")).write_text(text, encoding="utf-8")
            return {row["name"]: row["value"] for row in report(folder)}

    def test_a_status_that_the_report_does_not_explain_is_a_failure(self):
        for end in ("\nEXIT 139\n", ""):
            self.assertEqual(self.figures(checked.tests_report, a__out=GOOD + end),
                             {"passed": 1, "failed": 1, "skipped": 0})
        # 77: all that ran was skipped.
        for end in ("\nEXIT 0\n", "\nEXIT 77\n"):
            self.assertEqual(self.figures(checked.tests_report, a__out=GOOD + end), {"passed": 1, "failed": 0, "skipped": 0})

    def test_findings_of_all_programs_add_up(self):
        end = "\nEXIT 0\n"
        self.assertEqual(
            self.figures(checked.sanitizer_report, a__out=GOOD + end, b__out=GOOD + end,
                         a__findings="========= ERROR SUMMARY: 2 errors\n",
                         b__findings="========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n"),
            {"tests_passed": 2, "tests_failed": 0, "findings": 3})

    def test_a_log_without_summary_is_no_finding_of_zero(self):
        for findings in ({}, {"a__findings": "========= Error: device not supported\n"}):
            made = self.figures(checked.sanitizer_report, a__out=GOOD + "\nEXIT 0\n", **findings)
            self.assertIsNone(made["findings"])

    def test_more_findings_than_are_printed(self):
        text = "========= ERROR SUMMARY: 300 errors\n========= ERROR SUMMARY: 280 errors were not printed.\n"
        made = self.figures(checked.sanitizer_report, a__out=GOOD + "\nEXIT 86\n", a__findings=text)
        self.assertEqual(made["findings"], 300)


class Table(unittest.TestCase):
    def table(self, reports, expected=""):
        """(exit status, text) of the program; reports are figures by program, or text as it is."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            files = []
            for program, figures in reports.items():
                file = folder / f"{program}.json"
                text = figures if isinstance(figures, str) else json.dumps({"device": "x", "figures": figures})
                file.write_text(text, encoding="utf-8")
                files.append(file)
            (folder / "expected").write_text(expected, encoding="utf-8")
            run = subprocess.run(
                [sys.executable, ROOT / "scripts" / "gpu_check_table.py", "table", "--device", "1 x GPU", "--driver",
                 "580", "--command", "gpu-check.sh", "--expected", folder / "expected", *files],
                capture_output=True, text=True)
            self.assertEqual(run.stderr, "")
            return run.returncode, run.stdout

    def test_verdicts(self):
        status, text = self.table({"a": [entry("met", 5.3, 5.5), entry("just", 5.5, 5.5),
                                         entry("rate", 340, 340, "at_least"), entry("known", 7.0), entry("told", 8.0, 1, "report")],
                                   "b": [entry("met", 171234.4, 171235)]})
        self.assertEqual(status, 0, text)
        for line in ("| a: met | 5.3 ms | <= 5.5 ms | pass |", "| a: just | 5.5 ms | <= 5.5 ms | pass |",
                     "| a: rate | 340 ms | >= 340 ms | pass |", "| a: known | 7 ms |  | - |", "| a: told | 8 ms |  | - |",
                     "| b: met | 171,234 ms | <= 171,235 ms | pass |"):
            self.assertIn(line + "\n", text)
        self.assertIn("1 x GPU, driver 580, ", text)

    def test_a_row_that_fails_fails_all(self):
        for row in (entry("slow", 6, 5.5), entry("rate", 339.9, 340, "at_least")):
            status, text = self.table({"a": [entry("met", 5.3, 5.5), row]})
            self.assertEqual(status, 1)
            self.assertIn("| **fail** |", text)

    def test_what_is_missing_fails(self):
        status, text = self.table({"a": [entry("met", 5.3, 5.5)]}, "# comment\na met\na other\nb met\n")
        self.assertEqual(status, 1)
        self.assertIn("| a: other |  |  | missing |\n| b: met |  |  | missing |\n", text)
        self.assertEqual(self.table({"a": [entry("met", None, 5.5)]})[0], 1)
        self.assertEqual(self.table({})[0], 1)

    def test_what_this_machine_cannot_have_does_not(self):
        status, text = self.table({"a": [entry("met", 5.3, 5.5), entry("file", None, 3, skipped="no cuFile")]},
                                  "a four gpus 4\n")
        self.assertEqual(status, 0)
        self.assertIn("| a: file |  | <= 3 ms | skipped |\n| a: four |  |  | skipped |\n", text)
        self.assertIn("- a: file: no cuFile\n- a: four: needs 4 GPUs", text)

    def test_targets_of_programs_that_give_none(self):
        batch = {"slide": "s", "tile": [256, 256], "tiles": 1024, "gpx_per_s": 30.5, "wrong": 0, "flagged": 0}
        whole = dict(batch, tiles=43348, gpx_per_s=300.0)
        expected = "a s_1024 at_least 25\na s_whole at_least 340\n"
        status, text = self.table({"a": json.dumps([batch, whole])}, expected)
        self.assertEqual(status, 1)
        self.assertIn("| a: s_1024 | 30.5 Gpx/s | >= 25 Gpx/s | pass |", text)
        self.assertIn("| a: s_whole | 300 Gpx/s | >= 340 Gpx/s | **fail** |", text)
        self.assertIn("| a: wrong_or_flagged | 0 | <= 0 | pass |", text)
        self.assertEqual(self.table({"a": json.dumps([batch])}, "a s_1024 at_least 25\n")[0], 0)
        self.assertEqual(self.table({"a": json.dumps([dict(batch, wrong=1)])})[0], 1)

    def test_converted_colours_are_compared_with_plain_ones_of_whole_slides(self):
        def rate(slide, gpx, tiles=43348):
            return {"slide": slide, "tile": [256, 256], "tiles": tiles, "gpx_per_s": gpx, "wrong": 0, "flagged": 0}

        rows = [rate("s_rgb", 200.0), rate("s_rgb", 100.0, 1024), rate("s_srgb", 190.0), rate("s_srgb", 10.0, 1024),
                rate("s_srgb_table", 150.0), rate("t_srgb", 50.0)]
        expected = "a s_srgb_whole_over_rgb at_least 0.9\na s_srgb_table_whole_over_rgb at_least 0.9\n"
        status, text = self.table({"a": json.dumps(rows)}, expected)
        self.assertEqual(status, 1)
        self.assertIn("| a: s_srgb_whole_over_rgb | 0.95 x | >= 0.9 x | pass |", text)
        self.assertIn("| a: s_srgb_table_whole_over_rgb | 0.75 x | >= 0.9 x | **fail** |", text)
        self.assertNotIn("t_srgb_whole_over_rgb", text)
        self.assertNotIn("1024_over", text)

    def test_published_architectures(self):
        def measured(name, seconds):
            return {"architecture": name, "decode": "cpu", "seconds_per_slide": seconds, "note": "" if seconds else "no room"}

        rows = [measured("B", 5.5), measured("B+", 3.5), measured("slidestream, a", 0.05), measured("slidestream, b", 0.06)]
        status, text = self.table({"published": json.dumps({"rows": rows})}, "published best_over_own at_least 70\n")
        self.assertEqual(status, 0, text)
        self.assertIn("| published: best_over_own | 70 x | >= 70 x | pass |", text)
        rows[1:2] = [measured("B+", None)]
        self.assertIn("| published: best_over_own | 110 x |", self.table({"published": json.dumps({"rows": rows})})[1])
        rows[2:] = [measured("slidestream, a", None)]
        status, text = self.table({"published": json.dumps({"rows": rows})}, "published best_over_own at_least 70\n")
        self.assertEqual(status, 1)
        self.assertIn("| published: best_over_own |  | >= 70 x | missing |", text)
        self.assertIn("B+ cpu: no room; slidestream, a cpu: no room", text)

    def test_reports_that_make_no_sense(self):
        for text in ("", "{", '[{"slide": "s"}]', "[3]", '{"figures": [{"value": 1}]}', '{"figures": [{"name": "a", "value": NaN}]}',
                     '{"figures": [{"name": "a", "value": "1"}]}', '{"figures": 3}', "[]",
                     '{"figures": [{"name": "a", "value": 1, "target": 1, "direction": "below"}]}'):
            status, output = self.table({"a": text})
            self.assertEqual(status, 1, text)
            self.assertIn("| a: report |  |  | missing |", output)


class Script(unittest.TestCase):
    """The whole of gpu-check.sh in a bundle whose programs are made up."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.bundle = pathlib.Path(self.folder.name, "bundle with space")
        self.tools = pathlib.Path(self.folder.name, "tools")
        for folder in (self.bundle / "bin", self.bundle / "bench", self.tools):
            folder.mkdir(parents=True)
        (self.bundle / ".slidestream-bundle").touch()
        for name in ("gpu-check.sh", "gpu_check_table.py"):
            shutil.copy(ROOT / "scripts" / name, self.bundle / "bin")
        (self.bundle / "gpu-tests.txt").write_text("a_test\n")
        (self.bundle / "bench" / "gpu_figures.txt").write_text("# comment\na_gpu_bench a_ms\ngpu_bench b_ms\n")
        self.program("bin/a_test", f"cat <<'END'\n{GOOD}END\n")
        for name in ("a", "b"):
            program = {"a": "a_gpu_bench", "b": "gpu_bench"}[name]
            figures = json.dumps({"figures": [entry(f"{name}_ms", 5, 6)]})
            self.program(f"bin/{program}", f"[[ $1 == --json ]] && echo '{figures}' >\"$2\"\n")
        self.tool("nvidia-smi", 'case "$1" in *name*) echo Made Up; echo Made Up ;; *) echo 580.1 ;; esac\n')
        self.tool("compute-sanitizer", """[[ $1 == --tool && $3 == --log-file ]] || exit 3
echo "========= ERROR SUMMARY: $(cat "$(dirname "$0")/findings" 2>/dev/null || echo 0) errors" >"$4"
shift 4
"$@"
""")

    def program(self, name, text):
        file = self.bundle / name
        file.write_text("#!/bin/bash\n" + text)
        file.chmod(0o755)

    def tool(self, name, text):
        self.program(f"../tools/{name}", text)

    def check(self, *arguments):
        environment = dict(os.environ, PATH=f"{self.tools}:{os.environ['PATH']}")
        return subprocess.run([self.bundle / "bin" / "gpu-check.sh", "--logs", pathlib.Path(self.folder.name, "logs"),
                               *arguments], capture_output=True, text=True, env=environment)

    def test_all_is_well(self):
        out = pathlib.Path(self.folder.name, "table.md")
        run = self.check("--out", out)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(out.read_text(), run.stdout)
        self.assertTrue(run.stdout.startswith("2 x Made Up, driver 580.1, "), run.stdout)
        for row in ("tests: passed | 1 | >= 1", "memcheck: findings | 0", "initcheck: findings | 0",
                    "synccheck: findings | 0", "racecheck: findings | 0", "a_gpu_bench: a_ms | 5 ms | <= 6 ms",
                    "gpu_bench: b_ms | 5 ms"):
            self.assertIn(f"| {row}", run.stdout)

    def test_parts(self):
        quick = self.check("--quick").stdout
        self.assertIn("memcheck: findings", quick)
        for absent in ("racecheck", "b_ms"):
            self.assertNotIn(absent, quick)
        self.assertNotIn("bench", self.check("--only", "tests").stdout.split("\n", 1)[1])
        self.assertNotIn("tests", self.check("--only", "bench").stdout)

    def test_published_architectures(self):
        with open(self.bundle / "bench" / "gpu_figures.txt", "a", encoding="utf-8") as file:
            file.write("published best_over_own at_least 70\n")
        self.program("bin/pipeline", 'echo made >"$3"\n')
        (self.bundle / "bench" / "published").mkdir()
        compare = self.bundle / "bench" / "published" / "compare.py"
        rows = [{"architecture": name, "decode": "", "seconds_per_slide": seconds, "note": ""}
                for name, seconds in (("B+", 3.0), ("slidestream", 0.03))]
        for text, status, row in (
                (f"import os, sys\nassert os.path.exists(sys.argv[1])\nprint({json.dumps({'rows': rows})!r})\n", 0,
                 "best_over_own | 100 x | >= 70 x | pass"),
                ("raise SystemExit(2)\n", 0, "best_over_own |  | >= 70 | skipped"),
                ("raise SystemExit(1)\n", 1, "report |  |  | missing")):
            compare.write_text(text)
            run = self.check("--only", "bench")
            self.assertEqual(run.returncode, status, run.stdout + run.stderr)
            self.assertIn(f"| published: {row} |", run.stdout)

    def test_decoders_of_jpeg2000(self):
        with open(self.bundle / "bench" / "gpu_figures.txt", "a", encoding="utf-8") as file:
            file.write("published_jpeg2000 own_over_nvjpeg2k at_least 200\n")
        (self.bundle / "bench" / "published").mkdir()
        script = self.bundle / "bench" / "published" / "jpeg2000.py"
        figures = {"figures": [{"name": "own_over_nvjpeg2k", "value": 300, "unit": "x", "target": 200,
                                "direction": "at_least"}]}
        for text, status, row in (
                (f"import sys\nassert sys.argv[3].endswith('bin/jpeg2000_gpu_bench')\nprint({json.dumps(figures)!r})\n", 0,
                 "own_over_nvjpeg2k | 300 x | >= 200 x | pass"),
                ("raise SystemExit(2)\n", 0, "own_over_nvjpeg2k |  | >= 200 | skipped"),
                ("raise SystemExit(1)\n", 1, "own_over_nvjpeg2k |  | >= 200 | missing")):
            script.write_text(text)
            run = self.check("--only", "bench")
            self.assertEqual(run.returncode, status, run.stdout + run.stderr)
            self.assertIn(f"| published_jpeg2000: {row} |", run.stdout)

    def test_networks(self):
        with open(self.bundle / "bench" / "gpu_figures.txt", "a", encoding="utf-8") as file:
            file.write("published_networks a_busy\npublished_networks b_over_alone\n")
        (self.bundle / "bench" / "published").mkdir()
        script = self.bundle / "bench" / "published" / "networks.py"
        figures = {"figures": [{"name": name, "value": 0.97, "unit": "", "target": target, "direction": "at_least"}
                               for name, target in (("a_busy", 0.95), ("b_over_alone", 0.98))]}
        for text, status, rows in (
                (f"import sys\nassert sys.argv[2].endswith('bin/pipeline')\nprint({json.dumps(figures)!r})\n", 1,
                 ("a_busy | 0.97 | >= 0.95 | pass", "b_over_alone | 0.97 | >= 0.98 | **fail**")),
                ("raise SystemExit(2)\n", 0, ("a_busy |  |  | skipped", "b_over_alone |  |  | skipped")),
                ("raise SystemExit(1)\n", 1, ("a_busy |  |  | missing", "b_over_alone |  |  | missing"))):
            script.write_text(text)
            run = self.check("--only", "bench")
            self.assertEqual(run.returncode, status, run.stdout + run.stderr)
            for row in rows:
                self.assertIn(f"| published_networks: {row} |", run.stdout)

    def test_failures_of_each_part(self):
        self.program("bin/a_test", "exit 139\n")
        self.assertEqual(self.check("--only", "tests").returncode, 1)
        self.setUp()
        (self.tools / "findings").write_text("2\n")
        self.assertEqual(self.check("--only", "sanitizer").returncode, 1)
        self.setUp()
        self.program("bin/gpu_bench", "exit 3\n")
        run = self.check("--only", "bench")
        self.assertEqual(run.returncode, 1)
        self.assertIn("| gpu_bench: exit_status | 3 | <= 0 | **fail** |", run.stdout)
        self.assertIn("| gpu_bench: b_ms |  |  | missing |", run.stdout)
        (self.bundle / "bin" / "gpu_bench").unlink()
        self.assertEqual(self.check("--only", "bench").returncode, 1)

    def test_what_it_cannot_do_without(self):
        self.tool("compute-sanitizer", "")
        (self.tools / "compute-sanitizer").unlink()
        if not shutil.which("compute-sanitizer") and not pathlib.Path("/usr/local/cuda/bin/compute-sanitizer").exists():
            run = self.check()
            self.assertEqual(run.returncode, 2)
            self.assertIn("compute-sanitizer is missing", run.stderr)
        self.tool("nvidia-smi", "exit 9\n")
        run = self.check("--only", "tests")
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertIn("no GPU", run.stderr)

    def test_usage(self):
        for arguments in (["--only", "nothing"], ["--only"], ["--unknown"], ["a", "b"]):
            self.assertEqual(self.check(*arguments).returncode, 2, arguments)


if __name__ == "__main__":
    unittest.main()
