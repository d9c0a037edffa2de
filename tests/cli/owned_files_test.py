"""Whose files are replaced, moved and removed: `PIPELINE=path/to/pipeline owned_files_test.py [CLASS ...]`."""

import contextlib
import json
import os
import shutil
import socket
import sqlite3
import unittest

from archive_test import results
from batch_test import BatchCase
from program_test import run

REFUSAL = "is there already, and this program didn't write it; --overwrite replaces it"
LINK = "is a link, and this program writes none; --overwrite replaces it, not what it leads to"


class Partial(BatchCase):
    """The names that images have until they are whole."""

    def test_files_of_others_fail_their_slides_alone(self):
        slides = self.folder_of("a.svs", "b.svs", "c.svs", "d.svs")
        images = self.out / "images"
        images.mkdir(parents=True)
        notes, slide, link = (images / f"{name}.identity.partial.ome.tif" for name in "abc")
        notes.write_text("my notes\n")
        shutil.copy(slides / "b.svs", slide)
        link.symlink_to("nothing")
        before = notes.read_bytes(), slide.read_bytes()
        for more in [], ["--retry-failed"]:
            result = run("convert", slides, "--out", self.out, *more)
            self.assertEqual(result.returncode, 1, result.stderr)
            for file in notes, slide:
                self.assertIn(f"{file}: {REFUSAL}", result.stderr)
            self.assertIn(f"{link}: {LINK}", result.stderr)
            self.assertEqual([row["status"] for row in self.rows()], ["failed", "failed", "failed", "done"])
            self.assertEqual((notes.read_bytes(), slide.read_bytes()), before)
            self.assertTrue(link.is_symlink())
        self.assertDone(run("convert", slides, "--out", self.out, "--retry-failed", "--overwrite"))
        self.assertEqual(sorted(os.listdir(images)), [f"{name}.identity.ome.tif" for name in "abcd"])

    def test_one_that_another_run_began_is_replaced_with_a_line(self):
        slides, other = self.folder_of("a.svs"), self.folder / "other.ome.tif"
        image, partial = (self.out / f"images/a.identity{suffix}" for suffix in (".ome.tif", ".partial.ome.tif"))
        partial.parent.mkdir(parents=True)
        self.assertDone(run("convert", slides / "a.svs", other))
        line = f"{partial}: another run of this program began it: it is replaced"
        shutil.copy(other, partial)
        self.assertIn(line, self.assertDone(run("convert", slides, "--out", self.out)).stderr)
        self.assertFalse(partial.exists())
        # This run's own, as a kill leaves it.
        shutil.copy(other, partial)
        image.unlink()
        self.assertNotIn(line, self.assertDone(run("convert", slides, "--out", self.out)).stderr)
        self.assertTrue(image.exists())

    def test_files_of_others_beside_one_image(self):
        slide = self.folder_of("s.svs") / "s.svs"
        for number, (target, names, named) in enumerate((
                ("a.ome.tif", ["a.partial.ome.tif"], "a.partial.ome.tif"),
                ("a.dzi", ["a.partial.dzi"], "a.partial.dzi"),
                ("a.dzi", ["a.partial.view.html", "a.partial.dzi"], "a.partial.view.html"),
                ("a.dzi", ["a.partial_files/0/0_0.jpg"], "a.partial_files"),
                ("a.ome.zarr", ["a.partial.ome.zarr/.zgroup", "a.partial.ome.zarr/0/.zarray"], "a.partial.ome.zarr"),
                ("a.ome.zarr", ["a.partial.ome.zarr/zarr.json"], "a.partial.ome.zarr"),
                ("a.ome.zarr", ["a.partial.ome.zarr/0/.zarray"], "a.partial.ome.zarr"),
                ("a.ome.zarr", ["a.partial.ome.zarr/0/0/0/0/0/0"], "a.partial.ome.zarr"),
                ("a.dicom", ["a.partial.dicom/level-0.dcm"], "a.partial.dicom"))):
            with self.subTest(names=names):
                folder = self.folder / str(number)
                for name in names:
                    (folder / name).parent.mkdir(parents=True, exist_ok=True)
                    (folder / name).write_text("mine\n")
                self.assertOneLine(run("convert", slide, folder / target), 2, f"{folder / named}: {REFUSAL}")
                self.assertEqual([(folder / name).read_text() for name in names], ["mine\n"] * len(names))
                self.assertFalse((folder / target).exists())
                self.assertDone(run("convert", slide, folder / target, "--overwrite"))
                self.assertTrue((folder / target).exists())
                self.assertEqual([name for name in os.listdir(folder) if "partial" in name], [])

    def test_a_page_of_others_is_replaced_when_that_is_asked_for(self):
        slide = self.folder_of("s.svs") / "s.svs"
        page = self.folder / "one.view.html"
        page.write_text("mine\n")
        self.assertDone(run("convert", slide, self.folder / "one.dzi", "--overwrite"))
        self.assertIn("<!", page.read_text()[:100])

    def test_what_this_program_left_is_replaced(self):
        slide = self.folder_of("s.svs") / "s.svs"

        def ends_in_the_first_file(folder):
            image = folder / "a.partial.ome.zarr"
            (image / ".zattrs").rename(folder / ".unfinished-0")
            shutil.rmtree(image)
            image.mkdir()
            (folder / ".unfinished-0").rename(image / ".unfinished-0")

        def ends_after_the_first_file(folder):
            (folder / "a.partial.ome.zarr/.zattrs").write_text('{\n  "slidestream": {}\n}\n')
            (folder / "a.partial.ome.zarr/.zgroup").unlink()

        def has_only_empty_files(folder):
            image = folder / "a.partial.ome.zarr"
            for file in image.rglob("*"):
                if file.is_file():
                    os.truncate(file, 0)
            (image / ".zattrs").unlink()
            (image / "Thumbs.db").write_text("somebody's\n")

        def loses_the_attributes_with_the_power(folder):
            (folder / "a.partial.ome.zarr/.zattrs").write_bytes(b"")

        def is_removed_but_for_the_page(folder):
            shutil.rmtree(folder / "a.partial_files")
            (folder / "a.partial.dzi").unlink()

        def loses_the_page_with_the_power(folder):
            (folder / "a.partial.view.html").write_bytes(b"")

        def is_begun(folder):
            (folder / "a.partial.dicom/level-0.dcm").rename(folder / "a.partial.dicom/.unfinished-0")

        def loses_all_with_the_power(folder):
            (folder / "a.partial.ome.tif").write_bytes(b"")

        cases = {"a.ome.tif": [loses_all_with_the_power], "a.dicom": [is_begun],
                 "a.ome.zarr": [ends_in_the_first_file, ends_after_the_first_file, has_only_empty_files,
                                loses_the_attributes_with_the_power],
                 "a.dzi": [is_removed_but_for_the_page, loses_the_page_with_the_power]}
        for target, ends in cases.items():
            for number, end in enumerate([lambda folder: None, *ends]):
                with self.subTest(target, end=end.__name__):
                    folder = self.folder / f"{target}-{number}"
                    folder.mkdir()
                    self.assertDone(run("convert", slide, folder / target))
                    for name in os.listdir(folder):
                        (folder / name).rename(folder / f"a.partial{name[1:]}")
                    end(folder)
                    self.assertDone(run("convert", slide, folder / target))
                    self.assertEqual([name for name in os.listdir(folder) if "partial" in name], [])

    def test_a_deep_zoom_image_that_was_being_given_its_names_is_made_again(self):
        slide = self.folder_of("s.svs") / "s.svs"
        whole = self.folder / "whole"
        whole.mkdir()
        self.assertDone(run("convert", slide, whole / "a.dzi"))
        names = sorted(os.listdir(whole))
        page, description = (whole / name for name in ("a.view.html", "a.dzi"))
        content = page.read_bytes(), description.read_bytes()
        for late in (["a.view.html"], ["a.view.html", "a.dzi"]):
            for more in [], ["--overwrite"]:
                with self.subTest(late=late, more=more):
                    for name in late:
                        (whole / name).rename(whole / name.replace("a.", "a.partial.", 1))
                    self.assertDone(run("convert", slide, whole / "a.dzi", *more))
                    self.assertEqual(sorted(os.listdir(whole)), names)
                    self.assertEqual((page.read_bytes(), description.read_bytes()), content)
        # One that is whole, also beside the first files of another, and one that only lost its description.
        shutil.copy(page, whole / "a.partial.view.html")
        for lost in None, description:
            if lost:
                lost.unlink()
            self.assertOneLine(run("convert", slide, description), 2,
                               f"{whole / 'a_files'}: it is there already, and --overwrite replaces the image")
            self.assertDone(run("convert", slide, description, "--overwrite"))
            self.assertEqual(sorted(os.listdir(whole)), names)

    def test_tiles_of_others_beside_the_begun_image_stay(self):
        slide = self.folder_of("s.svs") / "s.svs"
        begun = self.folder / "begun"
        begun.mkdir()
        self.assertDone(run("convert", slide, begun / "a.dzi"))
        for name in os.listdir(begun):
            (begun / name).rename(begun / f"a.partial{name[1:]}")
        tile = begun / "a_files/0/0_0.jpg"
        tile.parent.mkdir(parents=True)
        tile.write_text("mine\n")
        for more in [], ["--overwrite"]:
            self.assertOneLine(run("convert", slide, begun / "a.dzi", *more), 2,
                               f"{begun / 'a_files'}: it is there already, and a folder isn't replaced")
            self.assertEqual(tile.read_text(), "mine\n")

    def test_a_page_of_others_is_named_also_beside_an_image(self):
        slide = self.folder_of("s.svs") / "s.svs"
        image, page = self.folder / "one.dzi", self.folder / "one.view.html"
        self.assertDone(run("convert", slide, image))
        page.write_text("mine\n")
        self.assertOneLine(run("convert", slide, image), 2, f"{page}: {REFUSAL}")
        self.assertEqual(page.read_text(), "mine\n")

    def test_what_a_killed_run_left_under_temporary_names_goes(self):
        slides = self.folder_of("a.svs")
        images = self.out / "images"
        for name in ".slidestream-4000000-0.tmp", ".slidestream-4000000-1.tmp":
            (images / name).mkdir(parents=True)
            (images / name / "a.tissue.geojson").write_text("half of it")
        self.assertDone(run("tissue", slides, "--out", self.out))
        self.assertEqual(sorted(os.listdir(images)), ["a.tissue.geojson", "a.tissue.ome.tif"])

    def test_a_pipe_or_socket_where_progress_is_told_stays(self):
        slide = self.folder_of("s.svs") / "s.svs"
        in_folder, beside = self.out / "progress.json", self.folder / "s.partial.progress.json"
        self.out.mkdir()

        def make_socket(file):
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(str(file))

        # The second one is beside a ledger, and beside an image that is there.
        for make in os.mkfifo, make_socket:
            for file, command in ((in_folder, [slide, "--out", self.out]),
                                  (beside, ["convert", slide, self.folder / "s.ome.tif"])):
                with self.subTest(file=file.name, kind=make.__name__):
                    make(file)
                    before = file.stat()
                    for more in [], ["--overwrite"]:
                        self.assertOneLine(run(*command, *more), 2, f"{file}: isn't a regular file")
                    self.assertEqual((file.stat().st_ino, file.stat().st_mode), (before.st_ino, before.st_mode))
                    file.unlink()
                    self.assertDone(run(*command))

    def test_a_foreign_file_where_progress_is_told_stays(self):
        slide = self.folder_of("s.svs") / "s.svs"
        self.assertDone(run(slide, "--out", self.out))
        # Beside a ledger.
        file = self.out / "progress.json"
        file.write_text('{"mine": 1}')
        self.assertOneLine(run(slide, "--out", self.out), 2,
                           f"{file}: is there already, and this program didn't write it; --overwrite replaces it")
        self.assertEqual(file.read_text(), '{"mine": 1}')
        self.assertDone(run(slide, "--out", self.out, "--overwrite"))
        # As a run that dies leaves it, and before it has written anything.
        for text in '{\n  "version": 1,\n  "process": {\n    "host": "1"\n', "":
            file.write_text(text)
            self.assertDone(run(slide, "--out", self.out))
            self.assertFalse(file.exists())


class Links(BatchCase):
    """A link that has the name of a file is none of this program's, whatever it leads to."""

    def test_targets(self):
        slide = self.folder_of("s.svs") / "s.svs"
        self.assertDone(run(slide, "--out", self.out))
        link = {name: self.folder / name for name in ("l.ome.tif", "l.svs", "l.dicom", "l.nii.gz", "l.html", "l.json", "l.prom")}
        cases = [("l.ome.tif", ["convert", slide, link["l.ome.tif"]]),
                 ("l.svs", ["synth", "--out", link["l.svs"], "--size", "256x256"]),
                 ("l.dicom", ["synth", "--format", "dicom", "--out", link["l.dicom"], "--size", "256x256"]),
                 ("l.nii.gz", ["synth", "--out", link["l.nii.gz"], "--volume", "12x16x20"]),
                 ("l.html", ["report", self.out, "--html", link["l.html"]]),
                 ("l.json", [slide, "--out", self.folder / "2", "--fresh", "--trace", link["l.json"]]),
                 ("l.prom", [slide, "--out", self.folder / "3", "--metrics", link["l.prom"]])]
        for name, command in cases:
            with self.subTest(name):
                file, target = link[name], self.folder / f"target-{name}"
                # What it leads to isn't there; then it is a file of this program.
                file.symlink_to(target.name)
                self.assertOneLine(run(*command), 2, f"{file}: {LINK}")
                self.assertTrue(file.is_symlink())
                self.assertFalse(target.exists())
                file.unlink()
                self.assertDone(run(*command))
                file.rename(target)
                file.symlink_to(target.name)
                before = target.stat()
                self.assertOneLine(run(*command), 2, f"{file}: {LINK}")
                self.assertDone(run(*command, "--overwrite"))
                self.assertFalse(file.is_symlink())
                self.assertTrue(file.exists())
                self.assertEqual((target.stat().st_ino, target.stat().st_mtime_ns), (before.st_ino, before.st_mtime_ns))

    def test_a_link_to_a_folder_in_the_place_of_an_image(self):
        slide = self.folder_of("s.svs") / "s.svs"
        album = self.folder / "album"
        album.mkdir()
        (album / "mine.txt").write_text("mine")
        for name, is_folder in ("l.ome.tif", False), ("m.dzi", False), ("n.ome.zarr", True), ("o.dicom", True):
            with self.subTest(name):
                link = self.folder / name
                link.symlink_to("album")
                line = f"{link}: " + ("is a link, and a folder takes no link's place" if is_folder else LINK)
                self.assertOneLine(run("convert", slide, link), 2, line)
                self.assertTrue(link.is_symlink())
                again = run("convert", slide, link, "--overwrite")
                if is_folder:
                    self.assertOneLine(again, 2, line)
                else:
                    self.assertDone(again)
                self.assertEqual(link.is_symlink(), is_folder)
                self.assertEqual(os.listdir(album), ["mine.txt"])

    def test_where_nothing_tells_whether_files_are_there(self):
        slides = self.folder_of("a.svs", "b.svs")
        command = ["convert", slides, "--out", self.out]
        self.assertDone(run(*command))
        images, elsewhere = self.out / "images", self.folder / "elsewhere"
        image, moved = images / "a.identity.ome.tif", self.folder / "moved.ome.tif"

        def unmounted():
            images.rename(elsewhere)
            images.symlink_to(self.folder / "disk")

        def unmounted_file():
            image.rename(moved)
            image.symlink_to(self.folder / "disk" / "a.ome.tif")

        def loop():
            image.rename(moved)
            image.symlink_to(image)

        def back():
            for file, place in (images, elsewhere), (image, moved):
                if place.exists():
                    file.unlink()
                    place.rename(file)

        for hide, why in ((unmounted, f"{images}: is a link to {self.folder}/disk, where nothing is"),
                          (unmounted_file, f"{image}: is a link to {self.folder}/disk/a.ome.tif, where nothing is"),
                          (loop, f"{image}: can't be looked at: Too many levels of symbolic links")):
            with self.subTest(hide.__name__):
                hide()
                for options in [], ["--retry-failed"], ["--dry-run"]:
                    self.assertOneLine(run(*command, *options), 2, why)
                back()
                self.assertIn("2 of 2", run("status", self.out).stdout)
                self.assertIn("skipped as done: 2 of 2 slides", run(*command, "--log-level", "info").stderr)

    def test_in_place_of_a_folder(self):
        slides = self.folder_of("a.svs")
        for kind, name in ("ome-zarr", "a.identity.ome.zarr"), ("dzi", "a.identity_files"):
            with self.subTest(kind):
                shutil.rmtree(self.out, ignore_errors=True)
                command = ["convert", slides, "--out", self.out, "--to", kind]
                self.assertDone(run(*command))
                image, moved = self.out / "images" / name, self.folder / f"moved-{kind}"
                moved.mkdir()
                shutil.rmtree(image)
                image.symlink_to(moved)
                result = run(*command)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn(f"{image}: {LINK}\n", result.stderr)
                self.assertDone(run(*command, "--overwrite", "--retry-failed"))
                self.assertFalse(image.is_symlink())
                self.assertEqual(os.listdir(moved), [])
                self.assertDone(run("verify", self.out))

    def test_in_a_run(self):
        slides = self.folder_of("a.svs", "b.svs")
        command = ["convert", slides, "--out", self.out]
        self.assertDone(run(*command))
        # As somebody has it whose disk was full.
        image, moved = self.out / "images/a.identity.ome.tif", self.folder / "moved.ome.tif"
        image.rename(moved)
        image.symlink_to(moved)
        resumed = self.assertDone(run(*command)).stderr
        self.assertIn("skipped as done: 2 of 2 slides", resumed)
        self.assertIn(f"{image}: 1 file of slides that are done is a link; what it leads to has not been read", resumed)
        os.truncate(moved, 1000)
        result = run(*command)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(f"{image}: {LINK}", result.stderr)
        self.assertTrue(image.is_symlink())
        self.assertDone(run(*command, "--retry-failed", "--overwrite"))
        self.assertFalse(image.is_symlink())
        self.assertEqual(moved.stat().st_size, 1000)

    def test_tables_beside_a_ledger(self):
        pipe, table = self.folder / "pipe", self.out / "slides.csv"
        os.mkfifo(pipe)
        for number, target in enumerate((None, "/dev/zero", pipe, self.folder), 1):
            with self.subTest(target=str(target)):
                if target:
                    table.unlink()
                    table.symlink_to(target)
                slides = self.folder_of(*(f"{name}.svs" for name in range(number)))
                self.assertDone(run(slides, "--out", self.out))
                self.assertFalse(table.is_symlink())
                self.assertEqual(len(self.rows()), number)
        self.assertTrue(pipe.is_fifo())

    def test_a_folder_that_is_a_link(self):
        slides = self.folder_of("a.svs")
        self.out.symlink_to("large disk")
        self.assertOneLine(run(slides, "--out", self.out), 2, f"{self.out}: is a link to large disk, where nothing is")
        self.assertFalse((self.folder / "large disk").exists())
        (self.folder / "large disk").mkdir()
        self.assertDone(run(slides, "--out", self.out))
        self.assertTrue((self.folder / "large disk/slides.csv").exists())

    def test_maps(self):
        slides = self.folder_of("a.svs")
        file = self.out / "maps/a.npy"
        file.parent.mkdir(parents=True)
        file.symlink_to("nothing")
        self.assertOneLine(run(slides, "--out", self.out, "--maps", "npy"), 2, f"{file}: {LINK}")
        self.assertFalse((self.out / "run.sqlite").exists())
        self.assertDone(run(slides, "--out", self.out, "--maps", "npy", "--overwrite"))
        self.assertFalse(file.is_symlink())


class MapPlaces(BatchCase):
    """What has the name of a map, and can't be replaced by one."""

    def test_it_is_found_before_the_start(self):
        slides = self.folder_of("a.svs", "b.svs")
        command = [slides, "--out", self.out, "--maps", "npy"]
        file = self.out / "maps/b.npy"
        file.parent.mkdir(parents=True)
        for make, remove, cause in ((file.mkdir, file.rmdir, "Is a directory"),
                                    (lambda: os.mkfifo(file), file.unlink, "isn't a regular file")):
            with self.subTest(cause):
                make()
                for more in [], ["--overwrite"], ["--dry-run"]:
                    self.assertOneLine(run(*command, *more), 2, f"{file}: {cause}")
                    self.assertEqual(sorted(os.listdir(self.out)), ["maps"])
                remove()
        self.assertDone(run(*command))
        # Beside a ledger, when a slide is to be done again.
        shutil.copy(slides / "a.svs", slides / "b.svs")
        file.unlink()
        file.mkdir()
        self.assertOneLine(run(*command), 2, f"{file}: Is a directory")
        file.rmdir()
        self.assertDone(run(*command))
        self.assertTrue(file.is_file())


    def test_a_merge_refuses_those_of_others(self):
        slides, part = self.folder_of("a.svs"), self.folder / "part"
        self.assertDone(run(slides, "--out", part, "--maps", "npy"))
        elsewhere, file = self.folder / "elsewhere", self.out / "maps/a.npy"
        elsewhere.mkdir()
        self.out.mkdir()
        (self.out / "maps").symlink_to(elsewhere)
        file.write_text("mine\n")
        self.assertOneLine(run("merge", part, "--out", self.out), 2,
                           f"{file}: is there already, and no ledger in the folder lists it")
        self.assertEqual((elsewhere / "a.npy").read_text(), "mine\n")
        self.assertEqual(os.listdir(self.out), ["maps"])
        file.unlink()
        for _ in range(2):
            self.assertDone(run("merge", part, "--out", self.out))
        self.assertEqual(file.read_bytes(), (part / "maps/a.npy").read_bytes())


class NeverBegun(BatchCase):
    """Files with names of results, beside a ledger that knows nothing of their slides."""

    def test_files_of_others_fail_their_slides_alone(self):
        slides = self.folder_of("a.svs")
        command = [slides, "--out", self.out, "--operators", "spectrum,tissue", "--maps", "npy"]
        self.assertDone(run(*command))
        for name in "b.svs", "c.svs", "d.svs", "e.svs":
            shutil.copy(slides / "a.svs", slides / name)
        window_map, link, outlines = (self.out / name for name in ("maps/b.npy", "maps/c.npy", "images/d.tissue.geojson"))
        window_map.write_text("mine\n")
        link.symlink_to("nothing")
        outlines.write_text("mine\n")
        for more in [], ["--retry-failed"]:
            result = run(*command, *more)
            self.assertEqual(result.returncode, 1, result.stderr)
            for file in window_map, outlines:
                self.assertIn(f"{file}: {REFUSAL}\n", result.stderr)
                self.assertEqual(file.read_text(), "mine\n")
            self.assertIn(f"{link}: {LINK}\n", result.stderr)
            self.assertTrue(link.is_symlink())
            self.assertEqual([row["status"] for row in self.rows()], ["done", "failed", "failed", "failed", "done"])
        self.assertDone(run(*command, "--retry-failed", "--overwrite"))
        self.assertEqual(window_map.read_bytes(), (self.out / "maps/a.npy").read_bytes())
        self.assertFalse(link.is_symlink())
        self.assertNotEqual(outlines.read_text(), "mine\n")

    def test_a_map_of_a_slide_that_was_begun_is_replaced(self):
        slides, file = self.folder_of("a.svs"), self.out / "maps/a.npy"
        command = [slides, "--out", self.out, "--maps", "npy"]
        self.assertDone(run(*command))
        good = file.read_bytes()
        for change, status in (("attempts = 1", 0), ("attempts = 1, map_name = NULL", 0), ("attempts = 0, map_name = NULL", 1)):
            with self.subTest(change):
                with contextlib.closing(sqlite3.connect(self.out / "run.sqlite")) as ledger, ledger:
                    ledger.execute(f"UPDATE slides SET state = 'pending', {change}")
                file.write_bytes(b"another")
                result = run(*command)
                self.assertEqual(result.returncode, status, result.stderr)
                self.assertEqual(file.read_bytes(), b"another" if status else good)


class Unlisted(BatchCase):
    """Files of this program that the ledger beside them doesn't list."""

    def setUp(self):
        super().setUp()
        self.slides = self.folder_of("a.svs", "b.svs")
        self.image = self.out / "images/a.identity.ome.tif"
        self.command = ["convert", self.slides, "--out", self.out]

    def sql(self, *statements):
        with contextlib.closing(sqlite3.connect(self.out / "run.sqlite")) as ledger, ledger:
            for statement in statements:
                ledger.execute(statement)

    def lose_ledger(self):
        for file in self.out.iterdir():
            if file.is_file():
                file.unlink()

    def test_images_whose_ledger_was_lost_stay_at_every_start(self):
        self.assertDone(run(*self.command, "-Q", 95))
        before = self.image.read_bytes()
        self.lose_ledger()
        self.assertEqual(run(*self.command, "--max-failures", 1).returncode, 3)
        for more in [], [], ["--retry-failed"], ["--retry-failed"]:
            result = run(*self.command, *more)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertEqual(self.image.read_bytes(), before)
        self.assertIn(f"{self.image}: is there already, and the ledger doesn't list it; --overwrite replaces it\n", result.stderr)
        self.assertRegex(run(*self.command).stderr, "; --retry-failed tries them again, and (one of them needs|2 of them need) "
                                                    "--overwrite, as something has a file's name")
        self.assertDone(run(*self.command, "--overwrite"))
        self.assertNotEqual(self.image.read_bytes(), before)
        self.assertDone(run("verify", self.out))

    def test_one_of_another_conversion_stays(self):
        self.image.parent.mkdir(parents=True)
        self.assertDone(run("convert", self.slides / "b.svs", self.image, "-Q", 50))
        before = self.image.read_bytes()
        for more in [], ["--retry-failed"]:
            self.assertEqual(run(*self.command, *more).returncode, 1)
            self.assertEqual(self.image.read_bytes(), before)

    def test_a_slide_that_was_begun_and_not_checked_has_made_nothing(self):
        self.assertDone(run(self.slides / "b.svs", *self.command[2:], "--operators", "identity", "-s", "image.format=ome-tiff"))
        self.assertDone(run("convert", self.slides / "b.svs", self.image, "-Q", 50))
        before = self.image.read_bytes()
        command = [self.slides, *self.command[2:], "--operators", "identity", "-s", "image.format=ome-tiff"]
        self.assertEqual(run(*command).returncode, 1)
        # As if the run had been ended before it kept the failure.
        self.sql("UPDATE slides SET state = 'pending', cause = '', ended_at = NULL WHERE state = 'failed'")
        self.assertEqual(run(*command).returncode, 1)
        self.assertEqual(self.image.read_bytes(), before)

    def test_one_that_a_dead_process_named_is_replaced_or_moves_aside(self):
        self.assertDone(run(*self.command))
        whole = self.image.read_bytes()
        killed = ("DELETE FROM artifacts WHERE slide = (SELECT id FROM slides WHERE CAST(image_name AS TEXT) = 'a')",
                  "UPDATE slides SET state = 'pending', cause = '', ended_at = NULL WHERE CAST(image_name AS TEXT) = 'a'")
        noted = "INSERT INTO meta SELECT 'files of ' || id, '' FROM slides WHERE CAST(image_name AS TEXT) = 'a'"
        self.sql(*killed)
        self.assertEqual(run(*self.command).returncode, 1)
        self.sql(*killed, noted)
        self.assertDone(run("convert", self.slides / "b.svs", self.image, "-Q", 50))
        self.assertDone(run(*self.command))
        self.assertEqual(self.image.read_bytes(), whole)
        # The note goes with the result.
        self.sql(*killed)
        self.assertEqual(run(*self.command).returncode, 1)
        self.sql(*killed, noted)
        self.assertDone(run(*self.command, "--fresh"))
        self.assertEqual((self.out / "earlier-1/images" / self.image.name).read_bytes(), whole)

    def test_one_that_a_dead_process_named_is_replaced_also_after_a_failure(self):
        self.assertDone(run(*self.command))
        whole, slide = self.image.read_bytes(), self.slides / "a.svs"
        good = slide.read_bytes()
        self.sql("DELETE FROM artifacts WHERE slide = (SELECT id FROM slides WHERE CAST(image_name AS TEXT) = 'a')",
                 "UPDATE slides SET state = 'pending', cause = '', ended_at = NULL WHERE CAST(image_name AS TEXT) = 'a'",
                 "INSERT INTO meta SELECT 'files of ' || id, '' FROM slides WHERE CAST(image_name AS TEXT) = 'a'")
        slide.write_bytes(good[:3000])
        for more in [], ["--retry-failed"]:
            self.assertEqual(run(*self.command, *more).returncode, 1)
        slide.write_bytes(good)
        self.assertDone(run(*self.command, "--retry-failed"))
        self.assertEqual(self.image.read_bytes(), whole)
        self.assertDone(run("verify", self.out))

    def test_what_a_kill_left_of_slides_that_are_not_tried_goes(self):
        of_a = "WHERE CAST(image_name AS TEXT) = 'a'"
        killed = (f"DELETE FROM artifacts WHERE slide = (SELECT id FROM slides {of_a})",
                  f"UPDATE slides SET state = 'pending', cause = '', ended_at = NULL {of_a}",
                  f"INSERT INTO meta SELECT 'files of ' || id, '' FROM slides {of_a}")
        died = "INSERT OR REPLACE INTO meta SELECT '%s', CAST(id || ' 3' || char(10) AS BLOB) FROM slides " + of_a
        images = self.out / "images"
        for kind, ends in (("ome-tiff", [".ome.tif"]), ("ome-zarr", [".ome.zarr"]), ("dicom", [".dicom"]),
                           ("dzi", [".dzi", "_files", ".view.html"])):
            for why in "list", "deaths", "shortages":
                with self.subTest(kind, why=why):
                    shutil.rmtree(self.out, ignore_errors=True)
                    self.assertDone(run(*self.command, "--to", kind))
                    for end in ends:
                        (images / f"a.identity{end}").rename(images / f"a.identity.partial{end}")
                        if (images / f"a.identity.partial{end}").is_dir():
                            shutil.copytree(images / f"a.identity.partial{end}", images / f"a.identity.partial{end}.earlier")
                    notes = images / ("a.identity.partial.ome.tif" if kind != "ome-tiff" else "c.identity.partial.ome.tif")
                    notes.write_text("mine\n")
                    kept = sorted([notes.name, *(f"b.identity{end}" for end in ends)])
                    self.sql(*killed, *([] if why == "list" else [died % why]))
                    inputs = self.slides / "b.svs" if why == "list" else self.slides
                    result = run("convert", inputs, "--out", self.out, "--to", kind)
                    self.assertEqual(result.returncode, 0 if why == "list" else 1, result.stderr)
                    self.assertEqual(sorted(os.listdir(images)), kept)
                    self.assertEqual(notes.read_text(), "mine\n")

    def test_a_whole_image_that_lost_its_name_to_a_kill_gets_it_back(self):
        command = ["--out", self.out, "--to", "ome-zarr"]
        self.assertDone(run("convert", self.slides, *command))
        image, partial = (self.out / f"images/a.identity{mark}.ome.zarr" for mark in ("", ".partial"))
        shutil.copytree(image, partial)
        image.rename(f"{partial}.earlier")
        self.sql("UPDATE slides SET state = 'pending', ended_at = NULL WHERE CAST(image_name AS TEXT) = 'a'",
                 "INSERT INTO meta SELECT 'files of ' || id, '' FROM slides WHERE CAST(image_name AS TEXT) = 'a'")
        self.assertDone(run("convert", self.slides / "b.svs", *command))
        self.assertEqual(sorted(os.listdir(image.parent)), ["a.identity.ome.zarr", "b.identity.ome.zarr"])
        self.assertDone(run("convert", self.slides, *command))
        self.assertDone(run("verify", self.out))

    def test_folders_of_others_without_a_description_stay(self):
        shutil.copy(self.slides / "a.svs", self.slides / "c.svs")
        shutil.copy(self.slides / "a.svs", self.slides / "d.svs")
        for kind, names in (("dzi", ["a.identity_files/11/99_99.jpg"]),
                            ("ome-zarr", ["a.identity.ome.zarr/0/.zarray", "b.identity.ome.zarr/3/0/9/9/9/9",
                                          "c.identity.partial.ome.zarr/0/0/0/0/0/0"])):
            for has_ledger in False, True:
                with self.subTest(kind, has_ledger=has_ledger):
                    shutil.rmtree(self.out, ignore_errors=True)
                    command = [*self.command, "--to", kind]
                    if has_ledger:
                        self.assertDone(run("convert", self.slides / "d.svs", *command[2:]))
                    files = [self.out / "images" / name for name in names]
                    for file in files:
                        file.parent.mkdir(parents=True)
                        file.write_text("theirs")
                    for more in [], ["--retry-failed"]:
                        result = run(*command, *more)
                        self.assertEqual(result.returncode, 1, result.stderr)
                        for name, file in zip(names, files):
                            self.assertIn(f"{self.out}/images/{name.split('/')[0]}: {REFUSAL}\n", result.stderr)
                            self.assertEqual(file.read_text(), "theirs")
                        self.assertEqual([row["status"] for row in self.rows()].count("failed"), len(files))
                    self.assertDone(run(*command, "--retry-failed", "--overwrite"))
                    self.assertFalse(any(file.exists() and file.read_bytes() == b"theirs" for file in files))

    def test_empty_folders_are_in_nobody_s_way(self):
        image, partial = (self.out / f"images/a.identity{suffix}" for suffix in (".ome.zarr", ".partial.ome.zarr"))
        for folder in image, partial:
            (folder / "0/1").mkdir(parents=True)
            (folder / "0/2").write_bytes(b"")
            (folder / "Thumbs.db").write_text("somebody's\n")
        self.assertDone(run(*self.command, "--to", "ome-zarr"))
        self.assertTrue((image / ".zattrs").exists())

    def test_tiles_that_a_dead_process_named_are_replaced(self):
        command = [*self.command, "--to", "dzi"]
        self.assertDone(run(*command))
        description = self.out / "images/a.identity.dzi"
        killed = ("DELETE FROM artifacts WHERE slide = (SELECT id FROM slides WHERE CAST(image_name AS TEXT) = 'a')",
                  "UPDATE slides SET state = 'pending', cause = '', ended_at = NULL WHERE CAST(image_name AS TEXT) = 'a'")
        noted = "INSERT INTO meta SELECT 'files of ' || id, '' FROM slides WHERE CAST(image_name AS TEXT) = 'a'"
        description.unlink()
        self.sql(*killed)
        result = run(*command)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(f"{self.out}/images/a.identity_files: is there already, and the ledger doesn't list it", result.stderr)
        self.sql(*killed, noted)
        self.assertDone(run(*command))
        self.assertTrue(description.exists())

    def test_maps_whose_ledger_was_lost_stay(self):
        command = [self.slides, "--out", self.out, "--maps", "tiff"]
        self.assertDone(run(*command))
        file = self.out / "maps/a.tif"
        before = file.stat().st_ino, file.stat().st_mtime_ns
        self.lose_ledger()
        for more in [], ["--retry-failed"]:
            self.assertOneLine(run(*command, *more), 2, f"{file}: is there already, and the folder had no ledger that lists it")
        self.assertEqual((file.stat().st_ino, file.stat().st_mtime_ns), before)
        self.assertDone(run(*command, "--overwrite"))

    def test_a_map_of_another_run_beside_a_ledger_stays(self):
        self.assertDone(run(self.slides / "b.svs", "--out", self.out, "--maps", "tiff"))
        file = self.out / "maps/a.tif"
        shutil.copy(self.out / "maps/b.tif", file)
        before = file.read_bytes()
        for more in [], ["--retry-failed"]:
            result = run(self.slides, "--out", self.out, "--maps", "tiff", *more)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn(f"{file}: is there already, and the ledger doesn't list it", result.stderr)
            self.assertEqual(file.read_bytes(), before)


class Inputs(BatchCase):
    """What a run reads is never what it writes."""

    def assertRefused(self, target, read, *command):
        before = target.read_bytes()
        for more in [], ["--overwrite"]:
            self.assertOneLine(run(*command, *more), 2, f"{target}: would be written, and the run reads it as {read}")
            self.assertEqual(target.read_bytes(), before)

    def test_slides(self):
        slide = self.folder_of("a.svs") / "a.svs"
        for place, options in (("maps/a.tif", ["--maps", "tiff"]),
                               ("images/a.identity.ome.tif", ["--operators", "identity", "-s", "image.format=ome-tiff"])):
            target, link, hard = self.out / place, self.folder / "link.tif", self.folder / "hard.tif"
            target.parent.mkdir(parents=True)
            shutil.copy(slide, target)
            link.symlink_to(target)
            os.link(target, hard)
            for read in target, target.parent / ".." / place, link, hard:
                with self.subTest(read=str(read)):
                    # Of the slide itself where that has the target's name, else of the other one.
                    self.assertRefused(target, read, slide, read, "--out", self.out, *options)
            link.unlink()
            hard.unlink()
            # Another format has another name.
            if place.startswith("images"):
                self.assertDone(run(slide, target, "--out", self.out, "--operators", "identity", "-s", "image.format=dzi"))
            shutil.rmtree(self.out)

    def test_lists_and_settings(self):
        slide = self.folder_of("a.svs") / "a.svs"
        self.assertDone(run(slide, "--out", self.out))
        table = self.out / "slides.csv"
        self.assertRefused(table, table, table, "--out", self.out)
        config = self.folder / "run.toml"
        config.write_text("")
        trace = self.folder / "trace.json"
        os.link(config, trace)
        self.assertRefused(trace, config, slide, "--out", self.folder / "other", "--config", config, "--trace", trace)
        self.assertFalse((self.folder / "other").exists())

    def test_a_trace_among_the_results(self):
        slide = self.folder_of("a.svs") / "a.svs"
        link = self.folder / "link"
        link.symlink_to(self.out)
        for number in range(2):
            for name in "corpus.json", "progress.json":
                for folder in self.out, link:
                    for more in [], ["--overwrite"]:
                        if number == 0 and folder == link:
                            continue
                        self.assertOneLine(run(slide, "--out", self.out, "--trace", folder / name, *more), 2,
                                           f"{folder / name}: is {self.out / name}, which the run itself writes")
            if number == 0:
                self.assertFalse(self.out.exists())
                self.assertDone(run(slide, "--out", self.out))


class Earlier(BatchCase):
    """What a slide had, once it fails."""

    def test_what_others_put_in_an_image_s_place_moves_with_a_line(self):
        slides = self.folder_of("a.svs")
        for to, name in ("ome-tiff", "a.identity.ome.tif"), ("dzi", "a.identity.view.html"):
            with self.subTest(to):
                shutil.rmtree(self.out, ignore_errors=True)
                command = ["convert", slides, "--out", self.out, "--to", to]
                self.assertDone(run(*command))
                file = self.out / "images" / name
                file.write_text("theirs")
                self.assertIn(f"{file}: isn't the one that the ledger lists: moved to {self.out}/earlier-failed",
                              self.assertDone(run(*command)).stderr)
                self.assertEqual((self.out / "earlier-failed/images" / name).read_text(), "theirs")
                self.assertDone(run("verify", self.out))

    def test_listed_files_that_were_changed_move_with_a_line(self):
        slides = self.folder_of("a.svs")
        for options, name in ((["--operators", "tissue"], "images/a.tissue.geojson"), (["--operators", "tissue"], "images/a.tissue.ome.tif"),
                              (["--maps", "npy"], "maps/a.npy"), (["--maps", "tiff"], "maps/a.tif")):
            with self.subTest(name):
                shutil.rmtree(self.out, ignore_errors=True)
                command = [slides, "--out", self.out, *options]
                self.assertDone(run(*command))
                file = self.out / name
                whole = file.read_bytes()
                # This program's mark may still be in it.
                theirs = whole[:-7]
                file.write_bytes(theirs)
                self.assertIn(f"{file}: isn't the one that the ledger lists: moved to {self.out}/earlier-failed",
                              self.assertDone(run(*command)).stderr)
                self.assertEqual(file.read_bytes(), whole)
                self.assertEqual((self.out / "earlier-failed" / name).read_bytes(), theirs)
                self.assertDone(run("verify", self.out))
                file.write_bytes(theirs)
                self.assertDone(run(*command, "--overwrite"))
                self.assertEqual(file.read_bytes(), whole)
                self.assertFalse((self.out / "earlier-failed/2").exists())

    def test_a_listed_map_of_a_slide_that_changed_moves_only_if_it_is_another(self):
        slides, file = self.folder_of("a.svs"), self.out / "maps/a.npy"
        command = [slides, "--out", self.out, "--maps", "npy"]
        self.assertDone(run(*command))
        os.utime(slides / "a.svs", ns=(1, 1))
        self.assertDone(run(*command))
        self.assertFalse((self.out / "earlier-failed").exists())
        file.write_text("theirs")
        os.utime(slides / "a.svs", ns=(2, 2))
        self.assertDone(run(*command))
        self.assertEqual((self.out / "earlier-failed/maps/a.npy").read_text(), "theirs")

    def test_a_listed_map_that_another_program_changed_moves_in_a_merge(self):
        slides, part, file = self.folder_of("a.svs"), self.folder / "part", self.out / "maps/a.npy"
        self.assertDone(run(slides, "--out", part, "--maps", "npy"))
        self.assertDone(run("merge", part, "--out", self.out))
        file.write_text("theirs")
        self.assertIn(f"{file}: isn't the one that the ledger lists: moved to",
                      self.assertDone(run("merge", part, "--out", self.out)).stderr)
        self.assertEqual((self.out / "earlier-failed/maps/a.npy").read_text(), "theirs")
        self.assertEqual(file.read_bytes(), (part / "maps/a.npy").read_bytes())

    def test_files_of_before_move_with_a_line(self):
        for kind in "ome-tiff", "ome-zarr":
            with self.subTest(kind):
                slides, out = self.folder_of("a.svs", "b.svs"), self.folder / kind
                command = [slides, "--out", out, "--operators", "identity,spectrum", "-s", f"image.format={kind}", "--maps", "npy"]
                self.assertDone(run(*command))
                before = results(out)
                of_b = {name: content for name, content in before.items() if name.startswith(("images/b.", "maps/b."))}
                self.assertGreater(len(of_b), 1)
                good = (slides / "b.svs").read_bytes()
                for attempt in range(2):
                    (slides / "b.svs").write_bytes(good[:3000 + attempt])
                    # What an earlier failure left stays.
                    place = out / "earlier-failed" / ("2" if attempt else "")
                    result = run(*command)
                    self.assertEqual(result.returncode, 1, result.stderr)
                    self.assertIn(f"{slides}/b.svs: files of its earlier result are in {place}\n", result.stderr)
                    self.assertEqual([row["status"] for row in self.rows(out)], ["done", "failed"])
                    self.assertEqual(results(place), of_b)
                    now = results(out)
                    self.assertEqual(set(before) - set(now), set(of_b))
                    self.assertNotIn("earlier result", run(*command).stderr)
                    # Mended, it has them again.
                    (slides / "b.svs").write_bytes(good)
                    self.assertDone(run(*command))
                    self.assertEqual(results(out), before)
                    self.assertEqual(results(place), of_b)

    def test_listed_folders_that_were_changed_move_with_a_line(self):
        slides = self.folder_of("a.svs")

        def annotate(image):
            attributes = json.loads((image / ".zattrs").read_text())
            attributes["pathologist"] = "signed"
            (image / ".zattrs").write_text(json.dumps(attributes))

        def change_a_byte(pattern):
            def change(image):
                file = max(image.glob(pattern), key=lambda path: path.stat().st_size)
                content = file.read_bytes()
                file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
            return change

        def add(name):
            def change(image):
                (image / name).parent.mkdir(exist_ok=True)
                (image / name).write_text("mine\n")
            return change

        def become_a_file(image):
            shutil.rmtree(image)
            image.write_text("mine\n")

        zarr, dicom, tiles = "a.identity.ome.zarr", "a.identity.dicom", "a.identity_files"
        for kind, name, changes in (
                ("ome-zarr", zarr, (annotate, change_a_byte("0/*/*/*"), add("9/.zarray"), add("0/notes.txt"),
                                    lambda image: (image / "labels").mkdir(), become_a_file)),
                ("dicom", dicom, (change_a_byte("level-0.dcm"), add("notes.txt"))),
                ("dzi", tiles, (change_a_byte("*/0_0.jpg"), add("9/mine/notes.txt")))):
            out = self.folder / kind
            command = ["convert", slides, "--out", out, "--to", kind]
            self.assertDone(run(*command))
            image, before = out / "images" / name, results(out)
            for number, change in enumerate(changes, 1):
                with self.subTest(kind, number=number):
                    change(image)
                    theirs = results(out / "images")
                    # Also where sizes are as they were.
                    os.utime(slides / "a.svs", ns=(number, number))
                    place = out / "earlier-failed" / ("" if number == 1 else str(number))
                    self.assertIn(f"{image}: isn't the one that the ledger lists: moved to {place}\n",
                                  self.assertDone(run(*command)).stderr)
                    self.assertEqual(results(out), before)
                    moved = {file: content for file, content in theirs.items() if file.split("/")[0] == name}
                    self.assertEqual(results(place / "images"), moved)
            self.assertDone(run("verify", out))
            # As it was written, it is replaced.
            os.utime(slides / "a.svs", ns=(99, 99))
            self.assertNotIn("moved to", self.assertDone(run(*command)).stderr)
            self.assertFalse((out / "earlier-failed" / str(len(changes) + 1)).exists())

    def test_a_folder_in_a_listed_file_s_place_moves_with_a_line(self):
        slides, image = self.folder_of("a.svs"), self.out / "images/a.identity.ome.tif"
        command = ["convert", slides, "--out", self.out]
        self.assertDone(run(*command))
        image.unlink()
        image.mkdir()
        (image / "notes.txt").write_text("mine\n")
        self.assertIn(f"{image}: isn't the one that the ledger lists: moved to {self.out}/earlier-failed\n",
                      self.assertDone(run(*command)).stderr)
        self.assertTrue(image.is_file())
        self.assertEqual((self.out / "earlier-failed/images" / image.name / "notes.txt").read_text(), "mine\n")

    def test_what_is_there_stays(self):
        slides, failed = self.folder_of("a.svs", "b.svs"), self.out / "earlier-failed"
        command = ["convert", slides, "--out", self.out]
        good = (slides / "b.svs").read_bytes()
        image, elsewhere = self.out / "images/b.identity.ome.tif", self.folder / "elsewhere"
        elsewhere.mkdir()

        def takes_the_name():
            (failed / "images" / image.name).mkdir(parents=True)
            (failed / "images" / image.name / "notes").write_text("mine\n")

        def is_a_file():
            shutil.rmtree(failed)
            failed.write_text("mine\n")

        def is_a_link():
            failed.unlink()
            failed.symlink_to(elsewhere)

        stays = f"{slides}/b.svs: no table lists its earlier result: {image} stays, as {failed}"
        for prepare, line in ((takes_the_name, f"{slides}/b.svs: files of its earlier result are in {failed}/2\n"),
                              (is_a_file, f"{stays} isn't a folder\n"), (is_a_link, f"{stays} is a link\n")):
            with self.subTest(prepare.__name__):
                (slides / "b.svs").write_bytes(good)
                # What no table lists and couldn't be moved aside stays until it is given up.
                image.unlink(missing_ok=True)
                self.assertDone(run(*command))
                before = image.read_bytes()
                prepare()
                (slides / "b.svs").write_bytes(good[:3000])
                result = run(*command)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn(line, result.stderr)
                place = failed / "2/images" / image.name if prepare == takes_the_name else image
                self.assertEqual(place.read_bytes(), before)
                if prepare == takes_the_name:
                    self.assertEqual((failed / "images" / image.name / "notes").read_text(), "mine\n")
                    self.assertFalse(image.exists())
        self.assertEqual(os.listdir(elsewhere), [])


class Fresh(BatchCase):
    """--fresh after the ledger was damaged, or is gone."""

    def setUp(self):
        super().setUp()
        self.command = [self.folder_of("a.svs", "b.svs"), "--out", self.out, "--operators", "spectrum,sobel,tissue", "--maps", "npy"]
        self.assertDone(run(*self.command))
        self.before = results(self.out)
        self.ledger = self.out / "run.sqlite"

    def scratch(self, begin, end):
        with open(self.ledger, "r+b") as file:
            file.seek(begin)
            file.write(b"Z" * (end - begin))

    def test_the_run_starts_and_everything_of_before_is_aside(self):
        size = self.ledger.stat().st_size
        self.assertGreater(size, 40000)
        for number, (name, damage) in enumerate({
                "missing": self.ledger.unlink, "empty": lambda: os.truncate(self.ledger, 0),
                "cut to 100": lambda: os.truncate(self.ledger, 100), "cut to 4096": lambda: os.truncate(self.ledger, 4096),
                "cut to a half": lambda: os.truncate(self.ledger, size // 2), "another head": lambda: self.scratch(0, 100),
                "the second page": lambda: self.scratch(4096, 8192), "the middle": lambda: self.scratch(20000, size * 3 // 4),
                "the second half": lambda: self.scratch(size // 2, size)}.items(), 1):
            with self.subTest(name):
                damage()
                result = self.assertDone(run(*self.command, "--fresh"))
                self.assertIn(f"{self.out}/earlier-{number}: the earlier run is there now", result.stderr)
                self.assertEqual(results(self.out), self.before)
                self.assertEqual(results(self.out / f"earlier-{number}"), self.before)
                self.assertEqual((self.out / f"earlier-{number}/run.sqlite").exists(), name != "missing")
                self.assertIn("skipped as done: 2 of 2 slides", self.assertDone(run(*self.command)).stderr)

    def test_what_is_said_without_it(self):
        self.ledger.unlink()
        line = f"{self.out}: has slides.csv, but no run.sqlite; name another folder, or use --fresh to move what is there aside"
        for more in [], ["--overwrite"], ["--retry-failed"]:
            self.assertOneLine(run(*self.command, *more), 2, line)
        self.assertEqual(results(self.out), self.before)


if __name__ == "__main__":
    unittest.main()
