"""Temporary files of tests that import this lie in memory, where there is much room for them: a small run waits for some
twenty syncs, and on a disk these take longer than all else. TMPDIR says otherwise, as in scripts/check-deep.sh."""

import atexit
import contextlib
import os
import pathlib
import shutil
import tempfile
import time

MEMORY = pathlib.Path("/dev/shm")
DAY = 24 * 60 * 60


def own():
    return MEMORY / f"sst-{os.getpid()}"


def remove(folder):
    if folder == own():  # not in a child
        shutil.rmtree(folder, ignore_errors=True)


def begin():
    # Of tests that were killed.
    for other in MEMORY.glob("sst-*"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - other.lstat().st_mtime > DAY:
                shutil.rmtree(other, ignore_errors=True)
    own().mkdir(mode=0o755, exist_ok=True)
    os.environ["TMPDIR"] = str(own())
    tempfile.tempdir = None  # which it may know by now


if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
    begin()
if os.environ.get("TMPDIR") == str(own()):  # also once a script begins anew with another Python
    atexit.register(remove, own())
