"""What tests of the program with networks share: slides, settings, runs. See models_test.py."""

import contextlib
import csv
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("TEST_PYTHON", "")
try:
    import h5py  # noqa: F401
    import numpy
    import onnxruntime  # noqa: F401
except ImportError:
    if os.path.exists(PYTHON) and "MODELS_TEST" not in os.environ:
        os.execve(PYTHON, [PYTHON, "-B", *sys.argv], {**os.environ, "MODELS_TEST": "1"})
    print("SKIPPED: needs the packages onnx, onnxruntime and h5py: scripts/install-deps.sh --tests installs them")
    sys.exit(0)

if not (pathlib.Path(os.environ["MODELS"]) / "identity.onnx").exists():
    print("SKIPPED: needs networks, which the test \"networks: models are made\" makes")
    sys.exit(0)
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("sink", "support")]
os.environ.setdefault("WRITE_IMAGE", "")
import quick_storage  # noqa: E402,F401
from time_limits import time_limit  # noqa: E402
from folder_image import zarr_arrays  # noqa: E402

PIPELINE = os.environ["PIPELINE"]
MODELS = pathlib.Path(os.environ["MODELS"])
# Its Python has the package onnxruntime, which the program finds by itself: each time by a start of Python.
FINDING = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "dumb", "PATH": f"{pathlib.Path(PYTHON).parent}:{os.environ['PATH']}"}
ENVIRONMENT = {**FINDING, "SLIDESTREAM_ONNXRUNTIME": str(MODELS)}
DATA = pathlib.Path(os.environ.get("SLIDESTREAM_TEST_DATA", ROOT.parent / "shared")) / "data"


def run(*arguments, **options):
    return subprocess.run([PIPELINE, *map(str, arguments)], capture_output=True, text=True, timeout=time_limit(250), env=ENVIRONMENT,
                          stdin=subprocess.DEVNULL, check=False, **options)


def settings_of(model, *more):
    settings = ['operators.run=["model"]', f"model.file={MODELS / (model + '.onnx')}", "model.provider=cpu", *more]
    return [word for setting in settings for word in ("-s", setting)]


def level0(image):
    """The pixels of an uncompressed OME-Zarr: height x width x channels."""
    return numpy.moveaxis(next(iter(zarr_arrays(image)))[1], 0, -1)


class Models(unittest.TestCase):
    ZARR = ("image.format=ome-zarr", "image.compression=none")

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.slide = cls.folder / "slide.svs"
        cls.must("synth", "--out", cls.slide, "--size", "700x500", "--levels", "2")

    @classmethod
    def must(cls, *arguments):
        done = run(*arguments)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        return done

    def pixels(self):
        out = self.folder / "exact"
        if not out.exists():
            self.must("convert", self.slide, "--to", "ome-zarr", "--compression", "none", "--out", out)
        return level0(out / "images" / "slide.identity.ome.zarr")

    def in_the_middle(self, out, is_there, *arguments, patience=200):
        """A run that stands still where `is_there()`, with results in `out`. One that ended before anybody looked is begun
        again. None where less patience than usual comes to nothing."""
        until = time.monotonic() + patience
        while time.monotonic() < until:
            process = subprocess.Popen([PIPELINE, *map(str, arguments), "-o", str(out)], env=ENVIRONMENT, text=True,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            self.addCleanup(process.stderr.close)
            self.addCleanup(process.kill)
            with contextlib.suppress(FileNotFoundError):
                while process.poll() is None and not is_there() and time.monotonic() < until:
                    time.sleep(0.005)
                process.send_signal(signal.SIGSTOP)
                if process.poll() is None and is_there():
                    return process
            process.kill()
            said = process.communicate()[1]
            shutil.rmtree(out, ignore_errors=True)
        if patience < 200:
            return None
        raise AssertionError(f"no run was found in its middle; the last said: {said}")

    def table(self, out, name="slides.csv"):
        with open(out / name, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def refused(self, *arguments):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(done.stderr.strip().count("\n"), 0, done.stderr)
        return done.stderr
