"""What scripts read from a build's compile_commands.json."""

import re
import shlex


def flags_of(command):
    """The flags that decide how a source is read: definitions, folders of headers, the language."""
    words = shlex.split(command)
    kept = []
    for i, word in enumerate(words):
        if re.match(r"-[DI].|-std=", word):
            kept.append(word)
        elif word == "-isystem":
            kept += [word, words[i + 1]]
    return kept


def unity_sources(file):
    """The sources that a unity file (CMAKE_UNITY_BUILD) includes; None if `file`, a path, is no such file."""
    if not re.fullmatch(r"unity_\d+_cxx\.cxx", file.name):
        return None
    return re.findall(r'^#include "(.*)"$', file.read_text(), re.M)
