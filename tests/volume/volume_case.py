"""What tests of `pipeline volume` share: networks, volumes, a model of the run in NumPy. See volume_test.py."""

import csv
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PYTHON = os.environ.get("TEST_PYTHON", "")
try:
    import nibabel
    import numpy
    import onnx
    import onnxruntime
except ImportError:
    if os.path.exists(PYTHON) and "VOLUME_TEST" not in os.environ:
        os.execve(PYTHON, [PYTHON, "-B", *sys.argv], {**os.environ, "VOLUME_TEST": "1"})
    print("SKIPPED: needs the packages nibabel, onnx and onnxruntime: scripts/install-deps.sh --tests installs them")
    sys.exit(0)

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import quick_storage  # noqa: E402,F401
from time_limits import time_limit  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PIPELINE = os.environ["PIPELINE"]
# Its Python has the package onnxruntime, which the program finds by itself: each time by a start of Python.
FINDING = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "dumb", "PATH": f"{pathlib.Path(PYTHON).parent}:{os.environ['PATH']}"}
ENVIRONMENT = {**FINDING, "SLIDESTREAM_ONNXRUNTIME": str(next(
    (pathlib.Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so*")))}
FRAGMENT = (8, 10, 6)  # z, y, x
GRID = (2, 3, 2)
SIZE = (13, 21, 9)
SETTINGS = (f"volume.fragment={list(FRAGMENT)}", f"volume.grid={list(GRID)}")


def command(*arguments):
    return [PIPELINE, "volume", *map(str, arguments)]


def run(*arguments):
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=time_limit(250), env=ENVIRONMENT,
                          stdin=subprocess.DEVNULL, check=False)


def settings(*more):
    return [word for setting in (*SETTINGS, *more) for word in ("-s", setting)]


def network(path, seed=0, channels=4, dtype="float32", fragment=FRAGMENT, gives=None, nodes=None, last=()):
    """Two convolutions by random weights; `nodes` and `last` are others instead, or more behind them."""
    random = numpy.random.RandomState(seed)
    kind = TensorProto.FLOAT16 if dtype == "float16" else TensorProto.FLOAT
    weights, made = [], []

    def conv(value, inputs, outputs, to):
        scale = (2.0 / (inputs * 27)) ** 0.5
        for name, shape in (("w", (outputs, inputs, 3, 3, 3)), ("b", (outputs,))):
            weights.append(numpy_helper.from_array((random.standard_normal(shape) * scale).astype(dtype), to + name))
        made.append(helper.make_node("Conv", [value, to + "w", to + "b"], [to], pads=[1] * 6, kernel_shape=[3] * 3))

    if nodes is None:
        conv("in", 1, 5, "first")
        made.append(helper.make_node("Relu", ["first"], ["between"]))
        conv("between", 5, channels, "out" if not last else "scores")
    made += [*(nodes or ()), *last]
    given = gives or (kind, [1, channels, *fragment])
    graph = helper.make_graph(made, "network", [helper.make_tensor_value_info("in", kind, [1, 1, *fragment])],
                              [helper.make_tensor_value_info("out", *given)], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString(deterministic=True))
    return path


class Model:
    """The same run in NumPy, with ONNX Runtime's own session on one thread."""

    def __init__(self, files, fragment=FRAGMENT, grid=GRID, fill=0.0):
        self.files, self.fragment, self.grid, self.fill = files, fragment, grid, fill
        self.sessions = {}

    def run(self, file, values):
        if file not in self.sessions:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.use_deterministic_compute = True
            self.sessions[file] = onnxruntime.InferenceSession(str(file), options, ["CPUExecutionProvider"])
        session = self.sessions[file]
        half = session.get_inputs()[0].type == "tensor(float16)"
        given = session.run(None, {"in": values[None, None].astype("f2" if half else "f4")})[0][0]
        return given if given.ndim == 4 else given[None]

    def begins(self, axis, size):
        tile, count = self.fragment[axis], self.grid[axis]
        if size <= tile:
            return [-((tile - size) // 2)] * count
        return [int(numpy.floor(i * (size - tile) / (count - 1) + 0.5)) for i in range(count)]

    def fragments(self, volume):
        """Slices of the volume, slices of the fragment, and what the network gives, in row-major order."""
        places = [self.begins(axis, volume.shape[axis]) for axis in range(3)]
        number = 0
        for z in places[0]:
            for y in places[1]:
                for x in places[2]:
                    inner, outer = [], []
                    for begin, tile, size in zip((z, y, x), self.fragment, volume.shape):
                        first, end = max(-begin, 0), min(tile, size - begin)
                        inner.append(slice(first, end))
                        outer.append(slice(begin + first, begin + end))
                    values = numpy.full(self.fragment, self.fill, "f4")
                    values[tuple(inner)] = volume[tuple(outer)]
                    file = self.files[0] if len(self.files) == 1 else self.files[number]
                    number += 1
                    yield tuple(outer), tuple(inner), self.run(file, values)

    def vote(self, volume, ignore=255, labels=False):
        most = 65536
        votes = numpy.zeros((*volume.shape, 1 if labels else 300), "i4")
        if labels:
            votes = numpy.zeros((*volume.shape, most), "u1")
        for outer, inner, given in self.fragments(volume):
            own = (given[0] if labels else given.argmax(axis=0))[inner].astype("i8")
            at = numpy.indices(own.shape)
            window = votes[outer]
            counted = own != ignore
            window[at[0][counted], at[1][counted], at[2][counted], own[counted]] += 1
        made = votes.argmax(axis=3)
        made[votes.max(axis=3) == 0] = ignore
        return made

    def mapped(self, given, low, high):
        factor = numpy.float32(65535) / (numpy.float32(high) - numpy.float32(low))
        return numpy.clip(numpy.rint((given.astype("f4") - numpy.float32(low)) * factor), 0, 65535).astype("i8")

    def mean(self, volume, low, high):
        sums, counts = None, numpy.zeros(volume.shape, "i8")
        for outer, inner, given in self.fragments(volume):
            values = self.mapped(given, low, high)
            sums = numpy.zeros((len(given), *volume.shape), "i8") if sums is None else sums
            sums[(slice(None), *outer)] += values[(slice(None), *inner)]
            counts[outer] += 1
        return ((2 * sums + counts) // (2 * counts)).argmax(axis=0)

    def weights(self, axis, size):
        """For each fragment of an axis its weight at each sample, with the ramp `tent`."""
        tile = self.fragment[axis]
        b = [max(begin, 0) for begin in self.begins(axis, size)]
        e = [min(begin + tile, size) for begin in self.begins(axis, size)]
        weights = numpy.zeros((len(b), size), "i8")
        done = 0
        for i in range(len(b) - 1):
            p = max(b[i + 1], -(-(b[i + 1] + e[i - 1]) // 2) if i > 0 else 0)
            q = min(e[i], (b[i + 2] + e[i]) // 2 if i + 2 < len(b) else size)
            weights[i, done:p] = 256
            for t in range(q - p):
                weights[i + 1, p + t] = (512 * t + 256 + q - p) // (2 * (q - p))
                weights[i, p + t] = 256 - weights[i + 1, p + t]
            done = max(p, q)
        weights[-1, done:] = 256
        assert (weights.sum(axis=0) == 256).all()
        return weights

    def blend(self, volume, low, high):
        z, y, x = (self.weights(axis, volume.shape[axis]) for axis in range(3))
        sums = numpy.zeros(volume.shape, "i8")
        places = [(i, j, k) for i in range(self.grid[0]) for j in range(self.grid[1]) for k in range(self.grid[2])]
        for (i, j, k), (outer, inner, given) in zip(places, self.fragments(volume)):
            weight = z[i, outer[0], None, None] * y[j, None, outer[1], None] * x[k, None, None, outer[2]]
            sums[outer] += weight * self.mapped(given[0], low, high)[inner]
        samples = (sums + (1 << 23)) >> 24
        low, high = numpy.float64(numpy.float32(low)), numpy.float64(numpy.float32(high))
        return (low + samples * ((high - low) / 65535.0)).astype("f4")


class Volumes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        random = numpy.random.RandomState(7)
        affine = numpy.array([[0, -1.5, 0, 90], [2, 0, 0.25, -126], [0, 0, 0.5, -72], [0, 0, 0, 1.0]])
        cls.scans = []
        # The last one is smaller than a fragment along two axes.
        for i, size in enumerate((SIZE, (8, 10, 6), (14, 20, 10), (5, 11, 5))):
            samples = (random.standard_normal(size[::-1]) * 100).astype("i2")
            image = nibabel.Nifti1Image(samples, affine)
            image.header.set_xyzt_units("mm")
            image.header["scl_slope"], image.header["scl_inter"] = 0.01, -0.5
            path = cls.folder / "scans" / f"scan{i}.nii.gz"
            path.parent.mkdir(exist_ok=True)
            nibabel.save(image, path)
            cls.scans.append(path)
        cls.nets = [network(cls.folder / "nets" / f"network-{i + 1:02}.onnx", seed=i)
                    for i in range(GRID[0] * GRID[1] * GRID[2])]

    @staticmethod
    def values(path):
        """A scan as networks get it: z, y, x."""
        image = nibabel.load(path)
        raw = numpy.asarray(image.dataobj.get_unscaled()).astype("f8")
        return (raw * image.dataobj.slope + image.dataobj.inter).astype("f4").T

    @staticmethod
    def made(out, scan, product="labels"):
        return nibabel.load(out / "images" / f"{scan.name.split('.')[0]}.{product}.nii.gz")

    def must(self, *arguments):
        done = run(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def refused(self, *arguments, status=2):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertEqual(done.stderr.strip().count("\n"), 0, done.stderr)
        return done.stderr

    def table(self, out, name="slides.csv"):
        with open(out / name, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def files(self, out):
        return {path.name: path.read_bytes() for path in sorted((out / "images").iterdir())}
