"""scripts/profile.sh, with an nsys that only notes what it was asked."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts/profile.sh"


class Profile(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        # The tools that the script needs, and no nsys.
        for tool in "bash", "cat", "date", "dirname":
            (self.bin / tool).symlink_to(next(path for folder in os.environ["PATH"].split(":")
                                              if (path := pathlib.Path(folder) / tool).exists()))
        self.pipeline = self.program("a pipeline", 'exit 0')

    def program(self, name, text):
        file = self.bin / name
        file.write_text(f"#!{self.bin}/bash\n{text}\n")
        file.chmod(0o755)
        return file

    def run_script(self, *arguments):
        return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, cwd=self.folder,
                              env={"PATH": str(self.bin), "PIPELINE": str(self.pipeline)})

    def test_without_nsys_one_line_offers_the_trace(self):
        result = self.run_script("run.toml", "a.svs", "b.svs")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertIn("--config run.toml --trace trace.json a.svs b.svs", result.stderr)

    def test_usage(self):
        for arguments in [], ["run.toml"]:
            result = self.run_script(*arguments)
            self.assertEqual(result.returncode, 2)
            self.assertIn("usage: ", result.stderr)

    def test_nsys_gets_the_program_and_its_arguments(self):
        self.program("nsys", 'printf "%s\\n" "$@" >asked\nfor word; do case $word in --output=*) '
                             ': >"${word#--output=}.nsys-rep" ;; esac; done\nexit 3')
        result = self.run_script("run.toml", "a slide.svs")
        self.assertEqual((result.returncode, result.stderr), (3, ""))
        asked = (self.folder / "asked").read_text().splitlines()
        self.assertEqual(asked[0], "profile")
        self.assertIn("--trace=nvtx,cuda,osrt", asked)
        self.assertEqual(asked[-4:], [str(self.pipeline), "--config", "run.toml", "a slide.svs"])
        (report,) = self.folder.glob("*.nsys-rep")
        self.assertIn(f"nsys-ui {report.name}", result.stdout)

    def test_an_nsys_that_leaves_no_report(self):
        self.program("nsys", "exit 0")
        result = self.run_script("run.toml", "a.svs")
        self.assertEqual(result.returncode, 1)
        self.assertIn("left no", result.stderr)


if __name__ == "__main__":
    unittest.main()
