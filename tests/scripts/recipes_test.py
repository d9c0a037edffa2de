"""The recipes for workflow engines in docs/clusters.md: `PIPELINE=path recipes_test.py [CLASS ...]`. Snakemake is asked
for where it is: SNAKEMAKE, or on the PATH."""

import csv
import os
import pathlib
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PIPELINE = os.environ["PIPELINE"]
SNAKEMAKE = os.environ.get("SNAKEMAKE") or shutil.which("snakemake")
# What the program ends with, and what an engine is told.
STATUSES = {0: 0, 1: 0, 2: 2, 3: 3, 137: 137, 143: 143}


def block(language):
    """The recipe in that language."""
    found, = re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs/clusters.md").read_text(), re.S)
    return found


def scripts(recipe):
    return [textwrap.dedent(script) for script in re.findall(r'"""\n(.*?)"""', recipe, re.S)]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        self.environment = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"}

    def program(self, text):
        """What `pipeline` is in a recipe."""
        file = self.bin / "pipeline"
        file.write_text("#!/bin/bash\n" + text)
        file.chmod(file.stat().st_mode | stat.S_IXUSR)


class Scripts(Case):
    """What a recipe makes of each status."""

    def assertStatuses(self, script):
        for status, told in STATUSES.items():
            with self.subTest(status):
                self.program(f"exit {status}\n")
                # As both engines run it.
                result = subprocess.run(["bash", "-euo", "pipefail", "-c", script], env=self.environment, check=False)
                self.assertEqual(result.returncode, told)

    def test_nextflow(self):
        found = scripts(block("nextflow"))
        self.assertEqual(len(found), 2)
        for script in found:
            # Groovy's own variables have no backslash in front; nested ones are the merge's folders.
            script = re.sub(r"(?<!\\)\$\{parts.*?\.join\(' '\)\}", "a b", script)
            self.assertStatuses(re.sub(r"(?<!\\)\$\{[^}]*\}", "x", script).replace("\\$", "$"))

    def test_the_number_of_shards_is_made_a_number_before_the_range_is(self):
        # Groovy's `as` binds less than its range: `1..a as int` makes a number of the whole range, which fails.
        casts = re.findall(r"\.\.\s*(\(?)params\.shards as int(\)?)", block("nextflow"))
        self.assertEqual(casts, [("(", ")")])

    def test_snakemake(self):
        found = scripts(block("snakemake"))
        self.assertEqual(len(found), 2)
        for script in found:
            (self.folder / "x").touch()
            script = re.sub(r"\{output(\.mark)?:q\}", str(self.folder / "mark"), script)
            script = re.sub(r"\{[A-Za-z.:]+\}", str(self.folder / "x"), script)
            self.assertStatuses(script.replace("{{", "{").replace("}}", "}"))

    def assertAsked(self, script, words):
        """What the program is asked to do, word by word."""
        asked = self.folder / "asked"
        self.program(f'printf "%s\\n" "$@" >{shlex.quote(str(asked))}\n')
        subprocess.run(["bash", "-euo", "pipefail", "-c", script], env=self.environment, check=True)
        self.assertEqual(asked.read_text().splitlines(), words)

    def test_paths_have_spaces(self):
        out = self.folder / "the results"
        slides = self.folder / "the slides.list"
        slides.write_text("a.svs\n")
        values = {"SLIDES": str(slides), "OUT": str(out), "SHARDS": "2", "wildcards.number": "2",
                  "output": str(self.folder / "the mark"), "output.mark": str(self.folder / "the merge's mark"),
                  "params.slides": str(slides), "params.out": str(out),
                  "params.shards": "2", "number": "2"}

        def in_snakemake(match):
            name, _, quoted = match[1].partition(":")
            if isinstance(values[name], list):
                return shlex.join(values[name])
            return shlex.quote(values[name]) if quoted == "q" else values[name]

        def in_nextflow(script):
            script = re.sub(r"\$\{parts\.collect \{ \"'\$\{it\}'\" \}\.join\(' '\)\}",
                            lambda _: " ".join(f"'{out}/part-{number}'" for number in (1, 2)), script)
            return re.sub(r"(?<!\\)\$\{([^}]*)\}", lambda match: values[match[1]], script).replace("\\$", "$")

        mark = self.folder / "the first mark"
        mark.write_text("a.svs\n")
        values["input.marks"] = str(mark)
        values["params.parts"] = [f"{out}/part-{number}" for number in (1, 2)]
        made = [re.sub(r"\{([A-Za-z.:]+)\}", in_snakemake, script).replace("{{", "{").replace("}}", "}")
                for script in scripts(block("snakemake"))]
        made += [in_nextflow(script) for script in scripts(block("nextflow"))]
        self.assertEqual(len(made), 4)
        for script in made:
            with self.subTest(script):
                self.assertAsked(script, ["merge", f"{out}/part-1", f"{out}/part-2", "--out", str(out)]
                                 if " merge " in script else
                                 [str(slides), "--shard", "2/2", "--out", f"{out}/part-2"])
        for name in "the mark", "the merge's mark":
            self.assertEqual((self.folder / name).read_text(), "a.svs\n")

    def test_a_list_that_changes_while_a_shard_runs_leaves_no_mark(self):
        slides, mark = self.folder / "list", self.folder / "mark"
        script, = (script for script in scripts(block("snakemake")) if "--shard" in script)
        script = script.replace("{SLIDES:q}", str(slides)).replace("{output:q}", str(mark))
        script = re.sub(r"\{[A-Za-z.:]+\}", "x", script)
        slides.write_text("a.svs\n")
        for text, told in ("echo b.svs >>" + str(slides), 3), ("true", 0):
            self.program(text + "\n")
            result = subprocess.run(["bash", "-euo", "pipefail", "-c", script], env=self.environment, capture_output=True, check=False)
            self.assertEqual((result.returncode, mark.exists()), (told, told == 0))
        self.assertEqual(mark.read_text(), "a.svs\nb.svs\n")

    def test_a_mark_of_another_list_is_removed_at_a_start(self):
        recipe = block("snakemake").replace("/data/cohort.list", str(self.folder / "list"))
        recipe = recipe.replace("SHARDS = 16", "SHARDS = 2")
        before_rules = recipe.replace("/data/results", str(self.folder)).split("\nrule ")[0]
        marks = self.folder / "done"
        marks.mkdir()
        contents = {"list": "a.svs\n", "done/1-of-2": "a.svs\n", "done/2-of-2": "b.svs\n", "done/2-of-2.list": "b.svs\n",
                    "done/merge-2": "a.svs\n", "done/1-of-3": "a.svs\n", "done/1-of-12": "a.svs\n", "done/merge-3": "a.svs\n"}
        results = ["run.sqlite", "slides.csv", "part-1/run.sqlite", "part-2/run.sqlite"]
        for name in "part-1", "part-2":
            (self.folder / name).mkdir()
        for name, text in {**contents, **dict.fromkeys(results, "")}.items():
            (self.folder / name).write_text(text)
            os.utime(self.folder / name, (10**9, 10**9))
        exec(compile(before_rules, "Snakefile", "exec"), {})
        # A shard that is at work has the second.
        self.assertEqual(sorted(os.listdir(marks)), ["1-of-2", "2-of-2.list", "merge-2"])

    def test_a_mark_whose_results_are_gone_is_removed_at_a_start(self):
        recipe = block("snakemake").replace("/data/cohort.list", str(self.folder / "list"))
        recipe = recipe.replace("SHARDS = 16", "SHARDS = 2")
        before_rules = recipe.replace("/data/results", str(self.folder)).split("\nrule ")[0]
        marks = ["1-of-2", "2-of-2", "merge-2"]
        # Snakemake makes no mark again that is missing alone: the merge's goes, too.
        results = {"run.sqlite": ["merge-2"], "slides.csv": ["merge-2"], "part-1/run.sqlite": ["1-of-2", "merge-2"],
                   "part-2/run.sqlite": ["2-of-2", "merge-2"]}
        for name in "done", "part-1", "part-2":
            (self.folder / name).mkdir()
        for gone in [None, *results]:
            with self.subTest(gone):
                for name in ["list", *("done/" + mark for mark in marks), *results]:
                    (self.folder / name).write_text("a.svs\n")
                if gone:
                    (self.folder / gone).unlink()
                exec(compile(before_rules, "Snakefile", "exec"), {})
                self.assertEqual(sorted(os.listdir(self.folder / "done")),
                                 [mark for mark in marks if mark not in results.get(gone, [])])

    def test_a_list_that_changes_during_the_merge_is_no_success(self):
        script, = (script for script in scripts(block("snakemake")) if " merge " in script)
        slides, mark, own = (self.folder / name for name in ("list", "mark", "own"))
        script = script.replace("{SLIDES:q}", str(slides)).replace("{input.marks:q}", str(mark))
        script = script.replace("{output.mark:q}", str(own))
        script = re.sub(r"\{[A-Za-z.:]+\}", "x", script).replace("{{", "{").replace("}}", "}")
        for file in slides, mark:
            file.write_text("a.svs\n")
        for text, told in ("true", 0), ("echo b.svs >>" + str(slides), 3):
            self.program(text + "\n")
            result = subprocess.run(["bash", "-euo", "pipefail", "-c", script], env=self.environment, capture_output=True, check=False)
            self.assertEqual((result.returncode, own.exists()), (told, told == 0))
            own.unlink(missing_ok=True)

    def test_only_a_merge_that_misses_something_removes_marks(self):
        script, = (script for script in scripts(block("snakemake")) if " merge " in script)
        marks = [self.folder / "1 of 2", self.folder / "2 of 2"]
        script = script.replace("{input.marks:q}", shlex.join(map(str, marks)))
        script = script.replace("{output.mark:q}", str(self.folder / "own"))
        script = script.replace("{SLIDES:q}", str(self.folder / "list"))
        script = re.sub(r"\{[A-Za-z.:]+\}", "x", script).replace("{{", "{").replace("}}", "}")
        (self.folder / "list").write_text("a.svs\n")
        for status, told in STATUSES.items():
            with self.subTest(status):
                for mark in marks:
                    mark.write_text("a.svs\n")
                self.program(f"exit {status}\n")
                result = subprocess.run(["bash", "-euo", "pipefail", "-c", script], env=self.environment, check=False)
                self.assertEqual(result.returncode, told)
                self.assertEqual([mark.exists() for mark in marks], [status != 3] * 2)

    def test_an_engine_deletes_no_merged_table(self):
        self.assertNotRegex(block("snakemake"), r"(?m)^    output:.*slides\.csv")

    def test_nextflow_knows_the_list_by_its_content(self):
        self.assertRegex(block("nextflow"), r"(?m)^process shard \{\n  cache 'deep'")

    def test_the_list_is_an_input(self):
        for rule in "shard", "merge":
            self.assertRegex(block("snakemake"), rf"(?m)^rule {rule}:\n    input: SLIDES(,|$)")
        inputs = re.search(r"process shard \{.*?  input:\n(.*?)\n  output:", block("nextflow"), re.S)[1]
        self.assertRegex(inputs, r"(?m)^    path list\b")
        self.assertRegex(block("nextflow"), r"(?m)^  shard\(.*, list\)$")

    def test_nextflow_merges_at_every_start(self):
        # A list that grew while shards ran is the same to a merge after them and to the next, which has more to merge.
        self.assertRegex(block("nextflow"), r"(?m)^process merge \{\n  cache false\b")


class Snakemake(Case):
    def setUp(self):
        if not SNAKEMAKE:
            print("SKIPPED: no snakemake")
            self.skipTest("no snakemake")
        super().setUp()
        slides = [self.slide(number) for number in range(5)]
        (self.folder / "4.svs").write_bytes(b"no slide")
        self.list = self.folder / "the cohort.list"
        self.list.write_text("\n".join(slides) + "\n")
        self.out = self.folder / "the results"
        recipe = block("snakemake").replace("/data/cohort.list", str(self.list))
        recipe = recipe.replace("/data/results", str(self.out)).replace("SHARDS = 16", "SHARDS = 3")
        (self.folder / "Snakefile").write_text(recipe)

    def slide(self, number):
        slide = self.folder / f"{number}.svs"
        subprocess.run([PIPELINE, "synth", "--out", slide, "--size", "256x256", "--seed", str(number)], check=True,
                       stdout=subprocess.DEVNULL)
        return str(slide)

    def snakemake(self):
        return subprocess.run([SNAKEMAKE, "--cores", "1", "--nocolor", "--snakefile", self.folder / "Snakefile"], cwd=self.folder,
                              env=self.environment, capture_output=True, text=True, check=False)

    def rows(self):
        with open(self.out / "slides.csv", newline="", encoding="utf-8") as file:
            return [row["status"] for row in csv.DictReader(file)]

    def test_failed_slides_are_no_reason_to_stop(self):
        self.program(f'exec {PIPELINE} "$@"\n')
        result = self.snakemake()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.rows(), ["done"] * 4 + ["failed"])

    def test_a_list_that_has_grown_is_done_again(self):
        self.program(f'exec {PIPELINE} "$@"\n')
        self.assertEqual(self.snakemake().returncode, 0)
        with open(self.list, "a", encoding="utf-8") as file:
            file.write(self.slide(5) + "\n")
        result = self.snakemake()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.rows(), ["done"] * 4 + ["failed", "done"])

    def test_a_list_that_takes_anothers_place_with_its_date_is_done(self):
        self.program(f'exec {PIPELINE} "$@"\n')
        self.assertEqual(self.snakemake().returncode, 0)
        status = self.list.stat()
        with open(self.list, "a", encoding="utf-8") as file:
            file.write(self.slide(5) + "\n")
        os.utime(self.list, ns=(status.st_atime_ns, status.st_mtime_ns))
        result = self.snakemake()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.rows(), ["done"] * 4 + ["failed", "done"])
        # Of the same length, too. What the merged table would lose is for --fresh.
        self.slide(6)
        self.list.write_text(self.list.read_text().replace("5.svs", "6.svs"))
        os.utime(self.list, ns=(status.st_atime_ns, status.st_mtime_ns))
        self.assertNotEqual(self.snakemake().returncode, 0)

    def test_another_number_of_shards_starts_all_of_them(self):
        self.program(f'exec {PIPELINE} "$@"\n')
        self.assertEqual(self.snakemake().returncode, 0)
        snakefile = self.folder / "Snakefile"
        snakefile.write_text(snakefile.read_text().replace("SHARDS = 3", "SHARDS = 2"))
        self.program(f'echo "$*" >>{self.folder}/asked\nexec {PIPELINE} "$@"\n')
        result = self.snakemake()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.rows(), ["done"] * 4 + ["failed"])
        asked = (self.folder / "asked").read_text()
        for shard in "1/2", "2/2":
            self.assertIn(f"--shard {shard} ", asked)
        # The third may have slides that left the list.
        self.assertIn(f"merge {self.out}/part-1 {self.out}/part-2 --out {self.out}\n", asked)

    def test_a_number_of_shards_that_was_there_before_starts_all_of_them(self):
        self.program(f'exec {PIPELINE} "$@"\n')
        snakefile = self.folder / "Snakefile"
        recipe = snakefile.read_text()
        for shards in 3, 2, 3:
            snakefile.write_text(recipe.replace("SHARDS = 3", f"SHARDS = {shards}"))
            result = self.snakemake()
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(self.rows(), ["done"] * 4 + ["failed"])

    def test_a_refused_merge_leaves_the_merged_table(self):
        self.program(f'exec {PIPELINE} "$@"\n')
        self.assertEqual(self.snakemake().returncode, 0)
        with open(self.list, "a", encoding="utf-8") as file:
            file.write(self.slide(5) + "\n")
        self.program(f'if [[ $1 == merge ]]; then exit 2; fi\nexec {PIPELINE} "$@"\n')
        self.assertNotEqual(self.snakemake().returncode, 0)
        self.assertEqual(self.rows(), ["done"] * 4 + ["failed"])

    def test_a_file_that_is_gone_is_made_again(self):
        self.program(f'exec {PIPELINE} "$@"\n')
        self.assertEqual(self.snakemake().returncode, 0)
        missing = self.out / "missing"
        self.program(f'if [[ $1 == merge && ! -e "{missing}" ]]; then touch "{missing}"; exit 3; fi\n'
                     f'echo "$*" >>{self.folder}/asked\nexec {PIPELINE} "$@"\n')
        (self.out / "done/merge-3").unlink()
        self.assertNotEqual(self.snakemake().returncode, 0)
        result = self.snakemake()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((self.folder / "asked").read_text().count("--shard"), 3)

    def test_results_that_are_gone_are_made_again(self):
        self.program(f'echo "$*" >>{self.folder}/asked\nexec {PIPELINE} "$@"\n')
        self.assertEqual(self.snakemake().returncode, 0)
        (self.out / "slides.csv").unlink()
        result = self.snakemake()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.rows(), ["done"] * 4 + ["failed"])
        self.assertEqual((self.folder / "asked").read_text().count("--shard"), 3)
        shutil.rmtree(self.out / "part-2")
        result = self.snakemake()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.rows(), ["done"] * 4 + ["failed"])
        asked = (self.folder / "asked").read_text()
        self.assertEqual((asked.count("--shard"), asked.count("--shard 2/3"), asked.count("merge ")), (4, 2, 3))

    def test_a_shard_that_failed_after_the_list_had_grown_starts_again(self):
        self.program(f'exec {PIPELINE} "$@"\n')
        self.assertEqual(self.snakemake().returncode, 0)
        with open(self.list, "a", encoding="utf-8") as file:
            file.write("".join(self.slide(number) + "\n" for number in range(5, 8)))
        for status in 143, 2:
            with self.subTest(status):
                self.program(f'if [[ $1 != merge && $3 == 2/3 ]]; then exit {status}; fi\nexec {PIPELINE} "$@"\n')
                self.assertNotEqual(self.snakemake().returncode, 0)
        self.program(f'exec {PIPELINE} "$@"\n')
        result = self.snakemake()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.rows(), ["done"] * 4 + ["failed"] + ["done"] * 3)
        result = self.snakemake()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("Nothing to be done", result.stdout + result.stderr)

    def test_a_list_that_grows_while_a_shard_runs_is_gone_through_again(self):
        grown = self.folder / "grown"
        more = "".join(self.slide(number) + "\n" for number in range(5, 8))
        self.program(f'if [[ $1 == merge || -e {grown} ]]; then exec {PIPELINE} "$@"; fi\n'
                     f'{PIPELINE} "$@"; status=$?; printf %s {shlex.quote(more)} >>{shlex.quote(str(self.list))}; touch {grown}\n'
                     'exit $status\n')
        result = self.snakemake()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.rows(), ["done"] * 4 + ["failed"] + ["done"] * 3)

    def test_a_list_that_grows_when_a_mark_appears_is_gone_through_at_the_next_start(self):
        # Between the rule's last comparison and the date that Snakemake gives the mark.
        self.program(f'exec {PIPELINE} "$@"\n')
        more = "".join(self.slide(number) + "\n" for number in range(5, 8))
        grown = self.folder / "grown"
        move = self.bin / "mv"
        move.write_text(f'#!/bin/bash\n{shutil.which("mv")} "$@" || exit\nif [[ ! -e {grown} ]]; then\n  touch {grown}\n'
                        f'  printf %s {shlex.quote(more)} >>{shlex.quote(str(self.list))}\nfi\n')
        move.chmod(move.stat().st_mode | stat.S_IXUSR)
        self.assertNotEqual(self.snakemake().returncode, 0)
        self.assertTrue(grown.exists())
        self.assertFalse((self.out / "slides.csv").exists())
        result = self.snakemake()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.rows(), ["done"] * 4 + ["failed"] + ["done"] * 3)
        result = self.snakemake()
        self.assertIn("Nothing to be done", result.stdout + result.stderr)

    def test_a_run_that_ended_early_is_tried_again_and_never_taken_for_done(self):
        count = self.folder / "count"
        # The first two starts of each shard end early.
        self.program(f'if [[ $1 == merge ]]; then exec {PIPELINE} "$@"; fi\n'
                     f'echo "$3" >>{count}; if (($(grep -c -F -x "$3" {count}) < 3)); then exit 3; fi\nexec {PIPELINE} "$@"\n')
        result = self.snakemake()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(self.rows()), 5)
        self.assertEqual(len(count.read_text().split()), 9)
        shutil.rmtree(self.out)
        self.program(f'if [[ $1 == merge ]]; then exec {PIPELINE} "$@"; fi\nexit 3\n')
        self.assertNotEqual(self.snakemake().returncode, 0)
        self.assertFalse((self.out / "slides.csv").exists())
        self.assertEqual([mark.name for mark in (self.out / "done").glob("*") if mark.suffix != ".list"], [])


if __name__ == "__main__":
    unittest.main()
