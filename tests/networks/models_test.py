"""The program with networks: `PIPELINE=path MODELS=folder TEST_PYTHON=path models_test.py [CLASS ...]`.

MODELS holds what scripts/make-models.py makes, and libonnxruntime.so; TEST_PYTHON has the packages onnx, onnxruntime and
h5py. Where they aren't there the tests are skipped."""

import csv
import json
import os
import pickle
import re
import resource
import shutil
import signal
import subprocess
import time
import unittest
import zipfile

# Where packages are missing this ends, or begins anew with a Python that has them.
from models_case import DATA, ENVIRONMENT, FINDING, MODELS, PIPELINE, ROOT, Models, level0, run, settings_of
from time_limits import time_limit  # noqa: E402

import h5py
import numpy
import onnxruntime


class Images(Models):
    def test_a_network_that_gives_its_input_gives_the_slide(self):
        expected = self.pixels()
        for model, *more in (("identity", "model.overlap=16"), ("half", "model.overlap=0"), ("two", "stitch.edge=mirror")):
            out = self.folder / model
            self.must(self.slide, "-o", out, *settings_of(model, *self.ZARR, *more))
            numpy.testing.assert_array_equal(level0(out / "images" / "slide.model.ome.zarr"), expected, model)

    def test_a_blur_whose_tiles_share_enough_is_that_of_the_whole(self):
        pixels = self.pixels().astype(float)
        out = self.folder / "blur"
        self.must(self.slide, "-o", out, *settings_of("blur", *self.ZARR, "stitch.weights=none"))  # blur.toml: overlap 8
        made = level0(out / "images" / "slide.model.ome.zarr")
        beyond = numpy.pad(pixels, ((1, 1), (1, 1), (0, 0)))
        height, width, _ = pixels.shape
        mean = sum(beyond[y:y + height, x:x + width] for y in range(3) for x in range(3)) / 9
        self.assertLessEqual(numpy.abs(made - mean).max(), 0.51)

    def test_a_file_is_the_same_whatever_strips_and_threads(self):
        files = []
        for i, more in enumerate((("pipeline.strip_height=64", "pipeline.threads=1"),
                                  ("pipeline.strip_height=512", "pipeline.threads=3", "model.sessions=2"))):
            out = self.folder / f"unet{i}"
            self.must(self.slide, "-o", out, *settings_of("unet", "image.format=ome-tiff", *more))
            files.append((out / "images" / "slide.model.ome.tif").read_bytes())
        self.assertEqual(files[0], files[1])

    def test_labels_are_never_compressed_with_loss(self):
        words = settings_of("classes", "input.mpp_default=0.5")
        for key in "image.format=dzi", "image.format=dicom", "image.compression=jpeg":
            name, value = key.split("=")
            self.assertIn(f'{name} = "{value}" holds no labels, which JPEG would change, and an image of this run has labels; use ',
                          self.refused(self.slide, "-o", self.folder / "lossy", *words, "-s", key))

    def test_classes_that_a_sigmoid_makes_equal_are_told_with_their_share(self):
        for scale in (30, 4):
            out = self.folder / f"saturated{scale}"
            done = run(self.slide, "-o", out, *settings_of("identity", "model.output=classes", "model.activation=sigmoid",
                                                           f"model.scale={scale}", *self.ZARR))
            self.assertEqual(done.returncode, 0, done.stderr)
            scores = self.pixels() * (scale / 255)
            samples = numpy.rint(65535 / (1 + numpy.exp(-scores)))
            largest = numpy.where(samples == samples.max(axis=-1, keepdims=True), scores, numpy.nan)
            share = (numpy.nanmin(largest, axis=-1) < numpy.nanmax(largest, axis=-1)).mean()
            self.assertEqual(share > 0.01, scale == 30)
            [row] = self.table(out)
            # Tiles at the edge are moved back.
            self.assertAlmostEqual(float(row["model.saturated"]), share, delta=0.1 if share else 0)
            self.assertEqual("the network gave scores that a sigmoid makes equal on a slide: at " in done.stderr, share > 0)
        softmax = self.folder / "softmax"
        self.must(self.slide, "-o", softmax, *settings_of("identity", "model.output=classes", "model.activation=softmax",
                                                          "model.scale=30"))
        self.assertNotIn("model.saturated", self.table(softmax)[0])

    def test_values_that_are_clamped_are_told_with_their_share(self):
        for high, told in ((1.0, False), (0.5, True)):
            out = self.folder / f"clamped{told}"
            done = run(self.slide, "-o", out, *settings_of("identity", *self.ZARR, f"model.range=[0.0, {high}]"))
            self.assertEqual(done.returncode, 0, done.stderr)
            share = (self.pixels() / numpy.float32(255) > high).mean()
            with open(out / "slides.csv", newline="", encoding="utf-8") as file:
                [row] = csv.DictReader(file)
            # Tiles that share pixels count each of theirs.
            self.assertAlmostEqual(float(row["model.clamped"]), share, delta=0.1 if told else 0)
            self.assertEqual("values outside model.range on a slide; the image has them clamped: " in done.stderr, told, done.stderr)

    def test_classes_and_smaller_images(self):
        pixels = self.pixels()
        out = self.folder / "classes"
        self.must(self.slide, "-o", out, *settings_of("classes", *self.ZARR))
        made = level0(out / "images" / "slide.model.ome.zarr")
        weights = numpy.array([[1, 1, 1], [-1, -1, -1], [3, -3, 0], [0, -3, 3]])
        expected = (pixels / 255 @ weights.T + [-1.5, 1.5, 0, 0]).argmax(axis=2)
        self.assertGreater(len(numpy.unique(expected)), 1)
        # Those that are nearly equal may fall either way.
        self.assertLess(numpy.count_nonzero(made[..., 0] != expected), expected.size / 500)
        out = self.folder / "smaller"
        self.must(self.slide, "-o", out, *settings_of("smaller", *self.ZARR))
        made = level0(out / "images" / "slide.model.ome.zarr")
        mean = pixels.astype(float).reshape(250, 2, 350, 2, 3).mean(axis=(1, 3))
        self.assertLessEqual(numpy.abs(made - mean).max(), 0.51)


def clam_side(attributes, downsamples):
    """Pixels of level 0 along a tile that CLAM's Whole_Slide_Bag_FP reads: patch_size pixels of patch_level."""
    return attributes["patch_size"] * downsamples[attributes["patch_level"]]


def trident_side(attributes):
    """The same of TRIDENT's WSIPatcher, which has a tile resized by both magnifications."""
    downsample = (10 / attributes["target_magnification"]) / (10 / attributes["level0_magnification"])
    return round(attributes["patch_size"] * downsample)


def legacy_trident_side(attributes, downsamples):
    """The same where magnifications aren't known (WSIPatcher.from_legacy_coords)."""
    ratio = downsamples[attributes["patch_level"]] * attributes["custom_downsample"]
    return round(attributes["patch_size"] * ratio)


class Bag:
    """What CLAM's Whole_Slide_Bag_FP and TRIDENT's WSIPatcher take from such a file."""

    def __init__(self, path):
        with h5py.File(path, "r") as file:
            coords = file["coords"]
            self.coords = coords[:]
            self.attributes = dict(coords.attrs)
            self.patch_level = coords.attrs["patch_level"]
            self.patch_size = coords.attrs["patch_size"]
            self.features = file["features"][:]
            self.encoder = file["features"].attrs["encoder"]
            self.name = file["features"].attrs["name"]
            self.length = len(coords)


class Unpickler(pickle.Unpickler):
    """Knows of a tensor's pickle what PyTorch's own needs, and refuses all else."""

    def __init__(self, archive, folder):
        super().__init__(archive.open(f"{folder}/data.pkl"))
        self.archive, self.folder = archive, folder

    def find_class(self, module, name):
        return {"torch._utils _rebuild_tensor_v2": self.tensor, "torch FloatStorage": "<f4",
                "collections OrderedDict": dict}[f"{module} {name}"]

    def persistent_load(self, pid):
        kind, dtype, key, place, count = pid
        values = numpy.frombuffer(self.archive.read(f"{self.folder}/data/{key}"), dtype)
        assert (kind, place, len(values)) == ("storage", "cpu", count)
        return values

    @staticmethod
    def tensor(storage, offset, size, stride, requires_grad, hooks):
        assert not requires_grad and hooks == {}
        return numpy.lib.stride_tricks.as_strided(storage[offset:], size, [4 * each for each in stride])


def loaded(path):
    """What torch.load gives; by PyTorch itself where it is."""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        folder = archive.namelist()[0].split("/")[0]
        assert archive.read(f"{folder}/version") == b"3\n" and archive.read(f"{folder}/byteorder") == b"little"
        values = Unpickler(archive, folder).load()
    try:
        import torch
    except ImportError:
        return values
    tensor = torch.load(path, weights_only=True)
    assert tensor.dtype == torch.float32
    numpy.testing.assert_array_equal(tensor.numpy(), values)
    return values


class Features(Models):
    ALL = ("model.where=all",)

    def test_they_are_those_of_the_tiles(self):
        pixels = self.pixels()
        out = self.folder / "all"
        self.must(self.slide, "-o", out, *settings_of("features", *self.ALL))
        bag = Bag(out / "features" / "slide.h5")
        self.assertFalse((out / "images").exists())
        # Tiles of 64 on a regular grid; what lies outside of the slide is mirrored.
        places = lambda size: range(0, size, 64)  # noqa: E731
        pixels = numpy.pad(pixels, ((0, 64), (0, 64), (0, 0)), mode="symmetric")
        corners = [(x, y) for y in places(500) for x in places(700)]
        self.assertEqual(bag.coords.dtype, numpy.int64)
        numpy.testing.assert_array_equal(bag.coords, corners)
        self.assertEqual((bag.patch_level, bag.patch_size, bag.encoder, bag.name), (0, 64, "features.onnx", "slide"))
        self.assertEqual({key: bag.attributes[key] for key in (
            "patch_size_level0", "overlap", "level0_width", "level0_height", "custom_downsample", "name")},
            {"patch_size_level0": 64, "overlap": 0, "level0_width": 700, "level0_height": 500, "custom_downsample": 1,
             "name": "slide"})
        self.assertEqual(bag.attributes["level0_magnification"], bag.attributes["target_magnification"])
        self.assertIsInstance(bag.attributes["name"], str)
        tiles = numpy.stack([pixels[y:y + 64, x:x + 64] for x, y in corners]).transpose(0, 3, 1, 2)
        mean, deviation = ((numpy.array(each).reshape(1, 3, 1, 1)) for each in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
        session = onnxruntime.InferenceSession(MODELS / "features.onnx")
        expected = session.run(None, {"tiles": ((tiles / 255 - mean) / deviation).astype("float32")})[0]
        self.assertEqual((bag.features.dtype, bag.features.shape), (numpy.float32, (len(corners), 32)))
        numpy.testing.assert_allclose(bag.features, expected, rtol=1e-4, atol=1e-5)
        self.assertGreater(numpy.ptp(expected, axis=0).max(), 0.01)

    def test_the_bytes_are_the_same_whatever_strips_threads_and_time(self):
        files = []
        for i, more in enumerate((("pipeline.strip_height=64", "pipeline.threads=1"),
                                  ("pipeline.strip_height=512", "pipeline.threads=3", "model.sessions=3"))):
            out = self.folder / f"same{i}"
            if i > 0:
                time.sleep(1.1)  # a file would say when, to the second
            self.must(self.slide, "-o", out, *settings_of("features", *self.ALL, *more))
            files.append((out / "features" / "slide.h5").read_bytes())
        self.assertEqual(files[0], files[1])
        self.assertNotIn(str(self.folder).encode(), files[0])
        self.assertNotIn(str(MODELS).encode(), files[0])

    def test_attributes_have_types_of_their_own_whatever_their_values(self):
        types = []
        for i, more in enumerate((("input.mpp=0.25",), ("input.mpp=0.27", "model.mpp=0.5"))):
            out = self.folder / f"types{i}"
            self.must(self.slide, "-o", out, *settings_of("features", *self.ALL, *more))
            with h5py.File(out / "features" / "slide.h5") as file:
                coords = dict(file["coords"].attrs)
            types.append({name: type(value) for name, value in coords.items()})
        self.assertEqual(types[0], types[1])
        for name in ("level0_magnification", "target_magnification", "tile_magnification", "custom_downsample",
                     "tile_downsample"):
            self.assertIs(types[0].pop(name), numpy.float64, name)
        for name in ("name", "creator"):
            self.assertIs(types[0].pop(name), str, name)
        self.assertEqual(set(types[0].values()), {numpy.int64})

    def test_a_tensor_for_clam(self):
        out = self.folder / "both"
        self.must(self.slide, "-o", out, *settings_of("features", *self.ALL, "features.format=both"))
        bag = Bag(out / "features" / "slide.h5")
        numpy.testing.assert_array_equal(loaded(out / "features" / "slide.pt"), bag.features)
        with open(out / "artifacts.csv", newline="", encoding="utf-8") as file:
            self.assertEqual([row["file"] for row in csv.DictReader(file)], ["features/slide.h5", "features/slide.pt"])
        (out / "features" / "slide.pt").unlink()
        self.must(self.slide, "-o", out, *settings_of("features", *self.ALL, "features.format=both"))
        numpy.testing.assert_array_equal(loaded(out / "features" / "slide.pt"), bag.features)
        self.assertIn("features.format is", self.refused(self.slide, "-o", out, *settings_of("features", *self.ALL)))
        alone = self.folder / "pt"
        self.must(self.slide, "-o", alone, *settings_of("features", *self.ALL, "features.format=pt"))
        self.assertEqual([file.name for file in (alone / "features").iterdir()], ["slide.pt"])
        numpy.testing.assert_array_equal(loaded(alone / "features" / "slide.pt"), bag.features)

    def test_places_alone_are_those_of_features(self):
        for i, more in enumerate((("model.where=all",), ("model.where=tissue",), ("model.where=tissue", "model.overlap=16"),
                                  ("model.where=all", "input.mpp=0.25", "model.mpp=0.4"),
                                  ("model.where=tissue", "stitch.edge=shift", "model.tissue_share=0.5"))):
            full, places = self.folder / f"full{i}", self.folder / f"places{i}"
            self.must(self.slide, "-o", full, *settings_of("features", *more))
            settings = ['operators.run=["model"]', "features.coords_only=true", "model.tile=64", *more]
            self.must(self.slide, "-o", places, *[word for each in settings for word in ("-s", each)])
            bag = Bag(full / "features" / "slide.h5")
            with h5py.File(places / "coords" / "slide.h5") as file:
                self.assertEqual(list(file), ["coords"])
                numpy.testing.assert_array_equal(file["coords"][:], bag.coords, str(more))
                self.assertEqual(dict(file["coords"].attrs), bag.attributes)
            self.assertFalse((places / "features").exists())
        alone = ('operators.run=["model"]', "features.coords_only=true")
        # Of a network that is named its MODEL.toml is all that is read.
        (self.folder / "named.toml").write_text("[model]\ntile = 64\nwhere = \"tissue\"\n")
        out = self.folder / "named"
        self.must(self.slide, "-o", out, *[word for each in (*alone, f"model.file={self.folder / 'named.onnx'}")
                                           for word in ("-s", each)])
        with h5py.File(out / "coords" / "slide.h5") as file:
            numpy.testing.assert_array_equal(file["coords"][:], Bag(self.folder / "full1" / "features" / "slide.h5").coords)
        for more, message in (((), "model.tile is open"), (("model.tile=64", "features.format=both"), "features.format"),
                              (("model.tile=64", "model.output=classes"), "model.output isn't"),
                              (("model.tile=64", "model.overlap=33"), "at most half of model.tile")):
            words = [word for each in (*alone, *more) for word in ("-s", each)]
            self.assertIn(message, self.refused(self.slide, "-o", self.folder / "none", *words))

    def test_a_line_says_that_no_tile_has_the_share_of_tissue(self):
        slide = self.folder / "spot.svs"
        shutil.copy(self.slide, slide)
        # One pixel of the mask, or a few: less than a tile.
        corners = [[100, 100], [130, 100], [130, 130], [100, 130], [100, 100]]
        slide.with_suffix(".geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [
            {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [corners]}}]}))
        more = ("model.where=tissue", "model.tissue_share=1", "tissue.source=geojson")
        places = ['operators.run=["model"]', "features.coords_only=true", "model.tile=64", *more]
        for name, words in (("features", settings_of("features", *more)),
                            ("coords", [word for each in places for word in ("-s", each)])):
            out = self.folder / f"spot-{name}"
            done = self.must(slide, "-o", out, *words)
            self.assertRegex(done.stderr, r"spot\.svs: no tile has the share of tissue that model\.tissue_share asks for "
                                          r"\(1\), and none is computed; the largest is 0\.\d+\n")
            with h5py.File(out / name / "spot.h5") as file:
                self.assertEqual(len(file["coords"]), 0)

    def test_tiles_at_a_resolution(self):
        out = self.folder / "coarse"
        self.must(self.slide, "-o", out, *settings_of("features", *self.ALL, "input.mpp=0.5", "model.mpp=0.75"))
        bag = Bag(out / "features" / "slide.h5")
        self.assertEqual(bag.attributes["tile_downsample"], 1.5)
        self.assertEqual(bag.attributes["tile_size"], 64)
        self.assertEqual(bag.attributes["patch_size_level0"], 96)
        # What the readers of others would take for a tile is the tile's own area.
        self.assertEqual(clam_side(bag.attributes, [1.0]), 96)
        self.assertEqual(trident_side(bag.attributes), 96)
        self.assertEqual(legacy_trident_side(bag.attributes, [1.0]), 96)
        # 466 x 333 pixels: places 0, 64, ..., 448 and 0, 64, ..., 320, in pixels of level 0.
        self.assertEqual(sorted(set(bag.coords[:, 0])), [96 * i for i in range(8)])
        self.assertEqual(sorted(set(bag.coords[:, 1])), [96 * i for i in range(6)])
        shifted = self.folder / "shifted"
        self.must(self.slide, "-o", shifted, *settings_of("features", *self.ALL, "input.mpp=0.5", "model.mpp=0.75",
                                                          "stitch.edge=shift"))
        # The last tiles begin at 402 and 269.
        bag = Bag(shifted / "features" / "slide.h5")
        self.assertEqual(bag.coords[:, 0].max(), 603)
        self.assertEqual(bag.coords[:, 1].max(), 404)  # 403.5, half up

    def test_tissue_alone_and_none_of_it(self):
        out = self.folder / "tissue"
        self.must(self.slide, "-o", out, *settings_of("features", "input.mpp=2.0"))
        self.assertLess(Bag(out / "features" / "slide.h5").length, 88)
        outlines = self.folder / "slide.geojson"
        # Between the centres of the mask's pixels.
        outlines.write_text('{"type": "Polygon", "coordinates": [[[0, 0], [0.1, 0], [0.1, 0.1], [0, 0]]]}')
        self.addCleanup(outlines.unlink)
        out = self.folder / "none"
        self.must(self.slide, "-o", out, *settings_of("features", "tissue.source=geojson"))
        bag = Bag(out / "features" / "slide.h5")
        self.assertEqual((bag.coords.shape, bag.features.shape), ((0, 2), (0, 32)))

    def test_a_file_that_is_gone_is_made_again_and_is_listed(self):
        out = self.folder / "again"
        command = [self.slide, "-o", out, *settings_of("features", *self.ALL)]
        self.must(*command)
        file = out / "features" / "slide.h5"
        whole = file.read_bytes()
        [row] = self.table(out, "artifacts.csv")
        self.assertEqual((row["operator"], row["product"], row["file"], row["bytes"]),
                         ("model", "features", "features/slide.h5", str(len(whole))))
        self.assertEqual([each.name for each in file.parent.iterdir()], ["slide.h5"])
        file.unlink()
        self.must(*command)
        self.assertEqual(file.read_bytes(), whole)
        # One that another program wrote, or added to.
        for mode, moved in ("w", "earlier-failed"), ("a", "earlier-failed/2"):
            with h5py.File(file, mode) as theirs:
                theirs.attrs["mine"] = "TRIDENT"
            theirs = file.read_bytes()
            self.must(*command)
            self.assertEqual(file.read_bytes(), whole)
            self.assertEqual((out / moved / "features" / "slide.h5").read_bytes(), theirs)
        # What a run of an earlier version left that was killed is in nobody's way.
        (out / "features" / "slide.partial.h5").write_text("half of it")
        file.write_bytes(whole[:100])
        self.must(*command)
        self.assertEqual(file.read_bytes(), whole)
        # Moved aside with the rest.
        self.must(*command, "--fresh")
        self.assertTrue((out / "earlier-1" / "features" / "slide.partial.h5").exists())
        self.assertEqual((out / "earlier-1" / "features" / "slide.h5").read_bytes(), whole)
        self.assertEqual(file.read_bytes(), whole)

    def test_a_real_slide(self):
        slide = DATA / "cmu-1-small-region.svs"
        if not slide.exists():
            self.skipTest(f"no {slide}")
        out = self.folder / "real"
        self.must(slide, "-o", out, *settings_of("features"))
        bag = Bag(out / "features" / "cmu-1-small-region.h5")
        self.assertGreater(bag.length, 10)
        self.assertEqual(bag.attributes["level0_magnification"], 20)
        self.assertEqual(len(set(map(tuple, bag.features.round(3)))), bag.length)


class Reports(Models):
    """What networks made, in tables, reports and comparisons."""

    @staticmethod
    def row(out):
        with open(out / "slides.csv", newline="", encoding="utf-8") as file:
            [row] = csv.DictReader(file)
        return row

    def data(self, *folders):
        page = self.folder / "report.html"
        self.must("report", *folders, "--html", page)
        text = page.read_text(encoding="utf-8")
        return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S).group(1))

    def test_shares_of_classes_are_those_of_the_labels(self):
        slide = self.folder / "large.svs"
        self.must("synth", "--out", slide, "--size", "1536x1152")
        for where in "all", "tissue":
            out = self.folder / f"classes-{where}"
            self.must(slide, "-o", out, *settings_of("classes", *self.ZARR, f"model.where={where}"))
            labels = level0(out / "images" / "large.model.ome.zarr")[..., 0]
            counts = numpy.bincount(labels.ravel(), minlength=256)
            self.assertEqual(counts[255] > 0, where == "tissue")  # without a class
            row = self.row(out)
            found = [float(row[f"model.class_{k}"]) for k in range(4)]
            self.assertEqual(found, (counts[:4] / counts[:4].sum()).tolist())
            data = self.data(out)
            self.assertEqual([data["figures"][f"model.class_{k}"] for k in range(4)], [[[0, round(part, 6)]] for part in found])
            self.assertNotIn("all", data)

    def test_shares_are_empty_without_labelled_pixels(self):
        slide = self.folder / "grey.svs"  # in grey no tissue is found
        self.must("synth", "--out", slide, "--size", "512x384", "--codec", "grey")
        out = self.folder / "unlabelled"
        self.must(slide, "-o", out, *settings_of("classes", *self.ZARR, "model.where=tissue"))
        row = self.row(out)
        self.assertEqual([row[f"model.class_{k}"] for k in range(4)], [""] * 4)
        self.assertFalse([name for name in self.data(out)["figures"] if name.startswith("model.class_")])

    def test_shares_of_classes_are_compared(self):
        outs = [self.folder / "compared-all", self.folder / "compared-other"]
        for out, overlap in zip(outs, (0, 16)):
            self.must(self.slide, "-o", out, *settings_of("classes", f"model.overlap={overlap}", "model.mpp=0.5" if overlap else "model.mpp=0"))
        found = json.loads(self.must("compare", *outs, "--json").stdout)
        before, after = map(self.row, outs)
        for k in range(4):
            name = f"model.class_{k}"
            self.assertEqual(found["slides"][0]["values"][name]["difference"], float(after[name]) - float(before[name]))
        self.assertIsNone(found["corpus"])

    def test_class_maps_are_shown_in_colours(self):
        out = self.folder / "classes-shown"
        self.must(self.slide, "-o", out, *settings_of("classes"))
        data = self.data(out)
        [[place, _]] = data["pictures"]["made"][0]
        self.assertEqual(data["slides"]["files"][0][place][:3], ["model", "classes", "classes-shown/images/slide.model.ome.tif"])

    def test_numbers_of_tiles_are_those_of_the_features(self):
        out = self.folder / "vectors"
        self.must(self.slide, "-o", out, *settings_of("features"))
        with h5py.File(out / "features" / "slide.h5") as file:
            tiles = len(file["coords"])
        self.assertEqual(float(self.row(out)["model.tiles"]), tiles)
        data = self.data(out)
        self.assertEqual(data["figures"], {"model.tiles": [[0, tiles]]})
        self.assertEqual(data["slides"]["files"][0][0][:3], ["model", "features", "vectors/features/slide.h5"])


class Failures(Models):
    def test_a_slide_fails_and_others_go_on(self):
        bright = self.folder / "bright.svs"
        self.must("synth", "--out", bright, "--size", "300x300", "--levels", "1", "--seed", "3")
        out = self.folder / "nan"
        done = run(bright, self.slide, "-o", out, *settings_of("nan"))
        self.assertEqual(done.returncode, 1, done.stderr)
        rows = self.table(out)
        self.assertEqual([row["status"] for row in rows], ["failed", "failed"])
        self.assertIn("the network gave a value that isn't a finite number", rows[0]["error"])
        self.assertFalse(list((out / "features").glob("*.h5")))
        # Darker ones can be computed.
        out = self.folder / "dark"
        self.must(bright, self.slide, "-o", out, *settings_of("nan", "model.scale=0.4"))
        self.assertEqual(len(list((out / "features").glob("*.h5"))), 2)

    @unittest.skipIf("SANITIZED" in os.environ, "a sanitizer's allocator ends the program")
    def test_no_memory_fails_each_slide_in_a_line(self):
        out = self.folder / "memory"
        done = run(self.slide, "-o", out, *settings_of("memory"))
        self.assertEqual(done.returncode, 1, done.stderr)
        [row] = self.table(out)
        self.assertIn("memory.onnx: it fails on a batch: ", row["error"])
        self.assertNotIn("\n", row["error"])

    def test_what_cant_begin_is_told_in_a_line(self):
        broken = self.folder / "broken.onnx"
        broken.write_bytes((MODELS / "unet.onnx").read_bytes()[:300])
        for settings, words in ((settings_of("grey"), "it takes ? x 1 x 64 x 64"),
                                (settings_of("identity", "image.format=none"), 'image.format is "none"'),
                                (settings_of("identity", "image.format=ome-tiff", "model.range=[1.0, 1.000000000001]"),
                                 "its range, 1 to 1, is empty in float32"),
                                (settings_of("itself", "image.format=ome-tiff"), "it computes nothing"),
                                (settings_of("endless_shape", "image.format=ome-tiff", "input.max_seconds=1"),
                                 "it takes longer than input.max_seconds = 1"),
                                (settings_of("identity", f"model.file={broken}"), "broken.onnx: ONNX Runtime"),
                                (settings_of("identity", "model.file="), "model.file isn't set"),
                                (settings_of("identity", "model.runtime=/none.so"), "model.runtime: ONNX Runtime can't be"),
                                (settings_of("identity", "model.provider=cuda"), 'model.provider = "cuda": '),
                                (settings_of("identity", "model.mean=[1.0]"), "model.mean has 1 numbers; expected 3")):
            self.assertIn(words, self.refused(self.slide, "-o", self.folder / "refused", *settings))

    def test_other_networks_dont_continue_a_run(self):
        mine = self.folder / "mine"
        mine.mkdir()
        shutil.copy(MODELS / "features.onnx", mine / "m.onnx")
        own = [word for setting in ('operators.run=["model"]', f"model.file={mine / 'm.onnx'}", "model.provider=cpu")
               for word in ("-s", setting)]
        out = self.folder / "continued"
        self.must(self.slide, "-o", out, *own)
        self.must(self.slide, "-o", out, *own, "-s", "model.sessions=2", "-s", f"model.runtime={MODELS}")
        (mine / "m.toml").write_text("[model]\nbatch = 4\n")
        self.assertIn("model.batch is 4 here and was 0", self.refused(self.slide, "-o", out, *own))
        (mine / "m.toml").unlink()
        # What lies beside it is nobody's business, but for what its weights are in.
        (mine / "m.onnx.old").write_bytes(b"weights")
        self.must(self.slide, "-o", out, *own)
        moved = self.folder / "moved"
        mine.rename(moved)
        self.must(self.slide, "-o", out, *(word.replace(str(mine), str(moved)) for word in own))


    def test_weights_in_files_of_other_names_are_the_networks(self):
        mine = self.folder / "outside"
        mine.mkdir()
        for name in "outside.onnx", "filters.bin":
            shutil.copy(MODELS / name, mine)
        out = self.folder / "filtered"
        own = [word for setting in ('operators.run=["model"]', f"model.file={mine / 'outside.onnx'}", "model.provider=cpu",
                                    "image.format=ome-tiff") for word in ("-s", setting)]
        self.must(self.slide, "-o", out, *own)
        weights = bytearray((mine / "filters.bin").read_bytes())
        weights[3] ^= 1
        (mine / "filters.bin").write_bytes(weights)
        self.assertIn("the model's content is ", self.refused(self.slide, "-o", out, *own))
        (mine / "filters.bin").unlink()
        self.assertIn("filters.bin", self.refused(self.slide, "-o", out, *own))

    def test_weights_that_change_while_it_runs_end_the_run(self):
        if "FAULTY_STORAGE" not in os.environ:
            self.skipTest("the library that stops the run can't stand before a sanitizer's")
        for number, change in enumerate(("in place", "cut short", "a pipe")):
            mine = self.folder / f"changed {number}"
            mine.mkdir()
            for name in "outside.onnx", "filters.bin":
                shutil.copy(MODELS / name, mine)
            out = self.folder / f"changed out {number}"
            words = ["-o", out, "-t", 1, "-s", 'operators.run=["model"]', "-s", f"model.file={mine / 'outside.onnx'}",
                     "-s", "model.provider=cpu", "-s", "image.format=ome-tiff"]
            # It stops itself in the middle of its image.
            environment = {**ENVIRONMENT, "LD_PRELOAD": os.environ["FAULTY_STORAGE"], "FAULTY": "stop:3",
                           "FAULTY_ROOT": str(out / "images")}
            process = subprocess.Popen([PIPELINE, self.slide, *map(str, words)], stderr=subprocess.PIPE, text=True,
                                       stdout=subprocess.DEVNULL, env=environment)
            self.addCleanup(process.kill)
            _, status = os.waitpid(process.pid, os.WUNTRACED)
            self.assertTrue(os.WIFSTOPPED(status), status)
            if change == "a pipe":
                # Who opens it without care waits for ever.
                os.mkfifo(mine / "pipe")
                os.rename(mine / "pipe", mine / "outside.onnx")
            else:
                with open(mine / "filters.bin", "r+b") as file:
                    if change == "cut short":
                        file.truncate(0)
                    else:
                        first = file.read(1)[0]
                        file.seek(0)
                        file.write(bytes([first ^ 1]))
            process.send_signal(signal.SIGCONT)
            _, told = process.communicate(timeout=time_limit(250))
            self.assertEqual(process.returncode, 3, told)
            self.assertIn("the network's files have changed while the run was under way", told)
            self.assertEqual(self.table(out), [])
            self.assertEqual(list((out / "images").iterdir()), [])

    def test_images_with_holes_go_when_the_network_changes_while_it_runs(self):
        if "FAULTY_STORAGE" not in os.environ:
            self.skipTest("the library that stops the run can't stand before a sanitizer's")
        mean = self.pixels().mean() / 255
        words = settings_of("holes", "stitch.mode=lenient", f"model.scale={0.5 / mean}", f"model.range=[0.0,{0.5 / mean}]",
                            "image.format=ome-tiff")
        whole = self.folder / "kept holes"
        done = run(self.slide, "-o", whole, *words)
        self.assertEqual(done.returncode, 1, done.stderr)
        left = {"slide.model.partial.ome.tif", "slide.model.partial.csv"}
        self.assertEqual({path.name for path in (whole / "images").iterdir()}, left)
        mine = self.folder / "holes"
        mine.mkdir()
        for file in MODELS.glob("holes.*"):
            shutil.copy(file, mine)
        network = mine / "holes.onnx"
        out = self.folder / "holes out"
        images = out / "images"
        environment = {**ENVIRONMENT, "LD_PRELOAD": os.environ["FAULTY_STORAGE"], "FAULTY": "stop:3",
                       "FAULTY_ROOT": str(images)}
        process = subprocess.Popen([PIPELINE, self.slide, "-o", out, "-t", "1", *words, "-s", f"model.file={network}"],
                                   stderr=subprocess.PIPE, text=True, env=environment, stdout=subprocess.DEVNULL)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status), status)
        os.utime(network, (1, 1))
        process.send_signal(signal.SIGCONT)
        _, told = process.communicate(timeout=time_limit(250))
        self.assertEqual(process.returncode, 3, told)
        self.assertIn("the network's files have changed while ", told)
        self.assertEqual(list(images.iterdir()), [])

    def test_infinite_values_fail_a_slide_as_what_isnt_a_number_does(self):
        out = self.folder / "infinite"
        done = run(self.slide, "-o", out, *settings_of("infinite"))
        self.assertEqual(done.returncode, 1, done.stderr)
        [row] = self.table(out, "failures.csv")
        self.assertIn("the network gave a value that isn't a finite number", row["cause"])

    def test_the_cause_in_the_librarys_message_is_told(self):
        if "SANITIZED" in os.environ:
            self.skipTest("a sanitizer's allocator ends the program")
        out = self.folder / "cause"
        run(self.slide, "-o", out, *settings_of("memory"))
        [row] = self.table(out, "failures.csv")
        self.assertIn("Failed to allocate memory for requested buffer of size ", row["cause"])

    def test_a_batch_that_there_is_no_memory_for_is_told_with_its_size(self):
        if "SANITIZED" in os.environ:
            self.skipTest("a sanitizer's allocator ends the program")
        few = lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))  # noqa: E731
        # Of tiles of any size a batch of black ones says what comes of them; others are first met by sessions.
        for model, settings, said in (
                ("blur", ("model.tile=4096", "model.batch=64"), "there is no memory for a batch of 64 black tiles, 12288 MiB"),
                ("unet", ("model.batch=4096", "model.sessions=9"),
                 "there is no memory for a session with batches of 4096 tiles, 1536 MiB")):
            # Each thread of the run takes room for its stack and its heap, too.
            done = run(self.slide, "-o", self.folder / "large", "-t", 2,
                       *settings_of(model, "image.format=ome-tiff", *settings), preexec_fn=few)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"error: {MODELS / model}.onnx: {said}; lower model.batch", done.stderr.splitlines()[-1])
        # Who does so may go on in the folder: nothing in it was decided.
        self.must(self.slide, "-o", self.folder / "large", *settings_of("unet", "image.format=ome-tiff", "model.batch=4"))


class Mixed(Models):
    MIXED = ("model.batches=mixed",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.slides = []
        for i, size in enumerate(("150x140", "200x90", "64x64", "260x200", "100x180")):
            cls.slides.append(cls.folder / f"small{i}.svs")
            cls.must("synth", "--out", cls.slides[-1], "--size", size, "--levels", "1", "--seed", i)

    def test_slides_that_share_batches_have_what_they_have_alone(self):
        for model in ("identity", "blur"):
            made = []
            for i, more in enumerate(((), self.MIXED)):
                out = self.folder / f"{model}{i}"
                self.must(*self.slides, "-o", out, *settings_of(model, *self.ZARR, "model.batch=4", *more))
                made.append([level0(out / "images" / f"{slide.stem}.model.ome.zarr") for slide in self.slides])
            for slide, alone, mixed in zip(self.slides, *made):
                numpy.testing.assert_array_equal(mixed, alone, f"{model}, {slide.name}")

    def test_features_are_those_of_the_same_tiles_and_say_how_they_were_made(self):
        bags = []
        for i, more in enumerate(((), self.MIXED)):
            out = self.folder / f"features{i}"
            self.must(*self.slides, "-o", out, *settings_of("features", "model.where=all", *more))
            bags.append([Bag(out / "features" / f"{slide.stem}.h5") for slide in self.slides])
            with h5py.File(out / "features" / "small0.h5") as file:
                self.assertIn("mixed" if more else "slide", str(dict(file["features"].attrs)["model.batches"]))
        for alone, mixed in zip(*bags):
            numpy.testing.assert_array_equal(mixed.coords, alone.coords)
            numpy.testing.assert_allclose(mixed.features, alone.features, rtol=1e-4, atol=1e-5)
        self.assertIn('model.batches is "auto" here and was "mixed"', self.refused(
            *self.slides, "-o", self.folder / "features1", *settings_of("features", "model.where=all")))

    def images(self, out):
        return [(out / "images" / f"{slide.stem}.model.ome.tif").read_bytes() for slide in self.slides]

    def test_a_run_that_is_killed_goes_on_to_the_same_files(self):
        settings = settings_of("slow", "image.format=ome-tiff", "model.batch=4", *self.MIXED)
        expected = self.folder / "whole"
        self.must(*self.slides, "-o", expected, *settings)
        out = self.folder / "killed"
        process = self.in_the_middle(out, lambda: list(out.glob("images/*.partial.*")), *self.slides, *settings)
        process.kill()
        self.assertEqual(process.wait(), -9)
        self.assertNotEqual(len(list(out.glob("images/small?.model.ome.tif"))), len(self.slides))
        self.must(*self.slides, "-o", out, *settings)
        self.assertEqual(self.images(out), self.images(expected))
        self.assertEqual(list(out.glob("images/*.partial.*")), [])

    def test_a_slide_that_fails_takes_no_other_with_it(self):
        expected = self.folder / "sound"
        settings = settings_of("identity", "image.format=ome-tiff", "model.batch=16", *self.MIXED)
        self.must(*self.slides, "-o", expected, *settings)
        broken = self.folder / "broken.svs"
        content = bytearray(self.slides[3].read_bytes())
        content[len(content) // 4:len(content) // 2] = bytes(len(content) // 2 - len(content) // 4)
        broken.write_bytes(content)
        out = self.folder / "beside"
        done = run(*self.slides[:3], broken, *self.slides[3:], "-o", out, *settings)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(len(self.table(out, "failures.csv")), 1)
        self.assertEqual(self.images(out), self.images(expected))

    def test_a_forecast_counts_batches_that_are_shared(self):
        settings = settings_of("features", "model.where=all")
        alone = self.must(*self.slides, "--dry-run", *settings).stdout
        mixed = self.must(*self.slides, "--dry-run", *settings, "-s", "model.batches=mixed").stdout
        # Of tiles of 64: 3 x 3, 4 x 2, 1, 5 x 4 and 2 x 3, 8 at a time.
        self.assertIn("the network gets 44 tiles in 8 batches\n", alone)
        self.assertIn("the network gets 44 tiles in 6 batches or a few more, which slides share\n", mixed)


class Forecasts(Models):
    def test_tiles_batches_and_memory_are_told_beforehand(self):
        done = self.must(self.slide, "--dry-run", *settings_of("unet", "image.format=ome-tiff", "model.sessions=3"))
        # 128 pixels that share 16: 7 x 5 tiles, 4 at a time.
        self.assertIn("the network gets 35 tiles in 9 batches\n", done.stdout)
        [line] = [line for line in done.stdout.splitlines() if line.startswith("network ")]
        self.assertRegex(line, r"ONNX Runtime .*, CPU, tiles of 128, 4 at a time; .* for rows and tiles of slides, .* for "
                               r"batches, .* for each of 3 sessions, .* for weights")
        self.assertNotIn("on the host:", done.stdout)
        done = self.must(self.slide, "--dry-run", *settings_of("features"))
        self.assertIn("the network gets at most 88 tiles in 11 batches\n", done.stdout)
        if "SANITIZED" not in os.environ:  # whose allocator ends the program
            done = run(self.slide, "--dry-run", *settings_of("memory"))
            self.assertIn(", unknown for ", done.stdout)
        # What it takes to compute a batch can't be known of one that comes to no end.
        done = run(self.slide, "--dry-run", *settings_of("endless", "image.format=ome-tiff", "input.max_seconds=1"))
        self.assertIn(", unknown for ", done.stdout)
        done = run(self.slide, "--dry-run", *settings_of("unet", "image.format=ome-tiff", "stitch.memory_mib=1"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("stitching it takes ", done.stdout)

    def test_what_is_in_effect_stands_in_files(self):
        out = self.folder / "effect"
        self.must(self.slide, "-o", out, *settings_of("unet", "image.format=ome-tiff"))
        content = (out / "images" / "slide.model.ome.tif").read_bytes().decode("latin-1")
        content = content[content.index("<OME "):content.index("</OME>")].replace("&quot;", '"')
        for text in ("<M K=\"model.batch\">4</M>", "<M K=\"model.overlap\">16</M>", "<M K=\"model.tile\">128</M>",
                     "<M K=\"model.mean\">[0.485", "<M K=\"runtime\">\"ONNX Runtime "):
            self.assertIn(text, content)
        with open(out / "corpus.json", encoding="utf-8") as file:
            deciding = json.load(file)["deciding"]
        self.assertEqual(deciding["the model"], "unet.onnx")
        digest = deciding["the model's content"]
        self.assertRegex(content, f'<M K="network(\'|&apos;|&#39;)s content">{digest}</M>')
        self.assertRegex(deciding["the model's runtime"], "^ONNX Runtime .*, CPU$")
        self.assertEqual(deciding["model.overlap"], "16")
        out = self.folder / "vectors"
        self.must(self.slide, "-o", out, *settings_of("features"))
        with h5py.File(out / "features" / "slide.h5") as file:
            said = dict(file["features"].attrs)
        self.assertEqual((said["model.batch"], said["model.where"], said["network"]), ("8", '"tissue"', '"features.onnx"'))
        with open(out / "corpus.json", encoding="utf-8") as file:
            self.assertEqual(said["network's content"], json.load(file)["deciding"]["the model's content"])


class Documents(Models):
    """What README.md and docs/models.md say."""

    COMMANDS = ["scripts/make-models.py models",
                "pipeline features slides/ --model models/features.onnx -o vectors",
                "pipeline segment slides/ --model models/unet.onnx -o classes"]

    def test_its_commands(self):
        here = self.folder / "here"
        (here / "slides").mkdir(parents=True)
        shutil.copy(self.slide, here / "slides")
        (here / "scripts").symlink_to(ROOT / "scripts")
        (here / "pipeline").symlink_to(PIPELINE)
        environment = {**FINDING, "PATH": f"{here}:{FINDING['PATH']}"}
        for command in self.COMMANDS:
            for page in "README.md", "docs/models.md":
                self.assertIn(command, (ROOT / page).read_text(encoding="utf-8"))
            done = subprocess.run(["bash", "-c", command], cwd=here, env=environment, capture_output=True, text=True,
                                  timeout=time_limit(250), check=False)
            self.assertEqual(done.returncode, 0, f"{command}: {done.stderr}")
        self.assertTrue((here / "classes" / "images" / "slide.model.ome.tif").exists())
        page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
        snippet = page.split("```python\n")[1].split("```")[0]
        found = {}
        before = os.getcwd()
        os.chdir(here)
        try:
            exec(snippet, found)
        finally:
            os.chdir(before)
        self.assertEqual(found["features"].shape, (len(found["coords"]), 32))
        self.assertEqual(found["side"], 64)


if __name__ == "__main__":
    unittest.main()
