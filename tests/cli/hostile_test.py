"""Slides that are made to harm, beside sound ones: `PIPELINE=path hostile_test.py [CLASS ...]`. $THREADS: instead of 8.

The sound ones are done, a hostile one is one line, and the memory of the run is within what `--dry-run` says.
"""

import csv
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import time
import unittest

import hostile_dicom
import hostile_slides
from program_test import ENVIRONMENT, PIPELINE, Case, run

MIB = 1 << 20
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
THREADS = [int(number) for number in os.environ.get("THREADS", "8").split(",")]
# What `--dry-run` says that it leaves out.
PROGRAM = 96 * MIB
THREAD = 6 * MIB


# The peak of a child is only had from the process that waits for it, and is the largest of all its children.
MEASURE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL).returncode
with open(sys.argv[1], "w") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024))
sys.exit(code if code >= 0 else 128 - code)
"""


def processor_seconds():
    """Of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class HostileCase(Case):
    def setUp(self):
        super().setUp()
        self.sound = [self.slide("sound-a", "1024x768"), self.slide("sound-b", "1024x768", "--seed", "2")]

    def measure(self, *arguments, address_space, timeout=120):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))

        peak = self.folder / "peak"
        result = subprocess.run([sys.executable, "-I", "-S", "-c", MEASURE, str(peak), PIPELINE, *map(str, arguments)],
                                stdin=subprocess.DEVNULL, capture_output=True, text=True, env=ENVIRONMENT, timeout=timeout,
                                preexec_fn=limit)
        return result, int(peak.read_text())

    def check(self, name, write, threads, done=False):
        """Runs a slide before two sound ones. `done`: whether it may be done; None: whether it is or isn't doesn't
        matter."""
        slide = self.folder / f"{name}.tif"
        write(slide)
        shutil.rmtree(self.out, ignore_errors=True)
        settings = ["--set", "pipeline.memory_mib=256", "--set", f"pipeline.threads={threads}", "--set",
                    "pipeline.backend=cpu", "--set", "analysis.stride=2048"]  # decoding is what matters
        slides = [slide, *self.sound]
        spare = 1024 * MIB + (threads + 32) * 72 * MIB  # stacks, and the heaps that the C library keeps room for
        begin = time.monotonic()
        planned, peak = self.measure(*slides, *settings, "--dry-run", address_space=256 * MIB + spare)
        self.assertIn(planned.returncode, (0, 1), planned.stderr)
        self.assertLessEqual(peak, PROGRAM + 2 * min(slide.stat().st_size, 100 * MIB))
        number, unit = re.search(r"^host +([\d.]+) (KiB|MiB|GiB) at most", planned.stdout, re.MULTILINE).groups()
        most = float(number) * UNITS[unit]
        result, peak = self.measure(*slides, *settings, "--out", self.out, "--quiet", address_space=int(most) + spare)
        self.assertLessEqual(peak, most + PROGRAM + THREAD * threads, f"{name}, {threads} threads")
        self.assertLess(time.monotonic() - begin, 100)
        rows = {pathlib.Path(row["path"]).name: row for row in self.rows()}
        for sound in self.sound:
            self.assertIn(sound.name, rows, result.stderr)
        with open(self.out / "failures.csv", newline="", encoding="utf-8") as file:
            failures = list(csv.DictReader(file))
        if done is None and not failures:
            self.assertEqual(result.returncode, 0, result.stderr)
            return ""
        self.assertEqual(result.returncode, 0 if done else 1, result.stderr)
        self.assertEqual([failure["path"] for failure in failures], [] if done else [str(slide)], result.stderr)
        lines = [line for line in result.stderr.splitlines() if slide.name in line and " error: " in line]
        self.assertEqual(len(lines), 0 if done else 1, result.stderr)
        return lines[0] if lines else ""


class Opening(HostileCase):
    def test_all(self):
        says = {"shared-tables": "input.max_tiles",
                "unknown-tags": "has 4096 entries, supported are 1 to 1024",
                "many-unknown-tags": "more than 131072 entries together", "chain": "more than 4096 directories",
                "many-values": "BitsPerSample has 100000000 values",
                "overlapping": "more than 131072 entries together",
                "unnamed-codec": "Compression 34661 isn't supported"}
        for threads in THREADS:
            for name, write in hostile_slides.OPENING.items():
                with self.subTest(name=name, threads=threads):
                    self.assertIn(says[name], self.check(name, write, threads))
            for name, write in hostile_slides.HARMLESS.items():
                with self.subTest(name=name, threads=threads):
                    self.check(name, write, threads, done=True)

    def test_info_opens_within_the_same_bounds(self):
        for name, write in hostile_slides.OPENING.items():
            with self.subTest(name=name):
                slide = self.folder / f"{name}.tif"
                write(slide)
                begin = time.monotonic()
                self.assertOneLine(run("info", slide), 1, slide.name)
                self.assertLess(time.monotonic() - begin, 60)
                slide.unlink()


class Ledger(HostileCase):
    def test_long_causes_take_no_memory(self):
        self.assertEqual(run(self.slide(), "--out", self.out).returncode, 0)

        def measure(*options):
            """Exit status, output, and the most bytes that the program had."""
            peak = self.folder / "peak"
            result = subprocess.run([sys.executable, "-I", "-S", "-c", MEASURE, peak, PIPELINE, "status", self.out, *options],
                                    capture_output=True, text=True, env=ENVIRONMENT, timeout=120, check=False)
            return result.returncode, int(peak.read_text()), result.stdout

        before = [measure(*options) for options in ([], ["--json"])]
        short, long = 10000, 16
        copied = ("id, canonical, path, position, mine, state, stage, cause, attempts, size",
                  "?1, CAST('/' || ?1 AS BLOB), CAST('/' || ?1 AS BLOB), ?1, mine, 'failed', 'decode', CAST(?2 AS BLOB), 1, size")
        database = sqlite3.connect(self.out / "run.sqlite")
        with database:
            database.executemany(f"INSERT INTO slides({copied[0]}) SELECT {copied[1]} FROM slides WHERE position = 0",
                                 ((10 + number, "x" * (4000 if number < short else 1 << 20)) for number in range(short + long)))
        database.close()
        most = 32 * MIB  # of a ledger of about 56 MiB
        code, peak, text = measure()
        self.assertEqual((before[0][0], code), (0, 1))
        self.assertLess(peak - before[0][1], most)
        self.assertIn(f"and {short + long - 10} more in failures.csv", text)
        code, peak, text = measure("--json")
        self.assertEqual(code, 1)
        self.assertLess(peak - before[1][1], most)
        told = json.loads(text)
        self.assertEqual(list(told), list(json.loads(before[1][2])))
        self.assertEqual([failure["error"] for failure in told["failures"]],
                         ["decode: " + "x" * 4000] * short + ["decode: " + "x" * (16 << 10) + " ..."] * long)
        # As one document is written.
        self.assertEqual(text, json.dumps(told, indent=2, ensure_ascii=False) + "\n")


class Dicom(HostileCase):
    """Files of 8 to 16 KiB on the disk, beside sound slides of the same folder."""

    def fill(self):
        slides = self.folder / "dicom"
        slides.mkdir()
        for number in range(3):
            hostile_dicom.sound(slides / f"sound-{number}.dcm", series=f"1.2.{number}", instance=f"1.2.{number}.1")
        for name, (write, _) in hostile_dicom.OPENING.items():
            write(slides / f"{name}.dcm")
        future = time.time() + 1e7
        for path in [*slides.iterdir(), slides]:
            os.utime(path, (future, future))
        return slides

    def seconds_of_info(self):
        """Of a processor, for a sound slide: how slow the machine is."""
        begin = processor_seconds()
        self.assertEqual(run("info", self.sound[0]).returncode, 0)
        return processor_seconds() - begin

    def test_each_is_one_line_and_costs_its_siblings_nothing(self):
        slides = self.fill()
        usual = self.seconds_of_info()
        begin = processor_seconds()
        result = run(slides, "--out", self.out, "--set", "pipeline.backend=cpu", "--set", "analysis.window=64", "--quiet")
        self.assertLess(processor_seconds() - begin, 10 + 100 * usual)
        self.assertEqual(result.returncode, 1, result.stderr)
        done = {pathlib.Path(row["path"]).name for row in self.rows() if row["status"] == "done"}
        self.assertEqual(done, {f"sound-{number}.dcm" for number in range(3)})
        for name, (_, says) in hostile_dicom.OPENING.items():
            with self.subTest(name=name):
                lines = [line for line in result.stderr.splitlines() if f"{name}.dcm" in line and " error: " in line]
                self.assertEqual(len(lines), 1, result.stderr)
                self.assertIn(says, lines[0])

    def test_info_opens_each_in_a_second(self):
        slides = self.fill()
        usual = self.seconds_of_info()
        for name, (_, says) in hostile_dicom.OPENING.items():
            with self.subTest(name=name):
                begin = processor_seconds()
                self.assertOneLine(run("info", slides / f"{name}.dcm"), 1, says)
                self.assertLess(processor_seconds() - begin, 1 + 10 * usual)


class Tiles(HostileCase):
    def test_one_that_takes_more_than_decoding_may(self):
        for threads in THREADS:
            # 64 threads may take 512 MiB.
            times = 1 if threads <= 8 else 3
            for name in hostile_slides.CODECS:
                with self.subTest(name=name, threads=threads):
                    line = self.check(f"huge-{name}", hostile_slides.huge(name, times), threads)
                    self.assertRegex(line, r"takes \d+ MiB to decode, and decoding may take \d+ MiB; raise pipeline.memory_mib")

    def test_one_whose_records_take_more_than_decoding_may(self):
        takes = r"takes \d+ MiB to decode, and decoding may take \d+ MiB; raise pipeline.memory_mib"
        says = {"component-transforms": "multiple component transforms of part 2", "terminated-passes": takes,
                "webp-tables": takes, "first-lerc": "isn't LERC of the second kind",
                "short-lerc": "LERC that contradicts itself",
                "lzma-dictionary": "LZMA with a dictionary of 1536 MiB, supported are 64 MiB"}
        for name, (make, side) in hostile_slides.RECORDS.items():
            with self.subTest(name=name):
                self.assertRegex(self.check(name, hostile_slides.tiles(make, side), 2), says[name])

    def test_what_a_library_would_end_the_process_for_is_damage(self):
        says = {"stuffed-block": "the HTJ2K packets are damaged: a marker lies in them"}
        for name, (make, side) in hostile_slides.DEADLY.items():
            with self.subTest(name=name):
                self.assertRegex(self.check(name, hostile_slides.tiles(make, side), 2), says[name])

    def test_large_ones_are_decoded_within_the_memory(self):
        for threads in THREADS:
            for name in hostile_slides.CODECS:
                with self.subTest(name=name, threads=threads):
                    self.check(f"fat-{name}", hostile_slides.fat(name), threads, done=True)


class ManySmallLevels(HostileCase):
    def test_they_wait_for_each_other_where_their_memory_would_not_do(self):
        """Masks of the slides' own size: 26 million pixels each."""
        slides = [self.slide(f"large-{i}", "5120x5120", "--mpp", "8", "--distinct", "8", "--seed", i + 1) for i in range(3)]
        settings = ["--operators", "tissue", "--set", "pipeline.memory_mib=64", "--set", "pipeline.threads=2"]
        planned, _ = self.measure(*slides, *settings, "--dry-run", address_space=8192 * MIB)
        number, unit = re.search(r"^host +([\d.]+) (KiB|MiB|GiB) at most", planned.stdout, re.MULTILINE).groups()
        most = float(number) * UNITS[unit]
        self.assertLess(most, 640 * MIB, planned.stdout)
        result, peak = self.measure(*slides, *settings, "--out", self.out, "--quiet", address_space=8192 * MIB)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertLessEqual(peak, most + PROGRAM + 2 * THREAD)


class SmallLevels(HostileCase):
    def test_a_tile_without_compression_counts_as_it_is_read(self):
        """One of 256 MiB, all of it a hole in the file."""
        side, at = 16384, 4096
        long, short = 4, 3
        entries = [(256, long, side), (257, long, side), (258, short, 8), (259, short, 1), (262, short, 1), (277, short, 1),
                   (322, long, side), (323, long, side), (324, long, at), (325, long, side * side)]
        slide = self.folder / "uncompressed.tif"
        slide.write_bytes(struct.pack("<2sHIH", b"II", 42, 8, len(entries)) +
                          b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in entries) + bytes(4))
        os.truncate(slide, at + side * side)
        settings = ["--operators", "tissue", "--set", "pipeline.memory_mib=64", "--set", "pipeline.threads=2"]
        planned, _ = self.measure(slide, *settings, "--dry-run", address_space=8192 * MIB)
        number, unit = re.search(r"^host +([\d.]+) (KiB|MiB|GiB) at most", planned.stdout, re.MULTILINE).groups()
        result, peak = self.measure(slide, *settings, "--out", self.out, "--quiet", address_space=8192 * MIB)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("level 0 tile 0 takes 256 MiB to decode, and decoding may take 16 MiB; raise pipeline.memory_mib to 10",
                      result.stderr)
        self.assertLessEqual(peak, float(number) * UNITS[unit] + PROGRAM + 2 * THREAD)


class Scan(Case):
    def test_a_signal_ends_it(self):
        """The list of slides doesn't come."""
        for number in (signal.SIGTERM, signal.SIGINT):
            process = subprocess.Popen([PIPELINE, "-", "--out", str(self.out)], stdin=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
            status = pathlib.Path(f"/proc/{process.pid}/status")
            caught = 1 << (number - 1)
            for _ in range(6000):
                mask = int(re.search(r"SigCgt:\s*(\S+)", status.read_text()).group(1), 16)
                if mask & caught:
                    break
                time.sleep(0.01)
            process.send_signal(number)
            error = process.communicate(timeout=60)[1]
            self.assertEqual(process.returncode, 128 + number, error)
            self.assertEqual(error.splitlines()[-1], "pipeline: interrupted before the first slide")


class Interrupted(HostileCase):
    """A tile that takes long: 127 scans of 150 million pixels."""

    def start(self, *settings):
        slide = self.folder / "slow.tif"
        hostile_slides.huge("progressive", 2)(slide)
        process = subprocess.Popen([PIPELINE, *map(str, [slide, *self.sound]), "--set", "pipeline.backend=cpu", "--set",
                                    "pipeline.memory_mib=4096", "--set", "pipeline.threads=2", "--set",
                                    "analysis.stride=2048", "--out", str(self.out), *settings],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def test_a_time_limit_ends_it(self):
        # On a busy machine a short limit may be over before anything is decoded.
        for limit in 2, 10, 20:
            self.out = self.folder / str(limit)
            begin = time.monotonic()
            process = self.start("--set", f"input.max_seconds={limit}")
            error = process.communicate(timeout=120)[1]
            self.assertEqual(process.returncode, 1, error)
            self.assertLess(time.monotonic() - begin, limit + 30)
            self.assertEqual(len(self.rows()), 3)
            if "slow.tif: decode: " in error:
                break
        self.assertIn(f"slow.tif: decode: took longer than input.max_seconds = {limit}", error)

    def test_a_signal_ends_it(self):
        process = self.start()
        self.assertRegex(process.stderr.readline(), "transforms: |the run computes on the CPU")
        time.sleep(2)
        process.send_signal(signal.SIGTERM)
        begin = time.monotonic()
        process.communicate(timeout=120)
        self.assertEqual(process.returncode, 143)
        self.assertLess(time.monotonic() - begin, 30)


if __name__ == "__main__":
    unittest.main()
