"""`tiles`: windows against regions, and what loops are told."""

import pickle

import numpy
import pytest

import slidestream as ss


# Slide, x and y: what SplitMix64 draws first from the seed 5 in `test_shuffled_windows_are_the_same_windows`.
FIRST_OF_SEED_5 = [(0, 0, 450), (0, 810, 630), (2, 720, 90)]


def windows_of(walk):
    """Pixels, place and slide of every window."""
    return [(batch.pixels[i].copy(), tuple(batch.coords[i]), int(batch.slide[i])) for batch in walk
            for i in range(batch.count)]


@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
@pytest.mark.parametrize("copy", [True, False])
def test_windows_are_regions(slides, layout, copy):
    paths = [slides["jpeg420"], slides["jpeg2000"], slides["none"]]
    opened = [ss.Slide(path) for path in paths]
    walk = ss.tiles(paths, size=(100, 60), step=(90, 70), level=1, batch=7, edge="pad", fill=3, layout=layout, copy=copy)
    found = windows_of(walk)
    places = [(x * 4, y * 4, i) for i in range(3) for y in range(0, 181, 70) for x in range(0, 275, 90)]
    assert [(*coords, slide) for _, coords, slide in found] == places
    assert walk.count() == len(found) and len(walk) == -(-len(found) // 7)
    for pixels, coords, slide in found:
        expected = opened[slide].read_region(coords, 1, (100, 60), fill=3)
        assert numpy.array_equal(pixels, expected if layout == "nhwc" else expected.transpose(2, 0, 1))


def test_batches_say_how_full_they_are(slide):
    batches = list(ss.tiles(slide, size=128, batch=13))
    assert [batch.count for batch in batches] == [13, 13, 13, 1]  # 8 x 5 windows lie inside
    assert all(batch.pixels.shape == (13, 128, 128, 3) for batch in batches)
    assert batches[-1].coords.shape == (1, 2) and batches[-1].coords.dtype == numpy.int64
    assert batches[-1].slide.shape == (1,) and batches[-1].slide.dtype == numpy.int32
    assert not batches[-1].pixels[1:].any()
    assert len(batches[-1]) == 1


def test_shards_share_all_windows(slides):
    paths = [slides["jpeg420"], slides["jpeg422"]]
    everything = [entry[1:] for entry in windows_of(ss.tiles(paths, size=90, batch=4))]
    parts = [[entry[1:] for entry in windows_of(ss.tiles(paths, size=90, batch=4, shard=(i, 3)))] for i in range(3)]
    assert sorted(sum(parts, [])) == sorted(everything)
    assert max(map(len, parts)) - min(map(len, parts)) <= len(paths)
    # A worker's piece of a rank's piece.
    nested = [entry[1:] for i in range(2) for entry in windows_of(ss.tiles(paths, size=90, shard=(1, 3)).split(i, 2))]
    assert sorted(nested) == sorted(parts[1])


def test_resolution_by_pixel_size(slide):
    assert next(iter(ss.tiles(slide, 64, mpp=2.0))).coords[1].tolist() == [256, 0]
    assert next(iter(ss.tiles(slide, 64, mpp=1.0))).coords[1].tolist() == [128, 0]
    assert next(iter(ss.tiles(slide, 64, mpp=1.0, slide_mpp=1.0))).coords[1].tolist() == [64, 0]
    with pytest.raises(ss.SlideError, match=r"tiles at 0\.4\d* micrometres a pixel can't be made"):
        next(iter(ss.tiles(slide, 64, mpp=0.4)))


@pytest.mark.parametrize("mpp", [0.73, 1.0, 5.0])
def test_pixels_of_another_resolution_are_those_that_networks_get(slide, tmp_path, mpp):
    """A network that gives back what it gets makes the image that windows and regions are parts of."""
    ss.map(slide, lambda pixels: pixels, tile=64, batch=4, mpp=mpp, out=tmp_path / "a.ome.tif",
           image={"compression": "zstd"})
    image = ss.Slide(tmp_path / "a.ome.tif")
    whole = image.read_region((0, 0), 0, image.dimensions)
    opened = ss.Slide(slide)
    width, height = image.dimensions
    assert numpy.array_equal(opened.read_region((0, 0), size=(width + 9, height + 9), mpp=mpp, fill=3)[:height, :width], whole)
    assert (opened.read_region((0, 0), size=(width + 9, 1), mpp=mpp, fill=3)[0, width:] == 3).all()
    found = windows_of(ss.tiles(slide, size=(50, 40), step=(33, 47), mpp=mpp, batch=7, layout="nchw"))
    places = [(x, y) for y in range(0, height - 39, 47) for x in range(0, width - 49, 33)]
    assert len(found) == len(places) > 0
    for (pixels, coords, _), (x, y) in zip(found, places):
        assert numpy.array_equal(pixels.transpose(1, 2, 0), whole[y:y + 40, x:x + 50])
        # Where a window begins is where the region does.
        assert numpy.array_equal(opened.read_region(coords, size=(50, 40), mpp=mpp), whole[y:y + 40, x:x + 50])


def test_tissue_is_what_the_operator_finds(slide, tmp_path):
    every = {coords for _, coords, _ in windows_of(ss.tiles(slide, 64, batch=9))}
    tissue = {coords for _, coords, _ in windows_of(ss.tiles(slide, 64, batch=9, tissue=True))}
    assert 0 < len(tissue) < len(every) and tissue < every
    # 0: any tissue.
    some = {coords for _, coords, _ in windows_of(ss.tiles(slide, 64, tissue=True, tissue_share=0.0))}
    assert tissue < some < every


@pytest.mark.parametrize("keywords", [{}, {"level": 1}, {"mpp": 0.9}, {"edge": "drop"}])
def test_listed_windows_are_regions_in_their_order(slides, keywords):
    paths = [slides["jpeg420"], slides["jpeg2000"]]
    coords = [numpy.array([[1000, 700], [0, 0], [513, 77], [0, 0], [7, 300]]), [[40, 80], [1090, 710]]]
    walk = ss.tiles(paths, (60, 50), coords=coords, batch=2, fill=9, **keywords)
    expected = [(x, y, i) for i in range(2) for x, y in coords[i]]
    if "edge" in keywords:
        expected = [(x, y, i) for x, y, i in expected if x + 60 <= 1100 and y + 50 <= 724]
        assert len(expected) == 5
    found = windows_of(walk)
    assert [(*place, i) for _, place, i in found] == expected and walk.count() == len(expected)
    region = {key: value for key, value in keywords.items() if key != "edge"}
    for pixels, place, i in found:
        assert numpy.array_equal(pixels, ss.Slide(paths[i]).read_region(place, size=(60, 50), fill=9, **region))
    assert [entry[1:] for entry in windows_of(pickle.loads(pickle.dumps(walk)))] == [entry[1:] for entry in found]
    assert list(ss.tiles(paths[0], 60, coords=[])) == []
    parts = [windows_of(ss.tiles(paths[0], 60, coords=coords[0], shard=(i, 2))) for i in range(2)]
    assert [entry[1] for part in parts for entry in part] == [tuple(place) for place in coords[0].tolist()]


def test_shuffled_windows_are_the_same_windows(slides):
    paths = [slides["jpeg420"], slides["jpeg422"], slides["none"]]
    in_order = windows_of(ss.tiles(paths, 90, batch=4))
    walk = ss.tiles(paths, 90, batch=4, shuffle=5)
    shuffled = windows_of(walk)
    assert walk.shuffle == 5 and walk.count() == len(shuffled)
    key = lambda entry: (entry[2], *entry[1])  # noqa: E731
    assert [key(entry) for entry in shuffled] != [key(entry) for entry in in_order]
    for one, other in zip(sorted(shuffled, key=key), sorted(in_order, key=key)):
        assert key(one) == key(other) and numpy.array_equal(one[0], other[0])
    assert [key(entry) for entry in windows_of(walk)] == [key(entry) for entry in shuffled]
    assert [key(entry) for entry in windows_of(walk.reshuffled(6))] != [key(entry) for entry in shuffled]
    # The seed decides on every machine alike.
    assert [key(entry) for entry in shuffled[:3]] == FIRST_OF_SEED_5
    ranks = [windows_of(ss.tiles(paths, 90, shuffle=5, shard=(i, 2))) for i in range(2)]
    assert sorted(key(entry) for rank in ranks for entry in rank) == sorted(key(entry) for entry in in_order)
    assert {entry[2] for entry in ranks[0]} == {0, 1, 2}
    # Of a list, too.
    coords = [[[x, 0] for x in range(20)]] * 3
    assert sorted(key(entry) for entry in windows_of(ss.tiles(paths, 30, coords=coords, shuffle=1))) == [
        (i, x, 0) for i in range(3) for x in range(20)]


def test_any_number_of_loops_and_pickles(slide):
    walk = ss.tiles(slide, 200, batch=2)
    first, second = windows_of(walk), windows_of(pickle.loads(pickle.dumps(walk)))
    assert len(first) == 15
    assert all(numpy.array_equal(a[0], b[0]) and a[1:] == b[1:] for a, b in zip(first, second))


def test_bad_arguments_are_refused_at_once(slide):
    for keywords, message in {
        "size=0": "size is 0; expected 1 to 65536",
        "step=(5, 0)": "step is 0",
        "batch=0": "batch is 0",
        "shard=(2, 2)": r"shard is \(2, 2\); expected \(i, n\) with i from 0 to n - 1",
        "shard=3": "shard is 3",
        "layout='hwc'": "layout is 'hwc'; expected 'nhwc' or 'nchw'",
        "edge='mirror'": "edge is 'mirror'; expected 'drop' or 'pad'",
        "fill=-1": "fill is -1",
        "device='tpu'": "device is 'tpu'",
        "mpp=-1": "mpp is -1",
        "coords=[1, 2]": r"coords has the shape \(2,\) and type int64; expected N x 2 integers",
        "coords=numpy.ma.array([[3, 4], [1, 2]], mask=[[0, 0], [1, 0]])": "coords is an array with masked values; leave these out",
        "coords=[numpy.ma.array([3, 4], mask=[0, 1])]": "coords is an array with masked values; leave these out",
        "coords=[[1.5, 2.0]]": "type float64; expected N x 2 integers",
        "coords=[[0, 0], [64]]": "coords isn't N x 2 integers, x and y in pixels of level 0: ",
        "coords=[[1, 2]], step=5": "step has no meaning beside coords",
        "coords=[[1, 2]], tissue=True": "tissue has no meaning beside coords",
        "shuffle=-1": "shuffle is -1; expected a seed",
        "shuffle=True": "shuffle is True; expected a seed",
    }.items():
        with pytest.raises(ss.ConfigError, match=message):
            ss.tiles(slide, **eval(f"dict({keywords})"))
    with pytest.raises(ss.ConfigError, match="coords holds 1 arrays for 2 paths"):
        ss.tiles([slide, slide], coords=[[[0, 0]]])
    with pytest.raises(ss.ConfigError, match=r"coords\[1\] is an array with masked values"):
        ss.tiles([slide, slide], coords=[[[0, 0]], numpy.ma.array([[1, 2]], mask=True)])
    assert len(list(ss.tiles(slide, coords=numpy.ma.array([[1, 2]])))) == 1
    with pytest.raises(ss.SlideError, match=r"position 0 is \(-1, 0\); expected one inside of 1100 x 724"):
        next(iter(ss.tiles(slide, coords=[[-1, 0]])))
    for index, of in ((2, 2), (-1, 2), ("a", 2), (0, None), (0, 2**31 - 1)):
        with pytest.raises(ss.ConfigError):
            ss.tiles(slide, shard=(0, 2)).split(index, of)


def test_a_bad_slide_ends_the_loop_at_its_place(slide, tmp_path, bad_slide):
    loop = iter(ss.tiles([slide, tmp_path / "none.svs"], 128, batch=20))
    assert [next(loop).count for _ in range(2)] == [20, 20]
    with pytest.raises(ss.SlideError, match="none.svs"):
        next(loop)
    with pytest.raises(ss.SlideError, match="bad.svs: level 0 tile"):
        list(ss.tiles(bad_slide, 128))
    assert sum(batch.count for batch in ss.tiles(bad_slide, 128, on_bad_tile="white")) == 48


@pytest.mark.parametrize("keywords", [{}, {"shuffle": 1}, {"mpp": 1.0, "slide_mpp": 0.5, "size": 64}])
def test_tiles_that_became_white_are_told_once_a_slide(slide, bad_slide, caplog, keywords):
    walk = ss.tiles([bad_slide, slide], on_bad_tile="white", **{"size": 128, **keywords})
    for expected in ([f"{bad_slide}: 2 missing and 2 bad tiles, taken as white"], []):
        caplog.clear()
        with caplog.at_level("WARNING", "slidestream"):
            list(walk)
        assert [record.getMessage() for record in caplog.records if "taken as white" in record.getMessage()] == expected
