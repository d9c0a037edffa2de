"""scripts/check-units.py with a made-up build that compiles sources together."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check-units.py"
COMPILER = os.environ.get("CLANG") or shutil.which("clang++") or shutil.which("c++")


class CheckUnits(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def check(self, *entries, **sources):
        """A build of a unity file with `sources`, by name, which are all compiled with -DGIVEN=1, and of more `entries`."""
        for name, text in sources.items():
            (self.folder / f"{name}.cpp").write_text(text)
        unity = self.folder / "unity_0_cxx.cxx"
        unity.write_text("".join(f'#include "{self.folder}/{name}.cpp"\n' for name in sources))
        (self.folder / "compile_commands.json").write_text(json.dumps([
            {"directory": str(self.folder), "file": str(unity), "command": f"c++ -DGIVEN=1 -std=c++20 -O3 -o x.o -c {unity}"},
            {"directory": str(self.folder), "file": "/alone.cpp", "command": "c++ -c /alone.cpp"}, *entries]))
        return subprocess.run([sys.executable, SCRIPT, self.folder], capture_output=True, text=True, check=False,
                              env={**os.environ, "CLANG": COMPILER})

    def test_sources_that_include_what_they_use_pass(self):
        done = self.check(one="#include <vector>\nstd::vector<int> one;\n", two="int two = GIVEN;\n")
        self.assertEqual((done.returncode, done.stdout), (0, "2 sources, 0 of which don't compile alone\n"))

    def test_a_source_that_lives_on_another_ones_includes_is_named(self):
        done = self.check(one="#include <vector>\nstd::vector<int> one;\n", two="std::vector<int> two;\n")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("two.cpp doesn't compile alone", done.stdout)
        self.assertNotIn("one.cpp doesn't", done.stdout)

    def test_a_source_that_lives_on_precompiled_headers_is_named(self):
        entries = []
        header = self.folder / "cmake_pch.hxx"
        header.write_text("#include <vector>\n")
        for name, text, options in (("a_test.cpp", "#include <vector>\nstd::vector<int> a;\n", f"-include {header}"),
                                    ("b_test.cpp", "std::vector<int> b(GIVEN);\n", f"-Xclang -include-pch -Xclang {header}.pch"),
                                    ("cmake_pch.hxx.cxx", "not C++", f"-x c++-header -include {header}")):
            file = self.folder / name
            file.write_text(text)
            entries.append({"directory": str(self.folder), "file": str(file),
                            "command": f"c++ -DGIVEN=2 -std=c++20 -Winvalid-pch {options} -o {name}.o -c {file}"})
        done = self.check(*entries)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("b_test.cpp doesn't compile alone", done.stdout)
        self.assertIn("2 sources, 1 of which", done.stdout)

    def test_a_build_that_compiles_nothing_together_is_a_mistake(self):
        done = self.check()
        self.assertEqual(done.returncode, 1)
        self.assertIn("compiles sources together", done.stderr)


if __name__ == "__main__":
    unittest.main()
