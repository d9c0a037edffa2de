"""scripts/bundle.sh makes a folder that runs from anywhere, with nothing in the environment: bundle_test.py BUILD_DIR"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = sys.argv.pop() if len(sys.argv) > 1 else None


def bundle(*arguments):
    return subprocess.run([ROOT / "scripts" / "bundle.sh", *arguments], capture_output=True, text=True)


class Bundle(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_the_program_runs_elsewhere(self):
        made = bundle("--parts", "program", BUILD, self.folder / "made")
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        self.assertNotIn("failed", made.stderr)
        again = bundle("--parts", "program", BUILD, self.folder / "made")
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        self.assertEqual([entry.name for entry in self.folder.iterdir()], ["made"])
        moved = shutil.move(self.folder / "made", self.folder / "a name with spaces")
        for arguments in (["synth", "--out", "s.svs", "--size", "1024x768"],
                          ["s.svs", "--out", "results", "--config", moved / "configs" / "cpu.toml"]):
            run = subprocess.run([moved / "bin" / "pipeline", *arguments], cwd=self.folder, env={}, capture_output=True,
                                 text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
        submit = subprocess.run([moved / "bin" / "slidestream-submit", "s.svs", "--nodes", "1", "--out", "o", "--dry-run"],
                                cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(submit.returncode, 0, submit.stderr)
        self.assertIn("a name with spaces/bin/pipeline", submit.stdout)
        loaded = subprocess.run(["ldd", moved / "bin" / "pipeline"], capture_output=True, text=True).stdout
        for name in ("libtiff", "libtbb", "libwebp", "libstdc++"):
            self.assertRegex(loaded, rf"{name}\S* => {moved}/bin/\.\./lib/")
        self.assertFalse(list(moved.glob("lib/libc.so*")) + list(moved.glob("lib/libcuda.so*")))

    def test_nothing_else_is_overwritten(self):
        (self.folder / "mine").write_text("mine")
        run = bundle("--parts", "program", BUILD, self.folder)
        self.assertEqual(run.returncode, 1)
        self.assertIn("is no bundle", run.stderr)
        self.assertEqual([entry.name for entry in self.folder.iterdir()], ["mine"])

    def test_refusals(self):
        for arguments in (["--parts", "programs"], ["--unknown"], ["a", "b", "c"]):
            self.assertEqual(bundle(*arguments).returncode, 2, arguments)
        run = bundle(self.folder, self.folder / "made")
        self.assertEqual(run.returncode, 1)
        self.assertIn("holds no build", run.stderr)


if __name__ == "__main__":
    unittest.main()
