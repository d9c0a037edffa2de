"""The version, the Debian package, and what scripts/release.sh and scripts/aarch64.sh refuse: `release_test.py [-q] [CLASS]`.
The environment names the build folder (BUILD) for what looks into one."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ.get("BUILD")
VERSION = re.search(r"^project\(slidestream VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M).group(1)


def run(*command, **options):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, **options)


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


class Version(unittest.TestCase):
    def test_the_changelog_and_the_citation_are_of_this_version(self):
        changelog = text_of("CHANGELOG.md")
        headings = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", changelog, re.M)
        self.assertEqual(len(headings), len(re.findall("^## ", changelog, re.M)))
        released = [heading for heading in headings if heading[0] != "Unreleased"]
        self.assertEqual(released[0][0], VERSION)
        kinds = set(re.findall("^### (.+)$", changelog, re.M))
        self.assertLessEqual(kinds, {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"})
        citation = dict(re.findall(r"^([a-z-]+): (.+)$", text_of("CITATION.cff"), re.M))
        self.assertEqual((citation["version"], citation["date-released"].strip('"')), released[0])

    def test_no_other_file_has_it(self):
        """Copies would be forgotten. Other software's versions have the same form, so only lines that name us count."""
        listed = run("git", "ls-files", "-z", cwd=ROOT)
        if listed.returncode != 0:
            self.skipTest("no git repository")
        for name in filter(None, listed.stdout.split("\0")):
            if name in ("CMakeLists.txt", "CHANGELOG.md", "CITATION.cff") or not (ROOT / name).is_file():
                continue
            lines = (ROOT / name).read_bytes().decode("utf-8", "replace").splitlines()
            found = [line for line in lines if re.search(rf"slidestream\W.*\b{re.escape(VERSION)}\b", line, re.I)]
            self.assertEqual(found, [], name)

    def test_the_python_package_takes_it(self):
        project = text_of("pyproject.toml")
        self.assertIn('dynamic = ["version"]', project)
        pattern = re.search(r"^metadata\.version\.regex = '(.+)'$", project, re.M).group(1)
        self.assertEqual(re.search(pattern, text_of("CMakeLists.txt")).group("value"), VERSION)


class Refusals(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def clone(self):
        """The scripts alone, in a repository of their own."""
        tree = self.folder / "tree"
        shutil.copytree(ROOT / "scripts", tree / "scripts")
        for name in ("CMakeLists.txt", "CHANGELOG.md"):
            shutil.copy(ROOT / name, tree)
        for command in (["init", "-q"], ["add", "."],
                        ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false", "commit", "-qm", "m"]):
            self.assertEqual(run("git", *command, cwd=tree).returncode, 0)
        return tree

    @unittest.skipUnless(shutil.which("git"), "needs git")
    def test_release(self):
        tree = self.clone()
        release = tree / "scripts" / "release.sh"
        for arguments in (["--unknown"], ["a", "b"], ["--python"]):
            self.assertEqual(run(release, *arguments).returncode, 2, arguments)
        empty = self.folder / "empty"
        empty.mkdir()
        for tool in ("bash", "dirname", "git", "env"):
            (empty / tool).symlink_to(shutil.which(tool))
        done = run(release, "--cpu-only", env={**os.environ, "PATH": str(empty)})
        self.assertEqual(done.returncode, 1)
        self.assertIn("mmdebstrap is missing: apt-get install mmdebstrap", done.stderr)
        (tree / "CHANGELOG.md").write_text("changed")
        done = run(release)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, "release.sh: there are changes that are not committed; a release is what is committed\n")

    def test_aarch64(self):
        script = ROOT / "scripts" / "aarch64.sh"
        self.assertEqual(run(script, "--unknown").returncode, 2)
        done = run(script, self.folder / "none")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^aarch64\.sh: \S+/none is missing: .*\n$")


@unittest.skipUnless(BUILD, "needs a build")
class Built(unittest.TestCase):
    def test_the_program_says_it(self):
        self.assertEqual(run(f"{BUILD}/pipeline", "--version").stdout, f"slidestream {VERSION}\n")
        self.assertIn(f'"slidestream {VERSION}"', run(f"{BUILD}/pipeline", "--help-man").stdout.splitlines()[0])

    @unittest.skipUnless(shutil.which("man"), "needs man")
    def test_what_an_installed_program_is_tried_by(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            (place / "bin").mkdir()
            (place / "share" / "man" / "man1").mkdir(parents=True)
            (place / "bin" / "pipeline").symlink_to(pathlib.Path(BUILD).resolve() / "pipeline")
            page = place / "share" / "man" / "man1" / "pipeline.1"
            environment = {**os.environ, "PATH": f"{place}/bin:/usr/bin:/bin"}
            environment.pop("MANPATH", None)

            def tried(version=VERSION):
                return run("sh", ROOT / "scripts" / "try-install.sh", version, cwd=place, env=environment)

            self.assertIn("is \"slidestream", tried("0.0.1").stderr)
            self.assertIn("try-install.sh: there is no man page", tried().stderr)
            page.write_text('.TH PIPELINE 1 "" "slidestream 0.0.1"\n.SH NAME\npipeline \\- of another version\n')
            self.assertIn(f"try-install.sh: the man page isn't of version {VERSION}", tried().stderr)
            page.write_text(run(f"{BUILD}/pipeline", "--help-man").stdout)
            done = tried()
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(entry.name for entry in place.iterdir()), ["bin", "share"])


@unittest.skipUnless(BUILD and all(map(shutil.which, ("cpack", "dpkg-deb", "dpkg-shlibdeps", "file"))), "needs Debian's tools")
class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        # The smallest compression is the quickest; nothing here is about size.
        made = run("cpack", "-G", "DEB", "--config", f"{BUILD}/CPackConfig.cmake", "-B", folder.name,
                   "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=none")
        if made.returncode != 0:
            raise AssertionError(made.stdout[-2000:] + made.stderr)
        (cls.file,) = pathlib.Path(folder.name).glob("*.deb")
        cls.tree = pathlib.Path(folder.name) / "unpacked"
        run("dpkg-deb", "-x", cls.file, cls.tree)

    def field(self, name):
        return run("dpkg-deb", "-f", self.file, name).stdout.strip()

    def test_fields(self):
        cuda = "-DSLIDESTREAM_HAVE_CUDA=1" in (pathlib.Path(BUILD) / "build.ninja").read_text()
        name = "slidestream-cuda" if cuda else "slidestream"
        architecture = run("dpkg", "--print-architecture").stdout.strip()
        self.assertEqual(self.file.name, f"{name}_{VERSION}_{architecture}.deb")
        self.assertEqual((self.field("Package"), self.field("Version")), (name, VERSION))
        self.assertEqual(self.field("Conflicts"), "slidestream" if cuda else "")
        depends = {part.split()[0] for part in self.field("Depends").split(",")}
        for library in ("libc6", "libstdc++6", "libsqlite3-0"):
            self.assertIn(library, depends)
        self.assertTrue(any(part.startswith("libtiff") for part in depends), depends)
        self.assertFalse([part for part in depends if part.endswith("-dev") or "fftw" in part])

    def test_files(self):
        names = {str(file.relative_to(self.tree)) for file in self.tree.rglob("*") if file.is_file()}
        for name in ("usr/bin/pipeline", "usr/bin/slidestream-submit", "usr/share/man/man1/pipeline.1",
                     "usr/share/bash-completion/completions/pipeline", "usr/share/slidestream/configs/demo.toml",
                     "usr/share/zsh/vendor-completions/_pipeline", "usr/share/doc/slidestream/copyright",
                     "usr/share/doc/slidestream/LICENSE", "usr/share/doc/slidestream/CHANGELOG.md",
                     "usr/share/doc/slidestream/licences/libcli11-dev", "usr/share/doc/slidestream/licences/libhdf5-dev"):
            self.assertIn(name, names)
        # Nothing for compilers, of tests, or of Python's package.
        self.assertEqual({name.split("/")[1] for name in names}, {"bin", "share"})
        self.assertFalse([name for name in names if name.endswith((".a", ".so", ".hpp", "_test"))])
        self.assertEqual(len([name for name in names if name.startswith("usr/bin/")]), 2)


if __name__ == "__main__":
    unittest.main()
