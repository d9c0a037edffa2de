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
    before = threads()
    for batch in ss.tiles(slide, 32, step=8, threads=3, batch=8):
        assert threads() >= before + 3
        break
    del batch
    gc.collect()
    with iter(ss.tiles(slide, 32, step=8, threads=3, batch=8)) as loop:
        next(loop)
    with pytest.raises(StopIteration):
        next(loop)
    for _ in range(100):
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

    thread = threading.Thread(target=count)
    thread.start()
    # One batch of a thousand windows, so that the loop waits for nearly all of its time.
    list(ss.tiles(slide, 64, step=16, batch=4000, threads=1))
    stop.set()
    thread.join()
    assert turns[0] > 100


def run_script(script, *arguments, **keywords):
    # Python warns of every fork of a process with threads.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **keywords)


@pytest.mark.parametrize("script", [
    # A loop under way, an array, an iterator and a slide when the interpreter ends.
    "kept = [next(loop)]; kept.append(kept[0].pixels[0])",
    "import threading; threading.Thread(target=list, args=(loop,), daemon=True).start()",
    "import atexit; atexit.register(lambda: list(loop))",
    "del ss, sys.modules['slidestream']; pixels = next(loop).pixels; assert pixels.sum() > 0",
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


def interrupt_when_told(script, *arguments):
    """Sends SIGINT once the script says "ready"; what it wrote after that."""
    process = subprocess.Popen([sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


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
