#!/usr/bin/env python3
"""Makes small networks to try and to test with: `make-models.py DIR [NAME ...]`.

Writes DIR/NAME.onnx, and NAME.toml beside those that want settings: what pixels become, what comes out. Of networks for
volumes, most are a folder DIR/NAME with one per fragment. Weights are random, by a fixed seed: the networks compute what
networks of their kind compute, and mean nothing. Needs the package `onnx` (pip install onnx). Without names all but the
large ones and those for volumes are made; `make-models.py --list` says which there are.
"""

import pathlib
import sys

try:
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"make-models.py: {missing}; pip install onnx", file=sys.stderr)
    sys.exit(1)

FLOAT = TensorProto.FLOAT
HALF = TensorProto.FLOAT16
# The usual numbers of networks that were trained on ImageNet.
IMAGENET = "mean = [0.485, 0.456, 0.406]\nstd = [0.229, 0.224, 0.225]\nscale = 1.0\n"


class Network:
    """Nodes and weights as they are added; values go by name."""

    def __init__(self, seed=1, dtype="float32"):
        self.random = numpy.random.RandomState(seed)
        self.dtype = dtype  # of weights
        self.nodes = []
        self.weights = []

    def constant(self, values, dtype=None):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(numpy.asarray(values, dtype or self.dtype), name))
        return name

    def add(self, kind, *inputs, to=None, **attributes):
        name = to or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def conv(self, value, channels, outputs, side=3, stride=1, to=None):
        scale = (2.0 / (channels * side * side)) ** 0.5
        weights = self.random.standard_normal((outputs, channels, side, side)) * scale
        bias = self.random.standard_normal(outputs) * 0.1
        return self.add("Conv", value, self.constant(weights), self.constant(bias), to=to, kernel_shape=[side, side],
                        pads=[side // 2] * 4, strides=[stride, stride])

    def model(self, name, takes, gives, types=(FLOAT, FLOAT), inputs=("tiles",), output="result"):
        graph = helper.make_graph(self.nodes, name, [helper.make_tensor_value_info(each, types[0], takes) for each in inputs],
                                  [helper.make_tensor_value_info(output, types[1], gives)], self.weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="slidestream")
        made.ir_version = 8
        if gives is not None:  # without it a model isn't as ONNX wants it, and ONNX Runtime takes it
            onnx.checker.check_model(made)
        return made


def pointwise(kind, types=(FLOAT, FLOAT), takes=("n", 3, 64, 64), **attributes):
    network = Network()
    network.add(kind, "tiles", to="result", **attributes)
    return network.model(kind, takes, takes, types)


def identity():
    """Pixels as they are."""
    return pointwise("Identity")


def half():
    """The same in float16."""
    return pointwise("Identity", (HALF, HALF))


def two():
    """The same, two tiles at a time."""
    return pointwise("Identity", takes=(2, 3, 64, 64))


def neighbours(name, *side):
    network = Network()
    network.add("Conv", "tiles", network.constant(numpy.full((3, 1, 3, 3), 1 / 9)), to="result", group=3,
                kernel_shape=[3, 3], pads=[1] * 4)
    return network.model(name, ["n", 3, *side], ["n", 3, *side])


def blur():
    """The mean of 3 x 3 pixels, beyond the tile's edge black; tiles of any size."""
    return neighbours("blur", "height", "width")


def outside():
    """The same of tiles of 64, with its weights in a file of another name."""
    return neighbours("outside", 64, 64)


def smaller():
    """The mean of 2 x 2 pixels: half as wide and high."""
    network = Network()
    network.add("AveragePool", "tiles", to="result", kernel_shape=[2, 2], strides=[2, 2])
    return network.model("smaller", ["n", 3, 64, 64], ["n", 3, 32, 32])


def place():
    """Pixels that depend on where in the tile they are."""
    network = Network()
    ramp = numpy.linspace(0, 0.5, 64 * 64).reshape(1, 1, 64, 64)
    halved = network.add("Mul", "tiles", network.constant(0.5))
    network.add("Add", halved, network.constant(ramp), to="result")
    return network.model("place", ["n", 3, 64, 64], ["n", 3, 64, 64])


def classes():
    """Four classes of pixels by their colour: light, dark, red, blue."""
    network = Network()
    weights = network.constant(numpy.array([[1, 1, 1], [-1, -1, -1], [3, -3, 0], [0, -3, 3]]).reshape(4, 3, 1, 1))
    network.add("Conv", "tiles", weights, network.constant([-1.5, 1.5, 0, 0]), to="result", kernel_shape=[1, 1])
    return network.model("classes", ["n", 3, 64, 64], ["n", 4, 64, 64])


def unet():
    """A U-Net of two levels: RGB from RGB."""
    network = Network()
    top = network.add("Relu", network.conv("tiles", 3, 8))
    bottom = network.add("Relu", network.conv(network.add("MaxPool", top, kernel_shape=[2, 2], strides=[2, 2]), 8, 16))
    up = network.add("Resize", bottom, "", network.constant([1, 1, 2, 2]), mode="nearest")
    joined = network.add("Relu", network.conv(network.add("Concat", top, up, axis=1), 24, 8))
    network.add("Sigmoid", network.conv(joined, 8, 3, side=1), to="result")
    return network.model("unet", ["n", 3, 128, 128], ["n", 3, 128, 128])


def residual(widths, blocks, tile, entries, half=False):
    """A ResNet: a stem, stages of residual blocks that halve the image, the mean over what is left."""
    network = Network(dtype="float16" if half else "float32")
    value = network.add("Relu", network.conv("tiles", 3, widths[0], side=7, stride=2))
    value = network.add("MaxPool", value, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    before = widths[0]
    for stage, width in enumerate(widths):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            inner = network.add("Relu", network.conv(value, before, width, stride=stride))
            inner = network.conv(inner, width, width)
            around = value if stride == 1 and before == width else network.conv(value, before, width, side=1, stride=stride)
            # Half, as there is no normalisation: else values grow with every block.
            value = network.add("Relu", network.add("Mul", network.add("Add", inner, around), network.constant(0.5)))
            before = width
    network.add("Flatten", network.add("GlobalAveragePool", value), to="result")
    types = (HALF, HALF) if half else (FLOAT, FLOAT)
    return network.model("residual", ["n", 3, tile, tile], ["n", entries], types)


def features():
    """A small ResNet: 32 features of a tile."""
    return residual([8, 16, 32], 1, 64, 32)


def resnet18():
    """A network of ResNet-18's shape: 512 features of a tile of 224 x 224. 45 MB."""
    return residual([64, 128, 256, 512], 2, 224, 512)


def resnet18_half():
    """The same in float16. 22 MB."""
    return residual([64, 128, 256, 512], 2, 224, 512, half=True)


def unet_half():
    """A U-Net of five levels for tiles of 512, in float16: 94 GFLOP each. 16 MB."""
    network = Network(dtype="float16")

    def twice(value, channels, outputs):
        first = network.add("Relu", network.conv(value, channels, outputs))
        return network.add("Relu", network.conv(first, outputs, outputs))

    widths = [32, 64, 128, 256, 512]
    levels = [twice("tiles", 3, widths[0])]
    for above, width in zip(widths, widths[1:]):
        levels.append(twice(network.add("MaxPool", levels[-1], kernel_shape=[2, 2], strides=[2, 2]), above, width))
    value = levels.pop()
    for width in reversed(widths[:-1]):
        scales = network.constant([1, 1, 2, 2], "float32")
        up = network.conv(network.add("Resize", value, "", scales, mode="nearest"), 2 * width, width)
        value = twice(network.add("Concat", levels.pop(), up, axis=1), 2 * width, width)
    # Its picture is that of the tile, a little changed: noise would be slow to compress, and is no picture.
    changed = network.add("Mul", network.conv(value, widths[0], 3, side=1), network.constant(0.01))
    network.add("Sigmoid", network.add("Add", "tiles", changed), to="result")
    return network.model("unet", ["n", 3, 512, 512], ["n", 3, 512, 512], (HALF, HALF))


def nan():
    """Features that aren't numbers where a tile's mean is above one half."""
    network = Network()
    mean = network.add("ReduceMean", "tiles", axes=[2, 3], keepdims=0)
    network.add("Sqrt", network.add("Sub", network.constant(0.5), mean), to="result")
    return network.model("nan", ["n", 3, 64, 64], ["n", 3])


def infinite():
    """Features that are infinite where a tile's mean is above one half."""
    network = Network()
    mean = network.add("ReduceMean", "tiles", axes=[2, 3], keepdims=0)
    left = network.add("Relu", network.add("Sub", network.constant(0.5), mean))
    network.add("Reciprocal", left, to="result")
    return network.model("infinite", ["n", 3, 64, 64], ["n", 3])


def repeated(times, holes=False, gives=None):
    """Pixels as they are, after so many repetitions of what changes nothing; with holes where tiles are light."""
    network = Network()
    shape = ["n", 3, 64, 64]
    values = [helper.make_tensor_value_info(name, FLOAT, shape) for name in ("before", "after")]
    flags = [helper.make_tensor_value_info(name, TensorProto.BOOL, []) for name in ("goes_on", "still")]
    body = helper.make_graph(
        [helper.make_node("Identity", ["goes_on"], ["still"]),
         helper.make_node("MaxPool", ["before"], ["after"], kernel_shape=[1, 1])], "body",
        [helper.make_tensor_value_info("turn", TensorProto.INT64, []), flags[0], values[0]], [flags[1], values[1]])
    value = network.add("Loop", network.constant(times, "int64"), network.constant(True, "bool"), "tiles", body=body)
    if holes:
        mean = network.add("ReduceMean", "tiles", axes=[1, 2, 3], keepdims=1)
        root = network.add("Sqrt", network.add("Sub", network.constant(0.5), mean))
        value = network.add("Add", value, network.add("Mul", root, network.constant(0.0)))
    network.add("Identity", value, to="result")
    return network.model("repeated", shape, gives or shape)


def slow():
    """Pixels as they are, some hundredths of a second later."""
    return repeated(1000)


def holes():
    """The same, and not a number where a tile's mean is above one half."""
    return repeated(1000, holes=True)


def endless():
    """Never comes to an end."""
    return repeated(numpy.iinfo(numpy.int64).max)


def memory():
    """Wants more memory than any machine has as soon as it runs."""
    network = Network()
    mean = network.add("ReduceMean", "tiles", axes=[2, 3], keepdims=1)
    large = network.add("Expand", mean, network.constant([1, 3, 1 << 22, 1 << 22], "int64"))
    network.add("ReduceMean", large, to="result", axes=[2, 3], keepdims=0)
    return network.model("memory", ["n", 3, 64, 64], ["n", 3])


def grey():
    """Takes tiles of one channel."""
    return pointwise("Identity", takes=("n", 1, 64, 64))


def bytes_in():
    """Takes bytes."""
    network = Network()
    network.nodes.append(helper.make_node("Cast", ["tiles"], ["result"], to=FLOAT))
    return network.model("bytes", ["n", 3, 64, 64], ["n", 3, 64, 64], (TensorProto.UINT8, FLOAT))


def oblong():
    """Gives what isn't square."""
    network = Network()
    network.add("AveragePool", "tiles", to="result", kernel_shape=[2, 1], strides=[2, 1])
    return network.model("oblong", ["n", 3, 64, 64], ["n", 3, 32, 64])


def inputs():
    """Takes two inputs."""
    network = Network()
    network.add("Add", "tiles", "others", to="result")
    return network.model("inputs", ["n", 3, 64, 64], ["n", 3, 64, 64], inputs=("tiles", "others"))


def itself():
    """Gives what it takes, without a node between."""
    return Network().model("itself", ["n", 3, 64, 64], ["n", 3, 64, 64], output="tiles")


def unranked():
    """The mean colour, and doesn't say how many dimensions that has."""
    network = Network()
    network.add("Squeeze", network.add("ReduceMean", "tiles", axes=[2, 3], keepdims=1), to="result")
    return network.model("unranked", ["n", 3, 64, 64], None)


def endless_shape():
    """Never comes to an end, and doesn't say what shape it would give."""
    return repeated(numpy.iinfo(numpy.int64).max, gives=["n", 3, "height", "width"])


def unet3d(seed, classes=133, widths=(32, 64, 128, 256), fragment=(96, 128, 88), half=False):
    """The 3-D U-Net of Cicek et al. (2016) with scores of classes: 19 million weights."""
    network = Network(seed, "float16" if half else "float32")

    def conv(value, channels, outputs, side=3, to=None):
        scale = (2.0 / (channels * side ** 3)) ** 0.5
        weights = network.random.standard_normal((outputs, channels, side, side, side)) * scale
        bias = network.random.standard_normal(outputs) * 0.1
        return network.add("Conv", value, network.constant(weights), network.constant(bias), to=to,
                           kernel_shape=[side] * 3, pads=[side // 2] * 6)

    def twice(value, channels, between, outputs):
        first = network.add("Relu", conv(value, channels, between))
        return network.add("Relu", conv(first, between, outputs))

    # Intensities of a head are hundreds.
    value = network.add("Mul", "volume", network.constant(1 / 512))
    levels, channels = [], 1
    for width in widths:
        if levels:
            value = network.add("MaxPool", levels[-1], kernel_shape=[2] * 3, strides=[2] * 3)
        levels.append(twice(value, channels, width, 2 * width))
        channels = 2 * width
    value = levels.pop()
    for width in reversed(widths[:-1]):
        up = network.add("ConvTranspose", value, network.constant(
            network.random.standard_normal((channels, channels, 2, 2, 2)) * (1.0 / channels) ** 0.5),
            kernel_shape=[2] * 3, strides=[2] * 3)
        value = twice(network.add("Concat", levels.pop(), up, axis=1), 2 * width + channels, 2 * width, 2 * width)
        channels = 2 * width
    conv(value, channels, classes, side=1, to="result")
    types = (HALF, HALF) if half else (FLOAT, FLOAT)
    return network.model("unet3d", [1, 1, *fragment], [1, classes, *fragment], types, inputs=("volume",))


def slant():
    """A folder of 27 3-D U-Nets for fragments of 96 x 128 x 88, with 133 classes, for `pipeline volume`. 2 GB."""
    return (unet3d(seed) for seed in range(27))


def slant_half():
    """The same in float16. 1 GB."""
    return (unet3d(seed, half=True) for seed in range(27))


def slant_small():
    """The same with few channels, for CPUs: 27 networks of 5 classes. 2 MB."""
    return (unet3d(seed, classes=5, widths=(2, 4, 8)) for seed in range(27))


def unet_64():
    """A 3-D U-Net of 5 classes for fragments of 64 x 64 x 64, for `pipeline volume`. 74 kB."""
    return unet3d(0, classes=5, widths=(2, 4, 8), fragment=(64, 64, 64))


SMALL = [identity, half, two, blur, smaller, place, classes, unet, features, nan, infinite, memory, slow, holes,
         endless, outside, itself, unranked, endless_shape, grey,
         bytes_in, oblong, inputs]
LARGE = [resnet18, resnet18_half, unet_half]
# One network for all fragments.
VOLUMES = [unet_64]
# Folders of networks, one per fragment.
FOLDERS = [slant, slant_half, slant_small]
# Files that weights lie in.
WEIGHTS = {"outside": "filters.bin"}
SETTINGS = {
    "slow": "batch = 1\n",
    "holes": "batch = 1\n",
    "endless": "batch = 1\n",
    "endless_shape": "batch = 1\n",
    "blur": "tile = 64\noverlap = 8\n",
    "classes": 'output = "classes"\nrange = [-3.0, 3.0]\n',
    "unet": "overlap = 16\nbatch = 4\n" + IMAGENET,
    "unet_half": "overlap = 64\nbatch = 16\n" + IMAGENET,
    "features": "batch = 8\nwhere = \"tissue\"\n" + IMAGENET,
    "resnet18_half": "batch = 256\nwhere = \"tissue\"\n" + IMAGENET,
    "resnet18": "batch = 256\nwhere = \"tissue\"\n" + IMAGENET,
}


def main(arguments):
    known = {make.__name__: make for make in SMALL + LARGE + VOLUMES + FOLDERS}
    if arguments == ["--list"]:
        for name, make in known.items():
            print(f"{name:13} {make.__doc__}")
        return 0
    if not arguments or arguments[0].startswith("-") or not known.keys() >= set(arguments[1:]):
        print("usage: make-models.py DIR [NAME ...], or --list for the names", file=sys.stderr)
        return 2
    folder = pathlib.Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name in arguments[1:] or [make.__name__ for make in SMALL]:
        if known[name] in FOLDERS:
            (folder / name).mkdir(exist_ok=True)
            for i, model in enumerate(known[name](), 1):
                (folder / name / f"network-{i:02}.onnx").write_bytes(model.SerializeToString(deterministic=True))
            continue
        model = known[name]()
        if name in WEIGHTS:
            (folder / WEIGHTS[name]).unlink(missing_ok=True)
            onnx.external_data_helper.convert_model_to_external_data(model, location=WEIGHTS[name], size_threshold=0)
            model = onnx.external_data_helper.write_external_data_tensors(model, str(folder))
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString(deterministic=True))
        if name in SETTINGS:
            (folder / f"{name}.toml").write_text(f"[model]\n{SETTINGS[name]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
