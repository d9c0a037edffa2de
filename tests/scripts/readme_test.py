"""The list of commands in docs/commands.md, and README.md's part of it, run from top to bottom in a folder with configs/ alone:
`PIPELINE=path/to/pipeline readme_test.py`. The slide is a smaller one unless SLIDESTREAM_TEST_WIDE is set."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PIPELINE = pathlib.Path(os.environ["PIPELINE"])


class Readme(unittest.TestCase):
    @staticmethod
    def block(document, heading):
        """The lines of the first block below a heading."""
        text = (ROOT / document).read_text(encoding="utf-8")
        return re.search(rf"^## {heading}\n.*?^```\n(.*?)^```", text, re.S | re.M).group(1).splitlines()

    def test_every_use_works_after_those_above_it(self):
        lines = self.block("docs/commands.md", "By example")
        self.assertGreater(len(lines), 10)
        # README.md's are some of these.
        known = {re.split(" {2,}", line)[0] for line in lines}
        shown = {re.split(" {2,}", line)[0] for line in self.block("README.md", "Use")}
        self.assertGreater(len(shown), 4)
        self.assertLessEqual(shown, known)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            shutil.copytree(ROOT / "configs", folder / "configs")
            environment = {**os.environ, "PATH": f"{PIPELINE.parent}:{os.environ['PATH']}"}
            for line in lines:
                command, what = re.fullmatch(r"(\S.*?) {2,}(\S.*)", line).groups()
                if "SLIDESTREAM_TEST_WIDE" not in os.environ:
                    command = command.replace("8192x6144", "1024x768")
                done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                      capture_output=True, text=True, timeout=120, check=False)
                self.assertEqual(done.returncode, 0, f"{command} ({what}):\n{done.stderr}")
            for made in ("slidestream-out/slides.csv", "many/maps/other.npy", "demo/maps/slide.npy", "denser/corpus.json",
                         "my.toml", "slide.ome.tif", "trace.json", "swept/tuned.toml", "report.html"):
                self.assertTrue((folder / made).exists(), f"{made} is missing")


if __name__ == "__main__":
    unittest.main()
