"""bench/four_gpus.sh with a made-up machine: `PIPELINE=path/to/pipeline four_gpus_test.py`. Two GPUs are listed, runs go
over processors, and the benchmark writes one figure."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PIPELINE = os.environ["PIPELINE"]
SMI = """#!/bin/bash
case "$*" in
  -L) printf 'GPU 0: made up\\nGPU 1: made up\\n' ;;
  *name*) printf 'made up\\nmade up\\n' ;;
  *) echo 1.2.3 ;;
esac
"""
# Without --config FILE --set gpu.devices=[...], and with another threshold where a test wants other results on two GPUs.
RUN = f"""#!/bin/bash
if [[ "$1" != --config ]]; then exec {PIPELINE} "$@"; fi
devices="$4"
shift 4
if [[ -n "$DIFFERENT" && "$devices" == *,* ]]; then set -- --set analysis.smoothing_radius=1 "$@"; fi
exec {PIPELINE} --backend cpu "$@"
"""
BENCH = """#!/bin/bash
while [[ "$1" != --json ]]; do shift; done
echo '{"figures": [{"name": "one_slide_ms_1_gpus", "value": 12.5, "unit": "ms"}]}' >"$2"
"""


class FourGpus(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, text in (("bin/nvidia-smi", SMI), ("build/pipeline", RUN), ("build/bench/gpu_bench", BENCH)):
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            file.chmod(0o755)

    def run_script(self, **environment):
        environment = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "DIFFERENT": "", **environment}
        command = [ROOT / "bench" / "four_gpus.sh", "--small", "--dir", self.folder / "slides", "--out", self.folder / "table.md",
                   self.folder / "build"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)

    def test_the_table_has_a_row_for_each_number_of_gpus(self):
        done = self.run_script()
        self.assertEqual(done.returncode, 0, done.stderr)
        table = (self.folder / "table.md").read_text()
        self.assertIn("2 x made up", table)
        rows = re.findall(r"^\| (.+) \| ([12])(?: \| [0-9.]+){3} \| (\d+) % \| [0-9.]+ \| `\w+` \|$", table, re.M)
        self.assertEqual([row[:2] for row in rows], [(what, count) for what in (
            "4 headline slides", "16 mixed slides", "2 headline slides, a40x4.toml") for count in "12"])
        self.assertEqual([row[2] for row in rows[::2]], ["100"] * 3)
        self.assertIn("| one_slide_ms_1_gpus | 12.5 | ms |", table)
        self.assertFalse((self.folder / "slides").exists())

    def test_other_results_on_more_gpus_fail(self):
        done = self.run_script(DIFFERENT="1")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("results differ", done.stderr)

    def test_nothing_runs_without_a_gpu_or_over_a_folder_that_is_there(self):
        (self.folder / "slides").mkdir()
        done = self.run_script()
        self.assertEqual((done.returncode, "is there already" in done.stderr), (2, True))
        (self.folder / "slides").rmdir()
        (self.folder / "bin" / "nvidia-smi").write_text("#!/bin/bash\nexit 1\n")
        done = self.run_script()
        self.assertEqual((done.returncode, done.stderr), (2, "four_gpus.sh: no GPU is here\n"))


if __name__ == "__main__":
    unittest.main()
