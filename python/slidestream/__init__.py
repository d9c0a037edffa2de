"""slidestream: whole-slide images as tensors, and its operators as functions.

``Slide`` opens a slide and reads regions of it, ``tiles`` walks slides in batches of windows, and ``run`` runs the
whole pipeline. Arrays are NumPy's, which hand their memory on by DLPack (``torch.from_dlpack(batch.pixels)``).
"""

from slidestream._core import (
    ConfigError,
    CudaError,
    Error,
    Level,
    OutputError,
    SlideError,
    StorageError,
    TileError,
    __version__,
)
from slidestream._run import Progress, RunResult, SlideResult, run
from slidestream._slide import Slide
from slidestream._tiles import Batch, TileIterator, Tiles, tiles

__all__ = [
    "Batch",
    "ConfigError",
    "CudaError",
    "Error",
    "Level",
    "OutputError",
    "Progress",
    "RunResult",
    "Slide",
    "SlideError",
    "SlideResult",
    "StorageError",
    "TileError",
    "TileIterator",
    "Tiles",
    "__version__",
    "run",
    "tiles",
]
