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


def read_process(slide, decode, workers, strips, go, out):
    """A's other process: None when it is warm, and from then on, when told to go, decoded strips, pickled."""
    try:
        from strips import Reader

        reader = Reader(slide, decode, workers)
        for top, height in strips[:WARM_UP_STRIPS]:
            on_host(reader.read(top, height))
        out.put(None)
        go.wait()
        for top, height in strips:
            out.put(on_host(reader.read(top, height)))
    except BaseException as error:
        out.put(error)


def receive(source, process):
    """The next item; an error when it can't come any more."""
    while True:
        try:
            item = source.get(timeout=1)
        except queue.Empty:
            if process.exitcode not in (None, 0):
                raise RuntimeError(f"the reading process ended with status {process.exitcode}") from None
            continue
        if isinstance(item, BaseException):
            raise item
        return item


def run_a(slide, decode, rows, workers, device):
    import torch
    from spectrum import Smoother, Statistics
    from strips import Reader, plan

    strips = plan(rows, STRIP_ROWS["A"])
    warm_up(Reader(slide, "cpu", workers), rows, STRIP_ROWS["A"], device)
    context = multiprocessing.get_context("spawn")
    go, decoded = context.Event(), context.Queue(QUEUE_DEPTH)
    process = context.Process(target=read_process, args=(slide, decode, workers, strips, go, decoded), daemon=True)
    process.start()
    try:
        receive(decoded, process)
        start = time.perf_counter()
        go.set()
        smoother, statistics = Smoother(rows, device), Statistics(device)
        for _ in strips:
            # To the GPU, smoothed, back, and there again for the windows.
            smoothed = smoother.push(torch.from_numpy(receive(decoded, process))).cpu()
            statistics.push(smoothed.to(device))
        result = statistics.result()
        return time.perf_counter() - start, result
    finally:
        process.terminate()


ARCHITECTURES = {"A": run_a, "B": run_b, "B+": run_b_plus}
