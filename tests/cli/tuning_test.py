"""Seeing and tuning from outside: `PIPELINE=path/to/pipeline tuning_test.py [CLASS ...]`."""

import pathlib
import re
import unittest

from program_test import Case, run

CONFIGS = pathlib.Path(__file__).parents[2] / "configs"


class DryRun(Case):
    def test_says_what_would_be_done_and_does_nothing(self):
        slide = self.slide()
        result = run("--backend", "cpu", "--threads", 2, "--out", self.out, "--dry-run", slide, cwd=self.folder)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(list(self.folder.iterdir()), [])
        self.assertIn("CPU, 2 threads", result.stdout)
        self.assertIn("1024 x 768", result.stdout)
        self.assertRegex(result.stdout, r"1 slide, .*, 35 windows, 1 batch\n")
        done = run("--backend", "cpu", "--out", self.out, slide)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.rows()[0]["windows"], "35")
        self.assertIn("are skipped", run("--out", self.out, "--dry-run", slide).stdout)

    def test_slides_that_would_fail(self):
        result = run("--backend", "cpu", "--dry-run", self.folder / "none.svs", self.slide())
        self.assertEqual((result.returncode, result.stderr), (1, ""))
        self.assertRegex(result.stdout, r"would fail  .*none.svs: can't be opened: No such file")

    def test_gpus_that_are_not_here(self):
        result = run("--config", CONFIGS / "h200x4.toml", "--dry-run", "--assume-gpu", "H200", self.slide())
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"on +4 x h200, fused-256 \(assumed: ")
        self.assertRegex(result.stdout, r"GPU +\d+\.\d+ GiB of each; ")
        self.assertIn("(GPU)", result.stdout)  # where tiles are decoded

    def test_refuses_what_could_not_run(self):
        small = self.slide()
        self.assertOneLine(run("--dry-run", "--assume-gpu", "k80", small), 2, "one of a40, a100, h100, h200")
        self.assertOneLine(run("--assume-gpu", "a40", small), 2, "goes with --dry-run")
        self.assertOneLine(run("--backend", "cpu", "--dry-run", "--assume-gpu", "a40", small), 2, "pipeline.backend")
        self.assertOneLine(run("--set", "input.io=cufile", "--dry-run", small), 2, "input.io")
        self.assertOneLine(
            run("--set", "pipeline.memory_mib=400000", "--dry-run", "--assume-gpu", "a40", small), 2,
            "lower pipeline.memory_mib")

    def test_the_memory_that_configurations_name(self):
        for file in sorted(CONFIGS.glob("*.toml")):
            with self.subTest(file=file.name):
                text = file.read_text()
                said = re.search(r"# Memory, by `pipeline ([^`]*)`:\n((?:#   .*\n)+)", text)
                self.assertIsNotNone(said, "names no memory")
                result = run(*said.group(1).split(), cwd=CONFIGS.parent)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                lines = [line for line in result.stdout.splitlines() if line.startswith(("host ", "GPU "))]
                self.assertEqual(said.group(2), "".join(f"#   {line}\n" for line in lines))


if __name__ == "__main__":
    unittest.main()
