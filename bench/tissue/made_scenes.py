"""Made-up slides at 8 micrometres per pixel, and where their tissue is.

Each scene is drawn with four times as many pixels and averaged, so that edges are mixed as a scanner mixes them. Light is
what passes through glass and stains (Beer and Lambert); ink and frames are drawn over it.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Tuple

import numpy
from scipy import ndimage

Image = numpy.ndarray
WIDTH, HEIGHT, FINE = 1000, 750, 2
PIXEL = 8.0  # micrometres: a slide has WIDTH * PIXEL x HEIGHT * PIXEL = 8,000 x 6,000
GLASS = (242.0, 242.0, 244.0)
# Optical densities of red, green and blue, of unit length (Ruifrok and Johnston, 2001).
HEMATOXYLIN = numpy.array([0.650, 0.704, 0.286])
EOSIN = numpy.array([0.072, 0.990, 0.105])
DAB = numpy.array([0.268, 0.570, 0.776])
# What a stroke of a pen lets through, and what of the light it scatters.
PENS = {"green": (20, 120, 60), "blue": (25, 50, 150), "red": (190, 25, 40), "black": (28, 26, 32)}


class Scene:
    """A slide that is being drawn. Coordinates are micrometres; the slide has 8,000 x 6,000."""

    def __init__(self, seed: int, glass: Tuple[float, float, float] = GLASS) -> None:
        self.random = numpy.random.default_rng(seed)
        shape = (HEIGHT * FINE, WIDTH * FINE)
        self.y, self.x = numpy.mgrid[: shape[0], : shape[1]].astype(numpy.float32) * (PIXEL / FINE) + PIXEL / 2 / FINE
        self.density = numpy.zeros((*shape, 3), numpy.float32)
        self.glass = numpy.array(glass, numpy.float32)
        self.tissue = numpy.zeros(shape, bool)
        self.hidden = numpy.zeros(shape, bool)
        self.over: List[Tuple[Image, Image, float]] = []

    def noise(self, um: float) -> Image:
        """Smooth, of mean 0 and deviation 1, with grains of this size."""
        coarse = max(1, int(um * FINE / PIXEL / 2))
        shape = [side // coarse + 8 for side in self.tissue.shape]
        made = ndimage.zoom(self.random.standard_normal(shape), coarse, order=1)[: self.tissue.shape[0], : self.tissue.shape[1]]
        return ((made - made.mean()) / made.std()).astype(numpy.float32)

    def blob(self, x: float, y: float, rx: float, ry: float, rough: float = 0.12) -> Image:
        """An ellipse with an uneven edge."""
        away = numpy.hypot((self.x - x) / rx, (self.y - y) / ry)
        return away + rough * self.noise(min(rx, ry) / 2) * 0.5 < 1.0

    def stain(self, where: Image, eosin: float = 0.45, hematoxylin: float = 0.35, third: Tuple[Image, float] | None = None) -> None:
        """Tissue of two stains. Densities are means; both vary with grains of 30 and of 200 micrometres."""
        vary = numpy.exp(0.25 * self.noise(30) + 0.2 * self.noise(200))
        nuclei = numpy.exp(0.5 * self.noise(24) + 0.3 * self.noise(300))
        both = (eosin * vary)[..., None] * EOSIN + (hematoxylin * nuclei)[..., None] * HEMATOXYLIN
        if third is not None:
            both = both + (third[1] * numpy.exp(0.5 * self.noise(40)) * third[0])[..., None] * DAB
        self.density[where] = both[where]
        self.tissue |= where

    def cut(self, where: Image) -> None:
        """Glass again, which isn't tissue."""
        self.density[where] = 0.0
        self.tissue &= ~where

    def line(self, points: List[Tuple[float, float]], width: float) -> Image:
        """A stroke through these points."""
        near = numpy.full(self.tissue.shape, numpy.inf, numpy.float32)
        for (ax, ay), (bx, by) in zip(points, points[1:]):
            dx, dy = bx - ax, by - ay
            t = numpy.clip(((self.x - ax) * dx + (self.y - ay) * dy) / (dx * dx + dy * dy), 0.0, 1.0)
            near = numpy.minimum(near, numpy.hypot(self.x - ax - t * dx, self.y - ay - t * dy))
        return near < width / 2

    def pen(self, where: Image, colour: str) -> None:
        """A pen's stroke, a little uneven, through which tissue shows faintly."""
        ink = numpy.array(PENS[colour], numpy.float32) * (1.0 + 0.04 * self.noise(600))[..., None]
        self.over.append((where, ink, 0.93))
        self.hidden |= where

    def ring(self, x: float, y: float, radius: float, width: float) -> Image:
        away = numpy.hypot(self.x - x, self.y - y) + 30.0 * self.noise(1500)
        return numpy.abs(away - radius) < width / 2

    def frame(self, where: Image, colour: Tuple[float, float, float]) -> None:
        self.over.append((where, numpy.broadcast_to(numpy.array(colour, numpy.float32), self.density.shape), 1.0))
        self.hidden |= where

    def done(self) -> Tuple[Image, Image]:
        """RGB and the mask, at 8 micrometres per pixel."""
        light = self.glass * numpy.exp(-self.density)
        light = ndimage.gaussian_filter(light, (0.6, 0.6, 0.0))
        for where, ink, covers in self.over:
            share = ndimage.gaussian_filter(where.astype(numpy.float32), 0.8)[..., None] * covers
            light = light * (1.0 - share) + ink * share
        small = light.reshape(HEIGHT, FINE, WIDTH, FINE, 3).mean((1, 3))
        small += self.random.normal(0.0, 0.8, small.shape)
        truth = (self.tissue & ~self.hidden).reshape(HEIGHT, FINE, WIDTH, FINE).mean((1, 3)) >= 0.5
        return numpy.clip(numpy.rint(small), 0, 255).astype(numpy.uint8), truth


def section(scene: Scene, x: float = 4000, y: float = 3000, rx: float = 2200, ry: float = 1700, **stains: float) -> Image:
    where = scene.blob(x, y, rx, ry)
    scene.stain(where, **stains)
    return where


def weak(s: Scene) -> None:
    section(s, eosin=0.25, hematoxylin=0.15)


def pale(s: Scene) -> None:
    section(s, eosin=0.085, hematoxylin=0.02)


def pale_beside_strong(s: Scene) -> None:
    section(s, 2300, 3000, 1500, 2000, eosin=0.7, hematoxylin=0.6)
    section(s, 5900, 3000, 1400, 1900, eosin=0.085, hematoxylin=0.02)


def tinted_frame(s: Scene) -> None:
    section(s, rx=900, ry=850)
    s.frame((s.x < 768) | (s.x > 8000 - 768) | (s.y < 768) | (s.y > 6000 - 768), (8, 6, 12))


def black_sides(s: Scene) -> None:
    section(s, x=3600)
    s.frame((s.x < 500) | (s.y > 5600), (2, 1, 2))


def dark_frame_on_tissue(s: Scene) -> None:
    section(s, rx=4200, ry=2200)
    s.frame((s.x < 300) | (s.x > 7700), (22, 20, 30))


def circled(colour: str) -> Callable[[Scene], None]:
    def draw(s: Scene) -> None:
        section(s, rx=1100, ry=1000)
        s.pen(s.ring(4000, 3000, 2100, 260), colour)

    return draw


def struck(colour: str) -> Callable[[Scene], None]:
    def draw(s: Scene) -> None:
        section(s, x=3600, rx=2000)
        s.pen(s.line([(900, 900), (3000, 2400), (3500, 4800)], 320), colour)
        s.pen(s.line([(6400, 800), (7200, 2600), (6500, 5200)], 400), colour)

    return draw


def fatty(s: Scene) -> None:
    where = section(s, rx=2600, ry=2000)
    inside = ndimage.binary_erosion(where, iterations=16)
    fat = s.blob(4300, 3100, 1700, 1300)
    for _ in range(1400):
        x, y = s.random.uniform(2300, 6300), s.random.uniform(1500, 4700)
        radius = s.random.uniform(25, 48)
        j = slice(max(0, int((y - 60) / PIXEL * FINE)), int((y + 60) / PIXEL * FINE))
        i = slice(max(0, int((x - 60) / PIXEL * FINE)), int((x + 60) / PIXEL * FINE))
        cell = numpy.hypot(s.x[j, i] - x, s.y[j, i] - y) < radius
        s.density[j, i][cell & inside[j, i] & fat[j, i]] = 0.0


def clumps(s: Scene) -> None:
    places: List[Tuple[float, float]] = []
    while len(places) < 40:
        x, y = s.random.uniform(300, 7700), s.random.uniform(300, 5700)
        if all(abs(x - a) + abs(y - b) > 320 for a, b in places):
            places.append((x, y))
    where = numpy.zeros(s.tissue.shape, bool)
    for x, y in places:
        where |= numpy.hypot(s.x - x, s.y - y) < 50
    s.stain(where)


def fragments(s: Scene) -> None:
    for _ in range(30):
        r = s.random.uniform(150, 380)
        s.stain(s.blob(s.random.uniform(500, 7500), s.random.uniform(500, 5500), r, r * s.random.uniform(0.5, 1.0), 0.2))


def biopsies(s: Scene) -> None:
    for y in (1200, 2600, 4100):
        bend = 150 * numpy.sin(s.x / 900 + y)
        where = (numpy.abs(s.y - y - bend) < 210 + 25 * s.noise(300)) & (s.x > 700) & (s.x < 7000)
        s.stain(where)


def folded(s: Scene) -> None:
    where = section(s, eosin=0.4, hematoxylin=0.3)
    fold = s.line([(2500, 2000), (4200, 3200), (5200, 4400)], 160) & where
    s.density[fold] *= 2.6


def bubbles(s: Scene) -> None:
    section(s, x=2600, rx=1700, ry=1600)
    for x, y, r in ((6000, 1600, 700), (6500, 4100, 900), (4700, 5000, 350)):
        away = numpy.hypot(s.x - x, s.y - y)
        s.over.append((numpy.abs(away - r) < 30, numpy.broadcast_to(numpy.float32([120, 121, 123]), s.density.shape), 0.8))
        s.over.append((away < r - 30, numpy.broadcast_to(numpy.float32([234, 234, 237]), s.density.shape), 1.0))


def glass_edge(s: Scene) -> None:
    section(s, x=4600, rx=1900)
    slope = s.x - 900 - 0.05 * s.y
    s.over.append((slope < 0, numpy.broadcast_to(numpy.float32([214, 215, 215]), s.density.shape), 1.0))
    s.over.append((numpy.abs(slope) < 24, numpy.broadcast_to(numpy.float32([96, 97, 98]), s.density.shape), 0.9))


def two_sections(s: Scene) -> None:
    section(s, 2200, 3000, 1500, 2100, eosin=0.6, hematoxylin=0.5)
    section(s, 5900, 3000, 1500, 2000, eosin=0.2, hematoxylin=0.12)


def cytology(s: Scene) -> None:
    where = numpy.zeros(s.tissue.shape, bool)
    for _ in range(130):
        x, y = s.random.uniform(900, 7100), s.random.uniform(900, 5100)
        r = s.random.uniform(50, 150)
        where |= numpy.hypot((s.x - x), (s.y - y) * s.random.uniform(0.8, 1.3)) < r
    s.stain(where, eosin=0.25, hematoxylin=0.5)


def empty(s: Scene) -> None:
    pass


def empty_with_pen(s: Scene) -> None:
    s.pen(s.line([(1500, 1500), (3500, 4000), (6500, 2000)], 300), "blue")
    s.pen(s.ring(5000, 4200, 900, 240), "red")


def dab(s: Scene) -> None:
    where = s.blob(4000, 3000, 2200, 1700)
    s.stain(where, eosin=0.0, hematoxylin=0.3, third=(s.blob(3400, 2700, 900, 800).astype(numpy.float32), 0.8))


def dust(s: Scene) -> None:
    """Dust beside whatever was drawn."""
    for _ in range(260):
        x, y, r = s.random.uniform(0, 8000), s.random.uniform(0, 6000), s.random.uniform(5, 16)
        j = slice(max(0, int((y - 20) / PIXEL * FINE)), int((y + 20) / PIXEL * FINE) + 1)
        i = slice(max(0, int((x - 20) / PIXEL * FINE)), int((x + 20) / PIXEL * FINE) + 1)
        speck = (numpy.hypot(s.x[j, i] - x, s.y[j, i] - y) < r) & ~s.tissue[j, i]
        s.density[j, i][speck] = s.random.uniform(0.8, 1.4, 3)


SCENES: Dict[str, Callable[[Scene], None]] = {
    "empty": empty, "tinted glass": weak, "pale": pale, "pale beside strong": pale_beside_strong,
    "frame, tinted": tinted_frame, "black at two sides": black_sides, "frame over tissue": dark_frame_on_tissue,
    "green circle": circled("green"), "black circle": circled("black"),
    "green strokes": struck("green"), "blue strokes": struck("blue"), "red strokes": struck("red"),
    "black strokes": struck("black"), "fat": fatty, "40 clumps": clumps, "fragments": fragments, "biopsies": biopsies,
    "folded": folded, "bubbles and dust": lambda s: (bubbles(s), dust(s)), "glass edge": glass_edge,
    "two sections": two_sections, "cytology": cytology, "empty, with pen": empty_with_pen, "DAB": dab,
}  # fmt: skip


def make(name: str) -> Tuple[Image, Image]:
    """RGB of a scene, and its tissue."""
    scene = Scene(list(SCENES).index(name) + 1, (240.0, 237.0, 228.0) if "tinted glass" in name else GLASS)
    SCENES[name](scene)
    return scene.done()
