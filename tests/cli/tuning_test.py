"""Seeing and tuning from outside: `PIPELINE=path/to/pipeline tuning_test.py [CLASS ...]`."""

import csv
import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from program_test import ENVIRONMENT, PIPELINE, Case, run
from time_limits import time_limit  # noqa: E402

CONFIGS = pathlib.Path(__file__).parents[2] / "configs"
# Of the slide that is swept.
WIDTH, HEIGHT = 640, 520


class DryRun(Case):
    def test_says_what_would_be_done_and_does_nothing(self):
        slide = self.slide()
        result = run("--backend", "cpu", "--threads", 2, "--out", self.out, "--dry-run", slide, cwd=self.folder)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(list(self.folder.iterdir()), [])
        self.assertIn("CPU, 2 threads", result.stdout)
        self.assertIn("1024 x 768", result.stdout)
        self.assertRegex(result.stdout, r"1 slide, .*, 35 windows, 1 batch\n")
        done = run("--backend", "cpu", "--out", self.out, slide)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.rows()[0]["windows"], "35")
        self.assertIn("1 done by an earlier run and skipped", run("--out", self.out, "--dry-run", slide).stdout)
        # What is refused skips nothing.
        other = run("--backend", "cpu", "--out", self.out, "--dry-run", "--set", "analysis.stride=64", slide)
        self.assertOneLine(other, 2, "analysis.stride")
        self.assertIn(f"results  {self.out}\n", other.stdout)
        self.assertOneLine(run("--backend", "cpu", "--out", slide, "--dry-run", slide), 2, f"{slide}: Not a directory")

    def test_slides_that_would_fail(self):
        result = run("--backend", "cpu", "--dry-run", self.folder / "none.svs", self.slide())
        self.assertEqual((result.returncode, result.stderr), (1, ""))
        self.assertRegex(result.stdout, r"would fail  .*none.svs: can't be opened: No such file")

    def test_gpus_that_are_not_here(self):
        result = run("--config", CONFIGS / "h200x4.toml", "--dry-run", "--assume-gpu", "H200", self.slide())
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"on +4 x h200, fused-256 \(assumed: ")
        self.assertRegex(result.stdout, r"GPU +\d+\.\d+ GiB of each; ")
        self.assertIn("(GPU)", result.stdout)  # where tiles are decoded

    def test_refuses_what_could_not_run(self):
        small = self.slide()
        for residency, other in [("strips", "whole"), ("whole", "strips")]:
            result = run("--set", f"pipeline.residency={residency}", "--dry-run", "--assume-gpu", "H200", small)
            self.assertRegex(result.stdout, rf'GPU .*; with pipeline\.residency = "{other}" [0-9.]+ [GM]iB')
        self.assertOneLine(run("--dry-run", "--assume-gpu", "k80", small), 2, "one of a40, a100, h100, h200")
        self.assertOneLine(run("--assume-gpu", "a40", small), 2, "goes with --dry-run")
        self.assertOneLine(run("--backend", "cpu", "--dry-run", "--assume-gpu", "a40", small), 2, "pipeline.backend")
        self.assertOneLine(run("--dry-run", "--shard", "1/2", small), 2, "leave --shard out")
        self.assertOneLine(run("--set", "input.io=mmap", "--dry-run", small), 2, "input.io")
        result = run("--set", "pipeline.memory_mib=400000", "--dry-run", "--assume-gpu", "a40", small)
        # A control group that bounds memory has a line of its own.
        result.stderr = "".join(line for line in result.stderr.splitlines(keepends=True)
                                if not re.search(r"this run may take .* of memory, and its control group may have ", line))
        self.assertOneLine(result, 2, "lower pipeline.memory_mib")

    def test_the_memory_that_configurations_name(self):
        for file in sorted(CONFIGS.glob("*.toml")):
            with self.subTest(file=file.name):
                text = file.read_text()
                said = re.search(r"# Memory, by `pipeline ([^`]*)`:\n((?:#   .*\n)+)", text)
                self.assertIsNotNone(said, "names no memory")
                result = run(*said.group(1).split(), cwd=CONFIGS.parent)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                lines = [line for line in result.stdout.splitlines() if line.startswith(("host ", "GPU "))]
                self.assertEqual(said.group(2), "".join(f"#   {line}\n" for line in lines))


class Sweep(Case):
    once = None
    AXES = ["--over", "pipeline.strip_height=256,512", "--over", "pipeline.queue_depth=1,4"]

    def arguments(self, *more):
        more = more if "--repeat" in more else ("--repeat", 2, *more)
        slide = self.slide("swept", f"{WIDTH}x{HEIGHT}")
        return ["sweep", slide, "--set", "pipeline.backend=cpu", "--set", "pipeline.threads=2", "--set",
                "pipeline.strip_height=512", *self.AXES, "--out", self.out, *more]

    def measured(self):
        """One run of each combination, which is made once."""
        if Sweep.once is None:
            Sweep.once = tempfile.TemporaryDirectory()
            self.out = pathlib.Path(Sweep.once.name, "out")
            self.assertEqual(run(*self.arguments("--repeat", 1)).returncode, 0)
        self.out = self.folder / "out"
        shutil.copytree(pathlib.Path(Sweep.once.name, "out"), self.out)

    def rows(self, folder=None):
        with open((folder or self.out) / "sweep.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def rewrite(self, rows):
        with open(self.out / "sweep.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)

    def test_measures_all_and_names_the_fastest(self):
        result = run(*self.arguments())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("4 combinations, 2 runs each after 1 to warm up, in an order by seed 1", result.stderr)
        rows = self.rows()
        grid = [row for row in rows if row["phase"] == "grid"]
        self.assertEqual(len(grid), 8)
        # Rounds of all, not one after the other.
        first = {(row["pipeline.strip_height"], row["pipeline.queue_depth"]) for row in grid[:4]}
        self.assertEqual(first, {("256", "1"), ("256", "4"), ("512", "1"), ("512", "4")})
        self.assertEqual(len({row["results"] for row in rows}), 1)
        for row in rows:
            self.assertEqual((row["status"], row["backend"], row["analysis.window"]), ("done", "cpu", "256"))
            self.assertEqual(row["base"], "yes" if row["pipeline.strip_height"] == "512" and
                             row["pipeline.queue_depth"] == "4" else "no")
            self.assertGreater(float(row["seconds"]), 0)
            self.assertAlmostEqual(float(row["gpx_per_s"]), WIDTH * HEIGHT / float(row["seconds"]) / 1e9, 6)
            for stage in "read", "decode", "compute", "reduce":
                self.assertGreaterEqual(float(row[stage + "_busy"]), 0)
                self.assertLessEqual(float(row[stage + "_wait"]), 1)
            self.assertEqual(row["upload_busy"], "")  # no GPU
            self.assertGreater(int(row["peak_host_bytes"] or 1), 0)
        self.assertIn("equal to the bit", result.stdout)
        tuned = (self.out / "tuned.toml").read_text()
        self.assertIn("# The fastest of 4 combinations of pipeline.strip_height, pipeline.queue_depth:", tuned)
        printed = run("--config", self.out / "tuned.toml", "--print-config")
        self.assertEqual((printed.returncode, printed.stderr), (0, ""))
        self.assertIn('backend = "cpu"', printed.stdout)
        self.assertIn("threads = 2", printed.stdout)

    def test_the_same_command_goes_on(self):
        process = subprocess.Popen([PIPELINE, *map(str, self.arguments("--repeat", 200))], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        file = self.out / "sweep.csv"
        for _ in range(2400):
            if file.exists() and file.read_bytes().count(b"\r\n") > 6:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=time_limit(60))
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("the same command goes on", errors)
        self.assertIn("median s", output)
        before = file.read_bytes()
        measured = len(self.rows())
        file.write_bytes(before + b"2026-11-21T00:00:00Z,a row that a crash cut o")
        result = run(*self.arguments("--repeat", 4))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"{measured} rows of", result.stderr)
        self.assertTrue(file.read_bytes().startswith(before))
        self.assertNotIn(b"crash", file.read_bytes())

    def test_refuses_rows_of_another_sweep(self):
        self.measured()
        self.assertOneLine(run(*self.arguments("-t", "1")), 2, "pipeline.threads is 1 here and was 2")
        self.assertOneLine(run(*self.arguments("--cache", "cold")), 2, "page cache is cold here and was warm")
        with open(self.out / "sweep.csv") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.assertOneLine(run(*self.arguments()), 2, "another sweep is writing it")
        fresh = run(*self.arguments("--set", "pipeline.threads=1", "--repeat", 1, "--fresh"))
        self.assertEqual(fresh.returncode, 0, fresh.stderr)
        self.assertEqual({row["pipeline.threads"] for row in self.rows()}, {"1"})
        (self.out / "sweep.csv").write_text("a,b\r\n1,2\r\n")
        self.assertOneLine(run(*self.arguments()), 2, "has other columns")

    def test_results_that_differ_end_it(self):
        self.measured()
        rows = self.rows()
        rows[1]["results"] = "0123456789abcdef"
        self.rewrite(rows)
        (self.out / "tuned.toml").unlink()
        result = run(*self.arguments())
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"results differ between 'strip_height=\d+ queue_depth=\d' and 'strip_height=")
        self.assertFalse((self.out / "tuned.toml").exists())

    def test_what_is_a_difference(self):
        self.measured()
        template = self.rows()[0]
        times = {("256", "1"): ["1.0", "1.1"], ("256", "4"): ["0.5", "0.51"], ("512", "1"): ["1.0", "1.1"],
                 ("512", "4"): ["1.0", "1.1"]}
        rows = []
        for (height, depth), seconds in times.items():
            settings = {"pipeline.strip_height": height, "pipeline.queue_depth": depth,
                        "base": "yes" if (height, depth) == ("512", "4") else "no"}
            rows += [{**template, **settings, "phase": "grid", "seconds": second} for second in seconds]
        winner = {**template, "pipeline.strip_height": "256", "pipeline.queue_depth": "4", "base": "no",
                  "phase": "confirm"}
        base = {**template, "pipeline.strip_height": "512", "pipeline.queue_depth": "4", "base": "yes",
                "phase": "confirm"}
        clear = [{**winner, "seconds": f"0.5{i}"} for i in range(4)] + [{**base, "seconds": f"1.{i}"} for i in range(4)]
        self.rewrite(rows + clear)
        result = run(*self.arguments())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("median 0.5150 s against 1.1500 s of the base, 55.2 % less time", result.stdout)
        tuned = (self.out / "tuned.toml").read_text()
        self.assertIn("one-sided p = 0.014", tuned.replace("\n# ", " "))
        self.assertIn("strip_height = 256\n", tuned)
        mixed = [{**winner, "seconds": s} for s in ("0.9", "1.0", "1.1", "1.2")]
        mixed += [{**base, "seconds": s} for s in ("0.95", "1.05", "1.15", "1.01")]
        self.rewrite(rows + mixed)
        result = run(*self.arguments())
        self.assertIn("no significant difference: median 1.0500 s against 1.0300 s", result.stdout)
        self.assertIn("no significant difference", (self.out / "tuned.toml").read_text())

    def test_losers_stop_early(self):
        self.measured()
        rows = [row for row in self.rows() if row["phase"] == "grid"]
        slow = {"pipeline.strip_height": "256", "pipeline.queue_depth": "1"}
        rows = [{**row, "seconds": seconds} for row in rows for seconds in
                (("100.0", "100.1") if all(row[key] == value for key, value in slow.items()) else ("0.5", "0.6"))]
        self.rewrite(rows)
        result = run(*self.arguments("--repeat", 4))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"strip_height=256 queue_depth=1 +2 +100\.0000 .* can't win\n")

    def test_what_cannot_run_is_listed(self):
        result = run("sweep", self.slide(), "--set", "pipeline.backend=cpu", "--over", "pipeline.memory_mib=1,640",
                     "--over", "decode.device=cpu,gpu", "--repeat", 1, "--out", self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"refused  memory_mib=1 device=cpu: .*raise pipeline.memory_mib")
        self.assertRegex(result.stdout, r"refused  memory_mib=640 device=gpu: .*decode.device")
        self.assertEqual({row["status"] for row in self.rows()}, {"done", "refused"})
        (self.folder / "bad.svs").write_text("not a slide")
        result = run("sweep", self.folder / "bad.svs", "--over", "pipeline.threads=1,2", "--out", self.folder / "none")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no combination could be measured", result.stderr)

    def test_budget(self):
        # A busy machine may measure nothing in a short time.
        for budget in 2, 10, 50:
            self.out = self.folder / str(budget)
            start = time.monotonic()
            result = run(*self.arguments("--repeat", 1000, "--budget", budget))
            self.assertLess(time.monotonic() - start, budget + 30)
            if "fastest" in result.stdout:
                break
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"the budget of {budget} s ended it", result.stderr)
        self.assertIn("fastest", result.stdout)

    def test_too_few_combinations_have_no_fastest(self):
        self.measured()
        (self.out / "tuned.toml").unlink()
        grid = [row for row in self.rows() if row["phase"] == "grid"]
        self.assertEqual(len(grid), 4)
        # Nothing more is measured in no time.
        nothing = self.arguments("--budget", "0.000001")
        self.rewrite(grid[:1])
        result = run(*nothing)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("measured 1 of 4 combinations: too few to choose from", result.stdout)
        self.assertNotIn("fastest", result.stdout)
        self.assertFalse((self.out / "tuned.toml").exists())
        self.rewrite(grid[:2])
        result = run(*nothing)
        self.assertRegex(result.stdout, r"fastest  .*; 2 of 4 combinations were measured\n")
        self.assertIn("# The fastest of 2 measured of 4 combinations", (self.out / "tuned.toml").read_text())

    def test_cold_cache(self):
        slide = self.folder / "own.svs"
        shutil.copy(self.slide(), slide)
        result = run("sweep", slide, "--set", "pipeline.backend=cpu", "--over", "pipeline.queue_depth=1,4", "--repeat", 1,
                     "--cache", "cold", "--out", self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        known = [float(row["cached_before"]) for row in self.rows() if row["cached_before"]]
        if not known:
            self.assertIn("doesn't tell", result.stderr)
        elif max(known) > 0.02:
            self.assertIn("can't be taken out of the page cache", result.stderr)

    def test_live_table(self):
        leader, follower = pty.openpty()
        process = subprocess.Popen([PIPELINE, *map(str, self.arguments("--repeat", 1))], stdout=subprocess.DEVNULL,
                                   stderr=follower, env=ENVIRONMENT)
        os.close(follower)
        shown = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:
                break
            if not part:
                break
            shown += part
        os.close(leader)
        self.assertEqual(process.wait(120), 0)
        self.assertIn(b"warm-up: ", shown)
        self.assertIn(b"\x1b[6A\r\x1b[J", shown)  # title, four combinations, what is being done

    def test_wrong_usage(self):
        slide = self.slide()
        for arguments, message in [
            ([], "required"),
            (["--over", "pipeline.threads=1,2"], "--out"),
            (["--out", self.out], "--over"),
            (["--over", "pipeline.thread=1", "--out", self.out], "did you mean 'pipeline.threads'?"),
            (["--over", "pipeline.threads=1,1", "--out", self.out], "twice"),
            (["--over", "output.dir=a,b", "--out", self.out], "can't be swept"),
            (["--over", "pipeline.threads=1", "--cache", "hot", "--out", self.out], "--cache"),
            (["--over", "pipeline.threads=1", "--repeat", "0", "--out", self.out], "--repeat"),
        ]:
            with self.subTest(arguments=arguments):
                self.assertOneLine(run("sweep", slide, *arguments), 2, message)
        self.assertFalse(self.out.exists())

    def test_a_folder_within_an_image(self):
        slide = self.slide()
        image = self.folder / "x.dicom"
        self.assertEqual(run("convert", slide, image, "-s", "input.mpp=0.25").returncode, 0)
        before = sorted(image.iterdir())
        for folder in image, image / "new":
            result = run("sweep", slide, "--over", "pipeline.threads=1,2", "--out", folder)
            self.assertOneLine(result, 2, "an image of this program; name another")
        self.assertEqual(sorted(image.iterdir()), before)


class Compare(Case):
    def results(self, name, *arguments):
        folder = self.folder / name
        result = run(*arguments, "--backend", "cpu", "--out", folder, "--quiet")
        self.assertEqual(result.returncode, 0, result.stderr)
        return folder

    def test_the_same_and_not(self):
        slides = [self.slide(), self.slide("second", "512x512")]
        one = self.results("one", *slides)
        two = self.results("two", *slides, "--set", "pipeline.strip_height=256")
        same = run("compare", one, two, "--tolerance", 0)
        self.assertEqual((same.returncode, same.stderr), (0, ""))
        self.assertIn("2 slides compared (second less first), 2 equal to the bit, 0 not compared", same.stdout)
        other = self.results("other", *slides, "--set", "analysis.smoothing_sigma=2")
        self.assertEqual(run("compare", one, other).returncode, 0)
        result = run("compare", one, other, "--json")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        found = json.loads(result.stdout)
        self.assertEqual(found["settings"], ["analysis.smoothing_sigma: 1.4, then 2.0"])
        self.assertEqual([slide["first"] for slide in found["slides"]], list(map(str, slides)))
        with open(one / "slides.csv", newline="") as a, open(other / "slides.csv", newline="") as b:
            for slide, before, after in zip(found["slides"], csv.DictReader(a), csv.DictReader(b)):
                self.assertAlmostEqual(slide["mean"], float(after["mean_db"]) - float(before["mean_db"]), 9)
                self.assertAlmostEqual(slide["std"], float(after["std_db"]) - float(before["std_db"]), 9)
                for p in "p05", "p50", "p95":
                    self.assertAlmostEqual(slide[p], float(after[p]) - float(before[p]), 9)
        totals = [json.loads((folder / "corpus.json").read_text()) for folder in (one, other)]
        self.assertAlmostEqual(found["corpus"]["mean"], totals[1]["totals"]["mean"] - totals[0]["totals"]["mean"], 9)
        shares = [[count / sum(each["histogram"]) for count in each["histogram"]] for each in totals]
        self.assertAlmostEqual(found["corpus"]["l1"], sum(abs(a - b) for a, b in zip(*shares)), 9)
        moved = total = 0.0
        for a, b in zip(*shares):
            total += b - a
            moved += abs(total) * 0.1
        self.assertAlmostEqual(found["corpus"]["wasserstein"], moved, 9)
        largest = max(abs(slide[key]) for slide in found["slides"] for key in ("mean", "std", "p05", "p50", "p95",
                                                                             "wasserstein"))
        self.assertEqual(run("compare", one, other, "--tolerance", largest * 1.01).returncode, 0)
        self.assertOneLine(run("compare", one, other, "--tolerance", largest * 0.99), 1, "differ by more than")

    def figures(self, folder):
        with open(folder / "slides.csv", newline="", encoding="utf-8") as file:
            return {row["path"]: {name: float(value) for name, value in row.items() if "." in name} for row in csv.DictReader(file)}

    def test_what_both_made_without_spectra(self):
        slides = [self.slide("stained-1", "1024x768"), self.slide("stained-2", "1024x768", "--seed", "2")]
        made = ("--operators", "stain,tissue")
        one = self.results("one", *slides, *made)
        same = run("compare", one, one, "--tolerance", 0)
        self.assertEqual(same.returncode, 0, same.stderr)
        for invented in "dB", "L1", "Wasserstein", "corpus":
            self.assertNotIn(invented, same.stdout)
        self.assertIn("6 of 6 files that both made are equal", same.stdout)
        self.assertIn("2 slides compared (second less first), 2 equal to the bit, 0 not compared", same.stdout)
        other = self.results("other", *slides, *made, "--set", "stain.mpp=2")
        found = json.loads(run("compare", one, other, "--json").stdout)
        self.assertIsNone(found["corpus"])
        self.assertNotIn("unit", found)
        before, after = self.figures(one), self.figures(other)
        largest = 0.0
        for slide in found["slides"]:
            self.assertEqual(set(slide["values"]), set(before[slide["first"]]))
            self.assertTrue({"mean", "l1", "equal"}.isdisjoint(slide))
            self.assertEqual((slide["files"], slide["equal_files"]), (3, 2))  # the mask is the same
            for name, value in slide["values"].items():
                pair = before[slide["first"]][name], after[slide["first"]][name]
                self.assertEqual((value["first"], value["second"]), pair, name)
                self.assertEqual(value["difference"], pair[1] - pair[0])
                largest = max(largest, abs(pair[1] - pair[0]))
            self.assertEqual(slide["values"]["tissue.share"]["difference"], 0)
        self.assertGreater(largest, 0)
        self.assertEqual(run("compare", one, other, "--tolerance", 1000).returncode, 1)  # other files
        lines = run("compare", one, other).stdout.splitlines()
        [row] = [line.split() for line in lines if line.startswith("tissue.share")]
        mean = sum(slide["tissue.share"] for slide in before.values()) / 2
        self.assertEqual(row, ["tissue.share", "2", f"{mean:.4f}", f"{mean:.4f}", "0", "0"])

    def test_what_only_one_run_made_is_said(self):
        spectrum = self.results("spectrum", self.slide())
        tissue = self.results("tissue", self.slide(), "--operators", "tissue")
        both = self.results("both", self.slide(), "--operators", "spectrum,tissue", "--set", "analysis.bins=300")
        nothing = run("compare", spectrum, tissue)
        self.assertEqual(nothing.returncode, 0, nothing.stderr)
        self.assertIn("only in the first  spectrum\n", nothing.stdout)
        self.assertIn("only in the second  tissue.share, tissue mask, tissue outlines\n", nothing.stdout)
        self.assertIn("the runs made nothing of it that both have", nothing.stdout)
        self.assertIn("0 slides compared (second less first), 0 equal to the bit, 1 not compared", nothing.stdout)
        # The bins of spectra that aren't compared don't matter.
        found = json.loads(run("compare", tissue, both, "--json", "--tolerance", 0).stdout)
        self.assertEqual((found["only_first"], found["only_second"], found["within"]), ([], ["spectrum"], False))
        self.assertEqual(found["slides"][0]["values"]["tissue.share"]["difference"], 0)
        self.assertEqual((found["slides"][0]["equal_files"], found["slides"][0]["files"]), (2, 2))

    def test_maps_that_only_one_run_made_are_a_difference(self):
        plain = self.results("plain", self.slide())
        maps = self.results("maps", self.slide(), "--maps", "npy")
        for pair, only in (((plain, maps), ([], ["maps"])), ((maps, plain), (["maps"], [])), ((maps, maps), ([], []))):
            result = run("compare", *pair, "--json", "--tolerance", 0)
            found = json.loads(result.stdout)
            self.assertEqual((found["only_first"], found["only_second"]), only)
            self.assertEqual((result.returncode, found["within"]), (0, True) if pair == (maps, maps) else (1, False))

    def test_converted_slides(self):
        one = self.results("one", self.slide(), "--operators", "identity")
        two = self.results("two", self.slide(), "--operators", "identity", "--set", "image.quality=50")
        same = run("compare", one, one, "--tolerance", 0)
        self.assertEqual((same.returncode, same.stderr), (0, ""))
        self.assertEqual(same.stdout, "1 of 1 files that both made are equal\n\n"
                         "1 slide compared (second less first), 1 equal to the bit, 0 not compared\n")
        self.assertEqual(run("compare", one, two, "--tolerance", 0).returncode, 1)
        self.assertIn("0 of 1 files", run("compare", one, two).stdout)

    def test_slides_are_matched_by_path_then_by_name(self):
        moved = self.folder / "elsewhere"
        moved.mkdir()
        shutil.copy(self.slide(), moved / "small.svs")
        shutil.copy(self.slide("second", "512x512"), moved / "only.svs")
        one = self.results("one", self.slide(), self.slide("second", "512x512"))
        two = self.results("two", moved)
        result = run("compare", one, two, "--json", "--tolerance", 1)
        self.assertEqual(result.returncode, 1)  # not all could be compared
        found = json.loads(result.stdout)
        self.assertEqual([(slide["first"], slide["second"]) for slide in found["slides"]],
                         [(str(self.slide()), str(moved / "small.svs"))])
        self.assertEqual({(slide["path"], slide["why"]) for slide in found["unmatched"]},
                         {(str(self.slide("second")), "only in the first"), (str(moved / "only.svs"), "only in the second")})
        self.assertFalse(found["within"])

    def test_failed_slides_are_not_compared(self):
        (self.folder / "bad.svs").write_text("not a slide")
        one = self.folder / "one"
        self.assertEqual(run(self.slide(), self.folder / "bad.svs", "--out", one, "--backend", "cpu").returncode, 1)
        result = run("compare", one, one)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("bad.svs: done in neither", result.stdout)
        self.assertEqual(run("compare", one, one, "--tolerance", 0).returncode, 1)

    def test_refuses_what_is_not_comparable(self):
        one = self.results("one", self.slide())
        for setting, key in (("analysis.bins=300", "bins"), ("analysis.range=[0, 200]", "range"),
                             ("analysis.value=db", "value")):
            other = self.results(key, self.slide(), "--set", setting)
            self.assertOneLine(run("compare", one, other), 2, "can't be compared: analysis." + key)
        self.assertOneLine(run("compare", one, self.folder / "none"), 2, "No such file")
        (self.folder / "empty").mkdir()
        self.assertOneLine(run("compare", one, self.folder / "empty"), 2, "run.sqlite")
        for tolerance in "-1", "nan", "inf", "1x", "x":
            self.assertOneLine(run("compare", one, one, "--tolerance", tolerance), 2,
                               f"--tolerance: expected a number from 0, not '{tolerance}'")


if __name__ == "__main__":
    unittest.main()
