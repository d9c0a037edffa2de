#!/usr/bin/env python3
"""Slides a second on one, two and four GPUs, by what host_bandwidth measured, as a Markdown table.

    bench/host_model.py FIGURES.json --slide-mb 450 --gpu-ms 26 --copy-gbps 53

Each of three parts has a rate alone, and the slowest decides: the GPUs compute, their copy engines take the slide's
bytes, and the host's threads copy them from the page cache to the ring. A byte costs the memory one read where the ring
stays in the last cache.
"""

import argparse
import json
import pathlib


def rates(gpus, slide_mb, gpu_ms, copy_gbps, host_gbps):
    """Slides a second of each part alone."""
    return {"GPU": gpus * 1000 / gpu_ms, "copies": gpus * copy_gbps * 1000 / slide_mb, "host": host_gbps * 1000 / slide_mb}


def host_rates(figures):
    """GB/s of the host by the number of GPUs, with as many threads as the program reads with."""
    by_threads = {row["threads"]: row["GBps"] for row in figures["reads"]}
    return {int(gpus): by_threads[threads] for gpus, threads in figures["reading_threads"].items()}


def positive(text):
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError(text)
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("figures", type=pathlib.Path, help="what host_bandwidth wrote with --json")
    parser.add_argument("--slide-mb", required=True, type=positive, help="bytes of the slide that are read, in MB")
    parser.add_argument("--gpu-ms", required=True, type=positive, help="time of a GPU for the slide")
    parser.add_argument("--copy-gbps", required=True, type=positive, help="rate of a GPU's copy engine from pinned memory")
    arguments = parser.parse_args()
    try:
        hosts = host_rates(json.loads(arguments.figures.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SystemExit(f"host_model.py: {arguments.figures}: no figures of host_bandwidth ({error})") from None
    print("| GPUs | GPU | copies | host | slides a second | limit |", "|---|---|---|---|---|---|", sep="\n")
    for gpus, host_gbps in sorted(hosts.items()):
        parts = rates(gpus, arguments.slide_mb, arguments.gpu_ms, arguments.copy_gbps, host_gbps)
        limit = min(parts, key=parts.get)
        print(f"| {gpus} | " + " | ".join(f"{rate:.1f}" for rate in parts.values()) + f" | {parts[limit]:.1f} | {limit} |")


if __name__ == "__main__":
    main()
