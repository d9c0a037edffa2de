"""Storage that fails, power that goes and processes that are killed:
`PIPELINE=path/to/pipeline FAULTY_STORAGE=path/to/library storage_faults_test.py [CLASS ...]`.

$KILLS is how often Kills kills (50), $SLIDES how many slides Many has (10,000). With $SLIDESTREAM_TEST_WIDE every call fails
once, else some of them. Figures go to standard error."""

import collections
import contextlib
import errno
import os
import pathlib
import random
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
import unittest

from archive_test import MAKE_IMAGES, ArchiveCase, results
from program_test import ENVIRONMENT, PIPELINE, run

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from storage_records import records, states  # noqa: E402

FAULTY_STORAGE = os.environ.get("FAULTY_STORAGE", "")


WIDE = "SLIDESTREAM_TEST_WIDE" in os.environ


def some(count):
    """Numbers from 1 to the count: all, or the first and the last ones and a fifth of the others."""
    first, last = list(range(1, min(4, count) + 1)), list(range(max(5, count - 3), count + 1))
    between = range(5, count - 3)
    return first + (list(between) if WIDE else sorted(random.Random(count).sample(between, len(between) // 5))) + last


def tell(text):
    print(text, file=sys.stderr, flush=True)


def content(path):
    """The files of an image that is one, or a folder: bytes by name."""
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return {str(each.relative_to(path)): each.read_bytes() for each in files}


# Images that are folders, of two tiles and their levels.
FOLDERS = {name: ["--set", "operators.run=sobel", "--set", "image.tile=256", *options] for name, options in {
    "zarr 2": ["--set", "image.format=ome-zarr"], "zarr 3": ["--set", "image.format=ome-zarr", "--set", "image.zarr_version=3"],
    "dzi": ["--set", "image.format=dzi"], "dicom": ["--set", "image.format=dicom"]}.items()}


class FaultCase(ArchiveCase):
    def folders(self):
        """Each way of making folders, with a slide, and a place of its own; faults are to meet images alone."""
        slides = self.tiny_slides(1, "384x256")
        for name, options in FOLDERS.items():
            shutil.rmtree(self.folder / "whole", ignore_errors=True)
            self.out = self.folder / name
            with self.subTest(name):
                yield slides, options, self.out / "images"

    def faulty(self, fault, root, *arguments):
        """Runs the program with storage below `root` failing; returns the result and what the library reports."""
        report = self.folder / "report"
        environment = {**ENVIRONMENT, "LD_PRELOAD": FAULTY_STORAGE, "FAULTY": fault, "FAULTY_ROOT": str(root),
                       "FAULTY_REPORT": str(report)}
        result = subprocess.run([PIPELINE, *map(str, arguments)], capture_output=True, text=True, env=environment,
                                timeout=120)
        if fault == "record":
            return result, report.read_bytes()
        return result, {name: int(number) for name, number in (line.split() for line in report.read_text().splitlines())}

    def assertLedgerIsWhole(self, folder=None):
        """It opens, is undamaged, and what is done in it has results."""
        file = (folder or self.out) / "run.sqlite"
        if not file.exists():
            return set()
        with contextlib.closing(sqlite3.connect(file)) as database:
            self.assertEqual(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
            if not database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
                return set()
            rows = database.execute("SELECT path, (histogram IS NOT NULL AND windows > 0) OR id IN (SELECT slide FROM artifacts) "
                                    "FROM slides WHERE state = 'done'")
            done = dict(rows.fetchall())
            self.assertTrue(all(done.values()))
            return {os.fsdecode(path) for path in done}


    def assertImagesAreWhole(self, folder, whole):
        """A final name is a whole image's, and what the ledger lists is there."""
        images = folder / "images"
        for path in images.iterdir() if images.exists() else ():
            if ".partial" not in path.name and not path.name.startswith(".slidestream-"):
                self.assertEqual(content(path), content(whole / "images" / path.name), path)
        if not (folder / "run.sqlite").exists():
            return
        with contextlib.closing(sqlite3.connect(folder / "run.sqlite")) as database:
            if not database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
                return
            listed = database.execute("SELECT file, bytes FROM artifacts JOIN slides ON slide = id WHERE state = 'done'")
            for file, size in listed:
                found = content(folder / os.fsdecode(file))
                self.assertEqual(sum(len(each) for each in found.values()), size)


class FillCase(FaultCase):
    def fill(self, slides, *settings, root=None):
        root = root or self.out
        arguments = [slides, *settings, "--threads", 1]
        count = len(list(slides.iterdir()))
        self.assertEqual(run(*arguments, "--out", self.folder / "whole").returncode, 0)
        result, counts = self.faulty("count", root, *arguments, "--out", self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        statuses = collections.Counter()
        for number in some(counts["full"]):
            shutil.rmtree(self.out)
            result, _ = self.faulty(f"full:{number}", root, *arguments, "--out", self.out, "--log-level", "error")
            statuses[result.returncode] += 1
            with self.subTest(write=number, stderr=result.stderr):
                done = self.assertLedgerIsWhole() if self.out.exists() else set()
                if result.returncode == 0:
                    # At its close SQLite only tidies the log away: all was done before. Or the run made fewer calls: how many
                    # tiles a call writes depends on the threads.
                    self.assertEqual(len(done), count)
                    self.assertSameResults(self.out, self.folder / "whole")
                else:
                    self.assertIn(result.returncode, (2, 3))
                    lines = result.stderr.splitlines()
                    self.assertEqual(len(lines), 1)
                    self.assertRegex(lines[0], "No space left on device|database or disk is full")
                    self.assertIn(str(self.out), lines[0])
                    if ".partial" in lines[0]:
                        self.assertEqual(list(self.out.rglob("*.partial*")), [], "in the way where the disk stays full")
                told = run("status", self.out)
                if told.returncode == 0:
                    # It has ended, whether or not it could write that down.
                    self.assertRegex(told.stdout, r"\Astate     (ended|stopped)\n")
                    self.assertNotIn("running", told.stdout)
                    self.assertNotIn("0 of 0 done", told.stdout)
                self.assertImagesAreWhole(self.out, self.folder / "whole")
                again = run(*arguments, "--out", self.out)
                self.assertEqual(again.returncode, 0, again.stderr)
                if done:
                    self.assertIn(f"skipped as done: {len(done)} of {count} slides", again.stderr)
                self.assertSameResults(self.out, self.folder / "whole")
        tell(f"full disk: at {len(some(counts['full']))} of {counts['full']} writes, statuses {dict(statuses)}")


class FullDisk(FillCase):
    def test_at_every_write(self):
        self.fill(self.tiny_slides(2), "--maps", "npy")

    def test_at_every_write_of_folders(self):
        for slides, options, images in self.folders():
            self.fill(slides, *options, root=images)

    def test_a_file_that_grows_too_large_leaves_room_for_the_next_start(self):
        slide = self.slide("a", "1024x1024")
        arguments = [slide, "--set", "operators.run=identity", "--set", "image.compression=none", "--out", self.out]
        limit = 2 << 20  # the image has 4 MiB
        result = subprocess.run([PIPELINE, *map(str, arguments)], capture_output=True, text=True, env=ENVIRONMENT, timeout=60,
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertRegex(result.stderr, r"\.partial\S*: File too large")
        self.assertEqual(list((self.out / "images").iterdir()), [])
        self.assertEqual(run(*arguments).returncode, 0)


class FullDiskOfResults(FillCase):
    def test_at_every_write_of_images(self):
        self.fill(self.tiny_slides(2, "256x256"), *MAKE_IMAGES, "--set", "analysis.stride=256")

    def test_at_every_write_of_a_merge(self):
        slides = self.tiny_slides(4)
        parts = [self.folder / "1", self.folder / "2"]
        for number, part in enumerate(parts, 1):
            self.assertEqual(run(slides, "--out", part, "--maps", "npy", "--shard", f"{number}/2").returncode, 0)
        arguments = ["merge", *parts, "--out", self.out]
        result, counts = self.faulty("count", self.out, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        shutil.copytree(self.out, self.folder / "whole")
        statuses = collections.Counter()
        for number in range(1, counts["full"] + 1):
            shutil.rmtree(self.out)
            result, _ = self.faulty(f"full:{number}", self.out, *arguments)
            statuses[result.returncode] += 1
            with self.subTest(write=number, stderr=result.stderr):
                done = self.assertLedgerIsWhole() if self.out.exists() else set()
                if result.returncode != 0:
                    self.assertIn(result.returncode, (3,) if done else (2, 3))
                    self.assertOneLine(result, result.returncode, str(self.out))
                self.assertIn(len(done), (0, 4))
                again = run(*arguments)
                self.assertEqual(again.returncode, 0, again.stderr)
                self.assertSameResults(self.out, self.folder / "whole")
        tell(f"full disk: at each of {counts['full']} writes of a merge, statuses {dict(statuses)}")


class FailedCalls(FaultCase):
    def test_every_sync_and_every_rename(self):
        unnoticed, counts = self.fail_each(self.tiny_slides(2), "--maps", "npy")
        # SQLite syncs the folder for its own files and doesn't look at the outcome; the ledger syncs it again.
        self.assertTrue(all(call == "sync" and (number > total - 3 or number in (2, 6)) for call, number, total in
                            unnoticed), unnoticed)

    def test_every_sync_and_every_rename_of_images(self):
        unnoticed, counts = self.fail_each(self.tiny_slides(1), *MAKE_IMAGES)
        self.assertTrue(all(call == "sync" for call, *_ in unnoticed), unnoticed)
        self.assertGreaterEqual(counts["rename"], 3)  # each image, and the files of results

    def test_every_sync_and_every_rename_of_folders(self):
        for slides, options, images in self.folders():
            unnoticed, counts = self.fail_each(slides, *options, root=images)
            self.assertEqual(unnoticed, [])
            self.assertGreaterEqual(counts["rename"], 3)

    def test_every_rename_of_a_move_aside(self):
        slides = self.tiny_slides(1)
        arguments = [slides, *MAKE_IMAGES, "--maps", "npy", "--threads", 1, "--out", self.out]
        whole = self.folder / "whole"
        self.assertEqual(run(*arguments).returncode, 0)
        self.out.rename(whole)
        before = results(whole)
        for damaged in False, True:
            moved = kept = 0
            for number in range(1, 100):
                shutil.rmtree(self.out, ignore_errors=True)
                shutil.copytree(whole, self.out)
                if damaged:
                    (self.out / "run.sqlite").write_text("no ledger")
                result, reached = self.faulty(f"rename:{number}", self.out, *arguments, "--fresh")
                self.assertGreaterEqual(reached["rename"], number)
                with self.subTest(damaged=damaged, number=number, stderr=result.stderr):
                    if (self.out / "earlier-1").exists():
                        self.assertEqual(results(self.out / "earlier-1"), before)
                        moved += 1
                        break
                    self.assertEqual(result.returncode, 2)
                    self.assertIn("Input/output error", result.stderr)
                    self.assertEqual(results(self.out), before)
                    kept += 1
                    if number % 4 != 2:
                        continue
                    again = run(*arguments, "--fresh")
                    self.assertEqual(again.returncode, 0, again.stderr)
                    self.assertEqual(results(self.out), before)
                    self.assertEqual(results(self.out / "earlier-1"), before)
            self.assertEqual(moved, 1)
            # Maps, tables, the ledger and the folder itself.
            self.assertGreater(kept, 6)

    def fail_each(self, slides, *settings, root=None):
        """Has each sync and each rename fail once; returns those that nobody noticed, and how many there are."""
        root = root or self.out
        arguments = [slides, *settings, "--threads", 1]
        count = len(list(slides.iterdir()))
        self.assertEqual(run(*arguments, "--out", self.folder / "whole").returncode, 0)
        _, counts = self.faulty("count", root, *arguments, "--out", self.out)
        unnoticed = []
        for call in "sync", "rename":
            for number in some(counts[call]):
                shutil.rmtree(self.out)
                result, reached = self.faulty(f"{call}:{number}", root, *arguments, "--out", self.out)
                if reached[call] < number or "progress.json" in result.stderr:
                    continue  # a run of more than a second has a file more, which nothing depends on
                with self.subTest(call=call, number=number, stderr=result.stderr):
                    done = self.assertLedgerIsWhole()
                    if result.returncode == 0:
                        # At its close SQLite only tidies the log away; all of it was synced before.
                        unnoticed.append((call, number, reached[call]))
                        self.assertEqual(len(done), count)
                    else:
                        self.assertIn(result.returncode, (2, 3))
                        self.assertIn("Input/output error", result.stderr)
                    self.assertImagesAreWhole(self.out, self.folder / "whole")
                    again = run(*arguments, "--out", self.out)
                    self.assertEqual(again.returncode, 0, again.stderr)
                    self.assertSameResults(self.out, self.folder / "whole")
        tell(f"failed calls: {counts['sync']} syncs and {counts['rename']} renames; without effect: {unnoticed}")
        return unnoticed, counts


class Reads(FaultCase):
    def test_errors_that_pass_are_waited_for(self):
        slides = self.tiny_slides(2)
        self.assertEqual(run(slides, "--out", self.folder / "whole").returncode, 0)
        for number in errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EMFILE, errno.ENFILE:
            out = self.folder / str(number)
            result, _ = self.faulty(f"read:{number}:3", slides, slides, "--out", out)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertSameResults(out, self.folder / "whole")

    def test_errors_that_stay_fail_the_slide(self):
        slides = self.tiny_slides(2)
        for setting, number, cause in (2, errno.EIO, "Input/output error"), (9, errno.EACCES, "Permission denied"):
            out = self.folder / cause
            begin = time.monotonic()
            result, _ = self.faulty(f"read:{number}:1000000", slides, slides, "--out", out, "--set",
                                    f"input.retries={setting}")
            self.assertEqual(result.returncode, 1, result.stderr)
            # Nine pauses, which are none for what stays, would be 51 s.
            self.assertLess(time.monotonic() - begin, 45)
            self.assertTrue(all(cause in row["error"] for row in self.rows(out)))


    def test_what_storage_fails_to_give_is_not_to_be_deleted(self):
        slides = self.tiny_slides(1)
        self.assertEqual(run(slides, "--out", self.out, "--operators", "tissue").returncode, 0)
        result, _ = self.faulty(f"read:{errno.EIO}:1000000", self.out / "images", "verify", self.out)
        self.assertEqual(result.returncode, 1, result.stderr)
        lines = result.stderr.splitlines()
        self.assertTrue(lines and all(line.endswith(": can't be read: Input/output error") for line in lines), lines)
        self.assertNotIn("; delete", result.stdout)


class Clock(FaultCase):
    def test_a_clock_that_jumps_back(self):
        slides = self.tiny_slides(4)
        self.assertEqual(run(slides, "--out", self.folder / "whole").returncode, 0)
        for at in 1, 5, 20, 60:
            result, _ = self.faulty(f"clock:{at}", self.out, slides, "--out", self.out, "--fresh")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertSameResults(self.out, self.folder / "whole")
            again = run(slides, "--out", self.out)
            self.assertIn("skipped as done: 4 of 4 slides", again.stderr)


class Power(FaultCase):
    """Replays what a run did to its folder up to each of its calls, as a machine that loses power there may find it."""

    def test_every_prefix(self):
        self.replay("wal", 4)

    def test_every_prefix_with_a_rollback_journal(self):
        self.replay("rollback", 2)

    def replay(self, journal, count):
        slides = self.tiny_slides(count)
        arguments = [slides, "--maps", "npy", "--threads", 1, "--quiet", "--set", f"output.journal={journal}"]
        self.assertEqual(run(*arguments, "--out", self.folder / "whole").returncode, 0)
        result, report = self.faulty("record", self.out, *arguments, "--out", self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        changes = list(records(report))
        resumed = checked = 0
        for synced_only in False, True:
            most_done, last, due = 0, None, 0
            for number, (operation, files) in enumerate(states(changes, synced_only)):
                files = {path: content for path, content in files.items() if not path.endswith("-shm")}
                if files == last:
                    continue
                last = files
                shutil.rmtree(self.out, ignore_errors=True)
                (self.out / "maps").mkdir(parents=True)
                for path, content in files.items():
                    pathlib.Path(path).write_bytes(content)
                maps = [path for path in files if path.endswith(".npy") and "/maps/" in path]
                checked += 1
                with self.subTest(prefix=number, operation=operation, synced_only=synced_only):
                    shutil.rmtree(self.folder / "copy", ignore_errors=True)
                    shutil.copytree(self.out, self.folder / "copy")
                    done = self.assertLedgerIsWhole(self.folder / "copy")
                    # A slide that was done stays done, and a map has its file after the ledger has the slide.
                    self.assertGreaterEqual(len(done), most_done)
                    self.assertGreaterEqual(len(done), len(maps))
                    most_done = max(most_done, len(done))
                    for name in "slides.csv", "corpus.json", "histograms.npy", "failures.csv":
                        # Whole or not there.
                        self.assertNotEqual(files.get(str(self.out / name)), b"")
                    if number % 3 == 0 or operation in ("rename", "sync"):
                        due += 1
                        if not WIDE and due % 3 and number > 9:
                            continue
                        again = run(*arguments, "--out", self.out)
                        self.assertEqual(again.returncode, 0, again.stderr)
                        self.assertSameResults(self.out, self.folder / "whole")
                        resumed += 1
            self.assertEqual(most_done, count)
        tell(f"power, {journal}: {len(changes)} records, {checked} states checked, {resumed} of them resumed")


class Kills(FaultCase):
    def test_at_random_moments(self):
        self.kill("wal", int(os.environ.get("KILLS", "50")))

    def test_at_random_moments_with_a_rollback_journal(self):
        self.kill("rollback", int(os.environ.get("KILLS", "50")) // 5)

    def test_at_random_moments_with_images(self):
        self.kill("wal", int(os.environ.get("KILLS", "50")) // 3, *MAKE_IMAGES)

    def test_at_random_moments_with_networks(self):
        model = pathlib.Path(os.environ.get("MODELS", ""), "identity.onnx")
        python = pathlib.Path(os.environ.get("TEST_PYTHON", ""))
        if not model.is_file() or not python.is_file():
            self.skipTest("networks aren't made here")
        # Its Python has the package onnxruntime, which the program finds by itself.
        ENVIRONMENT["PATH"] = f"{python.parent}:{ENVIRONMENT['PATH']}"
        self.kill("wal", int(os.environ.get("KILLS", "50")) // 6, "--operators", "spectrum,model", "--set",
                  f"model.file={model}", "--set", "model.provider=cpu", "--set", "image.format=ome-tiff", count=20,
                  moments=(0.3, 0.6, 0.9))

    def test_at_random_moments_of_merges(self):
        slides = self.tiny_slides(40, "256x256")
        parts = [self.folder / str(number) for number in (1, 2, 3)]
        for number, part in enumerate(parts, 1):
            self.assertEqual(run(slides, *MAKE_IMAGES, "--maps", "npy", "--out", part, "--shard", f"{number}/3").returncode, 0)
        arguments = [PIPELINE, "merge", *map(str, parts), "--quiet", "--out"]
        begin = time.monotonic()
        subprocess.run([*arguments, str(self.folder / "whole")], check=True, env=ENVIRONMENT)
        taken = time.monotonic() - begin
        random_moment = random.Random(6)
        wanted = int(os.environ.get("KILLS", "50")) // 5
        kills = 0
        while kills < wanted:
            shutil.rmtree(self.out, ignore_errors=True)
            for _ in range(3):
                process = subprocess.Popen([*arguments, str(self.out)], env=ENVIRONMENT, stderr=subprocess.PIPE)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(taken * random_moment.random())
                if process.poll() is None:
                    process.kill()
                    kills += 1
                stderr = process.communicate()[1]
                self.assertIn(process.returncode, (0, -9), stderr)
                self.assertIn(len(self.assertLedgerIsWhole()) if self.out.exists() else 0, (0, 40))
            subprocess.run([*arguments, str(self.out)], check=True, env=ENVIRONMENT)
            self.assertSameResults(self.out, self.folder / "whole")
        tell(f"kills of merges: {kills} of 40 slides with images, {time.monotonic() - begin:.0f} s; every result as undisturbed")

    def kill(self, journal, wanted, *settings, count=120, moments=(0.03, 0.1, 0.3)):
        slides = self.tiny_slides(count, "256x256")
        arguments = [PIPELINE, str(slides), *settings, "--maps", "npy", "--quiet", "--retry-failed", "--set", "output.checkpoint_seconds=1", "--set",
                     "analysis.stride=32", "--set", f"output.journal={journal}", "--out"]
        subprocess.run([*arguments, str(self.folder / "whole")], check=True, env=ENVIRONMENT)
        random_moment = random.Random(5)
        kills = rounds = 0
        begin = time.monotonic()
        while kills < wanted:
            rounds += 1
            shutil.rmtree(self.out, ignore_errors=True)
            done_before = set()
            while True:
                process = subprocess.Popen([*arguments, str(self.out)], env=ENVIRONMENT, stderr=subprocess.PIPE)
                moment = random_moment.choice(moments) * random_moment.random()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(moment)
                if process.poll() is None and kills < wanted:
                    process.kill()
                    kills += 1
                stderr = process.communicate()[1]
                if process.returncode == 0:
                    break
                # What three kills met is taken for deadly, and tried again by the next start.
                if process.returncode == 1:
                    self.assertIn(b"and again on it alone", stderr)
                    continue
                self.assertEqual(process.returncode, -9, stderr)
                # Looked at without recovering it: that is the next process's task.
                shutil.rmtree(self.folder / "copy", ignore_errors=True)
                if self.out.exists():
                    shutil.copytree(self.out, self.folder / "copy")
                    self.assertImagesAreWhole(self.folder / "copy", self.folder / "whole")
                    done = self.assertLedgerIsWhole(self.folder / "copy")
                    self.assertLessEqual(done_before, done)
                    done_before = done
            self.assertSameResults(self.out, self.folder / "whole")
            self.assertEqual(self.sql("SELECT count(*), count(DISTINCT canonical) FROM slides"), [(count, count)])
        tell(f"kills, {journal}: {kills} in {rounds} runs of {count} slides {' '.join(settings[:2])}, {time.monotonic() - begin:.0f} s; every result as undisturbed")


class Many(FaultCase):
    def test_ten_thousand_slides(self):
        count = int(os.environ.get("SLIDES", "10000"))
        slides = self.folder / "slides"
        slides.mkdir()
        source = self.slide("tiniest", "64x64", "--tile", "64")
        for number in range(count):
            shutil.copy(source, slides / f"{number}.svs")
        begin = time.monotonic()
        process = subprocess.Popen([PIPELINE, str(slides), "--out", str(self.out), "--set", "analysis.window=32", "--quiet",
                                    "--metrics", str(self.folder / "m.prom")], env=ENVIRONMENT, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        started = None
        samples = []
        proc = pathlib.Path("/proc") / str(process.pid)
        while process.poll() is None:
            time.sleep(0.05)
            with contextlib.suppress(OSError, ValueError, AttributeError):
                if started is None:
                    # The metrics begin with the run.
                    if (self.folder / "m.prom").exists():
                        started = time.monotonic() - begin
                    continue
                memory = int(re.search(r"VmRSS:\s+(\d+)", (proc / "status").read_text()).group(1))
                samples.append((memory, len(os.listdir(proc / "fd"))))
        elapsed = time.monotonic() - begin
        self.assertEqual(process.returncode, 0, process.stderr.read())
        self.assertEqual(len(self.rows()), count)
        self.assertLess(started, 5)
        tenth = len(samples) // 10
        early, late = samples[tenth:2 * tenth], samples[-2 * tenth:-tenth]
        growth = max(memory for memory, _ in late) - max(memory for memory, _ in early)
        files = max(number for _, number in late) - max(number for _, number in early)
        again = time.monotonic()
        self.assertEqual(run(slides, "--out", self.out, "--set", "analysis.window=32").returncode, 0)
        tell(f"{count} slides: start {started:.2f} s, {elapsed:.1f} s in all, {growth} KiB and {files} descriptors more "
             f"from the second to the ninth tenth, {max(memory for memory, _ in samples)} KiB at most; nothing to do: "
             f"{time.monotonic() - again:.2f} s")
        self.assertLess(growth, 16384)
        self.assertLessEqual(files, 3)

    def test_a_million_lines(self):
        lines = int(os.environ.get("LINES", "1000000"))
        manifest = self.folder / "million.list"
        slide = self.slide("tiniest", "64x64", "--tile", "64")
        with open(manifest, "w", encoding="ascii") as file:
            file.write(f"{slide}\n")
            file.writelines(f"none/{number % 1000}/slide-{number}.svs\n" for number in range(1, lines))
        begin = time.monotonic()
        result = run(manifest, "--out", self.out, "--shard", f"1/{max(1, lines // 10)}", "--set", "analysis.window=32",
                     timeout=280)
        self.assertIn(result.returncode, (0, 1), result.stderr)
        self.assertEqual(self.sql("SELECT count(*) FROM slides"), [(lines,)])
        tell(f"a manifest of {lines} lines: {time.monotonic() - begin:.1f} s")


@unittest.skipUnless(FAULTY_STORAGE, "no library that makes storage fail")
class FaultsAreThere(FaultCase):
    def test_the_library_reaches_the_program(self):
        _, counts = self.faulty("count", self.out, self.slide(), "--out", self.out)
        self.assertGreater(counts["full"], 10)
        self.assertGreater(counts["sync"], 3)
        self.assertGreater(counts["rename"], 3)


if __name__ == "__main__":
    unittest.main()
