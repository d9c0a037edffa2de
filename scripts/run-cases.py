#!/usr/bin/env python3
"""Runs doctest cases that CTest has one by one, many in a process: where sanitizers are, a start takes as long as a case.

`run-cases.py BUILD JOBS LOG [OPTION...]` takes the selecting options of ctest (-R, -E, -L, -LE). Every process runs at most
`CASES` cases of one program, in the environment that CTest gives them. All that they print goes to LOG. What failed, what was
skipped and the five slowest cases are printed; the status is 1 where a process failed or ran other cases than it was told to.
"""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys

CASES = 16


def selected(build, options):
    """CTest's entries that make what others need, and lists of cases, each of one program and the same properties."""
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1", *options], check=True, capture_output=True,
                            text=True, stdin=subprocess.DEVNULL)
    # Stand-ins for programs that aren't built have other names than cases, which an option may not select.
    unbuilt = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1", "-R", "_NOT_BUILT$"], check=True,
                               capture_output=True, text=True, stdin=subprocess.DEVNULL)
    fixtures, by_program = [], {}
    for test in json.loads(unbuilt.stdout)["tests"]:
        sys.exit(f"run-cases.py: {test['name']}: build first")
    for test in json.loads(listed.stdout)["tests"]:
        if "command" not in test:
            sys.exit(f"run-cases.py: {test['name']} has no program yet: build first")
        program, *arguments = test["command"]
        properties = {entry["name"]: entry["value"] for entry in test["properties"]}
        key = (program, tuple(properties.get("ENVIRONMENT", [])), properties.get("WORKING_DIRECTORY", build),
               float(properties.get("TIMEOUT", 600)))
        if "FIXTURES_SETUP" in properties:
            fixtures.append((key, arguments))
            continue
        name, = (part.removeprefix("--test-case=") for part in arguments if part.startswith("--test-case="))
        by_program.setdefault(key, []).append(name)
    parts = []
    # Programs with many cases first: theirs are the long ones.
    for key, cases in sorted(by_program.items(), key=lambda entry: -len(entry[1])):
        count = -(-len(cases) // CASES)
        parts += [(key, cases[part::count]) for part in range(count)]
    return fixtures, parts


def start(key, arguments):
    """The status, which is None after too long a time, and what was printed."""
    program, environment, folder, seconds = key
    try:
        done = subprocess.run([program, *arguments], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              env={**os.environ, **dict(entry.split("=", 1) for entry in environment)},
                              stderr=subprocess.STDOUT, timeout=seconds)
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as late:
        return None, (late.stdout or b"").decode(errors="replace")


def run(key, cases):
    """Whether all cases ran and passed, and what was printed."""
    arguments = ["--test-case=" + ",".join(cases), "--duration=true", "--no-colors=true"]
    status, printed = start(key, arguments)
    ran = re.search(r"test cases: +(\d+) ", printed)
    # 77: all of them were skipped.
    passed = status in (0, 77) and ran is not None and int(ran[1]) == len(cases)
    if not passed:
        ended = f"more than {key[3]:g} s" if status is None else f"status {status}"
        printed += f"{ended}, {ran[1] if ran else 'not all'} of {len(cases)} cases ran: {shlex.join([key[0], *arguments])}\n"
    return passed, printed


def main():
    build, jobs, log, *options = sys.argv[1:]
    fixtures, parts = selected(build, options)
    if not parts:
        sys.exit("run-cases.py: no case is selected")
    failed, slowest, skipped = 0, [], set()
    with open(log, "w", encoding="utf-8") as kept, concurrent.futures.ThreadPoolExecutor(int(jobs)) as pool:
        for key, arguments in fixtures:
            status, printed = start(key, arguments)
            kept.write(printed)
            if status not in (0, 77):
                failed += 1
                print(printed, f"status {status}: {shlex.join([key[0], *arguments])}", flush=True)
        for passed, printed in pool.map(lambda part: run(*part), parts):
            kept.write(printed)
            slowest += re.findall(r"^(\d+\.\d+) s: (.*)$", printed, re.MULTILINE)
            skipped.update(re.findall(r"^SKIPPED: .*$", printed, re.MULTILINE))
            if not passed:
                failed += 1
                print(printed, flush=True)
    print(f"{sum(len(cases) for _, cases in parts)} cases in {len(parts)} processes, of which {failed} failed")
    print(*sorted(skipped), "Slowest:", sep="\n")
    for seconds, name in sorted(slowest, key=lambda case: -float(case[0]))[:5]:
        print(f"  {float(seconds):.2f} s  {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
