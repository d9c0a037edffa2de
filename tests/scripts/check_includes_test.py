"""scripts/check-includes.py finds what it is there to find, and this tree has none of it."""

import contextlib
import importlib.util
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


PROGRAM = ROOT / "scripts" / "check-includes.py"
SPEC = importlib.util.spec_from_file_location("check_includes", PROGRAM)
check_includes = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_includes)


def check(root):
    """Without a start of Python, of which there would be many."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        status = check_includes.main([str(root)])
    return status, printed.getvalue()


class CheckIncludes(unittest.TestCase):
    def check_file(self, path, text):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True)
            file.write_text(text, encoding="utf-8")
            return check(folder)

    def refused(self, path, text):
        status, output = self.check_file(path, text)
        self.assertEqual(status, 1, f"{path}: {text}")
        self.assertTrue(output.startswith(path), output)

    def allowed(self, path, text):
        self.assertEqual(self.check_file(path, text), (0, ""))

    def test_runtime_knows_nothing_of_slides(self):
        self.refused("src/runtime/pool.hpp", '#include "slide/file.hpp"\n')
        self.refused("src/runtime/pool.hpp", "#include <slidestream/slide.hpp>\n")
        self.allowed("src/runtime/pool.hpp", '#include "runtime/host_memory.hpp"\n#include <vector>\n')

    def test_slide_knows_nothing_of_graphs(self):
        self.refused("src/slide/slide.cpp", '  #  include "stages/run/batch.hpp"\n')
        self.refused("src/slide/slide.cpp", '#include "runtime/slot_pool.hpp"\n')
        self.allowed("src/slide/slide.cpp", '#include <slidestream/slide.hpp>\n#include "slide/file.hpp"\n')

    def test_nobody_but_stages_includes_stages(self):
        for folder in ("spectrum", "config", "output", "synth", "cli"):
            self.refused(f"src/{folder}/a.cpp", '#include "stages/pipeline.hpp"\n')
        self.allowed("src/stages/a.cpp", '#include "runtime/slot_pool.hpp"\n#include "slide/file.hpp"\n')

    def test_includes_run_downwards(self):
        self.refused("src/stages/run/a.hpp", '#include "stages/images/slide_images.hpp"\n')
        self.refused("src/stages/images/a.hpp", '#include "stages/lane.hpp"\n')
        self.refused("src/planning/a.hpp", '#include "stages/run/batch.hpp"\n')
        self.refused("src/planning/a.hpp", '#include "runtime/slot_pool.hpp"\n')
        self.refused("src/tiling/a.hpp", '#include "stages/run/batch.hpp"\n')
        self.allowed("src/stages/images/a.hpp", '#include "stages/run/batch.hpp"\n#include "planning/strip_plan.hpp"\n')

    def test_operators_know_neither_each_other_nor_slides(self):
        self.refused("src/operators/sobel/sobel.cpp", '#include "operators/tissue/tissue.hpp"\n')
        self.refused("src/operators/sobel/sobel.cpp", '#include "slide/file.hpp"\n')
        self.allowed("src/operators/sobel/sobel.cpp", '#include "operators/sobel/sobel.hpp"\n#include "image/views.hpp"\n')

    def test_public_headers_include_public_headers_only(self):
        self.refused("include/slidestream/slide.hpp", '#include "slide/file.hpp"\n')
        self.allowed("include/slidestream/slide.hpp", "#include <slidestream/error.hpp>\n")

    def test_ways_around(self):
        self.refused("src/runtime/pool.hpp", '#include "../slide/file.hpp"\n')
        self.refused("src/elsewhere/a.cpp", "int a;\n")

    def test_types_of_one_name(self):
        type_ = "namespace slidestream {\n\nstruct Batch {\n  int tiles;\n};\n\n}  // namespace slidestream\n"
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text, status in (("src/stages/a.hpp", type_, 0), ("src/tiling/b.hpp", type_.replace("Batch {", "Other {"), 0),
                                       ("src/slide/c.hpp", type_.replace("slidestream {", "slidestream::cuda {"), 0),
                                       ("src/slide/d.hpp", "namespace slidestream {\nstruct Batch;\nstruct Batch::Impl {\n};\n", 0),
                                       ("src/tiling/e.hpp", type_, 1)):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
                self.assertEqual(check(root)[0], status, name)

    def test_this_tree(self):
        run = subprocess.run([sys.executable, PROGRAM, ROOT], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
