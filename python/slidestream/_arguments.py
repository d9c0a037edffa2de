"""Checks that several functions share."""

from __future__ import annotations

import operator
import os
from typing import Iterable, List, Literal, Tuple, Union

import numpy

from slidestream._core import ConfigError

Path = Union[str, "os.PathLike[str]"]
Pair = Union[int, Tuple[int, int]]
OnBadTile = Literal["fail", "white"]


def choice(name: str, value: object, choices: Tuple[str, ...]) -> str:
    """One of some words. Raises ConfigError."""
    if value not in choices:
        raise ConfigError(f"{name} is {value!r}; expected {' or '.join(repr(word) for word in choices)}")
    return str(value)


def pair(name: str, value: Pair) -> Tuple[int, int]:
    """Width and height, given as two numbers or as one. Raises ConfigError."""
    try:
        width, height = value if isinstance(value, (tuple, list)) else numpy.broadcast_to(value, 2)
        return operator.index(width), operator.index(height)
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


def check_device(device: str) -> None:
    """Raises ConfigError for memory that arrays can't lie in."""
    if str(device) != "cpu":
        raise ConfigError(f"device is {device!r}; expected 'cpu'")
