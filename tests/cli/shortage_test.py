"""Few threads and little memory: `PIPELINE=path/to/pipeline FEW_THREADS_LIBRARY=path/to/library shortage_test.py [CLASS ...]`.

Under every limit the program does its work, or ends with one line: with status 2 before a slide was begun, with 3 afterwards.
It never ends by a signal, and never hangs.
Some limits are tried, or all of them where SLIDESTREAM_TEST_WIDE is set."""

import contextlib
import os
import re
import resource
import signal
import sqlite3
import subprocess
import unittest

from program_test import ENVIRONMENT, PIPELINE, Case

LIBRARY = os.environ.get("FEW_THREADS_LIBRARY", "")
WIDE = "SLIDESTREAM_TEST_WIDE" in os.environ
# How much more memory there is each time.
STEP = 1.08 if WIDE else 1.4


def some(numbers):
    """All of them, or the first and the last ones and every fourth."""
    return [number for at, number in enumerate(numbers) if WIDE or at < 3 or at % 4 == 0 or at >= len(numbers) - 2]


class Shortage(Case):
    def setUp(self):
        super().setUp()
        self.input = self.slide("tiny", "512x384")
        self.turn = 0

    def commands(self):
        """Arguments by name; each wants a folder or a file of its own behind them."""
        return {"spectrum": [self.input, "--out"],
                "image": ["convert", self.input, "--tile", 128, "--to", "ome-zarr", "--out"],
                "synth": ["synth", "--size", "300x200", "--threads", 4, "--out"]}

    def begin(self, command, *, threads, **options):
        self.turn += 1
        out = self.folder / f"{self.turn}.svs" if command[0] == "synth" else self.folder / str(self.turn)
        words = [PIPELINE, *map(str, command), str(out)]
        if command[0] != "synth":
            words += ["--threads", str(threads), "--set", "pipeline.memory_mib=64"]
        self.out = out
        return subprocess.run(words, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, **options)

    def was_begun(self):
        """Whether the last command's folder says that a slide was begun."""
        ledger = self.out / "run.sqlite"
        if not ledger.exists():
            return False
        with contextlib.closing(sqlite3.connect(ledger)) as opened:
            tables = opened.execute("SELECT count(*) FROM sqlite_master WHERE name = 'slides'").fetchone()[0]
            return bool(tables and opened.execute("SELECT max(attempts) FROM slides").fetchone()[0])

    def assertEndsWell(self, result, what):
        errors = [line for line in result.stderr.splitlines() if "error:" in line]
        told = f"{what}: status {result.returncode}\n{result.stderr}"
        self.assertIn(result.returncode, (0, 2, 3), told)
        if result.returncode:
            self.assertEqual(result.returncode, 3 if self.was_begun() else 2, told)
        self.assertEqual(len(errors), int(result.returncode != 0), told)
        self.assertNotIn("internal", result.stderr, told)


class FewThreads(Shortage):
    def run_with(self, command, threads, few):
        report = self.folder / "report"
        report.unlink(missing_ok=True)
        result = self.begin(command, threads=threads, env={**ENVIRONMENT, "LD_PRELOAD": LIBRARY, "FEW_THREADS": few,
                                                           "FEW_THREADS_REPORT": str(report)})
        return result, [int(word) for word in report.read_text().split()] if report.exists() else None

    def test_at_every_limit(self):
        for name, command in self.commands().items():
            # How many there are at once isn't the same each time: some end before others begin.
            at_once = 0
            for _ in range(3):
                result, counts = self.run_with(command, 4, "count")
                self.assertEqual(result.returncode, 0, result.stderr)
                at_once = max(at_once, counts[1])
            self.assertGreater(at_once, 0)
            for most in some(range(at_once + 1)):
                result, _ = self.run_with(command, 4, f"most:{most}")
                self.assertEndsWell(result, f"{name}, at most {most} of {at_once}")
                # A run that was told to do with fewer threads has all of them.
                self.assertEqual(result.returncode if "the system doesn't let" in result.stderr else 0, 0, result.stderr)
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_at_every_start(self):
        for name, command in self.commands().items():
            _, counts = self.run_with(command, 4, "count")
            for number in some(range(1, counts[0] + 1)):
                result, _ = self.run_with(command, 4, f"at:{number}")
                self.assertEndsWell(result, f"{name}, start {number} of {counts[0]}")

    def test_many_threads_are_asked_for(self):
        command = self.commands()["spectrum"]
        fewer = 0
        for most in (6, 12, 17, 24, 33, 60):
            result, _ = self.run_with(command, 64, f"most:{most}")
            self.assertEndsWell(result, f"64, at most {most}")
            if result.returncode == 0:
                self.assertIn("the system doesn't let 64 threads compute", result.stderr)
                fewer += 1
        self.assertGreater(fewer, 2)


class LittleMemory(Shortage):
    def test_the_c_library_can_unwind_without_memory(self):
        """It looks for libgcc_s at the first exception through it, and ends the process where it has no memory for that."""
        result = subprocess.run([PIPELINE, "--version"], capture_output=True, text=True, timeout=120,
                                env={**ENVIRONMENT, "LD_DEBUG": "files"})
        self.assertEqual(result.returncode, 0, result.stderr)
        # Only glibc's loader tells, of what a program has open already.
        if re.search(r"needed by .*libgcc_s|libgcc_s.*needed by", result.stderr):
            self.assertRegex(result.stderr, r"opening file=\S*libgcc_s\S* \[0\]; direct_opencount=")

    def test_at_every_limit_of_address_space(self):
        for name, command in self.commands().items():
            mib, done, has_begun = 16, 0, False
            while done < 3:
                limit = int(mib) << 20
                result = self.begin(command, threads=2, env=ENVIRONMENT,
                                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
                what = f"{name}, {int(mib)} MiB"
                # Before the program begins the loader has its own words, and libraries that find no memory end the process.
                has_begun = has_begun or result.returncode in (0, 2, 3)
                if result.returncode == 127:
                    self.assertIn("error while loading shared libraries", result.stderr, what)
                elif has_begun or result.returncode not in (-signal.SIGABRT, -signal.SIGSEGV):
                    self.assertEndsWell(result, what)
                done += result.returncode == 0
                mib *= STEP
                self.assertLess(mib, 16384, what)


if __name__ == "__main__":
    unittest.main()
