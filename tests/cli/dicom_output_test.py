"""Images that are written as DICOM: `PIPELINE=path dicom_output_test.py [CLASS ...]`. What dciodvfy, DCMTK, pydicom,
highdicom, wsidicom and OpenSlide say is asked where they are."""

import contextlib
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import dicom_file

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import quick_storage  # noqa: E402,F401
from time_limits import time_limit  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ROOT / "build" / "python" / "bin" / "python3"
# Packages of PyPI have a Python of their own.
if "DICOM_TEST" not in os.environ and PYTHON.exists():
    os.execve(PYTHON, [str(PYTHON), "-B", *sys.argv], {**os.environ, "DICOM_TEST": "1"})

try:
    import numpy
    import openslide_bin  # noqa: F401
    import openslide
except ImportError:
    openslide = None
try:
    import pydicom
except (ImportError, OSError):
    pydicom = None
try:
    import highdicom
except (ImportError, OSError):
    highdicom = None

PIPELINE = os.environ["PIPELINE"]
DATA = pathlib.Path(os.environ.get("SLIDESTREAM_TEST_DATA", ROOT.parent / "shared")) / "data"
SOI = b"\xff\xd8"
EMPTY_NAMES = ("PatientName", "PatientID", "PatientBirthDate", "PatientSex", "StudyDate", "AccessionNumber")


def run(*arguments, **options):
    return subprocess.run([PIPELINE, *map(str, arguments)], capture_output=True, text=True, timeout=time_limit(200),
                          env={**os.environ, "LC_ALL": "C.UTF-8", "TERM": "dumb"}, stdin=subprocess.DEVNULL, check=False,
                          **options)


def digest(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def read_elements(content, at, end):
    """The elements of a data set of explicit VR: tag -> (VR, where the value begins, its bytes), up to the pixels."""
    found = {}
    while at < end:
        tag = int.from_bytes(content[at:at + 2], "little") << 16 | int.from_bytes(content[at + 2:at + 4], "little")
        vr = content[at + 4:at + 6].decode()
        long = vr in dicom_file.LONG_VRS
        begin = at + (12 if long else 8)
        length = int.from_bytes(content[begin - (4 if long else 2):begin], "little")
        found[tag] = (vr, begin, length)
        if tag == 0x7FE00010:
            break
        at = begin + length
    return found


class File:
    """An instance, read without anybody's library."""

    def __init__(self, path):
        self.content = path.read_bytes()
        assert self.content[128:132] == b"DICM"
        self.elements = read_elements(self.content, 132, len(self.content))

    def text(self, tag):
        _, begin, length = self.elements[tag]
        return self.content[begin:begin + length].rstrip(b"\0 ").decode()

    def number(self, tag):
        _, begin, length = self.elements[tag]
        return int.from_bytes(self.content[begin:begin + length], "little")

    def items(self):
        """Values of all items, the basic offset table first, and where each begins."""
        at = self.elements[0x7FE00010][1]
        found = []
        while self.content[at:at + 4] == b"\xfe\xff\x00\xe0":
            length = int.from_bytes(self.content[at + 4:at + 8], "little")
            found.append((at, self.content[at + 8:at + 8 + length]))
            at += 8 + length
        assert self.content[at:] == b"\xfe\xff\xdd\xe0\0\0\0\0", "what follows the frames"
        return found


class Case(unittest.TestCase):
    def setUp(self):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))

    def assertDone(self, result):
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result

    def slide(self, codec="jpeg420", size="700x530", tile="128"):
        path = self.folder / f"{codec}.svs"
        if not path.exists():
            self.assertDone(run("synth", "--out", path, "--size", size, "--codec", codec, "--tile", tile))
        return path

    def convert(self, slide, name, *arguments):
        out = self.folder / name
        self.assertDone(run("convert", slide, out, "--set", "input.mpp=0.25", *arguments))
        return out

    def tiles(self, path):
        """The tiles of each level of an OME-TIFF or SVS file, with their shared tables: main chain or SubIFDs."""
        content = path.read_bytes()
        for directory in dicom_file.directories(content):
            if 324 in directory:
                yield directory, [content[at:at + length] for at, length in zip(directory[324], directory[325])]


class Files(Case):
    def test_equal_input_gives_equal_bytes(self):
        slide = self.slide()
        for compression in "jpeg", "none", "copy":
            first = self.convert(slide, f"a-{compression}.dicom", "--compression", compression)
            for i, settings in enumerate((["pipeline.threads=1"], ["pipeline.strip_height=64"],
                                          ["pipeline.threads=3", "pipeline.strip_height=512"])):
                again = self.convert(slide, f"b-{compression}-{i}.dicom", "--compression", compression,
                                     *(word for setting in settings for word in ("--set", setting)))
                self.assertEqual(digest(first), digest(again), (compression, settings))

    def test_uids_are_of_the_content_and_below_the_root(self):
        slide = self.slide()
        tags = [0x0020000D, 0x0020000E, 0x00200052, 0x00080018]
        def uids(folder):
            return [[File(path).text(tag) for tag in tags] for path in sorted(folder.iterdir())]
        plain = uids(self.convert(slide, "plain.dicom"))
        self.assertTrue(all(uid.startswith("2.25.") and len(uid) == 44 for each in plain for uid in each), plain)
        # What all levels have in common is the same, and each level has one of its own.
        self.assertEqual(len({tuple(each[:3]) for each in plain}), 1)
        self.assertEqual(len({each[3] for each in plain}), len(plain))
        self.assertEqual(len({uid for each in plain for uid in each}), 3 + len(plain))
        other = uids(self.convert(slide, "other.dicom", "-Q", "50"))
        self.assertFalse({uid for each in plain for uid in each} & {uid for each in other for uid in each})
        root = "1.2.826.0.1.3680043.8.498.1234567890123"
        rooted = uids(self.convert(slide, "rooted.dicom", "--set", f"dicom.uid_root={root}"))
        self.assertTrue(all(uid.startswith(root + ".") and len(uid) <= 64 for each in rooted for uid in each), rooted)
        for bad in "1.2.03", "3.1", "abc", "1..2", root + "4", "1.2.":
            result = run("convert", slide, self.folder / "bad.dicom", "--set", f"dicom.uid_root={bad}")
            self.assertEqual((result.returncode, "dicom.uid_root" in result.stderr), (2, True), result.stderr)

    def test_frames_are_whole_and_tables_point_to_them(self):
        slide = self.slide()
        for name, arguments in ("jpeg", []), ("copy", ["--compression", "copy"]), ("grey", ["-s", "identity.colour=luminance"]):
            for path in sorted(self.convert(slide, f"{name}.dicom", *arguments).iterdir()):
                file = File(path)
                (at, table), *frames = file.items()
                self.assertEqual(len(frames), int(file.text(0x00280008)))
                offsets = [int.from_bytes(table[i:i + 4], "little") for i in range(0, len(table), 4)]
                self.assertEqual(offsets, [begin - frames[0][0] for begin, _ in frames])
                for _, frame in frames:
                    self.assertEqual((frame[:2], frame.rstrip(b"\0")[-2:], len(frame) % 2), (SOI, b"\xff\xd9", 0))
                expected = "MONOCHROME2" if name == "grey" else "YBR_FULL_422"
                self.assertEqual(file.text(0x00280004), expected)
                self.assertNotIn(0x7FE00001, file.elements)

    def test_copied_frames_are_the_tiles(self):
        # Whatever the subsampling, the standard has one value for YCbCr.
        for codec, photometric in ("jpeg420", "YBR_FULL_422"), ("jpeg444", "YBR_FULL_422"), ("rgb", "RGB"):
            slide = self.slide(codec)
            file = File(self.convert(slide, f"{codec}.dicom", "--compression", "copy") / "level-0.dcm")
            directory, tiles = next(self.tiles(slide))
            _, *frames = file.items()
            self.assertEqual(file.text(0x00280004), photometric)
            self.assertEqual(len(frames), len(tiles))
            for (_, frame), tile in zip(frames, tiles):
                self.assertTrue(frame[:-1].endswith(tile[2:]) or frame.endswith(tile[2:]))
                head = frame[:frame.rindex(tile[2:])]
                if photometric == "RGB":
                    # Decoders that don't look at PhotometricInterpretation look at this marker.
                    self.assertIn(b"\xff\xee\x00\x0eAdobe\x00\x64\0\0\0\0\0", head)

    def test_frames_of_dicom_are_copied(self):
        for codec in "jpeg420", "rgb":
            first = self.convert(self.slide(codec), f"{codec}.dicom", "--compression", "copy")
            again = self.convert(first / "level-0.dcm", f"{codec}-again.dicom", "--compression", "copy")
            frames = [[frame for _, frame in File(path / "level-0.dcm").items()] for path in (first, again)]
            self.assertEqual(*frames)

    def test_other_compressions_and_pixels_are_refused(self):
        slide = self.slide()
        for arguments in (["--compression", "zstd"], ["--compression", "blosc-lz4"]):
            result = run("convert", slide, self.folder / "x.dicom", *arguments)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("isn't in dicom", result.stderr)
        result = run(slide, "--out", self.folder / "out", "--operators", "sobel", "--set", "image.format=dicom",
                     "--set", "sobel.output=float32")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("8 bits", result.stderr)

    def test_a_slide_without_a_pixel_size_is_refused(self):
        slide = self.folder / "plain.svs"
        content = self.slide().read_bytes()
        self.assertIn(b"MPP = ", content)
        slide.write_bytes(content.replace(b"MPP = ", b"XPP = "))
        result = run("convert", slide, self.folder / "x.dicom")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("input.mpp_default", result.stderr)
        self.assertFalse((self.folder / "x.dicom").exists())
        self.assertDone(run("convert", slide, self.folder / "x.dicom", "--set", "input.mpp_default=0.5"))

    def test_names(self):
        slide = self.slide()
        for name in "plain", "folder/", "with.dicom/":
            out = self.folder / name
            self.assertDone(run("convert", slide, str(self.folder) + "/" + name, "--to", "dicom", "--set", "input.mpp=0.25"))
            self.assertEqual(sorted(path.name for path in out.iterdir())[0], "level-0.dcm")
            self.assertIn("is there already", run("convert", slide, out, "--to", "dicom").stderr)
        self.assertEqual([path.name for path in self.folder.iterdir() if "partial" in path.name], [])


ATTRIBUTES = """
PatientName = "Musterfrau^Erika=\u9673"
PatientID = "P-1"
PatientBirthDate = "19640812"
PatientSex = "F"
StudyInstanceUID = "1.2.3.4"
StudyDate = "20240229"
SeriesNumber = 7
PatientWeight = 61.5
ContainerIdentifier = "S24-1 A"
SpecimenShortDescription = "Colon"
[[PrimaryAnatomicStructureSequence]]
CodeValue = "71854001"
CodingSchemeDesignator = "SCT"
CodeMeaning = "Colon"
[[SpecimenPreparationSequence]]
[[SpecimenPreparationSequence.SpecimenPreparationStepContentItemSequence]]
ValueType = "TEXT"
TextValue = "fixed"
[[SpecimenPreparationSequence.SpecimenPreparationStepContentItemSequence.ConceptNameCodeSequence]]
CodeValue = "121041"
CodingSchemeDesignator = "DCM"
CodeMeaning = "Specimen Identifier"
"""


class Attributes(Case):
    def test_they_stand_in_all_files(self):
        slide = self.slide()
        plain = self.assertDone(run("convert", slide, self.folder / "plain.dicom"))
        self.assertEqual(plain.stderr.count("dicom.attributes isn't set"), 1, plain.stderr)
        toml = self.folder / "a.toml"
        # Behind a byte order mark, as some editors write it.
        toml.write_text("\ufeff" + ATTRIBUTES, encoding="utf-8")
        made = self.folder / "made.dicom"
        told = self.assertDone(run("convert", slide, made, "--set", f"dicom.attributes={toml}"))
        self.assertNotIn("dicom.attributes", told.stderr)
        for path in sorted(made.iterdir()):
            file = File(path)
            for tag, value in ((0x00100010, "Musterfrau^Erika=\u9673"), (0x00100020, "P-1"), (0x00100040, "F"),
                               (0x0020000D, "1.2.3.4"), (0x00080020, "20240229"), (0x00200011, "7"),
                               (0x00101030, "61.5"), (0x00400512, "S24-1 A"), (0x00080005, "ISO_IR 192")):
                self.assertEqual(file.text(tag), value)
            if shutil.which("dciodvfy"):
                told = subprocess.run(["dciodvfy", path], capture_output=True, text=True, check=False)
                self.assertNotIn("Error", told.stdout + told.stderr)
            if pydicom is not None:
                specimen = pydicom.dcmread(path).SpecimenDescriptionSequence[0]
                self.assertEqual((specimen.SpecimenIdentifier, specimen.SpecimenShortDescription), ("S24-1 A", "Colon"))
                self.assertEqual(specimen.PrimaryAnatomicStructureSequence[0].CodeMeaning, "Colon")
                step = specimen.SpecimenPreparationSequence[0].SpecimenPreparationStepContentItemSequence[0]
                self.assertEqual((step.TextValue, step.ConceptNameCodeSequence[0].CodeValue), ("fixed", "121041"))
        # JSON of the same content makes the same bytes.
        try:
            import tomllib
        except ImportError:
            return
        other = self.folder / "a.json"
        other.write_text("\ufeff" + json.dumps(tomllib.loads(ATTRIBUTES)), encoding="utf-8")
        self.assertDone(run("convert", slide, self.folder / "json.dicom", "--set", f"dicom.attributes={other}"))
        self.assertEqual(digest(made), digest(self.folder / "json.dicom"))

    def test_what_is_wrong_is_one_line(self):
        slide = self.slide()
        for name, text, told in (
                ("a.toml", "PatientNam = \"x\"", "'PatientNam' is no attribute"),
                ("a.toml", "Rows = 3", "'Rows' is no attribute"),
                ("a.toml", "PatientID = 3", "PatientID isn't a text"),
                ("a.toml", "PatientBirthDate = \"20230229\"", "PatientBirthDate isn't a date"),
                ("a.toml", "PatientSex = \"X\"", "PatientSex isn't M, F or O"),
                ("a.toml", "StudyTime = \"25\"", "StudyTime isn't a time"),
                ("a.toml", "StudyInstanceUID = \"1.02\"", "StudyInstanceUID isn't a UID"),
                ("a.toml", "StudyInstanceUID = \"\"", "StudyInstanceUID must not be empty"),
                ("a.toml", f"AccessionNumber = \"{'1' * 17}\"", "at most 16 characters"),
                ("a.toml", "PatientID = \"a\\\\b\"", "PatientID holds a backslash"),
                ("a.toml", "PatientID = \"a\\nb\"", "PatientID holds a control character"),
                ("a.toml", "SeriesNumber = 1.5", "SeriesNumber isn't an integer"),
                ("a.toml", "CodeValue = \"1\"", "CodeValue belongs into a sequence's items"),
                ("a.toml", "SpecimenPreparationSequence = 1", "isn't a list of tables"),
                ("a.toml", "SpecimenPreparationSequence = [1]", "SpecimenPreparationSequence[0] isn't a table"),
                ("a.toml", "SpecimenPreparationSequence = [{PatientID = \"1\"}]", "PatientID doesn't belong into a sequence"),
                ("a.toml", "PatientID = ", "a.toml:1: "),
                ("a.json", "{\"PatientID\": ", "isn't JSON: wrong at byte"),
                ("a.json", "[1]", "holds no attributes"),
                ("a.toml", "a" + ".a" * 5000 + " = 1", "more than 4096 dots")):
            file = self.folder / name
            file.write_text(text)
            result = run("convert", slide, self.folder / "x.dicom", "--quiet", "--set", f"dicom.attributes={file}")
            self.assertEqual((result.returncode, len(result.stderr.splitlines())), (2, 1), result.stderr)
            self.assertIn(str(file), result.stderr)
            self.assertIn(told, result.stderr)
            self.assertNotIn("20230229", result.stderr)
            self.assertFalse((self.folder / "x.dicom").exists())
        result = run("convert", slide, self.folder / "x.dicom", "--quiet", "--set", "dicom.attributes=nowhere.toml")
        self.assertEqual((result.returncode, len(result.stderr.splitlines())), (2, 1), result.stderr)

    def test_their_content_decides_results(self):
        slide, file = self.slide(), self.folder / "a.toml"
        file.write_text("PatientID = \"1\"")
        command = ["convert", slide, "--out", self.folder / "out", "--to", "dicom", "--set", f"dicom.attributes={file}"]
        self.assertDone(run(*command))
        moved = self.folder / "b.toml"
        moved.write_text(file.read_text())
        self.assertIn("skipped as done", self.assertDone(run(*command[:-1], f"dicom.attributes={moved}")).stderr)
        file.write_text("PatientID = \"2\"")
        result = run(*command)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("dicom.attributes", result.stderr)


class Losses(Case):
    def test_compression_of_the_source_is_said(self):
        tags = 0x00282110, 0x00282114
        for codec, options, expected in (
                ("none", ["--compression", "none"], ["00", None]), ("none", [], ["01", "ISO_10918_1"]),
                ("jpeg420", ["--compression", "none"], ["01", "ISO_10918_1"]),
                ("jpeg420", ["--compression", "copy"], ["01", "ISO_10918_1"]),
                ("jpeg420", [], ["01", "ISO_10918_1\\ISO_10918_1"]),
                ("jpeg2000", [], ["01", "ISO_15444_1\\ISO_10918_1"])):
            made = self.convert(self.slide(codec), f"{codec}{''.join(options)}.dicom", *options)
            file = File(made / "level-0.dcm")
            self.assertEqual([file.text(tag) if tag in file.elements else None for tag in tags], expected)
            ratios = file.text(0x00282112).split("\\") if 0x00282112 in file.elements else []
            self.assertTrue(all(float(ratio) > 1.5 for ratio in ratios), ratios)


class ReadBack(Case):
    def test_pixels_of_all_levels_are_those_of_other_formats(self):
        for codec, kinds in ("jpeg420", ("none", "jpeg")), ("rgb", ("none",)), ("none", ("jpeg",)):
            slide = self.slide(codec)
            for kind in kinds:
                arguments = ["--compression", "none"] if kind == "none" else []
                expected = self.convert(slide, f"{codec}-{kind}.ome.tif", *arguments, "--tile", "128")
                made = self.convert(slide, f"{codec}-{kind}.dicom", *arguments, "--tile", "128")
                info = json.loads(self.assertDone(run("info", "--json", expected)).stdout)
                seen = json.loads(self.assertDone(run("info", "--json", made / "level-0.dcm")).stdout)
                self.assertEqual([(level["width"], level["height"]) for level in seen["levels"]],
                                 [(level["width"], level["height"]) for level in info["levels"]])
                self.assertAlmostEqual(seen["mpp"], 0.25, 9)
                self.assertEqual(seen["magnification"], info["magnification"])
                for level in range(len(seen["levels"])):
                    pixels = []
                    for i, path in enumerate((expected, made / "level-0.dcm")):
                        raw = self.convert(path, f"raw-{codec}-{kind}-{level}-{i}.ome.tif", "--compression", "none", "--level",
                                           level, "--levels", "1")
                        pixels.append(next(self.tiles(raw))[1])
                    self.assertEqual(*pixels, (codec, kind, level))

    def test_operators_images(self):
        slide = self.slide()
        out = self.folder / "out"
        self.assertDone(run(slide, "--out", out, "--operators", "sobel,gaussian,stain", "--set", "image.format=dicom",
                            "--set", "input.mpp=0.5"))
        names = sorted(path.name for path in (out / "images").iterdir())
        self.assertEqual(names, [f"jpeg420.{op}.dicom" for op in ("gaussian", "sobel", "stain")])
        for name in names:
            self.assertDone(run("info", out / "images" / name / "level-0.dcm"))
        again = self.assertDone(run(slide, "--out", out, "--operators", "sobel,gaussian,stain", "--set",
                                    "image.format=dicom", "--set", "input.mpp=0.5"))
        self.assertIn("skipped as done", again.stderr)


def made_files(case):
    """Folders to be looked at by others: of synthetic slides, and of a real one where it is."""
    slide = case.slide()
    yield "jpeg", case.convert(slide, "jpeg.dicom"), slide
    yield "copy", case.convert(slide, "copy.dicom", "--compression", "copy"), slide
    yield "none", case.convert(slide, "none.dicom", "--compression", "none"), slide
    yield "grey", case.convert(slide, "grey.dicom", "--set", "identity.colour=luminance"), slide
    rgb = case.slide("rgb")
    yield "rgb", case.convert(rgb, "rgb.dicom", "--compression", "copy"), rgb
    whole = case.slide("jpeg444")
    yield "444", case.convert(whole, "444.dicom", "--compression", "copy", "--subsampling", "4:4:4"), whole
    real = DATA / "cmu-1-small-region.svs"
    if real.exists():
        yield "real", case.convert(real, "real.dicom", "--compression", "copy"), real


class OtherReaders(Case):
    made = None

    def made_files(self):
        """They are made once for all readers."""
        if OtherReaders.made is None:
            folder = tempfile.TemporaryDirectory()
            self.addClassCleanup(folder.cleanup)
            own, self.folder = self.folder, pathlib.Path(folder.name)
            OtherReaders.made = list(made_files(self))
            self.folder = own
        return OtherReaders.made

    @unittest.skipIf(shutil.which("dciodvfy") is None, "dciodvfy isn't here")
    def test_dciodvfy_has_no_complaint(self):
        for name, folder, _ in self.made_files():
            for path in sorted(folder.iterdir()):
                told = subprocess.run(["dciodvfy", path], capture_output=True, text=True, check=False)
                lines = (told.stdout + told.stderr).splitlines()
                self.assertIn("VLWholeSlideMicroscopyImage", lines)
                others = [line for line in lines if line != "VLWholeSlideMicroscopyImage" and "to build DICOMDIR" not in line]
                self.assertEqual(others, [], (name, path.name))

    @unittest.skipIf(shutil.which("dcmdump") is None, "DCMTK isn't here")
    def test_dcmtk_reads_and_writes_them(self):
        for name, folder, _ in self.made_files():
            for path in sorted(folder.iterdir()):
                told = subprocess.run(["dcmdump", "-q", "+P", "SOPInstanceUID", path], capture_output=True, text=True, check=False)
                self.assertEqual((told.returncode, told.stderr), (0, ""), (name, path.name))
                if path.name != "level-2.dcm":
                    continue
                out = self.folder / "frame"
                told = subprocess.run(["dcmj2pnm" if name != "none" else "dcm2pnm", "+op", path, out], capture_output=True,
                                      text=True, check=False)
                self.assertEqual(told.returncode, 0, told.stderr)

    @unittest.skipIf(openslide is None, "OpenSlide isn't here")
    def test_openslide(self):
        for name, folder, slide in self.made_files():
            if name == "grey":  # not among what it reads
                continue
            with openslide.OpenSlide(folder / "level-0.dcm") as seen:
                ours = json.loads(run("info", "--json", folder / "level-0.dcm").stdout)
                self.assertEqual([list(size) for size in seen.level_dimensions],
                                 [[level["width"], level["height"]] for level in ours["levels"]])
                self.assertAlmostEqual(float(seen.properties["openslide.mpp-x"]), 0.25, 9)
                self.assertIsNotNone(seen.color_profile)
                if name == "jpeg":
                    continue
                with openslide.OpenSlide(slide) as source:
                    size = seen.level_dimensions[0]
                    expected = numpy.asarray(source.read_region((0, 0), 0, size))[..., :3]
                    self.assertTrue((numpy.asarray(seen.read_region((0, 0), 0, size))[..., :3] == expected).all(), name)

    @unittest.skipIf(pydicom is None, "pydicom isn't here")
    def test_pydicom_and_wsidicom(self):
        try:
            import wsidicom
        except (ImportError, OSError):
            self.skipTest("wsidicom isn't here")
        for name, folder, slide in self.made_files():
            for path in sorted(folder.iterdir()):
                data = pydicom.dcmread(path)
                self.assertEqual([str(data.get(keyword)) for keyword in EMPTY_NAMES if data.get(keyword)], [])
                with contextlib.redirect_stderr(io.StringIO()):
                    array = data.pixel_array
                self.assertEqual(array.reshape(-1, *array.shape[-3 if data.SamplesPerPixel == 3 else -2:]).shape[0],
                                 int(data.NumberOfFrames))
            with wsidicom.WsiDicom.open(folder) as seen:
                self.assertEqual(len(seen.pyramids[0]), len(list(folder.iterdir())))
                self.assertAlmostEqual(seen.mpp.width, 0.25, 9)
                if name == "grey":
                    continue
                self.assertIsNotNone(seen.metadata.pyramid.optical_paths[0].icc_profile)
                if name in ("none", "copy", "rgb", "444", "real") and openslide is not None:
                    size = (seen.size.width, seen.size.height)
                    ours = numpy.asarray(seen.read_region((0, 0), 0, size).convert("RGB")).astype(int)
                    with openslide.OpenSlide(slide) as source:
                        expected = numpy.asarray(source.read_region((0, 0), 0, size).convert("RGB")).astype(int)
                    # Its decoder upsamples chroma in its own way.
                    self.assertLessEqual(abs(ours - expected).mean(), 0 if name == "none" else 1.5, name)

    @unittest.skipIf(highdicom is None, "highdicom isn't here")
    def test_highdicom(self):
        for name, folder, _ in self.made_files():
            for path in sorted(folder.iterdir()):
                # It converts the colours of each frame by itself, which takes long.
                if name == "real" and path.name == "level-0.dcm" and "SLIDESTREAM_TEST_WIDE" not in os.environ:
                    continue
                image = highdicom.imread(path)
                self.assertTrue(image.is_tiled)
                matrix = image.get_total_pixel_matrix(apply_icc_profile=name != "grey")
                self.assertEqual(matrix.shape[:2], (image.TotalPixelMatrixRows, image.TotalPixelMatrixColumns))


if __name__ == "__main__":
    program = unittest.main(exit=False)
    skipped = [reason for _, reason in program.result.skipped]
    if skipped and program.result.wasSuccessful() and len(skipped) == program.result.testsRun:
        print("SKIPPED: " + "; ".join(sorted(set(skipped))))
    sys.exit(not program.result.wasSuccessful())
