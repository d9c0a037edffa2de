"""What a run tells of itself while storage takes its time:
`PIPELINE=path/to/pipeline FAULTY_STORAGE=path/to/library slow_storage_test.py [CLASS ...]`."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

from program_test import ENVIRONMENT, PIPELINE, run
from storage_faults_test import FAULTY_STORAGE, FaultCase

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "sink"))
from big_tiff import BigTiff  # noqa: E402


class Slow(FaultCase):
    def begin(self, root, *arguments, each=60):
        environment = {**ENVIRONMENT, "LD_PRELOAD": FAULTY_STORAGE, "FAULTY": f"slow:{each}", "FAULTY_ROOT": str(root)}
        process = subprocess.Popen([PIPELINE, *map(str, arguments)], env=environment, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def told(self, process, file, enough):
        """All that is told until it is enough; each is whole, and counts never go back."""
        all_told = []
        written = None
        end = time.monotonic() + 120
        while not all_told or not enough(all_told[-1]):
            self.assertLess(time.monotonic(), end)
            self.assertIsNone(process.poll(), all_told)
            with contextlib.suppress(FileNotFoundError):
                with open(file, encoding="utf-8") as opened:
                    now = json.loads(opened.read())
                    before, written = written, os.fstat(opened.fileno()).st_mtime
                if all_told and now != all_told[-1]:
                    for name in "seconds", "share", "pixels", "bytes_read", "tiles_written", "bytes_written":
                        self.assertGreaterEqual(now[name], all_told[-1][name], name)
                    # At most once a second.
                    self.assertGreater(written - before, 0.9)
                if not all_told or now != all_told[-1]:
                    all_told.append(now)
            time.sleep(0.005)
        return all_told

    def status(self, folder, status=0):
        result = run("status", folder)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stdout

    def test_a_run_that_makes_images(self):
        slides = self.tiny_slides(2, "4096x1024")
        arguments = [slides, "-s", "operators.run=sobel", "-s", "image.format=ome-tiff", "-s", "image.tile=128", "--out"]
        self.assertEqual(run(*arguments, self.folder / "whole").returncode, 0)
        file = self.out / "progress.json"
        process = self.begin(self.out / "images", *arguments, self.out, each=200)
        last = self.told(process, file, lambda now: now["images"] and 0 < now["images"][0]["tiles"] < 341)[-1]
        process.send_signal(signal.SIGSTOP)
        self.assertEqual((last["version"], last["process"]["pid"], last["slides"]["total"]), (1, process.pid, 2))
        self.assertEqual(sum(image["tiles"] for image in last["images"]), last["tiles_written"])
        for image in last["images"]:
            # 32 x 8, 16 x 4, 8 x 2, 4 x 1, 2 x 1, 1 x 1
            self.assertEqual(image["tiles_total"], 256 + 64 + 16 + 4 + 2 + 1)
            self.assertIn(pathlib.Path(image["slide"]).name, ("slide-000.svs", "slide-001.svs"))
            self.assertRegex(image["file"], r"\Aimages/slide-00\d\.sobel\.partial\.ome\.tif\Z")
        text = self.status(self.out)
        self.assertRegex(text, r"written   [\d,]+ tiles, [\d.]+ \w+ since the start\n")
        self.assertRegex(text, r"writing   images/slide-00\d.sobel.partial.ome.tif: \d+ of 343 tiles \(\d+ %\), ")
        self.assertEqual(json.loads(run("status", self.out, "--json").stdout)["progress"]["process"]["pid"], process.pid)
        process.kill()
        process.communicate()
        # What was told is in the files.
        last = json.loads(file.read_text())
        written = 0
        for image in last["images"]:
            with BigTiff(self.out / image["file"]) as tiff:
                there = 0
                for directory in tiff.chain:
                    places = directory["offsets"]
                    there += sum(place != tiff.chain[0]["offsets"][-1] for place in places)
                self.assertGreaterEqual(there, image["tiles"])
                written += there
        self.assertGreater(written, 0)
        text = self.status(self.out)
        self.assertIn("dead: the same command goes on from here", text)
        self.assertIn("or more until it died", text)
        self.assertRegex(text, r"partial   images/slide-00\d.sobel.partial.ome.tif: \d+ of 343 tiles")
        # It may have died after the end of an image, and before it told of that.
        told = file.read_text()
        file.write_text(told.replace(last["images"][0]["file"], "images/gone.partial.ome.tif"))
        self.assertNotIn("gone", self.status(self.out))
        file.write_text(told)
        self.assertEqual(run(*arguments, self.out).returncode, 0)
        self.assertFalse(file.exists())
        self.assertSameResults(self.out, self.folder / "whole")
        self.assertRegex(self.status(self.out), r"state     ended\n(.*\n)*made      2 files, ")

    def test_a_run_that_makes_figures_alone(self):
        slides = self.tiny_slides(3)
        # Some fifty calls come after the first slide is done: seconds, as it is told once a second.
        process = self.begin(self.out, slides, "--out", self.out, each=100)
        file = self.out / "progress.json"
        told = self.told(process, file, lambda now: now["slides"]["done"] >= 1)
        self.assertEqual((told[-1]["images"], told[-1]["tiles_written"]), ([], 0))
        self.assertNotIn("tiles", self.status(self.out))
        self.assertEqual(process.wait(), 0)
        self.assertFalse(file.exists())

    def test_a_signal_when_all_is_done_leaves_nothing(self):
        slides = self.tiny_slides(1)
        # It stops itself where the map of its only slide is written, which the ledger has by then.
        environment = {**ENVIRONMENT, "LD_PRELOAD": FAULTY_STORAGE, "FAULTY": "stop:1", "FAULTY_ROOT": f"{self.out}/maps/"}
        process = subprocess.Popen([PIPELINE, str(slides), "--out", str(self.out), "--maps", "npy"], env=environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status), status)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        said, told = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 0, told)
        self.assertIn("nothing is left: 1 of 1 slides done, 0 failed", told)
        self.assertNotIn("the same command", told)
        self.assertIn("done     1 slide", said)
        self.assertFalse(json.loads((self.out / "corpus.json").read_text())["interrupted"])

    def test_slides_are_few_commits(self):
        """A start is none, and one that keeps a slide waits five times for storage without a write-ahead log."""
        syncs = []
        seconds = 0.0
        for count in 4, 24:
            shutil.rmtree(self.folder / "slides", ignore_errors=True)
            self.out = self.folder / f"out-{count}"
            slides = self.tiny_slides(count)
            begin = time.monotonic()
            result, calls = self.faulty("count", self.out, slides, "--out", self.out, "-s", "output.journal=rollback")
            seconds = time.monotonic() - begin
            self.assertEqual(result.returncode, 0, result.stderr)
            syncs.append(calls["sync"])
        # A run shows once a second that it lives, too.
        self.assertLessEqual(syncs[1] - syncs[0], 6 * (20 + seconds), syncs)

    def test_one_image(self):
        slide = self.slide("wide", "4096x1024")
        made = self.folder / "made"
        made.mkdir()
        image = made / "wide.ome.tif"
        file = made / "wide.partial.progress.json"
        self.assertIn("wide.ome.tif: nobody writes it", run("status", image).stderr)
        process = self.begin(made, "convert", slide, image, "--tile", 128, each=200)
        self.told(process, file, lambda now: now["tiles_written"] > 0)
        process.send_signal(signal.SIGSTOP)
        self.assertRegex(self.status(image), rf"state     running \(.*process {process.pid}\)(.*)\n"
                         r"written   .* since the start\nwriting   .*wide.partial.ome.tif: \d+ of 343 tiles")
        # Who is refused leaves what the first one says.
        second = run("convert", slide, image)
        self.assertEqual(second.returncode, 2, second.stderr)
        self.assertIn("wide.partial.ome.tif: somebody is writing it", second.stderr)
        self.assertRegex(self.status(image), rf"state     running \(.*process {process.pid}\)")
        process.kill()
        process.communicate()
        self.assertRegex(self.status(image), r"state     dead: (.*\n)+partial   ")
        self.assertEqual(run("convert", slide, image).returncode, 0)
        self.assertEqual(sorted(path.name for path in made.iterdir()), ["wide.ome.tif"])
        self.assertIn("wide.ome.tif: it is whole, and nobody writes it", run("status", image).stderr)

    def test_it_is_not_written_where_it_cannot_be(self):
        slides = self.tiny_slides(4)
        (self.out / "progress.json" / "in the way").mkdir(parents=True)
        process = self.begin(self.out, slides, "--out", self.out, each=20)
        stderr = process.communicate()[1]
        self.assertEqual(process.returncode, 0, stderr)
        self.assertEqual(stderr.count("progress.json"), 1, stderr)


if __name__ == "__main__":
    unittest.main()
