"""Slides that the tests share. The package is the one that PYTHONPATH leads to, and PIPELINE names the program."""

import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import quick_storage  # noqa: E402,F401

# Whether all of a kind is gone over, or some of it.
WIDE = "SLIDESTREAM_TEST_WIDE" in os.environ
CODECS = ("jpeg420", "jpeg422", "rgb", "jpeg2000", "none")


def pytest_configure(config):
    """Files end with the session: by itself pytest keeps those of three, and they may lie in memory."""
    if config.option.basetemp is None:
        folder = tempfile.TemporaryDirectory()
        config.add_cleanup(folder.cleanup)
        config.option.basetemp = pathlib.Path(folder.name, "pytest")


def synth(file, *options):
    subprocess.run([os.environ["PIPELINE"], "synth", "--out", file, *options], check=True, stdout=subprocess.DEVNULL)
    return str(file)


@pytest.fixture(scope="session")
def slides(tmp_path_factory):
    """A small slide of each codec, with two levels, whose tiles don't fill the last row and column."""
    folder = tmp_path_factory.mktemp("slides")
    return {codec: synth(folder / f"{codec}.svs", "--size", "1100x724", "--codec", codec, "--tile", "128", "--levels",
                         "2", "--mpp", "0.5") for codec in CODECS}


@pytest.fixture(scope="session")
def slide(slides):
    return slides["jpeg420"]


@pytest.fixture(scope="session")
def bad_slide(tmp_path_factory):
    return synth(tmp_path_factory.mktemp("bad") / "bad.svs", "--size", "1024x768", "--tile", "128", "--defects",
                 "missing=2,corrupt=2")


def real_slides():
    shared = os.environ.get("SLIDESTREAM_TEST_DATA") or pathlib.Path(__file__).resolve().parents[3] / "shared"
    return [str(file) for file in sorted(pathlib.Path(shared, "data").glob("*.svs"))]
