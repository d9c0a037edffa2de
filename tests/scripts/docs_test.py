"""scripts/docs.sh: every page is in the navigation, all links of the built site resolve, and it loads nothing from elsewhere.

The site is built where doxygen and the packages of build/docs-env are there, which docs.sh gets from PyPI; else skipped."""

import html.parser
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
SITE = ROOT / "docs" / "site"
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class Page(html.parser.HTMLParser):
    """The links of a page, what it loads, and the places that links can lead to."""

    def __init__(self, file):
        super().__init__()
        self.links, self.loads, self.places = [], [], set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.places.update(filter(None, (attributes.get("id"), attributes.get("name"))))
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        if attributes.get(LOADS.get(tag)):
            self.loads.append(attributes[LOADS[tag]])


def is_elsewhere(link):
    return bool(urllib.parse.urlsplit(link).netloc)


def broken_links(site):
    pages = {file: Page(file) for file in sorted(site.rglob("*.html"))}
    for file, page in pages.items():
        for link in page.links + page.loads:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else file
            place = urllib.parse.unquote(parts.fragment)
            if not target.exists():
                yield f"{file.relative_to(site)}: {link} isn't there"
            elif place and target in pages and place not in pages[target].places:
                yield f"{file.relative_to(site)}: {link} has no such place"


def loads_from_elsewhere(site):
    for file in sorted(site.rglob("*.html")):
        yield from (f"{file.relative_to(site)}: {load}" for load in Page(file).loads if is_elsewhere(load))
    for file in sorted(site.rglob("*.css")):
        for load in re.findall(r"""(?:url\(|@import)\s*["']?([^"')\s]+)""", file.read_text(encoding="utf-8")):
            if is_elsewhere(load):
                yield f"{file.relative_to(site)}: {load}"


class Checks(unittest.TestCase):
    """The checks find what they are for."""

    def found(self, text, check, name="index.html"):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / name).write_text(text, encoding="utf-8")
            return list(check(pathlib.Path(folder).resolve()))

    def test_broken_links(self):
        self.assertEqual(self.found('<a href="index.html#b"><p id="b"><a href="#b"><a href="https://a.b">', broken_links), [])
        self.assertEqual(len(self.found('<a href="gone.html">', broken_links)), 1)
        self.assertEqual(len(self.found('<a href="#gone">', broken_links)), 1)
        self.assertEqual(len(self.found('<img src="gone.png">', broken_links)), 1)

    def test_loads_from_elsewhere(self):
        self.assertEqual(self.found('<script src="a.js"></script><a href="https://a.b">', loads_from_elsewhere), [])
        self.assertEqual(len(self.found('<script src="https://cdn.b/a.js"></script>', loads_from_elsewhere)), 1)
        self.assertEqual(len(self.found('<link href="//cdn.b/a.css">', loads_from_elsewhere)), 1)
        self.assertEqual(len(self.found('p { src: url("https://cdn.b/a.woff") }', loads_from_elsewhere, "a.css")), 1)


class Navigation(unittest.TestCase):
    def test_every_page_is_in_it(self):
        named = set(re.findall(r": ((?:docs/)?[\w-]+\.md)$", (SITE / "mkdocs.yml").read_text(encoding="utf-8"), re.M))
        pages = {f"docs/{file.name}" for file in (ROOT / "docs").glob("*.md")}
        self.assertEqual(named, pages | {"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "reference.md"})

    def test_every_header_is_on_the_front_page_of_the_reference(self):
        named = set(re.findall(r"^\| slidestream/([\w.]+) \|", (SITE / "cpp.md").read_text(encoding="utf-8"), re.M))
        self.assertEqual(named, {file.name for file in (ROOT / "include" / "slidestream").glob("*.hpp")})


class Script(unittest.TestCase):
    def test_other_folders_are_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run([ROOT / "scripts" / "docs.sh", folder], capture_output=True, text=True)
            self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
            self.assertIn(f"{pathlib.Path(folder).resolve()} exists", run.stderr)
            self.assertTrue(pathlib.Path(folder).exists())

    def test_usage(self):
        run = subprocess.run([ROOT / "scripts" / "docs.sh", "--help"], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr.startswith("usage: ")), (2, True))


class Site(unittest.TestCase):
    def test_site(self):
        if shutil.which("doxygen") is None:
            self.skipTest("doxygen isn't installed")
        if not (ROOT / "build" / "docs-env" / "packages").exists():
            self.skipTest("scripts/docs.sh has not installed mkdocs and pdoc")
        with tempfile.TemporaryDirectory() as folder:
            site = pathlib.Path(folder).resolve() / "site"
            run = subprocess.run([ROOT / "scripts" / "docs.sh", site], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            for page in ("index.html", "search.html", "docs/results.html", "api/cpp/index.html", "api/python/slidestream.html"):
                self.assertTrue((site / page).exists(), page)
            self.assertEqual(list(broken_links(site)), [])
            self.assertEqual(list(loads_from_elsewhere(site)), [])


if __name__ == "__main__":
    tests = unittest.main(exit=False, verbosity=1).result
    for test, reason in tests.skipped:
        print(f"SKIPPED: {test.id()}: {reason}")
    sys.exit(not tests.wasSuccessful())
