"""Memory that Python holds on to, and loops that end in odd ways."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import numpy
import pytest

import slidestream as ss
from conftest import WIDE, synth


def test_arrays_outlive_what_they_came_from(slide):
    opened = ss.Slide(slide)
    region = opened.read_region((0, 0), 0, (300, 200))
    before = region.copy()
    del opened
    loop = iter(ss.tiles(slide, 128, batch=3))
    first = next(loop)
    window = first.pixels[1]
    pixels = first.pixels.copy()
    del first
    list(loop)
    del loop
    gc.collect()
    # Memory that others might use by now.
    for _ in range(3):
        list(ss.tiles(slide, 128, batch=3))
    assert numpy.array_equal(region, before) and numpy.array_equal(window, pixels[1])


def test_kept_batches_stay_and_lent_ones_change(slide):
    kept = [batch.pixels for batch in ss.tiles(slide, 64, batch=4)]
    fresh = [batch.pixels.copy() for batch in ss.tiles(slide, 64, batch=4)]
    assert len(kept) == 47 and all(numpy.array_equal(a, b) for a, b in zip(kept, fresh))
    lent = [batch.pixels for batch in ss.tiles(slide, 64, batch=4, copy=False)]
    # Readable as long as they are there, in a few blocks of memory.
    assert len({pixels.ctypes.data for pixels in lent}) < 20
    assert sum(int(pixels.sum() > 0) for pixels in lent) > 0


def test_memory_is_the_array_s_own_through_dlpack(slide):
    batch = next(iter(ss.tiles(slide, 64, batch=4)))
    again = numpy.from_dlpack(batch.pixels)
    assert again.ctypes.data == batch.pixels.ctypes.data
    assert batch.pixels.__dlpack_device__() == (1, 0)
    region = ss.Slide(slide).read_region((0, 0), 0, 50)
    region[:] = 3
    assert region.flags.writeable and numpy.from_dlpack(region).max() == 3


def test_torch_shares_the_memory(slide):
    torch = pytest.importorskip("torch")
    batch = next(iter(ss.tiles(slide, 64, batch=4, layout="nchw")))
    tensor = torch.from_dlpack(batch.pixels)
    assert tensor.data_ptr() == batch.pixels.ctypes.data and tuple(tensor.shape) == (4, 3, 64, 64)
    expected = batch.pixels.copy()
    del batch
    gc.collect()
    assert numpy.array_equal(tensor.numpy(), expected)


def test_jax_gets_and_gives_the_same_numbers(slide):
    """JAX wants memory at multiples of 64 bytes to share it; else it copies."""
    jax = pytest.importorskip("jax")
    batch = next(iter(ss.tiles(slide, 64, batch=4)))
    expected = batch.pixels.copy()
    array = jax.numpy.from_dlpack(batch.pixels)
    del batch
    gc.collect()
    list(ss.tiles(slide, 64, batch=4))
    assert array.shape == (4, 64, 64, 3) and numpy.array_equal(numpy.from_dlpack(array), expected)


def test_a_loop_that_is_left_ends_its_threads(slide):
    def threads():
        return len(os.listdir("/proc/self/task"))

    next(iter(ss.tiles(slide, 64)))
    gc.collect()
    # Threads of what went before may be about to end.
    before = threads()
    for _ in range(50):
        time.sleep(0.01)
        before = min(before, threads())
    for batch in ss.tiles(slide, 32, step=8, threads=3, batch=8):
        assert threads() >= before + 3
        break
    del batch
    gc.collect()
    with iter(ss.tiles(slide, 32, step=8, threads=3, batch=8)) as loop:
        next(loop)
    with pytest.raises(StopIteration):
        next(loop)
    for _ in range(6000):
        if threads() <= before:
            break
        time.sleep(0.01)
    assert threads() <= before


def test_two_threads_share_a_loop(slide):
    loop = iter(ss.tiles(slide, 32, batch=5))
    counts = []

    def work():
        counts.append(sum(batch.count for batch in loop))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == 34 * 22


def test_others_run_while_a_loop_waits(slide):
    """A thread of Python gets on with its work while another one waits for tiles."""
    turns = [0]
    stop = threading.Event()

    def count():
        while not stop.is_set():
            turns[0] += 1
            time.sleep(0)

    def turns_in_a_loop():
        before = turns[0]
        # One batch of a thousand windows, so that the loop waits for nearly all of its time.
        list(ss.tiles(slide, 64, step=16, batch=4000, threads=1))
        return turns[0] - before

    thread = threading.Thread(target=count)
    thread.start()
    try:
        # A busy machine may give the thread little of one loop.
        assert any(turns_in_a_loop() > 100 for _ in range(20))
    finally:
        stop.set()
        thread.join()


def run_script(script, *arguments, **keywords):
    # Python warns of every fork of a process with threads.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=250, **keywords)


@pytest.mark.parametrize("script", [
    # A loop under way, an array, an iterator and a slide when the interpreter ends.
    "kept = [next(loop)]; kept.append(kept[0].pixels[0])",
    "import threading; threading.Thread(target=list, args=(loop,), daemon=True).start()",
    "import atexit; atexit.register(lambda: list(loop))",
    "del ss, sys.modules['slidestream']; pixels = next(loop).pixels; assert pixels.sum() > 0",
    # A function of a daemon thread, which is at work in Python.
    """
import tempfile, threading, time
begun = threading.Event()
def function(pixels):
    if pixels.any():
        begun.set()
        time.sleep(0.01)
    return pixels
folder = tempfile.TemporaryDirectory()
keywords = {"tile": 32, "batch": 1, "out": folder.name + "/a.ome.tif"}
threading.Thread(target=ss.map, args=(sys.argv[1], function), kwargs=keywords, daemon=True).start()
begun.wait()
""",
])
def test_the_interpreter_ends_whatever_goes_on(slide, script):
    done = run_script("import sys, slidestream as ss; slide = ss.Slide(sys.argv[1])\n"
                      "loop = iter(ss.tiles(sys.argv[1], 32, step=8, batch=16))\n" + script, slide)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_forked_child_reads_and_has_loops_of_its_own(slide):
    done = run_script("""
import os, sys, slidestream as ss
slide = ss.Slide(sys.argv[1])
whole = slide.read_region((0, 0), 0, (1100, 724)).sum()
loop = iter(ss.tiles(sys.argv[1], 64, batch=4))
batch = next(loop)
child = os.fork()
if child == 0:
    try:
        next(loop)
        os._exit(1)
    except ss.Error as error:
        assert "another process" in str(error)
    del loop, batch
    assert slide.read_region((0, 0), 0, (1100, 724)).sum() == whole
    assert sum(batch.count for batch in ss.tiles(sys.argv[1], 64, batch=4)) == 187
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert sum(batch.count for batch in loop) == 183
""", slide)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_forked_child_ends_however_many_threads_there_were(slide):
    done = run_script("""
import os, sys, slidestream as ss
slide = ss.Slide(sys.argv[1])
whole = slide.read_region((0, 0), 0, (1100, 724))
loop = iter(ss.tiles(sys.argv[1], 64, batch=4, threads=32))
batch = next(loop)
child = os.fork()
if child == 0:
    del loop, batch
    # The C library gives the stacks of lost threads back while these end.
    assert sum(batch.count for batch in ss.tiles(sys.argv[1], 64, batch=4, threads=32)) == 187
    print("text that is written as the child ends", end="")
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
""", slide)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "text that is written as the child ends"


# Of a child: its exit status, or None where it hangs.
ENDING = """
def ending(child):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
"""


@pytest.mark.parametrize("where", ["function", "on_progress"])
def test_a_child_that_was_forked_in_a_run_is_told(slide, tmp_path, where):
    """By what the function or callback is called from, and by runs of its own; the run of the parent goes on."""
    done = run_script("import os, sys, time, slidestream as ss\n" + ENDING + """
children = []
def fork(_):
    if not children:
        children.append(os.fork())
def function(pixels):
    if sys.argv[2] == "on_progress":
        time.sleep(0.02)
    elif pixels.any():
        fork(pixels)
    return pixels
out = sys.argv[3] + "/a.ome.tif"
on_progress = fork if sys.argv[2] == "on_progress" else None
try:
    result = ss.map(sys.argv[1], function, tile=64, batch=4, out=out, on_progress=on_progress)
except ss.Error as error:
    assert children == [0] and "the run goes on in the process that this one was forked from" in str(error), error
    for begin in (lambda: ss.run(sys.argv[1]), lambda: ss.map(sys.argv[1], function, tile=64, out=out)):
        try:
            begin()
            sys.exit(1)
        except ss.Error as error:
            assert "forked from one whose threads were at work" in str(error), error
    # What needs no threads of the parent's works.
    assert ss.Slide(sys.argv[1]).read_region((0, 0), 0, (1100, 724)).any()
    assert sum(batch.count for batch in ss.tiles(sys.argv[1], 64)) == 187
    sys.exit(7)
assert ending(children[0]) == 7 and result.slides[0].done
""", slide, where, str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert ss.Slide(tmp_path / "a.ome.tif").dimensions == (1100, 724)


def test_children_read_whatever_threads_did_at_the_fork(slide):
    done = run_script("import os, sys, threading, time, slidestream as ss\n" + ENDING + """
slide = ss.Slide(sys.argv[1])
whole = slide.read_region((0, 0), 0, (1100, 724)).sum()
stop = []
def read():
    while not stop:
        slide.read_region((0, 0), 0, (1100, 724))
def run():
    while not stop:
        ss.run(sys.argv[1])
threads = [threading.Thread(target=target) for target in (read, read, run)]
for thread in threads:
    thread.start()
codes = []
for i in range(int(sys.argv[2])):
    child = os.fork()
    if child == 0:
        read_whole = slide.read_region((0, 0), 0, (1100, 724)).sum() == whole
        try:
            ss.run(sys.argv[1])
        except ss.Error:
            pass
        os._exit(7 if read_whole and sum(batch.count for batch in ss.tiles(sys.argv[1], 64)) == 187 else 1)
    codes.append(ending(child))
stop.append(True)
for thread in threads:
    thread.join()
assert set(codes) == {7}, codes
""", slide, str(10 if WIDE else 4))
    assert (done.returncode, done.stderr) == (0, "")


def interrupt_when_told(script, *arguments):
    """Sends SIGINT once the script says "ready"; what it wrote after that."""
    # A shell has what it runs in the background ignore it, and so would Python.
    process = subprocess.Popen([sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=250)
    return process.returncode, out, err


@pytest.mark.parametrize("arguments", ["size=(20000, 12000)", "size=(1300, 800), mpp=8.0"])
def test_an_interrupt_ends_a_region(tmp_path, arguments):
    """The last tile is bad: who comes to it hears of that instead."""
    tifffile = pytest.importorskip("tifffile")
    synth(tmp_path / "large.svs", "--size", "20000x12000", "--levels", "1", "--distinct", "20", "--mpp", "0.5")
    with tifffile.TiffFile(tmp_path / "large.svs") as file:
        offset, count = file.pages[0].dataoffsets[-1], file.pages[0].databytecounts[-1]
    with open(tmp_path / "large.svs", "r+b") as file:
        file.seek(offset)
        file.write(bytes(count))
    for _ in range(5):
        ended = interrupt_when_told(f"""
import sys, slidestream as ss
slide = ss.Slide(sys.argv[1])
try:
    print("ready", flush=True)
    slide.read_region((0, 0), {arguments})
except (KeyboardInterrupt, ss.SlideError) as error:
    print(type(error).__name__)
""", tmp_path / "large.svs")
        # The signal may come late, where the machine is busy.
        if ended != (0, "SlideError\n", ""):
            break
    assert ended == (0, "KeyboardInterrupt\n", "")


def test_an_interrupt_ends_a_loop_that_waits(slide):
    code, out, err = interrupt_when_told("""
import sys, slidestream as ss
walk = ss.tiles([sys.argv[1]] * 2000, 32, step=4, batch=500000, threads=1, memory_mib=1 << 14)
try:
    print("ready", flush=True)
    next(iter(walk))
except KeyboardInterrupt:
    print("interrupted")
""", slide)
    assert (code, out, err) == (0, "interrupted\n", "")
