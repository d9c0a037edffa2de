"""Temporary files of tests that import this lie in memory, where there is much room for them: a small run waits for some
twenty syncs, and on a disk these take longer than all else. TMPDIR says otherwise, as in scripts/check-deep.sh."""

import os
import shutil
import tempfile

MEMORY = "/dev/shm"
if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ["TMPDIR"] = MEMORY
    tempfile.tempdir = None  # which it may know by now
