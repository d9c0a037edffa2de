"""bench/published where there is neither a GPU nor what its authors used: what it says, plans and prints."""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "bench" / "published"
sys.path.insert(0, str(FOLDER))
sys.dont_write_bytecode = True
import compare  # noqa: E402
import jpeg2000  # noqa: E402
import networks  # noqa: E402
import slant  # noqa: E402
import strips  # noqa: E402


def run(*arguments, script="compare.py"):
    # -S: no packages but Python's own.
    return subprocess.run([sys.executable, "-S", "-E", "-B", FOLDER / script, *arguments], capture_output=True, text=True)


class Compare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.slide = self.folder / "slide.svs"
        self.slide.write_bytes(b"slide")

    def test_help(self):
        help_text = run("--help")
        self.assertEqual(help_text.returncode, 0, help_text.stderr)
        self.assertIn("compare.py SLIDE [--pipeline PATH] [--json]", help_text.stdout)

    def test_what_is_missing_is_said_in_a_line(self):
        for arguments, words in (([self.slide], "missing Python packages: cucim (pip install cucim-cu13), cupy"),
                                 ([self.folder / "none.svs"], "no such file")):
            result = run(*arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertEqual(result.stderr.count("\n"), 1)
            self.assertIn(words, result.stderr)
        for arguments in ([self.slide, "--only", "C"], [self.slide, "--probe-rows", "100"], []):
            self.assertEqual(run(*arguments).returncode, 2)

    def test_the_loader_says_what_is_missing(self):
        def load(*arguments):
            return subprocess.run([sys.executable, "-S", "-E", "-B", FOLDER / "features.py", *map(str, arguments)],
                                  capture_output=True, text=True)

        self.assertIn("--coords FILE.h5", load("--help").stdout)
        result = load(self.slide, "--model", "m.onnx")
        self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (2, "", 1))
        self.assertIn("missing Python packages: torch (pip install torch)", result.stderr)
        self.assertEqual(load(self.slide).returncode, 2)

    def test_strips_cover_the_slide_once(self):
        self.assertEqual(strips.plan(1000, 256), [(0, 256), (256, 256), (512, 256), (768, 232)])
        self.assertEqual(strips.plan(1024, 256)[-1], (768, 256))
        self.assertEqual(strips.plan(100, 256), [(0, 100)])

    def options(self, **more):
        arguments = [str(self.slide)]
        for name, value in more.items():
            arguments += [f"--{name.replace('_', '-')}", str(value)]
        return compare.parse(arguments)

    def published(self, seconds, rows=40000, decoders=("cpu", "cuda")):
        """Rows of B where a decoder takes that many seconds for 1000 rows; None: it fails. And what was measured."""
        measured = []

        def run(decode, height):
            measured.append((decode, height))
            if seconds[decode] is None:
                raise RuntimeError("no nvJPEG")
            return seconds[decode] * height / 1000, (10, 35.0, 20.0)

        return compare.published_rows(run, "B", rows, 1000, decoders, 8192), measured

    def test_the_faster_decoder_takes_the_whole_slide(self):
        for faster, slower in (("cpu", "cuda"), ("cuda", "cpu")):
            table, measured = self.published({faster: 1.0, slower: 3.0})
            self.assertEqual(measured, [("cpu", 8192), ("cuda", 8192), (faster, 40000)])
            self.assertEqual([(entry["decode"], entry["seconds_per_slide"]) for entry in table],
                             [(faster, 40.0), (slower, 120.0)])
            self.assertAlmostEqual(table[0]["gigapixels_per_second"], 1e-3)
            self.assertEqual((table[0]["note"], table[1]["note"]), ("", "from its first 8192 rows"))
            self.assertEqual((table[0]["mean_db"], table[1]["mean_db"]), (35.0, None))

    def test_a_small_slide_is_measured_once(self):
        table, measured = self.published({"cpu": 1.0, "cuda": 3.0}, rows=5000)
        self.assertEqual(measured, [("cpu", 5000), ("cuda", 5000)])
        self.assertEqual([entry["seconds_per_slide"] for entry in table], [5.0, 15.0])

    def test_one_decoder_takes_the_whole_slide_at_once(self):
        table, measured = self.published({"cuda": 3.0}, decoders=("cuda",))
        self.assertEqual(measured, [("cuda", 40000)])
        self.assertEqual([entry["seconds_per_slide"] for entry in table], [120.0])

    def test_an_architecture_that_hangs_or_fails_is_a_row(self):
        options = self.options(timeout=0.01)
        self.assertEqual(compare.measured_rows("B", options)[0]["note"], "not done after 0.01 s")
        with mock.patch.object(compare.sys, "executable", "/bin/false"):
            self.assertEqual(compare.measured_rows("B", self.options())[0]["note"], "status 1")

    def test_a_decoder_that_fails_is_a_row(self):
        table, _ = self.published({"cpu": 1.0, "cuda": None})
        self.assertEqual([(entry["decode"], entry["note"]) for entry in table], [("cuda", "no nvJPEG"), ("cpu", "")])
        text = compare.text_table(table)
        self.assertIn("| B | cuda |  |  |  |  | no nvJPEG |", text)
        self.assertIn("| B | cpu | 40.000 | 0.00 | 35.0000 | 20.0000 |  |", text)

    def test_names_of_one_slide(self):
        names = compare.names_of(self.slide, 3, self.folder)
        self.assertEqual(len({name.resolve() for name in names}), 3)
        self.assertEqual({name.read_bytes() for name in names}, {b"slide"})

    def program(self, body):
        file = self.folder / "pipeline"
        file.write_text(f"#!{sys.executable}\nimport pathlib, sys\nout = pathlib.Path(sys.argv[sys.argv.index('--out') + 1])\n"
                        + body)
        file.chmod(0o755)
        return file

    def test_the_programs_row(self):
        pipeline = self.program(r"""
out.mkdir()
(out / "corpus.json").write_text('{"seconds": 0.32, "backend": "cuda", "settings": {"decode": {"device": "gpu"}}}')
(out / "slides.csv").write_text("path,windows,mean_db,std_db\n" + 8 * "x,172544,35.5,20.5\n")
""")
        entry = compare.own_row(ROOT / "configs" / "h100.toml", 65664 * 43264, self.options(pipeline=pipeline))
        self.assertEqual(entry["seconds_per_slide"], 0.04)
        self.assertEqual((entry["windows"], entry["mean_db"], entry["std_db"]), (172544, 35.5, 20.5))
        self.assertEqual(entry["architecture"], "slidestream, configs/h100.toml")
        short = compare.own_row(ROOT / "configs" / "h100.toml", 1, self.options(pipeline=pipeline, own_slides=9))
        self.assertEqual(short["note"], "ran 8 slides of 9")

    def test_a_program_that_fails_is_a_row(self):
        pipeline = self.program("sys.exit('no GPU')")
        entry = compare.own_row(ROOT / "configs" / "h100.toml", 1, self.options(pipeline=pipeline))
        self.assertEqual((entry["seconds_per_slide"], entry["note"]), (None, "no GPU"))

    def test_published_configurations_are_there(self):
        names = [config.name for config in self.options().config]
        self.assertEqual(names, ["h100.toml", "a.toml", "b.toml", "bplus.toml"])


class Networks(unittest.TestCase):
    def test_help_and_what_is_missing(self):
        help_text = run("--help", script="networks.py")
        self.assertEqual(help_text.returncode, 0, help_text.stderr)
        self.assertIn("networks.py [--pipeline PATH] [--models DIR] [--json]", help_text.stdout)
        result = run(script="networks.py")
        self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (2, "", 1))
        self.assertIn("missing Python packages: numpy (pip install numpy), onnxruntime (pip install onnxruntime-gpu), onnx",
                      result.stderr)
        self.assertEqual(run("--only", "nothing", script="networks.py").returncode, 2)

    def trace(self, *events):
        keys = ("cat", "name", "pid", "tid", "ts", "dur")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "trace.json"
            file.write_text(json.dumps({"traceEvents": [dict(zip(keys, event), ph="X") for event in events]}))
            return networks.read_trace(file)

    def test_rates_and_shares_are_those_of_the_last_two_thirds(self):
        # Four batches that end at 1, 2, 3 and 4 s: what counts is from 2 to 4 s.
        batches = [("stage", "network", 1, 0, second * 1e6, 1e6) for second in range(4)]
        found = self.trace(
            *batches, ("stage", "read", 1, 1, 3.5e6, 2e6),
            ("kernel", "fprop_gemm", 2, 7, 0, 2.5e6), ("kernel", "relu", 2, 7, 3e6, 0.25e6),  # 0.5 and 0.25 s of it
            ("kernel", "fprop_gemm", 2, 8, 2.25e6, 0.5e6),  # beside the first for half of its time
            ("kernel", "decode", 2, 9, 2e6, 1e6))  # not the network's
        self.assertEqual((found["batches"], found["span_seconds"], found["batches_a_second"]), (4, 2.0, 1.0))
        self.assertEqual((found["busy"], found["other_kernels"]), (0.5, 0.5))
        self.assertEqual(found["stages"], {"network": 1.0, "read": 0.25})
        self.assertNotIn("busy", self.trace(*batches))

    def test_several_gpus_share_what_is_busy(self):
        found = self.trace(*[("stage", "network", 1, 0, second * 1e6, 1e6) for second in range(4)],
                           ("kernel", "convolve", 2, 7, 0, 9e6), ("kernel", "convolve", 3, 7, 2e6, 1e6))
        self.assertEqual(found["busy"], 0.75)

    def test_models_that_a_folder_lacks_are_made(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "resnet18.onnx").write_bytes(b"")
            options = networks.parse(["--models", name, "--only-models", "resnet18,unet_half"])
            self.assertEqual(networks.missing_models(options), ["unet_half"])
            with unittest.mock.patch.object(networks.subprocess, "run") as made:
                networks.make_models(options)
            self.assertEqual(list(map(str, made.call_args.args[0][2:])), [name, "unet_half"])
            (folder / "unet_half.onnx").write_bytes(b"")
            with unittest.mock.patch.object(networks.subprocess, "run") as made:
                networks.make_models(options)
            made.assert_not_called()

    def test_commands_are_the_program_s(self):
        options = networks.parse(["--models", "m", "--pipeline", "p", "--device", "cpu", "--set", "model.mpp=1"])
        command = networks.command_of(options, "unet_half", ["s.svs"], "out", "model.sessions=2")
        for words in (["p", "s.svs"], ["model.file=m/unet_half.onnx"], ["image.format=ome-tiff"], ["model.batch=16"],
                      ["model.sessions=2", "-s", "model.mpp=1"]):
            self.assertIn("|".join(words), "|".join(command))
        self.assertNotIn("pipeline.backend=cuda", command)


class Slant(unittest.TestCase):
    def test_both_ways_to_write_a_grid(self):
        self.assertEqual(slant.parsed([]).grid, [3, 3, 3])
        for text in ("1x2x12", "1,2,12"):
            self.assertEqual(slant.parsed(["--grid", text]).grid, [1, 2, 12])

    def test_what_a_grid_is_to_be_is_said(self):
        for text in ("3x3", "3,3,3,3", "3x3x0", "3x3x", "-1,3,3", "3;3;3", "27"):
            result = run(f"--grid={text}", script="slant.py")
            self.assertEqual((result.returncode, result.stdout), (2, ""), text)
            self.assertIn(f"--grid: '{text}': expected three whole numbers above 0, as 3,3,3 or 3x3x3", result.stderr)

    def test_a_grid_and_its_networks_are_counted(self):
        with tempfile.TemporaryDirectory() as folder:
            for i in range(2):
                pathlib.Path(folder, f"network-{i + 1:02}.onnx").touch()
            result = run("--grid", "1x1x1", "--networks", folder, script="slant.py")
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertEqual(result.stderr, f"slant.py: {folder}: 2 networks; --grid wants 1 (--make slant)\n")


class Jpeg2000(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.slide = self.folder / "slide.svs"
        self.slide.write_bytes(b"slide")
        self.tiles = self.folder / "tiles"
        self.tiles.write_bytes(struct.pack("<3I", 2, 1, 3) + struct.pack("<I", 4) + b"abcd" + bytes(range(6))
                               + struct.pack("<I", 1) + b"e" + bytes(6))

    def bench(self, body):
        file = self.folder / "bench"
        file.write_text(f"#!{sys.executable}\nimport json, sys\n"
                        "def after(name): return sys.argv[sys.argv.index(name) + 1]\n" + body)
        file.chmod(0o755)
        return file

    def options(self, **more):
        return jpeg2000.parse([str(self.slide), *(word for name, value in more.items() for word in (f"--{name}", str(value)))])

    def test_help(self):
        help_text = run("--help", script="jpeg2000.py")
        self.assertEqual(help_text.returncode, 0, help_text.stderr)
        self.assertIn("jpeg2000.py SLIDE [--bench PATH] [--json]", help_text.stdout)

    def test_what_is_missing_is_said_in_a_line(self):
        bench = self.bench("")
        for arguments, words in (([self.slide, "--bench", bench], "missing Python packages: nvidia-nvjpeg2k-cu13 (pip"),
                                 ([self.folder / "none.svs", "--bench", bench], "no such file"),
                                 ([self.slide, "--bench", self.slide], "is no program")):
            result = run(*arguments, script="jpeg2000.py")
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertEqual(result.stderr.count("\n"), 1)
            self.assertIn(words, result.stderr)

    def test_tiles(self):
        tiles = jpeg2000.Tiles(self.tiles)
        self.assertEqual((tiles.width, tiles.height, tiles.channels), (2, 1, 3))
        self.assertEqual((tiles.compressed, tiles.pixels), ([b"abcd", b"e"], [bytes(range(6)), bytes(6)]))
        self.assertEqual(tiles.checked(), [(b"abcd", bytes(range(6))), (b"e", bytes(6))])
        self.tiles.write_bytes(self.tiles.read_bytes()[:-1])
        with self.assertRaisesRegex(ValueError, "cut off"):
            jpeg2000.Tiles(self.tiles)

    def test_differences(self):
        self.assertEqual(jpeg2000.mean_difference(b"\0\5\3", b"\2\1\3"), 2)
        with self.assertRaises(ValueError):
            jpeg2000.mean_difference(b"\0", b"\0\0")

    def test_own_rates(self):
        bench = self.bench("""
kind = after("--format")
assert after("--tiles") == "42000" and "--openjpeg" in sys.argv
open(after("--write-tiles"), "w").write(kind)
rows = [{"slide": "s_openjpeg", "gpx_per_s": 0.1}, {"slide": "s", "gpx_per_s": 40 if kind == "luminance" else 20}]
json.dump(rows, open(after("--json"), "w"))
""")
        rates, tiles = jpeg2000.own_rates(self.options(bench=bench), self.folder)
        self.assertEqual(rates, {"own_luminance": 40, "own_rgb": 20, "openjpeg_luminance": 0.1, "openjpeg_rgb": 0.1})
        # All three components' pixels are there for the others.
        self.assertEqual(tiles.read_text(), "rgb")
        failing = self.bench("sys.exit('no GPU')\n")
        with self.assertRaisesRegex(RuntimeError, "^no GPU$"):
            jpeg2000.own_rates(self.options(bench=failing), self.folder)

    def test_a_peer_keeps_its_fastest_setting(self):
        peer = self.bench("print('a line before')\nprint(json.dumps([{'one': 0.1, 'two': 0.2}, 0.5]))\n")
        with mock.patch.object(jpeg2000.sys, "executable", str(peer)):
            rate, note = jpeg2000.peer_rate("nvjpeg2k", self.tiles, self.options())
        self.assertEqual(rate, 0.2)
        self.assertEqual(note, "with two; mean difference from OpenJPEG's samples 0.5; one: 0.1, two: 0.2")
        failing = self.bench("sys.exit('no library')\n")
        with mock.patch.object(jpeg2000.sys, "executable", str(failing)):
            self.assertEqual(jpeg2000.peer_rate("nvjpeg2k", self.tiles, self.options()), (None, "no library"))

    def test_figures(self):
        rates = {"own_luminance": 40.0, "own_rgb": 20.0, "openjpeg_luminance": 0.3, "openjpeg_rgb": 0.2}
        figures = {entry["name"]: entry
                   for entry in jpeg2000.figures_of(rates, {"nvjpeg2k": (0.1, "a note"), "nvimgcodec": (None, "why")})}
        self.assertEqual(figures["own_over_nvjpeg2k"]["value"], 400)
        self.assertEqual((figures["own_over_nvjpeg2k"]["target"], figures["own_over_nvjpeg2k"]["direction"]), (200, "at_least"))
        self.assertEqual(figures["own_rgb_over_nvjpeg2k"]["value"], 200)
        self.assertEqual((figures["nvimgcodec_gpx_per_s"]["value"], figures["nvimgcodec_gpx_per_s"]["note"]), (None, "why"))
        without = jpeg2000.figures_of(rates, {"nvjpeg2k": (None, "why"), "nvimgcodec": (0.1, "")})
        self.assertEqual([entry["value"] for entry in without if "over" in entry["name"]], [None, None])


if __name__ == "__main__":
    unittest.main()
