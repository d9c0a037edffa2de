#!/usr/bin/env python3
"""Rates of the GPU's decoders over codec, colour, sampling, size of tiles and output, as one Markdown table.

    bench/decode_table.py --pipeline build/cuda/pipeline --bench build/cuda/bench [--out TABLE.md] [SLIDE...]

Slides are made with `pipeline synth`; more may be named. The tiles of each, repeated to a slide of 65,664 x 43,264
pixels, go from compressed bytes in device memory to luminance, to RGB, and to both at once. A row whose rate to both is
less than 0.75 of that to RGB is marked: it fell off the fast way. Status 1 where a tile was wrong or flagged.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

OUTPUTS = ("luminance", "rgb", "both")
# Codec as `pipeline synth` calls it, and what a reader calls its colour and sampling.
CODECS = {
    "jpeg420": ("JPEG", "YCbCr 4:2:0"),
    "jpeg422": ("JPEG", "YCbCr 4:2:2"),
    "jpeg444": ("JPEG", "YCbCr 4:4:4"),
    "rgb": ("JPEG", "RGB"),
    "grey": ("JPEG", "grey"),
    "jpeg2000": ("JPEG 2000", "RGB"),
}
SIDES = (128, 256, 512, 1024)
# Below this share of RGB's rate, both at once cost far more than the luminance that is written beside it.
CLIFF = 0.75
PIXELS = 65664 * 43264


def made_slides(pipeline, folder, codecs, sides):
    """(codec, colour, slide, tiles to a batch) of each combination; jpeg_gpu_bench takes 0 for a whole slide's."""
    for codec in codecs:
        for side in sides:
            slide = folder / f"{codec}_{side}.svs"
            # Some hundred different tiles are enough; a small slide has fewer of the large ones.
            subprocess.run([pipeline, "synth", "--out", slide, "--size", "8192x8192", "--tile", str(side), "--codec", codec,
                            "--distinct", "300", "--levels", "1"], check=True, stdout=subprocess.DEVNULL)
            yield (*CODECS[codec], slide, PIXELS // side**2 if codec == "jpeg2000" else 0)


def rates(bench, codec, slide, tiles, repeat, folder):
    """The benchmark's rows of a slide by output."""
    program = bench / ("jpeg2000_gpu_bench" if codec == "JPEG 2000" else "jpeg_gpu_bench")
    rows = {}
    for output in OUTPUTS:
        report = folder / "report.json"
        report.unlink(missing_ok=True)
        done = subprocess.run([program, slide, "--tiles", str(tiles), "--format", output, "--repeat", str(repeat), "--json", report],
                              capture_output=True, text=True)
        if not report.exists():
            raise SystemExit(f"{program} {slide}: {(done.stderr or done.stdout).strip()}")
        measured = json.loads(report.read_text())
        if len(measured) != 1:
            raise SystemExit(f"{program} {slide}: {len(measured)} rows in place of one")
        rows[output] = measured[0]
    return rows


def row_text(codec, colour, rows):
    first = rows["luminance"]
    both, rgb = rows["both"]["gpx_per_s"], rows["rgb"]["gpx_per_s"]
    cells = [codec, colour, "{} x {}".format(*first["tile"])]
    if "mean_bytes" in first:
        cells.append(f"{first['mean_bytes'] / 1000:.1f} KB")
    else:
        cells.append("")
    cells += [f"{rows[output]['gpx_per_s']:.0f}" for output in OUTPUTS]
    cells.append("cliff" if both < CLIFF * rgb else "")
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("slides", nargs="*", type=pathlib.Path, help="more slides, of JPEG tiles")
    parser.add_argument("--pipeline", required=True, type=pathlib.Path, help="the program")
    parser.add_argument("--bench", required=True, type=pathlib.Path, help="the folder of the benchmark programs")
    parser.add_argument("--codecs", default=",".join(CODECS), help="some of: %(default)s")
    parser.add_argument("--sides", default=",".join(map(str, SIDES)), help="of tiles, pixels (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=5, help="runs of which the median counts (default: %(default)s)")
    parser.add_argument("--out", type=pathlib.Path, help="file for the table, too")
    arguments = parser.parse_args()
    codecs, sides = arguments.codecs.split(","), [int(side) for side in arguments.sides.split(",")]
    if unknown := [codec for codec in codecs if codec not in CODECS]:
        parser.error(f"--codecs: {unknown[0]} is none of {', '.join(CODECS)}")
    lines = ["| codec | colour | tiles | mean | luminance | RGB | both | |", "|---|---|---|---|---|---|---|---|"]
    unsound = []
    print(*lines, sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        more = (("JPEG", slide.stem, slide, 0) for slide in arguments.slides)
        for codec, colour, slide, tiles in [*made_slides(arguments.pipeline, folder, codecs, sides), *more]:
            rows = rates(arguments.bench, codec, slide, tiles, arguments.repeat, folder)
            unsound += [f"{slide.name} to {output}" for output, row in rows.items() if row["wrong"] or row["flagged"]]
            lines.append(row_text(codec, colour, rows))
            print(lines[-1], flush=True)
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if unsound:
        sys.exit("wrong or flagged tiles: " + ", ".join(unsound))


if __name__ == "__main__":
    main()
