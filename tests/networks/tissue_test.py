"""The program with a network that finds tissue: see models_test.py. Class: Tissue."""

import functools
import json
import shutil
import unittest

from models_case import MODELS, Models, level0, run  # noqa: I001  (first of all: it finds a Python)

import numpy
import onnx
from image_libraries import vips, vips_pixels
from onnx import TensorProto, helper

# The slides have 2 micrometres a pixel, the network's pixels 4, and the mask's 8.
SLIDE_MPP, NETWORK_MPP, MASK_SCALE = 2, 4, 4
TILE, OVERLAP = 64, 16
# A pixel is tissue where its largest and its smallest channel differ by more.
LEAST = 24


def spread():
    """Nodes that give how far the channels of a pixel are apart, less LEAST + 1/2."""
    return [
        helper.make_node("ReduceMax", ["tiles"], ["largest"], axes=[1], keepdims=1),
        helper.make_node("ReduceMin", ["tiles"], ["smallest"], axes=[1], keepdims=1),
        helper.make_node("Sub", ["largest", "smallest"], ["apart"]),
        helper.make_node("Sub", ["apart", "least"], ["logit"]),
        helper.make_node("Greater", ["logit", "zero"], ["is"]),
    ]


def network(file, nodes, channels, kind=TensorProto.FLOAT, shape=None, **settings):
    """A network of tiles of 64, and its settings beside it."""
    constants = [helper.make_tensor("least", TensorProto.FLOAT, [], [LEAST + 0.5]),
                 helper.make_tensor("zero", TensorProto.FLOAT, [], [0.0])]
    graph = helper.make_graph(
        [*spread(), *nodes], "tissue", [helper.make_tensor_value_info("tiles", TensorProto.FLOAT, ["n", 3, TILE, TILE])],
        [helper.make_tensor_value_info("result", kind, shape or ["n", channels, TILE, TILE])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.save(model, file)
    settings = {"mpp": float(NETWORK_MPP), "scale": 255.0, "overlap": OVERLAP, **settings}
    file.with_suffix(".toml").write_text(
        "[model]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items() if value is not None))
    return file


CAST = [helper.make_node("Cast", ["is"], ["result"], to=TensorProto.FLOAT)]
LOGIT = [helper.make_node("Identity", ["logit"], ["result"])]
TWO = [helper.make_node("Sub", ["zero", "logit"], ["negative"]),
       helper.make_node("Concat", ["negative", "logit"], ["result"], axis=1)]
LABELS = [helper.make_node("Cast", ["is"], ["result"], to=TensorProto.INT64)]
PLANES = [helper.make_node("Constant", [], ["one"], value=helper.make_tensor("one", TensorProto.INT64, [1], [1])),
          helper.make_node("Squeeze", ["logit", "one"], ["flat"]), helper.make_node("Greater", ["flat", "zero"], ["is_flat"]),
          helper.make_node("Cast", ["is_flat"], ["result"], to=TensorProto.UINT8)]


def words(model, *more):
    settings = [f"tissue.model={model}", f"input.mpp={SLIDE_MPP}", "tissue.min_um2=0", "tissue.fill_um2=0", *more]
    return [word for setting in settings for word in ("-s", setting)]


def halved(pixels):
    """Means of 2 x 2 pixels, as far as they are there, rounded half up."""
    height, width, channels = pixels.shape
    sums = numpy.zeros(((height + 1) // 2 * 2, (width + 1) // 2 * 2, channels), numpy.int64)
    counts = numpy.zeros(sums.shape[:2] + (1,), numpy.int64)
    sums[:height, :width], counts[:height, :width] = pixels, 1
    blocks = lambda image: sum(image[y::2, x::2] for y in (0, 1) for x in (0, 1))  # noqa: E731
    return (2 * blocks(sums) + blocks(counts)) // (2 * blocks(counts))


def mask_of(pixels, least=LEAST):
    """By NumPy: pixels of the network's size, and of these the one under the centre of each pixel of the mask."""
    looked_at = halved(pixels)
    tissue = looked_at.max(axis=2) - looked_at.min(axis=2) > least
    ratio = MASK_SCALE * SLIDE_MPP / NETWORK_MPP
    rows, columns = (numpy.minimum(((numpy.arange(-(-side // MASK_SCALE)) + 0.5) * ratio).astype(int), most - 1)
                     for side, most in zip(pixels.shape, tissue.shape))
    return tissue[rows[:, None], columns]


def area_of(feature):
    """Of a GeoJSON polygon or several, in pixels of level 0: holes turn the other way."""
    geometry = feature["geometry"]
    polygons = [geometry["coordinates"]] if geometry["type"] == "Polygon" else geometry["coordinates"]
    area = 0
    for ring in (ring for polygon in polygons for ring in polygon):
        x, y = numpy.array(ring).T
        area += (x[:-1] * y[1:] - x[1:] * y[:-1]).sum() / 2
    return area


class Tissue(Models):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.slide = cls.folder / "wide.svs"
        cls.must("synth", "--out", cls.slide, "--size", "1018x732", "--levels", "1")
        cls.cast = network(cls.folder / "cast.onnx", CAST, 1)

    def made(self, out, name="wide"):
        """The mask that a run wrote."""
        mask = out / "images" / f"{name}.tissue.ome.tif"
        if vips():
            return vips_pixels(mask)[..., 0]
        # A mask isn't converted: of a copy nobody knows that it is one.
        plain, copy = out / "plain", out / "copy.ome.tif"
        copy.write_bytes(mask.read_bytes().replace(b'Name="tissue"', b'Name="pixels"'))
        self.must("convert", copy, "--to", "ome-zarr", "--compression", "none", "--out", plain)
        return level0(next((plain / "images").iterdir()))[..., 0]

    def masked(self, name, model, *more):
        out = self.folder / name
        self.must("tissue", self.slide, "-o", out, *words(model, *more))
        return out, self.made(out)

    @classmethod
    @functools.lru_cache(maxsize=None)
    def expected(cls, least=LEAST):
        out = cls.folder / "exact"
        if not out.exists():
            cls.must("convert", cls.slide, "--to", "ome-zarr", "--compression", "none", "--out", out)
        return mask_of(level0(out / "images" / "wide.identity.ome.zarr").astype(int), least)

    def test_the_mask_is_the_networks(self):
        expected = self.expected()
        self.assertTrue(0.1 < expected.mean() < 0.9)
        out, made = self.masked("probabilities", self.cast, "tissue.simplify_px=0")
        numpy.testing.assert_array_equal(made, expected)
        self.assertAlmostEqual(float(self.table(out)[0]["tissue.share"]), expected.mean(), places=5)
        outlines = json.loads((out / "images" / "wide.tissue.geojson").read_text(encoding="utf-8"))
        self.assertEqual(sum(map(area_of, outlines["features"])), expected.sum() * MASK_SCALE**2)
        out = self.folder / "short"
        self.must("tissue", self.slide, "--model", self.cast, "-o", out, *words(self.cast)[2:])
        numpy.testing.assert_array_equal(self.made(out), expected)

    def test_every_kind_of_network_gives_the_same(self):
        expected = self.expected()
        cases = (("sigmoid", network(self.folder / "sigmoid.onnx", LOGIT, 1, activation="sigmoid")),
                 ("softmax", network(self.folder / "softmax.onnx", TWO, 2, activation="softmax")),
                 ("classes", network(self.folder / "classes.onnx", TWO, 2, activation="softmax", output="classes")),
                 ("labels", network(self.folder / "labels.onnx", LABELS, 1, TensorProto.INT64)),
                 ("planes", network(self.folder / "planes.onnx", PLANES, 1, TensorProto.UINT8, ["n", TILE, TILE])))
        for name, model in cases:
            with self.subTest(name):
                numpy.testing.assert_array_equal(self.masked(name, model)[1], expected)
                numpy.testing.assert_array_equal(self.masked(name + "-0", model, "tissue.class=0")[1], ~expected)
        for name, model in cases[:2]:
            with self.subTest(name):
                # Logits are whole numbers and a half: 2.5 is 0.924, and with two channels it is the half of 5.
                least = LEAST + (2 if name == "sigmoid" else 1)
                other = self.expected(least)
                self.assertLess(other.sum(), expected.sum())
                numpy.testing.assert_array_equal(self.masked(name + "-9", model, "tissue.probability=0.9")[1], other)

    def test_strips_threads_batches_and_levels_change_nothing(self):
        expected = self.expected()
        _, made = self.masked("small", self.cast, "pipeline.strip_height=64", "pipeline.threads=1", "pipeline.memory_mib=32")
        numpy.testing.assert_array_equal(made, expected)
        several = network(self.folder / "several.onnx", CAST, 1, batch=7, overlap=0)
        numpy.testing.assert_array_equal(self.masked("batches", several)[1], expected)
        for levels in (1, 3):
            out = self.folder / f"pyramid{levels}"
            self.must("convert", self.slide, "--to", "ome-tiff", "--compression", "zstd", "--out", out,
                      "-s", f"image.levels={levels}")
            slide = out / "images" / "wide.identity.ome.tif"
            target = self.folder / f"of{levels}"
            self.must("tissue", slide, "-o", target, *words(self.cast))
            [mask] = (target / "images").glob("*.tissue.ome.tif")
            numpy.testing.assert_array_equal(self.made(target, mask.name.removesuffix(".tissue.ome.tif")), expected)
        several = [self.folder / f"copy{i}.svs" for i in range(4)]
        for copy in several:
            shutil.copy(self.slide, copy)
        out = self.folder / "together"
        self.must("tissue", *several, "-o", out, *words(self.cast, "pipeline.threads=4"))
        for copy in several:
            numpy.testing.assert_array_equal(self.made(out, copy.stem), expected)
            shutil.rmtree(out / "plain", ignore_errors=True)

    def test_it_is_used_as_any_other_mask(self):
        mask = self.expected()
        out = self.folder / "none"
        done = self.must("tissue", self.slide, "-o", out, *words(self.cast, "tissue.min_um2=1e12"))
        self.assertIn("no tissue was found", done.stderr)
        self.assertEqual(float(self.table(out)[0]["tissue.share"]), 0.0)
        # Of a network that never sees colour all is of class 0.
        dull = network(self.folder / "dull.onnx", CAST, 1, scale=0.001)
        done = self.must("tissue", self.slide, "-o", self.folder / "all", *words(dull, "tissue.class=0"))
        self.assertIn("100.0 % of the slide are tissue; look at its mask, and set tissue.probability or tissue.class", done.stderr)
        # Tiles with any tissue, of the level's own pixels: the places of the mask's centres are (i + 1/2) 4.
        out = self.folder / "features"
        self.must(self.slide, "-o", out, *words(self.cast, 'operators.run=["model"]', f"model.file={MODELS / 'features.onnx'}",
                                                "model.provider=cpu", "model.where=tissue", "model.mpp=2", "stitch.edge=shift"))
        import h5py

        with h5py.File(out / "features" / "wide.h5") as file:
            coords = {tuple(map(int, place)) for place in file["coords"][:]}
            side = int(file["coords"].attrs["patch_size_level0"])
        centres = [(numpy.arange(length) + 0.5) * MASK_SCALE for length in mask.shape]
        covered = numpy.zeros(mask.shape, bool)
        for x, y in coords:
            rows, columns = (((at >= place) & (at < place + side)) for at, place in zip(centres, (y, x)))
            part = rows[:, None] & columns[None, :]
            self.assertTrue(mask[part].any(), (x, y))
            covered |= part
        self.assertTrue(coords)
        self.assertTrue(covered[mask].all())
        self.must(self.slide, "-o", self.folder / "stained", *words(
            self.cast, 'operators.run=["stain", "tissue"]', "image.format=ome-tiff"))
        numpy.testing.assert_array_equal(self.made(self.folder / "stained"), mask)

    def test_its_memory_is_forecast(self):
        plain = self.must("tissue", self.slide, "--dry-run", "-s", f"input.mpp={SLIDE_MPP}").stdout
        self.assertNotIn("finds tissue", plain)
        self.assertIn("for the network that finds tissue", self.must("tissue", self.slide, "--dry-run", *words(self.cast)).stdout)
        fine = network(self.folder / "fine.onnx", CAST, 1, mpp=2.0)
        small = run("tissue", self.slide, "--dry-run", *words(fine, "stitch.memory_mib=1"))
        self.assertEqual(small.returncode, 1, small.stderr)
        self.assertIn("finding its tissue takes ", small.stdout + small.stderr)

    def test_another_network_doesnt_continue_a_run(self):
        mine = self.folder / "mine"
        mine.mkdir()
        model = network(mine / "m.onnx", CAST, 1)
        out = self.folder / "continued"
        start = lambda model: ("tissue", self.slide, "-o", out, *words(model))  # noqa: E731
        self.must(*start(model))
        with open(out / "corpus.json", encoding="utf-8") as file:
            deciding = json.load(file)["deciding"]
        self.assertEqual(deciding["tissue.model"], '"m.onnx"')
        self.assertRegex(deciding["tissue.model's runtime"], "^ONNX Runtime .*, CPU$")
        self.assertIn("mpp = 4", deciding["tissue.model's description"])
        settings = model.with_suffix(".toml").read_text()
        model.with_suffix(".toml").write_text(settings.replace("overlap = 16", "overlap = 8"))
        self.assertIn("tissue.model's description is ", self.refused(*start(model)))
        model.with_suffix(".toml").write_text(settings)
        before = model.read_bytes()
        network(model, LOGIT, 1)
        self.assertIn("tissue.model's content is ", self.refused(*start(model)))
        model.write_bytes(before)
        model.with_suffix(".toml").write_text(settings)
        self.assertIn("tissue.model is ", self.refused("tissue", self.slide, "-o", out, *words("")))
        self.assertIn("tissue.class is 0 here and was 1", self.refused(*start(model), "-s", "tissue.class=0"))
        # Where it lies is nobody's business.
        moved = self.folder / "moved"
        mine.rename(moved)
        self.must(*start(moved / "m.onnx"))
        self.assertIn("tissue.model is ", self.refused("tissue", self.slide, "-o", self.plain_run(), *words(self.cast)))

    def plain_run(self):
        out = self.folder / "saturated"
        self.must("tissue", self.slide, "-o", out, *words(""))
        return out

    def test_what_cant_begin_is_told_in_a_line(self):
        broken = self.folder / "broken.onnx"
        broken.write_bytes(self.cast.read_bytes()[:200])
        broken.with_suffix(".toml").write_text("[model]\nmpp = 4.0\n")
        three = [helper.make_node("Concat", ["logit", "logit", "logit"], ["result"], axis=1)]
        vector = [helper.make_node("ReduceMean", ["logit"], ["result"], axes=[2, 3], keepdims=0)]
        make = lambda name, *more, **settings: network(self.folder / f"{name}.onnx", *more, **settings)  # noqa: E731
        for number, (setting, expected) in enumerate((
                ((self.folder / "missing.onnx",), "tissue.model: "),
                ((broken,), "broken.onnx: ONNX Runtime"),
                ((make("three", three, 3),), "three.onnx: it gives 3 channels; expected one or two"),
                ((make("vector", vector, 1, shape=["n", 1]),), "vector.onnx: it gives features; expected one or two channels"),
                ((make("sizeless", CAST, 1, mpp=None),), "sizeless.onnx: the size of its pixels isn't known: set model.mpp "
                                                         "(settings of this network are in sizeless.toml)"),
                ((make("circle", CAST, 1, where="tissue"),), 'circle.onnx: model.where is "tissue", which it is there to find'),
                ((make("sure", CAST, 1, activation="softmax"),), "softmax over its one channel is always 1"),
                ((make("odd", CAST, 1, tile=32),), "model.tile is 32 in odd.toml"),
                ((make("mistaken", CAST, 1, tyle=32),), "unknown key 'tyle'"),
                ((self.cast, "tissue.class=2"), "tissue.class is 2, and it has the classes 0 and 1"),
                ((self.cast, "model.runtime=/none.so"),
                 "tissue.model: model.runtime: ONNX Runtime can't be loaded: /none.so: cannot open shared object file: No such "
                 "file or directory\n"),
                ((self.cast, "tissue.method=otsu"), "tissue.method can't stand beside tissue.model"),
                ((self.cast, "tissue.threshold=20"), "tissue.threshold can't stand beside tissue.model"),
                ((self.cast, "tissue.source=geojson"), 'tissue.source = "geojson" can\'t stand beside tissue.model'),
                ((self.cast, "tissue.probability=0"), "tissue.probability is 0"))):
            with self.subTest(expected):
                for dry in ((), ("--dry-run",)) if number % 4 == 0 else ((),):
                    arguments = ("tissue", self.slide, "-o", self.folder / "refused", *words(*setting), *dry)
                    self.assertIn(expected, self.refused(*arguments))
        self.assertFalse((self.folder / "refused" / "run.sqlite").exists())

    def test_one_that_comes_to_no_end_costs_its_slide(self):
        endless = onnx.load(MODELS / "endless.onnx")
        endless.graph.node.append(helper.make_node("Identity", [endless.graph.output[0].name], ["three"]))
        endless.graph.node.append(helper.make_node("ReduceMean", ["three"], ["mean"], axes=[1], keepdims=1))
        del endless.graph.output[:]
        endless.graph.output.append(helper.make_tensor_value_info("mean", TensorProto.FLOAT, ["n", 1, TILE, TILE]))
        model = self.folder / "endless.onnx"
        onnx.save(endless, model)
        model.with_suffix(".toml").write_text("[model]\nmpp = 4.0\n")
        out = self.folder / "endless"
        done = run("tissue", self.slide, "-o", out, *words(model, "input.max_seconds=2"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("took longer than input.max_seconds = 2", self.table(out)[0]["error"])

    def test_slides_that_it_cant_look_at_fail(self):
        bare = self.folder / "bare.svs"
        self.must("synth", "--out", bare, "--size", "600x400", "--levels", "1", "--mpp", "0.25")
        content = bare.read_bytes()
        self.assertIn(b"MPP = ", content)
        bare.write_bytes(content.replace(b"MPP = ", b"NPP = "))
        logits = network(self.folder / "logits.onnx", LOGIT, 1)
        for i, (slide, model, more, expected) in enumerate((
                (bare, self.cast, ("input.mpp=0",), "looks at pixels of a size, and the slide's isn't known; set input.mpp"),
                (self.slide, self.cast, ("input.mpp=5",),
                 "the slide's pixels have 5 micrometres, and the 4 of the network that finds tissue is 20 % less; "),
                (self.slide, logits, (), "0 to 1: set activation in logits.toml to \"sigmoid\" or \"softmax\""))):
            with self.subTest(expected):
                out = self.folder / f"failed{i}"
                done = run("tissue", slide, "-o", out, *words(model, *more))
                self.assertEqual(done.returncode, 1, done.stderr)
                [row] = self.table(out)
                self.assertEqual(row["status"], "failed")
                self.assertIn(expected, row["error"])


if __name__ == "__main__":
    unittest.main()
