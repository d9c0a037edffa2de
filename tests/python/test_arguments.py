"""What means nothing is refused by one typed error, whose message is one line."""

import os
import shutil

import numpy
import pytest
from conftest import WIDE, synth
from test_lifetimes import run_script

import slidestream as ss


class Lines:
    def __repr__(self):
        return "one line\nand another"


NOTHING = [None, True, 1.5, -1, 0, "x", "", b"x", float("nan"), float("inf"), 1e308, 10**400, 2**63, "\0", "\udc80", "a\nb",
           [], (), (1,), (1, 2, 3), {}, {1: 2}, object(), numpy.array(3), numpy.array([1, 2]), Lines()]
# What some of them begin takes its time.
FEW = NOTHING if WIDE else NOTHING[::3]


@pytest.fixture(scope="module")
def slide(tmp_path_factory):
    """A smaller one than elsewhere: that arguments are taken is all that matters."""
    return synth(tmp_path_factory.mktemp("arguments") / "small.svs", "--size", "300x260", "--tile", "128", "--levels", "2",
                 "--mpp", "0.5")


def refused(call, value, *also):
    """Whether the value was refused; what else is raised than the package's errors is a failure of the test."""
    try:
        call(value)
    except (ss.Error, *also) as error:
        assert "\n" not in str(error) and len(str(error)) < 500, str(error)
        return True
    return False


@pytest.mark.parametrize("name", ["path", "mpp", "on_bad_tile"])
def test_a_slide_is_opened_or_refused(slide, name):
    assert sum(refused(lambda value: ss.Slide(**{"path": slide, name: value}), value) for value in NOTHING) > 15


@pytest.mark.parametrize("name", ["location", "level", "size", "device", "mpp", "fill"])
def test_a_region_is_read_or_refused(slide, name):
    opened = ss.Slide(slide)
    read = lambda value: opened.read_region(**{"location": (0, 0), "size": 8, name: value})  # noqa: E731
    assert sum(refused(read, value) for value in NOTHING) > 15


@pytest.mark.parametrize("name", ["paths", "size", "step", "mpp", "level", "tissue", "tissue_share", "batch", "layout", "shard",
                                  "copy", "edge", "fill", "on_bad_tile", "slide_mpp", "threads", "prefetch", "memory_mib",
                                  "device"])
def test_windows_are_walked_or_refused(slide, name):
    def walk(value):
        with iter(ss.tiles(**{"paths": slide, "batch": 1, name: value})) as loop:
            next(loop, None)

    assert sum(refused(walk, value) for value in NOTHING) > 15


@pytest.mark.parametrize("name", ["slides", "operators", "out", "config", "on_progress", "progress", "fresh", "retry_failed",
                                  "max_failures", "shard", "shard_by", "metrics", "trace", "analysis", "nothing"])
def test_a_run_begins_or_is_refused(slide, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    run = lambda value: ss.run(**{"slides": slide, "out": "out", "fresh": True, name: value})  # noqa: E731
    assert sum(refused(run, value) for value in FEW) > len(FEW) // 2


@pytest.mark.parametrize("name", ["slides", "function", "tile", "overlap", "batch", "out", "output", "range", "sample", "mpp",
                                  "tissue", "layout", "framework", "name", "on_progress", "progress", "shard_by", "stitch"])
def test_a_map_begins_or_is_refused(slide, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    call = lambda value: ss.map(**{"slides": slide, "function": lambda pixels: pixels, "tile": 128,  # noqa: E731
                                   "batch": 4, "out": "a.ome.tif", name: value})
    assert sum(refused(call, value) for value in FEW) > len(FEW) // 2


def test_what_is_no_argument_is_called_that(slide, tmp_path):
    def same(pixels):
        return pixels

    def vectors(pixels):
        return pixels.reshape(len(pixels), -1)[:, :4].astype("float32")

    image = tmp_path / "q.ome.tif"
    nothing = " is no argument of {}, and no section of the configuration; did you mean {}?"
    for call, message in ((lambda: ss.map(slide, same, tile=128, level=1, out=image),
                           "'level'" + nothing.format("map", "input={'level': ...}")),
                          (lambda: ss.map(slide, same, tile=128, overlpa=8, out=image), "'overlpa'" + nothing.format("map", "overlap")),
                          (lambda: ss.run(slide, analisis={}), "'analisis'" + nothing.format("run", "analysis")),
                          (lambda: ss.run(slide, config={"analisis": {}}),
                           "'analisis' is no section of the configuration; did you mean analysis?"),
                          (lambda: ss.map(slide, vectors, tile=128, out=image),
                           f"{image}: features go to a file that ends in .h5, or to a folder (out)"),
                          (lambda: ss.tiles(slide, tissue_share=0.9), "tissue_share is 0.9, and tissue is False; set tissue=True")):
        with pytest.raises(ss.ConfigError) as caught:
            call()
        assert str(caught.value) == message
    assert not image.exists()
    assert ss.tiles(slide, 64, tissue=True, tissue_share=0.9).count() < ss.tiles(slide, 64).count()


def test_resolutions_are_finite_and_positive(slide, tmp_path):
    for mpp in (float("nan"), float("inf"), 0, -0.5, 1e300, "0.5", 0.00099, 1000.1):
        for call in (lambda: ss.Slide(slide, mpp=mpp), lambda: ss.tiles(slide, mpp=mpp), lambda: ss.tiles(slide, slide_mpp=mpp),
                     lambda: ss.map(slide, abs, tile=64, out=tmp_path / "a.ome.tif", mpp=mpp)):
            with pytest.raises(ss.ConfigError, match="mpp is .*; expected "):
                call()
    with pytest.raises(ss.ConfigError, match="^mpp is 1000.1; expected 0.001 to 1000 micrometres a pixel$"):
        ss.Slide(slide, mpp=1000.1)
    # As input.mpp.
    for mpp in (0.001, 1000):
        assert ss.Slide(slide, mpp=mpp).mpp == mpp


def test_more_memory_than_there_is_is_refused_before_it_is_used(slide, tmp_path):
    # The largest region there can be takes 192 GiB.
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 192 << 30:
        with pytest.raises(ss.ConfigError, match=r"a region takes 196608 MiB of memory, and \d+ MiB can be had"):
            ss.Slide(slide).read_region((0, 0), 0, 1 << 18)
    with pytest.raises(ss.ConfigError, match="a batch takes"):
        next(iter(ss.tiles(slide, 16384, edge="pad", batch=1 << 12)))
    with pytest.raises(ss.ConfigError, match="a batch takes"):
        ss.map(slide, lambda pixels: pixels, tile=8192, batch=4096, out=tmp_path / "a.ome.tif")


def test_threads_that_cannot_be_had_are_an_error(slide):
    """Of a user with as many processes as the limit allows; the limit doesn't count for root."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    without = run_script("""
import os, resource, threading
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
os.setuid(54321)
try:
    threading.Thread(target=int).start()
except RuntimeError:
    print("refused")
""")
    if without.stdout != "refused\n" or not os.access("/dev/shm", os.W_OK):
        pytest.skip("no other user, no limit of processes or no /dev/shm in this container")
    seen_by_all = shutil.copy(slide, f"/dev/shm/slidestream-{os.getpid()}.svs")
    done = run_script("""
import os, resource, sys, slidestream as ss
slide = ss.Slide(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
os.setuid(54321)
for call in (lambda: slide.read_region((0, 0), 0, 600), lambda: list(ss.tiles(sys.argv[1])), lambda: ss.run(sys.argv[1])):
    try:
        call()
        print("begun")
    except ss.Error as error:
        print(error)
""", seen_by_all)
    os.unlink(seen_by_all)
    assert done.stderr == "" and done.returncode == 0
    lines = done.stdout.splitlines()
    # The region's threads are oneTBB's, which may do without.
    assert len(lines) == 3 and all(line == "a thread can't be started: Resource temporarily unavailable" for line in lines[1:])


def test_names_of_any_bytes(slide, tmp_path):
    folder = os.fsencode(tmp_path)
    odd = folder + b"/odd \xff\n.svs"
    shutil.copy(slide, odd)
    for result in (ss.run(odd), ss.run([odd], out=folder + b"/out \xff"),
                   ss.map([odd], lambda pixels: pixels, tile=512, out=folder + b"/map \xff", name="same")):
        assert [(os.fsencode(found.path), found.done) for found in result] == [(odd, True)]
        assert "\n" not in repr(result.slides[0])
    ss.map(odd, lambda pixels: pixels, tile=512, out=folder + b"/\xfe.ome.tif")
    assert ss.Slide(folder + b"/\xfe.ome.tif").dimensions == (300, 260)
    with pytest.raises(ss.SlideError, match=r"/none \\xff\?\.svs: can't be opened"):
        ss.Slide(folder + b"/none \xff\n.svs")


def test_names_that_no_file_can_have_are_named(slide, tmp_path):
    bad = "a\ud800"
    for name, call in (("path", lambda: ss.Slide(bad)), ("paths", lambda: ss.tiles([slide, bad])),
                       ("slides", lambda: ss.run([bad], out=tmp_path / "o")), ("out", lambda: ss.run(slide, out=bad)),
                       ("config", lambda: ss.run(slide, out=tmp_path / "o", config=bad)),
                       ("metrics", lambda: ss.run(slide, out=tmp_path / "o", metrics=bad + ".prom")),
                       ("out", lambda: ss.map(slide, lambda tiles: tiles, tile=64, out=bad))):
        with pytest.raises(ss.ConfigError, match=rf"^{name}: 'a\\ud800(\.prom)?' is no path$"):
            call()
    # Bytes that aren't UTF-8 are a file's name.
    with pytest.raises(ss.SlideError, match="can't be opened"):
        ss.Slide("a\udc80")
    assert not (tmp_path / "o").exists()


def test_a_list_within_itself_is_no_setting(slide, tmp_path):
    itself = []
    itself.append(itself)
    deep = []
    for _ in range(5000):
        deep = [deep]
    for value in (itself, deep, {"a": itself}):
        with pytest.raises(ss.ConfigError, match="nested more than 16 deep$|is no value of the configuration$"):
            ss.run(slide, out=tmp_path / "o", input={"slides": value})


def test_messages_hide_no_characters():
    from slidestream._arguments import one_line

    assert one_line("a\u200b\u200d\ufe0f\U000e0041\U000e0100\u3164\u034f\u202eb") == "a????????b"
    assert one_line("\u00e5\u4e2d\U0001f600 ") == "\u00e5\u4e2d\U0001f600 "
