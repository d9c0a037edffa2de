"""How long tests wait for a program: sanitizers make it several times as slow, and CTest's own limits of scripts grow, too."""

import os

FACTOR = 5 if "SANITIZED" in os.environ else 1


def time_limit(seconds):
    """The limit in a build with sanitizers, of what has this one in others."""
    return seconds * FACTOR
