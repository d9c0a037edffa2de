"""Runs under way: waiting for them, showing how far they are, passing on what they say."""

from __future__ import annotations

import logging
import sys
from typing import Any, Callable, Optional

from slidestream import _core
from slidestream._arguments import in_python
from slidestream._core import Progress

logger = logging.getLogger("slidestream")

# How often a run's thread is looked after, in milliseconds.
_PATIENCE = 50


class _Bar:
    """A bar on standard error, or in a notebook: tqdm's where that is installed."""

    def __init__(self, volumes: bool) -> None:
        self._volumes = volumes
        try:
            from tqdm.auto import tqdm

            self._tqdm: Any = tqdm(total=1.0, bar_format="{percentage:3.0f}% |{bar}| {desc} [{elapsed}<{remaining}]")
        except ImportError:
            self._tqdm = None

    @staticmethod
    def share(progress: Progress) -> float:
        """Of the work that is done, 0 to 1. A single slide counts by its pixels, or by its image, which comes later."""
        ended = progress.slides_done + progress.slides_failed
        total = max(progress.slides_total, 1)
        opened = progress.pixels / progress.pixels_started if progress.pixels_started > 0 else 0.0
        if progress.images_share is not None:
            opened = min(opened, progress.images_share)
        return max(ended / total, opened if total == 1 else 0.0)

    def update(self, progress: Progress) -> None:
        share = self.share(progress)
        rate = progress.pixels / max(progress.seconds, 1e-9) / 1e6
        words = f"volumes, {rate:.3g} Mvoxels/s" if self._volumes else f"slides, {rate:.0f} Mpx/s"
        text = f"{progress.slides_done + progress.slides_failed}/{progress.slides_total} {words}"
        if progress.slides_failed:
            text += f", {progress.slides_failed} failed"
        if self._tqdm is not None:
            self._tqdm.set_description_str(text, refresh=False)
            self._tqdm.update(share - self._tqdm.n)
        else:
            filled = round(30 * share)
            sys.stderr.write(f"\r{100 * share:3.0f}% |{'#' * filled:30}| {text}\x1b[K")
            sys.stderr.flush()

    def close(self) -> None:
        if self._tqdm is not None:
            self._tqdm.close()
        else:
            sys.stderr.write("\n")


def _log() -> None:
    for level, text in _core.take_messages():
        logger.log(level, "%s", in_python(text))


def outcome_of(work: _core.Run) -> _core.Outcome:
    """What a run that has ended came to. Raises what ended it."""
    try:
        return work.outcome()
    except _core.Error as error:
        raise type(error)(in_python(str(error))) from None


def wait_for(
    work: _core.Run,
    on_progress: Optional[Callable[[Progress], object]],
    progress: bool,
    serve: Optional[Callable[[int], object]] = None,
    volumes: bool = False,
) -> None:
    """Returns when the run has ended. An exception, such as Ctrl-C, ends it first: nothing goes on behind the caller's
    back.

    Args:
        serve: Does what the run asks Python for, within so many milliseconds where it is asked for nothing. What it
            raises breaks the run off; without it a run that is stopped finishes what it is at.
        volumes: The run is over volumes, not slides.
    """
    bar = _Bar(volumes) if progress else None
    patience = 0 if serve else _PATIENCE
    try:
        while not work.wait(patience):
            _log()
            moment = work.progress() if on_progress or bar else None
            if moment is not None and bar:
                bar.update(moment)
            if moment is not None and on_progress:
                on_progress(moment)
            if serve:
                serve(_PATIENCE)
    except BaseException:
        if serve:
            work.abort()
        raise
    finally:
        work.stop()
        while not work.wait(1000):
            pass
        _log()
        moment = work.progress()
        if moment is not None and bar:
            bar.update(moment)
        if bar:
            bar.close()
    if moment is not None and on_progress:
        on_progress(moment)
