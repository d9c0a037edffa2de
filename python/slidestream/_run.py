"""The whole pipeline in this process."""

from __future__ import annotations

import difflib
import inspect
import io
import json
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Mapping, NoReturn, Optional, Tuple, Union

import numpy
import numpy.typing

from slidestream import _core
from slidestream._arguments import (
    Path,
    choice,
    counted,
    flag,
    function,
    listed,
    number,
    path_text,
    paths_of,
    plain_text,
    shard_of,
    shown,
)
from slidestream._core import Progress, SlideResult
from slidestream._progress import logger, outcome_of, wait_for

if TYPE_CHECKING:
    import pandas


class RunResult:
    """What a run found. Arrays are views of its memory, which they keep."""

    def __init__(self, outcome: _core.Outcome) -> None:
        self._outcome = outcome
        self.slides: List[SlideResult] = outcome.slides
        """A result for each slide that was done or failed, in the order of the input."""

    def __repr__(self) -> str:
        return f"RunResult({counted(len(self.slides), 'slide')}, {len(self.failed)} failed, {counted(self.windows, 'window')})"

    def __iter__(self) -> Iterator[SlideResult]:
        return iter(self.slides)

    def __len__(self) -> int:
        return len(self.slides)

    def __getitem__(self, place: int) -> SlideResult:
        return self.slides[place]

    @property
    def failed(self) -> List[SlideResult]:
        """The slides that failed, or that one of the operators failed on: those with an ``error``."""
        return [slide for slide in self.slides if slide.error]

    @property
    def interrupted(self) -> bool:
        """Whether the run was stopped before all slides were reached."""
        return self._outcome.interrupted

    @property
    def backend(self) -> str:
        """``"cpu"`` or ``"cuda"``; empty where nothing was left to do."""
        return self._outcome.backend

    @property
    def seconds(self) -> float:
        """That the run took, without earlier ones."""
        return self._outcome.seconds

    @property
    def stages(self) -> Dict[str, float]:
        """Seconds that each stage of the pipeline was busy, summed over threads."""
        return self._outcome.stages

    @property
    def settings(self) -> str:
        """The whole configuration as TOML."""
        return self._outcome.settings

    @property
    def windows(self) -> int:
        """Windows of the spectrum, of all slides."""
        return self._outcome.windows

    @property
    def clipped(self) -> int:
        """The spectrum's values outside ``analysis.range``, of all slides. The histogram counts them in its end bins."""
        return self._outcome.clipped

    @property
    def mean(self) -> float:
        """Of the spectrum's values of all slides, in the unit of ``analysis.value``; NaN where there are none."""
        return self._outcome.mean

    @property
    def std(self) -> float:
        """Standard deviation (of the population), likewise."""
        return self._outcome.std

    def percentile(self, p: float) -> float:
        """Of the spectrum's values of all slides; p is 0 to 100. NaN where there are none, and in an end bin
        that can count clipped values. Raises ConfigError."""
        return self._outcome.percentile(number("p", p))

    def quantile(self, q: float) -> float:
        """Of the spectrum's values of all slides; q is 0 to 1. NaN where there are none, and in an end bin
        that can count clipped values. Raises ConfigError."""
        return self._outcome.quantile(number("q", q))

    @property
    def histogram(self) -> numpy.typing.NDArray[numpy.int64]:
        """int64: counts in each bin, of all slides."""
        return self._outcome.histogram

    @property
    def histograms(self) -> numpy.typing.NDArray[numpy.int64]:
        """int64: slides x bins: the counts of ``slides``, zeros for one that failed, and where no spectrum was computed."""
        table = numpy.zeros((len(self.slides), self._outcome.bins), numpy.int64)
        for row, slide in zip(table, self.slides):
            if len(slide.histogram) > 0:
                row[:] = slide.histogram
        return table

    @property
    def bin_edges(self) -> numpy.typing.NDArray[numpy.float64]:
        """float64: bins + 1 edges of the histogram, in the unit of ``analysis.value``."""
        low, high = self._outcome.range
        return numpy.linspace(low, high, self._outcome.bins + 1)

    @property
    def series(self) -> Dict[str, numpy.typing.NDArray[Any]]:
        """Arrays that statistics found of all slides together, by name, such as ``"radial"``."""
        return self._outcome.series

    def to_pandas(self) -> pandas.DataFrame:
        """A row a slide with the columns of slides.csv. Raises ImportError where pandas isn't installed."""
        import pandas

        text = io.StringIO(self._outcome.slides_csv())
        as_they_are = {"path": str, "error": str}
        return pandas.read_csv(text, keep_default_na=False, na_values=[""], converters=as_they_are)


# No value of the configuration has lists in lists; one that contains itself would have no end.
_MOST_NESTED = 16


def _toml(value: object, depth: int = 0) -> str:
    """A value of the configuration as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise _core.ConfigError(f"{shown(value)} is no text that TOML can hold")
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (list, tuple)):
        if depth == _MOST_NESTED:
            raise _core.ConfigError(f"a value of the configuration has lists nested more than {_MOST_NESTED} deep")
        return "[" + ", ".join(_toml(entry, depth + 1) for entry in value) + "]"
    if isinstance(value, (int, numpy.integer)):
        return str(int(value))
    if isinstance(value, (float, numpy.floating)):
        return repr(float(value))
    raise _core.ConfigError(f"{shown(value)} is no value of the configuration")


def _refuse_section(name: object, caller: Optional[Callable[..., Any]], without: str) -> NoReturn:
    """Raises ConfigError for what is no section of the configuration, and no argument of ``caller`` where it is one's.

    Args:
        without: A section that can't be given.
    """
    keys = [key.split(".", 1) for key in _core.keys() if not key.startswith(f"{without}.")]
    meant = [f"{section}={{{key!r}: ...}}" for section, key in keys if key == name]
    if not meant and isinstance(name, str):
        names = {section for section, _ in keys}
        if caller is not None:
            names |= {parameter.name for parameter in inspect.signature(caller).parameters.values()
                      if parameter.kind is not parameter.VAR_KEYWORD}
        meant = difflib.get_close_matches(name, sorted(names), 1)
    raise _core.ConfigError(f"{shown(name)} is " + ("" if caller is None else f"no argument of {caller.__name__}, and ") +
                            "no section of the configuration" + (f"; did you mean {' or '.join(meant)}?" if meant else ""))


def _settings(sections: Mapping[str, Any], caller: Optional[Callable[..., Any]] = None, without: str = "") -> List[str]:
    settings = []
    known = {key.partition(".")[0] for key in _core.keys()}
    for section, keys in sections.items():
        # The engine refuses keys of unknown sections itself.
        if section not in known and not (isinstance(keys, Mapping) and keys):
            _refuse_section(section, caller, without)
        if not isinstance(keys, Mapping):
            raise _core.ConfigError(f"{section} is {shown(keys)}; expected a dict of the keys of the section [{section}]")
        settings += [f"{plain_text('a section', section)}.{plain_text('a key', key)}={_toml(value)}"
                     for key, value in keys.items()]
    return settings


def _file(name: str, file: Optional[Path], ending: str) -> str:
    """A file that is written beside results: its ending says that it is meant. Raises ConfigError."""
    if file is None:
        return ""
    text = path_text(file, name)
    if not text.endswith(ending):
        raise _core.ConfigError(f"{name} is {shown(text)}; expected a name that ends in {ending}")
    return text


def check_progress(on_progress: object, progress: object) -> None:
    """Raises ConfigError."""
    function("on_progress", on_progress)
    flag("progress", progress)


def start(
    slides: Union[Path, Iterable[Path]],
    operators: Union[str, Iterable[str], None],
    out: Optional[Path],
    *,
    config: Union[Path, Mapping[str, Any], None],
    fresh: bool,
    retry_failed: bool,
    overwrite: bool,
    max_failures: Union[int, str, None],
    shard: Optional[Tuple[int, int]],
    shard_by: str,
    metrics: Optional[Path],
    trace: Optional[Path],
    sections: Mapping[str, Mapping[str, Any]],
    caller: Callable[..., Any],
    file: Optional[Path] = None,
    calls: Optional[_core.Calls] = None,
    volumes: bool = False,
) -> _core.Run:
    """Begins a run: see ``run``. ``file`` is the one file that is written, in place of a folder, and ``calls`` computes
    for the operator model. ``caller`` is the function that got the sections. With ``volumes`` the inputs are volumes.
    Raises ConfigError."""
    settings = []
    config_file = ""
    if isinstance(config, Mapping):
        settings += _settings(config)
    elif config is not None:
        config_file = path_text(config, "config")
    settings += _settings(sections, caller, "" if calls is None else "model")
    if operators is not None:
        names = [name.strip() for name in operators.split(",")] if isinstance(operators, str) else listed("operators", operators, "names")
        known = tuple(_core.operators())
        if not names:
            raise _core.ConfigError(f"operators is empty; expected {' or '.join(map(repr, known))}")
        names = [choice("operators", name, known) for name in names]
        settings.append(f"operators.run={_toml(names)}")
    if max_failures is not None and (isinstance(max_failures, bool) or not isinstance(max_failures, (int, str))):
        raise _core.ConfigError(f"max_failures is {shown(max_failures)}; expected a number, or a share such as '5%'")
    part, parts = (0, 0) if shard is None else shard_of(shard)
    _core.set_log_level(logger.getEffectiveLevel())
    return _core.Run(
        inputs=[path_text(slide, "volumes" if volumes else "slides") for slide in paths_of(slides)],
        config_file=config_file,
        settings=settings,
        out="" if out is None else path_text(out, "out"),
        file="" if file is None else path_text(file, "out"),
        fresh=flag("fresh", fresh),
        retry_failed=flag("retry_failed", retry_failed),
        overwrite=flag("overwrite", overwrite),
        max_failures="" if max_failures is None else plain_text("max_failures", str(max_failures)),
        shard="" if shard is None else f"{part + 1}/{parts}",
        shard_by=choice("shard_by", shard_by, ("path", "size")),
        metrics=_file("metrics", metrics, ".prom"),
        trace=_file("trace", trace, ".json"),
        calls=calls,
        volumes=volumes,
    )


def run(
    slides: Union[Path, Iterable[Path]] = (),
    operators: Optional[Iterable[str]] = None,
    out: Optional[Path] = None,
    *,
    config: Union[Path, Mapping[str, Any], None] = None,
    on_progress: Optional[Callable[[Progress], object]] = None,
    progress: bool = False,
    fresh: bool = False,
    retry_failed: bool = False,
    overwrite: bool = False,
    max_failures: Union[int, str, None] = None,
    shard: Optional[Tuple[int, int]] = None,
    shard_by: str = "path",
    metrics: Optional[Path] = None,
    trace: Optional[Path] = None,
    **sections: Mapping[str, Any],
) -> RunResult:
    """Runs the pipeline over slides, as the program ``pipeline`` does, in this process and without the GIL.

    Settings are those of the program, with its checks and messages: ``config`` first, then keyword arguments, one for
    each section of the configuration (docs/configuration.md)::

        run("slides/", ["spectrum", "sobel"], "results", image={"format": "ome-tiff"}, analysis={"stride": 64})

    With ``out`` results lie in that folder, as the program writes them; the same call again goes on where the last one
    stopped, and what comes back has the slides of earlier runs, too. Without it nothing is written, and only operators
    that make no files can run.

    Ctrl-C (and what ``on_progress`` raises) stops the run: slides whose last strip is in flight are finished if that takes
    less than 5 s, what is done is written, and the exception goes on.

    Messages go to the logger ``slidestream`` of Python's ``logging``.

    Args:
        slides: Slides, folders, and ``.list`` or ``.csv`` files.
        operators: What is computed (docs/operators.md). Default: the spectrum.
        out: Folder for results. ``shard``, ``max_failures``, ``metrics`` and ``trace`` are for runs that have one.
        config: A TOML file, or a dict of sections.
        on_progress: Called with a ``Progress`` some times a second, by the calling thread.
        progress: Shows a bar, on standard error or in a notebook: tqdm's, where it is installed.
        fresh: Moves an earlier run in the folder aside.
        retry_failed: Tries slides again that failed in an earlier run.
        overwrite: Replaces files that are there and that this program didn't write. Without it they are refused.
        max_failures: Ends the run when so many slides failed, or such a share (``"5%"``).
        shard: (i, n): does the i-th of n parts of the slides, from 0 (the program's ``--shard i+1/n``).
        shard_by: ``"path"`` or ``"size"``.
        metrics: A file for Prometheus, ``.prom``, kept up to date while the run goes on.
        trace: A file for ui.perfetto.dev, ``.json``.
        **sections: A dict of keys for each section of the configuration.

    Raises:
        ConfigError: A setting is wrong; nothing was started.
        OutputError: Results can't be written.
        EndedEarlyError: The run ended before its end: ``max_failures`` was reached, or a GPU was lost. What was done
            is in ``out``, and the same call does the rest.
        Error: The run itself failed. A slide that fails is no error:
            ``SlideResult.error`` says why.
    """
    check_progress(on_progress, progress)
    work = start(
        slides, operators, out, config=config, fresh=fresh, retry_failed=retry_failed,
        overwrite=overwrite, max_failures=max_failures, shard=shard, shard_by=shard_by, metrics=metrics, trace=trace, sections=sections,
        caller=run,
    )
    wait_for(work, on_progress, progress)
    return RunResult(outcome_of(work))
