#!/usr/bin/env python3
"""What a run costs more in Python than in the program: `run_bench.py PIPELINE SLIDE [--rounds 9] [--json FILE]`.

Takes turns: the program's whole process, and a call of `slidestream.run` with the same settings, each into a new folder
on /dev/shm. The ratios are of wall clock and of processor time, call over process; medians over the rounds.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time

import slidestream


def processor_seconds(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def measured(work, who):
    before, begin = processor_seconds(who), time.perf_counter()
    work()
    return time.perf_counter() - begin, processor_seconds(who) - before


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pipeline", type=pathlib.Path)
    parser.add_argument("slide")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    rounds = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        # The first call in a process loads libraries.
        slidestream.run(options.slide, out=os.path.join(folder, "first"), on_progress=lambda moment: None)
        for number in range(options.rounds):
            ours, theirs = os.path.join(folder, f"python-{number}"), os.path.join(folder, f"program-{number}")
            turns = [
                lambda: measured(lambda: slidestream.run(options.slide, out=ours, on_progress=lambda moment: None),
                                 resource.RUSAGE_SELF),
                lambda: measured(lambda: subprocess.run([options.pipeline, options.slide, "-q", "-o", theirs], check=True),
                                 resource.RUSAGE_CHILDREN),
            ]
            order = (0, 1) if number % 2 == 0 else (1, 0)
            found = {turn: turns[turn]() for turn in order}
            rounds.append((*found[0], *found[1]))
    wall, cpu, program_wall, program_cpu = (statistics.median(column) for column in zip(*rounds))
    figures = {"wall_s": wall, "cpu_s": cpu, "program_wall_s": program_wall, "program_cpu_s": program_cpu,
               "wall_ratio": statistics.median(row[0] / row[2] for row in rounds),
               "cpu_ratio": statistics.median(row[1] / row[3] for row in rounds)}
    for name, value in figures.items():
        print(f"{name:16} {value:.4f}")
    if options.json:
        options.json.write_text(json.dumps({"slide": options.slide, "rounds": rounds, **figures}) + "\n")


if __name__ == "__main__":
    main()
