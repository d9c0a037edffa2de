"""`slidestream.torch`: windows for a `DataLoader`."""

import pytest

import slidestream as ss

torch = pytest.importorskip("torch")


def test_workers_walk_pieces(slide):
    from torch.utils.data import DataLoader

    from slidestream.torch import TileDataset

    walk = ss.tiles(slide, 64, batch=8, layout="nchw")
    everything = [tuple(place) for batch in walk for place in batch.coords.tolist()]
    alone = list(DataLoader(TileDataset(walk), batch_size=None))
    assert [tuple(place) for _, coords, _ in alone for place in coords.tolist()] == everything
    assert alone[0][0].shape == (8, 3, 64, 64) and alone[-1][0].shape[0] == len(everything) % 8
    assert len(TileDataset(walk)) == len(alone)
    spread = list(DataLoader(TileDataset(walk, lambda pixels: pixels.sum()), batch_size=None, num_workers=2))
    assert sorted(tuple(place) for _, coords, _ in spread for place in coords.tolist()) == sorted(everything)
    assert sum(int(total) for total, _, _ in spread) == sum(int(pixels.sum()) for pixels, _, _ in alone)
