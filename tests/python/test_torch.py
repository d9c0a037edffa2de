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


def test_what_is_no_walk_is_refused(slide):
    from slidestream.torch import TileDataset

    for wrong in (None, 3, str(slide)):
        with pytest.raises(ss.ConfigError, match="walk is .*; expected what slidestream.tiles gives"):
            TileDataset(wrong)
    with pytest.raises(ss.ConfigError, match="transform is 3"):
        TileDataset(ss.tiles(slide), 3)
    assert repr(TileDataset(ss.tiles(slide))) == "TileDataset(Tiles(1 slide, windows of 256 x 256, 64 a batch, cpu))"


def test_each_epoch_has_an_order_of_its_own(slide):
    from slidestream.torch import TileDataset

    dataset = TileDataset(ss.tiles(slide, 90, batch=8, shuffle=3))

    def order():
        return [tuple(place) for _, coords, _ in dataset for place in coords.tolist()]

    first = order()
    dataset.set_epoch(1)
    second = order()
    dataset.set_epoch(0)
    assert order() == first != second and sorted(second) == sorted(first)
    with pytest.raises(ss.ConfigError, match="set_epoch is for a shuffled walk"):
        TileDataset(ss.tiles(slide, 90)).set_epoch(1)
