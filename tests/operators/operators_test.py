"""The operators' kernels beside the tools that people use: `KERNEL_TOOL=path/to/kernel_tool operators_test.py [CLASS ...]`.

Images are of real slides where they are there ($SLIDESTREAM_TEST_DATA, else ../shared beside the sources), and made up. Of
real ones it is the middle, or all of them where SLIDESTREAM_TEST_WIDE is set.
"""

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

sys.path.append(str(SOURCE / "tests" / "support"))
from image_libraries import OpenSlide, openslide  # noqa: E402

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


def real_slides():
    """Paths of the real slides, none where OpenSlide isn't there to read them."""
    folder = pathlib.Path(os.environ.get("SLIDESTREAM_TEST_DATA", SOURCE.parent / "shared")) / "data"
    return sorted(folder.glob("*.svs")) if openslide() else []


@functools.lru_cache(maxsize=1)
def level_image(path, level):
    """RGB of a whole level, as OpenSlide decodes it."""
    with OpenSlide(path) as slide:
        return slide.level(level)


def middle(path, side=1024):
    """RGB of the middle of level 0; of all of it where SLIDESTREAM_TEST_WIDE is set."""
    if "SLIDESTREAM_TEST_WIDE" in os.environ:
        return level_image(path, 0)
    with OpenSlide(path) as slide:
        left, top = (max(0, (whole - side) // 2) for whole in slide.sizes[0])
        width, height = (min(side, whole) for whole in slide.sizes[0])
        return numpy.ascontiguousarray(slide.region(0, width, height, left, top)[..., :3])


def level_sizes(path):
    """Width and height of every level."""
    with OpenSlide(path) as slide:
        return slide.sizes


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
    found = [(slide.name, middle(slide)) for slide in real_slides()]
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


def densities(rgb, white=254):
    """0 from the white on, as torchstain's of what isn't brighter than its Io = white + 1."""
    v = numpy.minimum(rgb.reshape(-1, 3).astype(float), white)
    return -numpy.log((v + 1) / (numpy.asarray(white, float) + 1))


def macenko(rgb, white=254):
    """Colours (3 x 2) and maxima after github.com/schaugf/HEnorm_python, from which torchstain's NumPy backend comes."""
    density = densities(rgb, white)
    density = density[~numpy.any(density < 0.15, axis=1)]
    _, vectors = numpy.linalg.eigh(numpy.cov(density.T))
    plane = vectors[:, [2, 1]] * numpy.where(vectors[0, [2, 1]] < 0, -1, 1)
    at = density @ plane
    angles = numpy.arctan2(at[:, 1], at[:, 0])
    ends = [plane @ (numpy.cos(angle), numpy.sin(angle)) for angle in numpy.percentile(angles, (1, 99))]
    colours = numpy.array(sorted(ends, key=lambda colour: -colour[0])).T
    amounts = numpy.linalg.lstsq(colours, density.T, rcond=None)[0]
    return colours, numpy.percentile(amounts, 99, axis=1)


def normalised(rgb, slide, reference, white=254):
    """Normalised, hematoxylin and eosin alone, as torchstain's NumPy backend has them."""
    amounts = numpy.linalg.lstsq(slide[0], densities(rgb, white).T, rcond=None)[0]
    amounts = amounts / (slide[1] / reference[1])[:, None]
    for stains in ([0, 1], [0], [1]):
        made = (white + 1) * numpy.exp(-reference[0][:, stains] @ amounts[stains])
        yield numpy.minimum(made, 255).T.reshape(rgb.shape).astype(numpy.uint8)


class Stain(unittest.TestCase):
    OUTPUTS = ("normalised", "hematoxylin", "eosin")

    def fitted(self, rgb, white=254):
        mask = numpy.ones(rgb.shape[:2], numpy.uint8)
        both = numpy.concatenate([rgb.reshape(-1), mask.reshape(-1)])
        command = [TOOL, str(rgb.shape[1]), str(rgb.shape[0]), "stain-fit", str(white)]
        done = subprocess.run(command, input=both.tobytes(), capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        values = numpy.array(done.stdout.split(), float)
        return values[:6].reshape(2, 3).T, values[6:]

    def applied(self, rgb, output, slide, reference, white):
        numbers = [repr(float(value)) for basis in (slide, reference) for value in (*basis[0].T.reshape(-1), *basis[1], white)]
        return kernel(rgb, "stain-apply", output, *numbers).reshape(rgb.shape)

    def within_one(self, rgb, expected, slide, reference, white=254):
        for output, wanted in zip(self.OUTPUTS, expected):
            made = self.applied(rgb, output, slide, reference, white)
            self.assertLessEqual(numpy.abs(made.astype(int) - wanted).max(), 1, output)

    @on_images(pixels=1000)
    def test_fit(self, rgb):
        rgb = rgb[::2, ::2]
        for white in (254, 240, 200):
            colours, maxima = self.fitted(rgb, white)
            expected_colours, expected_maxima = macenko(rgb, white)
            numpy.testing.assert_allclose(colours, expected_colours, rtol=0, atol=1e-9)
            numpy.testing.assert_allclose(maxima, expected_maxima, rtol=1e-9)

    @on_images(pixels=1000)
    def test_published_algorithm(self, rgb):
        rgb = rgb[::2, ::2]
        for white in (254, 240):
            slide = self.fitted(rgb, white)
            self.within_one(rgb, normalised(rgb, slide, REFERENCE, white), slide, REFERENCE, white)

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


def otsu(values):
    """Otsu's threshold of these values, the lowest of equals, by exact fractions."""
    counts = [int(count) for count in numpy.bincount(values.reshape(-1), minlength=256)]
    best = (fractions.Fraction(0), 0)
    for t in range(255):
        below, above = sum(counts[: t + 1]), sum(counts[t + 1 :])
        if below and above:
            sum_below = sum(v * counts[v] for v in range(t + 1))
            sum_above = sum(v * counts[v] for v in range(t + 1, 256))
            apart = fractions.Fraction(sum_below, below) - fractions.Fraction(sum_above, above)
            variance = below * above * apart * apart
            best = max(best, (variance, t), key=lambda entry: (entry[0], -entry[1]))
    return best[1]


def large_enough(ndimage, mask, least):
    labels, count = ndimage.label(mask, numpy.ones((3, 3)))
    return mask & (ndimage.sum_labels(mask, labels, numpy.arange(count + 1)) >= least)[labels]


def filled(ndimage, mask, most):
    labels, count = ndimage.label(~mask)
    sizes = numpy.bincount(labels.reshape(-1), minlength=count + 1)
    edges = numpy.concatenate([labels[0], labels[-1], labels[:, 0], labels[:, -1]])
    chosen = sizes <= most
    chosen[edges] = False
    chosen[0] = False
    return mask | chosen[labels]


def ink_mask(ndimage, rgb):
    """Straight from the definition."""
    wide = rgb.astype(int)
    red, green, blue = wide[..., 0], wide[..., 1], wide[..., 2]
    most, least = wide.max(axis=2), wide.min(axis=2)
    chroma = most - least
    saturation = (255 * chroma + most // 2) // numpy.maximum(most, 1)
    black = (most < 100) & (chroma <= 30)
    cold = ~black & (green > red) & (blue >= red)
    greenish = 4 * (blue - green) <= chroma
    pure_blue = (blue == most) & (16 * (red - green) <= chroma)
    ball_pen = ~black & ~cold & pure_blue & (most >= 110) & (saturation >= 150)
    colours = [black, cold & greenish & (saturation >= 40), (cold & ~greenish & (saturation >= 110)) | ball_pen,
               ~black & ~cold & (red == most) & (5 * abs(green - blue) <= chroma) & (saturation >= 190)]
    ranges = [ndimage.maximum_filter(c, 3) - ndimage.minimum_filter(c, 3) for c in (red, green, blue)]
    even = numpy.max(ranges, axis=0) <= 24
    ink = numpy.zeros(most.shape, bool)
    for colour in colours:
        ink |= large_enough(ndimage, colour & even, 256)
    near = ndimage.binary_dilation(ink, numpy.ones((9, 9)))
    mixed = (green >= red) | pure_blue | ((most < 150) & (chroma <= 30))
    mixed |= (red == most) & (3 * abs(green - blue) <= chroma) & (saturation >= 40)
    return (near & mixed) | ndimage.binary_erosion(near, numpy.ones((9, 9)), border_value=1)


def tissue_mask(ndimage, rgb, pixel_um2):
    """Straight from the definition."""
    wide = rgb.astype(int)
    most, least = wide.max(axis=2), wide.min(axis=2)
    out = ndimage.binary_dilation(most < 40, numpy.ones((3, 3))) | ink_mask(ndimage, rgb)
    saturation = numpy.where(most <= 3, 0, (255 * (most - least) + most // 2) // numpy.maximum(most, 1))
    saturation[out] = 0
    saturation = ndimage.median_filter(saturation, size=3, mode="reflect")
    counted = saturation[~out]
    glass = int(numpy.bincount(counted, minlength=256)[: otsu(counted) + 1].argmax())
    if glass > 24:
        glass = 0
    tissue = (saturation > max(glass + 8, 10)) & ~out
    edge = tissue & ndimage.binary_dilation(~tissue, numpy.ones((3, 3)))
    strongest = ndimage.maximum_filter(saturation, 3)
    tissue &= ~(edge & (3 * (saturation - glass) < strongest - glass))
    most_hole = 262144 / pixel_um2 if numpy.isfinite(pixel_um2) else numpy.inf
    tissue = filled(ndimage, tissue, most_hole)
    tissue = large_enough(ndimage, tissue, 2048 / pixel_um2)
    return filled(ndimage, tissue, most_hole) & ~out


def weights(length, factor):
    """Of pixels in larger ones: 65,536 of `factor` for a whole one."""
    count = length * 65536 // factor
    ends = numpy.minimum((numpy.arange(length) + 1) * 65536, (numpy.arange(count)[:, None] + 1) * factor)
    begins = numpy.maximum(numpy.arange(length) * 65536, numpy.arange(count)[:, None] * factor)
    return numpy.maximum(ends - begins, 0).astype(float)


def reduced(rgb, factor):
    """Area means with integer weights, half up: 65,536 of `factor` along each axis is a pixel. Exact in float64."""
    if factor == 65536:
        return rgb
    down, across = weights(rgb.shape[0], factor), weights(rgb.shape[1], factor)
    sums = numpy.stack([down @ rgb[..., c].astype(float) @ across.T for c in range(3)], -1).astype(numpy.int64)
    return ((sums + factor * factor // 2) // (factor * factor)).astype(numpy.uint8)


def halved(rgb, halvings):
    """Means of 2^halvings x 2^halvings pixels, as far as there are any, half up."""
    side = 2**halvings
    rows, columns = (numpy.arange(0, length, side) for length in rgb.shape[:2])
    sums = rgb.astype(numpy.int64)
    for _ in range(halvings):
        of_rows = sums[::2].copy()
        of_rows[:len(sums) // 2] += sums[1::2]
        sums = of_rows[:, ::2].copy()
        sums[:, :of_rows.shape[1] // 2] += of_rows[:, 1::2]
    counts = numpy.outer(*(numpy.diff(numpy.append(at, length)) for at, length in zip((rows, columns), rgb.shape)))
    return ((2 * sums + counts[..., None]) // (2 * counts[..., None])).astype(numpy.uint8)


def downsample(whole, size):
    """Pixels of level 0 along one of a level; sizes of levels are rounded up, so 2^k where they fit."""
    for k in range(32):
        if size == tuple(-(-side // 2**k) for side in whole):
            return 2.0**k
    return whole[0] / size[0]


def white_of(rgb, mask):
    """The median of the bright background, without pure white where there is other."""
    background = rgb[~mask]
    background = background[background.min(axis=1) >= 170]
    others = background[background.min(axis=1) < 255]
    if len(others) >= 1000:
        background = others
    if len(background) < 1000:
        return numpy.array([240, 240, 240])
    return numpy.sort(background, axis=0)[(len(background) - 1) // 2]


def stained(ndimage, rgb, mask, scale, pixel):
    """Pixels of tissue in 256 blocks of 64 x 64, without those near dark ones. \p scale: level 0 pixels along a pixel of
    the mask, \p pixel: of rgb."""
    height, width = rgb.shape[:2]
    x, y = ((numpy.arange(n) + 0.5) * p // s for n, s, p in zip((width, height), scale, pixel))
    x, y = (numpy.minimum(at.astype(int), n - 1) for at, n in ((x, mask.shape[1]), (y, mask.shape[0])))
    centres = [(numpy.arange(n) + 0.5) * s / p for n, s, p in zip(mask.shape[::-1], scale, pixel)]
    some, half = [], []
    for top in range(0, height, 64):
        for left in range(0, width, 64):
            columns, rows = ((at >= first) & (at < min(first + 64, n))
                             for at, first, n in ((centres[0], left, width), (centres[1], top, height)))
            inside = mask[rows][:, columns]
            if inside.size == 0:
                middle = [int(min((first + min(first + 64, n)) / 2 * p // s, m - 1)) for first, n, s, m, p in zip(
                    (left, top), (width, height), scale, mask.shape[::-1], pixel)]
                inside = mask[middle[1]:middle[1] + 1, middle[0]:middle[0] + 1]
            if inside.any():
                some.append((top, left))
            if inside.any() and 2 * inside.sum() >= inside.size:
                half.append((top, left))
    blocks = half if len(half) >= 256 else some
    taken = min(len(blocks), 256)
    pixels = []
    for i in range(taken):
        top, left = blocks[(2 * i + 1) * len(blocks) // (2 * taken)]
        inside = mask[y[top:top + 64]][:, x[left:left + 64]].astype(bool)
        black = rgb[top:top + 64, left:left + 64].max(axis=2) < 40
        inside &= ~ndimage.binary_dilation(black, numpy.ones((3, 3)))
        pixels.append(rgb[top:top + 64, left:left + 64][inside])
    return numpy.concatenate(pixels)


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

    def test_made_scenes(self):
        """A frame, a pen, pale tissue and clumps: what is drawn is found, and by the definition."""
        ndimage = needed(self, "scipy.ndimage")
        sys.path.insert(0, str(SOURCE / "bench" / "tissue"))
        import made_scenes

        # Drawing takes most of the time. Edges are mixed by the blur alone then.
        made_scenes.FINE = 1
        if "SLIDESTREAM_TEST_WIDE" not in os.environ:
            made_scenes.WIDTH, made_scenes.HEIGHT, made_scenes.PIXEL = 500, 375, 16.0
        pixel = made_scenes.PIXEL
        for name in ("frame, tinted", "pale beside strong", "blue strokes", "40 clumps"):
            with self.subTest(name):
                rgb, truth = made_scenes.make(name)
                made = kernel(rgb, "tissue", 1, pixel).reshape(rgb.shape[:2]).astype(bool)
                numpy.testing.assert_array_equal(made, tissue_mask(ndimage, rgb, pixel**2))
                self.assertGreaterEqual((made & truth).sum() / (made | truth).sum(), 0.95)

    def test_outlines_are_geojson(self):
        rgb = made_up(200, 300, 7)
        made = kernel(rgb, "tissue", 16, 0.5).reshape(rgb.shape[:2])
        collection = json.load(io.BytesIO(kernel(rgb, "outlines", 16, 0.5).tobytes()))
        area = 0.0
        for feature in collection["features"]:
            geometry = feature["geometry"]
            polygons = [geometry["coordinates"]] if geometry["type"] == "Polygon" else geometry["coordinates"]
            for ring in (ring for polygon in polygons for ring in polygon):
                x, y = numpy.array(ring).T
                self.assertEqual((x[0], y[0]), (x[-1], y[-1]))
                area += (x[:-1] * y[1:] - x[1:] * y[:-1]).sum() / 2
        self.assertGreater(len(collection["features"]), 1)
        self.assertEqual(area, made.sum() * 16.0**2)


class Preparation(unittest.TestCase):
    def prepared(self, slide):
        """Level, its halvings, its factor, its pixel size in pixels of level 0, the slide's micrometres a pixel, white, stains and mask."""
        done = subprocess.run([TOOL, "prepare", slide], capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        line, pixels = done.stdout.split(b"\n", 1)
        level, halvings, factor, width, height, scale_x, scale_y, mpp, *stains = map(float, line.split())
        white, stains = stains[:3], stains[3:]
        mask = numpy.frombuffer(pixels, numpy.uint8).reshape(int(height), int(width))
        return (int(level), int(halvings), int(factor), (scale_x, scale_y), mpp, white,
                numpy.array(stains[:6]).reshape(2, 3).T, stains[6:], mask)

    def test_real_slides(self):
        ndimage = needed(self, "scipy.ndimage")
        slides = real_slides()
        if not slides:
            self.skipTest("no real slides here, or no OpenSlide")
        for slide in slides:
            with self.subTest(slide.name):
                level, halvings, factor, scale, mpp, white, colours, maxima, mask = self.prepared(slide)
                self.assertAlmostEqual(scale[0] * (mpp or 0.25), 8.0, delta=0.2)
                rgb = level_image(slide, level)
                small = reduced(halved(rgb, halvings), factor)
                expected = tissue_mask(ndimage, small, scale[0] * scale[1] * mpp**2 if mpp else numpy.inf)
                numpy.testing.assert_array_equal(mask, expected)
                self.assertGreater(mask.mean(), 0.05)
                numpy.testing.assert_array_equal(white, white_of(small, expected))
                # Pixels of 1 um, from the coarsest level that is not coarser.
                sizes = level_sizes(slide)
                reduction = 1 / mpp if mpp else 4
                by = max((size for size in sizes if reduction / downsample(sizes[0], size) >= 0.98),
                         key=lambda size: downsample(sizes[0], size))
                rest = reduction / downsample(sizes[0], by)
                halvings = max(k for k in range(9) if k == 0 or rest / 2**k >= 0.98)
                fine = halved(level_image(slide, sizes.index(by)), halvings)
                factor = round(65536 * rest / 2**halvings)
                if factor < 65536 * 1.02:
                    factor = 65536
                pixel = tuple(factor / 65536 * whole / side for whole, side in zip(sizes[0], fine.shape[1::-1]))
                ink = ndimage.binary_dilation(ink_mask(ndimage, small), numpy.ones((5, 5)))
                pixels = stained(ndimage, reduced(fine, factor), expected & ~ink, scale, pixel)
                expected_colours, expected_maxima = macenko(pixels[None], white)
                numpy.testing.assert_allclose(colours, expected_colours, rtol=0, atol=1e-9)
                numpy.testing.assert_allclose(maxima, expected_maxima, rtol=1e-9)


if __name__ == "__main__":
    outcome = unittest.main(exit=False).result
    for test, why in outcome.skipped:
        print(f"{'SKIPPED' if outcome.testsRun == len(outcome.skipped) else 'left out'}: {test}: {why}")
    sys.exit(not outcome.wasSuccessful())
