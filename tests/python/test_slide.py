"""`Slide`: what it says, and its pixels against OpenSlide's."""

import concurrent.futures
import os
import pathlib
import pickle
import random
import subprocess
import sys
import zlib

import numpy
import pytest
from conftest import CODECS, real_slides, synth

import slidestream as ss

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import dicom_file  # noqa: E402
import openslide_files  # noqa: E402
import tagged_tiff  # noqa: E402


def openslide_region(slide, location, level, size):
    return numpy.asarray(slide.read_region(location, level, size).convert("RGB"))


def assert_equal_regions(path, codec, rounds):
    openslide = pytest.importorskip("openslide")
    theirs, ours = openslide.OpenSlide(path), ss.Slide(path)
    assert [level.size for level in ours.levels] == list(theirs.level_dimensions)
    chooser = random.Random(3)
    for number, level in enumerate(ours.levels):
        # Between pixels of a level OpenSlide interpolates: only whole ones can be compared.
        if theirs.level_downsamples[number] != round(theirs.level_downsamples[number]):
            assert numpy.array_equal(ours.read_region((0, 0), number, (300, 200)),
                                     openslide_region(theirs, (0, 0), number, (300, 200)))
            continue
        scale = round(theirs.level_downsamples[number])
        for _ in range(rounds):
            location = (chooser.randrange(-100, level.width) * scale, chooser.randrange(-100, level.height) * scale)
            size = (chooser.randrange(1, 400), chooser.randrange(1, 400))
            region = ours.read_region(location, number, size, fill=0)
            expected = openslide_region(theirs, location, number, size)
            assert region.shape == expected.shape and region.dtype == numpy.uint8
            if codec == "jpeg2000":
                # OpenJPEG's releases round some samples of the irreversible transform to the next number.
                difference = numpy.abs(region.astype(int) - expected)
                assert difference.max() <= 1 and (difference > 0).mean() < 1e-3
            else:
                assert numpy.array_equal(region, expected), (location, number, size)


@pytest.mark.parametrize("codec", CODECS)
def test_regions_are_openslides(slides, codec):
    assert_equal_regions(slides[codec], codec, 12)


@pytest.mark.parametrize("path", real_slides())
def test_regions_of_real_slides_are_openslides(path):
    assert_equal_regions(path, ss.Slide(path).codec, 12)


def test_what_a_slide_says(slide):
    opened = ss.Slide(slide)
    assert opened.dimensions == (1100, 724)
    assert [level.size for level in opened.levels] == [(1100, 724), (275, 181)]
    assert (opened.levels[0].tile_width, opened.levels[0].columns, opened.levels[0].rows) == (128, 9, 6)
    assert opened.levels[1].downsample == 4.0
    assert (opened.codec, opened.format, opened.mpp) == ("jpeg", "aperio", 0.5)
    assert ss.Slide(slide, mpp=0.25).mpp == 0.25
    assert "MPP" in opened.properties
    assert str(opened.path) == slide
    assert "1100 x 724" in repr(opened)
    assert opened.icc_profile() == b""


def test_beyond_the_edge_is_the_fill_value(slide):
    opened = ss.Slide(slide)
    region = opened.read_region((-10, 700), 0, (40, 50), fill=7)
    assert (region[:, :10] == 7).all() and (region[24:] == 7).all()
    assert numpy.array_equal(region[:24, 10:], opened.read_region((0, 700), 0, (30, 24)))
    assert (opened.read_region((5000, 5000), 1, 20) == 255).all()


def test_a_location_between_pixels_is_the_nearest_one(slide):
    opened = ss.Slide(slide)
    level = opened.read_region((0, 0), 1, (275, 181))
    for x in range(0, 40):
        # floor(x / 4 + 1/2)
        assert numpy.array_equal(opened.read_region((x, 0), 1, (10, 10)), level[:10, (x + 2) // 4:(x + 2) // 4 + 10])


def test_bad_tiles_fail_or_are_white(bad_slide):
    with pytest.raises(ss.SlideError, match=r"bad\.svs: level 0 tile \d+"):
        ss.Slide(bad_slide).read_region((0, 0), 0, (1024, 768))
    white = ss.Slide(bad_slide, on_bad_tile="white").read_region((0, 0), 0, (1024, 768))
    blocks = white.reshape(6, 128, 8, 128, 3)
    assert (blocks == 255).all(axis=(1, 3, 4)).sum() >= 4


def test_errors_are_typed_and_name_the_file(slide, tmp_path):
    with pytest.raises(ss.SlideError, match=r"none\.svs: can't be opened"):
        ss.Slide(tmp_path / "none.svs")
    (tmp_path / "text.svs").write_text("no slide")
    with pytest.raises(ss.Error, match=r"text\.svs: "):
        ss.Slide(tmp_path / "text.svs")
    opened = ss.Slide(slide)
    for arguments, message in {
        ((0, 0), 2): "level is 2; the slide has 0 to 1",
        ((0, 0), 0, (0, 5)): r"size is \(0, 5\)",
        ((0, 0), 0, (1 << 40, 1)): "size is",
        ((0, 0), 0, "big"): "size is 'big'",
        ((0, 1 << 50), 0): "location is",
        ((0, 0.5), 0): "location is",
        ((0, 0), 0, 8, "tpu"): "device is 'tpu'",
        ((2**70, 0), 0): "location is",
        ((0, 0), 2**70): "level is 1180591620717411303424; expected",
    }.items():
        with pytest.raises(ss.ConfigError, match=message):
            opened.read_region(*arguments)
    with pytest.raises(ss.ConfigError, match="mpp is -"):
        opened.read_region((0, 0), mpp=-1)
    with pytest.raises(ss.SlideError, match="jpeg420.svs: tiles at 0.1"):
        opened.read_region((0, 0), mpp=0.1)
    with pytest.raises(ss.ConfigError, match="fill is 300"):
        opened.read_region((0, 0), fill=300)
    with pytest.raises(ss.ConfigError, match="on_bad_tile is 'ignore'; expected 'fail' or 'white'"):
        ss.Slide(slide, on_bad_tile="ignore")
    for nothing in ("", "a\0b", b""):
        with pytest.raises(ss.ConfigError, match="is no path"):
            ss.Slide(nothing)
    with pytest.raises(ss.SlideError, match=r"^no-\\xff\.svs: can't be opened"):
        ss.Slide(b"no-\xff.svs")
    with pytest.raises(ss.ConfigError, match="batch is 1180591620717411303424; expected"):
        ss.tiles(slide, batch=2**70)
    assert issubclass(ss.StorageError, ss.SlideError) and issubclass(ss.OutputError, ss.Error)


def test_many_threads_and_pickles_read_the_same(slide):
    opened = pickle.loads(pickle.dumps(ss.Slide(slide, mpp=0.3)))
    assert opened.mpp == 0.3
    whole = opened.read_region((0, 0), 0, (1100, 724))
    places = [(x, y) for y in range(0, 600, 97) for x in range(0, 900, 89)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for (x, y), region in zip(places, pool.map(lambda place: opened.read_region(place, 0, (100, 90)), places)):
            assert numpy.array_equal(region, whole[y:y + 90, x:x + 100])


def test_places_too_far_for_any_slide_are_refused(slide):
    opened = ss.Slide(slide)
    for place in ((-2**63, 0), (0, -2**63), (2**63 - 1, 0), (0, 2**40 + 1)):
        with pytest.raises(ss.ConfigError, match=r"expected at most 2\^40"):
            opened.read_region(place, 0, (10, 10))


def test_a_slide_can_be_closed(slide):
    with ss.Slide(slide) as opened:
        assert opened.read_region((0, 0), 0, 8).shape == (8, 8, 3)
    opened.close()
    assert repr(opened) == f"Slide({str(slide)!r}: closed)" and str(opened.path) == str(slide)
    for use in (lambda: opened.levels, lambda: opened.read_region((0, 0), 0, 8), lambda: opened.icc_profile()):
        with pytest.raises(ss.Error, match="this slide was closed"):
            use()


def test_arguments_that_contradict_or_are_no_place_are_refused(slide):
    opened = ss.Slide(slide)
    for call, words in ((lambda: opened.read_region((0, 0), 1, 5, mpp=1.0), "level is 1 and mpp is 1.0; expected one of them"),
                        (lambda: ss.tiles(slide, level=1, mpp=1.0), "level is 1 and mpp is 1.0; expected one of them"),
                        (lambda: opened.read_region(5, 0, 5), r"location is 5; expected two whole numbers, \(x, y\)"),
                        (lambda: opened.read_region((0.5, 0), 0, 5), "expected two whole numbers"),
                        (lambda: opened.read_region((0, 0), 0, (10**30, 1)), "of less than 64 bits")):
        with pytest.raises(ss.ConfigError, match=words):
            call()


@pytest.mark.parametrize("path", real_slides())
def test_associated_images_are_openslides(path):
    openslide = pytest.importorskip("openslide")
    theirs, ours = openslide.OpenSlide(path).associated_images, ss.Slide(path)
    assert set(theirs) == set(ours.associated)
    for name in ours.associated:
        assert numpy.array_equal(ours.associated_image(name), numpy.asarray(theirs[name].convert("RGB")))


def test_an_image_that_is_not_there_is_named(slide):
    with pytest.raises(ss.ConfigError, match="name is 'nothing'; expected one of 'thumbnail'"):
        ss.Slide(slide).associated_image("nothing")


def area_means(image, height, width):
    """Each pixel is the mean of its part of the whole image, rounded half up."""
    def weights(count, parts):
        ends = numpy.arange(count + 1) * parts
        begins = (numpy.arange(parts) * count)[:, numpy.newaxis]
        overlap = numpy.minimum(ends[1:], begins + count) - numpy.maximum(ends[:-1], begins)
        return numpy.maximum(overlap, 0)

    down, across = weights(image.shape[0], height), weights(image.shape[1], width)
    sums = numpy.einsum("xi,yic->yxc", across, numpy.einsum("yj,jic->yic", down, image.astype("int64")))
    area = image.shape[0] * image.shape[1]
    return (2 * sums + area) // (2 * area)


def test_thumbnails_show_the_whole_slide(slide, tmp_path):
    level = ss.Slide(slide).read_region((0, 0), 1, (275, 181))
    for size, shape in ((100, (66, 100)), ((999, 50), (50, 76)), (7, (5, 7)), ((3, 1), (1, 2)), (1, (1, 1))):
        made = ss.Slide(slide).thumbnail(size)
        assert made.shape == (*shape, 3) and numpy.array_equal(made, area_means(level, *shape)), size
    # 1.7 and 0.2 pixels high.
    long = synth(tmp_path / "long.svs", "--size", "6000x100", "--levels", "1", "--tile", "128")
    whole = ss.Slide(long).read_region((0, 0), 0, (6000, 100))
    for width, height in ((100, 2), (10, 1)):
        assert numpy.array_equal(ss.Slide(long).thumbnail(width), area_means(whole, height, width))


def test_thumbnails_are_area_means(slide):
    opened = ss.Slide(slide)
    whole = opened.read_region((0, 0), 0, opened.dimensions).astype(float)
    # Twice as small, from level 0; each pixel is the mean of its area.
    half = opened.thumbnail((550, 9999))
    assert half.shape == (362, 550, 3)
    assert numpy.array_equal(half, numpy.floor(whole.reshape(362, 2, 550, 2, 3).mean((1, 3)) + 0.5))
    # From level 1 where that is large enough, and never larger than level 0.
    assert numpy.array_equal(opened.thumbnail((275, 999)), opened.read_region((0, 0), 1, (275, 181)))
    assert numpy.array_equal(opened.thumbnail(5000), whole)
    for size in (0, (1, 0), 40000):
        with pytest.raises(ss.ConfigError, match="size is"):
            opened.thumbnail(size)


def test_the_tissue_mask_is_the_operators(slide, tmp_path):
    mask = ss.Slide(slide).tissue_mask()
    assert mask.pixels.dtype == bool and 0 < mask.pixels.mean() < 1
    result = ss.run([slide], ["tissue"], tmp_path / "out")
    assert result.to_pandas()["tissue.share"][0] == pytest.approx(mask.pixels.mean(), abs=1e-9)
    height, width = mask.pixels.shape
    assert mask.scale == pytest.approx((1100 / width, 724 / height), rel=0.05)


def test_doubts_about_tissue_are_told_by_masks_and_windows(slide, tmp_path, caplog):
    """As runs tell them: other rules without a pixel size, no tissue, and suspiciously much."""
    unknown = tmp_path / "unknown.svs"
    unknown.write_bytes(pathlib.Path(slide).read_bytes().replace(b"MPP = ", b"XPP = "))
    plain = {name: tagged_tiff.write(tmp_path / f"{name}.tif", tagged_tiff.Directory(256, 256, [bytes(colour) * 256 * 256]))
             for name, colour in (("empty", (242, 242, 242)), ("full", (190, 90, 150)))}
    by_other_rules = ("the slide doesn't say its pixel size: tissue is found at 1/32 of its sides, without tissue.min_um2 and "
                      "tissue.fill_um2; ")

    def told(path, use):
        caplog.clear()
        with caplog.at_level("WARNING", "slidestream"):
            use()
        lines = [record.getMessage() for record in caplog.records if " tissue" in record.getMessage()]
        assert all(line.startswith(f"{path}: ") for line in lines)
        return [line[len(f"{path}: "):] for line in lines]

    def walk_twice(walk):
        assert walk.count() == sum(batch.count for batch in walk)

    for path, mpp, line in ((plain["empty"], 0.5, "no tissue was found"),
                            (plain["full"], 0.5, "100.0 % of the slide are tissue; look at its mask")):
        assert told(path, lambda: ss.Slide(path, mpp=mpp).tissue_mask()) == [line]
        assert told(path, lambda: walk_twice(ss.tiles([path], 64, tissue=True, slide_mpp=mpp))) == [line]
    assert told(unknown, lambda: ss.Slide(unknown).tissue_mask())[0] == by_other_rules + "open it with Slide(path, mpp=...)"
    assert told(unknown, lambda: walk_twice(ss.tiles(unknown, 64, tissue=True)))[0] == by_other_rules + "set slide_mpp"
    assert by_other_rules not in "".join(told(slide, lambda: ss.Slide(slide).tissue_mask()))
    assert told(unknown, lambda: walk_twice(ss.tiles(unknown, 64))) == []


@pytest.mark.parametrize("codec", ["jpeg420", "jpeg2000", "none"])
def test_dicom_has_the_pixels_of_the_same_tiles_in_a_tiff(slides, tmp_path, codec):
    files = dicom_file.write_series(slides[codec], tmp_path / "series")
    theirs = ss.Slide(slides[codec])
    for named in (*files, tmp_path / "series"):
        ours = ss.Slide(str(named))
        assert [level.size for level in ours.levels] == [level.size for level in theirs.levels]
        for number, level in enumerate(ours.levels):
            assert numpy.array_equal(ours.read_region((0, 0), number, level.size),
                                     theirs.read_region((0, 0), number, level.size))
    for batch, expected in zip(ss.tiles(str(files[0]), size=96, batch=16), ss.tiles(slides[codec], size=96, batch=16)):
        assert numpy.array_equal(batch.pixels, expected.pixels)


@pytest.fixture
def by_openslide(tmp_path, monkeypatch):
    """A slide that OpenSlide reads, and its pixels."""
    places = pathlib.Path(__file__).resolve().parents[2].glob("build/python/lib/*/site-packages/openslide_bin/libopenslide.*")
    library = next(places, None)
    if library is None:
        pytest.skip("OpenSlide 4 isn't there")
    monkeypatch.setenv("SLIDESTREAM_OPENSLIDE", str(library))
    pixels = openslide_files.picture(1200, 900)
    openslide_files.write_czi_pyramid(tmp_path / "slide.czi", pixels, without=((1, 1),))
    pixels[300:600, 300:600] = 255
    return str(tmp_path / "slide.czi"), pixels


def test_regions_tiles_and_runs_of_a_slide_that_openslide_reads(by_openslide, tmp_path):
    path, pixels = by_openslide
    slide = ss.Slide(path)
    assert slide.format == "zeiss" and slide.codec == "openslide"
    assert numpy.array_equal(slide.read_region((0, 0), 0, (1200, 900)), pixels)
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        for x, y, region in threads.map(lambda at: (*at, slide.read_region(at, 0, (100, 70))),
                                        [(x, y) for x in range(0, 1100, 90) for y in range(0, 800, 60)]):
            assert numpy.array_equal(region, pixels[y:y + 70, x:x + 100])
    seen = 0
    for batch in ss.tiles(path, size=96, batch=16):
        for (x, y), tile in zip(batch.coords, batch.pixels):
            assert numpy.array_equal(tile, pixels[y:y + 96, x:x + 96])
            seen += 1
    assert seen == (1200 // 96) * (900 // 96)
    run = ss.run([path], ["spectrum"], tmp_path / "out", analysis={"window": 64, "stride": 64})
    assert not run.failed and run.windows == (1200 // 64) * (900 // 64)


def test_a_forked_child_reads_a_slide_that_openslide_reads(by_openslide):
    path, _ = by_openslide
    code = f"""
import os
import slidestream as ss
slide = ss.Slide({path!r})
before = slide.read_region((0, 0), 0, (1200, 900))
child = os.fork()
if child == 0:
    same = (slide.read_region((0, 0), 0, (1200, 900)) == before).all()
    del slide
    os._exit(0 if same else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert (slide.read_region((0, 0), 0, (1200, 900)) == before).all()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env=os.environ)


@pytest.fixture
def with_profile(tmp_path):
    """A slide of one colour, and what that becomes: its profile is sRGB's with red and green changed over."""
    cms = pytest.importorskip("PIL.ImageCms")
    profile = bytearray(cms.ImageCmsProfile(cms.createProfile("sRGB")).tobytes())
    entries = {bytes(profile[at:at + 4]): at for at in range(132, 132 + 12 * int.from_bytes(profile[128:132], "big"), 12)}
    profile[entries[b"rXYZ"]:entries[b"rXYZ"] + 4] = b"gXYZ"
    profile[entries[b"gXYZ"]:entries[b"gXYZ"] + 4] = b"rXYZ"
    pixels = numpy.full((64, 64, 3), (200, 40, 90), numpy.uint8)
    directory = tagged_tiff.Directory(64, 64, [pixels.tobytes()], tile=64).set(34675, tagged_tiff.UNDEFINED, bytes(profile))
    return tagged_tiff.write(tmp_path / "slide.tif", directory), (200, 40, 90), (40, 200, 90)


def test_colours_that_stay_are_told_once_a_slide(tmp_path, caplog):
    """By a slide, by its regions and by windows: a wrong colour looks like a right one."""
    pixels = numpy.full((64, 64, 3), (200, 40, 90), numpy.uint8)
    path = tagged_tiff.write(tmp_path / "bare.tif", tagged_tiff.Directory(64, 64, [pixels.tobytes()], tile=64))
    windows = ss.tiles([path], size=32, batch=1, colour="srgb")
    slide = ss.Slide(path)

    def twice(walk):
        return lambda: (walk(), walk())

    for use, expected in ((lambda: ss.Slide(path), 0), (lambda: ss.Slide(path, colour="srgb"), 1),
                          (twice(lambda: slide.read_region((0, 0), 0, 8, colour="srgb")), 1), (twice(lambda: list(windows)), 1),
                          (lambda: list(ss.tiles([path], size=32, batch=1)), 0)):
        caplog.clear()
        use()
        told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert told == [f"{path}: its colours aren't converted to sRGB: it has no ICC profile"] * expected


def test_a_region_has_the_colours_that_are_asked_for(with_profile):
    path, coded, converted = with_profile

    def colour_of(slide, **options):
        return slide.read_region((10, 10), 0, (20, 20), **options)

    for own, expected in (("file", coded), ("srgb", converted)):
        slide = ss.Slide(path, colour=own)
        assert slide.is_srgb == (own == "srgb")
        for options in ({}, {"colour": None}, {"colour": own}):
            assert numpy.abs(colour_of(slide, **options).astype(int) - expected).max() <= 1
        assert numpy.abs(colour_of(slide, colour="file").astype(int) - coded).max() == 0
        # Pillow rounds the curve and the primaries.
        assert numpy.abs(colour_of(slide, colour="srgb").astype(int) - converted).max() <= 1
        assert numpy.abs(colour_of(pickle.loads(pickle.dumps(slide)), colour="srgb").astype(int) - converted).max() <= 1
        assert (slide.icc_profile() == ss.Slide(path).icc_profile()) == (own == "file")
    assert slide.icc_profile()[36:40] == b"acsp"
    with pytest.raises(ss.ConfigError, match="colour"):
        colour_of(slide, colour="grey")
    slide.close()
    for name in ("file", "srgb"):
        with pytest.raises(ss.Error, match="this slide was closed"):
            colour_of(slide, colour=name)


def test_planes_are_read_as_colours(tmp_path):
    """Red, green and blue in tiles of their own, with regions and windows across them."""
    pixels = numpy.random.default_rng(7).integers(0, 256, (256, 384, 3), dtype=numpy.uint8)
    stored = [pixels[y:y + 128, x:x + 128, i].tobytes() for i in range(3) for y in (0, 128) for x in (0, 128, 256)]
    directory = tagged_tiff.Directory(384, 256, stored, tile=128).set(284, tagged_tiff.SHORT, 2)
    path = str(tagged_tiff.write(tmp_path / "apart.tif", directory))
    slide = ss.Slide(path)
    assert (slide.codec, slide.dimensions) == ("planes", (384, 256))
    assert numpy.array_equal(slide.read_region((0, 0), 0, (384, 256)), pixels)
    assert numpy.array_equal(slide.read_region((101, 67), 0, (200, 150)), pixels[67:217, 101:301])
    found = 0
    for batch in ss.tiles(path, size=(100, 60), step=(90, 70), batch=4):
        for i in range(batch.count):
            x, y = batch.coords[i]
            assert numpy.array_equal(batch.pixels[i], pixels[y:y + 60, x:x + 100])
            found += 1
    assert found > 6


def test_a_tile_that_takes_more_than_decoding_may_fails(tmp_path):
    stored = zlib.compress(bytes(2048 * 2048 * 3), 1)
    path = tagged_tiff.write(tmp_path / "large.tif", tagged_tiff.Directory(2048, 2048, [stored], tile=2048, compression=8))
    tight = ss.Slide(path, decode_mib=8, on_bad_tile="white")
    for slide in (tight, pickle.loads(pickle.dumps(tight))):
        with pytest.raises(ss.SlideError, match=r"takes \d+ MiB to decode, and decoding may take 8 MiB; raise decode_mib to \d+"):
            slide.read_region((0, 0), 0, (16, 16))
    assert (ss.Slide(path).read_region((0, 0), 0, (16, 16)) == 0).all()
    with pytest.raises(ss.ConfigError, match="decode_mib is 0; expected at least 1"):
        ss.Slide(path, decode_mib=0)
