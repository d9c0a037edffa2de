"""Checks that several functions share."""

from __future__ import annotations

import difflib
import logging
import math
import operator
import os
import re
from typing import Iterable, List, Literal, Optional, Tuple, TypeVar, Union

import numpy

from slidestream import _core
from slidestream._core import ConfigError

Path = Union[str, bytes, "os.PathLike[str]"]
Pair = Union[int, Tuple[int, int]]
Item = TypeVar("Item")
OnBadTile = Literal["fail", "white"]


# Shown as nothing, though Python calls them printable.
_HIDDEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]")


def one_line(text: str) -> str:
    """Text without what would begin another line, steer a terminal, or hide."""
    return _HIDDEN.sub("?", "".join(character if character.isprintable() else "?" for character in text))


# As the program has it.
_MOST_SHARDS = 1_000_000
_LEAST_MPP, _MOST_MPP = 0.001, 1000.0
# Options of the program that take no value.
_FLAGS = ("fresh", "retry-failed", "overwrite")


def in_python(text: str) -> str:
    """A message of the engine with Python's arguments in place of the program's options."""

    def argument(option: "re.Match[str]") -> str:
        word = option.group(1)
        return word.replace("-", "_") + ("=True" if word in _FLAGS else "")

    return re.sub(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)(?![\w-])", argument, text)


def shown(value: object) -> str:
    """A value for a message: one line, and not a long one."""
    try:
        text = repr(value)
    except Exception:
        text = f"an object of {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= 100 else text[:97] + "..."


def counted(count: int, thing: str) -> str:
    """``"1 level"``, ``"2 levels"``."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def choice(name: str, value: object, choices: Tuple[str, ...]) -> str:
    """One of some words. Raises ConfigError."""
    if not isinstance(value, str) or value not in choices:
        near = difflib.get_close_matches(value, choices, 1) if isinstance(value, str) else []
        meant = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"{name} is {shown(value)}; expected {' or '.join(repr(word) for word in choices)}{meant}")
    return value


def path_text(path: Path, name: str = "") -> str:
    """A path as text; ``name`` is the argument's. Raises ConfigError where no file can have that name."""
    argument = f"{name}: " if name else ""
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise ConfigError(f"{argument}{shown(path)} is no path")
    text = os.fsdecode(path)
    try:
        # Half of a surrogate pair is in no file's name.
        no_path = text == "" or b"\0" in os.fsencode(text)
    except UnicodeEncodeError:
        no_path = True
    if no_path:
        raise ConfigError(f"{argument}{shown(text)} is no path")
    return text


def _index(value: object) -> int:
    """A whole number. Raises TypeError for what is none, which True and False are not meant to be."""
    if isinstance(value, (bool, numpy.bool_)):
        raise TypeError
    return operator.index(value)  # type: ignore[arg-type]


def whole(name: str, value: object) -> int:
    """A whole number that an int of C++ holds; its range is checked by who uses it. Raises ConfigError."""
    try:
        number = _index(value)
        if -(2**31) <= number < 2**31:
            return number
    except TypeError:
        pass
    raise ConfigError(f"{name} is {shown(value)}; expected a small whole number")


def number(name: str, value: object) -> float:
    """A finite number. Raises ConfigError."""
    try:
        if not isinstance(value, (str, bytes, bool, numpy.bool_)):
            result = float(value)  # type: ignore[arg-type]
            if math.isfinite(result):
                return result
    except (TypeError, ValueError, OverflowError):
        pass
    raise ConfigError(f"{name} is {shown(value)}; expected a finite number")


def micrometres(name: str, value: object) -> Optional[float]:
    """Micrometres a pixel; None stays. Raises ConfigError."""
    if value is None:
        return None
    result = number(name, value)
    if not _LEAST_MPP <= result <= _MOST_MPP:
        raise ConfigError(f"{name} is {shown(value)}; expected {_LEAST_MPP:g} to {_MOST_MPP:g} micrometres a pixel")
    return result


def channel_number(value: object) -> int:
    """A channel's number; -1 for None. Raises ConfigError."""
    if value is None:
        return -1
    number = whole("channel", value)
    if not 0 <= number <= 65535:
        raise ConfigError(f"channel is {shown(value)}; expected 0 to 65535, or None")
    return number


def flag(name: str, value: object) -> bool:
    """True or False, NumPy's too. Raises ConfigError."""
    if not isinstance(value, (bool, numpy.bool_)):
        raise ConfigError(f"{name} is {shown(value)}; expected True or False")
    return bool(value)


def function(name: str, value: object) -> None:
    """Raises ConfigError for what can't be called."""
    if value is not None and not callable(value):
        raise ConfigError(f"{name} is {shown(value)}; expected something that can be called")


def pair(name: str, value: Pair) -> Tuple[int, int]:
    """Width and height, given as two numbers or as one. Raises ConfigError."""
    return _two(name, value, "a whole number, or (width, height)", one=True)


def place(name: str, value: object) -> Tuple[int, int]:
    """x and y. Raises ConfigError."""
    return _two(name, value, "two whole numbers, (x, y)", one=False)


def _two(name: str, value: object, expected: str, one: bool) -> Tuple[int, int]:
    try:
        both = value if not one or isinstance(value, (tuple, list)) else numpy.broadcast_to(value, 2)  # type: ignore[call-overload]
        first, second = both  # type: ignore[misc]
        numbers = _index(first), _index(second)
        if any(not -(2**63) <= number < 2**63 for number in numbers):
            raise ConfigError(f"{name} is {shown(value)}; expected {expected} of less than 64 bits")
        return numbers
    except (TypeError, ValueError):
        raise ConfigError(f"{name} is {shown(value)}; expected {expected}") from None


def one_of_level_and_mpp(level: int, mpp: Optional[float]) -> None:
    """Raises ConfigError where both are named."""
    if level != 0 and mpp is not None:
        raise ConfigError(f"level is {level} and mpp is {mpp}; expected one of them: mpp finds its level itself")


def paths_of(paths: Union[Path, Iterable[Path]]) -> List[Path]:
    """One path, or several. Raises ConfigError."""
    if isinstance(paths, (str, bytes, os.PathLike)):
        return [paths]
    return listed("paths", paths, "a path, or several")


def listed(name: str, values: Iterable[Item], expected: str) -> List[Item]:
    """What can be gone through, as a list. Raises ConfigError."""
    try:
        iterator = iter(values)
    except TypeError:
        raise ConfigError(f"{name} is {shown(values)}; expected {expected}") from None
    return list(iterator)


def plain_text(name: str, value: object) -> str:
    """Text of printable characters, one at least and 1000 at most. Raises ConfigError."""
    if not isinstance(value, str) or not 1 <= len(value) <= 1000 or not value.isprintable():
        raise ConfigError(f"{name} is {shown(value)}; expected 1 to 1000 characters that can be printed")
    return value


def shard_of(shard: Tuple[int, int]) -> Tuple[int, int]:
    """(i, n). Raises ConfigError."""
    try:
        i, n = shard
        i, n = whole("i", i), whole("n", n)
        if 0 <= i < n <= _MOST_SHARDS:
            return i, n
    except (TypeError, ValueError, ConfigError):
        pass
    raise ConfigError(f"shard is {shown(shard)}; expected (i, n) with i from 0 to n - 1, and n from 1 to {_MOST_SHARDS}") from None


def low_and_high(name: str, values: object) -> Tuple[float, float]:
    """Two finite numbers of which the first is smaller. Raises ConfigError."""
    expected = "expected (low, high), two finite numbers with low < high"
    try:
        low, high = () if isinstance(values, (str, bytes)) else values  # type: ignore[misc]
        low, high = number(name, low), number(name, high)
    except (TypeError, ValueError, ConfigError):
        raise ConfigError(f"{name} is {shown(values)}; {expected}") from None
    if not low < high:
        raise ConfigError(f"{name} is {shown(values)}; {expected}")
    return low, high


def device_number(device: object) -> Optional[int]:
    """What ``"cuda"`` (the calling thread's GPU) and ``"cuda:1"`` name, or frameworks' objects that read so as text;
    None: the host's memory. Raises ConfigError, or CudaError where there is no such GPU to be used."""
    try:
        text = str(device)
    except Exception:
        text = ""
    if text == "cpu":
        return None
    kind, _, number = text.partition(":")
    if kind != "cuda" or (number != "" or text.endswith(":")) and not (number.isascii() and number.isdigit() and len(number) < 10):
        raise ConfigError(f"device is {shown(device)}; expected 'cpu', 'cuda' or 'cuda:0', 'cuda:1', ...")
    return _core.usable_device(int(number) if number else None)


def log_notes(notes: Iterable[str]) -> None:
    """Says what the engine says of slides, through the logger ``slidestream``."""
    for note in notes:
        logging.getLogger("slidestream").warning("%s", note)
