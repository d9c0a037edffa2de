"""The operators' kernels beside the tools that people use: `KERNEL_TOOL=path/to/kernel_tool operators_test.py [CLASS ...]`.

Images are whole real slides where they are there ($SLIDESTREAM_TEST_DATA, else ../shared beside the sources), and made up.
"""

import ctypes
import fractions
import functools
import io
import json
import os
import pathlib
import subprocess
import sys
import unittest

# The distribution's Python has its packages, whichever comes first on the PATH.
DISTRIBUTION = "/usr/bin/python3"
try:
    import numpy
except ImportError:
    if sys.executable == DISTRIBUTION or not os.path.exists(DISTRIBUTION) or "OPERATORS_PYTHON" in os.environ:
        print("SKIPPED: numpy isn't here")
        sys.exit(0)
    os.execve(DISTRIBUTION, [DISTRIBUTION, "-B", *sys.argv], {**os.environ, "OPERATORS_PYTHON": "1"})

TOOL = os.environ.get("KERNEL_TOOL", "")
SOURCE = pathlib.Path(__file__).resolve().parents[2]

# The authors' reference, as github.com/mitkovetta/staining-normalization has it: colours of hematoxylin and eosin, maxima.
REFERENCE = (numpy.array([[0.5626, 0.2159], [0.7201, 0.8012], [0.4062, 0.5581]]), numpy.array([1.9705, 1.0308]))


def kernel(pixels, *arguments, dtype=numpy.uint8):
    """What a kernel makes of an image, flat."""
    height, width = pixels.shape[:2]
    command = [TOOL, str(width), str(height), *map(str, arguments)]
    done = subprocess.run(command, input=numpy.ascontiguousarray(pixels).tobytes(), capture_output=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode())
    return numpy.frombuffer(done.stdout, dtype=dtype)


def needed(test, name):
    try:
        return __import__(name, fromlist=["_"])
    except ImportError:
        test.skipTest(f"{name} isn't here")


@functools.lru_cache(maxsize=1)
def openslide():
    """OpenSlide's library, or None."""
    for name in ("libopenslide.so.1", "libopenslide.so.0"):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        library.openslide_open.restype = ctypes.c_void_p
        return library
    return None


def real_slides():
    """Paths of the real slides, none where OpenSlide isn't there to read them."""
    folder = pathlib.Path(os.environ.get("SLIDESTREAM_TEST_DATA", SOURCE.parent / "shared")) / "data"
    return sorted(folder.glob("*.svs")) if openslide() else []


def level_image(path, level):
    """RGB of a whole level, as OpenSlide decodes it."""
    slide = ctypes.c_void_p(openslide().openslide_open(str(path).encode()))
    width, height = ctypes.c_int64(), ctypes.c_int64()
    openslide().openslide_get_level_dimensions(slide, level, ctypes.byref(width), ctypes.byref(height))
    # In one piece: asked for in several, OpenSlide shifts levels that aren't exactly half as large as others.
    pixels = numpy.zeros((height.value, width.value), "<u4")
    openslide().openslide_read_region(
        slide, pixels.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(0), ctypes.c_int64(0), level, width, height)
    openslide().openslide_close(slide)
    return numpy.ascontiguousarray(pixels.view(numpy.uint8).reshape(*pixels.shape, 4)[..., 2::-1])


def made_up(height, width, seed):
    """Pink and purple on glass, as no slide is, but with every colour."""
    random = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[:height, :width]
    tissue = (numpy.sin(x / 17) + numpy.cos(y / 13) > 0)[..., None]
    amounts = random.random((height, width, 2)) * (1.6, 1.0) * tissue
    colour = 250 * numpy.exp(-amounts @ numpy.array([[0.6, 0.7, 0.35], [0.25, 0.85, 0.45]]))
    return numpy.clip(colour + random.normal(0, 3, colour.shape), 0, 255).astype(numpy.uint8)


@functools.lru_cache(maxsize=1)
def images():
    """Name and RGB of each."""
    found = [(slide.name, level_image(slide, 0)) for slide in real_slides()]
    if not found:
        print("(no real slides here, or no OpenSlide: made up ones only)")
    return [*found, ("made up", made_up(311, 407, 1)), ("a line", made_up(1, 50, 2)), ("a pixel", made_up(1, 1, 3))]


def on_images(*, pixels=1, beside=None):
    """A test of every image with at least so many pixels, beside a Python module."""

    def decorate(check):
        def test(self):
            modules = [needed(self, beside)] if beside else []
            for name, rgb in images():
                if rgb.size >= 3 * pixels:
                    with self.subTest(name):
                        check(self, rgb, *modules)

        return test

    return decorate


def luminance(rgb):
    return (rgb.astype(numpy.uint32) @ numpy.array([77, 150, 29], numpy.uint32) // 256).astype(numpy.uint8)


class Sobel(unittest.TestCase):
    @on_images(beside="skimage.filters")
    def test_scikit_image(self, rgb, filters):
        grey = luminance(rgb)
        exact = filters.sobel(grey.astype(numpy.float64))
        made = kernel(grey, "sobel").reshape(grey.shape)
        self.assertLessEqual(numpy.abs(made - exact).max(), 0.5 + 1e-9)
        made = kernel(grey, "sobel-float", dtype=numpy.float32).reshape(grey.shape)
        numpy.testing.assert_allclose(made, exact, rtol=1e-7, atol=0)


class Gaussian(unittest.TestCase):
    def weights(self, radius, sigma):
        taps = numpy.exp(-0.5 * (numpy.arange(-radius, radius + 1) / sigma) ** 2)
        weights = numpy.rint(65536 * taps / taps.sum()).astype(numpy.int64)
        weights[radius] += 65536 - weights.sum()
        return weights

    @on_images(beside="scipy.ndimage")
    def test_scipy(self, rgb, ndimage):
        for radius, sigma, pixels, name in ((3, 1.4, rgb, "rgb"), (8, 3.0, rgb[..., 1], "luminance")):
            weights = self.weights(radius, sigma)
            sums = pixels.astype(numpy.int64)
            for axis in (0, 1):
                # SciPy sums in float64: exact below 2^53. Its "mirror" is numpy's "reflect".
                sums = ndimage.correlate1d(sums, weights, axis=axis, mode="mirror")
            made = kernel(pixels, f"gaussian-{name}", radius, sigma).reshape(pixels.shape)
            numpy.testing.assert_array_equal(made, ((sums + 2**31) >> 32).astype(numpy.uint8))


def densities(rgb):
    return -numpy.log((rgb.reshape(-1, 3).astype(float) + 1) / 255)


def macenko(rgb):
    """Colours (3 x 2) and maxima after github.com/schaugf/HEnorm_python, from which torchstain's NumPy backend comes."""
    density = densities(rgb)
    density = density[~numpy.any(density < 0.15, axis=1)]
    _, vectors = numpy.linalg.eigh(numpy.cov(density.T))
    plane = vectors[:, [2, 1]] * numpy.where(vectors[0, [2, 1]] < 0, -1, 1)
    at = density @ plane
    angles = numpy.arctan2(at[:, 1], at[:, 0])
    ends = [plane @ (numpy.cos(angle), numpy.sin(angle)) for angle in numpy.percentile(angles, (1, 99))]
    colours = numpy.array(sorted(ends, key=lambda colour: -colour[0])).T
    amounts = numpy.linalg.lstsq(colours, density.T, rcond=None)[0]
    return colours, numpy.percentile(amounts, 99, axis=1)


def normalised(rgb, slide, reference):
    """Normalised, hematoxylin and eosin alone, as torchstain's NumPy backend has them."""
    amounts = numpy.linalg.lstsq(slide[0], densities(rgb).T, rcond=None)[0]
    amounts = amounts / (slide[1] / reference[1])[:, None]
    for stains in ([0, 1], [0], [1]):
        made = 255 * numpy.exp(-reference[0][:, stains] @ amounts[stains])
        yield numpy.minimum(made, 255).T.reshape(rgb.shape).astype(numpy.uint8)


class Stain(unittest.TestCase):
    OUTPUTS = ("normalised", "hematoxylin", "eosin")

    def fitted(self, rgb):
        mask = numpy.ones(rgb.shape[:2], numpy.uint8)
        both = numpy.concatenate([rgb.reshape(-1), mask.reshape(-1)])
        command = [TOOL, str(rgb.shape[1]), str(rgb.shape[0]), "stain-fit"]
        done = subprocess.run(command, input=both.tobytes(), capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        values = numpy.array(done.stdout.split(), float)
        return values[:6].reshape(2, 3).T, values[6:]

    def applied(self, rgb, output, slide, reference):
        numbers = [repr(float(value)) for basis in (slide, reference) for value in (*basis[0].T.reshape(-1), *basis[1])]
        return kernel(rgb, "stain-apply", output, *numbers).reshape(rgb.shape)

    def within_one(self, rgb, expected, slide, reference):
        for output, wanted in zip(self.OUTPUTS, expected):
            made = self.applied(rgb, output, slide, reference)
            self.assertLessEqual(numpy.abs(made.astype(int) - wanted).max(), 1, output)

    @on_images(pixels=1000)
    def test_fit(self, rgb):
        rgb = rgb[::2, ::2]
        colours, maxima = self.fitted(rgb)
        expected_colours, expected_maxima = macenko(rgb)
        numpy.testing.assert_allclose(colours, expected_colours, rtol=0, atol=1e-9)
        numpy.testing.assert_allclose(maxima, expected_maxima, rtol=1e-9)

    @on_images(pixels=1000)
    def test_published_algorithm(self, rgb):
        rgb = rgb[::2, ::2]
        slide = self.fitted(rgb)
        self.within_one(rgb, normalised(rgb, slide, REFERENCE), slide, REFERENCE)

    @on_images(pixels=1000, beside="torchstain.numpy.normalizers.macenko")
    def test_torchstain(self, rgb, module):
        rgb = rgb[::2, ::2]
        normalizer = module.NumpyMacenkoNormalizer()
        reference = normalizer.HERef, normalizer.maxCRef
        compute = getattr(normalizer, "_NumpyMacenkoNormalizer__compute_matrices")
        colours, _, maxima = compute(rgb, 255, 1, 0.15)
        self.within_one(rgb, normalizer.normalize(rgb, Io=255), (colours, maxima), reference)
        # Its maxima are of all pixels, ours of those with density enough: the same where all have.
        numpy.testing.assert_allclose(self.fitted(rgb)[0], colours, rtol=0, atol=1e-6)
        dense = rgb.reshape(-1, 3)[~numpy.any(densities(rgb) < 0.15, axis=1)][None]
        colours, _, maxima = compute(dense, 255, 1, 0.15)
        numpy.testing.assert_allclose(self.fitted(dense)[1], maxima, rtol=1e-6)


def tissue_mask(ndimage, rgb, pixel_um2):
    """Straight from the definition."""
    wide = rgb.astype(int)
    most, least = wide.max(axis=2), wide.min(axis=2)
    saturation = numpy.where(most == 0, 0, (255 * (most - least) + most // 2) // numpy.maximum(most, 1))
    saturation = ndimage.median_filter(saturation, size=3, mode="reflect")
    counts = [int(count) for count in numpy.bincount(saturation.reshape(-1), minlength=256)]
    best = (fractions.Fraction(0), 0)
    for t in range(255):
        below, above = sum(counts[: t + 1]), sum(counts[t + 1 :])
        if below and above:
            sum_below = sum(v * counts[v] for v in range(t + 1))
            sum_above = sum(v * counts[v] for v in range(t + 1, 256))
            apart = fractions.Fraction(sum_below, below) - fractions.Fraction(sum_above, above)
            variance = below * above * apart * apart
            best = max(best, (variance, t), key=lambda entry: (entry[0], -entry[1]))
    tissue = ndimage.binary_fill_holes(saturation > max(best[1], 15))
    labels, count = ndimage.label(tissue, numpy.ones((3, 3)))
    areas = ndimage.sum_labels(tissue, labels, numpy.arange(count + 1)) * pixel_um2
    return tissue & (areas >= 16384)[labels]


class Tissue(unittest.TestCase):
    def smaller(self, rgb, by):
        height, width = (side // by * by for side in rgb.shape[:2])
        blocks = rgb[:height, :width].reshape(height // by, by, width // by, by, 3)
        return blocks.mean(axis=(1, 3)).round().astype(numpy.uint8)

    @on_images(beside="scipy.ndimage")
    def test_scipy(self, rgb, ndimage):
        for by in (4, 8):
            if min(rgb.shape[:2]) < by:
                continue
            small = self.smaller(rgb, by)
            made = kernel(small, "tissue", by, 0.5).reshape(small.shape[:2])
            expected = tissue_mask(ndimage, small, (by * 0.5) ** 2)
            numpy.testing.assert_array_equal(made, expected)
            if by == 8 and small.size > 30000:
                self.assertGreater(made.mean(), 0.05)

    def test_outlines_are_geojson(self):
        rgb = made_up(200, 300, 7)
        made = kernel(rgb, "tissue", 16, 0.5).reshape(rgb.shape[:2])
        collection = json.load(io.BytesIO(kernel(rgb, "outlines", 16, 0.5).tobytes()))
        area = 0.0
        for feature in collection["features"]:
            for ring in feature["geometry"]["coordinates"]:
                x, y = numpy.array(ring).T
                self.assertEqual((x[0], y[0]), (x[-1], y[-1]))
                area += (x[:-1] * y[1:] - x[1:] * y[:-1]).sum() / 2
        self.assertGreater(len(collection["features"]), 1)
        self.assertEqual(area, made.sum() * 16.0**2)


class Preparation(unittest.TestCase):
    def prepared(self, slide):
        """Level, its pixel size in pixels of level 0, the slide's micrometres a pixel, stains and mask."""
        done = subprocess.run([TOOL, "prepare", slide], capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        line, pixels = done.stdout.split(b"\n", 1)
        level, width, height, scale_x, scale_y, mpp, *stains = map(float, line.split())
        mask = numpy.frombuffer(pixels, numpy.uint8).reshape(int(height), int(width))
        return int(level), (scale_x, scale_y), mpp, numpy.array(stains[:6]).reshape(2, 3).T, stains[6:], mask

    def test_real_slides(self):
        ndimage = needed(self, "scipy.ndimage")
        slides = real_slides()
        if not slides:
            self.skipTest("no real slides here, or no OpenSlide")
        for slide in slides:
            with self.subTest(slide.name):
                level, scale, mpp, colours, maxima, mask = self.prepared(slide)
                rgb = level_image(slide, level)
                expected = tissue_mask(ndimage, rgb, scale[0] * scale[1] * (mpp or 0.25) ** 2)
                numpy.testing.assert_array_equal(mask, expected)
                self.assertGreater(mask.mean(), 0.05)
                expected_colours, expected_maxima = macenko(rgb[expected][None])
                numpy.testing.assert_allclose(colours, expected_colours, rtol=0, atol=1e-9)
                numpy.testing.assert_allclose(maxima, expected_maxima, rtol=1e-9)


if __name__ == "__main__":
    outcome = unittest.main(exit=False).result
    for test, why in outcome.skipped:
        print(f"{'SKIPPED' if outcome.testsRun == len(outcome.skipped) else 'left out'}: {test}: {why}")
    sys.exit(not outcome.wasSuccessful())
