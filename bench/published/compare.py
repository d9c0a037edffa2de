#!/usr/bin/env python3
"""The published architectures beside the program, on one slide, on one machine, one after the other:

    compare.py SLIDE [--pipeline PATH] [--json]

A passes strips of 256 rows through processes' queues, pickled, B takes strips of 256 straight to the GPU, B+ strips of
1024 with the next ones preloaded; all three with cuCIM, CuPy and PyTorch, each with the better of cuCIM's decoders. The
program runs with every configuration named; its time is that of a run over several names of the slide, divided.
Needs a GPU and these Python packages: cucim (cucim-cu13), cupy (cupy-cuda13x), torch, numpy.
"""

import argparse
import csv
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGES = {"cucim": "cucim-cu13", "cupy": "cupy-cuda13x", "numpy": "numpy", "torch": "torch"}
DECODERS = ("cpu", "cuda")


def missing_packages(device):
    wanted = [name for name in PACKAGES if device != "cpu" or name != "cupy"]
    return [name for name in wanted if importlib.util.find_spec(name) is None]


def row(what, decode, seconds, pixels, result, note=""):
    windows, mean, std = result
    return {"architecture": what, "decode": decode, "seconds_per_slide": seconds,
            "gigapixels_per_second": pixels / seconds / 1e9, "windows": windows, "mean_db": mean, "std_db": std,
            "note": note}


def failed(what, decode, why):
    return {"architecture": what, "decode": decode, "seconds_per_slide": None, "gigapixels_per_second": None,
            "windows": None, "mean_db": None, "std_db": None, "note": why}


def published_rows(run, name, rows, width, decoders, probe_rows):
    """A row for each decoder: the faster over the first rows takes the whole slide, the other's time is estimated.

    run(decode, rows) gives (seconds, (windows, mean, standard deviation)).
    """
    probe = min(rows, probe_rows) if len(decoders) > 1 else rows
    measured, table = {}, []
    for decode in decoders:
        try:
            measured[decode] = run(decode, probe)
        except Exception as error:
            table.append(failed(name, decode, str(error)))
    for place, decode in enumerate(sorted(measured, key=lambda decode: measured[decode][0])):
        seconds, result = measured[decode]
        if place > 0:
            estimate = f"from its first {probe} rows" if probe < rows else ""
            table.append(row(name, decode, seconds * rows / probe, rows * width, (None, None, None), estimate))
            continue
        try:
            if probe < rows:
                seconds, result = run(decode, rows)
            table.append(row(name, decode, seconds, rows * width, result))
        except Exception as error:
            table.append(failed(name, decode, str(error)))
    return table


def measure(options):
    """One architecture's rows, on standard output as JSON; what the process of --measure does."""
    from architectures import ARCHITECTURES
    from strips import Reader

    if options.device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch finds no GPU")
    reader = Reader(options.slide, "cpu")

    def run(decode, rows):
        return ARCHITECTURES[options.measure](options.slide, decode, rows, options.workers, options.device)

    decoders = DECODERS if options.decode == "both" else (options.decode,)
    print(json.dumps(published_rows(run, options.measure, reader.rows, reader.width, decoders, options.probe_rows)))


def measured_rows(name, options):
    """The same from here: a process for each architecture, so that none has another's memory or threads in its way."""
    command = [sys.executable, HERE / "compare.py", options.slide, "--measure", name, "--decode", options.decode,
               "--probe-rows", str(options.probe_rows), "--workers", str(options.workers), "--device", options.device]
    try:
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=options.timeout)
    except subprocess.TimeoutExpired:
        return [failed(name, options.decode, f"not done after {options.timeout:g} s")]
    if run.returncode:
        lines = [line for line in run.stderr.splitlines() if line.strip()]
        return [failed(name, options.decode, lines[-1] if lines else f"status {run.returncode}")]
    return json.loads(run.stdout.splitlines()[-1])


def names_of(slide, count, folder):
    """Copies of the slide in a folder: links to one file are one slide to the program."""
    slide = pathlib.Path(slide).resolve()
    names = [folder / f"{number}{slide.suffix}" for number in range(count)]
    for name in names:
        shutil.copyfile(slide, name)
    return names


def own_row(config, pixels, options):
    """The program on several names of the slide; read from the files that it writes."""
    what = f"slidestream, {config.relative_to(ROOT) if config.is_relative_to(ROOT) else config}"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        slides = names_of(options.slide, options.own_slides, folder)
        try:
            run = subprocess.run([options.pipeline, "--config", config, "--quiet", "--out", folder / "out", *slides],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=options.timeout)
        except subprocess.TimeoutExpired:
            return failed(what, "", f"not done after {options.timeout:g} s")
        if run.returncode:
            lines = run.stderr.strip().splitlines()
            return failed(what, "", lines[-1] if lines else f"status {run.returncode}")
        corpus = json.loads((folder / "out" / "corpus.json").read_text(encoding="utf-8"))
        with open(folder / "out" / "slides.csv", newline="", encoding="utf-8") as file:
            done = list(csv.DictReader(file))
    if len(done) != len(slides):
        return failed(what, "", f"ran {len(done)} slides of {len(slides)}")
    slide = done[0]
    result = int(slide["windows"]), float(slide["mean_db"]), float(slide["std_db"])
    return row(what, corpus["settings"]["decode"]["device"], corpus["seconds"] / len(slides), pixels, result,
               f"{corpus['backend']}, a run of {len(slides)}")


def text_table(table):
    def shown(value, digits):
        return "" if value is None else f"{value:.{digits}f}"

    lines = ["| architecture | JPEG decoded by | s per slide | Gpx/s | mean dB | std dB | |", "|---|---|---|---|---|---|---|"]
    for entry in table:
        seconds = shown(entry["seconds_per_slide"], 3)
        lines.append(f"| {entry['architecture']} | {entry['decode']} | {seconds} | "
                     f"{shown(entry['gigapixels_per_second'], 2)} | {shown(entry['mean_db'], 4)} | "
                     f"{shown(entry['std_db'], 4)} | {entry['note']} |")
    return "\n".join(lines)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("slide")
    parser.add_argument("--pipeline", help="the program; default: bin/pipeline of a bundle, else build/cuda/pipeline")
    parser.add_argument("--config", action="append", type=pathlib.Path,
                        help="a configuration for the program; may be repeated; default: h100.toml and published/*.toml")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    parser.add_argument("--only", default="A,B,B+,own", help="which to run, of A,B,B+,own; default: all")
    parser.add_argument("--decode", choices=("both", *DECODERS), default="both", help="cuCIM's decoder; default: the better")
    parser.add_argument("--probe-rows", type=int, default=8192, metavar="N",
                        help="rows on which the two decoders are compared; default 8192")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="cuCIM's threads; default: one a core")
    parser.add_argument("--own-slides", type=int, default=8, metavar="N",
                        help="names of the slide in one run of the program; default 8")
    parser.add_argument("--timeout", type=float, default=300, metavar="S", help="for each architecture; default 300 s")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda",
                        help="cpu: PyTorch without a GPU, to look at results, not at times")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.only = options.only.split(",")
    unknown = set(options.only) - {"A", "B", "B+", "own"}
    if unknown or options.probe_rows < 1024 or options.own_slides < 1 or options.workers < 1:
        parser.error(f"--only knows no {', '.join(sorted(unknown))}" if unknown else "a number is too small")
    if options.device == "cpu":
        options.decode = "cpu"
    built = ROOT / "bin" / "pipeline"
    options.pipeline = options.pipeline or (built if built.exists() else ROOT / "build" / "cuda" / "pipeline")
    options.config = options.config or [ROOT / "configs" / "h100.toml",
                                        *sorted((ROOT / "configs" / "published").glob("*.toml"))]
    return options


def gpu_name():
    try:
        run = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
    except OSError:
        return None
    return run.stdout.splitlines()[0] if run.returncode == 0 and run.stdout.strip() else None


def told(table, rows):
    """Adds rows, and says each: the whole takes minutes."""
    for entry in rows:
        seconds = entry["seconds_per_slide"]
        print(f"{entry['architecture']} {entry['decode']}: {entry['note'] if seconds is None else f'{seconds:.3f} s'}",
              file=sys.stderr)
    table += rows


def fail(why):
    print(f"compare.py: {why}", file=sys.stderr)
    return 2


def main(arguments):
    options = parse(arguments)
    if not os.path.isfile(options.slide):
        return fail(f"{options.slide}: no such file")
    missing = missing_packages(options.device)
    if missing:
        return fail("missing Python packages: " + ", ".join(f"{name} (pip install {PACKAGES[name]})" for name in missing))
    sys.path.insert(0, str(HERE))
    if options.measure:
        measure(options)
        return 0
    device = "no GPU" if options.device == "cpu" else gpu_name()
    if not device:
        return fail("no GPU here: nvidia-smi is missing, or finds none")
    if "own" in options.only and not os.access(options.pipeline, os.X_OK):
        return fail(f"{options.pipeline} is no program: name it with --pipeline, or leave it out with --only")
    from strips import Reader

    reader = Reader(options.slide, "cpu")
    rows, width = reader.rows, reader.width
    table = []
    for name in options.only:
        if name == "own":
            for config in options.config:
                told(table, [own_row(config, rows * width, options)])
        else:
            told(table, measured_rows(name, options))
    if options.json:
        print(json.dumps({"device": device, "slide": options.slide, "width": width, "height": rows,
                          "cores": os.cpu_count(), "rows": table}, indent=1))
    else:
        print(f"{device}, {os.cpu_count()} cores; {width} x {rows} pixels\n\n{text_table(table)}")
    return 1 if any(entry["seconds_per_slide"] is None for entry in table) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
