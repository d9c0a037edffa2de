"""The source distribution has what `pip install` of it needs, and nothing else: `sdist_test.py`. That it builds,
scripts/test-wheel.sh --sdist shows."""

import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What the build reads, and what somebody who has the sources alone needs to build; the files on top by name.
FOLDERS = {"cmake", "cuda", "docs", "include", "python", "scripts", "src"}
FILES = {".clang-format", ".clang-tidy", ".gitignore", "ARCHITECTURE.md", "CHANGELOG.md", "CITATION.cff", "CMakeLists.txt", "CMakePresets.json", "CONTRIBUTING.md", "SECURITY.md", "LICENSE",
         "PKG-INFO", "README.md", "pyproject.toml"}
MAKE = "import scikit_build_core.build as build, sys; print(build.build_sdist(sys.argv[1]))"


class Sdist(unittest.TestCase):
    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run([sys.executable, "-c", MAKE, folder], cwd=ROOT, capture_output=True, text=True)
            if "No module named 'scikit_build_core'" in made.stderr:
                print("SKIPPED: no scikit-build-core here, which makes the source distribution")
                self.skipTest("no scikit-build-core")
            self.assertEqual(made.returncode, 0, made.stderr)
            archive = pathlib.Path(folder) / made.stdout.split()[-1]
            version = re.search(r"project\(slidestream VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
            self.assertEqual(archive.name, f"slidestream-{version}.tar.gz")
            self.assertLess(archive.stat().st_size, 4 << 20)
            with tarfile.open(archive) as packed:
                names = {member.name.split("/", 1)[1] for member in packed.getmembers() if member.isfile()}
        self.assertEqual({name.split("/")[0] for name in names if "/" in name}, FOLDERS)
        self.assertLessEqual({name for name in names if "/" not in name}, FILES)
        known = subprocess.run(["git", "ls-files", "-z", "-c", "-o", "--exclude-standard", *sorted(FOLDERS - {"docs"})],
                               cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
        there = {name for name in known if name and os.path.isfile(ROOT / name)}
        self.assertEqual(there - names, set())
        self.assertEqual({name for name in names if "/" in name and not name.startswith("docs/")} - there, set())
        self.assertTrue(all(name.endswith(".md") for name in names if name.startswith("docs/")), names)


if __name__ == "__main__":
    unittest.main()
