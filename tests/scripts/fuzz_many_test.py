"""scripts/fuzz-many.sh with a made-up fuzzer: what it runs, adds up and says."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "fuzz-many.sh"


class FuzzMany(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        shutil.copy(SCRIPT, self.folder)

    def run_with(self, text, *arguments):
        fuzzer = self.folder / "fuzzer"
        fuzzer.write_text("#!/bin/bash\n" + text)
        fuzzer.chmod(0o755)
        return subprocess.run([self.folder / SCRIPT.name, *arguments], capture_output=True, text=True)

    def test_all_processes_count(self):
        result = self.run_with("""echo "$@" >>"${0%/*}/arguments"
seed="${1#-seed=}"
echo "stat::number_of_executed_units: ${seed}0"
echo "Done ${seed}0 runs in 1 second(s)"
""", "3", "7")
        self.assertEqual((result.returncode, result.stdout), (0, "60 executions in 3 of 3 processes\n"), result.stderr)
        lines = (self.folder / "arguments").read_text().splitlines()
        self.assertEqual(len({line.split()[0] for line in lines}), 3)
        for line in lines:
            self.assertIn(" -max_total_time=7 ", line)
            self.assertTrue(line.endswith(f" {self.folder}/found {self.folder}/corpus"), line)

    def test_what_is_found_is_said(self):
        result = self.run_with("""echo "stat::number_of_executed_units: 5"
[[ "$1" != -seed=2 ]] || { echo broken >"${0%/*}/findings/crash-1"; echo 'ERROR: it broke'; exit 77; }
echo 'Done 5 runs in 1 second(s)'
""", "2", "1")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stdout, f"10 executions in 2 of 2 processes\nfound: {self.folder}/findings/crash-1\n")
        self.assertIn("ERROR: it broke", result.stderr)

    def test_usage(self):
        for arguments in ((), ("1",), ("0", "5"), ("2", "x"), ("--pack", "jpeg2000")):
            self.assertEqual(self.run_with("exit 0\n", *arguments).returncode, 2)
        (self.folder / "fuzzer").unlink()
        result = subprocess.run([self.folder / SCRIPT.name, "1", "1"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn("no fuzzer in", result.stderr)


if __name__ == "__main__":
    unittest.main()
