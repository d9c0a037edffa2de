"""`volume.spacing` beside a model in NumPy: `PIPELINE=path TEST_PYTHON=path spacing_test.py [CLASS ...]`.

TEST_PYTHON has the packages nibabel, onnx and onnxruntime; without them the tests are skipped."""

import unittest

# Where packages are missing this ends, or begins anew with a Python that has them.
from volume_case import FRAGMENT, GRID, Model, Volumes, network, run, settings

import nibabel
import numpy

from onnx import helper

SIGMOID = (helper.make_node("Sigmoid", ["scores"], ["out"]),)


def sides(scan):
    """Millimetres along z, y, x: lengths of the affine's columns, or what the header says without an affine."""
    header = nibabel.load(scan).header
    if header["sform_code"] > 0:
        rows = [header[name].astype("f8") for name in ("srow_x", "srow_y", "srow_z")]
        lengths = [float(numpy.sqrt(rows[0][i] * rows[0][i] + rows[1][i] * rows[1][i] + rows[2][i] * rows[2][i]))
                   for i in range(3)]
    else:
        lengths = [float(side) for side in header["pixdim"][1:4]]
    factor = {"mm": 1.0, "meter": 1e3, "micron": 1e-3, "unknown": 1.0}[header.get_xyzt_units()[0]]
    return [length * factor for length in lengths[::-1]]


class Grid:
    def __init__(self, shape, own, wanted):
        self.shape = [int(numpy.floor((size - 1) * (a / b) + 0.5)) + 1 for size, a, b in zip(shape, own, wanted)]
        self.at = [numpy.minimum(numpy.arange(n) * (b / a), size - 1.0)
                   for n, size, a, b in zip(self.shape, shape, own, wanted)]
        self.nearest = [numpy.clip(numpy.ceil(numpy.arange(size) * (a / b) - 0.5).astype("i8"), 0, n - 1)
                        for n, size, a, b in zip(self.shape, shape, own, wanted)]

    def values(self, scan):
        made = scan.astype("f8")
        for axis in (2, 1, 0):
            low = numpy.floor(self.at[axis]).astype("i8")
            high = numpy.minimum(low + 1, scan.shape[axis] - 1)
            share = (self.at[axis] - low).reshape([-1 if i == axis else 1 for i in range(3)])
            made = made.take(low, axis) * (1.0 - share) + made.take(high, axis) * share
        return made.astype("f4")

    def back(self, labels):
        return labels[numpy.ix_(*self.nearest)]


class Spacing(Volumes):
    def compare(self, name, wanted, method, *more, nets=None, grid=GRID, scans=None):
        out = self.folder / name
        nets = nets or self.nets
        folder = nets[0] if len(nets) == 1 else nets[0].parent
        scans = scans or self.scans
        self.must(*scans, "--networks", folder, "-o", out, "-s", f"volume.fragment={list(FRAGMENT)}",
                  "-s", f"volume.grid={list(grid)}", "-s", f"volume.spacing={list(wanted)}",
                  *(word for setting in more for word in ("-s", setting)))
        model = Model(nets, grid=grid)
        for scan in scans:
            values = self.values(scan)
            seen = Grid(values.shape, sides(scan), wanted)
            expected = seen.back(method(model, seen.values(values)))
            made = self.made(out, scan)
            numpy.testing.assert_array_equal(made.affine, nibabel.load(scan).affine)
            numpy.testing.assert_array_equal(numpy.asarray(made.dataobj).T, expected, scan.name)
        rows = self.table(out, "labels.csv")
        for scan in scans:
            counted = sum(int(row["voxels"]) for row in rows if row["path"] == str(scan))
            self.assertEqual(counted, self.values(scan).size)
        return out

    def test_coarser_finer_and_the_same(self):
        vote = Model.vote
        self.compare("coarser", (0.9, 2.1, 2.7), vote)
        self.compare("finer", (0.4, 1.1, 1.7), vote, grid=(4, 5, 4), nets=[self.nets[3]])
        own = sides(self.scans[0])
        same = self.compare("same", own, vote)
        plain = self.folder / "plain"
        self.must(*self.scans, "--networks", self.folder / "nets", "-o", plain, *settings())
        self.assertEqual(self.files(same), self.files(plain))

    def test_mean_whatever_the_threads_and_memory(self):
        net = network(self.folder / "sigmoid.onnx", seed=3, last=SIGMOID)
        mean = (lambda model, values: model.mean(values, 0, 1))
        files = []
        for i, more in enumerate(((), ("pipeline.threads=1",), ("pipeline.threads=5", "volume.in_flight=1"))):
            out = self.compare(f"mean{i}", (0.45, 1.3, 1.1), mean, "volume.fusion=mean", "model.range=[0,1]", *more,
                               nets=[net], grid=(4, 4, 4))
            files.append(self.files(out))
        self.assertEqual(files[0], files[1])
        self.assertEqual(files[0], files[2])

    def test_sides_without_an_affine_and_other_units(self):
        random = numpy.random.RandomState(3)
        scans = []
        for i, (unit, scale) in enumerate((("mm", 1.0), ("micron", 1e3), ("meter", 1e-3))):
            image = nibabel.Nifti1Image((random.standard_normal((9, 21, 13)) * 3).astype("f4"), None)
            image.header.set_zooms([scale * side for side in (1.5, 2.0, 0.75)])
            image.header.set_xyzt_units(unit)
            image.header["sform_code"] = image.header["qform_code"] = 0
            scans.append(self.folder / f"sides{i}.nii")
            nibabel.save(image, scans[-1])
        header = nibabel.load(scans[0]).header
        self.assertEqual(int(header["sform_code"]), 0)
        self.compare("sides", (1.0, 2.0, 1.25), lambda model, values: model.vote(values), scans=scans)

    def values(self, scan):
        image = nibabel.load(scan)
        if image.dataobj.slope == 1.0 and image.dataobj.inter == 0.0:
            return numpy.asarray(image.dataobj).astype("f4").T
        return Volumes.values(scan)

    def test_refusals(self):
        nets = ("--networks", self.folder / "nets")
        out = ("-o", self.folder / "refused")
        one = network(self.folder / "one.onnx", channels=1)
        for arguments, words in (
                ((*nets, *settings("volume.spacing=[1,2]")), "volume.spacing has 2 numbers; expected 3"),
                ((*nets, *settings("volume.spacing=[1,2,0]")), "volume.spacing"),
                (("--networks", one, "--fusion", "blend", "-s", "model.range=[0,1]", *settings("volume.spacing=[1,1,1]")),
                 "only labels are resampled back")):
            self.assertIn(words, self.refused(self.scans[0], *arguments, *out))
        # A volume's own mistakes cost that volume.
        flat = self.folder / "flat.nii"
        nibabel.save(nibabel.Nifti1Image(numpy.zeros((9, 21, 13), "u1"), numpy.eye(4)), flat)
        header = bytearray(flat.read_bytes())
        header[300:304] = bytes(4)  # srow_y[1]
        flat.write_bytes(header)
        wide = self.folder / "wide.nii"
        nibabel.save(nibabel.Nifti1Image(numpy.zeros((9, 21, 13), "u1"), numpy.diag([100.0, 100.0, 100.0, 1.0])), wide)
        done = run(self.scans[0], *nets, "-o", self.folder / "dry", "--dry-run",
                   *settings("volume.spacing=[50,50,50]", "input.max_pixels=2000"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("it has 2457 voxels, and input.max_pixels allows 2000", done.stdout)
        for name, spacing, words in (("flat", "[1,1,1]", "no length of voxels along y"),
                                     ("many", "[0.001,0.001,0.001]", "would make more than 32,768 samples"),
                                     ("gaps", "[0.1,0.1,0.1]", "at volume.spacing; raise volume.grid")):
            scan = {"flat": flat, "many": wide}.get(name, self.scans[0])
            done = run(scan, *nets, "-o", self.folder / name, *settings(f"volume.spacing={spacing}"))
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(words, done.stderr)
            self.assertIn(str(scan), done.stderr)


if __name__ == "__main__":
    unittest.main()
