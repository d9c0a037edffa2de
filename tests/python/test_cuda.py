"""Pixels on a GPU: against the host's, with frameworks, and however long they are kept. Without a GPU most is skipped,
but for what a made-up one shows (``MADE_UP_GPU``), whose memory is the host's."""

import ctypes
import gc
import logging
import os
import pickle
import threading
import time

import numpy
import pytest

import slidestream as ss
from conftest import synth
from test_lifetimes import run_script

MADE_UP = "MADE_UP_GPU" in os.environ


def why_no_gpu():
    try:
        ss._core.usable_device(None)
    except ss.CudaError as error:
        return str(error)
    return ""


gpu = pytest.mark.skipif(bool(why_no_gpu()), reason=why_no_gpu())
no_gpu = pytest.mark.skipif(not why_no_gpu(), reason="there is a GPU")


def framework(name):
    """A module that can use the GPU, or the test is skipped."""
    if MADE_UP:
        pytest.skip("the GPU is made up")
    module = pytest.importorskip(name)
    if name == "torch" and not module.cuda.is_available():
        pytest.skip("torch has no CUDA")
    if name == "jax" and not any(device.platform == "gpu" for device in module.devices()):
        pytest.skip("jax has no GPU")
    return module


def batches_of(walk):
    return [(batch.pixels.numpy() if hasattr(batch.pixels, "numpy") else batch.pixels.copy(), batch.coords.tolist(),
             batch.slide.tolist(), batch.count) for batch in walk]


def same(a, b):
    return len(a) == len(b) and all(numpy.array_equal(x[0], y[0]) and x[1:] == y[1:] for x, y in zip(a, b))


@no_gpu
def test_without_a_gpu_the_error_says_why(slide):
    for call in (lambda: ss.tiles(slide, device="cuda"), lambda: ss.Slide(slide).read_region((0, 0), device="cuda:0")):
        with pytest.raises(ss.CudaError, match="no GPU can be used: "):
            call()


def test_devices_that_mean_nothing_are_refused(slide):
    for device in ("gpu", "cuda:", "cuda:x", "cpu:0", 1):
        with pytest.raises(ss.ConfigError, match="expected 'cpu', 'cuda' or 'cuda:0'"):
            ss.tiles(slide, device=device)
        with pytest.raises(ss.ConfigError, match="expected 'cpu', 'cuda' or 'cuda:0'"):
            ss.Slide(slide).read_region((0, 0), device=device)


@gpu
def test_a_gpu_that_is_not_there_is_refused(slide):
    with pytest.raises(ss.CudaError, match="there is no GPU 77; there "):
        ss.tiles(slide, device="cuda:77")


@gpu
@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
@pytest.mark.parametrize("keywords", [
    {"size": 128, "batch": 7},
    {"size": (100, 60), "step": (90, 70), "batch": 9, "edge": "pad", "fill": 3},
    {"size": 64, "batch": 5, "tissue": True, "threads": 2, "memory_mib": 1},
    {"size": 300, "level": 1, "batch": 2, "edge": "pad"},
    {"size": 64, "step": 16, "batch": 50, "copy": False, "shard": (1, 3)},
    {"size": 50, "mpp": 0.73, "batch": 9, "edge": "pad", "fill": 3},
    {"size": (40, 30), "step": (33, 47), "mpp": 5.0, "batch": 4, "tissue": True, "memory_mib": 1},
    {"size": 64, "batch": 5, "shuffle": 9},
    {"size": (50, 70), "batch": 4, "shuffle": 2, "mpp": 0.9, "shard": (1, 2), "memory_mib": 1},
    {"size": 90, "batch": 3, "coords": [[[1000, 600], [0, 0], [700, 5], [3, 500], [3, 500], [500, 700]]] * 5},
])
def test_windows_are_the_host_s(slides, keywords, layout):
    paths = [slides["jpeg420"], slides["jpeg2000"], slides["none"], slides["rgb"], slides["jpeg422"]]
    walk = ss.tiles(paths, device="cuda", layout=layout, **keywords)
    expected = ss.tiles(paths, layout=layout, **keywords)
    assert len(walk) == len(expected)
    assert same(batches_of(walk), batches_of(expected))
    # Once more, and by way of another process's hands.
    assert same(batches_of(pickle.loads(pickle.dumps(walk))), batches_of(expected))


@gpu
def test_regions_are_the_host_s(slides):
    for path in slides.values():
        slide = ss.Slide(path)
        for place, level, size in [((0, 0), 0, 256), ((-30, 500), 0, (1200, 300)), ((40, 60), 1, (300, 200)),
                                   ((5000, 0), 0, 10)]:
            found = slide.read_region(place, level, size, "cuda:0", fill=9)
            expected = slide.read_region(place, level, size, fill=9)
            assert found.shape == expected.shape and found.dtype == expected.dtype and found.nbytes == expected.nbytes
            assert numpy.array_equal(found.numpy(), expected)
        for place, mpp, size in [((0, 0), 1.0, 200), ((-30, 500), 0.7, (600, 300)), ((100, 90), 31.0, (9, 11))]:
            found = slide.read_region(place, size=size, mpp=mpp, device="cuda", fill=9)
            assert numpy.array_equal(found.numpy(), slide.read_region(place, size=size, mpp=mpp, fill=9))


@gpu
def test_real_slides_are_the_host_s():
    from conftest import real_slides

    for path in real_slides():
        walk = {"size": 240, "batch": 32, "edge": "pad"}
        assert same(batches_of(ss.tiles(path, device="cuda", **walk)), batches_of(ss.tiles(path, **walk)))


@gpu
def test_bad_tiles_fail_or_are_white(bad_slide):
    with pytest.raises(ss.SlideError, match="level 0 tile"):
        batches_of(ss.tiles(bad_slide, 128, device="cuda"))
    keywords = {"size": 128, "batch": 5, "on_bad_tile": "white"}
    assert same(batches_of(ss.tiles(bad_slide, device="cuda", **keywords)), batches_of(ss.tiles(bad_slide, **keywords)))
    with pytest.raises(ss.SlideError, match="level 0 tile"):
        ss.Slide(bad_slide).read_region((0, 0), 0, (1024, 768), "cuda")


@gpu
def test_what_the_cpu_decodes_is_said_once(slides, caplog):
    with caplog.at_level(logging.WARNING, "slidestream"):
        batches_of(ss.tiles([slides["none"], slides["none"]], 64, batch=4, device="cuda"))
        assert [record.getMessage().split(": ")[1][:43] for record in caplog.records] == [
            "the GPU's decoder doesn't take its tiles (n"] * 2
        caplog.clear()
        slide = ss.Slide(slides["none"])
        for _ in range(3):
            slide.read_region((0, 0), device="cuda")
        assert len(caplog.records) == 1


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("dimensions", ctypes.c_int32),
                ("type", ctypes.c_uint8 * 4), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]


class Versioned(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", Tensor)]


def inside(capsule, name):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    kind = Versioned if name == b"dltensor_versioned" else Tensor
    return ctypes.cast(get(capsule, name), ctypes.POINTER(kind)).contents


@gpu
def test_dlpack_is_the_array_api_s(slide):
    array = next(iter(ss.tiles(slide, 64, batch=4, layout="nchw", device="cuda:0"))).pixels
    assert array.__dlpack_device__() == (2, 0) and array.device == "cuda:0" and len(array) == 4
    assert array.shape == (4, 3, 64, 64) and repr(array) == "DeviceArray(4 x 3 x 64 x 64, uint8, cuda:0)"
    interface = array.__cuda_array_interface__
    assert interface["shape"] == array.shape and interface["typestr"] == "|u1" and interface["version"] == 3
    old = array.__dlpack__()
    tensor = inside(old, b"dltensor")
    new = array.__dlpack__(max_version=(1, 1), stream=1, dl_device=(2, 0), copy=False)
    versioned = inside(new, b"dltensor_versioned")
    assert tuple(versioned.version) == (1, 0) and versioned.flags == 0
    for found in (tensor, versioned.tensor):
        assert found.data == interface["data"][0] and tuple(found.device) == (2, 0) and found.offset == 0
        assert found.shape[: found.dimensions] == [4, 3, 64, 64]
        assert found.strides[: found.dimensions] == [3 * 64 * 64, 64 * 64, 64, 1]
        assert tuple(found.type) == (1, 8, 1, 0)
    for keywords in ({"stream": 0}, {"stream": -2}, {"copy": True}, {"dl_device": (1, 0)}, {"dl_device": (2, 1)}):
        with pytest.raises(BufferError):
            array.__dlpack__(**keywords)
    for stream in (None, -1, 1, 2):
        assert array.__dlpack__(stream=stream) is not None


@gpu
def test_pixels_outlive_what_they_came_from(slide):
    opened = ss.Slide(slide)
    region = opened.read_region((0, 0), 0, (300, 200), "cuda")
    expected_region = opened.read_region((0, 0), 0, (300, 200))
    del opened
    loop = iter(ss.tiles(slide, 64, batch=4, device="cuda"))
    first = next(loop).pixels
    capsule = next(loop).pixels.__dlpack__()
    expected = batches_of(ss.tiles(slide, 64, batch=4))
    loop.close()
    del loop
    gc.collect()
    # Memory that others might use by now.
    for _ in range(2):
        kept = [batch.pixels for batch in ss.tiles(slide, 64, batch=4, device="cuda")]
    assert numpy.array_equal(region.numpy(), expected_region)
    assert numpy.array_equal(first.numpy(), expected[0][0])
    assert all(numpy.array_equal(array.numpy(), found[0]) for array, found in zip(kept, expected))
    if MADE_UP:
        address = inside(capsule, b"dltensor").data
        assert numpy.array_equal(numpy.frombuffer(ctypes.string_at(address, expected[1][0].nbytes), numpy.uint8),
                                 expected[1][0].ravel())
    lent = {batch.pixels.__cuda_array_interface__["data"][0]
            for batch in ss.tiles([slide] * 4, 32, batch=4, copy=False, device="cuda", threads=1, memory_mib=1)}
    owned = [batch.pixels for batch in ss.tiles([slide] * 4, 32, batch=4, device="cuda", threads=1, memory_mib=1)]
    assert len({array.__cuda_array_interface__["data"][0] for array in owned}) == len(owned) == 748
    assert len(lent) < 748


@gpu
def test_a_loop_that_is_left_ends_its_threads(slide):
    def threads():
        return len(os.listdir("/proc/self/task"))

    batches_of(ss.tiles(slide, 64, device="cuda"))
    before = threads()
    with iter(ss.tiles([slide] * 20, 32, step=8, threads=3, batch=8, device="cuda")) as loop:
        next(loop)
    with pytest.raises(StopIteration):
        next(loop)
    for batch in ss.tiles([slide] * 20, 32, step=8, threads=3, batch=8, device="cuda"):
        break
    del batch
    gc.collect()
    for _ in range(100):
        if threads() <= before + 1:
            break
        time.sleep(0.01)
    assert threads() <= before + 1


@gpu
def test_two_threads_share_a_loop_and_a_slide(slide):
    loop = iter(ss.tiles(slide, 32, batch=5, device="cuda"))
    opened = ss.Slide(slide)
    expected = opened.read_region((3, 5), 0, 200)
    counts, wrong = [], []

    def work():
        counts.append(sum(batch.count for batch in loop))
        for _ in range(10):
            if not numpy.array_equal(opened.read_region((3, 5), 0, 200, "cuda").numpy(), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == 34 * 22 and not wrong


@gpu
@pytest.mark.parametrize("script", [
    "kept = [next(loop)]; region = slide.read_region((0, 0), device='cuda')",
    "import threading; threading.Thread(target=list, args=(loop,), daemon=True).start()",
    "import atexit; atexit.register(lambda: list(loop))",
    "del ss, sys.modules['slidestream']; capsule = next(loop).pixels.__dlpack__(); del loop",
])
def test_the_interpreter_ends_whatever_goes_on(slide, script):
    done = run_script("import sys, slidestream as ss; slide = ss.Slide(sys.argv[1])\n"
                      "loop = iter(ss.tiles([sys.argv[1]] * 3, 32, step=8, batch=16, device='cuda'))\n" + script, slide)
    assert (done.returncode, done.stderr) == (0, "")


@gpu
def test_a_forked_child_is_told_and_harms_nothing(slide):
    done = run_script("""
import os, sys, slidestream as ss
slide = ss.Slide(sys.argv[1])
region = slide.read_region((0, 0), 0, (1100, 724), "cuda")
loop = iter(ss.tiles(sys.argv[1], 64, batch=4, device="cuda"))
batch = next(loop)
child = os.fork()
if child == 0:
    for use in (lambda: slide.read_region((0, 0), device="cuda"), lambda: ss.tiles(sys.argv[1], device="cuda")):
        try:
            use()
            os._exit(1)
        except ss.CudaError as error:
            assert "forked" in str(error)
    try:
        next(loop)
        os._exit(2)
    except ss.Error as error:
        assert "another process" in str(error)
    del loop, batch, region
    assert sum(batch.count for batch in ss.tiles(sys.argv[1], 64, batch=4)) == 187
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert sum(batch.count for batch in loop) == 183
assert (region.numpy() == slide.read_region((0, 0), 0, (1100, 724))).all()
""", slide)
    assert (done.returncode, done.stderr) == (0, "")


@gpu
@pytest.mark.parametrize("name", ["torch", "cupy", "jax"])
def test_frameworks_share_the_memory(slide, name):
    module = framework(name)
    take = module.dlpack.from_dlpack if name == "jax" else module.from_dlpack
    expected = batches_of(ss.tiles(slide, 64, batch=4, layout="nchw"))
    kept = []
    for batch in ss.tiles(slide, 64, batch=4, layout="nchw", device="cuda"):
        address = batch.pixels.__cuda_array_interface__["data"][0]
        tensor = take(batch.pixels)
        pointer = {"torch": lambda: tensor.data_ptr(), "cupy": lambda: tensor.data.ptr,
                   "jax": lambda: tensor.unsafe_buffer_pointer()}[name]()
        assert pointer == address and tuple(tensor.shape) == (4, 3, 64, 64)
        kept.append(tensor)
    del batch, tensor
    gc.collect()
    to_host = {"torch": lambda tensor: tensor.cpu().numpy(), "cupy": lambda tensor: tensor.get(),
               "jax": numpy.asarray}[name]
    assert all(numpy.array_equal(to_host(tensor), found[0]) for tensor, found in zip(kept, expected))


@gpu
def test_memory_is_used_again_behind_the_work_on_a_stream(slide):
    """Work that waits in a stream when its tensor is dropped still finds the tensor's pixels."""
    torch = framework("torch")
    expected = [int(found[0].sum(dtype=numpy.int64)) for found in batches_of(ss.tiles(slide, 128, batch=2))]
    torch.zeros(8, device="cuda").sum().item()
    for stream in (torch.cuda.Stream(), torch.cuda.default_stream()):
        sums = []
        with torch.cuda.stream(stream):
            for batch in ss.tiles(slide, 128, batch=2, device="cuda", threads=1, memory_mib=1, prefetch=0):
                tensor = torch.from_dlpack(batch.pixels)
                torch.cuda._sleep(20_000_000)
                sums.append(tensor.sum(dtype=torch.int64))
                del tensor, batch
        torch.cuda.synchronize()
        assert [int(value) for value in sums] == expected


@gpu
def test_a_dataset_gives_tensors_on_the_gpu(slide):
    framework("torch")
    from slidestream.torch import TileDataset

    items = list(TileDataset(ss.tiles(slide, 64, batch=4, layout="nchw", device="cuda")))
    assert all(pixels.is_cuda for pixels, _, _ in items) and sum(len(pixels) for pixels, _, _ in items) == 187


@gpu
def test_a_large_slide_of_repeated_tiles(tmp_path):
    if MADE_UP:
        pytest.skip("the GPU is made up")
    path = synth(tmp_path / "large.svs", "--size", "20000x16000", "--distinct", "50")
    keywords = {"size": 256, "batch": 100}
    found = ss.tiles(path, device="cuda", **keywords)
    for a, b in zip(found, ss.tiles(path, **keywords)):
        assert numpy.array_equal(a.pixels.numpy(), b.pixels)
