"""Several operators in one run, from outside: `PIPELINE=path/to/pipeline operators_test.py [CLASS ...]`."""

import csv
import json
import shutil
import unittest

from program_test import Case, run


class Failing(Case):
    """An operator that fails on a slide doesn't discard what the others made of it."""

    def test_the_others_keep_what_they_made(self):
        slides = self.folder / "slides"
        slides.mkdir()
        for name in "a", "b":
            shutil.copy(self.slide(), slides / f"{name}.svs")
        outlines = '{"type": "Polygon", "coordinates": [[[0, 0], [900, 0], [900, 700], [0, 0]]]}'
        (slides / "a.geojson").write_text(outlines)
        command = (slides, "--operators", "identity,tissue", "-s", "tissue.source=geojson", "-o", self.out)
        result = run(*command)
        self.assertEqual(result.returncode, 1)
        self.assertIn("b.svs: tissue: ", result.stderr)
        self.assertIn("what the other operators made of it is kept", result.stderr)
        self.assertRegex(result.stdout, r"(?m)^done +2 slides, 4 files of ")
        self.assertRegex(result.stdout, r"(?m)^failed +1 of 2 \(1 in one operator alone\)$")
        self.assertRegex(result.stdout, r"(?m)^ +1 x tissue: .*b.svs$")
        self.assertTrue((self.out / "images" / "b.identity.ome.tif").is_file())
        self.assertFalse((self.out / "images" / "b.tissue.geojson").exists())
        rows = self.rows()
        self.assertEqual([row["status"] for row in rows], ["done", "done"])
        self.assertEqual((rows[0]["error"], rows[1]["error"][:8], rows[1]["tissue.share"]), ("", "tissue: ", ""))
        with open(self.out / "failures.csv", newline="") as file:
            (failure,) = csv.DictReader(file)
        self.assertEqual((failure["path"], failure["stage"]), (str(slides / "b.svs"), "tissue"))
        totals = json.loads((self.out / "corpus.json").read_text())["totals"]
        self.assertEqual((totals["slides_done"], totals["slides_failed"], totals["slides_incomplete"]), (2, 0, 1))
        status = run("status", self.out)
        self.assertRegex(status.stdout, r"(?m)^failed +.*b.svs: tissue: ")

        # The same command again has nothing to do, and says what is missing.
        again = run(*command)
        self.assertEqual(again.returncode, 1)
        self.assertIn("skipped as an operator failed on them: 1 of 2 slides; --retry-failed", again.stderr)
        (slides / "b.geojson").write_text(outlines)
        retried = run(*command, "--retry-failed")
        self.assertEqual(retried.returncode, 0, retried.stderr)
        self.assertEqual([row["error"] for row in self.rows()], ["", ""])
        self.assertTrue((self.out / "images" / "b.tissue.geojson").is_file())


if __name__ == "__main__":
    unittest.main()
