"""bench/host_model.py: which part decides on one, two and four GPUs, and at what rate."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "bench" / "host_model.py"
FIGURES = {"reading_threads": {"1": 12, "2": 24, "4": 32},
           "reads": [{"threads": 8, "GBps": 1.0}, {"threads": 12, "GBps": 60.0}, {"threads": 24, "GBps": 90.0},
                     {"threads": 32, "GBps": 96.0}]}


class HostModel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name, "figures.json")
        self.file.write_text(json.dumps(FIGURES), encoding="utf-8")

    def run_script(self, slide_mb, gpu_ms):
        return subprocess.run([sys.executable, "-B", SCRIPT, self.file, "--slide-mb", slide_mb, "--gpu-ms", gpu_ms,
                               "--copy-gbps", "50"], capture_output=True, text=True, check=False)

    def rows(self, slide_mb, gpu_ms):
        done = self.run_script(slide_mb, gpu_ms)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()[2:]

    def test_gpus_decide_for_slides_of_few_bytes(self):
        self.assertEqual(self.rows("400", "25"), ["| 1 | 40.0 | 125.0 | 150.0 | 40.0 | GPU |",
                                                  "| 2 | 80.0 | 250.0 | 225.0 | 80.0 | GPU |",
                                                  "| 4 | 160.0 | 500.0 | 240.0 | 160.0 | GPU |"])

    def test_copies_decide_for_large_ones_until_the_host_does(self):
        self.assertEqual(self.rows("800", "2"), ["| 1 | 500.0 | 62.5 | 75.0 | 62.5 | copies |",
                                                 "| 2 | 1000.0 | 125.0 | 112.5 | 112.5 | host |",
                                                 "| 4 | 2000.0 | 250.0 | 120.0 | 120.0 | host |"])

    def test_other_files_and_values_are_refused(self):
        self.assertEqual(self.run_script("0", "2").returncode, 2)
        for text in "", "[]", "{}", '{"reads": [], "reading_threads": {"1": 12}}':
            self.file.write_text(text, encoding="utf-8")
            done = self.run_script("800", "2")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
            self.assertIn("figures.json: no figures of host_bandwidth", done.stderr)


if __name__ == "__main__":
    unittest.main()
