"""`map`: images against tiles that NumPy puts together, and functions that fail."""

import functools
import gc
import importlib.util
import os
import sys
import threading
import time
import traceback
import warnings

import numpy
import pytest
from conftest import synth
from test_lifetimes import interrupt_when_told
from test_run import program

import slidestream as ss


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A slide of a few tiles of 128, for what is computed in float64."""
    return synth(tmp_path_factory.mktemp("small") / "small.svs", "--size", "500x340", "--tile", "128", "--levels", "1")


def pixels_of(file):
    """An image's level 0."""
    slide = ss.Slide(file)
    return slide.read_region((0, 0), 0, slide.dimensions)


def starts(length, tile, overlap):
    step = tile - overlap
    count = max(1, -(-(length - tile) // step) + 1)
    return [i * step for i in range(count - 1)] + [length - tile if length > tile else 0]


def ramp(overlap):
    return (512 * numpy.arange(overlap) + 256 + overlap) // (2 * overlap)


def weights(length, tile, overlap):
    """For each tile along an axis what it weighs at each sample: `tent`, the last tile moved back."""
    begins, step = starts(length, tile, overlap), tile - overlap
    table = numpy.zeros((len(begins), length), numpy.int64)
    for i in range(len(begins)):
        table[i, i * step:min(length, (i + 1) * step) if i + 1 < len(begins) else length] = 256
    for i in range(1, len(begins)):
        blend = numpy.arange(i * step, min(i * step + overlap, length))
        table[i, blend] = ramp(overlap)[:len(blend)]
        table[i - 1, blend] = 256 - ramp(overlap)[:len(blend)]
    return begins, table


def stitched(image, function, tile, overlap, batch, range_, white, scale=1):
    """docs/stitching.md over a whole image: plain, and slow."""
    out_height, out_width = (-(-side // scale) for side in image.shape[:2])
    xs, across = weights(out_width, tile // scale, overlap // scale)
    ys, down = weights(out_height, tile // scale, overlap // scale)
    tiles = []
    for y in ys:
        for x in xs:
            rows = numpy.clip(numpy.arange(y * scale, y * scale + tile), 0, 2 * image.shape[0] - 1)
            columns = numpy.clip(numpy.arange(x * scale, x * scale + tile), 0, 2 * image.shape[1] - 1)
            rows = numpy.where(rows < image.shape[0], rows, 2 * image.shape[0] - 1 - rows)
            columns = numpy.where(columns < image.shape[1], columns, 2 * image.shape[1] - 1 - columns)
            tiles.append(image[rows[:, None], columns])
    padded = tiles + [numpy.zeros_like(tiles[0])] * (-len(tiles) % batch)
    given = numpy.concatenate([function(numpy.stack(padded[i:i + batch])) for i in range(0, len(padded), batch)])
    low, high = (numpy.float32(value) for value in range_)
    factor = numpy.float32(white) / (high - low)
    values = numpy.clip(numpy.rint((given[:len(tiles)].astype(numpy.float32) - low) * factor), 0, white)
    total = numpy.zeros((out_height, out_width, values.shape[-1]), numpy.int64)
    for j, y in enumerate(ys):
        for i, x in enumerate(xs):
            part = values[j * len(xs) + i].astype(numpy.int64)
            part = part[:out_height - y, :out_width - x]
            weight = down[j, y:y + part.shape[0], None] * across[i, None, x:x + part.shape[1]]
            total[y:y + part.shape[0], x:x + part.shape[1]] += weight[..., None] * part
    return (total + 32768) >> 16


def darker_to_the_right(pixels):
    """Of a tile's place in it, so that blends show."""
    side = pixels.shape[1]
    return pixels * numpy.linspace(1, 0.25, side, dtype=numpy.float32)[:, None] / 255


@pytest.mark.parametrize(("tile", "overlap", "batch"), [(128, 32, 5), (256, 0, 3), (900, 450, 1)])
def test_an_image_is_put_together_as_by_numpy(slide, tmp_path, tile, overlap, batch):
    out = tmp_path / "a.stained.ome.tif"
    result = ss.map(slide, darker_to_the_right, tile=tile, overlap=overlap, batch=batch, out=out,
                    image={"compression": "zstd"})
    assert result.slides[0].done and result.slides[0].files == [out] and not result.errors
    assert os.listdir(tmp_path) == ["a.stained.ome.tif"]
    expected = stitched(pixels_of(slide), darker_to_the_right, tile, overlap, batch, (0, 1), 255)
    assert numpy.array_equal(pixels_of(out), expected)


@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
@pytest.mark.parametrize("dtype", ["uint8", "float64"])
def test_a_smaller_image_of_one_channel(slide, tmp_path, layout, dtype):
    def function(pixels):
        grey = pixels.mean(axis=3 if layout == "nhwc" else 1)
        small = grey.reshape(len(grey), 32, 4, 32, 4).mean(axis=(2, 4))
        return small.astype(numpy.uint8) if dtype == "uint8" else small / 300 + 0.125

    range_ = None if dtype == "uint8" else (0.125, 1.0)
    ss.map(slide, function, tile=128, overlap=32, batch=7, out=tmp_path / "a.ome.tif", range=range_, layout=layout,
           image={"compression": "none"}, name="mean")
    expected = stitched(pixels_of(slide), lambda pixels: function(
        pixels if layout == "nhwc" else pixels.transpose(0, 3, 1, 2))[..., None], 128, 32, 7, range_ or (0, 255), 255, 4)
    made = ss.Slide(tmp_path / "a.ome.tif")
    assert made.dimensions == (275, 181) and made.mpp == pytest.approx(2.0)
    assert numpy.array_equal(pixels_of(tmp_path / "a.ome.tif")[..., :1], expected)
    assert b"mean (Python)" in (tmp_path / "a.ome.tif").read_bytes()


def test_numbers_of_sixteen_bits_and_classes(slide, tmp_path):
    tifffile = pytest.importorskip("tifffile")
    ss.map(slide, lambda pixels: pixels.astype(numpy.uint16) * 257, tile=128, overlap=64, batch=4,
           out=tmp_path / "wide.ome.tif", image={"compression": "none"})
    wide = tifffile.imread(tmp_path / "wide.ome.tif")
    assert wide.dtype == numpy.uint16 and set(wide.shape) == {3, 724, 1100}
    assert numpy.array_equal(numpy.moveaxis(wide, numpy.argmin(wide.shape), -1), pixels_of(slide).astype(int) * 257)
    ss.map(slide, lambda pixels: pixels / numpy.float32(255), tile=128, overlap=32, batch=4, output="classes",
           out=tmp_path / "labels.ome.tif", image={"compression": "none"})
    labels = tifffile.imread(tmp_path / "labels.ome.tif")
    assert numpy.array_equal(labels, pixels_of(slide).argmax(axis=2))


@pytest.mark.parametrize(("scale", "shift", "activation"), [
    (1.0, 0.0, "softmax"), (10.0, 8.0, "softmax"), (4.0, -2.0, "sigmoid"), (10.0, 8.0, "none")])
def test_classes_are_the_largest_of_the_blended_scores(small, tmp_path, scale, shift, activation):
    """Labels against float64: they differ only where two classes are within 1/65,535 of the range."""
    chance = numpy.random.default_rng(3)
    mix = chance.normal(size=(3, 5))
    tile, overlap = 128, 32

    def scores(pixels):
        # They depend on the place in the tile, so that neighbours differ where they overlap.
        place = numpy.linspace(0, 1, tile)[:, None, None]
        return ((pixels / 255.0 - 0.5) @ mix * (1 + place) * scale + shift).astype(numpy.float32)

    values = {} if activation != "none" else {"range": (-60.0, 60.0)}
    ss.map(small, scores, tile=tile, overlap=overlap, batch=4, output="classes", activation=activation,
           out=tmp_path / "labels.ome.tif", **values)
    image = ss.Slide(tmp_path / "labels.ome.tif")
    labels = image.read_region((0, 0), 0, image.dimensions)[..., 0]
    pixels = pixels_of(small)
    height, width = pixels.shape[:2]

    def axis(length):
        count = max(1, -(-(length - tile) // (tile - overlap)) + 1)
        return [i * (tile - overlap) for i in range(count - 1)] + [length - tile]

    def weights(length):
        begins, step = axis(length), tile - overlap
        table = numpy.zeros((len(begins), length))
        ramp = (512 * numpy.arange(overlap) + 256 + overlap) // (2 * overlap)
        for i in range(len(begins)):
            table[i, i * step:(i + 1) * step + overlap] = 256
            if i > 0:
                table[i, i * step:i * step + overlap] = ramp
            if i + 1 < len(begins):
                table[i, (i + 1) * step:(i + 1) * step + overlap] = 256 - ramp
        return begins, table

    total = numpy.zeros((height, width, 5))
    (ys, down), (xs, across) = weights(height), weights(width)
    for j, y in enumerate(ys):
        for i, x in enumerate(xs):
            given = scores(pixels[y:y + tile, x:x + tile]).astype(numpy.float64)
            if activation == "softmax":
                given = numpy.exp(given - given.max(axis=2, keepdims=True))
                given /= given.sum(axis=2, keepdims=True)
            elif activation == "sigmoid":
                given = 1 / (1 + numpy.exp(-given))
            weight = down[j, y:y + tile, None] * across[i, None, x:x + tile]
            total[y:y + tile, x:x + tile] += weight[..., None] * given
    blended = total / 65536 / (120.0 if activation == "none" else 1.0)
    wrong = labels != blended.argmax(axis=2)
    two = numpy.sort(blended, axis=2)
    assert len(numpy.unique(labels)) > 1
    assert (two[..., -1] - two[..., -2])[wrong].max(initial=0) <= 1 / 65535
    assert wrong.mean() < 0.01


def test_scores_outside_of_the_range_are_refused(slide, tmp_path):
    """They were clamped, so that the first class won everywhere."""
    logits = lambda pixels: numpy.stack([pixels[..., 0] * 0 + 5.0, pixels[..., 0] * 0 + 9.0], -1).astype("f4")  # noqa: E731
    with pytest.raises(ss.SlideError, match=r"gave values from 5 to 9 there, and range= is 0 to 1: set activation= to "
                                            r'"softmax", or range= so that it holds all values'):
        ss.map(slide, logits, tile=64, batch=4, output="classes", out=tmp_path / "a.ome.tif")
    ss.map(slide, logits, tile=64, batch=4, output="classes", activation="softmax", out=tmp_path / "b.ome.tif")
    image = ss.Slide(tmp_path / "b.ome.tif")
    assert (image.read_region((0, 0), 0, image.dimensions) == 1).all()
    with pytest.raises(ss.ConfigError, match='softmax over its one channel is always 1: set activation to "sigmoid"'):
        ss.map(slide, lambda pixels: pixels[..., :1] / numpy.float32(255), tile=64, output="image", activation="softmax",
               out=tmp_path / "e.ome.tif")
    for keywords, message in (({"range": (0.0, 2.0), "activation": "softmax"}, "leave range out"),
                              ({"activation": "relu"}, "activation is 'relu'")):
        with pytest.raises(ss.ConfigError, match=message):
            ss.map(slide, logits, tile=64, batch=4, output="classes", out=tmp_path / "c.ome.tif", **keywords)


def test_classes_of_one_channel_are_refused_and_a_mask_is_not(slide, tmp_path):
    """The largest of one channel is class 0 everywhere."""
    for one in (lambda pixels: pixels[..., 0] / numpy.float32(255)), (lambda pixels: pixels[..., :1]):
        with pytest.raises(ss.ConfigError, match=r"of (float32|uint8): one channel, so class 0 would be everywhere; give a mask of "
                                                 'bool, or output="image"'):
            ss.map(slide, one, tile=64, batch=4, output="classes", out=tmp_path / "a.ome.tif")
    ss.map(slide, lambda pixels: pixels[..., 0] < 300, tile=64, batch=4, output="classes", out=tmp_path / "b.ome.tif")
    image = ss.Slide(tmp_path / "b.ome.tif")
    assert (image.read_region((0, 0), 0, image.dimensions) == 1).all()


def test_clamped_values_of_an_image_are_counted(slide, tmp_path):
    def bright(pixels):
        values = numpy.zeros(pixels.shape[:3], numpy.float32)
        values[:, :, :16] = 1.5
        return values

    result = ss.map(slide, bright, tile=64, batch=4, range=(0.0, 1.0), out=tmp_path / "out", image={"format": "ome-tiff"})
    assert result.to_pandas()["model.clamped"].tolist() == [0.25]


def test_what_is_not_computed_is_labelled_so(slide, tmp_path):
    ones = lambda pixels: numpy.stack([pixels[..., 0] * 0, pixels[..., 0] * 0 + 1], -1).astype("f4")  # noqa: E731
    ss.map(slide, ones, tile=64, batch=4, output="classes", tissue=True, out=tmp_path / "a.ome.tif")
    image = ss.Slide(tmp_path / "a.ome.tif")
    labels = image.read_region((0, 0), 0, image.dimensions)[..., 0]
    assert set(numpy.unique(labels)) == {1, 255}
    # Any tissue is enough, unless a share is named.
    ss.map(slide, ones, tile=64, batch=4, output="classes", tissue=True, tissue_share=0.5, out=tmp_path / "b.ome.tif")
    fewer = ss.Slide(tmp_path / "b.ome.tif").read_region((0, 0), 0, image.dimensions)[..., 0]
    assert (fewer == 1).sum() < (labels == 1).sum()


def test_vectors_are_features(slide, tmp_path):
    h5py = pytest.importorskip("h5py")
    ss.map(slide, lambda pixels: pixels.mean(axis=(1, 2)), tile=128, batch=6, out=tmp_path / "a.h5", name="means")
    with h5py.File(tmp_path / "a.h5") as file:
        coords, features = file["coords"][:], file["features"][:]
        assert file["features"].attrs["encoder"] == "means (Python)"
    region = ss.Slide(slide)
    expected = [region.read_region(place, 0, 128).mean(axis=(0, 1)).astype(numpy.float32) for place in coords]
    assert len(coords) == 54 and numpy.array_equal(features, numpy.stack(expected))
    # Of tissue alone, at another resolution, into a folder.
    result = ss.map([slide], lambda pixels: pixels.mean(axis=(1, 2)), tile=32, mpp=1.2, tissue=True, out=tmp_path / "all",
                    name="means")
    with h5py.File(result.slides[0].files[0]) as file:
        assert 0 < len(file["coords"]) < 98
    assert result.slides[0].files == [tmp_path / "all" / "features" / "jpeg420.h5"]


def test_a_function_that_raises_fails_its_slide_and_no_other(slides, tmp_path):
    paths = [slides["jpeg420"], slides["jpeg422"], slides["none"]]
    bad = ss.Slide(paths[1]).read_region((0, 0), 0, 64)

    def check(tile):
        if numpy.array_equal(tile, bad):
            raise ValueError("a tile that\nnobody likes")

    def function(pixels):
        for tile in pixels:
            check(tile)
        return pixels

    result = ss.map(paths, function, tile=64, batch=8, out=tmp_path / "out")
    assert [slide.done for slide in result] == [True, False, True]
    error = result.failed[0].error
    assert "tile 0" in error and "ValueError: a tile that nobody likes (from test_map.py:" in error
    assert "in function; test_map.py:" in error and error.endswith("in check)")
    assert list(result.errors) == [paths[1]]
    raised = result.errors[paths[1]]
    assert isinstance(raised, ValueError) and "in check" in "".join(traceback.format_tb(raised.__traceback__))
    # The ledger has it, and the next call goes on: of those that failed only where it is told to.
    assert "nobody likes" in (tmp_path / "out" / "failures.csv").read_text()
    assert "nobody likes" in program("status", tmp_path / "out").stdout
    calls = []
    again = ss.map(paths, lambda pixels: calls.append(1) or pixels, tile=64, batch=8, out=tmp_path / "out",
                   name=f"{function.__module__}.{function.__qualname__}")
    assert len(calls) == 1 and "nobody likes" in again.failed[0].error
    with pytest.raises(ss.Error, match="other"):
        ss.map(paths, lambda pixels: pixels, tile=64, batch=8, out=tmp_path / "out", name="other")
    # One slide and its file: it is raised.
    with pytest.raises(ss.SlideError, match="jpeg422.svs: .*nobody likes") as caught:
        ss.map(paths[1], function, tile=64, batch=8, out=tmp_path / "one.ome.tif")
    assert isinstance(caught.value.__cause__, ValueError) and not (tmp_path / "one.ome.tif").exists()


def test_a_file_that_has_the_name_of_an_unfinished_one_is_refused(slide, tmp_path):
    with pytest.raises(ss.ConfigError, match="one.partial.ome.tif: names of unfinished images end in .partial: choose"):
        ss.map(slide, lambda pixels: pixels, tile=64, batch=8, out=tmp_path / "one.partial.ome.tif", overwrite=True)
    assert not os.listdir(tmp_path)


def test_a_file_that_is_there_stays_when_a_later_call_fails(slide, tmp_path):
    file, table = tmp_path / "one.ome.tif", tmp_path / "one.model.partial.csv"
    ss.map(slide, lambda pixels: pixels, tile=64, batch=8, out=file)
    before = file.read_bytes()
    calls = []

    def fails(pixels):
        calls.append(1)
        if len(calls) > 1:
            raise ValueError("later")
        return pixels

    for mode in "strict", "lenient":
        calls.clear()
        with pytest.raises(ss.SlideError, match="later"):
            ss.map(slide, fails, tile=64, batch=8, out=file, stitch={"mode": mode})
        assert file.read_bytes() == before
    assert table.read_text().startswith("tile,column,row,")
    # It goes when the file is made anew, and one of others doesn't.
    ss.map(slide, lambda pixels: pixels, tile=64, batch=8, out=file)
    assert os.listdir(tmp_path) == ["one.ome.tif"]
    table.write_text("mine")
    with pytest.raises(ss.ConfigError, match="one.model.partial.csv: is there already"):
        ss.map(slide, lambda pixels: pixels, tile=64, batch=8, out=file)
    assert table.read_text() == "mine"


def test_shapes_that_change_and_numbers_that_are_none_fail_the_slide(slide, tmp_path):
    calls = []

    def shrinks(pixels):
        calls.append(1)
        return pixels[:, ::2, ::2] if len(calls) == 3 else pixels

    with pytest.raises(ss.SlideError, match="gave 4 x 32 x 32 x 3 of uint8, and 4 x 64 x 64 x 3 of uint8 before"):
        ss.map(slide, shrinks, tile=64, batch=4, out=tmp_path / "a.ome.tif")

    # What 255 means is decided by the first call's numbers.
    for first, later in ((1, 1 / 255), (1 / 255, 1)):
        calls.clear()

        def changes(pixels):
            calls.append(1)
            factor = first if len(calls) == 1 else later
            return pixels if factor == 1 else pixels * factor

        with pytest.raises(ss.SlideError, match="gave 4 x 64 x 64 x 3 of (float64|uint8), and 4 x 64 x 64 x 3 of (uint8|float64) before"):
            ss.map(slide, changes, tile=64, batch=4, out=tmp_path / "a.ome.tif")

    def hole(pixels):
        values = pixels / numpy.float32(255)
        values[pixels.any(axis=(1, 2, 3)), 3, 4] = numpy.nan
        return values

    with pytest.raises(ss.SlideError, match=r"tile 0 .*a value that isn't a finite number"):
        ss.map(slide, hole, tile=64, batch=4, out=tmp_path / "a.ome.tif")

    def nothing(pixels):
        return numpy.where(pixels.any(axis=(1, 2, 3), keepdims=True), numpy.float32("nan"), pixels / numpy.float32(255))

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(ss.SlideError, match=r"model: tile 0 .*a value that isn't a finite number"):
            ss.map(slide, nothing, tile=64, batch=4, out=tmp_path / "a.ome.tif")


@pytest.mark.parametrize("text", ["a\udc80b", "a\0b", "a\x1b[31mb"])
def test_messages_of_any_characters_fail_one_slide(slide, tmp_path, text):
    def raises(pixels):
        if pixels.any():
            raise ValueError(text)
        return pixels

    result = ss.map([slide], raises, tile=64, batch=4, out=tmp_path / "out")
    assert "ValueError: a?" in result.failed[0].error and "b (from test_map.py:" in result.failed[0].error
    assert result.errors[result.failed[0].path].args == (text,)


@pytest.mark.parametrize(("function", "message"), [
    (lambda pixels: pixels[:3], "gave 3 x 64 x 64 x 3 of uint8 for 4 tiles of 64 x 64 pixels; expected as many"),
    (lambda pixels: pixels[:, :48], "expected squares whose side divides"),
    (lambda pixels: pixels[:, :48, :48], "expected squares whose side divides"),
    (lambda pixels: pixels[0, 0, 0, :1].repeat(4), "expected tiles x height x width x channels"),
    (lambda pixels: pixels.transpose(0, 3, 1, 2),
     "gave 4 x 3 x 64 x 64 of uint8 .*; expected tiles x height x width x channels; with layout=.nchw. channels are first"),
    (lambda pixels: pixels.repeat(6, axis=3), "expected 1 to 16 channels, and it has 18"),
    (lambda pixels: pixels.astype(str), "expected numbers"),
    (lambda pixels: pixels * 1j, "expected numbers"),
])
def test_what_cannot_be_put_together_is_refused_at_once(slide, tmp_path, function, message):
    with pytest.raises(ss.ConfigError, match=message):
        ss.map(slide, function, tile=64, batch=4, out=tmp_path / "out", name="wrong")
    assert not os.listdir(tmp_path)


def test_arguments_are_checked(slides, tmp_path):
    slide = slides["jpeg420"]
    for keywords, message in (({"overlap": 33}, "^overlap is 33; expected 0 to 32, half of tile$"), ({"tile": 0}, "tile is 0"),
                              ({"layout": "hwc"}, "layout is 'hwc'"), ({"framework": "tensorflow"}, "framework is"),
                              ({"model": {"tile": 3}}, "has no say here"), ({"range": (1, 1)}, "^range is .1, 1.; expected .low"),
                              ({"range": "ab"}, "^range is 'ab'; expected .low"), ({"range": 5}, "^range is 5; expected .low"),
                              ({"out": tmp_path / "a.h5"}, r"a\.h5"), ({"output": "vector"}, "expected tiles x entries"),
                              ({"sample": "int8"}, "sample is 'int8'"), ({"stitch": {"weight": 1}}, "stitch.weight"),
                              ({"mpp": -1}, "mpp is -1")):
        with pytest.raises(ss.ConfigError, match=message):
            ss.map(slide, lambda pixels: pixels, **{"tile": 64, "out": tmp_path / "a.ome.tif", **keywords})
    with pytest.raises(ss.ConfigError, match="^overlap is 6, and the function gave .*, 1/4 as large as tiles; expected a multip"):
        ss.map(slide, lambda pixels: pixels[:, ::4, ::4], tile=64, overlap=6, batch=4, out=tmp_path / "a.ome.tif")
    file = tmp_path / "network.toml"
    for text in ("[pipeline]\nstrip_height = 256\n[ model ]\ntile = 3\n", "model.tile = 3\n", "model = { tile = 3 }\n"):
        file.write_text(text)
        with pytest.raises(ss.ConfigError, match=r"network\.toml: \[model\] has no say here"):
            ss.map(slide, lambda pixels: pixels, tile=64, out=tmp_path / "a.ome.tif", config=file)
    file.unlink()
    with pytest.raises(ss.ConfigError, match="one file holds one slide, and there are 2"):
        ss.map([slide, slides["none"]], lambda pixels: pixels, tile=64, out=tmp_path / "a.ome.tif")
    with pytest.raises(ss.ConfigError, match="gave 4 x 64 x 64 x 3 of .*; with layout=.nhwc. channels are last"):
        ss.map(slide, lambda pixels: pixels.transpose(0, 2, 3, 1), tile=64, batch=4, layout="nchw", out=tmp_path / "a.ome.tif")
    with pytest.raises(ss.ConfigError, match="expected something that can be called"):
        ss.map(slide, 3, tile=64, out=tmp_path / "a.ome.tif")
    with pytest.raises(ss.ConfigError, match="the function gave NoneType; expected an array"):
        ss.map(slide, lambda pixels: None, tile=64, out=tmp_path / "a.ome.tif")
    with pytest.raises(ss.ConfigError, match=r"masked values; fill them"):
        ss.map(slide, lambda pixels: numpy.ma.masked_less(pixels, 255), tile=64, out=tmp_path / "a.ome.tif")
    with pytest.raises(ZeroDivisionError):
        ss.map(slide, lambda pixels: 1 / 0, tile=64, out=tmp_path / "a.ome.tif")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_tensors_of_other_libraries(slide, tmp_path, framework):
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"without {framework}")
    if framework == "torch":
        torch = pytest.importorskip("torch")

        class Function(torch.nn.Module):
            def forward(self, pixels):
                assert isinstance(pixels, torch.Tensor) and pixels.dtype == torch.uint8
                return (255 - pixels.float()) / 255

        function = Function()
    else:
        def function(pixels):
            assert type(pixels).__module__.startswith("jax")
            return 255 - pixels
    keywords = {} if framework == "torch" else {"framework": framework}
    ss.map(slide, function, tile=64, overlap=16, batch=4, out=tmp_path / "a.ome.tif", layout="nchw",
           image={"compression": "zstd"}, **keywords)
    assert numpy.array_equal(pixels_of(tmp_path / "a.ome.tif"), 255 - pixels_of(slide))


def test_anything_that_can_be_called(slide, tmp_path):
    class Identity:
        def __call__(self, pixels):
            return pixels

    for function in (Identity(), Identity().__call__, functools.partial(numpy.add, 0), numpy.positive, numpy.uint8(0).__add__):
        ss.map(slide, function, tile=512, batch=2, out=tmp_path / "a.ome.tif")


def test_tiles_stay_when_they_are_kept(slide, tmp_path):
    kept, copies = [], []

    def keep(pixels):
        kept.append(pixels)
        copies.append(pixels.copy())
        return pixels

    ss.map(slide, keep, tile=64, batch=10, out=tmp_path / "a.ome.tif")
    gc.collect()
    assert len(kept) == 23 and all(numpy.array_equal(a, b) for a, b in zip(kept, copies))
    assert kept[-1][:6].any() and not kept[-1][6:].any()  # 18 x 12 tiles in batches of 10


def test_it_is_called_in_order_by_the_calling_thread_while_others_run(slide, tmp_path):
    threads, turns, stop = set(), [0], threading.Event()

    def count():
        while not stop.is_set():
            turns[0] += 1
            time.sleep(0)

    other = threading.Thread(target=count)
    other.start()

    def function(pixels):
        threads.add(threading.get_ident())
        return pixels

    # A busy machine may give the other little of one run.
    for _ in range(20):
        moments = []
        before = turns[0]
        ss.map(slide, function, tile=32, batch=4, out=tmp_path / "a.ome.tif", on_progress=moments.append)
        if turns[0] - before > 10:
            break
    stop.set()
    other.join()
    assert threads == {threading.get_ident()} and turns[0] - before > 10
    assert moments[-1].slides_done == 1 and moments[-1].tiles_written > 0


def test_an_interrupt_in_the_function_breaks_off_and_the_slide_stays_pending(slides, tmp_path):
    script = """
import sys, time, slidestream as ss
calls = []
def function(pixels):
    calls.append(1)
    if len(calls) == 40:
        print("ready", flush=True)
        time.sleep(60)
    return pixels
try:
    ss.map(sys.argv[2:], function, tile=64, batch=8, out=sys.argv[1])
except KeyboardInterrupt:
    print("interrupted", len(calls))
"""
    paths = [slides["jpeg420"], slides["jpeg422"]]
    assert interrupt_when_told(script, str(tmp_path / "out"), *paths) == (0, "interrupted 40\n", "")
    assert "failed" not in (tmp_path / "out" / "slides.csv").read_text()
    result = ss.map(paths, lambda pixels: pixels, tile=64, batch=8, out=tmp_path / "out", name="__main__.function")
    assert [slide.done for slide in result] == [True, True]
    # What is raised but isn't an error of the function breaks off, too.
    def leave(pixels):
        if pixels.any():
            sys.exit(3)
        return pixels

    with pytest.raises(SystemExit):
        ss.map(paths[0], leave, tile=64, batch=8, out=tmp_path / "b.ome.tif")


def test_numbers_of_another_range_than_the_usual_one_are_told(slide, tmp_path, caplog):
    with caplog.at_level("WARNING", logger="slidestream"):
        ss.map(slide, lambda pixels: pixels.astype("float32") / 255, tile=512, batch=4, out=tmp_path / "a.ome.tif")
        assert "is white" not in caplog.text
        ss.map(slide, lambda pixels: pixels.astype("float32"), tile=512, batch=4, out=tmp_path / "b.ome.tif", range=(0, 255))
        assert "is white" not in caplog.text
        result = ss.map(slide, lambda pixels: pixels.astype("float32"), tile=512, batch=4, out=tmp_path / "c.ome.tif")
    assert caplog.text.count("without range= all from 1 on is white") == 1
    assert repr(result) == "MapResult(1 slide, 0 failed)" and result[0].done


def test_a_folder_wants_a_name_of_functions_that_have_none(slide, tmp_path):
    class Halves:
        def __call__(self, pixels):
            return pixels // 2

        def halve(self, pixels):
            return pixels // 2

    def same(pixels):
        return pixels

    keywords = {"tile": 512, "batch": 2}
    for function, what in ((lambda pixels: pixels, "<lambda>"), (functools.partial(same), "an object of 'partial'"),
                           (Halves(), "an object of '.*Halves'")):
        with pytest.raises(ss.ConfigError, match=rf"^the function has no name of its own \({what}\): give name=, by which"):
            ss.map(slide, function, out=tmp_path / "out", **keywords)
        assert list(tmp_path.iterdir()) == []
    ss.map(slide, lambda pixels: 255 - pixels, out=tmp_path / "a.ome.tif", **keywords)
    for i, function in enumerate((same, Halves().halve)):
        assert ss.map(slide, function, out=tmp_path / str(i), **keywords)[0].done
    assert ss.map(slide, lambda pixels: pixels, out=tmp_path / "out", name="same", **keywords)[0].done
    with pytest.raises(ss.Error, match="inverse"):
        ss.map(slide, lambda pixels: 255 - pixels, out=tmp_path / "out", name="inverse", **keywords)


def test_a_name_that_is_no_folders_is_refused(slide, tmp_path):
    for name in ("a.csv", "a.NPY", "a.npz", "a.svs"):
        with pytest.raises(ss.ConfigError, match="expected a folder, or a file that ends in"):
            ss.map(slide, lambda pixels: pixels, tile=512, batch=4, out=tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shape", ["n h w", "n h w 1"])
def test_a_mask_stays_a_mask(slide, tmp_path, shape):
    """bool becomes labels 0 and 1, by no lossy compression, where tiles overlap too."""

    def bright(pixels):
        mask = pixels[..., 1] > 180
        return mask if shape == "n h w" else mask[..., numpy.newaxis]

    ss.map(slide, bright, tile=64, overlap=16, batch=4, out=tmp_path / "mask.ome.tif")
    image = ss.Slide(tmp_path / "mask.ome.tif")
    found = image.read_region((0, 0), 0, image.dimensions)[..., 0]
    whole = ss.Slide(slide).read_region((0, 0), 0, image.dimensions)
    assert image.codec != "jpeg" and set(numpy.unique(found)) == {0, 1}
    assert numpy.array_equal(found, whole[..., 1] > 180)


def test_messages_name_the_arguments_of_python(slide, tmp_path):
    ss.run([slide], out=tmp_path / "out")
    with pytest.raises(ss.ConfigError, match="name another folder, or use fresh=True") as caught:
        ss.run([slide], out=tmp_path / "out", analysis={"stride": 64})
    assert "--" not in str(caught.value)


def nearest(length, tile, overlap):
    """For each sample the tile whose centre is nearest, the earlier of equals."""
    centres = numpy.array(starts(length, tile, overlap)) * 2 + tile
    return numpy.abs(centres[:, numpy.newaxis] - (2 * numpy.arange(length) + 1)).argmin(axis=0)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "bool"])
def test_labels_are_never_blended(slide, tmp_path, dtype):
    """Each pixel has the label of one tile, and levels have labels of level 0."""
    pixels = pixels_of(slide)
    rows, columns = (starts(length, 64, 24) for length in pixels.shape[:2])
    corners = [(y, x) for y in rows for x in columns]
    # Tiles come in any order: their pixels say which they are.
    numbers = {pixels[y:y + 64, x:x + 64].tobytes(): number for number, (y, x) in enumerate(corners)}
    assert len(numbers) == len(corners)
    label_of = (lambda number: number % 2) if dtype == "bool" else lambda number: number * 2 % 251

    def numbered(tiles):
        labels = numpy.zeros(tiles.shape[:3], dtype)
        for place, tile in enumerate(tiles):
            # Only the black tile of the trial isn't one of the slide's.
            labels[place] = label_of(numbers[tile.tobytes()]) if tile.any() else 0
        return labels

    file = tmp_path / "labels.ome.tif"
    ss.map(slide, numbered, tile=64, overlap=24, batch=1, out=file, labels=True)
    made = ss.Slide(file)
    found = made.read_region((0, 0), 0, made.dimensions)[..., 0]
    width, height = made.dimensions
    tiles = nearest(height, 64, 24)[:, numpy.newaxis] * len(columns) + nearest(width, 64, 24)
    assert numpy.array_equal(found, label_of(tiles))
    assert made.codec != "jpeg"
    assert len(made.levels) > 1
    small = made.read_region((0, 0), 1, made.levels[1].size)[..., 0]
    assert numpy.array_equal(small, found[::2, ::2])


def test_whole_numbers_that_may_be_labels_are_told(slide, tmp_path, caplog):
    def told(dtype, channels=slice(0, 1), **more):
        caplog.clear()
        with caplog.at_level("WARNING", logger="slidestream"):
            ss.map(slide, lambda pixels: (pixels[..., channels] > 99).astype(dtype), tile=512, batch=4, out=tmp_path / "a.ome.tif",
                   **more)
        return f"one channel of {dtype}, which is blended and averaged; give labels=True" in caplog.text

    assert told("int64") and told("int16") and told("uint32")
    assert not told("uint8") and not told("uint16") and not told("bool")
    assert not told("int64", labels=True) and not told("int64", output="image") and not told("int64", slice(0, 3))


def test_few_unsigned_numbers_that_may_be_labels_are_told(slide, tmp_path, caplog):
    def told(dtype, most=1, channels=slice(0, 1), **more):
        caplog.clear()
        with caplog.at_level("WARNING", logger="slidestream"):
            ss.map(slide, lambda pixels: ((pixels[..., channels] > 99) * most).astype(dtype), tile=512, batch=4,
                   out=tmp_path / "a.ome.tif", **more)
        return caplog.text.count(f"one channel of {dtype} up to {most}, which is blended, averaged and stored")

    assert told("uint8") == told("uint16") == told("uint8", 15) == 1
    assert not told("uint8", 16) and not told("bool") and not told("uint8", labels=True)
    assert not told("uint8", output="image") and not told("uint8", channels=slice(0, 3))
    # Others are told at the start.
    assert not told("int64")


def test_labels_are_read_as_they_are(slide, tmp_path):
    """As a slide, an image of labels gives its own levels, and nothing that is made of several of its pixels."""
    file = tmp_path / "labels.ome.tif"
    ss.map(slide, lambda pixels: pixels[..., 0] // 64 * 4, tile=512, batch=4, out=file, labels=True)
    made = ss.Slide(file)
    assert made.labels and not ss.Slide(slide).labels
    whole = made.read_region((0, 0), 0, made.dimensions)[..., 0]
    assert len(numpy.unique(whole)) > 1 and (whole % 4 == 0).all()
    assert numpy.array_equal(made.thumbnail(made.levels[1].size)[..., 0], whole[::2, ::2])
    # Pixels of 1 micrometre are those of level 1.
    assert numpy.array_equal(made.read_region((0, 0), size=made.levels[1].size, mpp=1.0)[..., 0], whole[::2, ::2])
    again = tmp_path / "again.ome.tif"
    ss.map(file, lambda pixels: pixels[..., 0], tile=512, batch=4, out=again, labels=True)
    assert numpy.array_equal(ss.Slide(again).read_region((0, 0), 0, made.dimensions)[..., 0], whole)
    message = r"labels\.ome\.tif: .*holds labels of a network or a mask, and .*; read a level as it is"
    for read in (lambda: made.thumbnail(100), lambda: made.tissue_mask(), lambda: made.read_region((0, 0), size=64, mpp=0.8),
                 lambda: ss.map(file, lambda pixels: pixels[..., 0], tile=64, mpp=0.8, out=tmp_path / "c.ome.tif", labels=True)):
        with pytest.raises(ss.SlideError, match=message):
            read()
    result = ss.run([file], ["identity"], tmp_path / "out", image={"format": "ome-tiff"})
    assert "the operator identity takes them for colours" in result.failed[0].error


def test_labels_that_do_not_fit_fail_the_slide(slide, tmp_path):
    def labels_of(value):
        return lambda pixels: numpy.where(pixels.any(axis=3), value, 0).astype("int64")

    for value in (256, -1):
        with pytest.raises(ss.SlideError, match=r"labels are 0 to 255 \(sample=\"uint16\": 0 to 65535\)"):
            ss.map(slide, labels_of(value), tile=512, batch=4, out=tmp_path / "a.ome.tif", labels=True)
    ss.map(slide, labels_of(300), tile=512, batch=4, out=tmp_path / "b.ome.tif", labels=True, sample="uint16",
           image={"compression": "none"})
    for more, message in (({"output": "image"}, "leave one out"), ({"range": (0, 9)}, "labels have none"),
                          ({"activation": "sigmoid"}, "labels have none")):
        with pytest.raises(ss.ConfigError, match=message):
            ss.map(slide, labels_of(1), tile=512, batch=4, out=tmp_path / "c.ome.tif", labels=True, **more)
    with pytest.raises(ss.SlideError, match="the function gave the label 255 there, which ignore= reserves for pixels"):
        ss.map(slide, labels_of(255), tile=512, batch=4, out=tmp_path / "d.ome.tif", labels=True)
    ss.map(slide, labels_of(255), tile=512, batch=4, out=tmp_path / "d.ome.tif", labels=True, ignore=254)
    for more, message in (({"labels": True, "ignore": 256}, "ignore is 256; expected 1 to 255"),
                          ({"output": "image", "ignore": 9}, "only classes and labels have it")):
        with pytest.raises(ss.ConfigError, match=message):
            ss.map(slide, labels_of(1), tile=512, batch=4, out=tmp_path / "c.ome.tif", **more)
    with pytest.raises(ss.ConfigError, match="one channel of whole numbers"):
        ss.map(slide, lambda pixels: pixels[..., 0] / 2, tile=512, batch=4, out=tmp_path / "c.ome.tif", labels=True)
    tifffile = pytest.importorskip("tifffile")
    assert numpy.array_equal(tifffile.imread(tmp_path / "b.ome.tif"), numpy.where(pixels_of(slide).any(axis=2), 300, 0))


def test_a_slide_without_pixels_of_the_resolution_is_told_in_arguments(slide, tmp_path):
    def refused(file, message):
        with pytest.raises(ss.SlideError) as told:
            ss.map(file, lambda pixels: pixels, tile=64, mpp=0.4, out=tmp_path / "out.ome.tif")
        assert message in str(told.value) and "model." not in str(told.value)

    refused(slide, "the slide's pixels have 0.5 micrometres, and the 0.4 of the function is 20 % less; "
            "leave mpp= out to use them unchanged")
    ss.map(slide, lambda pixels: pixels, tile=64, out=tmp_path / "unchanged.ome.tif", image={"compression": "none"})
    assert numpy.array_equal(pixels_of(tmp_path / "unchanged.ome.tif"), pixels_of(slide))
    unknown = tmp_path / "unknown.svs"
    with open(slide, "rb") as file:
        unknown.write_bytes(file.read().replace(b"MPP = ", b"XPP = "))
    refused(unknown, "the function's tiles are of a resolution, and the slide's isn't known; set input={\"mpp\": ...}")
    unequal = tmp_path / "unequal.ome.tif"
    assert program("convert", slide, unequal).returncode == 0
    text = unequal.read_bytes()
    assert b'PhysicalSizeY="0.5"' in text
    unequal.write_bytes(text.replace(b'PhysicalSizeY="0.5"', b'PhysicalSizeY="0.8"'))
    refused(unequal, "its pixels aren't square, 0.5 x 0.8 micrometres, and mpp= needs one size for both directions; "
                     "set input={\"mpp\": ...} to take them as square")
    ss.map(unequal, lambda pixels: pixels, tile=64, mpp=0.5, out=tmp_path / "square.ome.tif", input={"mpp": 0.25})


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64"])
def test_whole_numbers_are_samples_as_they_are(slide, tmp_path, dtype):
    ss.map(slide, lambda pixels: pixels.astype(dtype), tile=512, batch=4, out=tmp_path / "a.ome.tif",
           image={"compression": "zstd"})
    whole = ss.Slide(slide)
    assert numpy.array_equal(pixels_of(tmp_path / "a.ome.tif"), whole.read_region((0, 0), 0, whole.dimensions))
    with pytest.raises(ss.SlideError, match="samples are 0 to 255"):
        ss.map(slide, lambda pixels: pixels.astype(dtype) - 1, tile=512, batch=4, out=tmp_path / "b.ome.tif")


def samples_of(file):
    """An image's level 0 as tifffile reads it, height x width x channels."""
    samples = pytest.importorskip("tifffile").imread(file)
    return numpy.moveaxis(samples, numpy.argmin(samples.shape), -1)


@pytest.mark.parametrize("dtype, sample, most", [("uint8", "uint16", 255), ("uint16", "uint8", 255), ("uint16", "uint16", 700)])
def test_uint8_and_uint16_are_samples_as_they_are_in_images_of_either(slide, tmp_path, dtype, sample, most):
    def spread(pixels):
        return (pixels.astype("uint32") * most // 255).astype(dtype)

    ss.map(slide, spread, tile=512, batch=4, out=tmp_path / "a.ome.tif", sample=sample, image={"compression": "none"})
    made = samples_of(tmp_path / "a.ome.tif")
    assert made.dtype.name == sample and numpy.array_equal(made, spread(pixels_of(slide)))


def test_uint16_that_does_not_fit_uint8_fails_the_slide_and_a_range_scales_it(slide, tmp_path):
    with pytest.raises(ss.SlideError, match="the function gave uint16 from 0 to 300; samples are 0 to 255 .sample=.uint16."):
        ss.map(slide, lambda pixels: (pixels > 99).astype("uint16") * 300, tile=512, batch=4, out=tmp_path / "a.ome.tif",
               sample="uint8")
    for dtype, sample, range_, factor in (("uint16", "uint8", (0, 65535), 257), ("uint8", "uint16", (0, 255), 1)):
        ss.map(slide, lambda pixels: pixels.astype(dtype) * numpy.array(factor, dtype), tile=512, batch=4,
               out=tmp_path / f"{dtype}.ome.tif", sample=sample, range=range_, image={"compression": "none"})
    assert numpy.array_equal(samples_of(tmp_path / "uint16.ome.tif"), pixels_of(slide))
    assert numpy.array_equal(samples_of(tmp_path / "uint8.ome.tif"), pixels_of(slide).astype("uint16") * 257)
