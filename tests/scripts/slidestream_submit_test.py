"""scripts/slurm/slidestream-submit: `PIPELINE=path/to/pipeline slidestream_submit_test.py [CLASS ...]`."""

import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "cli"))
from archive_test import results
from program_test import PIPELINE, Case, run
from slurm_cluster import NODE, SlurmCluster, Unavailable

SUBMIT = os.environ.get("SUBMIT", pathlib.Path(__file__).parents[2] / "scripts/slurm/slidestream-submit")
ODD_NAME = "it's $HOME; 100%j \"odd\" & é"


def submit(*arguments, environment=None, **options):
    return subprocess.run([SUBMIT, *map(str, arguments)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **(environment or {})}, **options)


class SubmitCase(Case):
    def setUp(self):
        super().setUp()
        self.odd = self.folder / ODD_NAME
        self.odd.mkdir()
        self.out = self.odd / "results"

    def many_slides(self, count, *options):
        """Copies of a few."""
        folder = self.odd / "slides"
        folder.mkdir()
        for number in range(count):
            source = self.slide(f"{''.join(map(str, options))}-{number % 4}", *options, "--seed", number % 4 + 1)
            shutil.copy(source, folder / f"slide-{number:03}.svs")
        return folder


class Arguments(SubmitCase):
    def test_a_dry_run_prints_both_scripts_and_writes_nothing(self):
        result = submit(self.slide(), "--nodes", 2, "--shards", 5, "--gpus-per-node", 3, "--out", self.out,
                        "--sbatch=--partition=a b", "--dry-run", "--", "--maps", "npy")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for line in ("#SBATCH --array=1-5%2", "#SBATCH --requeue", "#SBATCH --signal=B:TERM@60", "#SBATCH --exclusive",
                     "#SBATCH --gres=gpu:3", "#SBATCH '--partition=a b'"):
            self.assertIn(line + "\n", result.stdout)
        self.assertIn(f"{self.out}/slurm/merge.sh, submitted with sbatch --dependency=afterany:", result.stdout)
        self.assertFalse(self.out.exists())

    def test_wrong_arguments_give_one_line(self):
        good = [self.slide(), "--nodes", 2, "--out", self.out]
        for arguments, part in (
                ([], "required: LIST, --nodes, --out"),
                ([self.slide(), "--out", self.out], "required: --nodes"),
                ([*good, "--nodes", "0"], "expected a number from 1"),
                ([*good, "--shards", "1.5"], "expected a number from 1"),
                ([*good, "--gpus-per-node", "-1"], "--gpus-per-node"),
                ([*good, "--gpus", "1"], "--gpus"),
                ([self.folder / "none.list", *good[1:]], "none.list: no such file or folder"),
                (["-", *good[1:]], "no standard input"),
                ([*good, "--config", self.folder / "none.toml"], "none.toml: No such file"),
                ([*good, "--out", "a\nb"], "control characters"),
                ([*good, "--out", "a\\b"], "backslash"),
                ([*good, "--out", ""], "empty path"),
                ([*good, "--sbatch", "partition=x"], "--sbatch"),
                ([*good, "--sbatch=--array=1-99"], "use --shards"),
                ([*good, "--sbatch=--arr=1-99"], "use --shards"),
                ([*good, "--sbatch=--array", "--sbatch=1-99"], "use --shards"),
                ([*good, "--pipeline", self.folder / "none"], "no such program"),
                ([*good, "--", "--set", "analysis.bin=1"], "analysis.bins"),
                ([*good, "--", "--fresh"], "--fresh can't be"),
                ([*good, "--", "-ox"], "-o can't be"),
                ([*good, "--", "-qcx"], "-c can't be"),
                ([*good, "--", "--shard=1/2"], "--shard can't be")):
            self.assertOneLine(submit(*arguments), 2, "slidestream-submit: ", part)
        self.assertFalse(self.out.exists())

    def test_without_slurm_one_line_says_so(self):
        result = subprocess.run([sys.executable, SUBMIT, str(self.slide()), "--nodes", "1", "--out", str(self.out)],
                                capture_output=True, text=True, timeout=60,
                                env={**os.environ, "PATH": str(self.folder)})
        self.assertOneLine(result, 1, "sbatch is missing")
        # It binds nobody to its number of shards.
        self.assertEqual(submit(self.slide(), "--nodes", 2, "--out", self.out, "--dry-run").returncode, 0)

    def test_other_shards_than_before_are_refused(self):
        self.submit_to_nothing("--nodes", 2)
        self.assertEqual(self.submit_to_nothing("--nodes", 2).returncode, 0)
        self.assertOneLine(self.submit_to_nothing("--nodes", 3), 2, "--shards 2")
        self.assertEqual(self.submit_to_nothing("--nodes", 3, "--shards", 2).returncode, 0)

    def test_tasks_that_are_still_queued_are_not_submitted_twice(self):
        self.assertEqual(self.submit_to_nothing("--nodes", 2, queued="7_1").returncode, 0)
        self.assertOneLine(self.submit_to_nothing("--nodes", 2, queued="7_[1-2%2] x"), 2, "tasks of job 7 are still queued",
                           "scancel 7")
        self.assertEqual(self.submit_to_nothing("--nodes", 2, "--dry-run", queued="7_1").returncode, 0)
        self.assertEqual(self.submit_to_nothing("--nodes", 2).returncode, 0)

    def test_links_and_fifos_in_its_folder_are_refused(self):
        victim = self.folder / "victim"
        victim.write_text("mine\n")
        victim.chmod(0o644)
        own = self.out / "slurm"
        own.mkdir(parents=True)
        for name in ("job", "job.new", "shards.sh", "shards.sh.new", "merge.sh", "merge.sh.new", "merge.log",
                     "shard-2.log", "done-2"):
            for make, kind in (lambda file: file.symlink_to(victim), "a link"), (os.mkfifo, "a FIFO"), \
                              (lambda file: file.symlink_to("/dev/zero"), "a link"):
                make(own / name)
                self.assertOneLine(self.submit_to_nothing("--nodes", 2), 2, f"{own / name}: is {kind}, expected")
                self.assertEqual(os.listdir(own), [name])
                (own / name).unlink()
        own.rmdir()
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        own.symlink_to(elsewhere)
        self.assertOneLine(self.submit_to_nothing("--nodes", 2), 2, f"{own}: is a link, expected a folder")
        self.assertEqual((os.listdir(elsewhere), victim.read_text()), ([], "mine\n"))
        self.assertEqual(victim.stat().st_mode & 0o777, 0o644)

    def test_what_an_ended_start_left_and_what_others_keep_there_is_no_obstacle(self):
        own = self.out / "slurm"
        own.mkdir(parents=True)
        (own / "shards.sh.new").write_text("half")
        (own / "shards.sh.new").chmod(0o400)
        (own / "newest.log").symlink_to("shard-1.log")
        self.assertEqual(self.submit_to_nothing("--nodes", 2).returncode, 0)
        self.assertEqual(sorted(os.listdir(own)), ["job", "merge.sh", "newest.log", "shards.sh"])
        self.assertEqual([(own / name).stat().st_mode & 0o777 for name in ("shards.sh", "merge.sh")], [0o755] * 2)
        self.assertEqual((own / "job").read_text(), "7\n")

    def submit_to_nothing(self, *arguments, queued=""):
        programs = self.folder / "bin"
        programs.mkdir(exist_ok=True)
        for name, text in ("sbatch", "echo 7"), ("squeue", f'[ "$*" = "--noheader --jobs 7" ] && echo "{queued}"'):
            (programs / name).write_text(f"#!/bin/sh\n{text}\n")
            (programs / name).chmod(0o755)
        return submit(self.slide(), "--out", self.out, *arguments,
                      environment={"PATH": f"{programs}:{os.environ['PATH']}"})


class Scripts(SubmitCase):
    """The scripts that are submitted, run without Slurm, with programs that say what they were asked."""

    def program(self, name, text):
        file = self.odd / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/bash\n{text}\n")
        file.chmod(0o755)
        return file

    def scripts(self, *arguments, pipeline=PIPELINE, behind=()):
        """The two of a dry run, as files."""
        printed = submit(*arguments, "--out", self.out, "--pipeline", pipeline, "--dry-run", *behind)
        self.assertEqual(printed.returncode, 0, printed.stderr)
        files = []
        for number, text in enumerate(printed.stdout.split("#!/bin/bash\n")[1:]):
            files.append(self.folder / f"script-{number}.sh")
            files[-1].write_text("#!/bin/bash\n" + text.split(f"\n# {self.out}")[0])
        return files

    def start(self, script, task=1, arguments=()):
        environment = {**os.environ, "PATH": f"{self.odd}/bin:{os.environ['PATH']}", "SLURM_ARRAY_JOB_ID": "7",
                       "SLURM_ARRAY_TASK_ID": str(task), "SLURM_CPUS_PER_TASK": "1"}
        process = subprocess.Popen(["bash", script, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, start_new_session=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def stand_in(self, state):
        """A pipeline that runs until it is told to end, and Slurm in the given state. What happens is in `notes`."""
        self.notes = self.folder / "notes"
        notes = shlex.quote(str(self.notes))
        self.program("scontrol", f'if [[ "$*" == *show* ]]; then echo "JobId=7 JobState={state} X=Y"; '
                                 f"else echo \"scontrol $*\" >>{notes}; fi")
        return self.program("pipeline", f"""[[ "$*" == *--print-config* ]] && exit
trap 'echo TERM >>{notes}; exit 143' TERM
echo begins >>{notes}
for i in {{1..6000}}; do sleep 0.05; done""")

    def wait_for_note(self, text):
        end = time.monotonic() + 100
        while not self.notes.exists() or text not in self.notes.read_text():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def test_shards_and_their_joining(self):
        slides = self.many_slides(5, "384x320", "--tile", 128)
        # By size, so that no shard is empty, wherever the slides lie.
        shard, merge = self.scripts(slides, "--nodes", 2, "--cpus-per-task", 1, behind=["--", "--shard-by", "size"])
        for task in 1, 2:
            process = self.start(shard, task)
            self.assertEqual(process.wait(120), 0, process.stdout.read())
        process = self.start(merge)
        self.assertEqual(process.wait(120), 0, process.stdout.read())
        self.assertEqual(len(self.rows()), 5)
        part = self.out / "part-2"
        part.rename(self.folder / "elsewhere")
        process = self.start(merge)
        # What was joined before isn't given up for less.
        self.assertEqual(process.wait(120), 2)
        text = process.stdout.read()
        self.assertIn("part-2: has no results", text)
        self.assertIn("of an earlier joining that none of the folders has", text)
        self.assertEqual(len(self.rows()), 5)
        for name in "run.sqlite", "slides.csv", "failures.csv", "corpus.json", "histograms.npy":
            (self.out / name).unlink()
        process = self.start(merge)
        self.assertEqual(process.wait(120), 3)
        self.assertIn(" still to do, and ", process.stdout.read())

    def test_a_task_that_ended_before_it_read_the_list_is_missed_by_the_joining(self):
        (self.out / "slurm").mkdir(parents=True)
        self.program("squeue", "true")
        shard, merge = self.scripts(self.many_slides(1, "384x320", "--tile", 128), "--nodes", 1)
        process = self.start(shard)
        self.assertEqual(process.wait(120), 0, process.stdout.read())
        process = self.start(merge, arguments=["7"])
        self.assertEqual(process.wait(120), 0, process.stdout.read())
        # The next submission, whose task can't begin.
        failing = self.program("pipeline", '[[ "$*" == *--print-config* ]] && exit\nexit 2')
        shard, _ = self.scripts(self.odd / "slides", "--nodes", 1, pipeline=failing)
        self.assertEqual(self.start(shard).wait(120), 2)
        _, merge = self.scripts(self.odd / "slides", "--nodes", 1)
        process = self.start(merge, arguments=["8"])
        self.assertEqual(process.wait(120), 3)
        self.assertIn("part-1: its task of job 8 hasn't come to its end", process.stdout.read())

    def test_the_joining_goes_behind_tasks_that_came_back(self):
        _, merge = self.scripts(self.slide(), "--nodes", 1)
        notes = self.folder / "notes"
        self.program("squeue", '[[ "$*" == "--noheader --jobs 7" ]] && echo 7_1')
        self.program("sbatch", f'printf "%s\\n" "$@" >{shlex.quote(str(notes))}')
        process = self.start(merge, arguments=["7"])
        self.assertEqual(process.wait(120), 0)
        self.assertEqual(notes.read_text().splitlines(),
                         ["--dependency=afterany:7", str(self.out / "slurm" / "merge.sh"), "7"])
        self.assertFalse((self.out / "slides.csv").exists())

    def test_a_signal_for_the_shell_is_passed_on_and_the_task_requeued(self):
        shard, _ = self.scripts(self.slide(), "--nodes", 1, pipeline=self.stand_in("RUNNING"))
        process = self.start(shard)
        self.wait_for_note("begins")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(120), 143)
        self.assertEqual(self.notes.read_text(), "begins\nTERM\nscontrol requeue 7_1\n")

    def test_a_signal_before_the_shell_knows_its_child_is_passed_on(self):
        shard, _ = self.scripts(self.slide(), "--nodes", 1, pipeline=self.stand_in("RUNNING"))
        begun = f"until grep -q begins {shlex.quote(str(self.notes))} 2>/dev/null; do sleep 0.02; done"
        text = shard.read_text()
        self.assertEqual(text.count('"${command[@]}" &\n'), 1)
        shard.write_text(text.replace('"${command[@]}" &\n', '"${command[@]}" &\n  kill -TERM $$\n  ' + begun + "\n"))
        process = self.start(shard)
        self.assertEqual(process.wait(120), 143)
        self.assertEqual(self.notes.read_text(), "begins\nTERM\nscontrol requeue 7_1\n")

    def test_a_task_that_slurm_ends_stays_ended(self):
        shard, _ = self.scripts(self.slide(), "--nodes", 1, pipeline=self.stand_in("COMPLETING"))
        process = self.start(shard)
        self.wait_for_note("begins")
        os.killpg(process.pid, signal.SIGTERM)
        self.assertEqual(process.wait(120), 143)
        self.assertEqual(self.notes.read_text(), "begins\nTERM\n")

    def test_a_pipeline_that_is_killed_starts_three_times(self):
        pipeline = self.program("pipeline", '[[ "$*" == *--print-config* ]] && exit\necho once; kill -KILL $$')
        shard, _ = self.scripts(self.slide(), "--nodes", 1, pipeline=pipeline)
        process = self.start(shard)
        self.assertEqual(process.wait(120), 137)
        self.assertEqual(process.stdout.read().count("once\n"), 3)


class Cluster(SubmitCase):
    def setUp(self):
        super().setUp()
        try:
            self.cluster = self.enterContextOf(SlurmCluster(cpus=2))
        except Unavailable as reason:
            print(f"SKIPPED: {reason}")
            self.skipTest(str(reason))

    def until(self, what, holds, seconds=60):
        end = time.monotonic() + seconds
        while not (found := holds()):
            if time.monotonic() > end:
                logs = "".join(f"--- {file.name}\n{file.read_text()}" for file in self.out.glob("slurm/*.log"))
                self.fail(f"not within {seconds} s: {what}\n{self.queue()}\n{logs}\n{self.cluster.logs()}")
            time.sleep(0.05)
        return found

    def queue(self):
        return self.cluster.run("squeue", "--noheader", "--array", "--format=%i %T %r")

    def log(self, name):
        file = self.out / f"slurm/{name}.log"
        return file.read_text() if file.exists() else ""

    def running(self, shard):
        """The number of the shard's process when it has done a slide and has some to do."""
        result = run("status", self.out / f"part-{shard}", "--json")
        status = json.loads(result.stdout) if result.returncode == 0 else {}
        busy = status.get("owner") and status["done"] > 0 and status["running"] + status["pending"] > 1
        return status["owner"]["pid"] if busy else None

    def node(self, state, **reason):
        self.cluster.run("scontrol", "update", f"NodeName={NODE}", f"State={state}",
                         *(f"{name}={text}" for name, text in reason.items()))

    def test_an_array_with_a_killed_a_requeued_and_a_preempted_task_and_a_drained_node(self):
        slides = self.many_slides(24, "2048x1536")
        options = ["--maps", "npy", "--shard-by", "size", "--set", "analysis.stride=36"]
        submitted = submit(slides, "--nodes", 2, "--shards", 4, "--cpus-per-task", 1, "--out", self.out, "--",
                           *options, environment=self.cluster.environment())
        self.assertEqual((submitted.returncode, submitted.stderr), (0, ""))
        array = submitted.stdout.split(" as job ")[1].split(",")[0]
        self.assertIn(f"squeue --array --jobs {array},", submitted.stdout)

        # One is killed, and goes on where it was.
        os.kill(self.until("shard 1 runs", lambda: self.running(1)), signal.SIGKILL)
        # One is put back into the queue by an administrator.
        self.until("shard 2 runs", lambda: self.running(2))
        self.cluster.run("scontrol", "requeue", f"{array}_2")
        # The node is drained: what runs ends well, what waits goes on waiting.
        self.node("DRAIN", Reason="test")
        self.until("the node is drained", lambda: self.cluster.node_state() == "drained")
        self.assertNotIn("RUNNING", self.queue())
        time.sleep(3)
        self.assertIn(f"{array}_2 PENDING", self.queue())
        self.assertIn(f"{array}_4 PENDING", self.queue())
        self.assertFalse((self.out / "slides.csv").exists())
        self.node("RESUME")
        # One is told that its time ends, as before a time limit or a preemption.
        self.until("shard 4 runs", lambda: self.running(4))
        self.cluster.run("scancel", "--batch", "--signal=TERM", f"{array}_4")
        self.until("shard 4 goes on later", lambda: "goes on later" in self.log("shard-4"))

        self.until("all jobs have ended", lambda: self.queue() == "")
        for shard, parts in ((1, ["ended with status 137 at start 1", "skipped as done: "]),
                             (2, ["(1 times requeued)"]),
                             (3, []),
                             (4, ["asked to end: writes", "(1 times requeued)"])):
            for part in [*parts, "ends with status 0"]:
                self.assertIn(part, self.log(f"shard-{shard}"))
        self.assertIn("done     24 slides", self.log("merge"))

        whole = self.folder / "whole"
        self.assertEqual(run(slides, "--out", whole, *options[:2], *options[4:]).returncode, 0)
        merged = {name: content for name, content in results(self.out).items() if not name.startswith("slurm/")}
        alone = results(whole)
        self.assertEqual(merged.keys(), alone.keys())
        for name, content in alone.items():
            self.assertEqual(merged[name], content, name)


if __name__ == "__main__":
    unittest.main()
