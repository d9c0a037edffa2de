"""Single slides."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Literal, NamedTuple, Optional, Sequence, Tuple, Union, overload

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
    log_notes,
    micrometres,
    one_of_level_and_mpp,
    pair,
    path_text,
    place,
    shown,
    whole,
)
from slidestream._core import DeviceArray, Level


class TissueMask(NamedTuple):
    """Where a slide's tissue is."""

    pixels: numpy.typing.NDArray[numpy.bool_]
    """Height x width; True where there is tissue."""
    scale: Tuple[float, float]
    """Pixels of level 0 along a pixel of the mask, across and down."""


class Slide:
    """An open whole-slide image, of any format that docs/formats.md lists.

    Any number of threads may use one object at the same time. Its file is closed when nobody refers to it any more, or
    with ``close``, which a ``with`` block does at its end. A slide that is pickled is opened again where it arrives,
    and one that a process had before a fork may be used by the child.

    Args:
        path: The slide's file.
        mpp: Micrometres per pixel of level 0, 0.001 to 1000, in place of what the file says. The magnification becomes
            10 / mpp.
        channel: Of a slide that has several channels the one to read, from 0, as grey (R = G = B). Without it such a
            slide raises ``SlideError``, which names its channels.
        colour: ``"file"``: colours as they are coded; ``"srgb"``: converted from the slide's ICC profile to sRGB. A slide
            without a usable one stays as it is: a warning says why, and ``is_srgb`` tells. Associated images aren't
            converted.
        on_bad_tile: ``"fail"``: reading a tile that can't be decoded raises ``SlideError``; ``"white"``: it is white.
        decode_mib: Memory that decoding may take over all threads, in MiB, besides the pixels that are returned. Tiles
            wait for their share. One that takes more than all of it raises ``SlideError``, whatever ``on_bad_tile`` says.

    Doubts about the file go to the logger ``slidestream`` of Python's ``logging``, as warnings.

    Raises:
        SlideError: The file isn't a slide that can be read. The message names it, and the cause.
        StorageError: The file system failed.
    """

    def __init__(
        self,
        path: Path,
        *,
        mpp: Optional[float] = None,
        channel: Optional[int] = None,
        colour: Literal["file", "srgb"] = "file",
        on_bad_tile: OnBadTile = "fail",
        decode_mib: int = 1024,
    ) -> None:
        self._white = choice("on_bad_tile", on_bad_tile, ("fail", "white")) == "white"
        self._mpp = micrometres("mpp", mpp)
        self._channel = channel_number(channel)
        self._srgb = choice("colour", colour, ("file", "srgb")) == "srgb"
        self._decode_mib = whole("decode_mib", decode_mib)
        self._core = _core.OpenSlide(path_text(path, "path"), self._mpp or 0.0, self._channel, self._srgb, self._decode_mib, None)
        self._other: Optional[_core.OpenSlide] = None
        log_notes(f"{self._core.path}: {line}" for line in self._core.warnings)

    def _in_colour(self, colour: Optional[Literal["file", "srgb"]]) -> _core.OpenSlide:
        """The open slide with these colours. Two threads may open the other one twice; one of them stays."""
        core, other = self._core, self._other
        if colour is None or (choice("colour", colour, ("file", "srgb")) == "srgb") == self._srgb or isinstance(core, _Closed):
            return core
        if other is None:
            other = self._other = _core.OpenSlide(str(core.path), self._mpp or 0.0, self._channel, not self._srgb, self._decode_mib, core)
            log_notes(f"{core.path}: {line}" for line in other.warnings if line not in core.warnings)
        return other

    def __reduce__(self) -> Tuple[object, ...]:
        colour, on_bad_tile = "srgb" if self._srgb else "file", "white" if self._white else "fail"
        return _open, (str(self._core.path), self._mpp, self._channel, colour, on_bad_tile, self._decode_mib)

    def close(self) -> None:
        """Closes the file. The object can't be used afterwards; closing it again does nothing."""
        self._core = _Closed(str(self._core.path))  # type: ignore[assignment]
        self._other = None

    def __enter__(self) -> Slide:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if isinstance(self._core, _Closed):
            return f"Slide({str(self.path)!r}: closed)"
        width, height = self.dimensions
        return f"Slide({str(self.path)!r}: {width} x {height}, {counted(len(self.levels), 'level')}, {self.codec})"

    @property
    def path(self) -> os.PathLike[str]:
        """The file, as it was given."""
        return self._core.path

    @property
    def format(self) -> str:
        """``"aperio"``, ``"ome-tiff"``, ``"tiff"``, ``"dicom"``, or the vendor that OpenSlide names."""
        return self._core.format

    @property
    def is_srgb(self) -> bool:
        """Whether pixels are converted from the slide's ICC profile to sRGB (``colour="srgb"``)."""
        return self._core.is_srgb

    @property
    def labels(self) -> bool:
        """Whether it is an image of labels that slidestream wrote: classes, labels, or a mask of tissue. Its levels are
        read as they are. What makes pixels of another size of them, or finds tissue, raises ``SlideError``."""
        return self._core.labels

    @property
    def codec(self) -> str:
        """How level 0's tiles are compressed: ``"jpeg"``, ``"jpeg2000"``, ``"none"``, ``"lzw"``, ..."""
        return self.levels[0].codec

    @property
    def levels(self) -> List[Level]:
        """The resolutions, largest first."""
        return self._core.levels

    @property
    def dimensions(self) -> Tuple[int, int]:
        """Width and height of level 0 in pixels."""
        return self.levels[0].size

    @property
    def mpp(self) -> Optional[float]:
        """Micrometres per pixel of level 0: the argument, else what the slide says. Across, and if pixels are square, down."""
        return self._core.mpp

    @property
    def mpp_y(self) -> Optional[float]:
        """Micrometres per pixel of level 0 down: as ``mpp``, unless both differ by more than 1 %."""
        return self._core.mpp_y

    @property
    def magnification(self) -> Optional[float]:
        """Power of the objective, where the slide says; 10 / mpp where the argument ``mpp`` was given."""
        return self._core.magnification

    @property
    def channels(self) -> List[str]:
        """Names of the channels of a slide that has several."""
        return self._core.channels

    @property
    def properties(self) -> Dict[str, str]:
        """What the scanner's maker wrote into the file."""
        return self._core.properties

    @property
    def associated(self) -> List[str]:
        """Names of the file's images that aren't levels: thumbnail, label, macro."""
        return self._core.associated

    def associated_image(self, name: str) -> numpy.typing.NDArray[numpy.uint8]:
        """An image of the file that isn't a level, by its name in ``associated``: height x width x 3, uint8, RGB.

        A label or a macro image may show the patient's name. Nothing else of this package reads them.

        Raises:
            ConfigError: The slide has no image of that name.
            SlideError: It can't be decoded.
        """
        names = self.associated
        if name not in names:
            raise _core.ConfigError(f"name is {shown(name)}; expected one of {', '.join(map(repr, names)) or 'none: the slide has no such images'}")
        return self._core.associated_image(names.index(name))

    def thumbnail(self, size: Pair = (512, 512)) -> numpy.typing.NDArray[numpy.uint8]:
        """The whole slide, scaled down to fit a box: height x width x 3, uint8, RGB. Each side is at least a pixel.

        Its pixels are area means of the coarsest level that is not smaller. It is never larger than level 0, and it
        doesn't come from the file's own thumbnail, which may show something else.

        Args:
            size: Width and height of the box in pixels, or one number for both.

        Raises:
            ConfigError: The box isn't 1 x 1 to 32768 x 32768 pixels.
            SlideError: A tile can't be decoded.
        """
        width, height = pair("size", size)
        return self._core.thumbnail(width, height, self._white)

    def tissue_mask(self) -> TissueMask:
        """Where tissue is, as the operator ``tissue`` finds it with its default settings (docs/operators.md).

        A slide without a pixel size, without tissue or with more than 95 % gets a warning in the logger ``slidestream``.

        Raises:
            SlideError: A tile can't be decoded.
        """
        pixels, across, down, doubts = self._core.tissue_mask(self._white)
        log_notes(f"{self._core.path}: {doubt}" for doubt in doubts)
        return TissueMask(pixels.astype(bool), (across, down))

    def icc_profile(self) -> bytes:
        """ICC profile of the pixels as ``Slide(..., colour=...)`` has them: sRGB's where ``is_srgb`` is true, else
        level 0's own. Empty where there is none that can be used."""
        return self._core.icc_profile()

    @overload
    def read_region(
        self,
        location: Sequence[int],
        level: int = 0,
        size: Pair = (256, 256),
        device: Literal["cpu"] = "cpu",
        *,
        mpp: Optional[float] = None,
        fill: int = 255,
        colour: Optional[Literal["file", "srgb"]] = None,
    ) -> numpy.typing.NDArray[numpy.uint8]: ...

    @overload
    def read_region(
        self,
        location: Sequence[int],
        level: int = 0,
        size: Pair = (256, 256),
        device: Any = "cpu",
        *,
        mpp: Optional[float] = None,
        fill: int = 255,
        colour: Optional[Literal["file", "srgb"]] = None,
    ) -> Union[numpy.typing.NDArray[numpy.uint8], DeviceArray]: ...

    def read_region(
        self,
        location: Sequence[int],
        level: int = 0,
        size: Pair = (256, 256),
        device: Any = "cpu",
        *,
        mpp: Optional[float] = None,
        fill: int = 255,
        colour: Optional[Literal["file", "srgb"]] = None,
    ) -> Union[numpy.typing.NDArray[numpy.uint8], DeviceArray]:
        """Reads a rectangle of a level. The arguments stand in OpenSlide's order, and the pixels are OpenSlide's.

        Only tiles that the rectangle touches are decoded, by several threads and without the GIL.

        Args:
            location: x and y of the rectangle's top left corner in pixels of level 0; may lie outside. On another level
                it is the nearest pixel of that level (OpenSlide interpolates between pixels there).
            level: Number of the level.
            size: Width and height in pixels of that level, or one number for both.
            device: Where the array shall lie: ``"cpu"``; ``"cuda"``, the calling thread's GPU; ``"cuda:1"``. There
                tiles are decoded on the GPU, to the same pixels; what it can't decode, the CPU does, which is said once
                through ``logging``.
            mpp: Micrometres a pixel, in place of ``level``: the size is in such pixels then, and the location is the
                nearest of them. They are made from the coarsest level that is finer: each is the mean of its area,
                rounded half up (docs/stitching.md). Within 2 % of a level's they are the level's own.
            fill: Value of all that lies beyond the level, 0 to 255. (What OpenSlide makes transparent there is 0 after
                its ``convert("RGB")``.) A tile that is missing in the file is white.
            colour: As the slide's own, for this rectangle alone. Default: the slide's. The first one with the other
                opens the file again.

        Returns:
            Height x width x 3, uint8: red, green, blue. It owns its memory, and outlives the slide. On a GPU a
            ``DeviceArray``, for ``torch.from_dlpack`` and its like.

        Raises:
            SlideError: A tile can't be decoded, the file can't be read, or it has no pixels as fine as ``mpp``.
            ConfigError: An argument means nothing.
            CudaError: There is no such GPU, or it fails.
        """
        number = device_number(device)
        x, y = place("location", location)
        width, height = pair("size", size)
        resolution = micrometres("mpp", mpp)
        level = whole("level", level)
        one_of_level_and_mpp(level, resolution)
        fill = whole("fill", fill)
        core = self._in_colour(colour)
        if number is None:
            return core.read_region(x, y, level, width, height, resolution, fill, self._white)
        array, notes = core.read_region_on(number, x, y, level, width, height, resolution, fill, self._white)
        log_notes(notes)
        return array


class _Closed:
    """Stands where an open slide was."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __getattr__(self, name: str) -> Any:
        # What asks for special methods, such as copy and pickle, expects this error.
        if name.startswith("__"):
            raise AttributeError(name)
        raise _core.Error(f"{self.path}: this slide was closed")


def _open(
    path: str,
    mpp: Optional[float],
    channel: int,
    colour: Literal["file", "srgb"],
    on_bad_tile: OnBadTile,
    decode_mib: int = 1024,
) -> Slide:
    number = None if channel < 0 else channel
    return Slide(path, mpp=mpp, channel=number, colour=colour, on_bad_tile=on_bad_tile, decode_mib=decode_mib)
