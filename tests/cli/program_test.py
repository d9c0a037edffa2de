"""The program from outside: `PIPELINE=path/to/pipeline program_test.py [CLASS ...]`."""

import contextlib
import csv
import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import quick_storage  # noqa: E402,F401
from time_limits import time_limit  # noqa: E402

PIPELINE = os.environ["PIPELINE"]
ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm"}
# Settings under which the large slide takes more than a minute, however fast the machine is.
LONG = ("--threads", "1", "--set", "analysis.stride=32")


def run(*arguments, timeout=time_limit(120), **options):
    """Runs the program; standard input is empty unless `input` says otherwise."""
    options.setdefault("input", "")
    return subprocess.run(
        [PIPELINE, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, env=ENVIRONMENT, **options
    )


class Case(unittest.TestCase):
    """A test with a folder of its own and slides that are made once."""

    _slides = None

    @classmethod
    def setUpClass(cls):
        if Case._slides is None:
            Case._slides = tempfile.TemporaryDirectory()
        cls.slides = pathlib.Path(Case._slides.name)

    def setUp(self):
        self.folder = pathlib.Path(self.enterContextOf(tempfile.TemporaryDirectory()))
        self.out = self.folder / "out"

    def enterContextOf(self, manager):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        return stack.enter_context(manager)

    def slide(self, name="small", size="1024x768", *options):
        file = self.slides / f"{name}.svs"
        if not file.exists():
            made = run("synth", "--out", file, "--size", size, "--levels", 1, *options)
            self.assertEqual(made.returncode, 0, made.stderr)
        return file

    def large_slide(self):
        """One that takes some seconds, and far longer with `LONG`."""
        return self.slide("large", "32768x32768", "--distinct", 64)

    def wait_until(self, condition, seconds=100):
        end = time.monotonic() + time_limit(seconds)
        while not condition():
            self.assertLess(time.monotonic(), end, "what was waited for doesn't come")
            time.sleep(0.02)

    def wait_until_done(self, count, out=None):
        """Returns when a run that goes on has so many slides in its ledger."""
        def are_done():
            told = json.loads(run("status", out or self.out, "--json").stdout or "null")
            return told is not None and told["done"] >= count

        self.wait_until(are_done)

    def rows(self, folder=None):
        with open((folder or self.out) / "slides.csv", newline="", encoding="utf-8", errors="surrogateescape") as file:
            return list(csv.DictReader(file))

    def assertOneLine(self, result, status, *parts):
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)


class Usage(Case):
    def test_no_arguments(self):
        result = run()
        self.assertEqual(result.returncode, 2)
        self.assertIn("pipeline --help", result.stderr)

    def test_too_small_a_stack_is_said(self):
        for kib, status in (20, 2), (80, 2), (255, 2), (256, 0):
            words = ["sh", "-c", f'ulimit -S -s {kib} && exec "$0" --version', PIPELINE]
            result = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT)
            self.assertEqual(result.returncode, status, (kib, result.stderr))
            self.assertEqual("error: the limit of the stack is below 256 KiB" in result.stderr, status == 2)

    def test_help_says_when_shortage_is_which_status(self):
        text = " ".join(run("--help").stdout.split())
        self.assertIn("too little before a slide was begun: the same command resumes", text)
        self.assertIn("a full disk, too little memory, a lost GPU", text)

    def test_help(self):
        for command in [], ["info"], ["synth"], ["completion"]:
            for flag in "--help", "-h":
                result = run(*command, flag)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertIn("Usage: pipeline", result.stdout)
                self.assertIn("Examples:", result.stdout)

    def test_version(self):
        result = run("--version")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"^slidestream \d+\.\d+\.\d+\n$")

    def test_wrong_usage_is_one_line(self):
        small = self.slide()
        cases = [
            (["--quite", small], "unknown option '--quite'; did you mean '--quiet'?"),
            (["info", "--jsn", small], "unknown option '--jsn'; did you mean '--json'?"),
            (["--opertors", "stain", small], "unknown option '--opertors'; did you mean '--operators'? (see pipeline --help)"),
            (["--operator", "stain", small], "unknown option '--operator'; did you mean '--operators'? (see pipeline --help)"),
            (["--operatrs", "tissue", small], "unknown option '--operatrs'; did you mean '--operators'? (see pipeline --help)"),
            (["-s", "stain.white=foo", small], "stain.white must be \"auto\" or [red, green, blue], not 'foo'"),
            (["infoo", small], "'infoo' is neither a file nor a command; did you mean 'info'?"),
            (["sobel", small], "'sobel' is neither a file nor a command; did you mean '--operators sobel'?"),
            (["sweeep"], "'sweeep' is neither a file nor a command; did you mean 'sweep'?"),
            ([small, "info", small], "stands before the command 'info'"),
            (["--set"], "--set"),
            (["info"], "required"),
            (["info", "-dash.svs"], "unknown option '-dash.svs' (see pipeline info --help)"),
            (["--out", "a", "--out", "b", small], "--out is given 2 times; expected once (see pipeline --help)"),
            (["--maps", "npy", small, "--maps", "npy", "--maps", "tiff"], "--maps is given 3 times; expected once"),
            (["convert", small, "--to", "dzi", "-o", "a", "-o", "b"], "--out is given 2 times; expected once"),
            (["synth"], "--out"),
            (["synth", "--out", ""], "--out: can't be empty"),
            (["synth", "--out", "x.svs", "--seed", "-1"], "isn't a whole number from 0 to 18446744073709551615"),
            (["synth", "--out", "x.svs", "--seed", "18446744073709551616"], "--seed: "),
            (["synth", "--out", "x.svs", "--mpp", "1e308"], "mpp"),
            (["--out", "", small], "--out: can't be empty"),
            (["--config", "", small], "--config: can't be empty"),
            (["status", ""], "can't be empty"),
            (["merge", "", "-o", "x.svs"], "can't be empty"),
            (["merge", "a", "", "-o", "x.svs"], "can't be empty"),
            (["compare", "", "a"], "can't be empty"),
            (["compare", "a", ""], "can't be empty"),
            (["completion", "tcsh"], "expected bash, zsh or fish"),
            (["--log-level", "inf", small], "did you mean 'info'?"),
            (["--maps", "other", small], "output.maps is 'other'; expected none, npy or tiff"),
            (["--threads", "many", small], "pipeline.threads must be a whole number"),
            (["--threads", "-1", small], "pipeline.threads is -1"),
            (["--backend", "gpu", small], "expected auto, cpu or cuda"),
            (["--config", self.folder / "none.toml", small], "none.toml: No such file or directory"),
        ]
        for arguments, message in cases:
            with self.subTest(arguments=arguments):
                self.assertOneLine(run(*arguments, cwd=self.folder), 2, message)
                self.assertFalse((self.folder / "slidestream-out").exists())
                self.assertFalse((self.folder / "x.svs").exists())

    def test_a_file_whose_name_begins_as_an_options(self):
        shutil.copy(self.slide(), self.folder / "-dash.svs")
        for command in "info", "convert":
            self.assertOneLine(run(command, "-dash.svs", cwd=self.folder), 2,
                               "unknown option '-dash.svs'; the file of this name is ./-dash.svs (see")
        self.assertEqual(run("info", "./-dash.svs", cwd=self.folder).returncode, 0)

    def test_a_value_that_is_empty_takes_no_other_word(self):
        small = self.slide()
        for arguments, name in (
                ([small, "--out=", "-q"], "--out"),
                (["--config=", small], "--config"),
                ([small, "--maps=", "npy"], "--maps"),
                (["synth", "--out=", "--size=1024x768"], "--out"),
                (["merge", "a", "b", "--out=", "--quiet"], "--out")):
            with self.subTest(arguments=arguments):
                self.assertOneLine(run(*arguments, cwd=self.folder), 2, f"error: {name}: can't be empty")
                self.assertEqual(list(self.folder.iterdir()), [])
        self.assertOneLine(run(small, "-o=results", cwd=self.folder), 2, "expected '-o results'")
        self.assertEqual(list(self.folder.iterdir()), [])
        self.assertEqual(run("--quiet", "--out=a=", small, cwd=self.folder).returncode, 0)
        self.assertTrue((self.folder / "a=" / "slides.csv").is_file())

    def test_inputs_that_are_not_there(self):
        small = self.slide()
        for inputs in ["typo.svs"], ["typo"], ["typo.svs", "folder/"]:
            with self.subTest(inputs=inputs):
                result = run(*inputs, "--out", self.out, cwd=self.folder)
                self.assertEqual((result.returncode, result.stderr.count("\n")), (2, 1), result.stderr)
                self.assertFalse(self.out.exists())
        for other in "typo.svs", "folder/typo":
            with self.subTest(other=other):
                result = run(small, other, "--out", self.out, "--fresh", cwd=self.folder)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertEqual([row["status"] for row in self.rows()], ["done", "failed"])

    def test_a_word_that_is_no_command(self):
        for word, meant in ("Convert", "convert"), ("segmnet", "segment"), ("stains", "stain"), ("fetures", "features"):
            with self.subTest(word=word):
                self.assertOneLine(run(word, self.slide(), cwd=self.folder), 2, f"did you mean '{meant}'?")
        self.assertOneLine(run("normalise", cwd=self.folder), 2, "commands are stain, tissue, features, segment, convert")

    def test_a_reference_that_cannot_be_opened_is_refused_before_the_run(self):
        slide = self.slide()
        (self.folder / "text.svs").write_text("no slide")
        for reference in "missing.svs", "text.svs", ".":
            for option in (), ("--dry-run",):
                with self.subTest(reference=reference, option=option):
                    done = run("stain", slide, "--reference", self.folder / reference, "-o", self.folder / "refused", *option)
                    self.assertOneLine(done, 2, f"stain.reference: {self.folder / reference}: ")
                    self.assertFalse((self.folder / "refused").exists())

    def test_a_folder_of_other_files_says_which(self):
        (self.folder / "a.qptiff").touch()
        (self.folder / "b.QPTIFF").touch()
        result = run(self.folder, "--out", self.out)
        self.assertEqual(result.returncode, 2)
        self.assertIn("its files are 2 .qptiff; slides end in .dcm, .mrxs, .ndpi, .vms, .vmu, .scn, .bif, .svslide, .czi, .svs, "
                      ".tif, .tiff or .btf", result.stderr)

    def test_choices_with_colons_are_listed(self):
        self.assertRegex(run("convert", "--help").stdout, r"--subsampling 4:2:0\|4:2:2\|4:4:4\s")
        self.assertRegex(run("--help").stdout, r"--shard-by path\|size\s")

    def test_help_begins_with_tasks(self):
        text = run("--help").stdout
        self.assertLess(text.index("pipeline segment"), text.index("Usage:"))
        for name in "identity", "model", "ome-zarr", "dzi":
            self.assertRegex(text, rf"(?m)^  {name} +\w")

    def test_help_names_and_describes_all_operators(self):
        settings = " ".join(run("--print-config").stdout.replace("\n#", " ").split())
        names = re.search(r"Operators to compute in one pass over each slide: (.+?);", settings).group(1)
        self.assertIn("spectrum, ", names)
        text = run("--help").stdout
        self.assertIn(f"What is computed: {names} (operators.run)", " ".join(text.split()))
        for name in names.split(", "):
            self.assertRegex(text, rf"(?m)^  {name} +\w")

    def test_largest_seed(self):
        result = run("synth", "--out", "\u009b.svs", "--size", "256x256", "--seed", 2**64 - 1, cwd=self.folder)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertTrue(result.stdout.startswith("?.svs: "), result.stdout)

    def test_synth_can_be_quiet(self):
        for file, options in ("quiet.svs", ("--size", "256x256", "-t", "1")), ("quiet.nii.gz", ("--volume", "16x16x16")):
            result = run("synth", "--out", file, "-q", *options, cwd=self.folder)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
            self.assertTrue((self.folder / file).exists())

    @unittest.skipUnless(pathlib.Path("/dev/full").is_char_device(), "no /dev/full")
    def test_standard_output_that_is_full(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([PIPELINE, "--print-config"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 3)
        self.assertIn("standard output: No space left on device", result.stderr)


class Configuration(Case):
    def config(self, text):
        file = self.folder / "run.toml"
        file.write_text(text)
        return file

    def test_printed_configuration_can_be_fed_back(self):
        first = run("--set", "analysis.stride=64", "--out", "a b", "--print-config", "x.svs")
        self.assertEqual((first.returncode, first.stderr), (0, ""))
        second = run("--config", self.config(first.stdout), "--print-config")
        self.assertEqual(second.stdout, first.stdout)
        self.assertIn("stride = 64\n", first.stdout)
        self.assertIn('slides = ["x.svs"]\n', first.stdout)
        self.assertIn('dir = "a b"\n', first.stdout)

    def test_precedence(self):
        config = self.config('[input]\nslides = ["file.svs"]\n[analysis]\nstride = 1\nbins = 2\n[output]\nmaps = "npy"\n')
        text = run("--config", config, "--set", "analysis.stride=3", "--set", "output.maps=tiff", "--set",
                   "analysis.stride=4", "--print-config").stdout
        self.assertIn('slides = ["file.svs"]\n', text)
        self.assertIn("stride = 4\n", text)
        self.assertIn("bins = 2\n", text)
        self.assertIn('maps = "tiff"\n', text)
        text = run("--config", config, "--set", "output.maps=tiff", "--maps", "none", "--print-config", "own.svs").stdout
        self.assertIn('maps = "none"\n', text)
        self.assertIn('slides = ["own.svs"]\n', text)

    def test_errors_name_file_line_and_nearest(self):
        config = self.config("[analysis]\n\nwindw = 256\n")
        self.assertOneLine(run("--config", config, self.slide()), 2,
                           f"{config}:3: unknown key 'windw' in [analysis]; did you mean 'window'?")
        self.assertOneLine(run("--set", "analysis.strid=1", self.slide()), 2, "did you mean 'analysis.stride'?")

    def test_shipped_configurations_are_valid(self):
        configs = pathlib.Path(__file__).parents[2] / "configs"
        self.assertEqual({file.name for file in configs.glob("*.toml")},
                         {"demo.toml", "cpu.toml", "a40x4.toml", "h100.toml", "h200.toml", "h200x4.toml"})
        for file in configs.glob("*.toml"):
            result = run("--config", file, "--print-config")
            self.assertEqual((result.returncode, result.stderr), (0, ""), file)

    def test_demo(self):
        demo = pathlib.Path(__file__).parents[2] / "configs/demo.toml"
        result = run("--config", demo, self.slide(), cwd=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue((self.folder / "slidestream-out/maps/small.npy").exists())


class Inputs(Case):
    def test_no_slide_at_all(self):
        (self.folder / "empty").mkdir()
        (self.folder / "empty.list").write_text("# nothing\n")
        result = run("--out", self.out)
        self.assertOneLine(result, 2, "no slide")
        for name in "empty", "empty.list":
            result = run(self.folder / name, "--out", self.out)
            self.assertEqual(result.returncode, 2)
            self.assertIn("no slide in", result.stderr)
        self.assertFalse(self.out.exists())

    def test_a_list_of_slides_that_are_not_there(self):
        listed = self.folder / "cohort.list"
        listed.write_text("gone/a.svs\ngone/b.svs\n")
        first = self.folder / "gone/a.svs"
        for words, line in (((listed,), f"{listed}: none of the 2 slides is there; the first is {first}"),
                            ((listed, self.folder / "c.svs"), f"{listed} and the other inputs: none of the 3 slides is there")):
            self.assertOneLine(run(*words, "--out", self.out), 2, line)
            self.assertFalse(self.out.exists())
        result = run("-", "--out", self.out, input="gone/a.svs\n")
        self.assertOneLine(result, 2, "standard input: its slide isn't there: gone/a.svs")
        self.assertFalse(self.out.exists())
        # Of several inputs the line names the one that isn't there.
        (self.folder / "empty").mkdir()
        absent = self.folder / "absent.svs"
        result = run(self.folder / "empty", absent, "--out", self.out)
        self.assertEqual((result.returncode, self.out.exists()), (2, False), result.stderr)
        self.assertIn(f"{absent}: No such file or directory; the inputs have no other slide", result.stderr)
        self.assertNotIn("and the other inputs", result.stderr)
        # A link that leads nowhere is no slide, either.
        link = self.folder / "link.svs"
        link.symlink_to("nowhere.svs")
        self.assertOneLine(run(link, "--out", self.out), 2, "link.svs: No such file or directory")
        result = run("-", "--out", self.out, input=f"{link}\n")
        self.assertOneLine(result, 2, f"standard input: its slide isn't there: {link}")
        self.assertFalse(self.out.exists())
        # Of several, one that is there is enough.
        (self.folder / "gone").mkdir()
        shutil.copy(self.slide(), first)
        self.assertEqual(run(listed, "--out", self.out).returncode, 1)
        self.assertEqual([row["status"] for row in self.rows()], ["done", "failed"])

    def test_lists_folders_and_standard_input(self):
        small = self.slide()
        second = self.slide("second", "512x512")
        folder = self.folder / "slides"
        folder.mkdir()
        shutil.copy(second, folder / "B.SVS")
        shutil.copy(second, folder / "a.svs")
        (self.folder / "cohort.csv").write_text(f'id,path\n1,"{small}"\n2,slides\n')
        result = run(self.folder / "cohort.csv", "--out", self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        names = [pathlib.Path(row["path"]).name for row in self.rows()]
        self.assertEqual(names, ["small.svs", "B.SVS", "a.svs"])
        result = run("-", "--out", self.out, input=f"{small}\n# no\nslides\n{small}\n", cwd=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([row["path"] for row in self.rows()], [str(small), "slides/B.SVS", "slides/a.svs"])
        self.assertIn("counted once", result.stderr)

    def test_a_list_that_begins_with_a_slide_that_is_not_there(self):
        for name in "cohort.csv", "cohort.list":
            listed = self.folder / name
            listed.write_text(f"{self.folder}/none/series1\n{self.slide()}\n")
            out = self.folder / f"of-{listed.suffix[1:]}"
            self.assertEqual(run(listed, "--out", out).returncode, 1)
            self.assertEqual([row["status"] for row in self.rows(out)], ["failed", "done"])

    def test_standard_input_that_cannot_be_read(self):
        for redirection, cause in ("<&-", "Bad file descriptor"), ("</tmp", "Is a directory"):
            result = subprocess.run(["bash", "-c", f'exec "$@" {redirection}', "-", PIPELINE, "-", "--out", self.out],
                                    capture_output=True, text=True, env=ENVIRONMENT, check=False)
            self.assertOneLine(result, 2, f"standard input: {cause}")

    def test_addresses_are_refused_without_what_is_secret_in_them(self):
        address = "https://user:hunter2@host/x.svs"
        listed = self.folder / "cohort.list"
        listed.write_text(f"{self.slide()}\n{address}\n")
        for words in (address,), (self.slide(), address), (listed,):
            result = run(*words, "--out", self.out)
            self.assertOneLine(result, 2, "https://...: addresses aren't read")
            self.assertNotIn("hunter2", result.stderr)
        self.assertIn(f"{listed}:2: ", result.stderr)

    def test_bad_slides_fail_with_one_line_each_and_the_rest_is_done(self):
        small = self.slide()
        bad = self.folder / "bad"
        bad.mkdir()
        (bad / "empty.svs").touch()
        (bad / "text.svs").write_text("hello\n")
        (bad / "folder.svs").mkdir()
        (bad / "cut.svs").write_bytes(small.read_bytes()[:5000])
        os.mkfifo(bad / "pipe.svs")
        (bad / "loop.svs").symlink_to("loop.svs")
        result = run(bad, small, bad / "missing.svs", "--out", self.out, "--log-level", "error", timeout=time_limit(60))
        self.assertEqual(result.returncode, 1)
        lines = result.stderr.splitlines()
        names = ["cut.svs", "empty.svs", "folder.svs", "loop.svs", "pipe.svs", "text.svs", "missing.svs"]
        self.assertEqual(len(lines), len(names), result.stderr)
        for name in names:
            self.assertEqual(sum(f"bad/{name}: " in line for line in lines), 1, result.stderr)
        rows = self.rows()
        self.assertEqual([row["status"] for row in rows], ["failed"] * 6 + ["done", "failed"])
        for row in rows:
            self.assertEqual(row["status"] == "failed", row["error"] != "")
            self.assertEqual(row["status"] == "failed", row["mean_db"] == "")

    def test_info(self):
        small = self.slide()
        text = run("info", small)
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertIn("1024", text.stdout)
        one = json.loads(run("info", "--json", small).stdout)
        self.assertEqual((one["levels"][0]["width"], one["levels"][0]["height"]), (1024, 768))
        self.assertEqual(one["levels"][0]["codec"], "jpeg")
        self.assertEqual(one["mpp"], 0.25)
        several = run("info", "--json", small, self.slide("second", "512x512"), self.folder / "missing.svs")
        self.assertOneLine(several, 1, "missing.svs")
        self.assertEqual([slide["levels"][0]["width"] for slide in json.loads(several.stdout)], [1024, 512])
        os.mkfifo(self.folder / "pipe.svs")
        self.assertOneLine(run("info", self.folder / "pipe.svs", timeout=time_limit(30)), 1, "pipe.svs")


class ShortForms(Case):
    def test_tissue_and_stain(self):
        small = self.slide()
        made = run("tissue", small, "--out", self.out)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn("tissue.share", self.rows()[0])
        made = run("stain", small, "--stain", "hematoxylin", "--out", self.folder / "stain")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertTrue((self.folder / "stain/images/small.stain.ome.tif").is_file())
        # The same settings as the main command's.
        again = run(small, "--operators", "stain", "-s", "stain.output=hematoxylin", "--out", self.folder / "stain")
        self.assertIn("skipped as done: 1 of 1 slides", again.stderr)
        self.assertOneLine(run("stain", small, "-s", "operators.run=sobel"), 2, "operators.run can't be set here")

    def test_several_operators_and_a_format_by_itself(self):
        made = run(self.slide(), "--operators", "stain,tissue", "--out", self.out)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertTrue((self.out / "images/small.stain.ome.tif").is_file())
        config = self.folder / "run.toml"
        config.write_text('[operators]\nrun = "identity"\n[image]\nformat = "none"\n')
        self.assertOneLine(run(self.slide(), "-c", config, "--out", self.folder / "none"), 2, 'image.format is "none"')
        self.assertFalse((self.folder / "none").exists())

    def test_networks(self):
        small = self.slide()
        for command in "features", "segment":
            self.assertOneLine(run(command, small, cwd=self.folder), 2, "--model FILE.onnx")
        text = run("features", small, "--model", "net.onnx", "--print-config").stdout
        for line in 'run = ["model"]', 'file = "net.onnx"', 'output = "vector"', 'where = "tissue"':
            self.assertIn(f"\n{line}\n", text)
        text = run("features", small, "--model", "net.onnx", "--where", "all", "--print-config").stdout
        self.assertIn('\nwhere = "all"\n', text)
        # What stands beside the network goes before the command's defaults.
        (self.folder / "net.toml").write_text('[model]\noutput = "image"\n')
        text = run("segment", small, "--model", self.folder / "net.onnx", "--print-config").stdout
        self.assertIn('\noutput = "image"\n', text)
        self.assertIn('\nformat = "ome-tiff"\n', text)
        # Files of features have a format; images have none of these.
        for command, network, output in (("segment", "net", "image"), ("segment", "other", "classes"), ("features", "other", "")):
            for more in (["-s", "features.format=pt"], []):
                done = run(command, small, "--model", self.folder / f"{network}.onnx", "--print-config", *more)
                told = bool(output and more)
                self.assertEqual(done.stderr.count("decides nothing here"), told, done.stderr)
                self.assertIn(f'features.format is for files of features, and decides nothing here: model.output is "{output}"'
                              if told else "", done.stderr)


class Results(Case):
    def test_files_and_summary(self):
        small = self.slide()
        result = run(small, "--out", self.out, "--maps", "npy")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sorted(path.name for path in self.out.iterdir()),
                         ["corpus.json", "failures.csv", "histograms.npy", "maps", "run.sqlite", "slides.csv"])
        (row,) = self.rows()
        self.assertEqual((row["status"], row["width"], row["height"], row["windows"]), ("done", "1024", "768", "35"))
        corpus = json.loads((self.out / "corpus.json").read_text())
        self.assertEqual(corpus["totals"]["windows"], 35)
        self.assertEqual(sum(corpus["histogram"]), 35 * 256 * 256)
        self.assertEqual(float(row["mean_db"]), corpus["totals"]["mean"])
        self.assertIn("done     1 slide", result.stdout)
        self.assertIn(str(self.out), result.stdout)
        self.assertEqual([line.split()[0] for line in result.stdout.splitlines()], ["done", "where", "speed", "failed"])
        self.assertNotIn("\x1b", result.stdout + result.stderr)

    def test_the_table_of_stages_stands_behind_an_option(self):
        result = run(self.slide(), "--out", self.out, "--stats")
        self.assertRegex(result.stdout, r"(?m)^slide +windows ")
        self.assertRegex(result.stdout, r"(?m)^stage +busy ")
        self.assertRegex(result.stdout, r"(?m)^failed +none$")

    def test_slides_of_the_same_name_have_maps_of_their_own(self):
        small = self.slide()
        for name in "a", "b":
            (self.folder / name).mkdir()
            shutil.copy(small, self.folder / name / "x.svs")
        for format, suffix in ("npy", "npy"), ("tiff", "tif"):
            result = run(self.folder / "a", self.folder / "b", "--out", self.out, "--maps", format, "--fresh")
            self.assertEqual(result.returncode, 0, result.stderr)
            maps = json.loads((self.out / "corpus.json").read_text())["maps"]
            self.assertEqual(sorted(file.name for file in (self.out / "maps").iterdir()), sorted(maps.values()))
            self.assertEqual(maps[str(self.folder / "a/x.svs")], f"x.{suffix}")
            self.assertRegex(maps[str(self.folder / "b/x.svs")], rf"^x-[0-9a-f]{{8}}\.{suffix}$")

    def test_maps_of_an_earlier_run_are_not_slides(self):
        shutil.copy(self.slide(), self.folder / "x.svs")
        for _ in range(2):
            result = run(self.folder, "--out", self.folder, "--maps", "tiff")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual([row["path"] for row in self.rows(self.folder)], [str(self.folder / "x.svs")])
        self.assertIn("/maps: has results of an earlier run; 1 file in it", result.stderr)

    def test_clipped_values_are_told(self):
        result = run(self.slide(), "--out", self.out, "--set", "analysis.range=[20, 60]", "--quiet")
        self.assertEqual(result.returncode, 0)
        self.assertIn(f"{self.rows()[0]['clipped']} of {35 * 256 * 256} values lie outside", result.stderr)

    def test_quiet_says_nothing(self):
        result = run(self.slide(), "--out", self.out, "--quiet")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_json_messages(self):
        odd = self.folder / 'od"d\n\\.svs'
        result = run(odd, self.slide(), "--out", self.out, "--log-json")
        self.assertEqual(result.returncode, 1)
        messages = [json.loads(line) for line in result.stderr.splitlines()]
        self.assertTrue(any(m["level"] == "error" and str(odd) in m["message"] for m in messages))

    def test_bad_tiles_follow_the_policy(self):
        bad = self.slide("defects", "1024x768", "--defects", "missing=2,corrupt=1")
        result = run(bad, "--out", self.out)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(self.rows()[0]["status"], "failed")
        result = run(bad, "--out", self.out, "--set", "decode.on_bad_tile=white", "--fresh")
        self.assertEqual(result.returncode, 0, result.stderr)
        (row,) = self.rows()
        self.assertEqual((row["missing_tiles"], row["bad_tiles"]), ("2", "1"))
        self.assertIn("2 missing and 1 bad tiles", result.stderr)


class Failures(Case):
    def test_what_is_no_file_is_not_replaced(self):
        self.assertEqual(run(self.slide(), "--out", self.out).returncode, 0)
        pipe = self.folder / "pipe.html"
        os.mkfifo(pipe)
        self.assertOneLine(run("report", self.out, "--html", pipe), 2, str(pipe), "isn't a regular file")
        self.assertTrue(stat.S_ISFIFO(pipe.stat().st_mode))
        trace = self.folder / "trace.json"
        os.mkfifo(trace)
        self.assertOneLine(run(self.slide(), "--out", self.folder / "more", "--trace", trace), 2, str(trace))
        self.assertTrue(stat.S_ISFIFO(trace.stat().st_mode))
        table = self.folder / "piped/corpus.json"
        table.parent.mkdir()
        os.mkfifo(table)
        self.assertOneLine(run(self.slide(), "--out", table.parent), 2, f"{table}: isn't a regular file")
        self.assertEqual(os.listdir(table.parent), ["corpus.json"])
        self.assertOneLine(run("report", self.out, "--html", self.slide()), 2, "must end in .html")

    def test_output_folder_is_checked_before_anything_starts(self):
        file = self.folder / "file"
        file.touch()
        for out in file, file / "below", "/proc/slidestream":
            self.assertOneLine(run(self.slide(), "--out", out), 2, str(out))

    def test_what_cannot_run_makes_no_folder(self):
        for setting in "pipeline.backend=cuda", "decode.device=gpu":
            self.assertOneLine(run(self.slide(), "--out", self.out, "--set", setting, "--set", "analysis.window=128"), 2)
            self.assertFalse(self.out.exists(), setting)

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_output_folder_without_permission(self):
        self.out.mkdir(mode=0o500)
        self.assertOneLine(run(self.slide(), "--out", self.out), 2, "Permission denied")

    def test_results_that_outgrow_the_limit(self):
        """A stand-in for a full disk that needs no rights: files of limited size."""
        command = [PIPELINE, self.slide(), "--out", self.out, "--set", "analysis.bins=60000"]
        for kib, status in (64, 2), (400, 3):
            limited = ["bash", "-c", f'trap "" XFSZ; ulimit -f {kib}; exec "$@"', "-", *command]
            result = subprocess.run(list(map(str, limited)), capture_output=True, text=True, env=ENVIRONMENT, timeout=time_limit(60))
            self.assertEqual(result.returncode, status, result.stderr)
            self.assertEqual(len(re.findall(r"error: .*run\.sqlite: .*: File too large", result.stderr)), 1, result.stderr)
            self.assertEqual([path.name for path in self.out.iterdir() if path.name.startswith(".")], [])
        self.assertEqual(self.rows(), [])
        result = run(*command[1:])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.rows()[0]["status"], "done")

    def test_other_commands_on_storage_that_is_full(self):
        self.assertEqual(run(self.slide(), "--out", self.out, "--set", "analysis.bins=60000").returncode, 0)
        for words in (["synth", "--out", self.folder / "new.svs", "--size", "1024x1024", "--codec", "none"],
                      ["report", self.out, "--html", self.folder / "new.html"],
                      ["merge", self.out, "--out", self.folder / "joined"]):
            with self.subTest(words[0]):
                limited = ["bash", "-c", 'trap "" XFSZ; ulimit -f 64; exec "$@"', "-", PIPELINE, *words]
                result = subprocess.run(list(map(str, limited)), capture_output=True, text=True, env=ENVIRONMENT, timeout=time_limit(60))
                self.assertOneLine(result, 3, ": File too large")
        self.assertEqual([path for path in self.folder.glob("new*")], [])
        # What is no such place is wrong use.
        self.assertOneLine(run("synth", "--out", self.folder / "none/new.svs", "--size", "256x256"), 2, "No such file")

    def test_a_map_that_cannot_be_written_ends_the_start(self):
        self.out.mkdir()
        (self.out / "maps").mkdir()
        (self.out / "maps/small.npy").mkdir()
        result = run(self.slide(), "--out", self.out, "--maps", "npy")
        self.assertOneLine(result, 2, "maps/small.npy: Is a directory")
        self.assertFalse((self.out / "run.sqlite").exists())


class Signals(Case):
    def start(self, *arguments):
        process = subprocess.Popen([PIPELINE, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env=ENVIRONMENT, start_new_session=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def wait_for_start(self, process):
        """Returns when the run has begun: its messages come after the signal handlers are in place."""
        self.assertRegex(process.stderr.readline(), "transforms: |the run computes on the CPU")

    def test_first_signal_writes_what_is_done(self):
        for number, status in (signal.SIGINT, 130), (signal.SIGTERM, 143):
            out = self.folder / str(status)
            process = self.start(self.slide(), self.large_slide(), "--out", out, *LONG)
            self.wait_for_start(process)
            self.wait_until_done(1, out)
            process.send_signal(number)
            _, stderr = process.communicate(timeout=time_limit(100))
            self.assertEqual(process.returncode, status, stderr)
            self.assertEqual([(pathlib.Path(row["path"]).name, row["status"]) for row in self.rows(out)],
                             [("small.svs", "done")])
            self.assertTrue(json.loads((out / "corpus.json").read_text())["interrupted"])
            self.assertIn("1 of 2 slides done, 0 failed", stderr)
            self.assertEqual([path.name for path in out.iterdir() if path.name.startswith(".")], [])

    def test_stop_leaves_slides_that_cannot_be_finished(self):
        """Strips in flight of a slide that isn't sent to its end are no reason to go on."""
        process = self.start(self.large_slide(), "--out", self.out, "--set", "analysis.stride=8", "--threads", 1)
        self.wait_for_start(process)
        time.sleep(0.5)
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=time_limit(150))
        self.assertEqual(process.returncode, 143)
        self.assertLess(time.monotonic() - begin, 100)
        self.assertEqual(self.rows(), [])

    def test_second_signal_stops_at_once(self):
        # All of the slide is in flight, and takes long: the first signal lets it finish.
        slide = self.slide("dense", "4096x4096", "--distinct", 16)
        process = self.start(slide, "--out", self.out, "--set", "analysis.stride=8", "--set", "pipeline.strip_height=4096",
                             "--threads", 1)
        self.wait_for_start(process)
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.05)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=time_limit(60))
        self.assertIn(process.returncode, (130, 143))
        if process.returncode == 130:
            self.assertFalse((self.out / "slides.csv").exists())
        self.assertLess(time.monotonic() - begin, 30)

    def test_a_reader_that_goes_away_costs_no_results(self):
        process = self.start(self.slide(), "--out", self.out)
        process.stderr.close()
        process.stdout.close()
        self.assertEqual(process.wait(timeout=time_limit(60)), 0)
        self.assertEqual(self.rows()[0]["status"], "done")
        process.stdout = process.stderr = None


class Untrusted(Case):
    """What others may have put where the program looks."""

    def test_no_code_from_the_working_directory(self):
        package = self.folder / "onnxruntime" / "capi"
        package.mkdir(parents=True)
        (package.parent / "__init__.py").touch()
        (package / "libonnxruntime.so.1").write_bytes(b"foreign")
        model = self.folder / "net.onnx"
        model.write_bytes(b"x")
        for environment in {}, {"PYTHONPATH": str(self.folder)}:
            # Without a python3 that has the package nothing is found at all.
            result = subprocess.run([PIPELINE, str(self.slide()), "-s", "operators.run=[\"model\"]", "-s", f"model.file={model}",
                                     "-s", "image.format=ome-tiff", "--out", str(self.out)],
                                    cwd=self.folder, env={**ENVIRONMENT, **environment, "PATH": "/usr/bin:/bin"},
                                    capture_output=True, text=True, timeout=time_limit(60))
            self.assertNotEqual(result.returncode, 0)
            self.assertNotIn(str(self.folder / "onnxruntime"), result.stderr)
            self.assertNotIn("invalid ELF", result.stderr)
            self.assertNotIn("cut off", result.stderr)

    def test_a_progress_file_that_is_none(self):
        slide = self.large_slide()
        process = subprocess.Popen([PIPELINE, str(slide), "--out", str(self.out), "-q", "-t", "1"])
        try:
            self.wait_until((self.out / "progress.json").exists)
        finally:
            process.kill()
            process.wait()
        told = self.out / "progress.json"

        def of_kind(make):
            told.unlink(missing_ok=True)
            make()

        def large():
            with open(told, "wb") as file:
                file.truncate(5_000_000_000)

        for make in (lambda: told.symlink_to("/dev/zero"), lambda: os.mkfifo(told), large):
            of_kind(make)
            result = run("status", self.out, timeout=time_limit(60))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("state ", result.stdout)

    def test_status_of_a_ledger_that_is_still_empty(self):
        self.out.mkdir()
        (self.out / "run.sqlite").touch()
        self.assertOneLine(run("status", self.out), 2, "a start ended before its first slide")
        held = os.open(self.out, os.O_RDONLY)
        self.addCleanup(os.close, held)
        fcntl.flock(held, fcntl.LOCK_EX)
        self.assertOneLine(run("status", self.out), 2, "has only just begun there")

    def test_a_hangup_writes_what_is_done(self):
        # The tests themselves may run where it is ignored, as with nohup.
        process = subprocess.Popen([PIPELINE, str(self.slide()), str(self.large_slide()), "--out", str(self.out), *LONG],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_until_done(1)
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.wait(100), 129)
        self.assertEqual([row["status"] for row in self.rows()], ["done"])
        self.assertTrue((self.out / "corpus.json").exists())

    def test_names_that_are_not_utf8_have_keys_of_their_own(self):
        small = self.slide().read_bytes()
        names = [b"a\xff.svs", b"a\xfe.svs"]
        for name in names:
            with open(os.path.join(os.fsencode(self.folder), name), "wb") as file:
                file.write(small)
        result = subprocess.run([PIPELINE, str(self.folder), "--out", str(self.out), "--maps", "npy", "-q"],
                                capture_output=True, timeout=time_limit(60))
        self.assertEqual(result.returncode, 0, result.stderr)
        pairs = []
        json.loads((self.out / "corpus.json").read_text(encoding="utf-8"),
                   object_pairs_hook=lambda found: pairs.append([key for key, _ in found]) or dict(found))
        keys = next(keys for keys in pairs if any(key.endswith(".svs") for key in keys))
        self.assertEqual(sorted(key[-8:] for key in keys), ["\\xfe.svs", "\\xff.svs"])

    def test_cells_for_spreadsheets(self):
        (self.folder / "=1+1.svs").write_text("no slide")
        (self.folder / "b.svs").write_bytes(self.slide().read_bytes())
        for kind, path in ("plain", "=1+1.svs"), ("spreadsheet", "'=1+1.svs"):
            result = run("=1+1.svs", "b.svs", "--out", self.out, "--fresh", "-s", f"output.csv={kind}", cwd=self.folder)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertEqual([row["path"] for row in self.rows()], [path, "b.svs"])

    def test_info_warns_of_what_may_be_a_patients(self):
        result = run("info", self.slide())
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        named = self.folder / "named.svs"
        content = self.slide().read_bytes()
        self.assertIn(b"|AppMag", content)
        named.write_bytes(content.replace(b"|AppMag", b"|DOB_Pt", 1).replace(b"AppMag", b"DOB_Pt"))
        self.assertIn("may identify a patient: ", run("info", named).stderr)


class Tracing(Case):
    def trace(self, file):
        with open(file, encoding="utf-8") as stream:
            trace = json.load(stream)
        ranges = [event for event in trace["traceEvents"] if event["ph"] == "X"]
        return trace, ranges

    def assertNested(self, ranges):
        """Ranges of a row follow each other or lie within each other."""
        rows = {}
        for event in ranges:
            start = round(event["ts"] * 1000)
            rows.setdefault((event["pid"], event["tid"]), []).append((start, start + round(event["dur"] * 1000)))
        for row in rows.values():
            open_ends = []
            for start, end in sorted(row, key=lambda range: (range[0], -range[1])):
                while open_ends and open_ends[-1] <= start:
                    open_ends.pop()
                self.assertTrue(not open_ends or end <= open_ends[-1])
                open_ends.append(end)

    def test_every_stage_of_every_batch(self):
        small, second = self.slide(), self.slide("second", "1024x2048")
        file = self.out / "trace.json"
        result = run(small, second, "--out", self.out, "--trace", file, "--backend", "cpu", "--set",
                     "pipeline.strip_height=256")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"{file}: ", result.stderr)
        trace, ranges = self.trace(file)
        self.assertEqual(trace["otherData"]["slides"], [str(small), str(second)])
        self.assertEqual(trace["otherData"]["dropped_ranges"], 0)
        self.assertEqual({event["name"] for event in ranges}, {"source", "read", "decode", "carry", "compute", "reduce"})
        batches = {stage: {(event["args"]["slide"], event["args"]["batch"]) for event in ranges
                           if event["name"] == stage and "batch" in event["args"]} for stage in ("source", "read", "reduce")}
        expected = {(0, batch) for batch in range(3)} | {(1, batch) for batch in range(8)}
        self.assertEqual(batches, {"source": expected, "read": expected, "reduce": expected})
        self.assertNested(ranges)
        self.assertTrue(all(event["ts"] >= 0 and event["dur"] >= 0 for event in ranges))
        named = {(event["pid"], event["tid"]) for event in trace["traceEvents"] if event["name"] == "thread_name"}
        self.assertEqual(named, {(event["pid"], event["tid"]) for event in ranges})
        # A stage's busy time is the time of its ranges.
        corpus = json.loads((self.out / "corpus.json").read_text())
        for stage in corpus["stages"]:
            traced = sum(event["dur"] for event in ranges if event["name"] == stage["name"]) / 1e6
            self.assertAlmostEqual(traced, stage["busy_seconds"], delta=1e-4)
        self.assertNotIn("overlap", corpus)
        self.assertEqual([path.name for path in self.out.iterdir() if path.name.startswith(".")], [])

    def test_results_do_not_depend_on_it(self):
        for name, options in ("with", ["--trace", self.folder / "trace.json"]), ("without", []):
            self.assertEqual(run(self.slide(), "--out", self.folder / name, *options).returncode, 0)
        self.assertEqual(*[(self.folder / name / "histograms.npy").read_bytes() for name in ("with", "without")])

    def test_with_nothing_left_to_do_it_says_that_there_is_none(self):
        small = self.slide()
        file = self.folder / "trace.json"
        self.assertEqual(run(small, "--out", self.out).returncode, 0)
        again = run(small, "--out", self.out, "--trace", file)
        self.assertEqual(again.returncode, 0)
        self.assertIn(f"{file}: isn't written, for no slide is left to do", again.stderr)
        self.assertFalse(file.exists())

    def test_what_is_in_the_way_is_told_before_anything_starts(self):
        small = self.slide()
        content = small.read_bytes()
        (self.folder / "folder.json").mkdir()
        for file, message in [(self.folder / "none/trace.json", "none/trace.json: No such file or directory"),
                              (self.folder / "folder.json", "folder.json: Is a directory"),
                              ("", "--trace: must end in .json"), (small, "--trace: must end in .json")]:
            self.assertOneLine(run(small, "--out", self.out, "--trace", file), 2, message)
            self.assertFalse(self.out.exists())
        self.assertEqual(small.read_bytes(), content)

    def test_one_that_outgrows_the_limit_costs_no_results(self):
        slide = self.slide("tall", "4096x32768", "--distinct", 16)
        file = self.folder / "trace.json"
        # Enough for the ledger.
        command = ["bash", "-c", 'trap "" XFSZ; ulimit -f 200; exec "$@"', "-", PIPELINE, slide, "--out", self.out, "--trace",
                   file, "--set", "pipeline.strip_height=256"]
        result = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=ENVIRONMENT, timeout=time_limit(60))
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("trace.json: File too large", result.stderr)
        self.assertEqual(self.rows()[0]["status"], "done")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["out"])

    @unittest.skipUnless("NVTX_LISTENER" in os.environ, "a build without CUDA has no NVTX")
    def test_a_profiler_gets_ranges_with_names_batches_and_slides(self):
        log = self.folder / "nvtx.log"
        environment = {**ENVIRONMENT, "NVTX_INJECTION64_PATH": os.environ["NVTX_LISTENER"], "NVTX_LISTENER_LOG": str(log)}
        arguments = [self.slide(), self.slide("second", "1024x2048"), "--out", self.out, "--backend", "cpu", "--set",
                     "pipeline.strip_height=256"]
        result = subprocess.run([PIPELINE, *map(str, arguments)], env=environment, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = [line.split() for line in log.read_text().splitlines()]
        self.assertEqual({line[1] for line in lines}, {"slidestream"})
        pushed = [tuple(line[2:]) for line in lines if line[0] == "push"]
        self.assertEqual(len(pushed), len(lines) - len(pushed))
        self.assertEqual({name for name, _, _ in pushed}, {"source", "read", "decode", "carry", "compute", "reduce"})
        expected = [("1", str(batch)) for batch in range(3)] + [("2", str(batch)) for batch in range(8)]
        self.assertEqual(sorted(range[1:] for range in pushed if range[0] == "reduce"), sorted(expected))

    def test_an_interrupted_run_has_a_trace(self):
        file = self.folder / "trace.json"
        process = subprocess.Popen([PIPELINE, str(self.large_slide()), "--out", str(self.out), "--trace", str(file), *LONG],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertRegex(process.stderr.readline(), "transforms: |the run computes on the CPU")
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=time_limit(100)), 130)
        self.assertNested(self.trace(file)[1])


class Terminal(Case):
    def on_terminal(self, *arguments, columns=80, **environment):
        """What a terminal of that width receives."""
        try:
            master, slave = pty.openpty()
        except OSError as error:
            self.skipTest(f"no pseudo-terminal: {error}")
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen([PIPELINE, *map(str, arguments)], stdout=slave, stderr=slave, stdin=slave,
                                   env={**ENVIRONMENT, **environment})
        os.close(slave)
        received = bytearray()

        def read():
            with contextlib.suppress(OSError):
                while chunk := os.read(master, 65536):
                    received.extend(chunk)

        reader = threading.Thread(target=read)
        reader.start()
        status = process.wait(timeout=time_limit(250))
        reader.join(timeout=time_limit(60))
        os.close(master)
        return status, received.decode()

    def test_one_live_line_that_fits_and_goes_away(self):
        slide = self.slide("medium", "8192x4096", "--distinct", 16)
        # So many windows on one thread take some seconds.
        status, text = self.on_terminal(slide, self.folder / "missing.svs", "--out", self.out, *LONG, columns=70)
        self.assertEqual(status, 1)
        drawn = [part for part in text.split("\r\x1b[K") if "slides" in part and "\n" not in part]
        self.assertGreater(len(drawn), 1, text)
        for line in drawn:
            self.assertLess(len(re.sub(r"\x1b\[\d*m", "", line)), 70)
        # The last thing drawn is nothing, then the reports follow.
        self.assertIn("\r\x1b[K", text)
        self.assertTrue(text.split("\r\x1b[K")[-1].startswith("\x1b[1mdone"), text[-2000:])
        self.assertIn("missing.svs: ", text)

    def test_json_messages_have_no_live_line(self):
        slide = self.slide("medium", "8192x4096", "--distinct", 16)
        status, text = self.on_terminal(slide, "--out", self.out, "--log-json")
        self.assertEqual(status, 0)
        self.assertNotIn("\r\x1b[K", text)

    def test_no_colour_when_asked(self):
        _, text = self.on_terminal(self.slide(), "--out", self.out, NO_COLOR="1")
        self.assertNotRegex(text, r"\x1b\[\d+m")

    def test_a_dumb_terminal_is_not_drawn_on(self):
        _, text = self.on_terminal(self.slide(), "--out", self.out, TERM="dumb")
        self.assertNotIn("\x1b", text)


class Documents(Case):
    def test_completions_are_valid(self):
        for shell in "bash", "zsh", "fish":
            script = run("completion", shell)
            self.assertEqual(script.returncode, 0, script.stderr)
            self.assertIn("analysis.window=", script.stdout)
            if shutil.which(shell):
                file = self.folder / shell
                file.write_text(script.stdout)
                subprocess.run([shell, "-n", file], check=True)

    def test_bash_completes(self):
        script = self.folder / "complete.bash"
        script.write_text(
            run("completion", "bash").stdout + 'compopt() { :; }\nCOMP_WORDS=(pipeline "$@"); COMP_CWORD=$#\n'
            '_pipeline\nprintf "%s\\n" "${COMPREPLY[@]}"\n')

        def complete(*words):
            return subprocess.run(["bash", script, *words], capture_output=True, text=True, cwd=self.folder,
                                  check=True).stdout.split()

        self.assertEqual(complete("--map"), ["--maps"])
        self.assertEqual(complete("--maps", ""), ["none", "npy", "tiff"])
        self.assertEqual(complete("syn"), ["synth"])
        self.assertEqual(complete("synth", "--codec", "jpeg42"), ["jpeg420", "jpeg422"])
        self.assertEqual(complete("--set", "analysis.str"), ["analysis.stride="])
        self.assertEqual(complete("info", "compl"), ["complete.bash"])

    def test_man_page(self):
        page = run("--help-man")
        self.assertEqual((page.returncode, page.stderr), (0, ""))
        for part in ".SH NAME", ".SH OPTIONS", "\\fB\\-\\-print\\-config\\fR", ".SH EXIT STATUS", "smoothing_radius":
            self.assertIn(part, page.stdout)
        if shutil.which("man"):
            file = self.folder / "pipeline.1"
            file.write_text(page.stdout)
            shown = subprocess.run(["man", "--warnings", "-l", file], capture_output=True, text=True,
                                   env={**ENVIRONMENT, "MANPAGER": "cat"})
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
