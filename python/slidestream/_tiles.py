"""Windows of slides in batches."""

from __future__ import annotations

import atexit
import operator
import os
import threading
import weakref
from dataclasses import dataclass
from typing import Any, Dict, Iterable, Iterator, List, Literal, Optional, Tuple, Union

import numpy
import numpy.typing

from slidestream import _core
from slidestream._arguments import (
    OnBadTile,
    Pair,
    Path,
    channel_number,
    choice,
    counted,
    device_number,
    flag,
    log_notes,
    micrometres,
    number,
    one_of_level_and_mpp,
    pair,
    path_text,
    paths_of,
    shard_of,
    shown,
    whole,
)
from slidestream._core import DeviceArray

# Threads of loops that still run end before the interpreter does.
_running: "weakref.WeakSet[TileIterator]" = weakref.WeakSet()


@atexit.register
def _leave() -> None:
    for iterator in list(_running):
        iterator.close()
    _core.leave(threading.active_count() > 1)


@dataclass(frozen=True, eq=False)
class Batch:
    """Some windows, in the order of the slides and of the rows of each."""

    pixels: Any
    """uint8: batch x height x width x 3 (``layout="nhwc"``) or batch x 3 x height x width (``"nchw"``). Always of full
    length: behind ``count`` windows there are zeros. A NumPy array, or on a GPU a ``DeviceArray``."""
    coords: numpy.typing.NDArray[numpy.int64]
    """int64: count x 2: x and y of each window's top left corner in pixels of level 0."""
    slide: numpy.typing.NDArray[numpy.int32]
    """int32: count: which of the paths each window is of."""
    count: int
    """Windows in this batch: all that a batch holds, but in the last one."""

    def __len__(self) -> int:
        return self.count


class TileIterator(Iterator[Batch]):
    """One pass over the windows. Its threads decode ahead; they end with the last batch, with ``close``, at the end of
    a ``with`` block, or when nobody holds the iterator any more. Batches that were handed out stay as they are."""

    def __init__(self, options: _core.TileOptions, copy: bool, device: Optional[int], memory_mib: int) -> None:
        self._core: Union[_core.TileIterator, _core.DeviceTileIterator, None]
        self._options = options
        if device is None:
            self._core = _core.TileIterator(options, copy)
        else:
            self._core = _core.DeviceTileIterator(options, device, memory_mib, copy)
        _running.add(self)

    def __iter__(self) -> TileIterator:
        return self

    def __next__(self) -> Batch:
        core = self._core
        try:
            found = None if core is None else core.next()
        finally:
            log_notes(self._options.take_warnings())
        if isinstance(core, _core.DeviceTileIterator):
            log_notes(core.take_notes())
        if found is None:
            self.close()
            raise StopIteration
        return Batch(*found)

    def __enter__(self) -> TileIterator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the pass: the threads finish the tiles that they are at."""
        core, self._core = self._core, None
        if core is not None:
            core.close()


class Tiles:
    """What ``tiles`` gives: can be walked any number of times, and pickled for another process."""

    def __init__(self, paths: List[str], keywords: Dict[str, Any], copy: bool, device: str) -> None:
        self.paths: List[str] = paths
        """The slides; ``Batch.slide`` counts them."""
        self._keywords = keywords
        self._copy = copy
        self._device = device
        # On a GPU 0 is what is usual there.
        self._options = _core.TileOptions(slides=paths, **{**keywords, "memory_mib": keywords["memory_mib"] or 1024})
        self._windows: Optional[int] = None

    def __repr__(self) -> str:
        width, height = self._keywords["size"]
        return f"Tiles({counted(len(self.paths), 'slide')}, windows of {width} x {height}, {self._keywords['batch']} a batch, {self._device})"

    def __reduce__(self) -> Tuple[object, ...]:
        return Tiles, (self.paths, self._keywords, self._copy, self._device)

    def __iter__(self) -> TileIterator:
        device = device_number(self._device)
        return TileIterator(self._options, self._copy, device, self._keywords["memory_mib"])

    def count(self) -> int:
        """Windows of all slides together. Opens each slide for it, once, and with ``tissue`` reads its small level.
        Raises SlideError for one that can't be opened."""
        if self._windows is None:
            try:
                self._windows = self._options.count_windows()
            finally:
                log_notes(self._options.take_warnings())
        return self._windows

    def __len__(self) -> int:
        """Batches: see ``count``."""
        batch: int = self._keywords["batch"]
        return -(-self.count() // batch)

    @property
    def shuffle(self) -> Optional[int]:
        """The seed of the order; None: the windows' own order."""
        return self._keywords["shuffle"]

    def reshuffled(self, seed: int) -> Tiles:
        """The same windows in the order of another seed. Raises ConfigError."""
        return Tiles(self.paths, {**self._keywords, "shuffle": _seed(seed)}, self._copy, self._device)

    def split(self, index: int, of: int) -> Tiles:
        """The same walk over piece ``index`` (0, 1, ...) of ``of`` pieces of what this one walks over in one process,
        for instance a data loader's worker. Raises ConfigError."""
        shard, shards = self._keywords["shard"], self._keywords["shards"]
        if not 0 <= whole("index", index) < whole("of", of) or shards * of >= 2**31:
            raise _core.ConfigError(f"index is {shown(index)} and of is {shown(of)}; expected index from 0 to of - 1, and less "
                                    "than 2^31 pieces in all")
        return Tiles(self.paths, {**self._keywords, "shard": shard * of + index, "shards": shards * of}, self._copy, self._device)


def _seed(value: object) -> int:
    """A seed. Raises ConfigError."""
    try:
        if not isinstance(value, (bool, numpy.bool_)):
            seed = operator.index(value)  # type: ignore[arg-type]
            if 0 <= seed < 2**64:
                return seed
    except TypeError:
        pass
    raise _core.ConfigError(f"shuffle is {shown(value)}; expected a seed, 0 to 2^64 - 1")


def _corners(coords: Any, slides: int, one_path: bool) -> List[numpy.typing.NDArray[numpy.int64]]:
    """Positions as one array per slide. Raises ConfigError."""

    def checked(values: Any, what: str) -> numpy.typing.NDArray[numpy.int64]:
        rows = values if isinstance(values, (list, tuple)) else ()
        if numpy.ma.is_masked(values) or any(numpy.ma.is_masked(row) for row in rows):
            raise _core.ConfigError(f"{what} is an array with masked values; leave these out: numpy.ma.compress_rows({what})")
        try:
            array = numpy.asarray(values)
        except (TypeError, ValueError) as error:
            raise _core.ConfigError(f"{what} isn't N x 2 integers, x and y in pixels of level 0: {error}") from None
        if array.size == 0 and array.ndim <= 2:
            array = numpy.empty((0, 2), numpy.int64)
        if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
            raise _core.ConfigError(
                f"{what} has the shape {array.shape} and type {array.dtype}; expected N x 2 integers, x and y in pixels of level 0"
            )
        if array.dtype == numpy.uint64 and array.size and array.max() >= 2**63:
            raise _core.ConfigError(f"{what} holds a position beyond 2^63")
        return numpy.ascontiguousarray(array, numpy.int64)

    if one_path:
        return [checked(coords, "coords")]
    try:
        each = list(coords)
    except TypeError:
        each = []
    if len(each) != slides:
        raise _core.ConfigError(f"coords holds {len(each)} arrays for {slides} paths; expected one N x 2 array per path")
    return [checked(values, f"coords[{i}]") for i, values in enumerate(each)]


def tiles(
    paths: Union[Path, Iterable[Path]],
    size: Pair = 256,
    step: Optional[Pair] = None,
    *,
    mpp: Optional[float] = None,
    level: int = 0,
    coords: Any = None,
    shuffle: Optional[int] = None,
    tissue: bool = False,
    tissue_share: Optional[float] = None,
    batch: int = 64,
    layout: Literal["nhwc", "nchw"] = "nhwc",
    shard: Tuple[int, int] = (0, 1),
    copy: bool = True,
    edge: Optional[Literal["drop", "pad"]] = None,
    fill: int = 255,
    on_bad_tile: OnBadTile = "fail",
    slide_mpp: Optional[float] = None,
    channel: Optional[int] = None,
    colour: Literal["file", "srgb"] = "file",
    threads: int = 0,
    prefetch: int = 2,
    memory_mib: Optional[int] = None,
    device: Any = "cpu",
) -> Tiles:
    """Walks slides in batches of windows, which threads decode ahead while the caller works on the last one.

    The order is fixed: slides as given, windows row by row; what comes out depends on the arguments alone, never on
    threads. Each tile of a slide is decoded once, straight into the windows that it belongs to; where that would take
    more than ``memory_mib``, once for each row of windows.

    Args:
        paths: One slide, or several.
        size: Width and height of a window in pixels of the level (or of ``mpp``), or one number for both.
        step: Pixels from one window to the next, in both directions; default: ``size``. Window (i, j) begins at pixel
            (i step, j step) of the level.
        mpp: Micrometres a pixel, in place of ``level``: windows are cut from an image of such pixels, which are made
            from the coarsest level that is finer: each is the mean of its area, rounded half up (docs/stitching.md).
            Within 2 % of a level's they are the level's own. A slide whose pixels are larger raises ``SlideError``.
        level: The level that windows are cut from.
        coords: In place of the grid: x and y of the windows' top left corners in pixels of level 0, integers, N x 2 (as
            ``Batch.coords`` and the files of TRIDENT and CLAM have them); for several paths a list of such arrays, one per
            path. Windows come in this order. A position inside of the slide; on another level, or with ``mpp``, it is the
            nearest pixel there, and ``Batch.coords`` repeats what was given. Not beside ``step`` and ``tissue``.
        shuffle: A seed: windows come in a random order, which the seed and the other arguments decide. Slides are drawn in
            a random order, and the windows of each 16 of them are mixed. Take another seed for each epoch. Tiles are
            decoded about once per window then.
        tissue: Only windows that are tissue, which is found as the operator ``tissue`` does with its default settings: on
            a small level, by a threshold of the saturation (``tissue.method = "auto"``, docs/operators.md). A slide without
            a pixel size, without tissue or with more than 95 % gets a warning in the logger ``slidestream``.
        tissue_share: With ``tissue``: a window is tissue where at least this share of it is. Default: 0.5.
        batch: Windows of a batch.
        layout: ``"nhwc"``: batch x height x width x 3; ``"nchw"``: batch x 3 x height x width.
        shard: (i, n): of each slide's windows the i-th of n pieces of nearly equal length, for rank i of n. Of shuffled
            windows every n-th, from the i-th on: give all ranks the same seed.
        copy: True: a batch owns its memory, for as long as anything refers to it. False: it is lent for the body of the
            loop, and holds other windows afterwards: memory stays bounded whatever is kept.
        edge: ``"drop"``: windows that reach beyond the right or lower edge are left out; ``"pad"``: they are there, and
            ``fill`` is the value of what lies beyond. Default: ``"drop"``, and with ``coords`` ``"pad"``.
        fill: See ``edge``; 0 to 255.
        on_bad_tile: ``"fail"``: a tile that can't be decoded raises ``SlideError``; ``"white"``: it is white.
            At the end of a slide the logger ``slidestream`` has a line that counts those, and the ones that the file lacks.
        slide_mpp: Micrometres per pixel of level 0, in place of what the slides say.
        channel: Of slides that have several channels the one to read, from 0, as grey.
        colour: ``"file"``: colours as they are coded; ``"srgb"``: converted from each slide's ICC profile to sRGB. A slide
            without a usable one stays as it is, and the logger ``slidestream`` has a warning (``Slide.is_srgb``).
        threads: That decode; 0: as many as processors that the process may use. On a GPU: that read, and wait for it,
            each a group of windows at a time; 0: at most 12.
        prefetch: Batches that are made ahead.
        memory_mib: Host memory for batches that are being made, in MiB; a row of windows is always made whole. Default:
            1024. On a GPU: its memory, for those and for decoding them; default: 16,384, or a quarter of what is free.
        device: Where pixels shall lie: ``"cpu"``; ``"cuda"``, the GPU of the thread that begins the loop; ``"cuda:1"``.
            There tiles are decoded on the GPU, to the same pixels; what it can't decode, the CPU does, which is said
            once a slide through ``logging``.

    Returns:
        Something to loop over that gives a ``Batch`` at a time. Its length is the number of batches.

    Raises:
        ConfigError: An argument means nothing. At once.
        SlideError: A slide or a tile can't be read: in the loop, at the latest when its windows are due.
        CudaError: There is no such GPU: at once. Or it fails: in the loop.
    """
    on_gpu = device_number(device) is not None
    if memory_mib is not None and whole("memory_mib", memory_mib) < 1:
        raise _core.ConfigError(f"memory_mib is {memory_mib}; expected 1 to 16777216")
    listed_paths = [path_text(path, "paths") for path in paths_of(paths)]
    i, n = shard_of(shard)
    one_of_level_and_mpp(whole("level", level), micrometres("mpp", mpp))
    listed_coords = [] if coords is None else _corners(coords, len(listed_paths), isinstance(paths, (str, bytes, os.PathLike)))
    if coords is not None and step is not None:
        raise _core.ConfigError("step has no meaning beside coords: the list says where windows begin")
    if tissue_share is not None and not flag("tissue", tissue):
        raise _core.ConfigError(f"tissue_share is {shown(tissue_share)}, and tissue is False; set tissue=True")
    if edge is None:
        edge = "drop" if coords is None else "pad"
    keywords = {
        "size": pair("size", size),
        "step": pair("step", size if step is None else step),
        "level": whole("level", level),
        "mpp": micrometres("mpp", mpp),
        "pad": choice("edge", edge, ("drop", "pad")) == "pad",
        "tissue": flag("tissue", tissue),
        "tissue_share": 0.5 if tissue_share is None else number("tissue_share", tissue_share),
        "shard": i,
        "shards": n,
        "batch": whole("batch", batch),
        "planar": choice("layout", layout, ("nhwc", "nchw")) == "nchw",
        "fill": whole("fill", fill),
        "threads": whole("threads", threads),
        "prefetch": whole("prefetch", prefetch),
        "memory_mib": (0 if on_gpu else 1024) if memory_mib is None else whole("memory_mib", memory_mib),
        "white": choice("on_bad_tile", on_bad_tile, ("fail", "white")) == "white",
        "slide_mpp": micrometres("slide_mpp", slide_mpp) or 0.0,
        "channel": channel_number(channel),
        "to_srgb": choice("colour", colour, ("file", "srgb")) == "srgb",
        "corners": listed_coords,
        "shuffle": None if shuffle is None else _seed(shuffle),
    }
    return Tiles(listed_paths, keywords, flag("copy", copy), str(device))
