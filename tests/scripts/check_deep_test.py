"""scripts/check-deep.sh and its likes with a made-up repository, ninja and ctest."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
# What a build has: a program with a helper of its own, and a script.
NINJA = r"""#!/bin/bash
case "$*" in
  *"-t deps") printf 'a.o: #deps 2, deps mtime 1 (VALID)\n    ../../tests/a/a_test.cpp\n    ../../tests/a/help.hpp\n\n' ;;
  *"-t targets all") echo 'tests/a/a_test: CXX_EXECUTABLE_LINKER__a_test_Release' ;;
  *) echo "ninja $*" >>ninja.log; [[ ! -e unbuildable ]] ;;
esac
"""
CTEST = r"""#!/bin/bash
if [[ "$*" != *--show-only* ]]; then
  printf '%s\n' "$@" >ctest.log
  mkdir -p build/release/Testing/Temporary
  if [[ "$*" == *' -L system '* ]]; then printf '%s\n' "$TOLD"; why=server; else why=network; fi
  printf 'SKIPPED: no %s\n' "$why" "$why" >build/release/Testing/Temporary/LastTest.log
  exit
fi
printf '{"tests": [{"name": "a_test:one", "command": ["%s/build/release/tests/a/a_test", "--test-case=one"]}, ' "$PWD"
printf '{"name": "package", "command": ["python3", "-B", "%s/tests/package"]}, ' "$PWD"
printf '{"name": "b: (Part)", "command": ["python3", "-B", "%s/tests/b/b_test.py"]}, {"name": "NOT_BUILT"}]}' "$PWD"
"""


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve() / "tree"
        self.write("../bin/ninja", NINJA)
        self.write("../bin/ctest", CTEST)
        self.write("../bin/cmake", "#!/bin/sh\n")
        for name in ("check-deep.sh", "check.sh", "loaded.sh", "fuzz.sh", "coverage.sh", "building.sh", "changed-tests.py",
                     "compile_commands.py", "lint-flags.py"):
            self.write("scripts/" + name, (SCRIPTS / name).read_text())
        for name in ("a/a_test.cpp", "a/help.hpp", "a/CMakeLists.txt", "b/b_test.py", "b/CMakeLists.txt", "support/main.cpp"):
            self.write("tests/" + name)
        # As the real one: a module that a script imports is compiled where Python may write.
        self.write(".gitignore", "/build/\n*.log\n/unbuildable\n__pycache__/\n")
        link = "build tests/a/a_test | tests.cmake: CXX_EXECUTABLE_LINKER__a_test_Release a.o | lib.a\n"
        for build in ("release", "asan"):
            self.write(f"build/{build}/build.ninja", link)
        self.git("init", "-q", "-b", "main")
        self.commit()

    def write(self, name, text="\n"):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def git(self, *arguments):
        subprocess.run(["git", "-C", self.folder, "-c", "user.name=n", "-c", "user.email=e", *arguments], check=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "m", "--allow-empty")

    def run_script(self, name, *arguments, **environment):
        kept = {name: value for name, value in os.environ.items() if name != "BASE" and not name.startswith("GIT_")}
        kept["PATH"] = f"{self.folder.parent}/bin:{kept['PATH']}"
        return subprocess.run([self.folder / "scripts" / name, *arguments], check=False, capture_output=True, text=True,
                              env=kept | environment)

    def chosen(self):
        """What the tests that ran were selected by."""
        return (self.folder / "ctest.log").read_text().splitlines()[-1]


class Changed(Case):
    def passes(self, **environment):
        done = self.run_script("check-deep.sh", "changed", **environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def refused(self, why, **environment):
        done = self.run_script("check-deep.sh", "changed", **environment)
        self.assertIn(why, done.stderr)
        self.assertNotEqual(done.returncode, 0)
        self.assertFalse((self.folder / "ctest.log").exists())

    def test_programs_and_scripts_that_have_a_changed_file_run_again(self):
        self.git("switch", "-q", "-c", "branch")
        self.write("tests/a/help.hpp", "changed\n")
        self.write("tests/b/b_test.py", "changed\n")
        self.write("tests/package/test_c.py", "changed\n")
        self.write("tests/support/main.cpp", "changed\n")
        self.write("tests/a/data/a.bin", "changed\n")
        for name in "tests/a/CMakeLists.txt", "src/CMakeLists.txt", "cmake/Targets.cmake", "src/a.cpp":
            self.write(name, "changed\n")
        self.git("rm", "-q", "tests/b/CMakeLists.txt")
        self.commit()
        done = self.passes()
        self.assertEqual(self.chosen(), r"^(a_test:|b: \(Part\)$|package$)")
        self.assertIn("Left out, as no test is theirs alone: cmake/Targets.cmake src/CMakeLists.txt tests/a/CMakeLists.txt "
                      "tests/a/data/a.bin tests/support/main.cpp\n", done.stderr)
        self.assertIn("until-fail:20", (self.folder / "ctest.log").read_text())
        head = subprocess.run(["git", "-C", self.folder, "rev-parse", "--short", "HEAD"], check=True, capture_output=True,
                              text=True).stdout.strip()
        self.assertRegex(done.stdout, f"\nPart changed passed at {head} in [0-9]+ s\\.\n$")
        self.assertEqual((self.folder / "ninja.log").read_text().count("ninja -C build/"), 2)

    def test_where_main_is_checked_the_commit_before_counts(self):
        self.write("tests/b/b_test.py", "changed\n")
        self.commit()
        self.passes()
        self.assertEqual(self.chosen(), r"^(b: \(Part\)$)")

    def test_uncommitted_changes_are_told(self):
        self.write("tests/a/a_test.cpp", "changed\n")
        self.assertRegex(self.passes().stdout, r"passed at \w+ with uncommitted changes in")
        self.assertEqual(self.chosen(), "^(a_test:)")

    def test_a_commit_that_is_not_known_is_a_failure(self):
        self.refused("git knows no commit gone", BASE="gone")
        self.git("branch", "-q", "-m", "other")
        self.refused("git knows no commit main: set BASE")

    def test_commits_that_have_nothing_in_common_are_a_failure(self):
        self.git("switch", "-q", "--orphan", "other")
        self.git("checkout", "-q", "main", "--", ".")
        self.write("tests/a/other.cpp")
        self.commit()
        self.refused("have no commit in common: set BASE")

    def test_nothing_to_count_from_is_a_failure(self):
        self.refused("set BASE to an earlier commit")
        self.refused("set BASE to an earlier commit", BASE="HEAD")

    def test_without_git_nothing_passes(self):
        shutil.rmtree(self.folder / ".git")
        self.refused("git can't say which commit this is", GIT_CEILING_DIRECTORIES=str(self.folder.parent))


# Says which sources it looks at, and with which flags where the build has some.
TIDY = r"""#!/usr/bin/env python3
import json, os, sys
source, build = sys.argv[-1], sys.argv[sys.argv.index("-p") + 1] + "/compile_commands.json"
entries = json.load(open(build)) if os.path.exists(build) else []
flags = [" ".join(entry["arguments"]) for entry in entries if "arguments" in entry and entry["file"] == os.path.abspath(source)]
with open("tidy.log", "a") as log: print(source, *flags, sep=" | ", file=log)
"""


class Lint(Case):
    SOURCES = "src/a.cpp", "src/b.cpp", "cuda/c.cpp", "cuda/d.cpp", "python/src/e.cpp", "bench/f.cpp", "examples/g.cpp"
    TOGETHER = "build/asan/src/unity_0_cxx.cxx"

    def looked_at(self, *entries):
        """What clang-tidy got, where the release build compiles `entries`: source and flags."""
        self.write("../bin/clang-tidy", TIDY)
        for name in (*self.SOURCES, "src/together.cpp"):
            self.write(name)
        self.commit()
        self.write(self.TOGETHER, f'#include "{self.folder}/src/together.cpp"\n')
        (self.folder / "build/release/compile_commands.json").write_text(json.dumps([
            {"directory": str(self.folder / "build/release"), "file": str(self.folder / file), "command": command}
            for file, command in entries]))
        self.done = self.run_script("check-deep.sh", "lint")
        self.assertEqual(self.done.returncode, 0, self.done.stdout + self.done.stderr)
        return dict(line.partition(" | ")[::2] for line in sorted((self.folder / "tidy.log").read_text().splitlines()))

    def test_sources_have_their_own_flags_without_precompiled_headers(self):
        pch = "-fpch-preprocess -Winvalid-pch -include /b/cmake_pch.hxx"
        unity = "build/release/cuda/unity_0_cxx.cxx"
        self.write(unity, "".join(f'#include "{self.folder}/cuda/{name}.cpp"\n' for name in "cd"))
        looked = self.looked_at(
            ("src/a.cpp", f"/usr/bin/c++ -DA='\"a b\"' -I/i -isystem /s -O3 -std=c++20 {pch} -o a.o -c src/a.cpp"),
            (unity, f"/usr/bin/c++ -DCUDA=1 -std=c++20 {pch} -o u.o -c {unity}"), ("cuda/k.cu", "nvcc -x cu -c cuda/k.cu"),
            ("python/src/e.cpp", "/usr/bin/c++ -std=gnu++20 -isystem /nanobind -o e.o -c e.cpp"),
            ("python/src/e.cpp", "/usr/bin/c++ -DMADE_UP -o made_up/e.o -c e.cpp"))
        self.assertEqual(set(looked), {*self.SOURCES, self.TOGETHER})
        for name, flags in (("src/a.cpp", '-DA="a b" -I/i -isystem /s -std=c++20'), ("cuda/c.cpp", "-DCUDA=1 -std=c++20"),
                            ("cuda/d.cpp", "-DCUDA=1 -std=c++20"), ("python/src/e.cpp", "-std=gnu++20 -isystem /nanobind")):
            self.assertEqual(looked[name], f"clang++ {flags} -c {self.folder / name}")
        self.assertEqual(looked["src/b.cpp"], "")
        self.assertNotIn("SKIPPED", self.done.stdout)

    def test_parts_that_the_build_has_not_are_left_out(self):
        looked = self.looked_at(("cuda/c.cpp", "/usr/bin/c++ -c cuda/c.cpp"))
        self.assertEqual(set(looked), {*self.SOURCES, self.TOGETHER} - {"cuda/d.cpp", "python/src/e.cpp"})
        self.assertIn("\nSKIPPED: 2 sources of cuda and python, which the release build has not\n", self.done.stdout)


class Arguments(Case):
    def test_what_does_not_build_does_not_pass(self):
        self.write("unbuildable")
        done = self.run_script("check-deep.sh", "changed")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"The deep check failed at \w+, which doesn't build")
        self.assertNotIn("passed", done.stdout)

    def test_parts_have_exact_names(self):
        for name in "slow long", "", "chang.d", "slow\nlong":
            done = self.run_script("check-deep.sh", name)
            self.assertEqual(done.returncode, 2, name)
            self.assertIn("no part is called", done.stderr)

    def test_a_folder_without_programs_is_named(self):
        done = self.run_script("check.sh", "a", "b")
        self.assertEqual(done.returncode, 2)
        self.assertIn("tests/b has no test program", done.stderr)

    def test_other_arguments_are_refused(self):
        for name, *arguments in (["loaded.sh"], ["loaded.sh", "0"], ["loaded.sh", "1001"], ["loaded.sh", "9" * 20], ["loaded.sh", "2", "--at-once", "0"],
                                 ["fuzz.sh", "30", "more"], ["fuzz.sh", "-q"], ["coverage.sh", "--quick"]):
            done = self.run_script(name, *arguments)
            self.assertEqual(done.returncode, 2, [name, *arguments])
            self.assertIn("usage: ", done.stderr)


class Loaded(Case):
    def test_unsteady_tests_are_summed_up(self):
        self.write("scripts/run-cases.py", "#!/bin/sh\n")
        told = ["1/3 Test  #7: dzi: Page ..........***Failed    0.10 sec", "    Test  #7: dzi: Page ..........   Passed    0.10 sec",
                "2/3 Test  #8: disks ..............***Skipped   0.10 sec", "3/3 Test  #9: kills ..............   Passed    0.10 sec",
                "1/1 Test #10: storage ............Subprocess aborted***Exception:   0.20 sec"]
        done = self.run_script("loaded.sh", "2", TOLD="\n".join(told))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, "failed once and then passed:\n +2 storage\n +2 dzi: Page\n2 passes, ")
        # Those of either call of CTest.
        for why in "network", "server":
            self.assertEqual(done.stdout.count(f"SKIPPED: no {why}\n"), 2)

    def test_crashes_count_as_unsteady_and_among_the_slowest(self):
        self.write("scripts/run-cases.py", "#!/bin/sh\n")
        told = ["1/3 Test  #7: a ...................Subprocess aborted***Exception:   0.30 sec",
                "2/3 Test  #8: a name of words .....***Exception: SegFault130.25 sec",
                "3/3 Test  #9: dzi: Page ...........***Timeout  40.00 sec"]
        done = self.run_script("loaded.sh", "1", TOLD="\n".join(told))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("Slowest:\n  130.25 s  a name of words\n  40.00 s  dzi: Page\n  0.30 s  a\n"
                      "Unsteady: failed once and then passed:\na\na name of words\ndzi: Page\n", done.stdout)


    def test_runs_at_once_are_told_one_by_one(self):
        self.write("../bin/taskset", '#!/bin/sh\nshift 2\nexec "$@"\n')
        self.write("../bin/unshare", '#!/bin/sh\nshift 3\nexec "$@"\n')
        self.write("../bin/python3", "#!/bin/sh\nprintf '0\\n1\\n'\n")
        for name in "mount", "ip", "mkdir":
            self.write("../bin/" + name, "#!/bin/sh\n")
        # The folders of namespaces aren't made here, but the script's own.
        (self.folder / "build/release/Testing/Temporary").mkdir(parents=True)
        for status, word, failed in (0, "passed", 0), (1, "FAILED", 1):
            self.write("scripts/run-cases.py", f"#!/bin/sh\nexit {status}\n")
            done = self.run_script("loaded.sh", "2", "--at-once", "1", TOLD="", TMPDIR=str(self.folder.parent))
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
            self.assertIn(f"Run 1 of 1 {word}: ", done.stdout)
            self.assertRegex(done.stdout, rf"2 passes in 1 runs at once, in \d+ s: {failed} runs failed\.\n$")
        done = self.run_script("loaded.sh", "2", "--at-once", "2")
        self.assertEqual(done.returncode, 2)
        self.assertIn("2 runs at once need 4 processors, of 2, and a pass each", done.stderr)

    def test_what_fails_and_is_then_skipped_is_a_failure(self):
        self.write("scripts/run-cases.py", "#!/bin/sh\n")
        told = ["1/2 Test  #7: dzi: Page ..........***Failed    0.10 sec", "    Test  #7: dzi: Page ..........***Skipped   0.10 sec",
                "2/2 Test  #8: disks ..............***Skipped   0.10 sec"]
        done = self.run_script("loaded.sh", "1", TOLD="\n".join(told))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertTrue(done.stdout.endswith("Failed once and was skipped then:\ndzi: Page\n"), done.stdout)


class Coverage(Case):
    def test_all_tests_run_where_that_is_asked_for(self):
        for name in "llvm-profdata", "llvm-cov":
            self.write("../bin/" + name, "#!/bin/sh\n")
        self.write("scripts/coverage_table.py", "#!/bin/sh\necho the table\n")
        for arguments, left_out in ([], True), (["--all"], False):
            (self.folder / "build/coverage").mkdir(exist_ok=True)
            done = self.run_script("coverage.sh", *arguments)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("the table\n", done.stdout)
            self.assertEqual("slow|system" in (self.folder / "ctest.log").read_text().splitlines(), left_out)


class Daily(Case):
    """check.sh, which runs a_test."""

    def told(self, *tests):
        lines = [f"{i}/{len(tests)} Test  #{i}: {name} ....   Passed    {seconds} sec" for i, (name, seconds) in enumerate(tests, 1)]
        self.write("../bin/ctest", "#!/bin/sh\ncat <<'END'\n" + "\n".join(lines) + "\nEND\n")
        self.write("scripts/install-deps.sh", "#!/bin/sh\n")
        done = self.run_script("check.sh", "a")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return [line for line in done.stdout.splitlines() if line.startswith("Took")]

    def test_long_cases_without_that_name_are_told_in_one_line(self):
        self.assertEqual(self.told(("a_test:Many turns, (long) ones", "2.01"), ("a_test:A page", "2.00"),
                                   ("a_test:A storm (long)", "130.25"), ("a: a script", "9.00"), ("a_test:All of a", "10.50")),
                         ["Took more than 2 s: shorten them, or end their names in (long): "
                          "a_test:Many turns, (long) ones (2.01 s), a_test:All of a (10.50 s)"])

    def test_where_none_is_long_nothing_is_said(self):
        self.assertEqual(self.told(("a_test:A page", "0.10"), ("a_test:A storm (long)", "3.00")), [])


# Networks have no packages: two tests are skipped.
SKIPPING_CTEST = r"""#!/bin/bash
mkdir -p build/release/Testing/Temporary
echo 'SKIPPED: needs the package onnx' >build/release/Testing/Temporary/LastTest.log
echo '1/3 Test  #1: dzi: Page .....................   Passed    0.10 sec'
if [[ "$*" != *' -L system '* ]]; then
  for test in 'models: Images' 'volumes: Same'; do echo "2/3 Test  #2: $test ................***Skipped   0.01 sec"; done
fi
echo '100% tests passed, 0 tests failed out of 1'
"""
# Has no package, and makes environments whose pip finds no server.
PYTHON = r"""#!/bin/bash
case "$*" in
  *"-m venv"*)
    folder="${@: -1}" && mkdir -p "$folder/bin"
    printf '#!/bin/sh\necho "$@" >>"$PIP_LOG"\nexit 1\n' >"$folder/bin/pip"
    chmod +x "$folder/bin/pip"
    ;;
  *"import "*) exit 1 ;;
esac
"""
# Of examples and what is installed, each a script that prints what test.sh looks for.
CMAKE = r"""#!/bin/bash
script() { mkdir -p "$(dirname "$1")" && printf '#!/bin/sh\necho "%s"\n' "$2" >"$1" && chmod +x "$1"; }
case "$*" in
  "--install "*) script build/prefix/bin/pipeline done ;;
  *build/example/strip_means*) script build/example/strip_means/strip_means '35 windows, mean 1' ;;
  *build/example/own_operator*) script build/example/own_operator/own_operator 'images/slide.contrast.ome.tif: 1' ;;
esac
"""
PACKAGES = "onnx onnxruntime h5py pillow opencv-python-headless openslide-bin openslide-python wsidicomizer nibabel"


class LeftOut(Case):
    def setUp(self):
        super().setUp()
        self.write("../bin/ctest", SKIPPING_CTEST)
        self.write("../bin/cmake", CMAKE)
        self.write("../bin/python3", PYTHON)
        self.write("../bin/dpkg-query", "#!/bin/sh\necho -n installed\n")
        for name in "clang-format", "apt-get":
            self.write("../bin/" + name, "#!/bin/sh\n")
        for name in "install-deps.sh", "test.sh":
            self.write("scripts/" + name, (SCRIPTS / name).read_text())
        self.write("scripts/run-cases.py", "#!/bin/sh\n")
        self.write("scripts/check-includes.py", "#!/bin/sh\n")
        self.write(".ci/run", (SCRIPTS.parent / ".ci" / "run").read_text())
        # The Python package is built.
        self.write("build/python-env/bin/python", "#!/bin/sh\n")
        self.pip_log = self.folder.parent / "pip.log"
        self.commit()

    def last_line(self, name, *arguments):
        home = str(self.folder.parent / "home")
        done = self.run_script(name, *arguments, HOME=home, XDG_CACHE_HOME=home, PIP_LOG=str(self.pip_log))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.splitlines()[-1]

    def with_packages(self, *left_out):
        """build/python has the modules of all packages but of those that are `left_out`."""
        self.write("build/python/bin/python3", "#!/bin/bash\n[[ \"$2\" == *find_spec* ]] || exit 1\nshift 2\n"
                   + "".join(f'set -- "${{@/#{module}}}"\n' for module in left_out) + 'echo "$@"\n')

    def test_a_failed_installation_of_packages_is_in_the_verdict(self):
        told = f"Left out: 2 skipped tests. Packages of PyPI that are missing: {PACKAGES}."
        self.assertEqual(self.last_line("../.ci/run"), told)
        self.assertIn("install -q --disable-pip-version-check onnx==", self.pip_log.read_text())
        self.pip_log.unlink()
        self.assertEqual(self.last_line("test.sh"), told)
        self.assertTrue(self.pip_log.exists())
        self.assertEqual(self.last_line("check.sh", "a"), told)

    def test_the_packages_that_are_missing_are_named(self):
        self.with_packages("PIL", "nibabel")
        self.assertEqual(self.last_line("check.sh", "a"),
                         "Left out: 2 skipped tests. Packages of PyPI that are missing: pillow nibabel.")

    def test_tests_that_are_skipped_for_other_reasons_are_counted(self):
        self.with_packages()
        self.assertEqual(self.last_line("check.sh", "a"), "Left out: 2 skipped tests, for the reasons above.")

    def test_without_nanobind_the_tests_of_the_python_package_are_told(self):
        self.with_packages()
        self.write("build/python-env/bin/python", "#!/bin/sh\nexit 1\n")
        self.write("build/release-tests.log")
        done = subprocess.run(["bash", "-c", "source scripts/building.sh; left_out release-tests"], cwd=self.folder, check=True,
                              capture_output=True, text=True)
        self.assertEqual(done.stdout, "Left out: 0 skipped tests and the tests of the Python package. "
                                      "Packages of PyPI that are missing: nanobind scikit-build-core.\n")

    def test_where_all_tests_ran_nothing_is_said(self):
        self.write("../bin/ctest", "#!/bin/sh\necho '100% tests passed, 0 tests failed out of 1'\n")
        self.assertEqual(self.last_line("check.sh", "a"), "Slowest:")


class Run(Case):
    def test_the_time_that_packages_take_is_told(self):
        self.write(".ci/run", (SCRIPTS.parent / ".ci" / "run").read_text())
        self.write("scripts/install-deps.sh", "#!/bin/sh\n")
        self.write("scripts/check-includes.py", "#!/bin/sh\nexit 1\n")
        self.write("../bin/clang-format", "#!/bin/sh\n")
        done = subprocess.run([self.folder / ".ci" / "run"], check=False, capture_output=True, text=True,
                              env=os.environ | {"PATH": f"{self.folder.parent}/bin:{os.environ['PATH']}"})
        self.assertRegex(done.stdout, r"^\n== Packages \(\d+ s so far\)\n-- Packages: \d+ s\n")

    def test_what_fails_leaves_nothing_running(self):
        self.write(".ci/run", (SCRIPTS.parent / ".ci" / "run").read_text())
        self.write("a.cpp")
        self.git("add", "a.cpp")
        self.write("scripts/install-deps.sh", "#!/bin/sh\n")
        self.write("../bin/clang-format", "#!/bin/sh\nexit 1\n")
        self.write("../bin/cmake", "#!/bin/sh\nsleep 1\ntouch configured.log\n")
        # A pipe would be waited for.
        with (self.folder / "out.log").open("w") as out:
            done = subprocess.run([self.folder / ".ci" / "run"], check=False, stdout=out, stderr=out,
                                  env=os.environ | {"PATH": f"{self.folder.parent}/bin:{os.environ['PATH']}"})
        self.assertNotEqual(done.returncode, 0)
        self.assertTrue((self.folder / "configured.log").exists())


if __name__ == "__main__":
    unittest.main()
