"""slidestream: whole-slide images as tensors, and its operators as functions.

``Slide`` opens a slide and reads regions of it, ``tiles`` walks slides in batches of windows, ``run`` runs the whole
pipeline, and ``map`` has any function compute tiles that are put together again. ``segment_volume`` and ``map_volume``
do the same with 3-D images. Arrays are NumPy's, or with
``device="cuda"`` lie on a GPU; both hand their memory on by DLPack (``torch.from_dlpack(batch.pixels)``).
"""

from slidestream import _core
from slidestream._core import (
    ConfigError,
    CudaError,
    DeviceArray,
    EndedEarlyError,
    Error,
    Level,
    OutputError,
    Progress,
    SlideError,
    SlideResult,
    StorageError,
    TileError,
)
from slidestream._map import MapResult, map
from slidestream._run import RunResult, run
from slidestream._slide import Slide, TissueMask
from slidestream._tiles import Batch, TileIterator, Tiles, tiles
from slidestream._volume import VolumeResult, map_volume, segment_volume

Error.__doc__ = "The base of all that the package raises, and what a run that failed as a whole raises."
ConfigError.__doc__ = "An argument or a setting is wrong; nothing was started."
SlideError.__doc__ = "A slide can't be read, or what was asked for can't be made of it. The message begins with its path."
StorageError.__doc__ = "The file system failed while a slide was read."
TileError.__doc__ = "A tile can't be decoded. What reads slides raises a SlideError that says so."
CudaError.__doc__ = "A GPU failed, or there is none that can be used."
EndedEarlyError.__doc__ = "A run ended before its end, as too many slides failed or a GPU was lost. The same run does the rest."
OutputError.__doc__ = "Results can't be written."

__version__: str = _core.version()

__all__ = [
    "Batch",
    "ConfigError",
    "CudaError",
    "DeviceArray",
    "EndedEarlyError",
    "Error",
    "Level",
    "MapResult",
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
    "TissueMask",
    "VolumeResult",
    "__version__",
    "map",
    "map_volume",
    "run",
    "segment_volume",
    "tiles",
]
