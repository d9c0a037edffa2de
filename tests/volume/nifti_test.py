"""NIfTI files beside nibabel: `VOLUME_TOOL=path TEST_PYTHON=path nifti_test.py [CLASS ...]`.

TEST_PYTHON has the packages nibabel and numpy; without them the tests are skipped."""

import gzip
import itertools
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
except ImportError:
    if os.path.exists(PYTHON) and "NIFTI_TEST" not in os.environ:
        os.execve(PYTHON, [PYTHON, "-B", *sys.argv], {**os.environ, "NIFTI_TEST": "1"})
    print("SKIPPED: needs the packages nibabel and numpy: scripts/install-deps.sh --tests installs them")
    sys.exit(0)

TOOL = os.environ["VOLUME_TOOL"]
# Whether all that is alike is tried, or some of it.
WIDE = "SLIDESTREAM_TEST_WIDE" in os.environ
TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64")
AFFINE = numpy.array([[0, -1.5, 0, 90], [2, 0, 0.25, -126], [0, 0, 0.5, -72], [0, 0, 0, 1.0]])


def tool(*arguments):
    return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, timeout=120, check=False)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.random = numpy.random.RandomState(3)

    def samples(self, dtype, size=(7, 6, 5)):
        if numpy.dtype(dtype).kind == "f":
            return (self.random.standard_normal(size) * 1e4).astype(dtype)
        limits = numpy.iinfo(dtype)
        values = self.random.randint(-2**31, 2**31, size).astype("int64") * self.random.randint(1, 2**31, size)
        samples = values.astype(dtype)
        samples.flat[:2] = limits.min, limits.max
        return samples

    def made(self, name, samples, kind=nibabel.Nifti1Image, order="<", slope=None, inter=0.0, extension=None):
        image = kind(samples, AFFINE, header=kind.header_class(endianness=order), dtype=samples.dtype)
        image.header.set_xyzt_units("mm")
        if extension:
            image.header.extensions.append(nibabel.nifti1.Nifti1Extension("comment", extension))
        path = self.folder / name
        nibabel.save(image, path)
        if slope is not None:
            data = bytearray(gzip.open(path).read() if name.endswith(".gz") else path.read_bytes())
            at, number = (112, "f4") if kind is nibabel.Nifti1Image else (176, "f8")
            pair = numpy.array([slope, inter], order + number).tobytes()
            data[at:at + len(pair)] = pair
            path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    def read(self, path):
        done = tool("read", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        head, data = done.stdout.split(b"\n", 1)
        *size, kind, volume = head.split()
        values = numpy.frombuffer(data, "<f4").reshape([int(side) for side in size], order="F")
        return values, kind.decode(), float(volume)

    def expected(self, path):
        image = nibabel.load(path)
        raw = numpy.asarray(image.dataobj.get_unscaled()).astype("f8")
        slope, inter = image.dataobj.slope, image.dataobj.inter
        return (raw * slope + inter if (slope, inter) != (1, 0) else raw).astype("f4")


class Read(Files):
    def test_every_scalar_type_order_version_and_compression(self):
        kinds = (nibabel.Nifti1Image, nibabel.Nifti2Image)
        slopes = ((None, 0.0), (0.75, -3.25), (0.0, 5.0), (float("nan"), 0.0))
        for number, (dtype, order, slope, kind, name) in enumerate(itertools.product(
                TYPES, "<>", slopes, kinds, ("a.nii", "a.nii.gz"))):
            # Of each eight of two slopes, versions and compressions one, in turn.
            if not WIDE and number % 8 != number // 16 % 2 * 4 + (number // 8 + number // 32) % 4:
                continue
            path = self.made(name, self.samples(dtype), kind, order, *slope)
            values, found, volume = self.read(path)
            numpy.testing.assert_array_equal(values, self.expected(path), f"{dtype} {order} {name} {slope}")
            self.assertEqual(found, dtype)
            self.assertAlmostEqual(volume, 1.5, places=6)

    def test_extensions_are_passed_over(self):
        for name in ("a.nii", "a.nii.gz"):
            path = self.made(name, self.samples("int16"), extension=b"x" * 500000)
            numpy.testing.assert_array_equal(self.read(path)[0], self.expected(path))

    def test_the_name_says_nothing_of_compression(self):
        path = self.made("a.nii.gz", self.samples("float32"))
        expected = self.expected(path)
        plain = self.folder / "plain.nii.gz"
        plain.write_bytes(gzip.open(path).read())
        numpy.testing.assert_array_equal(self.read(plain)[0], expected)

    def test_files_of_two_gzip_members(self):
        data = self.made("a.nii", self.samples("uint16")).read_bytes()
        path = self.folder / "two.nii.gz"
        path.write_bytes(gzip.compress(data[:400]) + gzip.compress(data[400:]))
        numpy.testing.assert_array_equal(self.read(path)[0], self.expected(path))


class Damaged(Files):
    def refused(self, path, data):
        path.write_bytes(data)
        done = tool("read", path)
        self.assertEqual((done.returncode, done.stdout), (1, b""), done.stderr)
        text = done.stderr.decode(errors="replace")
        self.assertTrue(text.startswith(f"{path}: "), text)
        self.assertEqual(text.count("\n"), 1, text)
        return text

    def test_cut_files(self):
        for name in ("a.nii", "a.nii.gz"):
            path = self.made(name, self.samples("int32", (20, 20, 20)))
            data = path.read_bytes()
            for length in (0, 1, 3, 4, 100, 347, 348, 352, len(data) // 2, len(data) - 5, len(data) - 1):
                self.refused(path, data[:length])

    def test_other_files(self):
        path = self.folder / "a.nii.gz"
        for data in (b"\x89PNG" + bytes(600), b"II*\0" + bytes(600), b"x" * 1000, gzip.compress(b"x" * 1000)):
            self.assertIn("no NIfTI file", self.refused(path, data))

    def test_headers_of_random_bytes_neither_crash_nor_take_memory(self):
        good = self.made("a.nii", self.samples("uint8")).read_bytes()
        path = self.folder / "b.nii"
        for _ in range(300 if WIDE else 30):
            data = bytearray(good)
            for _ in range(self.random.randint(1, 6)):
                data[self.random.randint(0, 352)] = self.random.randint(0, 256)
            path.write_bytes(data)
            # AddressSanitizer reserves more addresses than that.
            limit = "" if "SANITIZED" in os.environ else "ulimit -v 400000; "
            done = subprocess.run(["bash", "-c", limit + 'exec "$0" "$@"', TOOL, "read", path], capture_output=True, timeout=60,
                                  check=False)
            self.assertIn(done.returncode, (0, 1), done.stderr)

    def test_a_header_that_claims_more_than_compressed_bytes_can_hold(self):
        data = bytearray(self.made("a.nii", self.samples("uint8")).read_bytes())
        data[42:48] = numpy.array([30000, 30000, 900], "<i2").tobytes()
        text = self.refused(self.folder / "a.nii.gz", gzip.compress(data))
        self.assertIn("compressed bytes can't hold them", text)


class Written(Files):
    def test_affine_orientation_and_samples_are_kept(self):
        for kind in (nibabel.Nifti1Image, nibabel.Nifti2Image):
            for order in "<>":
                samples = self.random.randint(0, 65536, (7, 6, 5)).astype("uint16")
                path = self.made("a.nii.gz", samples, kind, order)
                image = nibabel.load(path)
                image.set_qform(numpy.diag([2.0, 1.5, 0.5, 1]), code=2)
                image.header.set_dim_info(1, 0, 2)
                image.header["descrip"] = b"a name"
                nibabel.save(image, path)
                for word, dtype in (("labels", "uint16"), ("image", "float32")):
                    out = self.folder / "out.nii.gz"
                    done = tool(word, path, out)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    made, before = nibabel.load(out), nibabel.load(path)
                    self.assertIs(type(made), kind)
                    self.assertEqual(made.get_data_dtype(), numpy.dtype(dtype))
                    numpy.testing.assert_array_equal(made.affine, before.affine)
                    for form in ("get_qform", "get_sform"):
                        matrix, code = getattr(made, form)(coded=True)
                        expected, expected_code = getattr(before, form)(coded=True)
                        numpy.testing.assert_array_equal(matrix, expected)
                        self.assertEqual(code, expected_code)
                    self.assertEqual(made.header.get_dim_info(), (1, 0, 2))
                    self.assertEqual(made.header.get_xyzt_units()[0], "mm")
                    self.assertEqual(bytes(made.header["descrip"].tobytes()).strip(b"\0"), b"")
                    self.assertEqual(int(made.header["intent_code"]), 1002 if word == "labels" else 0)
                    numpy.testing.assert_array_equal(numpy.asarray(made.dataobj), samples)


if __name__ == "__main__":
    unittest.main()
