#!/usr/bin/env python3
"""What scripts/check-privacy.py finds in results, and what it says where it can't search."""

import base64
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check-privacy.py"
NAME = "DOE JANE MRN4711"


class Search(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name)
        self.results = self.top / "results"
        self.results.mkdir()
        (self.top / "values").write_text(NAME + "\n")

    def search(self, *folders):
        return subprocess.run([sys.executable, "-B", str(SCRIPT), *map(str, folders or [self.results]), "--values",
                               str(self.top / "values")], capture_output=True, text=True, timeout=60, check=False)

    def assert_found(self, place):
        result = self.search()
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn(place + ": has value 1 of 1", result.stdout)
        self.assertNotIn("JANE", result.stdout)

    def test_nothing(self):
        (self.results / "slides.csv").write_text("path,status\n" + "0123456789abcdef" * 9 + "\n")
        result = self.search()
        self.assertEqual((result.returncode, result.stdout), (0, "1 files, 1 values: 0 found\n"), result.stderr)

    def test_profiles_in_base64(self):
        # The text lies at any of the three places that base64 has in four letters.
        count = 0
        for before in range(3):
            for encoding in "utf-8", "utf-16-be", "utf-16-le":
                profile = b"\x01" * (128 + before) + NAME.encode(encoding) + b"\xff\xfe" * 20
                text = json.dumps({"icc": base64.b64encode(profile).decode()})
                for written in text, text.replace("/", "\\/"):
                    count += 1
                    (self.results / f"{count}.json").write_text(written)
        result = self.search()
        self.assertEqual(result.stdout.count(".json (base64): has value 1 of 1"), count, result.stdout + result.stderr)
        self.assertEqual(result.returncode, 1)

    def test_base64_in_an_archive(self):
        with zipfile.ZipFile(self.results / "image.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("zarr.json", json.dumps({"icc": base64.b64encode(NAME.encode()).decode()}))
        self.assert_found("image.zip/zarr.json (base64)")

    def test_folders_behind_links(self):
        images = self.top / "disk"
        images.mkdir()
        (images / "a.txt").write_text(NAME)
        (images / "around").symlink_to(self.results)
        (self.results / "images").symlink_to(images)
        self.assert_found("images/a.txt")

    def test_names_of_folders_and_what_links_say(self):
        (self.results / (NAME + ".zarr")).mkdir()
        self.assertEqual(self.search().returncode, 1)
        (self.results / (NAME + ".zarr")).rmdir()
        (self.results / "link").symlink_to("/nowhere/" + NAME)
        self.assert_found("link")

    def test_what_is_not_there(self):
        self.assertEqual(self.search(self.top / "none").returncode, 2)


if __name__ == "__main__":
    unittest.main()
