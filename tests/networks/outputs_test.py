"""The program with networks of labels and of several outputs: see models_test.py. Classes: Labels, Outputs."""

import unittest

from models_case import Models, level0  # noqa: I001  (first of all: it finds a Python)

import numpy
import onnx
from onnx import TensorProto, helper


def write(file, nodes, outputs, constants=()):
    """A network of tiles of 64."""
    graph = helper.make_graph(
        list(nodes), file.stem, [helper.make_tensor_value_info("tiles", TensorProto.FLOAT, ["n", 3, 64, 64])],
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in outputs], list(constants))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.save(model, file)
    return file


def words(model, *more):
    settings = ['operators.run=["model"]', f"model.file={model}", "model.provider=cpu", *more]
    return [word for setting in settings for word in ("-s", setting)]


def starts(length, tile, overlap):
    step = tile - overlap
    count = max(1, -(-(length - tile) // step) + 1)
    return [i * step for i in range(count - 1)] + [length - tile]


def nearest(length, tile, overlap):
    centres = numpy.array(starts(length, tile, overlap)) * 2 + tile
    return numpy.abs(centres[:, numpy.newaxis] - (2 * numpy.arange(length) + 1)).argmin(axis=0)


class Labels(Models):
    def network(self, name, kind, rank=4, factor=2):
        """One label of a tile: its mean red in sixteenths, times a factor."""
        shape = ["n", 1, 64, 64] if rank == 4 else ["n", 64, 64]
        nodes = [
            helper.make_node("Slice", ["tiles", "zero", "one", "axis"], ["red"]),
            helper.make_node("ReduceMean", ["red"], ["mean"], axes=[2, 3] if rank == 4 else [1, 2, 3], keepdims=1),
            helper.make_node("Mul", ["mean", "scale"], ["scaled"]),
            helper.make_node("Floor", ["scaled"], ["whole"]),
            helper.make_node("Mul", ["whole", "factor"], ["label"]),
        ]
        if rank == 3:
            nodes.append(helper.make_node("Squeeze", ["label", "axis"], ["flat"]))
        nodes += [helper.make_node("Expand", ["flat" if rank == 3 else "label", "side"], ["wide"]),
                  helper.make_node("Cast", ["wide"], ["result"], to=kind)]
        whole = lambda name, values: helper.make_tensor(name, TensorProto.INT64, [len(values)], values)  # noqa: E731
        constants = [whole("zero", [0]), whole("one", [1]), whole("axis", [1]),
                     whole("side", [1, 1, 64, 64] if rank == 4 else [1, 64, 64]),
                     helper.make_tensor("scale", TensorProto.FLOAT, [], [16.0]),
                     helper.make_tensor("factor", TensorProto.FLOAT, [], [float(factor)])]
        return write(self.folder / f"{name}.onnx", nodes, [("result", kind, shape)], constants)

    def expected(self, overlap, factor=2):
        pixels = self.pixels()[..., 0]
        places = [starts(side, 64, overlap) for side in pixels.shape]
        labels = numpy.array([[int(pixels[y:y + 64, x:x + 64].mean() / 255 * 16) * factor for x in places[1]] for y in places[0]])
        rows, columns = (nearest(side, 64, overlap) for side in pixels.shape)
        return labels[rows[:, numpy.newaxis], columns]

    def test_whole_numbers_are_labels_of_the_nearest_tile(self):
        for i, (kind, rank) in enumerate(((TensorProto.INT64, 3), (TensorProto.UINT8, 4), (TensorProto.INT32, 4))):
            with self.subTest(kind):
                model, out = self.network(f"labels{i}", kind, rank), self.folder / f"out{i}"
                self.must(self.slide, "-o", out, *words(model, "model.overlap=24", *self.ZARR))
                made = level0(out / "images" / "slide.model.ome.zarr")[..., 0]
                expected = self.expected(24)
                self.assertGreater(len(numpy.unique(expected)), 2)
                numpy.testing.assert_array_equal(made, expected)

    def test_what_is_no_label_fails_the_slide(self):
        done = self.run_failing(self.network("large", TensorProto.INT64, 4, 60), self.folder / "large")
        self.assertIn("labels are whole numbers from 0 to 255", done)
        out = self.folder / "wide"
        self.must(self.slide, "-o", out, *words(self.folder / "large.onnx", "model.sample=uint16", *self.ZARR))
        numpy.testing.assert_array_equal(level0(out / "images" / "slide.model.ome.zarr")[..., 0], self.expected(0, 60))

    def test_a_label_that_means_not_computed_fails_the_slide(self):
        model, out = self.network("void", TensorProto.INT64, 4, 17), self.folder / "void"
        self.assertIn(255, self.expected(0, 17))
        done = self.run_failing(model, out)
        self.assertIn("the network gave the label 255 there, which model.ignore reserves for pixels without a computed tile: "
                      "set model.ignore to a label that it doesn't give", done)
        for other, sample in ((254, "uint8"), (65535, "uint16")):
            out = self.folder / f"void{other}"
            self.must(self.slide, "-o", out, *words(model, f"model.ignore={other}", f"model.sample={sample}", *self.ZARR))
            numpy.testing.assert_array_equal(level0(out / "images" / "slide.model.ome.zarr")[..., 0], self.expected(0, 17))
        self.assertIn("model.ignore is 256; expected at most 255",
                      self.refused(self.slide, "-o", self.folder / "none", *words(model, "model.ignore=256")))

    def test_types_that_are_no_labels_are_told_with_those_that_are(self):
        for kind, name in ((TensorProto.UINT32, "uint32"), (TensorProto.UINT64, "uint64"), (TensorProto.DOUBLE, "float64")):
            refused = self.refused(self.slide, "-o", self.folder / "none", *words(self.network(name, kind)))
            self.assertIn(f" of {name}; expected float32 or float16, or for labels int8 to int64, uint8, uint16 or bool",
                          refused)

    def test_softmax_over_one_channel_is_refused(self):
        nodes = [helper.make_node("ReduceMean", ["tiles"], ["result"], axes=[1], keepdims=1)]
        model = write(self.folder / "single.onnx", nodes, [("result", TensorProto.FLOAT, ["n", 1, 64, 64])])
        for output in ("image", "auto"):
            refused = self.refused(self.slide, "-o", self.folder / "none",
                                   *words(model, "model.activation=softmax", f"model.output={output}"))
            self.assertIn('softmax over its one channel is always 1: set model.activation to "sigmoid"', refused)
        self.must(self.slide, "-o", self.folder / "single", *words(model, "model.activation=sigmoid"))

    def run_failing(self, model, out):
        from models_case import run

        done = run(self.slide, "-o", out, *words(model, *self.ZARR))
        self.assertEqual(done.returncode, 1, done.stderr)
        return (out / "failures.csv").read_text(encoding="utf-8")

    def test_whole_numbers_are_nothing_else(self):
        model = self.network("whole", TensorProto.INT64)
        for output in ("image", "classes", "vector"):
            self.assertIn("whole numbers are labels", self.refused(self.slide, "-o", self.folder / "none",
                                                                   *words(model, f"model.output={output}")))
        image = write(self.folder / "image.onnx", [helper.make_node("Cast", ["tiles"], ["result"], to=TensorProto.UINT8)],
                      [("result", TensorProto.UINT8, ["n", 3, 64, 64])])
        for output in ("image", "classes", "vector", "auto", "labels"):
            refused = self.refused(self.slide, "-o", self.folder / "none", *words(image, f"model.output={output}"))
            self.assertIn("values of an image, of classes and of vectors must be float32 or float16: have the network cast them", refused)
            self.assertNotIn("whole numbers are labels", refused)
        self.assertIn("labels have no range", self.refused(self.slide, "-o", self.folder / "none",
                                                           *words(model, "model.range=[0.0, 2.0]")))


class Outputs(Models):
    def network(self):
        """As a vision transformer is exported: the last hidden state comes first."""
        nodes = [helper.make_node("ReduceMean", ["tiles"], ["pooler_output"], axes=[2, 3], keepdims=0),
                 helper.make_node("Unsqueeze", ["pooler_output", "axis"], ["last_hidden_state"]),
                 helper.make_node("Neg", ["pooler_output"], ["logits"])]
        axis = helper.make_tensor("axis", TensorProto.INT64, [1], [1])
        outputs = [("last_hidden_state", TensorProto.FLOAT, ["n", 1, 3]), ("pooler_output", TensorProto.FLOAT, ["n", 3]),
                   ("logits", TensorProto.FLOAT, ["n", 3])]
        one = write(self.folder / "one.onnx", nodes[:2], outputs[:2], [axis])
        return one, write(self.folder / "vit.onnx", nodes, outputs, [axis])

    def test_the_only_output_of_the_right_shape_is_used_or_one_by_name(self):
        import h5py

        one, several = self.network()
        files = {}
        for name, model, more in (("only", one, ()), ("named", several, ("model.output_name=pooler_output",)),
                                  ("logits", several, ("model.output_name=logits",))):
            out = self.folder / name
            self.must(self.slide, "-o", out, *words(model, *more))
            with h5py.File(out / "features" / "slide.h5") as file:
                files[name] = file["features"][:]
        numpy.testing.assert_array_equal(files["only"], files["named"])
        numpy.testing.assert_array_equal(files["only"], -files["logits"])
        refused = self.refused(self.slide, "-o", self.folder / "none", *words(several))
        for text in ("it has 3 outputs, and 2 of them fit model.output; set model.output_name to one of: ",
                     "last_hidden_state (? x 1 x 3 of float32)", "pooler_output (? x 3 of float32)", "logits (? x 3"):
            self.assertIn(text, refused)
        refused = self.refused(self.slide, "-o", self.folder / "none", *words(several, "model.output=classes"))
        self.assertIn("none of its 3 outputs fits model.output: last_hidden_state", refused)
        self.assertIn("its outputs are", self.refused(self.slide, "-o", self.folder / "none",
                                                      *words(several, "model.output_name=pooler")))

    def test_pixels_that_are_a_little_too_coarse(self):
        one, _ = self.network()
        near = ("input.mpp=0.263", "model.mpp=0.25")
        from models_case import run

        out = self.folder / "coarse"
        self.assertEqual(run(self.slide, "-o", out, *words(one, *near)).returncode, 1)
        cause = (out / "failures.csv").read_text(encoding="utf-8")
        self.assertIn("the slide's pixels have 0.263 micrometres, and the 0.25 of the network is 4.94 % less; "
                      "raise model.mpp_tolerance from 0.02 (2 %) to 0.05 (5 %) to use them unchanged", cause)
        self.must(self.slide, "-o", self.folder / "as_it_is", *words(one, *near, "model.mpp_tolerance=0.05"))
        self.must(self.slide, "-o", self.folder / "exact", *words(one))
        import h5py

        with h5py.File(self.folder / "as_it_is" / "features" / "slide.h5") as a, \
                h5py.File(self.folder / "exact" / "features" / "slide.h5") as b:
            numpy.testing.assert_array_equal(a["features"][:], b["features"][:])


if __name__ == "__main__":
    unittest.main()
