"""Networks and functions over 3-D images (NIfTI)."""

from __future__ import annotations

import os
import pathlib
from typing import Any, Callable, Dict, Iterable, List, Literal, Mapping, Optional, Sequence, Tuple, Union

import numpy
import numpy.typing

from slidestream import _core
from slidestream._arguments import (
    Path,
    choice,
    counted,
    flag,
    listed,
    low_and_high,
    number,
    one_line,
    path_text,
    paths_of,
    shown,
    whole,
)
from slidestream._arguments import function as check_function
from slidestream._core import ConfigError, Progress, SlideError
from slidestream._map import _array_of, _shape_text
from slidestream._progress import logger, outcome_of, wait_for
from slidestream._run import RunResult, check_progress, start

_FUSIONS = ("vote", "mean", "blend")
_MOST = {"uint8": 255, "uint16": 65535}
Axes = Sequence[int]


def _three(name: str, values: object, most: int) -> List[int]:
    """Whole numbers along z, y, x. Raises ConfigError."""
    numbers = [whole(name, value) for value in listed(name, values, "three whole numbers, along z, y, x")]  # type: ignore[arg-type]
    if len(numbers) != 3 or not all(1 <= value <= most for value in numbers):
        raise ConfigError(f"{name} is {shown(values)}; expected three whole numbers from 1 to {most}, along z, y, x")
    return numbers


def _lengths(values: Optional[Sequence[float]]) -> List[float]:
    """Millimetres along z, y, x, or none. Raises ConfigError."""
    if values is None:
        return []
    lengths = [number("spacing", value) for value in listed("spacing", values, "three lengths, along z, y, x")]
    if len(lengths) != 3 or not all(0.001 <= length <= 1000 for length in lengths):
        raise ConfigError(f"spacing is {shown(values)}; expected three lengths from 0.001 to 1000 mm, along z, y, x")
    return lengths


def segment_volume(
    volumes: Union[Path, Iterable[Path]],
    networks: Path,
    out: Path,
    *,
    fragment: Axes = (96, 128, 88),
    grid: Axes = (3, 3, 3),
    fusion: Literal["vote", "mean", "blend"] = "vote",
    spacing: Optional[Sequence[float]] = None,
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
) -> RunResult:
    """Runs ONNX networks over 3-D images, as ``pipeline volume`` does (docs/volumes.md), in this process.

    The result has a ``SlideResult`` for each volume: its ``files`` are the labels or the image, and its ``values`` count
    the voxels of each label, or have ``model.clamped``, the share of an image's values that were clamped.

    Args:
        volumes: NIfTI files, folders, and ``.list`` or ``.csv`` files.
        networks: An ONNX file, or a folder with one, or with one per fragment, ordered by the numbers in their names.
        out: Folder for results. The same call again goes on where the last one stopped.
        fragment: Samples along z, y, x that networks take.
        grid: Fragments along z, y, x.
        fusion: How fragments that overlap become one volume.
        spacing: Millimetres between the samples that networks see, along z, y, x. Default: the volume's own.
        config: A TOML file, or a dict of sections.
        on_progress: Called with a ``Progress`` some times a second, by the calling thread.
        progress: Shows a bar.
        fresh: Moves an earlier run in the folder aside.
        retry_failed: Tries volumes again that failed in an earlier run.
        overwrite: Replaces files that are there and that this program didn't write.
        max_failures: Ends the run when so many volumes failed, or such a share (``"5%"``).
        shard: (i, n): does the i-th of n parts of the volumes, from 0.
        shard_by: ``"path"`` or ``"size"``.
        **sections: A dict of keys for each section of the configuration, such as ``model={"provider": "cpu"}``.

    Raises:
        ConfigError: A setting is wrong; nothing was started.
        OutputError: Results can't be written.
        EndedEarlyError: The run ended before its end. What was done is in ``out``, and the same call does the rest.
    """
    check_progress(on_progress, progress)
    if "operators" in sections:
        raise ConfigError("operators are for slides, and volumes have networks")
    others = sections.pop("volume", {})
    if not isinstance(others, Mapping):
        raise ConfigError(f"volume is {shown(others)}; expected a dict of the keys of the section [volume]")
    volume = {"networks": path_text(networks), "fragment": _three("fragment", fragment, 4096), "grid": _three("grid", grid, 256),
              "fusion": choice("fusion", fusion, _FUSIONS), "spacing": _lengths(spacing)}
    for key in others:
        if key in volume:
            raise ConfigError(f"volume has {shown(key)}, which is an argument of its own here")
    work = start(
        volumes, None, out, config=config, fresh=fresh, retry_failed=retry_failed, overwrite=overwrite, max_failures=max_failures,
        shard=shard, shard_by=shard_by, metrics=None, trace=None, volumes=True,
        sections={**sections, "volume": {**others, **volume}}, caller=segment_volume,
    )
    wait_for(work, on_progress, progress, volumes=True)
    return RunResult(outcome_of(work))


class VolumeResult:
    """What ``map_volume`` made of a volume."""

    def __init__(self, path: str, file: pathlib.Path, voxels: Dict[int, int], voxel_mm3: float, clamped: float) -> None:
        self.path = path
        """The volume's, as it was named."""
        self.file = file
        """Its labels, or its image."""
        self.voxels = voxels
        """Of each label; empty of an image."""
        self.mm3 = {label: count * voxel_mm3 for label, count in voxels.items()}
        """Likewise; NaN where the header says no size."""
        self.clamped = clamped
        """The share of the function's values that an image has clamped to ``range``; 0 of labels."""

    def __repr__(self) -> str:
        return f"VolumeResult({self.path!r}: {counted(len(self.voxels), 'label') if self.voxels else 'an image'})"


def _planes(values: Any, shape: Tuple[int, ...], fusion: str) -> numpy.typing.NDArray[Any]:
    """What a function gave for a fragment as channels x fragment. Raises ConfigError."""
    given = _array_of(values)
    planes = given[numpy.newaxis] if given.ndim == 3 else given
    if given.dtype.kind not in "uifb" or planes.ndim != 4 or planes.shape[1:] != shape or len(planes) < 1:
        sides = " x ".join(map(str, shape))
        raise ConfigError(f"the function gave {_shape_text(given)} for a fragment of {sides}; expected {sides}, or channels x that")
    if fusion == "blend" and len(planes) != 1:
        raise ConfigError(f"the function gave {len(planes)} channels; fusion='blend' wants an image of one")
    if fusion == "mean" and len(planes) < 2:
        raise ConfigError("the function gave one channel; fusion='mean' wants one per class")
    return planes


def _check_ignore(ignore: Optional[int], sample: str) -> None:
    """Raises ConfigError."""
    if ignore is not None and not 0 <= ignore <= _MOST[sample]:
        raise ConfigError(f"ignore is {shown(ignore)}; expected 0 to {_MOST[sample]}")


def map_volume(
    function: Callable[[numpy.typing.NDArray[numpy.float32]], Any],
    volumes: Union[Path, Iterable[Path]],
    out: Path,
    *,
    fragment: Axes,
    grid: Axes,
    fusion: Literal["vote", "mean", "blend"] = "vote",
    spacing: Optional[Sequence[float]] = None,
    fill: float = 0.0,
    activation: Literal["none", "softmax", "sigmoid"] = "none",
    range: Optional[Tuple[float, float]] = None,
    sample: Optional[Literal["uint8", "uint16"]] = None,
    ignore: Optional[int] = None,
    overwrite: bool = False,
) -> List[VolumeResult]:
    """Has a function compute overlapping fragments of 3-D images, and writes what they make together.

    The function gets each fragment as float32, z x y x, and gives an array of the same shape (labels, or with
    ``fusion="blend"`` an image), or channels x that (scores of classes). Values that it gives become float32 before
    anything else. The calling thread calls it, for the fragments of a volume in row-major order. Volumes are computed one
    after the other.

    A volume's file is ``out/NAME.labels.nii.gz`` or ``out/NAME.image.nii.gz``, on the volume's grid. There is no ledger: what
    the function raises ends the call, and files of earlier volumes stay. A volume that fails doesn't end it: the logger
    ``slidestream`` has a line, the others are computed, and the call raises ``SlideError`` at the end.

    Args:
        function: Any callable. Its arrays may be of NumPy, PyTorch, CuPy, JAX, or anything else with DLPack.
        volumes: NIfTI files, folders, and ``.list`` or ``.csv`` files. Results of earlier calls and runs in folders are
            passed over, with a warning.
        out: A folder.
        fragment: Samples along z, y, x that the function gets.
        grid: Fragments along z, y, x (docs/volumes.md).
        fusion: ``"vote"``: the label of most fragments; ``"mean"``: scores are averaged, the largest wins; ``"blend"``: an
            image, blended where fragments overlap.
        spacing: Millimetres between the samples that the function sees. Labels only. Default: the volume's own.
        fill: Value beyond a volume that is smaller than a fragment, from -1e30 to 1e30.
        activation: Applied to the values first: with ``"mean"`` either, with ``"blend"`` ``"sigmoid"``.
        range: Values that become 0 and 65,535 with ``"mean"`` and ``"blend"``. What lies beyond is clamped in an image, with
            a warning (``VolumeResult.clamped`` says how much), and fails the volume with ``"mean"``. Default: 0 to 1, which
            an activation gives.
        sample: Of labels. Default: uint16 where there are more than 256 classes, or labels of more than 8 bits.
        ignore: With ``"vote"``, a label or class that doesn't vote. Default: of labels the largest of ``sample``, of classes
            none.
        overwrite: Replaces files that are there, but no inputs.

    Raises:
        ConfigError: An argument is wrong, there is no volume, a file is there or is an input, or the function gave
            something else than it should.
        SlideError: A volume can't be read, or values can't be used.
        OutputError: A file can't be written.
    """
    check_function("function", function)
    fusion = choice("fusion", fusion, _FUSIONS)  # type: ignore[assignment]
    activation = choice("activation", activation, ("none", "softmax", "sigmoid"))  # type: ignore[assignment]
    sizes = {"fragment": _three("fragment", fragment, 4096), "grid": _three("grid", grid, 256), "spacing": _lengths(spacing)}
    if sizes["spacing"] and fusion == "blend":
        raise ConfigError("only labels are resampled back; leave spacing or fusion='blend' out")
    padding = number("fill", fill)
    if not -1e30 <= padding <= 1e30:
        raise ConfigError(f"fill is {shown(fill)}; expected -1e30 to 1e30")
    limits = None if range is None else low_and_high("range", range)
    if sample is not None:
        choice("sample", sample, tuple(_MOST))
    if ignore is not None:
        ignore = whole("ignore", ignore)
    _core.check_scores(fusion=fusion, activation=activation, range=limits, ignore=ignore, has_sample=sample is not None)
    _check_ignore(ignore, sample or "uint16")
    folder = pathlib.Path(path_text(out))
    paths, warnings, refusal = _core.volume_inputs([path_text(path) for path in paths_of(volumes)])
    for warning in warnings:
        logger.warning("%s", warning)
    if refusal:
        raise ConfigError(refusal)
    product = "image" if fusion == "blend" else "labels"
    files = [folder / f"{_stem(path)}.{product}.nii.gz" for path in paths]
    flag("overwrite", overwrite)
    _core.check_targets(files, paths)
    for path, file in zip(paths, files):
        if files.count(file) > 1:
            raise ConfigError(f"{path}: another volume has the same name; give them folders of their own")
        if os.path.exists(file) and not overwrite:
            raise ConfigError(f"{file}: it is there; overwrite=True replaces it")
    _core.make_folder(folder)

    is_called = False

    def compute(path: pathlib.Path, file: pathlib.Path) -> VolumeResult:
        nonlocal is_called
        volume = _core.Volume(path=path, fill=padding, **sizes)
        if volume.doubt:
            logger.warning("%s: %s", one_line(os.fspath(path)), volume.doubt)
        channels = 0
        for i in numpy.arange(volume.count):
            samples = volume.cut(int(i))
            # Stays True if it raises, be it in its array's own methods.
            is_called = True
            planes = _planes(function(samples), tuple(sizes["fragment"]), fusion)
            is_called = False
            if channels == 0:
                channels = len(planes)
                labels = fusion == "vote" and channels == 1
                narrow = planes.dtype.itemsize == 1 if labels else channels <= 256
                wide = sample == "uint16" if sample is not None else not narrow
                if channels > 65535:
                    raise ConfigError(f"the function gave {channels} channels; expected at most 65,535")
                if not labels and fusion != "blend" and channels > 256 and not wide:
                    raise ConfigError(f"the function gave {channels} channels; sample='uint8' holds 256 classes")
                _check_ignore(ignore, "uint16" if wide else "uint8")
                volume.begin(fusion=fusion, labels=labels, channels=channels, wide=wide, ignore=ignore, activation=activation,
                             range=(0.0, 1.0) if limits is None else limits)
            elif len(planes) != channels:
                raise ConfigError(f"the function gave {len(planes)} channels, and {channels} before")
            volume.put(int(i), numpy.ascontiguousarray(planes, numpy.float32))
        made = VolumeResult(os.fspath(path), file, volume.write(file), volume.voxel_mm3, volume.clamped)
        if made.clamped > 0:
            logger.warning("%s: the function gave values outside range=; the image has them clamped: %.3g %% of its values",
                           one_line(os.fspath(path)), 100 * made.clamped)
        return made

    results = []
    failures = []
    for path, file in zip(paths, files):
        try:
            results.append(compute(path, file))
        except SlideError as error:
            if len(paths) == 1 or is_called:
                raise
            # What its frames hold would stay in memory as long as the exception does.
            failures.append(error.with_traceback(None))
            logger.error("%s", error)
    if failures:
        raise SlideError(f"{len(failures)} of {len(paths)} volumes failed; the first: {failures[0]}") from failures[0]
    return results


def _stem(path: pathlib.Path) -> str:
    """A file's name without .nii or .nii.gz."""
    name = path.name
    for ending in (".nii.gz", ".nii"):
        if name.lower().endswith(ending):
            return name[: -len(ending)]
    return name
