"""Checks that several functions share."""

from __future__ import annotations

import logging
import operator
import os
from typing import Iterable, List, Literal, Optional, Tuple, Union

import numpy

from slidestream import _core
from slidestream._core import ConfigError

Path = Union[str, "os.PathLike[str]"]
Pair = Union[int, Tuple[int, int]]
OnBadTile = Literal["fail", "white"]


def choice(name: str, value: object, choices: Tuple[str, ...]) -> str:
    """One of some words. Raises ConfigError."""
    if value not in choices:
        raise ConfigError(f"{name} is {value!r}; expected {' or '.join(repr(word) for word in choices)}")
    return str(value)


def path_text(path: Path) -> str:
    """A path as text. Raises ConfigError where no file can have that name."""
    text = os.fsdecode(path)
    if text == "" or "\0" in text:
        raise ConfigError(f"{text!r} is no path")
    return text


def whole(name: str, value: object) -> int:
    """A whole number that an int of C++ holds; its range is checked by who uses it. Raises ConfigError."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
        if -(2**31) <= number < 2**31:
            return number
    except TypeError:
        pass
    raise ConfigError(f"{name} is {value!r}; expected a small whole number")


def pair(name: str, value: Pair) -> Tuple[int, int]:
    """Width and height, given as two numbers or as one. Raises ConfigError."""
    try:
        width, height = value if isinstance(value, (tuple, list)) else numpy.broadcast_to(value, 2)
        numbers = operator.index(width), operator.index(height)
        if any(not -(2**63) <= number < 2**63 for number in numbers):
            raise ValueError
        return numbers
    except (TypeError, ValueError):
        raise ConfigError(f"{name} is {value!r}; expected a whole number, or (width, height)") from None


def paths_of(paths: Union[Path, Iterable[Path]]) -> List[Path]:
    """One path, or several."""
    return [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)


def shard_of(shard: Tuple[int, int]) -> Tuple[int, int]:
    """(i, n), of which ranges are checked by who uses it. Raises ConfigError."""
    try:
        i, n = shard
        return operator.index(i), operator.index(n)
    except (TypeError, ValueError):
        raise ConfigError(f"shard is {shard!r}; expected (i, n) with 0 <= i < n") from None


def device_number(device: object) -> Optional[int]:
    """What ``"cuda"`` (the calling thread's GPU) and ``"cuda:1"`` name, or frameworks' objects that read so as text;
    None: the host's memory. Raises ConfigError, or CudaError where there is no such GPU to be used."""
    text = str(device)
    if text == "cpu":
        return None
    kind, _, number = text.partition(":")
    if kind != "cuda" or (number != "" or text.endswith(":")) and not number.isdigit():
        raise ConfigError(f"device is {device!r}; expected 'cpu', 'cuda' or 'cuda:0', 'cuda:1', ...")
    return _core.usable_device(int(number) if number else None)


def log_notes(notes: Iterable[str]) -> None:
    """Says what the engine says of slides, through the logger ``slidestream``."""
    for note in notes:
        logging.getLogger("slidestream").warning("%s", note)
