"""Statistics besides the distribution, from outside: `PIPELINE=path/to/pipeline statistics_test.py [CLASS ...]`."""

import array
import ast
import csv
import json
import math
import pathlib
import unittest

from program_test import Case, run


def npy(file):
    """Shape and numbers of a file of float64 or int64, row by row."""
    data = pathlib.Path(file).read_bytes()
    length = int.from_bytes(data[8:10], "little")
    header = ast.literal_eval(data[10 : 10 + length].decode())
    numbers = array.array({"<f8": "d", "<i8": "q"}[header["descr"]])
    numbers.frombytes(data[10 + length :])
    rows, columns = header["shape"]
    return [list(numbers[i * columns : (i + 1) * columns]) for i in range(rows)]


class StatisticsCase(Case):
    def analyse(self, out, *options, slides=None, status=0):
        done = run(*(slides or [self.slide()]), "-o", out, *options)
        self.assertEqual(done.returncode, status, done.stderr)
        return out

    def corpus(self, out):
        return json.loads((out / "corpus.json").read_text())

    def rows(self, out):
        with open(out / "slides.csv", newline="") as file:
            return list(csv.DictReader(file))

    def same_files(self, a, b, *names):
        for name in names:
            self.assertEqual((a / name).read_bytes(), (b / name).read_bytes(), name)


class Radial(StatisticsCase):
    ON = ("-s", "analysis.radial=true")

    def test_off_nothing_is_different(self):
        plain = self.analyse(self.folder / "plain")
        radial = self.analyse(self.folder / "radial", *self.ON)
        self.assertFalse((plain / "radial.npy").exists())
        self.assertNotIn("statistics", self.corpus(plain))
        self.same_files(plain, radial, "histograms.npy")
        self.assertEqual(self.corpus(plain)["totals"], self.corpus(radial)["totals"])
        self.assertEqual(list(self.rows(plain)[0]), list(self.rows(radial)[0]))

    def test_profiles_of_slides_and_corpus(self):
        other = self.slide("other", "800x600", "--seed", 3)
        broken = self.folder / "broken.svs"
        broken.write_bytes(b"nothing")
        slides = [self.slide(), broken, other]
        out = self.analyse(self.out, *self.ON, slides=slides, status=1)
        profiles = npy(out / "radial.npy")
        self.assertEqual([len(row) for row in profiles], [129] * 3)
        self.assertTrue(all(math.isnan(value) for value in profiles[1]))
        series = self.corpus(out)["statistics"]["radial"]["series"]["radial"]
        self.assertEqual((series["unit"], series["first"], series["step"]), ("dB", 0.0, 1.0))
        windows = [int(row["windows"] or 0) for row in self.rows(out)]
        for ring, value in enumerate(series["values"]):
            expected = (profiles[0][ring] * windows[0] + profiles[2][ring] * windows[2]) / sum(windows)
            self.assertAlmostEqual(value, expected, places=9)
        # |F(0,0)| is the sum of a window's pixels, and coefficients of tissue fall with the frequency.
        self.assertTrue(20 * math.log10(65536 * 100) < profiles[0][0] < 20 * math.log10(1 + 65536 * 255))
        self.assertTrue(profiles[0][0] > profiles[0][4] > profiles[0][40] > profiles[0][120])

    def test_how_work_is_cut_changes_nothing(self):
        first = self.analyse(self.folder / "first", *self.ON)
        for number, options in enumerate(
            (["-s", "pipeline.strip_height=256"], ["-s", "pipeline.threads=1"], ["-s", "pipeline.memory_mib=2"])
        ):
            out = self.analyse(self.folder / str(number), *self.ON, *options)
            self.same_files(first, out, "radial.npy", "histograms.npy")

    def test_shards_merge_to_the_same_bytes(self):
        slides = [self.slide(), self.slide("other", "800x600", "--seed", 3)]
        whole = self.analyse(self.folder / "whole", *self.ON, slides=slides)
        parts = [self.analyse(self.folder / f"part-{i}", *self.ON, "--shard", f"{i}/2", slides=slides) for i in (1, 2)]
        self.assertEqual(run("merge", *parts, "-o", self.out).returncode, 0)
        self.same_files(whole, self.out, "radial.npy")
        self.assertEqual(self.corpus(whole)["statistics"], self.corpus(self.out)["statistics"])

    def test_another_setting_is_another_run(self):
        self.analyse(self.out)
        refused = run(self.slide(), "-o", self.out, *self.ON)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("analysis.radial", refused.stderr)
        self.analyse(self.out, *self.ON, "--fresh")
        self.assertTrue((self.out / "radial.npy").exists())
        # The next one moves it aside as well.
        self.analyse(self.out, "--fresh")
        self.assertFalse((self.out / "radial.npy").exists())

    def test_comparisons(self):
        first = self.analyse(self.folder / "first", *self.ON)
        same = self.analyse(self.folder / "same", *self.ON, "-s", "pipeline.threads=1")
        other = self.analyse(self.folder / "other", *self.ON, "-s", "analysis.smoothing_radius=2")
        without = self.analyse(self.folder / "without")
        compared = run("compare", first, same, "--tolerance", 0)
        self.assertEqual(compared.returncode, 0, compared.stderr)
        self.assertIn("radial of the corpus: equal", compared.stdout)
        found = json.loads(run("compare", first, other, "--json").stdout)
        worst = max(zip(*(npy(out / "radial.npy")[0] for out in (first, other))), key=lambda pair: abs(pair[1] - pair[0]))
        self.assertFalse(found["slides"][0]["statistics"]["radial"]["equal"])
        self.assertAlmostEqual(found["slides"][0]["statistics"]["radial"]["radial"], worst[1] - worst[0])
        # A profile may differ by more than the distribution does.
        largest = max(abs(found["corpus"][key]) for key in ("mean", "std", "p05", "p50", "p95", "wasserstein"))
        between = (largest + abs(worst[1] - worst[0])) / 2
        self.assertEqual(run("compare", first, other, "--tolerance", between).returncode, 1)
        self.assertNotIn("radial of", run("compare", first, without).stdout)

    def test_a_value_that_is_none(self):
        refused = run(self.slide(), "-s", "analysis.radial=2", "-o", self.out)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("analysis.radial must be true or false", refused.stderr)


class Split(StatisticsCase):
    ON = ("-s", "analysis.split=true")
    NAMES = ("windows", "mean_db", "std_db", "p05", "p50", "p95")

    def test_columns_and_histograms_of_both_classes(self):
        broken = self.folder / "broken.svs"
        broken.write_bytes(b"nothing")
        out = self.analyse(self.out, *self.ON, slides=[self.slide(), broken], status=1)
        rows = self.rows(out)
        self.assertEqual(list(rows[0])[20:], [f"{c}_{name}" for c in ("tissue", "background") for name in self.NAMES])
        self.assertTrue(all(rows[1][f"tissue_{name}"] == "" for name in self.NAMES))
        windows = [int(rows[0][f"{c}_windows"]) for c in ("tissue", "background")]
        self.assertEqual(sum(windows), int(rows[0]["windows"]))
        self.assertTrue(min(windows) > 0, windows)
        means = [float(rows[0][f"{c}_mean_db"]) for c in ("tissue", "background")]
        self.assertGreater(means[0], means[1])
        together = (means[0] * windows[0] + means[1] * windows[1]) / sum(windows)
        self.assertAlmostEqual(together, float(rows[0]["mean_db"]), places=9)
        both = npy(out / "histograms.npy")
        tissue, background = npy(out / "tissue_histograms.npy"), npy(out / "background_histograms.npy")
        self.assertEqual(both, [[a + b for a, b in zip(*pair)] for pair in zip(tissue, background)])
        self.assertEqual(sum(tissue[0]), windows[0] * 65536)
        corpus = self.corpus(out)["statistics"]["split"]
        self.assertEqual(corpus["figures"]["tissue_windows"], windows[0])
        self.assertEqual(corpus["series"]["tissue_histograms"]["counts"], tissue[0])

    def test_how_work_is_cut_changes_nothing(self):
        names = ("tissue_histograms.npy", "background_histograms.npy", "histograms.npy")
        first = self.analyse(self.folder / "first", *self.ON)
        for number, options in enumerate((["pipeline.strip_height=256"], ["pipeline.threads=1"], ["analysis.radial=true"])):
            out = self.analyse(self.folder / str(number), *self.ON, "-s", *options)
            self.same_files(first, out, *names)
            self.assertEqual(self.corpus(first)["statistics"]["split"], self.corpus(out)["statistics"]["split"])

    def test_the_share_decides(self):
        first = self.analyse(self.out, *self.ON)
        refused = run(self.slide(), "-o", first, *self.ON, "-s", "tissue.share=0.9")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("tissue.share", refused.stderr)
        strict = self.analyse(self.folder / "strict", *self.ON, "-s", "tissue.share=1")
        lax = self.analyse(self.folder / "lax", *self.ON, "-s", "tissue.share=0")
        tissue = [int(self.rows(out)[0]["tissue_windows"]) for out in (strict, first, lax)]
        self.assertEqual(tissue[2], int(self.rows(lax)[0]["windows"]))
        self.assertLessEqual(tissue[0], tissue[1])
        self.assertLess(tissue[1], tissue[2])
        # Without the split it decides nothing.
        plain = self.analyse(self.folder / "plain")
        self.analyse(plain, "-s", "tissue.share=0.9")

    def test_comparisons_and_report(self):
        first = self.analyse(self.folder / "first", *self.ON, "-s", "analysis.radial=true")
        other = self.analyse(self.folder / "other", *self.ON, "-s", "tissue.share=0.9")
        found = json.loads(run("compare", first, other, "--json").stdout)
        self.assertTrue(found["corpus"]["equal"])
        split = found["corpus"]["statistics"]["split"]
        self.assertFalse(split["equal"])
        self.assertLess(split["tissue_windows"], 0)
        self.assertNotIn("radial", found["corpus"]["statistics"])
        self.assertEqual(run("compare", first, other, "--tolerance", 0).returncode, 1)
        page = self.folder / "report.html"
        self.assertEqual(run("report", first, other, "--html", page).returncode, 0)
        data = json.loads(page.read_text().split('<script type="application/json" id="data">')[1].split("</script>")[0])
        self.assertEqual([sorted(one["further"]) for one in data["runs"]], [["radial", "split"], ["split"]])
        self.assertEqual(len(data["runs"][0]["further"]["radial"]["series"]["radial"]["values"]), 129)
        tissue = [int(self.rows(out)[0]["tissue_windows"]) for out in (first, other)]
        self.assertEqual(data["figures"]["tissue_windows"], [[0, tissue[0]], [1, tissue[1]]])
        shares = data["runs"][0]["further"]["split"]["series"]["tissue_histograms"]
        self.assertAlmostEqual(sum(shares["values"]) * shares["step"], 100, places=0)


if __name__ == "__main__":
    unittest.main()
