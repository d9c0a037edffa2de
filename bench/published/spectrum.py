"""The job in PyTorch: luminance, smoothing, windows, transforms, mean and standard deviation of 20 log10(1 + |F|).

The same definitions as the program's: a Gaussian of radius 3 and sigma 1.4 over the slide as a whole, mirrored at its
edges; windows of 256 x 256 every 128; all 65,536 coefficients of a window count. Histograms are left out: the published
systems give mean and standard deviation.
"""

import math

import torch

RADIUS, SIGMA = 3, 1.4
WINDOW, STRIDE = 256, 128
# Windows transformed at once: enough to fill a GPU, few enough that spectra take about 1 GB.
WINDOWS_AT_ONCE = 2048


class Smoother:
    """Strips of RGB in row order -> smoothed rows, as soon as the rows below them are there."""

    def __init__(self, rows, device):
        self.rows_left = rows
        self.device = device
        self.carried = None
        taps = [math.exp(-0.5 * (i / SIGMA) ** 2) for i in range(-RADIUS, RADIUS + 1)]
        self.taps = torch.tensor([tap / sum(taps) for tap in taps], dtype=torch.float32, device=device)
        # Convolutions in TF32 would be off by 1 in 1000.
        torch.backends.cudnn.allow_tf32 = False

    @staticmethod
    def luminance(rgb):
        rgb = rgb.to(torch.int32)
        return ((19595 * rgb[..., 0] + 38470 * rgb[..., 1] + 7471 * rgb[..., 2] + 32768) >> 16).to(torch.float32)

    def push(self, rgb):
        """rgb: rows x width x 3, uint8, on any device; the result is on this one's."""
        grey = self.luminance(rgb.to(self.device, non_blocking=True))
        self.rows_left -= grey.shape[0]
        if self.carried is None:
            parts = [grey[1:RADIUS + 1].flip(0), grey]
        else:
            parts = [self.carried, grey]
        if self.rows_left <= 0:
            parts.append(grey[-RADIUS - 1:-1].flip(0))
        grey = torch.cat(parts)
        self.carried = grey[-2 * RADIUS:].clone()
        image = torch.nn.functional.pad(grey[None, None], (RADIUS, RADIUS, 0, 0), mode="reflect")
        image = torch.nn.functional.conv2d(image, self.taps.view(1, 1, 1, -1))
        return torch.nn.functional.conv2d(image, self.taps.view(1, 1, -1, 1))[0, 0]


class Statistics:
    """Smoothed rows in row order -> sums over all windows' values."""

    def __init__(self, device):
        self.rows = None
        self.windows = 0
        weights = torch.full((WINDOW // 2 + 1,), 2.0, dtype=torch.float64, device=device)
        weights[0] = weights[-1] = 1.0
        self.weights = weights
        self.sum = torch.zeros((), dtype=torch.float64, device=device)
        self.sum_of_squares = torch.zeros((), dtype=torch.float64, device=device)

    def push(self, rows):
        if self.rows is not None:
            rows = torch.cat([self.rows, rows])
        complete = max(0, (rows.shape[0] - WINDOW) // STRIDE + 1)
        if complete:
            tiles = rows.unfold(0, WINDOW, STRIDE).unfold(1, WINDOW, STRIDE)
            at_once = max(1, WINDOWS_AT_ONCE // tiles.shape[1])
            for first in range(0, complete, at_once):
                self.transform(tiles[first:first + at_once].reshape(-1, WINDOW, WINDOW))
        self.rows = rows[complete * STRIDE:].clone()

    def transform(self, windows):
        values = torch.fft.rfft2(windows).abs().add_(1.0).log10_().mul_(20.0)
        self.windows += windows.shape[0]
        self.sum += values.sum(dim=(0, 1), dtype=torch.float64) @ self.weights
        self.sum_of_squares += values.square_().sum(dim=(0, 1), dtype=torch.float64) @ self.weights

    def result(self):
        """(windows, mean, standard deviation); waits for the GPU."""
        count = self.windows * WINDOW * WINDOW
        if not count:
            raise ValueError("no whole window")
        mean = self.sum.item() / count
        return self.windows, mean, math.sqrt(max(0.0, self.sum_of_squares.item() / count - mean * mean))
