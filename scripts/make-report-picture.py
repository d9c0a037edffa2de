#!/usr/bin/env python3
"""Takes README's picture of a report from a real run: `make-report-picture.py PIPELINE OUT.png`.

Makes synthetic slides of two kinds, analyses them, writes the report, and has Chromium show its upper part.
Needs chromium.
"""

import pathlib
import subprocess
import sys
import tempfile

WIDTH, HEIGHT = 1280, 1720


def main(arguments):
    if len(arguments) != 2:
        print("usage: make-report-picture.py PIPELINE OUT.png", file=sys.stderr)
        return 2
    pipeline, out = arguments
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        slides, results, manifest = folder / "slides", folder / "results", folder / "cohort.csv"
        slides.mkdir()
        rows = ["path,quality"]
        for seed in range(1, 13):
            blurred = seed % 3 == 0
            slide = slides / f"case-{seed:02}.svs"
            # A low quality stands for a scanner that loses the finest detail.
            subprocess.run([pipeline, "synth", "--out", slide, "--size", f"{5000 + 300 * seed}x{4200 + 100 * seed}",
                            "--seed", str(seed), "--quality", "60" if blurred else "85"], check=True)
            rows.append(f"{slide},{'quality 60' if blurred else 'quality 85'}")
        manifest.write_text("\n".join(rows) + "\n", encoding="utf-8")
        broken = slides / "case-13.svs"
        broken.write_bytes((slides / "case-01.svs").read_bytes()[:100_000])
        # One slide fails, on purpose.
        subprocess.run([pipeline, slides, "--out", results, "--maps", "npy"], check=False)
        html = folder / "report.html"
        subprocess.run([pipeline, "report", results, "--html", html, "--manifest", manifest, "--cohort", "quality"],
                       check=True)
        pathlib.Path(out).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                        f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={pathlib.Path(out).resolve()}", html.as_uri()],
                       check=True, stderr=subprocess.DEVNULL)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
