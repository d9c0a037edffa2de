"""`pipeline volume` beside a model in NumPy: `PIPELINE=path TEST_PYTHON=path volume_test.py [CLASS ...]`.

TEST_PYTHON has the packages nibabel, onnx and onnxruntime; without them the tests are skipped."""

import contextlib
import gzip
import json
import os
import runpy
import signal
import struct
import subprocess
import sys
import time
import unittest

# Where packages are missing this ends, or begins anew with a Python that has them.
from volume_case import ENVIRONMENT, FINDING, FRAGMENT, PIPELINE, ROOT, Model, Volumes, command, network, run, settings
from time_limits import time_limit  # noqa: E402

import nibabel
import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

LABELS = (helper.make_node("ArgMax", ["scores"], ["out"], axis=1, keepdims=1),)
SIGMOID = (helper.make_node("Sigmoid", ["scores"], ["out"]),)


def constant(name, value, kind):
    return helper.make_node("Constant", [], [name], value=helper.make_tensor(name, kind, [], [value]))


def loop(times):
    """Nodes that give what they take, some time later."""
    shape = [1, 1, *FRAGMENT]
    body = helper.make_graph(
        [helper.make_node("Identity", ["goes_on"], ["still"]),
         helper.make_node("MaxPool", ["before"], ["after"], kernel_shape=[1, 1, 1])], "body",
        [helper.make_tensor_value_info("turn", TensorProto.INT64, []),
         helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []),
         helper.make_tensor_value_info("before", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("still", TensorProto.BOOL, []),
         helper.make_tensor_value_info("after", TensorProto.FLOAT, shape)])
    return [constant("times", times, TensorProto.INT64), constant("always", True, TensorProto.BOOL),
            helper.make_node("Loop", ["times", "always", "in"], ["later"], body=body)]


def slow(path, times):
    """Two channels: the values, and their negatives."""
    return network(path, channels=2, nodes=[
        *loop(times), helper.make_node("Neg", ["later"], ["less"]),
        helper.make_node("Concat", ["later", "less"], ["out"], axis=1)])


class Exact(Volumes):
    def test_a_network_for_each_fragment(self):
        out = self.folder / "each"
        self.must(self.folder / "scans", "--networks", self.folder / "nets", "-o", out, *settings())
        model = Model(self.nets)
        for scan in self.scans:
            made = self.made(out, scan)
            self.assertEqual(made.get_data_dtype(), numpy.uint8)
            numpy.testing.assert_array_equal(made.affine, nibabel.load(scan).affine)
            numpy.testing.assert_array_equal(numpy.asarray(made.dataobj).T, model.vote(self.values(scan)), scan.name)

    def test_labels_are_counted_with_their_mm3(self):
        out = self.folder / "counted"
        self.must(self.folder / "scans", "--networks", self.folder / "nets", "-o", out, *settings())
        rows = self.table(out, "labels.csv")
        slides = {row["path"]: row for row in self.table(out)}
        for scan in self.scans:
            labels, counts = numpy.unique(numpy.asarray(self.made(out, scan).dataobj), return_counts=True)
            of_scan = [row for row in rows if row["path"] == str(scan)]
            self.assertEqual([(int(row["label"]), int(row["voxels"])) for row in of_scan],
                             list(zip(labels.tolist(), counts.tolist())))
            for row in of_scan:
                self.assertAlmostEqual(float(row["mm3"]), int(row["voxels"]) * 1.5, places=6)
                self.assertEqual(float(slides[str(scan)][f"volume.voxels.{row['label']}"]), int(row["voxels"]))
            size = nibabel.load(scan).shape
            row = slides[str(scan)]
            self.assertEqual((int(row["width"]), int(row["height"]), float(row["volume.depth"])), size)
            self.assertEqual((row["codec"], row["colour"]), ("nifti-1", "int16"))

    def test_headers_without_a_volume_of_a_voxel_and_damaged_files_are_said_to_be(self):
        content = self.scans[0].read_bytes()
        whole = bytearray(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
        struct.pack_into("<2h3f", whole, 252, 1, 1, 0.75, 0.75, 0)
        whole[280:328] = bytes(48)  # the affine
        flat, damaged = self.folder / "flat.nii", self.folder / "damaged.nii.gz"
        flat.write_bytes(whole)
        packed = bytearray(gzip.compress(bytes(whole)))
        packed[len(packed) // 2] ^= 0xFF
        damaged.write_bytes(packed)
        out = self.folder / "odd"
        result = run(flat, damaged, "--networks", self.folder / "nets", "-o", out, *settings())
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(f"{flat}: its header gives no volume of a voxel; columns in mm^3 are left empty", result.stderr)
        self.assertIn(f"{flat}: its qform is no rotation (quatern_b, c, d = 0.75, 0.75, 0)", result.stderr)
        self.assertEqual({row["mm3"] for row in self.table(out, "labels.csv")}, {""})
        self.assertRegex(result.stderr, rf"{damaged}: .*(its compressed data is damaged|cut short)")
        self.assertNotIn("<fd:", result.stderr)
        # An image has no labels, and no columns of theirs.
        image = network(self.folder / "flat.onnx", channels=1)
        out = self.folder / "flat-image"
        result = self.must(flat, "--networks", image, "--fusion", "blend", "-o", out, *settings("model.range=[-9,9]"))
        self.assertIn(f"{flat}: its header gives no volume of a voxel; volume.voxel_mm3 is left empty", result.stderr)
        self.assertNotIn("columns in mm^3", result.stderr)
        self.assertEqual([row["volume.voxel_mm3"] for row in self.table(out)], [""])
        self.assertFalse((out / "labels.csv").exists())

    def test_one_network_for_all_fragments_and_half_floats(self):
        for dtype in ("float32", "float16"):
            file = network(self.folder / f"{dtype}.onnx", seed=5, dtype=dtype)
            out = self.folder / f"one{dtype}"
            self.must(*self.scans, "--networks", file, "-o", out, *settings("volume.fill=0.75"))
            model = Model([file], fill=0.75)
            for scan in self.scans:
                numpy.testing.assert_array_equal(numpy.asarray(self.made(out, scan).dataobj).T,
                                                 model.vote(self.values(scan)), dtype)

    def test_the_last_of_256_classes_votes_unless_it_is_named(self):
        bias = numpy.zeros((1, 256, 1, 1, 1), "f4")
        bias[0, 255] = 2
        more = (helper.make_node("Constant", [], ["bias"], value=numpy_helper.from_array(bias)),
                helper.make_node("Add", ["scores", "bias"], ["out"]))
        nets = [network(self.folder / "256" / f"network-{i + 1:02}.onnx", seed=i, channels=256, last=more) for i in range(12)]
        scan = self.scans[0]
        labels = {ignore: Model(nets).vote(self.values(scan), ignore) for ignore in (-1, 255)}
        self.assertFalse((labels[-1] == labels[255]).all())
        for name, ignore, more in (("open", -1, ()), ("named", 255, ("model.ignore=255",))):
            out = self.folder / f"256-{name}"
            self.must(scan, "--networks", self.folder / "256", "-o", out, *settings(*more))
            made = self.made(out, scan)
            self.assertEqual(made.get_data_dtype(), numpy.uint8)
            numpy.testing.assert_array_equal(numpy.asarray(made.dataobj).T, labels[ignore], name)

    def test_networks_of_labels(self):
        file = network(self.folder / "labels.onnx", seed=2, channels=6, last=LABELS,
                       gives=(TensorProto.INT64, [1, 1, *FRAGMENT]))
        for ignore in (65535, 3):
            out = self.folder / f"labels{ignore}"
            more = () if ignore == 65535 else (f"model.ignore={ignore}",)
            self.must(*self.scans, "--networks", file, "-o", out, *settings(*more))
            for scan in self.scans:
                made = self.made(out, scan)
                self.assertEqual(made.get_data_dtype(), numpy.uint16)
                numpy.testing.assert_array_equal(numpy.asarray(made.dataobj).T,
                                                 Model([file]).vote(self.values(scan), ignore, labels=True))

    def test_mean(self):
        file = network(self.folder / "mean.onnx", seed=8, last=SIGMOID)
        out = self.folder / "mean"
        self.must(*self.scans, "--networks", file, "--fusion", "mean", "-o", out, *settings())
        for scan in self.scans:
            numpy.testing.assert_array_equal(numpy.asarray(self.made(out, scan).dataobj).T,
                                             Model([file]).mean(self.values(scan), 0, 1))
        # Scores without an activation aren't probabilities.
        scores = network(self.folder / "scores.onnx", seed=8)
        done = run(self.scans[0], "--networks", scores, "--fusion", "mean", "-o", self.folder / "scores", *settings())
        self.assertEqual(done.returncode, 1, done.stderr)
        # The end of a long line is cut: how long it is depends on the folder's name.
        self.assertIn(", and model.range is 0.0 to 1.0", done.stderr)

    def test_blend(self):
        file = network(self.folder / "image.onnx", seed=9, channels=1)
        out = self.folder / "image"
        self.must(*self.scans, "--networks", file, "--fusion", "blend", "-o", out,
                  *settings("model.range=[-0.5,0.75]", "stitch.weights=tent"))
        for scan in self.scans:
            made = self.made(out, scan, "image")
            self.assertEqual(made.get_data_dtype(), numpy.float32)
            numpy.testing.assert_array_equal(made.affine, nibabel.load(scan).affine)
            numpy.testing.assert_array_equal(numpy.asarray(made.dataobj).T,
                                             Model([file]).blend(self.values(scan), -0.5, 0.75))
        self.assertFalse((out / "labels.csv").exists())

    def test_blend_where_three_and_four_fragments_overlap(self):
        # Of the first scan: 0, 3, 5 to 13 along z, 0, 6, 11 along y, and 0 to 3 along x.
        grid = (3, 3, 4)
        nets = [network(self.folder / "images" / f"network-{i + 1:02}.onnx", seed=i, channels=1) for i in range(36)]
        out = self.folder / "overlapped"
        self.must(*self.scans, "--networks", self.folder / "images", "--fusion", "blend", "-o", out,
                  *settings("model.range=[-0.5,0.75]", f"volume.grid={list(grid)}"))
        for scan in self.scans:
            numpy.testing.assert_array_equal(numpy.asarray(self.made(out, scan, "image").dataobj).T,
                                             Model(nets, grid=grid).blend(self.values(scan), -0.5, 0.75))

    def test_values_that_an_image_clamps_are_counted_and_told(self):
        file = network(self.folder / "clamped.onnx", seed=9, channels=1)
        for low, high in ((-0.1, 0.1), (-1e6, 1e6)):
            out = self.folder / f"clamped{high}"
            done = self.must(*self.scans, "--networks", file, "--fusion", "blend", "-o", out,
                             *settings(f"model.range=[{low},{high}]"))
            rows = {row["path"]: float(row["model.clamped"]) for row in self.table(out)}
            shares = []
            for scan in self.scans:
                given = numpy.stack([values for _, _, values in Model([file]).fragments(self.values(scan))])
                outside = (given < numpy.float32(low)) | (given > numpy.float32(high))
                shares.append(outside.mean())
                self.assertAlmostEqual(rows[str(scan)], outside.mean(), delta=1e-5)
            told = (f"the network gave values outside model.range on {len(self.scans)} volumes; the image has them clamped: "
                    f"{100 * max(shares):.3g} % of its values at most (model.clamped in slides.csv)")
            self.assertEqual(told in done.stderr, high < 1, done.stderr)
            self.assertEqual("has them clamped" in done.stderr, high < 1, done.stderr)


class Same(Volumes):
    def test_threads_order_memory_and_volumes_in_flight_change_no_byte(self):
        scans = []
        for i in range(3):
            for scan in self.scans:
                copy = self.folder / f"{i}-{scan.name}"
                copy.write_bytes(scan.read_bytes())
                scans.append(copy)
        expected = None
        for i, (order, more) in enumerate((
                (scans, ("pipeline.threads=1", "volume.in_flight=1")),
                (scans[::-1], ("pipeline.threads=2",)),
                (scans[5:] + scans[:5], ("pipeline.threads=4", "volume.in_flight=3")),
                (scans, ("pipeline.threads=3", "model.sessions=1")))):
            out = self.folder / f"same{i}"
            self.must(*order, "--networks", self.folder / "nets", "-o", out, *settings(*more))
            files = self.files(out)
            self.assertEqual(len(files), len(scans))
            expected = expected or files
            self.assertEqual(files, expected, more)

    def test_little_memory_makes_work_wait_and_nothing_fail(self):
        fragment = (32, 32, 32)
        nets = [network(self.folder / "large" / f"{i}.onnx", seed=i, fragment=fragment) for i in range(8)]
        random = numpy.random.RandomState(1)
        scans = []
        for i in range(6):
            path = self.folder / "large" / f"scan{i}.nii.gz"
            nibabel.save(nibabel.Nifti1Image(random.randint(0, 200, (50, 40, 60)).astype("u1"), numpy.eye(4)), path)
            scans.append(path)
        sizes = ("-s", f"volume.fragment={list(fragment)}", "-s", "volume.grid=[2,2,2]")
        self.must(*scans, "--networks", self.folder / "large", "-o", self.folder / "much", *sizes, "-t", "2")
        expected = self.files(self.folder / "much")
        # The least that a run takes, as it says itself.
        done = run(*scans, "--networks", self.folder / "large", "-o", self.folder / "none", *sizes, "--memory", "1")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("raise volume.memory_mib", done.stderr)
        least = int(done.stderr.split("one fragment takes ")[1].split()[0])
        out = self.folder / "little"
        self.must(*scans, "--networks", self.folder / "large", "-o", out, *sizes, "-t", "4", "--memory", least + 24)
        self.assertEqual(self.files(out), expected)
        labels = Model(nets, fragment, (2, 2, 2)).vote(self.values(scans[0]))
        numpy.testing.assert_array_equal(numpy.asarray(self.made(out, scans[0]).dataobj).T, labels)


class Ends(Volumes):
    def test_a_killed_run_goes_on_and_makes_the_same(self):
        file = slow(self.folder / "slow.onnx", 4000)
        arguments = (*self.scans, "--networks", file, *settings("volume.in_flight=1"), "-t", "1")
        self.must(*arguments, "-o", self.folder / "whole")
        expected = self.files(self.folder / "whole")
        for number in (signal.SIGKILL, signal.SIGINT):
            out = self.folder / f"stopped{number}"
            process = subprocess.Popen(command(*arguments, "-o", out), env=ENVIRONMENT, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True)
            # The first one is in the ledger when the second one is there.
            while process.poll() is None and len(list(out.glob("images/*.labels.nii.gz"))) < 2:
                time.sleep(0.01)
            process.send_signal(number)
            errors = process.communicate(timeout=time_limit(200))[1]
            if number == signal.SIGINT and process.returncode != 0:
                self.assertEqual(process.returncode, 130, errors)
                self.assertIn("the same command does the rest", errors)
            done = self.must(*arguments, "-o", out)
            self.assertEqual(self.files(out), expected)
            self.assertEqual([row["status"] for row in self.table(out)], ["done"] * len(self.scans))
            if number == signal.SIGKILL:
                self.assertIn("skipped as done: ", done.stderr)

    def test_progress_is_told_while_it_runs(self):
        if "FAULTY_STORAGE" not in os.environ:
            self.skipTest("the library that slows the run can't stand before a sanitizer's")
        out = self.folder / "told"
        # Each call that writes there waits: the run takes several seconds.
        environment = {**ENVIRONMENT, "LD_PRELOAD": os.environ["FAULTY_STORAGE"], "FAULTY": "slow:200",
                       "FAULTY_ROOT": str(out)}
        process = subprocess.Popen(
            command(*self.scans, "--networks", self.folder / "nets", "-o", out, *settings("volume.in_flight=1")),
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        told = []
        while process.poll() is None:
            with contextlib.suppress(FileNotFoundError):
                now = json.loads((out / "progress.json").read_text())
                if not told or now != told[-1]:
                    told.append(now)
            time.sleep(0.005)
        self.assertEqual(process.returncode, 0, process.stderr.read())
        self.assertTrue(told)
        for now in told:
            self.assertEqual((now["version"], now["process"]["pid"]), (1, process.pid))
            self.assertEqual(now["slides"]["total"], len(self.scans))
            self.assertTrue(0 <= now["share"] <= 1)
            self.assertIn(now["busiest_stage"], ("open", "read", "compute", "fuse", "write"))
            self.assertEqual(now["images"], [])
        for before, now in zip(told, told[1:]):
            for name in "seconds", "share", "pixels", "bytes_read", "bytes_written":
                self.assertGreaterEqual(now[name], before[name], name)
            self.assertGreaterEqual(now["slides"]["done"], before["slides"]["done"])
        self.assertGreater(told[-1]["pixels"], 0)
        # It goes with the run.
        self.assertFalse((out / "progress.json").exists())

    def test_a_volume_that_fails_costs_no_other(self):
        damaged = self.folder / "damaged.nii.gz"
        damaged.write_bytes(self.scans[0].read_bytes()[:-30])
        series = self.folder / "series.nii"
        nibabel.save(nibabel.Nifti1Image(numpy.zeros((4, 4, 4, 3), "u1"), numpy.eye(4)), series)
        large = self.folder / "large.nii"
        nibabel.save(nibabel.Nifti1Image(numpy.zeros((60, 60, 60), "u1"), numpy.eye(4)), large)
        out = self.folder / "failed"
        inputs = (damaged, self.scans[1], series, large, self.folder / "none.nii", self.scans[2])
        done = run(*inputs, "--networks", self.folder / "nets", "-o", out, *settings())
        self.assertEqual(done.returncode, 1, done.stderr)
        rows = {row["path"]: row for row in self.table(out)}
        self.assertEqual([rows[str(path)]["status"] for path in inputs],
                         ["failed", "done", "failed", "failed", "failed", "done"])
        self.assertIn("cut short", rows[str(damaged)]["error"])
        self.assertIn("expected one 3-D volume", rows[str(series)]["error"])
        self.assertIn("fragments leave samples out of its 60 x 60 x 60", rows[str(large)]["error"])
        self.assertIn("No such file", rows[str(inputs[4])]["error"])
        self.assertEqual(len(self.files(out)), 2)
        damaged.write_bytes(self.scans[0].read_bytes())
        self.assertEqual(run(*inputs, "--networks", self.folder / "nets", "-o", out, *settings()).returncode, 1)
        self.assertEqual(len(self.files(out)), 3)

    def test_values_that_are_no_numbers_fail_their_volume(self):
        file = network(self.folder / "nan.onnx", channels=1, nodes=[
            helper.make_node("Sqrt", ["in"], ["root"]), helper.make_node("Identity", ["root"], ["out"])])
        good = self.folder / "good.nii"
        nibabel.save(nibabel.Nifti1Image(numpy.full((9, 21, 13), 4, "u1"), numpy.eye(4)), good)
        out = self.folder / "nan"
        done = run(self.scans[0], good, "--networks", file, "-o", out, *settings())
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, f"{self.scans[0]}: compute: {file}: fragment [0-9]+ of 12: the network gives the label ")
        numpy.testing.assert_array_equal(numpy.asarray(self.made(out, good).dataobj), 2)

    def test_a_fragment_that_takes_too_long_fails_its_volume(self):
        file = slow(self.folder / "endless.onnx", 2**62)
        self.assertIn("input.max_seconds = 1",
                      self.refused(self.scans[0], "--networks", file, "-o", self.folder / "endless",
                                   *settings("input.max_seconds=1")))

    def test_a_network_that_changes_while_it_runs_ends_the_run(self):
        if "FAULTY_STORAGE" not in os.environ:
            self.skipTest("the library that stops the run can't stand before a sanitizer's")
        for name, is_put_back in (("changed", False), ("put back", True)):
            with self.subTest(name):
                self.change_while_it_runs(name, is_put_back)

    def change_while_it_runs(self, name, is_put_back):
        file = self.folder / f"{name}.onnx"
        file.write_bytes(self.nets[0].read_bytes())
        before = file.stat()
        out = self.folder / name
        # It stops itself when it begins to write what it made.
        environment = {**ENVIRONMENT, "LD_PRELOAD": os.environ["FAULTY_STORAGE"], "FAULTY": "stop:1",
                       "FAULTY_ROOT": str(out / "images")}
        process = subprocess.Popen(command(self.scans[0], "--networks", file, "-o", out, *settings()), env=environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status), status)
        file.write_bytes(self.nets[1].read_bytes())
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns) if is_put_back else (1, 1))
        if is_put_back:
            self.assertEqual(file.stat().st_size, before.st_size)
        process.send_signal(signal.SIGCONT)
        errors = process.communicate(timeout=time_limit(200))[1]
        self.assertEqual(process.returncode, 3, errors)
        self.assertIn("the network's files have changed while the run was under way", errors)
        self.assertEqual(self.table(out), [])
        self.assertEqual(list((out / "images").iterdir()), [])

    def test_other_settings_and_networks_are_refused(self):
        out = self.folder / "settings"
        nets = self.folder / "copies"
        nets.mkdir()
        for net in self.nets:
            (nets / net.name).write_bytes(net.read_bytes())
        self.must(self.scans[0], "--networks", nets, "-o", out, *settings())
        self.assertIn("volume.fill", self.refused(self.scans[0], "--networks", nets, "-o", out, *settings("volume.fill=1.0")))
        # Where they lie, and how many volumes are in memory, decides nothing.
        self.must(self.scans[0], "--networks", self.folder / "nets", "-o", out, *settings("volume.in_flight=2"))
        (nets / self.nets[4].name).write_bytes(self.nets[5].read_bytes())
        self.assertIn("the networks' content", self.refused(self.scans[0], "--networks", nets, "-o", out, *settings()))
        self.must(self.scans[0], "--networks", nets, "-o", out, *settings(), "--fresh")

    def test_a_network_of_another_shape_is_refused(self):
        nets = self.folder / "odd"
        nets.mkdir()
        for net in self.nets:
            (nets / net.name).write_bytes(net.read_bytes())
        network(nets / self.nets[7].name, channels=3)
        self.assertIn(f"{nets / self.nets[7].name}: it takes ",
                      self.refused(*self.scans, "--networks", nets, "-o", self.folder / "odd-out", *settings()))
        self.assertFalse((self.folder / "odd-out").exists())

    def test_networks_of_equal_size_are_all_checked_and_measured_at_the_start(self):
        def expanding(path, channels):
            shape = numpy_helper.from_array(numpy.array([1, channels, *FRAGMENT], "i8"), "shape")
            return network(path, channels=2, nodes=[
                helper.make_node("Constant", [], ["shape"], value=shape),
                helper.make_node("Expand", ["in", "shape"], ["many"]),
                helper.make_node("Sin", ["many"], ["sines"]),
                helper.make_node("ReduceMax", ["sines"], ["most"], axes=[1], keepdims=1),
                helper.make_node("Concat", ["most", "in"], ["out"], axis=1)])

        nets = self.folder / "equal-size"
        for i, net in enumerate(self.nets):
            expanding(nets / net.name, 7000 if i == 7 else 200)
        self.assertEqual(len({net.stat().st_size for net in nets.iterdir()}), 1)
        arguments = ("--networks", nets, "-o", self.folder / "equal-size-out", *settings())
        # 7000 x 480 floats.
        self.assertIn("fragment takes ", self.refused(self.scans[0], *arguments, "--memory", "12"))
        done = self.must(self.scans[0], *arguments, "--dry-run")
        more = float(done.stdout.split(" MiB more for each")[0].split()[-1])
        self.assertGreater(more, 12)
        for i, net in enumerate(self.nets):
            (nets / net.name).write_bytes(net.read_bytes())
        (nets / self.nets[7].name).write_bytes(b"j" * self.nets[7].stat().st_size)
        self.assertIn(f"{nets / self.nets[7].name}: ", self.refused(self.scans[0], *arguments))
        self.assertFalse((self.folder / "equal-size-out").exists())

    def test_shards_make_the_whole(self):
        whole = self.folder / "all"
        self.must(*self.scans, "--networks", self.folder / "nets", "-o", whole, *settings())
        files = {}
        for i in (1, 2):
            out = self.folder / f"part{i}"
            self.must(*self.scans, "--networks", self.folder / "nets", "-o", out, *settings(), "--shard", f"{i}/2")
            if (out / "images").exists():
                files.update(self.files(out))
        self.assertEqual(files, self.files(whole))
        parts = [self.folder / f"part{i}" for i in (1, 2)]
        merged = self.folder / "merged"
        done = subprocess.run([PIPELINE, "merge", *map(str, parts), "-o", str(merged)], capture_output=True, text=True,
                              timeout=time_limit(100), env=ENVIRONMENT, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((merged / "labels.csv").read_bytes(), (whole / "labels.csv").read_bytes())
        for name in ("run.sqlite-wal", "run.sqlite-shm"):
            self.assertFalse((merged / name).exists(), name)


class Words(Volumes):
    def test_refusals(self):
        nets = ("--networks", self.folder / "nets")
        scan, out = self.scans[0], ("-o", self.folder / "refused")
        few = self.folder / "few"
        few.mkdir()
        for net in self.nets[:5]:
            (few / net.name).write_bytes(net.read_bytes())
        one = network(self.folder / "one.onnx", channels=1)
        whole = network(self.folder / "whole.onnx", last=LABELS, gives=(TensorProto.INT64, [1, 1, *FRAGMENT]))
        for arguments, words in (
                ((scan, *out), "which network?"),
                ((*nets, *out), "no volume: name volumes, folders or lists, or set input.slides (see pipeline volume --help)"),
                ((*nets, *out, "--dry-run", "--shard", "1/2"), "--dry-run plans all volumes"),
                ((scan, "--networks", few, *out, *settings()), "5 networks; volume.grid = [2, 3, 2] wants one, or one for each of 12"),
                ((scan, "--networks", self.folder / "none.onnx", *out, *settings()), "No such file"),
                ((scan, "--networks", self.folder / "scans", *out, *settings()), "a folder without a network"),
                ((scan, "--networks", one, *out), "it takes 1 x 1 x 8 x 10 x 6 of float32; expected 1 x 1 x 96 x 128 x 88"),
                ((scan, *nets, *out, *settings("volume.grid=[2,3]")), "volume.grid has 2 numbers; expected 3"),
                ((scan, *nets, *out, *settings("volume.grid=[0,3,2]")), "volume.grid"),
                ((scan, *nets, *out, *settings("volume.spaces=1")), "unknown key"),
                ((scan, *nets, *out, *settings("operators.run=sobel")), "operators.run can't be set here"),
                ((scan, *nets, *out, *settings("output.maps=npy")), "output.maps"),
                ((scan, *nets, *out, *settings("model.provider=cuda")), "model.provider"),
                ((scan, *nets, *out, *settings("model.range=[0,5]")), 'model.range is [0.0, 5.0]; volume.fusion = "vote" takes'),
                ((scan, "--networks", one, *out, "--fusion", "blend", *settings("model.activation=softmax")),
                 'model.activation is "softmax"; an image of one channel has no use for it'),
                ((scan, "--networks", one, *out, "--fusion", "blend", *settings("model.activation=sigmoid", "model.range=[0,3]")),
                 'model.range is [0.0, 3.0], and model.activation is "sigmoid", which gives values from 0 to 1'),
                ((scan, *nets, *out, *settings("model.mean=[1,2,3]")), "model.mean"),
                *(((scan, *nets, *out, *settings(setting)), f"{words}; it is a setting of slides, and volumes have no use for it")
                  for setting, words in (("stitch.mode=lenient", 'stitch.mode is "lenient"'), ("stitch.edge=mirror", 'stitch.edge is "mirror"'),
                                         ("image.format=dzi", 'image.format is "dzi"'), ("input.mpp=0.5", "input.mpp is 0.5"))),
                ((scan, *nets, *out, *settings("stitch.weights=none")),
                 'stitch.weights is "none"; only volume.fusion = "blend" weighs fragments'),
                ((scan, *nets, *out, *settings("model.ignore=256")), "model.ignore is 256; expected at most 255"),
                ((scan, *nets, *out, "--fusion", "mean", *settings("model.ignore=3")),
                 'model.ignore is 3; only volume.fusion = "vote" leaves a label out'),
                ((scan, *nets, *out, *settings(), "--memory", "1"), "raise volume.memory_mib"),
                ((scan, *nets, *out, "--fusion", "blend", *settings()), "wants an image of one channel"),
                ((scan, "--networks", one, *out, "--fusion", "mean", *settings()), "wants two channels or more"),
                ((scan, "--networks", whole, *out, "--fusion", "blend", *settings()), "whole numbers are labels"),
                ((self.folder / "nothing.nii", *nets, *out, *settings()), "No such file"),
                ((self.folder / "nets", *nets, *out, *settings()), "no volume in")):
            done = run(*arguments)
            self.assertIn(words, done.stderr)
            self.assertEqual(done.returncode, 2, arguments)
        self.assertFalse((self.folder / "refused").exists())

    def test_volumes_beside_results_stay(self):
        folder = self.folder / "beside"
        for name, scan in zip(("a.nii.gz", "sub/b.nii.gz", "sub/images.nii.gz"), self.scans):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(scan.read_bytes())
        taken = [str(folder / name) for name in ("a.nii.gz", "sub/b.nii.gz", "sub/images.nii.gz")]
        for out in folder / "sub", folder:
            for _ in range(2):
                done = self.must(folder, "--networks", self.folder / "nets", "-o", out, *settings())
                paths = [row["path"] for row in self.table(out)]
                self.assertEqual(paths, taken if out != folder else taken[:1])
            self.assertIn(f"{out}/images: has results of an earlier run; {len(paths)} file", done.stderr)
        # Another run's folder is passed over unless it is named.
        self.assertIn(f"{folder}/sub: has results of an earlier run; 5 files in it named like volumes passed over; "
                      "naming them uses them", done.stderr)
        done = self.must(folder / "sub", "--networks", self.folder / "nets", "-o", self.folder / "apart", *settings())
        self.assertEqual(len(list((self.folder / "apart/images").iterdir())), 2)

    def test_a_row_has_the_depth(self):
        done = self.must(self.scans[1], "--networks", self.folder / "nets", "-o", self.folder / "rows", "--stats", *settings())
        self.assertRegex(done.stdout, r"(?m)^ *volume +size +files")
        self.assertIn(" x ".join(map(str, nibabel.load(self.scans[1]).shape)), done.stdout)

    def test_other_commands_name_the_one_for_volumes(self):
        scan = str(self.scans[0])
        for arguments in (("info", scan), ("convert", scan, "--to", "ome-tiff", "--out", str(self.folder / "converted")),
                          (scan, "--out", str(self.folder / "as-slide"))):
            done = subprocess.run([PIPELINE, *arguments], capture_output=True, text=True, timeout=time_limit(100),
                                  env=ENVIRONMENT, check=False)
            self.assertNotEqual(done.returncode, 0, arguments)
            self.assertIn("`pipeline volume`", done.stdout + done.stderr, arguments)

    def test_results_in_folders_are_no_volumes(self):
        folder = self.folder / "with-results"
        folder.mkdir()
        for name, scan in zip(("a.nii.gz", "b.labels.nii.gz"), self.scans):
            (folder / name).write_bytes(scan.read_bytes())
        first = self.folder / "first"
        nets = ("--networks", self.folder / "nets")
        self.must(folder, *nets, "-o", first, *settings())
        made = folder / "renamed.nii.gz"
        made.write_bytes((first / "images/a.labels.nii.gz").read_bytes())
        out = self.folder / "second"
        done = self.must(folder, *nets, "-o", out, *settings())
        self.assertEqual([row["path"] for row in self.table(out)], [str(folder / name) for name in ("a.nii.gz", "b.labels.nii.gz")])
        self.assertIn(f"{made}: a result of slidestream; 1 file passed over; naming it uses it", done.stderr)
        out = self.folder / "named"
        done = self.must(made, *nets, "-o", out, *settings())
        self.assertEqual([row["path"] for row in self.table(out)], [str(made)])
        self.assertNotIn("passed over", done.stderr)
        done = run(first / "images", *nets, "-o", self.folder / "nothing", *settings())
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("2 files passed over; naming them uses them", done.stderr)
        self.assertIn("no volume in", done.stderr)

    def test_a_table_of_others_stays(self):
        out = self.folder / "labelled"
        out.mkdir()
        (out / "labels.csv").write_text("slide,label\n")
        arguments = (self.scans[0], "--networks", self.folder / "nets", "-o", out, *settings())
        done = run(*arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(f"{out}: has labels.csv, but no run.sqlite; name another folder, or use --fresh", done.stderr)
        self.assertEqual([file.name for file in out.iterdir()], ["labels.csv"])
        self.assertEqual((out / "labels.csv").read_text(), "slide,label\n")
        self.must(*arguments, "--fresh")
        self.assertEqual((out / "earlier-1/labels.csv").read_text(), "slide,label\n")
        # Its own is moved with the run, and written anew.
        first = (out / "labels.csv").read_text()
        self.assertTrue(first.startswith("path,label,voxels,mm3"))
        self.must(*arguments, "--fresh")
        self.assertEqual([(out / place).read_text() for place in ("earlier-2/labels.csv", "labels.csv")], [first, first])

    def test_a_dry_run_writes_nothing(self):
        out = self.folder / "dry"
        done = self.must(*self.scans, "--networks", self.folder / "nets", "-o", out, *settings(), "--dry-run")
        for words in ("networks 12, ONNX Runtime ", "may be taken", "9 x 21 x 13", "int16", str(out)):
            self.assertIn(words, done.stdout)
        self.assertFalse(out.exists())
        damaged = self.folder / "cut.nii"
        damaged.write_bytes(b"x" * 700)
        done = run(damaged, self.scans[0], "--networks", self.folder / "nets", "-o", out, *settings(), "--dry-run")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(f"would fail  {damaged}: no NIfTI file", done.stdout)

    def test_a_dry_run_tells_of_volumes_that_memory_never_fits(self):
        large = self.folder / "200.nii"
        nibabel.save(nibabel.Nifti1Image(numpy.zeros((200, 200, 200), "u1"), numpy.eye(4)), large)
        arguments = (large, self.scans[0], "--networks", self.nets[0], *settings("volume.grid=[25,20,34]"))
        least = int(run(*arguments, "-o", self.folder / "none", "--memory", "1").stderr.split("one fragment takes ")[1].split()[0])
        for fusion, takes in (("vote", 54), ("mean", 64)):
            cause = rf"it takes {takes} MiB of memory, and \d+ MiB are left beside a network; raise volume.memory_mib"
            more = ("-o", self.folder / f"no-room-{fusion}", "--memory", least + 34, "--fusion", fusion)
            dry = run(*arguments, *more, "--dry-run")
            self.assertEqual(dry.returncode, 1, dry.stderr)
            self.assertRegex(dry.stdout, f"would fail  {large}: {cause}")
            self.assertNotIn(f"would fail  {self.scans[0]}", dry.stdout)
            # And so it is.
            self.assertRegex(run(large, *arguments[2:], *more).stderr, cause)

    def test_a_dry_run_tells_of_more_fragments_than_mean_takes(self):
        net = network(self.folder / "tiny.onnx", fragment=(1, 1, 4))
        scan = self.folder / "tiny.nii"
        nibabel.save(nibabel.Nifti1Image(numpy.zeros((3, 1, 1), "u1"), numpy.eye(4)), scan)
        arguments = (scan, "--networks", net, "-s", "volume.fragment=[1,1,4]", "-s", "volume.grid=[256,256,2]",
                     "-o", self.folder / "many", "--fusion", "mean")
        cause = "scores of 131072 fragments can't be averaged; expected at most 65537 that overlap"
        dry = run(*arguments, "--dry-run")
        self.assertEqual(dry.returncode, 1, dry.stderr)
        self.assertIn(f"would fail  {scan}: {cause}", dry.stdout)
        # And so it is.
        done = run(*arguments)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(f"{scan}: open: {cause}", done.stderr)

    def test_folders_lists_and_hidden_files(self):
        folder = self.folder / "inputs"
        (folder / "below").mkdir(parents=True)
        for path in (folder / "b.nii.gz", folder / "below" / "a.NII.GZ", folder / ".hidden.nii.gz"):
            path.write_bytes(self.scans[1].read_bytes())
        (folder / "text.txt").write_text("no volume")
        out = self.folder / "from-folder"
        self.must(folder, "--networks", self.folder / "nets", "-o", out, *settings())
        self.assertEqual([row["path"] for row in self.table(out)],
                         [str(folder / "b.nii.gz"), str(folder / "below" / "a.NII.GZ")])
        (folder / "some.list").write_text("b.nii.gz\n# and\nbelow/a.NII.GZ\n")
        out = self.folder / "from-list"
        self.must(folder / "some.list", folder / "b.nii.gz", "--networks", self.folder / "nets", "-o", out, *settings())
        self.assertEqual(len(self.table(out)), 2)

    def test_volumes_of_one_name_have_files_of_their_own(self):
        for name in ("one", "two"):
            (self.folder / name).mkdir()
            (self.folder / name / "same.nii.gz").write_bytes(self.scans[1].read_bytes())
        out = self.folder / "names"
        self.must(self.folder / "one", self.folder / "two", "--networks", self.folder / "nets", "-o", out, *settings())
        names = sorted(os.listdir(out / "images"))
        self.assertEqual(len(names), 2)
        self.assertEqual(names[0][:5] + names[1], "same-same.labels.nii.gz")

    def test_other_commands_read_the_results(self):
        out = self.folder / "read"
        self.must(*self.scans, "--networks", self.folder / "nets", "-o", out, *settings())
        for words, told in (("status", "\nvolumes   4 of 4 done\n"), ("verify", " files of 4 volumes are as written")):
            done = subprocess.run([PIPELINE, words, out], capture_output=True, text=True, timeout=time_limit(100),
                                  env=ENVIRONMENT, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn(told, done.stdout)
        page = self.folder / "report.html"
        done = subprocess.run([PIPELINE, "report", out, "--html", page], capture_output=True, text=True, timeout=time_limit(100),
                              env=ENVIRONMENT, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("4 thumbnails", done.stdout + done.stderr)
        # Each volume has a picture with its labels, too.
        self.assertEqual(page.read_text(encoding="utf-8").count("/9j/"), 8)


class Documents(Volumes):
    """What docs/volumes.md says, on a smaller head."""

    COMMANDS = ("scripts/make-models.py models slant_small",
                "scripts/make-models.py models unet_64",
                "pipeline synth --volume --out head.nii.gz",
                "pipeline volume head.nii.gz --networks models/slant_small -o labels",
                "pipeline volume head.nii.gz --networks models/unet_64.onnx -o out -s volume.fragment=[64,64,64] -s volume.grid=[3,4,3]",
                "pipeline volume head.nii.gz --networks models/unet_64.onnx -o resampled -s volume.fragment=[64,64,64] -s volume.grid=[3,5,4] "
                "-s volume.spacing=[1.0,0.8,0.8]")

    def test_its_commands(self):
        page = (ROOT / "docs" / "volumes.md").read_text(encoding="utf-8")
        for line in self.COMMANDS:
            self.assertIn(line, page.replace("\\\n  ", ""))
        here = self.folder / "here"
        here.mkdir()
        (here / "scripts").symlink_to(ROOT / "scripts")
        (here / "pipeline").symlink_to(PIPELINE)
        environment = {**FINDING, "PATH": f"{here}:{FINDING['PATH']}"}
        # Networks and heads of the page take minutes.
        _, _, synth, label, one, resampled = self.COMMANDS
        network(here / "models" / "unet_64.onnx", seed=1)
        for i in range(27):
            network(here / "models" / "slant_small" / f"network-{i + 1:02}.onnx", seed=i)
        sizes = " -s volume.fragment=[8,10,6] -s volume.grid="
        for line in (synth, synth.replace("--volume", "--volume 19x23x15"), synth.replace("--volume", "--volume 20x24x16 --overwrite"),
                     label + sizes + "[3,3,3]", one.split(" -s")[0] + sizes + "[3,3,3]",
                     resampled.replace("[64,64,64]", "[8,10,6]").replace("[3,5,4]", "[3,3,4]")):
            done = subprocess.run(["bash", "-c", line], cwd=here, env=environment, capture_output=True, text=True,
                                  timeout=time_limit(250), check=False)
            self.assertEqual(done.returncode, 0, f"{line}: {done.stderr}")
        head = nibabel.load(here / "head.nii.gz")
        self.assertEqual((head.shape, head.get_data_dtype()), ((16, 24, 20), numpy.int16))
        self.assertEqual(head.header.get_zooms(), (1, 1, 1))
        nets = sorted((here / "models" / "slant_small").iterdir())
        numpy.testing.assert_array_equal(numpy.asarray(self.made(here / "labels", here / "head.nii.gz").dataobj).T,
                                         Model(nets, grid=(3, 3, 3)).vote(self.values(here / "head.nii.gz")))

    def test_its_networks(self):
        make = runpy.run_path(str(ROOT / "scripts" / "make-models.py"))
        for name, classes, weights, kind in (
                ("slant", 133, 19e6, TensorProto.FLOAT), ("slant_half", 133, 19e6, TensorProto.FLOAT16),
                ("slant_small", 5, 17e3, TensorProto.FLOAT)):
            networks = make[name]()
            first, second = (next(networks).graph for _ in range(2))
            self.assertNotEqual(first.initializer[1].raw_data, second.initializer[1].raw_data)
            for value, shape in ((first.input[0], [1, 1, 96, 128, 88]), (first.output[0], [1, classes, 96, 128, 88])):
                tensor = value.type.tensor_type
                self.assertEqual((tensor.elem_type, [side.dim_value for side in tensor.shape.dim]), (kind, shape), name)
            made = sum(numpy.prod(weight.dims) for weight in first.initializer)
            self.assertTrue(0.9 * weights < made < 1.1 * weights, made)
        folder = self.folder / "made"
        subprocess.run([sys.executable, "-B", ROOT / "scripts" / "make-models.py", folder, "slant_small", "unet_64"], check=True,
                       timeout=time_limit(250))
        one = onnx.load(folder / "unet_64.onnx").graph
        self.assertEqual([[side.dim_value for side in value.type.tensor_type.shape.dim] for value in (*one.input, *one.output)],
                         [[1, 1, 64, 64, 64], [1, 5, 64, 64, 64]])
        self.assertEqual([file.name for file in sorted((folder / "slant_small").iterdir())],
                         [f"network-{i + 1:02}.onnx" for i in range(27)])

    def test_a_head_is_the_same_every_time_and_no_other_file_is_replaced(self):
        path = self.folder / "head.nii.gz"
        texts = []
        for _ in range(2):
            done = subprocess.run([PIPELINE, "synth", "--volume", "30x40x20", "--out", str(path)], capture_output=True,
                                  text=True, timeout=time_limit(60), check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            texts.append(path.read_bytes())
        self.assertEqual(texts[0], texts[1])
        samples = numpy.asarray(nibabel.load(path).dataobj)
        # Air around, tissue within.
        self.assertLess(samples[:2, :2, :2].max(), 50)
        self.assertGreater(samples[10, 20, 15], 400)
        for words, other in ((("--out", str(self.scans[0])), "didn't write it"), (("--out", "a.nii"), "must end in .nii.gz"),
                             (("--out", "a.nii.gz", "--volume=3x4"), "isn't ZxYxX")):
            done = subprocess.run([PIPELINE, "synth", "--volume", *words] if "=" not in words[-1] else
                                  [PIPELINE, "synth", *words], capture_output=True, text=True, timeout=time_limit(60), check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(other, done.stderr)


if __name__ == "__main__":
    unittest.main()
