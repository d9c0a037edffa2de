"""Any function over overlapping tiles of slides, put together again."""

from __future__ import annotations

import importlib
import os
import re
import sys
import traceback
from typing import Any, Callable, Dict, Iterable, Literal, Mapping, Optional, Tuple, Union

import numpy
import numpy.typing

from slidestream import _core
from slidestream._arguments import (
    Path,
    choice,
    counted,
    flag,
    low_and_high,
    micrometres,
    number,
    one_line,
    path_text,
    paths_of,
    plain_text,
    shown,
    whole,
)
from slidestream._core import ConfigError, Progress, SlideError
from slidestream._progress import logger, outcome_of, wait_for
from slidestream._run import RunResult, check_progress, start

_FILES = (".ome.tif", ".ome.tiff", ".tif", ".tiff", ".ome.zarr", ".zarr", ".dzi", ".dicom", ".h5")
# What nobody calls a folder.
_OTHER_FILES = (".png", ".jpg", ".jpeg", ".jp2", ".svs", ".ndpi", ".mrxs", ".npy", ".npz", ".hdf5", ".csv", ".bmp", ".webp", ".gif")
_FRAMEWORKS = ("numpy", "torch", "jax", "cupy")
# Scores of classes, by the type of their numbers: what the largest stands for.
_WHITE = {"uint8": 255.0, "uint16": 65535.0}
# The largest sample.
_MOST = {"uint8": 255, "uint16": 65535}
# An image of uint8 or uint16 whose largest sample is below is nearly black: its samples are more likely labels.
_LEAST_WHITE = 16


class MapResult(RunResult):
    """What ``map`` did with each slide."""

    def __repr__(self) -> str:
        return f"MapResult({counted(len(self.slides), 'slide')}, {len(self.failed)} failed)"

    def __init__(self, outcome: _core.Outcome, errors: Dict[str, Exception]) -> None:
        super().__init__(outcome)
        self.errors: Dict[str, Exception] = {}
        """What the function raised, with its traceback, by the path of the slide that failed with it."""
        for slide in self.failed:
            for text, error in errors.items():
                if text in slide.error:
                    self.errors[slide.path] = error


def _text_of(error: Exception) -> str:
    """An exception and where it came from, in one line: what is kept of it where only text can be."""
    told = " ".join("".join(traceback.format_exception_only(type(error), error)).split())
    told = one_line(told)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    places = "; ".join(f"{os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}" for frame in frames[-12:])
    return f"{told} (from {places})" if places else told


def _array_of(values: Any) -> numpy.typing.NDArray[Any]:
    """What a function gave, in host memory: its own, where it lies there."""
    if numpy.ma.is_masked(values):
        raise ConfigError("the function gave an array with masked values; fill them: values.filled(0)")
    if isinstance(values, numpy.ndarray):
        return values
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        if not values.dtype.is_floating_point or values.dtype in (torch.float32, torch.float64, torch.float16):
            return values.resolve_conj().resolve_neg().numpy()
        return values.float().numpy()
    if type(values).__module__.partition(".")[0] == "cupy":
        return values.get()
    try:
        return numpy.asarray(values) if hasattr(values, "__array__") else numpy.from_dlpack(values)
    except (AttributeError, TypeError, BufferError):
        raise ConfigError(f"the function gave {type(values).__name__}; expected an array") from None


class _Function:
    """The user's function with what stands around a call: arrays to its framework and back, shapes."""

    def __init__(self, call: Callable[[Any], Any], framework: Optional[str], layout: str) -> None:
        self._call = call
        torch = sys.modules.get("torch")
        if framework is None:
            framework = "torch" if torch is not None and isinstance(call, torch.nn.Module) else "numpy"
        self._framework = choice("framework", framework, _FRAMEWORKS)
        self._library = importlib.import_module({"jax": "jax.numpy"}.get(self._framework, self._framework))
        self.planar = layout == "nchw"

    def __call__(self, pixels: numpy.typing.NDArray[numpy.uint8]) -> numpy.typing.NDArray[Any]:
        """What it gives, as its own shape has it."""
        if self._framework == "torch":
            with self._library.no_grad():
                return _array_of(self._call(self._library.from_dlpack(pixels)))
        return _array_of(self._call(pixels if self._framework == "numpy" else self._library.asarray(pixels)))

    def channels(self, values: numpy.typing.NDArray[Any]) -> int:
        """Of an image, by its shape."""
        if values.ndim == 3:
            return 1
        return int(values.shape[1] if self.planar else values.shape[-1])

    def planes(self, values: numpy.typing.NDArray[Any], kind: str) -> numpy.typing.NDArray[Any]:
        """The same as batch x channels x height x width of uint8, uint16 or float32."""
        vector = kind == "vector"
        if vector:
            values = values.reshape(len(values), -1, 1, 1)
        elif values.ndim == 3:
            values = values[:, numpy.newaxis]
        elif not self.planar:
            values = values.transpose(0, 3, 1, 2)
        if values.dtype == bool and kind not in ("vector", "labels") and values.shape[1] == 1:
            # As scores of two classes: outside, inside.
            values = numpy.concatenate([~values, values], 1)
        if values.dtype not in (numpy.uint8, numpy.uint16, numpy.float32) or not values.dtype.isnative:
            values = values.astype(numpy.float32)
        return values


def _shape_text(values: numpy.typing.NDArray[Any]) -> str:
    return " x ".join(str(side) for side in values.shape) + f" of {values.dtype}"


def _is_of_other_layout(values: numpy.typing.NDArray[Any], planar: bool, tile: int) -> bool:
    """Whether an image would fit if its channels were where the other layout has them."""
    if values.ndim != 4:
        return False
    channels = values.shape[3] if planar else values.shape[1]
    height, width = values.shape[1:3] if planar else values.shape[2:]
    return height == width and tile % height == 0 and 1 <= channels <= 16


def _check_gift(values: numpy.typing.NDArray[Any], function: _Function, output: Optional[str], batch: int, tile: int) -> str:
    """Whether a function is one for images, classes or vectors, by what it gave for a batch. Raises ConfigError."""
    gave = f"the function gave {_shape_text(values)}"
    for_batch = f"{gave} for {batch} tiles of {tile} x {tile} pixels"
    if values.dtype.kind not in "uifb":
        raise ConfigError(f"{gave}; expected numbers")
    kind = output or ("vector" if values.ndim == 2 else "image")
    if values.ndim < 1 or len(values) != batch or values.size == 0:
        raise ConfigError(f"{for_batch}; expected as many as tiles")
    if kind == "vector":
        if values.ndim != 2:
            raise ConfigError(f"{for_batch}; expected tiles x entries")
        return kind
    first, last = "tiles x channels x height x width", "tiles x height x width x channels"
    if values.ndim not in (3, 4):
        raise ConfigError(f"{for_batch}; expected {first if function.planar else last}")
    channels, height, width = function.planes(values, kind).shape[1:]
    if height != width and _is_of_other_layout(values, function.planar, tile):
        raise ConfigError(f"{for_batch}; expected " + (f'{first}; with layout="nhwc" channels are last' if function.planar else
                                                       f'{last}; with layout="nchw" channels are first'))
    if kind == "labels" and (channels != 1 or values.dtype.kind == "f"):
        raise ConfigError(f"{for_batch}; expected labels: one channel of whole numbers")
    if height != width or tile % height != 0:
        raise ConfigError(f"{for_batch}; expected squares whose side divides the tiles'")
    if not 1 <= channels <= 16:
        raise ConfigError(f"{for_batch}; expected 1 to 16 channels, and it has {channels}")
    return kind


def _check_whole(values: numpy.typing.NDArray[Any], most: int, what: str) -> None:
    """That whole numbers are samples of the image as they are. Raises ValueError."""
    limits = numpy.iinfo(values.dtype)
    if limits.min >= 0 and limits.max <= most:
        return
    if values.size and (values.min() < 0 or values.max() > most):
        wider = f' (sample="uint16": 0 to {_MOST["uint16"]})' if most < _MOST["uint16"] else ""
        raise ValueError(f"the function gave {values.dtype} from {values.min()} to {values.max()}; {what} are 0 to {most}{wider}")


def _sets_model(file: Any) -> bool:
    """Whether a TOML file has a section [model]. What can't be read is for others to tell."""
    try:
        with open(path_text(file), encoding="utf-8", errors="replace") as text:
            return re.search(r"^\s*(\[\s*model\s*[].]|model\s*[.=])", text.read(), re.MULTILINE) is not None
    except (OSError, ValueError):
        return False


def _name_of(function: Callable[[Any], Any], in_folder: bool) -> str:
    """What a function is called in results. Raises ConfigError where a folder could take it for another."""
    own = getattr(function, "__qualname__", None)
    named = function if isinstance(own, str) and hasattr(function, "__module__") else type(function)
    nameless = named is not function or named.__qualname__.endswith("<lambda>")
    if in_folder and nameless:
        what = "<lambda>" if named is function else f"an object of {shown(named.__qualname__)}"
        raise ConfigError(f"the function has no name of its own ({what}): give name=, by which results in a folder know it")
    return f"{named.__module__}.{named.__qualname__}"


def map(
    slides: Union[Path, Iterable[Path]],
    function: Callable[[Any], Any],
    *,
    tile: int,
    overlap: int = 0,
    batch: int = 16,
    batches: Literal["slide", "mixed"] = "slide",
    out: Path,
    output: Optional[Literal["image", "classes", "labels", "vector"]] = None,
    labels: bool = False,
    activation: Literal["none", "softmax", "sigmoid"] = "none",
    range: Optional[Tuple[float, float]] = None,
    sample: Optional[Literal["uint8", "uint16"]] = None,
    ignore: Optional[int] = None,
    mpp: Optional[float] = None,
    tissue: bool = False,
    tissue_share: float = 0.0,
    layout: Literal["nhwc", "nchw"] = "nhwc",
    framework: Optional[Literal["numpy", "torch", "jax", "cupy"]] = None,
    name: Optional[str] = None,
    config: Union[Path, Mapping[str, Any], None] = None,
    on_progress: Optional[Callable[[Progress], object]] = None,
    progress: bool = False,
    fresh: bool = False,
    retry_failed: bool = False,
    overwrite: bool = False,
    max_failures: Union[int, str, None] = None,
    shard: Optional[Tuple[int, int]] = None,
    shard_by: str = "path",
    **sections: Mapping[str, Any],
) -> MapResult:
    """Has a function compute overlapping tiles of slides, and writes what it gives as an image, or as features.

    The function gets batches of tiles (uint8) and gives an array for each. What it gives for tiles is blended where
    they overlap (docs/stitching.md), and the image is written from top to bottom with its pyramid while the slide is
    still being read: nothing is held as a whole. It is called by the calling thread, a batch at a time, in the order of
    a slide's tiles; reading, decoding, stitching and writing go on in other threads meanwhile, without the GIL.

    It is always given ``batch`` tiles: of the last batch of a slide (with ``batches="mixed"``, of all slides) those that
    are missing are zeros, and what it gives for them is passed over. First of all it is called once with nothing but
    zeros, which shows what it gives.

    Args:
        slides: Slides, folders, and ``.list`` or ``.csv`` files.
        function: Takes batch x tile x tile x 3 (``layout="nhwc"``) or batch x 3 x tile x tile (``"nchw"``) and gives

            - an image: batch x side x side x channels, or batch x channels x side x side with ``"nchw"``, or batch x
              side x side; 1 to 16 channels. The side is the tiles', or that divided by a whole number s: then the
              image is s times smaller than the slide;
            - vectors: batch x entries.

            Arrays may be of NumPy, PyTorch, CuPy, JAX, or anything else with DLPack, in any memory.
        tile: Side of the tiles in pixels.
        overlap: Pixels that neighbours share, at most half a tile.
        batch: Tiles of a batch.
        batches: ``"mixed"`` has slides share batches, which makes many small slides faster; which tiles are in a batch
            then depends on timing. Where the function raises something for one of several slides, it is called again
            for each half of them, until the slides are found that it raises it for.
        out: One slide's file (``.ome.tif``, ``.ome.zarr``, ``.dzi``, ``.dicom``; ``.h5`` for vectors), or a folder for results as
            ``run`` writes them: images in ``images``, features in ``features``. With a folder the same call again goes
            on where the last one stopped.
        output: ``"classes"``: of the channels the largest is a pixel's label; else told by the shape. A mask (one channel
            of bool) becomes classes, 0 and 1, which are stored without loss; where tiles overlap the weights decide.
        labels: The same as ``output="labels"``: the function gives one channel of whole numbers, which are written as
            they are. Where tiles overlap, a pixel has the label of the tile whose centre is nearest (of equals the
            earlier one), and levels of the pyramid have every second pixel: labels are never averaged. Without it one
            channel of whole numbers is an image, whose pixels are, and which may be JPEG. A warning says so of types
            other than uint8 and uint16, and of these if no number is above 15.
        activation: Applied to the values first: ``"softmax"`` over the channels of a pixel, ``"sigmoid"`` of each value.
            Scores of classes (logits) need softmax: a sigmoid makes those above about 11.8 equal. With it ``range`` is (0, 1).
        range: Values that become 0 and the largest of ``sample``. What lies beyond is clamped in an image
            (``model.clamped`` in ``slides.csv`` says how much), and fails the slide in classes without ``activation``.
            Default: whole numbers are samples of an image as they are, and what doesn't fit ``sample`` fails the slide;
            fractions are (0, 1). Of classes it is the whole range of an array of uint8 or uint16, else (0, 1).
        sample: Of the image that is written. Default: uint16 for an array of that, else uint8.
        ignore: Label of pixels without a computed tile, of classes and labels; the slide fails if the function gives it.
            Default: 255.
        mpp: Micrometres a pixel of the tiles, made from the next finer level; default: the level's own pixels.
        tissue: Only tiles with tissue are computed (``tissue_share`` of them at least); elsewhere an image is white (RGB of
            uint8) or 0, and a label is ``ignore``.
        layout: Where channels stand, in what the function gets and gives.
        framework: Whose arrays the function gets. Default: ``"torch"`` for a ``torch.nn.Module`` (which is called
            without gradients), else ``"numpy"``. Memory is shared, on the host.
        name: Of the function, in results; a run in a folder only goes on with one of the same name. Default: its own.
            A lambda, a ``functools.partial`` and an object that can be called, such as a ``torch.nn.Module``, have none:
            with a folder they need ``name``.
        config, on_progress, progress, fresh, retry_failed, overwrite, max_failures, shard, shard_by: As in ``run``.
        **sections: A dict of keys for each section of the configuration, such as ``image={"quality": 90}`` and
            ``stitch={"weights": "cosine"}``.

    Returns:
        What became of each slide.

    Raises:
        ConfigError: An argument is wrong, or what the function gives has a shape that can't be put together.
        SlideError: The one slide of a file failed. Where the function raised something, that is its ``__cause__``. Of
            several slides one that fails is no error: ``SlideResult.error`` says why, and ``MapResult.errors`` has
            the exception.
        OutputError: Results can't be written.
        EndedEarlyError: The run ended before its end, as in ``run``.
    """
    layout_name = choice("layout", layout, ("nhwc", "nchw"))
    mixed = choice("batches", batches, ("slide", "mixed")) == "mixed"
    out_text = path_text(out, "out")
    to_file = out_text.lower().endswith(_FILES)
    if not to_file and out_text.lower().endswith(_OTHER_FILES):
        raise ConfigError(f"out is {shown(out_text)}; expected a folder, or a file that ends in {', '.join(_FILES)}")
    inputs = paths_of(slides)
    if not callable(function):
        raise ConfigError(f"the function is {shown(function)}; expected something that can be called")
    check_progress(on_progress, progress)
    if "model" in sections or (isinstance(config, Mapping) and "model" in config):
        raise ConfigError("[model] has no say here: what it is for, arguments of map are for")
    if config is not None and not isinstance(config, Mapping) and _sets_model(config):
        raise ConfigError(f"{one_line(path_text(config))}: [model] has no say here: what it is for, arguments of map are for")
    tile, overlap, batch = whole("tile", tile), whole("overlap", overlap), whole("batch", batch)
    mpp = micrometres("mpp", mpp)
    tissue = flag("tissue", tissue)
    tissue_share = number("tissue_share", tissue_share)
    if not 0 <= tissue_share <= 1:
        raise ConfigError(f"tissue_share is {tissue_share}; expected 0 to 1")
    if range is not None:
        range = low_and_high("range", range)
    name = _name_of(function, not to_file) if name is None else plain_text("name", name)
    if not 1 <= tile <= 8192 or not 1 <= batch <= 4096:
        raise ConfigError(f"tile is {tile} and batch is {batch}; expected 1 to 8192, and 1 to 4096")
    if not 0 <= overlap <= tile // 2:
        raise ConfigError(f"overlap is {overlap}; expected 0 to {tile // 2}, half of tile")
    _core.require_memory(batch * tile * tile * 3, "a batch")
    called = _Function(function, framework, layout_name)
    if flag("labels", labels):
        if output not in (None, "labels"):
            raise ConfigError(f"labels is True and output {shown(output)}; leave one out")
        output = "labels"
    black = numpy.zeros((batch, 3, tile, tile) if called.planar else (batch, tile, tile, 3), numpy.uint8)
    first = called(black)
    if output is None and first.dtype == bool and first.ndim >= 3 and called.channels(first) == 1:
        # A mask: label images are never compressed with loss, and blending decides by majority.
        output = "classes"
    kind = _check_gift(first, called, None if output is None else choice("output", output, ("image", "classes", "labels", "vector")),
                       batch, tile)
    planes = called.planes(first, kind)
    if kind == "classes" and planes.shape[1] == 1:
        raise ConfigError(f"the function gave {_shape_text(first)}: one channel, so class 0 would be everywhere; give a mask of "
                          'bool, or output="image"')
    scale = 1 if kind == "vector" else tile // planes.shape[2]
    if overlap % scale != 0:
        raise ConfigError(f"overlap is {overlap}, and the function gave {_shape_text(first)}, 1/{scale} as large as tiles; "
                          f"expected a multiple of {scale}")
    activation = choice("activation", activation, ("none", "softmax", "sigmoid"))  # type: ignore[assignment]
    if activation != "none":
        if kind in ("vector", "labels"):
            raise ConfigError(f"activation is {shown(activation)}; {'features' if kind == 'vector' else 'labels'} have none")
        if range is not None and range != (0.0, 1.0):
            raise ConfigError(f"range is {range} and activation {shown(activation)}, which gives values from 0 to 1; leave range out")
        if activation == "softmax" and planes.shape[1] == 1:
            raise ConfigError('softmax over its one channel is always 1: set activation to "sigmoid"')
        range = (0.0, 1.0)
    if sample is not None:
        choice("sample", sample, ("uint8", "uint16"))
    else:
        sample = "uint16" if first.dtype.name == "uint16" else "uint8"
    least, most = planes.shape[1] if kind == "classes" else 1, 255 if kind == "classes" else _MOST[sample]
    if ignore is not None and kind not in ("classes", "labels"):
        raise ConfigError(f"ignore is {shown(ignore)}; only classes and labels have it")
    if ignore is not None and not least <= whole("ignore", ignore) <= most:
        raise ConfigError(f"ignore is {shown(ignore)}; expected {least} to {most}")
    if kind == "labels" and range is not None:
        raise ConfigError(f"range is {range}; labels have none")
    # Whole numbers that nothing else is said of are samples as they are.
    exact = kind == "labels" or (kind == "image" and range is None and first.dtype.kind in "iu")
    guessed = range is None and kind == "image" and not exact
    # Samples are uint8 and uint16. What numbers other whole ones are is often labels.
    if exact and output is None and planes.shape[1] == 1 and (first.dtype.kind == "i" or first.dtype.itemsize > 2):
        logger.warning('the function gives one channel of %s, which is blended and averaged; give labels=True if these are labels, '
                       'else output="image"', first.dtype)
        may_be_labels = False
    else:
        may_be_labels = exact and kind == "image" and output is None and planes.shape[1] == 1
    if exact:
        range = (0.0, float(_MOST[sample]))
    elif range is None:
        range = (0.0, _WHITE.get(first.dtype.name, 1.0))
    model = {"tile": tile, "overlap": overlap, "batch": batch, "mpp": 0.0 if mpp is None else mpp,
             "output": kind, "activation": activation, "range": [0.0, 0.0] if kind == "labels" else list(range), "sample": sample,
             "where": "tissue" if tissue else "all", "tissue_share": tissue_share, "batches": batches,
             **({} if ignore is None else {"ignore": ignore})}
    calls = _core.Calls(
        tile=tile, overlap=overlap, batch=batch, mpp=mpp, tissue=tissue, mixed=mixed, planar=called.planar, kind=kind,
        tissue_share=tissue_share, activation=activation, channels=planes.shape[1], scale=scale, wide=sample == "uint16", range=range,
        ignore=255 if ignore is None else ignore, description=f"{name} (Python)",
    )
    work = start(
        inputs, ["model"], None if to_file else out, file=out if to_file else None, calls=calls, config=config,
        fresh=fresh, retry_failed=retry_failed, overwrite=overwrite, max_failures=max_failures, shard=shard, shard_by=shard_by,
        metrics=None, trace=None, sections={**sections, "model": model}, caller=map,
    )
    errors: Dict[str, Exception] = {}
    looked = 0
    largest = 0

    def look(values: numpy.typing.NDArray[Any]) -> None:
        """Says once that numbers look like those of another range than the one that nobody named."""
        nonlocal looked
        looked += 1
        if looked > 16:
            return
        finite = values[numpy.isfinite(values)]
        most = float(finite.max()) if finite.size else 0.0
        if most > 2:
            looked = 16
            logger.warning("the function gives numbers up to %g, and without range= all from 1 on is white", most)

    def serve(milliseconds: int) -> None:
        nonlocal largest
        found = calls.next(milliseconds)
        if found is None:
            return
        call, pixels = found
        try:
            values = called(pixels)
            # What its numbers mean was decided by the first ones' type.
            if values.shape != first.shape or values.dtype != first.dtype:
                raise ValueError(f"the function gave {_shape_text(values)}, and {_shape_text(first)} before")
            if exact and values.dtype != bool:
                _check_whole(values, _MOST[sample], "labels" if kind == "labels" else "samples")
            planes = called.planes(values, kind)
            if may_be_labels:
                largest = max(largest, int(values.max()))
            if guessed:
                look(values)
        except Exception as error:
            text = _text_of(error)
            # What its frames hold would stay in memory as long as the exception does.
            traceback.clear_frames(error.__traceback__)
            errors.setdefault(text, error)
            call.fail(text)
        else:
            call.give(planes)

    wait_for(work, on_progress, progress, serve)
    if 0 < largest < _LEAST_WHITE:
        logger.warning('the function gave one channel of %s up to %d, which is blended, averaged and stored as a nearly black image; '
                       'give labels=True if these are labels, bool for a mask, else output="image"', first.dtype, largest)
    result = MapResult(outcome_of(work), errors)
    if to_file:
        for slide in result.failed:
            raise SlideError(one_line(f"{slide.path}: {slide.error}")) from result.errors.get(slide.path)
    return result
