"""The published architectures: A passes strips between processes, B takes them straight to the GPU, B+ preloads the next.

Each function takes (slide, decode, rows, workers, device) and returns (seconds, (windows, mean, standard deviation)) over
the slide's first `rows` rows. What happens once a process (imports, the GPU's context, plans of transforms) is done
before the clock starts.
"""

import multiprocessing
import queue
import threading
import time

STRIP_ROWS = {"A": 256, "B": 256, "B+": 1024}
# Strips under way between two stages of A and B+.
QUEUE_DEPTH = 2
WARM_UP_STRIPS = 3


def to_tensor(strip):
    """A strip as a tensor where it is: on the host from NumPy, on the GPU from CuPy."""
    import torch

    return torch.from_numpy(strip) if type(strip).__module__.startswith("numpy") else torch.as_tensor(strip)


def synchronize(device):
    import torch

    if device != "cpu":
        torch.cuda.synchronize()


def warm_up(reader, rows, strip_rows, device):
    """The same work on the first strips, so that plans and memory are there."""
    from spectrum import Smoother, Statistics
    from strips import plan

    smoother, statistics = Smoother(rows, device), Statistics(device)
    for top, height in plan(rows, strip_rows)[:WARM_UP_STRIPS]:
        statistics.push(smoother.push(to_tensor(reader.read(top, height))))
    synchronize(device)


def run_b(slide, decode, rows, workers, device):
    from spectrum import Smoother, Statistics
    from strips import Reader, plan

    warm_up(Reader(slide, decode, workers), rows, STRIP_ROWS["B"], device)
    start = time.perf_counter()
    reader = Reader(slide, decode, workers)
    smoother, statistics = Smoother(rows, device), Statistics(device)
    for top, height in plan(rows, STRIP_ROWS["B"]):
        statistics.push(smoother.push(to_tensor(reader.read(top, height))))
    result = statistics.result()
    return time.perf_counter() - start, result


class Preloader:
    """Reads strips ahead in a thread, through pinned buffers to the GPU on a stream of its own."""

    def __init__(self, reader, strips, device):
        import torch

        self.reader, self.strips, self.device = reader, strips, device
        self.ready = queue.Queue(QUEUE_DEPTH)
        self.pinned = []
        self.stream = None
        if device != "cpu":
            self.stream = torch.cuda.Stream()
            if reader.decode == "cpu":
                shape = (max(height for _, height in strips), reader.width, 3)
                self.pinned = [[torch.empty(shape, dtype=torch.uint8, pin_memory=True), None] for _ in range(2)]
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        try:
            for number, (top, height) in enumerate(self.strips):
                self.ready.put(self.upload(number, to_tensor(self.reader.read(top, height))))
            self.ready.put(None)
        except BaseException as error:
            self.ready.put(error)

    def upload(self, number, strip):
        """(strip on the GPU, event that it is there)"""
        import torch

        if self.stream is None:
            return strip, None
        with torch.cuda.stream(self.stream):
            if self.pinned:
                slot = self.pinned[number % len(self.pinned)]
                if slot[1] is not None:
                    slot[1].synchronize()
                strip = slot[0][:strip.shape[0]].copy_(strip).to(self.device, non_blocking=True)
            event = torch.cuda.Event()
            event.record()
            if self.pinned:
                slot[1] = event
        return strip, event

    def __iter__(self):
        import torch

        while (item := self.ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            strip, event = item
            if event is not None:
                torch.cuda.current_stream().wait_event(event)
                strip.record_stream(torch.cuda.current_stream())
            yield strip


def run_b_plus(slide, decode, rows, workers, device):
    from spectrum import Smoother, Statistics
    from strips import Reader, plan

    strips = plan(rows, STRIP_ROWS["B+"])
    warm_up(Reader(slide, decode, workers), rows, STRIP_ROWS["B+"], device)
    preloader = Preloader(Reader(slide, decode, workers), strips, device)
    start = time.perf_counter()
    preloader.thread.start()
    smoother, statistics = Smoother(rows, device), Statistics(device)
    for strip in preloader:
        statistics.push(smoother.push(strip))
    result = statistics.result()
    return time.perf_counter() - start, result


def on_host(strip):
    return strip.get() if hasattr(strip, "get") else strip


def read_process(slide, decode, rows, workers, strips, ready, out):
    """A's first process: decoded strips, pickled."""
    try:
        from strips import Reader

        reader = Reader(slide, decode, workers)
        for top, height in strips[:WARM_UP_STRIPS]:
            on_host(reader.read(top, height))
        ready.wait()
        for top, height in strips:
            out.put(on_host(reader.read(top, height)))
    except BaseException as error:
        out.put(error)


def smooth_process(rows, strips, width, device, ready, strips_in, out):
    """A's second process: strips to the GPU, smoothed rows back, pickled."""
    try:
        import numpy
        import torch
        from spectrum import Smoother

        smoother = Smoother(rows, device)
        for _, height in strips[:WARM_UP_STRIPS]:
            smoother.push(torch.zeros((height, width, 3), dtype=torch.uint8)).cpu()
        ready.wait()
        smoother = Smoother(rows, device)
        for _ in strips:
            strip = strips_in.get()
            if isinstance(strip, BaseException):
                raise strip
            out.put(smoother.push(torch.from_numpy(numpy.ascontiguousarray(strip))).cpu().numpy())
    except BaseException as error:
        out.put(error)


def receive(source, processes):
    """The next item; an error when it can't come any more."""
    while True:
        try:
            item = source.get(timeout=1)
        except queue.Empty:
            for process in processes:
                if process.exitcode not in (None, 0):
                    raise RuntimeError(f"{process.name} ended with status {process.exitcode}") from None
            continue
        if isinstance(item, BaseException):
            raise item
        return item


def run_a(slide, decode, rows, workers, device):
    import torch
    from spectrum import Statistics
    from strips import Reader, plan

    strips = plan(rows, STRIP_ROWS["A"])
    width = Reader(slide, "cpu", workers).width
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(3)
    decoded, smoothed = context.Queue(QUEUE_DEPTH), context.Queue(QUEUE_DEPTH)
    processes = [
        context.Process(target=read_process, name="A's reader", daemon=True,
                        args=(slide, decode, rows, workers, strips, ready, decoded)),
        context.Process(target=smooth_process, name="A's smoother", daemon=True,
                        args=(rows, strips, width, device, ready, decoded, smoothed))]
    for process in processes:
        process.start()
    try:
        statistics = Statistics(device)
        for _, height in strips[:WARM_UP_STRIPS]:
            statistics.push(torch.zeros((height, width), dtype=torch.float32).to(device))
        synchronize(device)
        ready.wait(timeout=120)
        start = time.perf_counter()
        statistics = Statistics(device)
        for _ in strips:
            statistics.push(torch.from_numpy(receive(smoothed, processes)).to(device))
        result = statistics.result()
        return time.perf_counter() - start, result
    finally:
        for process in processes:
            process.terminate()


ARCHITECTURES = {"A": run_a, "B": run_b, "B+": run_b_plus}
