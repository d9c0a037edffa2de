"""A slide as strips of rows, read with cuCIM."""

import os


def plan(rows, height):
    """(first row, rows) of every strip of at most `height` rows."""
    return [(top, min(height, rows - top)) for top in range(0, rows, height)]


class Reader:
    """Strips of level 0 in red, green and blue, 8 bits each: rows x width x 3.

    decode is "cpu" (cuCIM's threads, arrays on the host) or "cuda" (cuCIM's nvJPEG, arrays on the GPU).
    """

    def __init__(self, slide, decode, workers=None):
        from cucim import CuImage

        self.image = CuImage(str(slide))
        self.decode = decode
        self.workers = workers or os.cpu_count()
        self.rows, self.width = self.image.shape[:2]

    def read(self, top, rows):
        region = self.image.read_region(location=(0, top), size=(self.width, rows), level=0, device=self.decode,
                                        num_workers=self.workers)
        if self.decode == "cuda":
            import cupy

            return cupy.asarray(region)
        import numpy

        return numpy.asarray(region)
