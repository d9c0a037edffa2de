"""What `cmake --install` puts in place: `install_test.py CMAKE BUILD_DIR`."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CMAKE, BUILD = sys.argv[1:3] if len(sys.argv) > 2 else (None, None)

EXPECTED = (
    "bin/pipeline", "bin/slidestream-submit", "include/slidestream/pipeline.hpp", "lib*/**/libslidestream.a",
    "lib*/**/slidestreamConfig.cmake", "share/man/man1/pipeline.1",
    "share/bash-completion/completions/pipeline", "share/zsh/site-functions/_pipeline",
    "share/fish/vendor_completions.d/pipeline.fish", "share/slidestream/configs/demo.toml", "share/doc/*/README.md",
    "share/doc/*/LICENSE", "share/doc/*/docs/clusters.md", "share/doc/*/docs/images/report.png",
    "share/doc/*/examples/strip_means/CMakeLists.txt")


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        # Not where it was configured for.
        cls.prefix = pathlib.Path(folder.name, "a prefix")
        done = subprocess.run([CMAKE, "--install", BUILD, "--prefix", cls.prefix], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stdout[-2000:] + done.stderr)

    def run_installed(self, name, *arguments, **environment):
        return subprocess.run([self.prefix / "bin" / name, *arguments], cwd=self.prefix, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", **environment}, check=False)

    def test_everything_is_there(self):
        for pattern in EXPECTED:
            found = list(self.prefix.glob(pattern))
            self.assertTrue(found, f"{pattern} is missing")
            self.assertGreater(found[0].stat().st_size, 200, f"{pattern} is empty")
        self.assertFalse(list(self.prefix.rglob("__pycache__")))

    def test_both_programs_run(self):
        self.assertIn("Usage: pipeline", self.run_installed("pipeline", "--help").stdout)
        helped = self.run_installed("slidestream-submit", "--help")
        self.assertEqual(helped.returncode, 0, helped.stderr)
        self.assertIn("--gpus-per-node", helped.stdout)

    def test_nothing_is_under_the_gpl(self):
        """FFTW is; its place is bench/, which isn't installed."""
        libraries = subprocess.run(["ldd", self.prefix / "bin" / "pipeline"], capture_output=True, text=True, check=True)
        self.assertIn("libtbb", libraries.stdout)
        self.assertNotIn("fftw", libraries.stdout.lower())
        for file in self.prefix.glob("lib*/**/*.cmake"):
            self.assertNotIn("fftw", file.read_text(encoding="utf-8").lower(), file.name)
        (library,) = self.prefix.glob("lib*/**/libslidestream.a")
        names = subprocess.run(["nm", "--undefined-only", library], capture_output=True, text=True, check=True).stdout
        self.assertIn("kiss_fft", names)
        self.assertNotIn("fftw", names)

    def test_the_submitter_takes_the_program_beside_it(self):
        configuration = self.prefix / "share" / "slidestream" / "configs" / "cpu.toml"
        planned = self.run_installed("slidestream-submit", "share", "--nodes", "2", "--out", "results", "--config",
                                     configuration, "--dry-run")
        self.assertEqual(planned.returncode, 0, planned.stderr)
        self.assertIn(f"{self.prefix}/bin/pipeline", planned.stdout)
        other = shutil.which("true")
        planned = self.run_installed("slidestream-submit", "share", "--nodes", "2", "--out", "results", "--dry-run",
                                     PIPELINE=other)
        self.assertIn(f"command=({other} ", planned.stdout)

    def test_documents_lead_to_each_other(self):
        folder = next(self.prefix.glob("share/doc/*/README.md")).parent
        for document in [*folder.glob("*.md"), *folder.glob("docs/*.md")]:
            text = document.read_text(encoding="utf-8")
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text) + re.findall(r'src="([^":]+)"', text):
                self.assertTrue((document.parent / target).exists(), f"{document.name} leads to {target}")

    @unittest.skipUnless(shutil.which("man"), "needs man")
    def test_the_man_page_is_one(self):
        page = self.prefix / "share" / "man" / "man1" / "pipeline.1"
        shown = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, check=False,
                               env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "120", "LC_ALL": "C.UTF-8"})
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertIn("EXIT STATUS", shown.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
