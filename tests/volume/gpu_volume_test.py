"""`pipeline volume` on a GPU beside the CPU: `PIPELINE=path TEST_PYTHON=path gpu_volume_test.py`.

Skipped without a GPU, without a program with CUDA, and without ONNX Runtime for CUDA."""

import re
import unittest

# Where packages are missing this ends, or begins anew with a Python that has them.
from volume_case import GRID, Volumes, network, run, settings

import nibabel
import numpy

CUDA = "model.provider=cuda"
CPU = "model.provider=cpu"


class Gpu(Volumes):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        asked = run(cls.scans[0], "--networks", cls.folder / "nets", "-o", cls.folder / "asked", "--dry-run", *settings(CUDA))
        if asked.returncode != 0:
            print(f"SKIPPED: {asked.stderr.strip()}")
            raise unittest.SkipTest("no GPU for networks")

    def both(self, nets, *more, name):
        outs = []
        for where in (CPU, CUDA):
            outs.append(self.folder / f"{name}-{where[-4:].strip('=')}")
            self.must(self.folder / "scans", "--networks", nets, "-o", outs[-1], *settings(where, *more))
        return outs

    def test_labels_are_the_same_but_for_close_scores(self):
        cpu, cuda = self.both(self.folder / "nets", name="labels")
        for scan in self.scans:
            here, there = (numpy.asarray(self.made(out, scan).dataobj) for out in (cpu, cuda))
            self.assertGreaterEqual((here == there).mean(), 0.999, scan)
        self.assertEqual({row["backend"] for row in self.table(cuda)}, {"cuda"})

    def test_images_are_near(self):
        net = network(self.folder / "image.onnx", seed=3, channels=1)
        cpu, cuda = self.both(net, "volume.fusion=blend", "model.range=[-8,8]", name="image")
        for scan in self.scans:
            here, there = (numpy.asarray(self.made(out, scan, "image").dataobj) for out in (cpu, cuda))
            # Two of 65,535 steps.
            self.assertLessEqual(numpy.abs(here - there).max(), 2.1 * 16 / 65535, scan)

    def test_float16_runs(self):
        nets = self.folder / "half"
        for i in range(GRID[0] * GRID[1] * GRID[2]):
            network(nets / f"network-{i + 1:02}.onnx", seed=i, dtype="float16")
        cpu, cuda = self.both(nets, name="half")
        for scan in self.scans:
            here, there = (numpy.asarray(self.made(out, scan).dataobj) for out in (cpu, cuda))
            self.assertGreaterEqual((here == there).mean(), 0.95, scan)

    def test_the_same_bits_whatever_is_at_a_time(self):
        files = []
        for i, more in enumerate(((), ("model.sessions=1", "volume.in_flight=1"), ("model.sessions=6", "gpu.memory_fraction=0.3"))):
            out = self.folder / f"bits{i}"
            self.must(self.folder / "scans", "--networks", self.folder / "nets", "-o", out, *settings(CUDA, *more))
            files.append(self.files(out))
        self.assertEqual(files[0], files[1])
        self.assertEqual(files[0], files[2])

    def test_a_larger_head(self):
        """Fragments of a size that cuDNN has fast algorithms for."""
        size = (64, 80, 64)
        fragment = (40, 48, 40)
        random = numpy.random.RandomState(2)
        head = self.folder / "larger.nii.gz"
        nibabel.save(nibabel.Nifti1Image((random.standard_normal(size[::-1]) * 50).astype("i2"), numpy.eye(4)), head)
        net = network(self.folder / "larger.onnx", seed=5, fragment=fragment)
        made = []
        for where in (CPU, CUDA):
            out = self.folder / f"larger-{where[-4:].strip('=')}"
            self.must(head, "--networks", net, "-o", out, "-s", where, "-s", f"volume.fragment={list(fragment)}",
                      "-s", "volume.grid=[2,2,2]")
            made.append(numpy.asarray(self.made(out, head).dataobj))
        self.assertGreaterEqual((made[0] == made[1]).mean(), 0.999)

    def test_a_gpu_that_is_not_there_is_refused(self):
        words = self.refused(self.scans[0], "--networks", self.folder / "nets", "-o", self.folder / "none",
                             *settings(CUDA, "gpu.devices=[63]"))
        self.assertTrue(re.search("gpu.devices", words), words)


if __name__ == "__main__":
    unittest.main()
