"""scripts/bundle.sh makes a folder that runs from anywhere, with nothing in the environment, and that may be passed on:
bundle_test.py BUILD_DIR"""

import ctypes
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from permissive import PERMISSIVE

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop()) if len(sys.argv) > 1 else None
LIBTIFF = ROOT / "scripts" / "build-libtiff.sh"


def bundle(*arguments):
    return subprocess.run([ROOT / "scripts" / "bundle.sh", *arguments], capture_output=True, text=True)


def needed(file):
    shown = subprocess.run(["readelf", "-dW", file], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", shown)


def write_tiff(library, path, compression):
    """512 x 512 pixels in tiles of 256 x 256, RGB."""
    library.TIFFOpen.restype = ctypes.c_void_p
    tiff = ctypes.c_void_p(library.TIFFOpen(str(path).encode(), b"w"))
    if not tiff.value:
        raise OSError(f"{path} can't be written")
    for tag, value in ((256, 512), (257, 512), (322, 256), (323, 256), (258, 8), (277, 3), (262, 2), (284, 1),
                       (259, compression)):
        if library.TIFFSetField(tiff, tag, value) != 1:
            raise OSError(f"tag {tag} can't be {value}")
    if compression == 50001:
        library.TIFFSetField(tiff, 65569, 1)  # WebP without loss
    library.TIFFWriteEncodedTile.restype = ctypes.c_ssize_t
    for tile in range(4):
        data = bytes((x * y + 31 * tile) >> 3 & 255 for y in range(256) for x in range(768))
        if library.TIFFWriteEncodedTile(tiff, tile, data, ctypes.c_ssize_t(len(data))) != len(data):
            raise OSError(f"tile {tile} can't be written with compression {compression}")
    library.TIFFClose(tiff)


class Bundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        made = subprocess.run([LIBTIFF], capture_output=True, text=True)
        if made.returncode != 0:
            if "no source package" in made.stderr:
                print("SKIPPED: " + made.stderr.strip())
                raise unittest.SkipTest(made.stderr)
            raise AssertionError(made.stderr)
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.made = pathlib.Path(folder.name) / "made"
        cls.run_of_it = bundle(BUILD, cls.made)
        if cls.run_of_it.returncode != 0:
            raise AssertionError(cls.run_of_it.stdout + cls.run_of_it.stderr)
        cls.has_cuda = "-DSLIDESTREAM_HAVE_CUDA=1" in (BUILD / "build.ninja").read_text()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def pipeline(self, *arguments):
        return subprocess.run([self.made / "bin" / "pipeline", *arguments], cwd=self.folder, env={}, capture_output=True,
                              text=True)

    def test_the_program_runs_elsewhere(self):
        made = bundle("--parts", "program", BUILD, self.folder / "made")
        self.assertEqual((made.returncode, made.stderr), (0, ""), made.stdout)
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
        self.assertEqual({entry.name for entry in (moved / "bin").iterdir()}, {"pipeline", "slidestream-submit"})

    def test_by_default_it_holds_what_gpu_check_runs(self):
        names = {entry.name for entry in (self.made / "bin").iterdir()}
        self.assertIn("pipeline", names)
        size = sum(file.stat().st_size for file in self.made.rglob("*") if file.is_file())
        self.assertLess(size, 100 << 20)
        if not self.has_cuda:
            self.assertEqual(self.run_of_it.stderr,
                             f"bundle.sh: left out, as {BUILD} is without CUDA: tests benchmarks\n")
            self.assertEqual(names, {"pipeline", "slidestream-submit"})
            return
        self.assertEqual(self.run_of_it.stderr, "")
        tests = (self.made / "gpu-tests.txt").read_text().split()
        self.assertIn("gpu_pipeline_test", tests)
        self.assertIn("cuda_jpeg_device_test", tests)
        figures = (self.made / "bench" / "gpu_figures.txt").read_text()
        benchmarks = set(re.findall(r"^(\w+_bench) ", figures, re.M))
        self.assertGreaterEqual(len(benchmarks), 3)
        self.assertEqual(names, {"pipeline", "slidestream-submit", "gpu-check.sh", "gpu_check_table.py", *tests, *benchmarks})
        for name in [*tests, *benchmarks]:
            # The benchmarks answer with their usage: they have found their libraries.
            argument, status = ("--usage", 2) if name in benchmarks else ("--list-test-cases", 0)
            run = subprocess.run([self.made / "bin" / name, argument], env={}, capture_output=True, text=True)
            self.assertEqual(run.returncode, status, f"{name}: {run.stderr}")

    def test_nothing_in_it_is_under_the_gpl_alone(self):
        libraries = sorted((self.made / "lib").iterdir())
        self.assertGreater(len(libraries), 10)
        readme = (self.made / "README").read_text()
        licences = {entry.name for entry in (self.made / "licences").iterdir()}
        for file in libraries:
            stem = file.name.split(".so")[0]
            self.assertIn(stem, PERMISSIVE, f"{file.name}: read its licence, and name it here or build without it")
            package = re.search(rf"^  lib/{re.escape(file.name)} +(\S+)", readme, re.M).group(1)
            package = {"tiff": "libtiff", "CUDA's": "cuda"}.get(package, package)
            self.assertIn(package, licences, file.name)
        for name in licences:
            self.assertGreater((self.made / "licences" / name).stat().st_size, 500, name)
        for name in ("libtiff", "libcli11-dev", "libconcurrentqueue-dev", "libhdf5-dev", "libjs-chart.js",
                     "nlohmann-json3-dev"):
            self.assertIn(name, licences)
        checked = 0
        for file in [*(self.made / "bin").iterdir(), *libraries]:
            if file.read_bytes()[:4] != b"\x7fELF":
                continue
            checked += 1
            for name in needed(file):
                self.assertNotRegex(name, "libjbig|libfftw", file.name)
        self.assertGreater(checked, len(libraries))
        self.assertNotIn(b"jbg_dec_init", next((self.made / "lib").glob("libtiff.so*")).read_bytes())

    def test_its_libtiff_decodes_all_but_jbig(self):
        soname = next((self.made / "lib").glob("libtiff.so*")).name
        installed = ctypes.CDLL(soname)
        histograms = {}
        for name, compression in (("none", 1), ("lzw", 5), ("deflate", 8), ("lerc", 34887), ("lzma", 34925),
                                  ("zstd", 50000), ("webp", 50001)):
            write_tiff(installed, self.folder / f"{name}.tif", compression)
            run = self.pipeline(f"{name}.tif", "--out", name, "--backend", "cpu")
            self.assertEqual(run.returncode, 0, run.stderr)
            histograms[name] = (self.folder / name / "histograms.npy").read_bytes()
        self.assertEqual([name for name in histograms if histograms[name] != histograms["none"]], [])
        # JBIG's number in place of "none".
        data = (self.folder / "none.tif").read_bytes()
        entry = b"\x03\x01\x03\x00\x01\x00\x00\x00"
        self.assertEqual(data.count(entry + b"\x01\x00"), 1)
        (self.folder / "jbig.tif").write_bytes(data.replace(entry + b"\x01\x00", entry + (34661).to_bytes(2, "little")))
        run = self.pipeline("jbig.tif", "--out", "jbig", "--backend", "cpu")
        self.assertEqual(run.returncode, 1, run.stderr)
        errors = [line for line in run.stderr.splitlines() if "error" in line]
        self.assertEqual(len(errors), 1, run.stderr)
        self.assertRegex(errors[0], r"jbig\.tif: .*34661 isn't supported")

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

    def test_without_a_network_libraries_end_with_one_line(self):
        # In another tree, where none was built yet, with an address of the archive that nobody answers at.
        copy = self.folder / "tree" / "scripts"
        copy.mkdir(parents=True)
        for name in ("source-package.sh", "build-libtiff.sh", "build-hdf5.sh"):
            shutil.copy(ROOT / "scripts" / name, copy)
        configuration = self.folder / "apt.conf"
        configuration.write_text('Acquire::http::Proxy "http://127.0.0.1:9";\nAcquire::https::Proxy "http://127.0.0.1:9";\n')
        for name, package in (("build-libtiff.sh", "tiff"), ("build-hdf5.sh", "hdf5")):
            run = subprocess.run([copy / name], capture_output=True, text=True, timeout=120,
                                 env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "APT_CONFIG": str(configuration)})
            self.assertEqual((run.returncode, run.stdout), (1, ""))
            self.assertRegex(run.stderr, rf"\A{name}: no source package of {package} .*\n\Z")
            self.assertEqual(list((self.folder / "tree" / "build").iterdir()), [])


if __name__ == "__main__":
    unittest.main()
