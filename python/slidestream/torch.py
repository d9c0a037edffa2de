"""PyTorch: windows of slides as an ``IterableDataset``. Imports torch, which the package doesn't need otherwise."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Optional, Tuple

import torch
from torch.utils.data import IterableDataset, get_worker_info

from slidestream._arguments import function, shown, whole
from slidestream._core import ConfigError
from slidestream._tiles import Tiles


class TileDataset(IterableDataset):  # type: ignore[type-arg]
    """Windows of slides for a ``DataLoader`` with ``batch_size=None``: batches come as they are.

    Each item is ``(pixels, coords, slide)``: a uint8 tensor of ``count`` windows that shares the memory of the batch, x
    and y of each window in pixels of level 0 (int64, count x 2), and which of the paths it is of (int32). Of several
    workers each walks a piece of the slides' windows; of several ranks each gives its own ``shard`` to ``tiles``. One
    process is enough as a rule, since ``tiles`` decodes with several threads: ``num_workers=0``. With ``device="cuda"``
    pixels are tensors on the GPU, and there must be no workers, or those that are started by ``spawn``; what these get,
    ``transform`` too, must be something that can be pickled, so a function of a module and no lambda.

    Args:
        walk: What ``slidestream.tiles`` gives.
        transform: Called with the pixels; what it gives stands in their place.

    Raises:
        ConfigError: An argument is none of these.
    """

    def __init__(self, walk: Tiles, transform: Optional[Callable[[torch.Tensor], Any]] = None) -> None:
        super().__init__()
        if not isinstance(walk, Tiles):
            raise ConfigError(f"walk is {shown(walk)}; expected what slidestream.tiles gives")
        function("transform", transform)
        self.walk = walk
        self.transform = transform
        self._seed: Optional[int] = None

    def set_epoch(self, epoch: int) -> None:
        """Gives a shuffled walk another order: the seed of ``shuffle`` plus the epoch, in all ranks and workers alike.
        Call it before each epoch. Raises ConfigError."""
        if self._seed is None:
            self._seed = self.walk.shuffle
        if self._seed is None:
            raise ConfigError("set_epoch is for a shuffled walk: give tiles a seed, shuffle=0")
        self.walk = self.walk.reshuffled(self._seed + whole("epoch", epoch))

    def __iter__(self) -> Iterator[Tuple[Any, torch.Tensor, torch.Tensor]]:
        worker = get_worker_info()
        walk = self.walk if worker is None else self.walk.split(worker.id, worker.num_workers)
        for batch in walk:
            pixels = torch.from_dlpack(batch.pixels)[: batch.count]
            if self.transform is not None:
                pixels = self.transform(pixels)
            yield pixels, torch.from_numpy(batch.coords), torch.from_numpy(batch.slide)

    def __repr__(self) -> str:
        return f"TileDataset({self.walk!r})"

    def __len__(self) -> int:
        """Batches of one process: see ``Tiles.count``. Of several workers each has a last batch of its own, which may be
        short, so that there can be some more; PyTorch then warns of its length, and no window is there twice."""
        return len(self.walk)
