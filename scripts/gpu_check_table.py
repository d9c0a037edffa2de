#!/usr/bin/env python3
"""Turns what gpu-check.sh ran into figures, and figures into a table with verdicts.

    gpu_check_table.py tests FOLDER      outputs of doctest programs (NAME.out) -> figures, as JSON
    gpu_check_table.py sanitizer FOLDER  the same with compute-sanitizer's logs (NAME.findings) -> figures, as JSON
    gpu_check_table.py table [--expected FILE] [--device ...] JSON...
                                         figures of all -> a Markdown table; exit 1 unless every row passed

Figures are {"device": ..., "figures": [{"name", "value", "unit", "target", "direction"}, ...]}: direction is at_most,
at_least, or report for a figure that has no target; value null means that it could not be measured; "note" (may be
absent) is a line for below the table; "skipped" (may be absent) says why this machine can't have the figure, and such a
row is no failure. jpeg_gpu_bench and jpeg2000_gpu_bench give a list with a row for each batch instead, bench/published/compare.py its rows:
these become figures here.

A line of FILE names a program and one of its figures, which must be there, and then, in any order, `gpus N` when it
takes more than one and `at_least N` or `at_most N` when the program gives no target.
"""

import argparse
import datetime
import json
import math
import pathlib
import re
import sys
from xml.sax.saxutils import unescape

# Pixels of the slide that rates of whole slides are of: 65,664 x 43,264.
HEADLINE_PIXELS = 65664 * 43264
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?|hazards?)(?! were)")


def figure(name, value, target=None, direction="at_most", unit="", note=None):
    made = {"name": name, "value": value, "unit": unit, "target": target, "direction": direction}
    if note:
        made["note"] = note
    return made


def test_results(text):
    """(passed, failed, skipped) test cases of a doctest program: names; skipped ones with their reasons.

    Read line by line, because tests print between the XML report's lines, and one that crashed left it unfinished.
    """
    passed, failed, skipped = [], [], []
    name, reason = None, None
    for line in text.splitlines():
        begun = re.search(r'<TestCase name="([^"]*)"', line)
        ended = re.search(r'<OverallResultsAsserts .*test_case_success="(\w+)"', line)
        told = re.match(r"\s*SKIPPED: (.*)", line)
        if begun and 'skipped="true"' not in line:
            if name is not None:
                failed.append(name)
            name, reason = unescape(begun[1], {"&quot;": '"'}), None
        elif told:
            reason = told[1]
        elif ended and name is not None:
            if ended[1] != "true":
                failed.append(name)
            elif reason is not None:
                skipped.append(f"{name} ({reason})")
            else:
                passed.append(name)
            name = None
    if name is not None:
        failed.append(f"{name} (did not end)")
    return passed, failed, skipped


def read_tests(folder):
    """Results of every program in a folder; a status that the report doesn't explain counts as a failure."""
    results = {}
    for file in sorted(pathlib.Path(folder).glob("*.out")):
        text = file.read_text(encoding="utf-8", errors="replace")
        passed, failed, skipped = test_results(text)
        status = re.findall(r"^EXIT (\d+)$", text, re.MULTILINE)
        if status[-1:] == ["124"]:
            failed.append(f"{file.stem}: not done in time")
        elif status[-1:] not in (["0"], ["77"]) and not failed:
            failed.append(f"{file.stem}: ended with status {status[-1] if status else 'unknown'}")
        results[file.stem] = (passed, failed, skipped)
    return results


def together(results, which):
    return [entry for result in results.values() for entry in result[which]]


def tests_report(folder):
    results = read_tests(folder)
    passed, failed, skipped = (together(results, which) for which in range(3))
    return [figure("passed", len(passed), 1, "at_least"),
            figure("failed", len(failed), 0, note="; ".join(failed)),
            figure("skipped", len(skipped), note="; ".join(skipped))]


def sanitizer_report(folder):
    results = read_tests(folder)
    findings, silent = 0, []
    for name, (passed, failed, _) in results.items():
        log = pathlib.Path(folder, f"{name}.findings")
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        counts = [int(count) for count in SUMMARY.findall(text)]
        if counts:
            findings += max(counts)
        elif passed or failed:
            silent.append(name)  # with every test skipped there is nothing to report on
    failed = together(results, 1)
    return [figure("tests_passed", len(together(results, 0)), 1, "at_least"),
            figure("tests_failed", len(failed), 0, note="; ".join(failed)),
            figure("findings", None if silent else findings, 0,
                   note=silent and f"no summary from compute-sanitizer for {', '.join(silent)}")]


def number(value):
    if abs(value) >= 1000 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.4g}"


def verdict(row):
    if row.get("skipped"):
        return "skipped"
    if row.get("value") is None:
        return "missing"
    if row.get("target") is None:
        return "-"
    met = row["value"] >= row["target"] if row["direction"] == "at_least" else row["value"] <= row["target"]
    return "pass" if met else "**fail**"


def merge(reports, expected, gpus):
    """Rows (program, figure) in the order of the reports; figures that are expected and absent come as missing."""
    rows = {}
    for program, figures in reports:
        for entry in figures:
            if (program, entry["name"]) in rows:
                raise ValueError(f"{program} gives {entry['name']} twice")
            rows[program, entry["name"]] = entry
    for program, name, more in expected:
        entry = rows.setdefault((program, name), figure(name, None))
        if entry["value"] is None and more.get("gpus", 1) > gpus:
            entry["skipped"] = f"needs {more['gpus']:.0f} GPUs"
        for direction in ("at_least", "at_most"):
            if direction in more and entry["target"] is None:
                entry.update(direction=direction, target=more[direction])
    return rows


def read_expected(file):
    """(program, figure, what else is said of it) of every line that isn't a comment."""
    with open(file, encoding="utf-8") as lines:
        words = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    return [(line[0], line[1], {key: float(value) for key, value in zip(line[2::2], line[3::2])}) for line in words]


def batch_figures(batches):
    """Rates of batches of tiles, a figure for each slide and number of tiles, and the number of wrong or flagged ones."""
    figures = []
    for batch in batches:
        width, height = batch["tile"]
        whole = batch["tiles"] * width * height > 0.95 * HEADLINE_PIXELS
        figures.append(figure(f"{batch['slide']}_{'whole' if whole else batch['tiles']}", batch["gpx_per_s"], None,
                              "report", "Gpx/s"))
    # What converting colours costs beside decoding.
    rates = {entry["name"]: entry["value"] for entry in figures}
    for name, rate in rates.items():
        plain = re.sub(r"_srgb(_table)?_whole$", "_rgb_whole", name)
        if plain != name and plain in rates:
            figures.append(figure(f"{name}_over_rgb", rate / rates[plain], None, "report", "x"))
    figures.append(figure("wrong_or_flagged", sum(batch["wrong"] + batch["flagged"] for batch in batches), 0))
    return figures


def published_figures(rows):
    """The fastest of the published architectures and of the program's configurations, and how they compare."""
    def fastest(own):
        times = [row["seconds_per_slide"] for row in rows if row["architecture"].startswith("slidestream") == own]
        times = [seconds for seconds in times if seconds]
        return min(times) if times else None

    best, own = fastest(False), fastest(True)
    why = "; ".join(f"{row['architecture']} {row['decode']}: {row['note']}" for row in rows if not row["seconds_per_slide"])
    return [figure("best_published_s", best, None, "report", "s"), figure("own_s", own, None, "report", "s"),
            figure("best_over_own", best / own if best and own else None, None, "report", "x", why)]


def read_report(file):
    """(program, figures) of a JSON file; one that can't be read gives a row that says so."""
    program = file.name.split(".")[0]
    try:
        report = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(report, list) and report:
            figures = batch_figures(report)
        else:
            figures = published_figures(report["rows"]) if "rows" in report else report["figures"]
        for entry in figures:
            for key in ("value", "target"):
                if entry.get(key) is not None and not math.isfinite(entry[key]):
                    raise ValueError(f"{key} of {entry['name']} is {entry[key]}")
            entry.setdefault("direction", "report" if entry.get("target") is None else "at_most")
            if entry["direction"] == "report":
                entry["target"] = None
            elif entry["direction"] not in ("at_most", "at_least"):
                raise ValueError(f"direction of {entry['name']} is {entry['direction']}")
            entry["name"] = str(entry["name"])
            entry.setdefault("value", None)
            entry.setdefault("target", None)
        return program, figures
    except (OSError, ValueError, KeyError, TypeError) as error:
        return program, [figure("report", None, note=f"{file.name}: {error}")]


def table(rows, header):
    lines = [header, "", "| figure | measured | target | verdict |", "|---|---|---|---|"]
    notes = []
    sign = {"at_most": "<=", "at_least": ">="}
    for (program, name), row in rows.items():
        unit = f" {row['unit']}" if row.get("unit") else ""
        measured = "" if row.get("value") is None else number(row["value"]) + unit
        target = "" if row.get("target") is None else f"{sign[row['direction']]} {number(row['target'])}{unit}"
        lines.append(f"| {program}: {name} | {measured} | {target} | {verdict(row)} |")
        why = row.get("skipped") or row.get("note")
        if why:
            notes.append(f"- {program}: {name}: {why}")
    if notes:
        lines += ["", *notes]
    return "\n".join(lines)


def make_table(options):
    expected = read_expected(options.expected) if options.expected else []
    rows = merge([read_report(pathlib.Path(file)) for file in options.reports], expected, options.gpus)
    when = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    print(table(rows, f"{options.device}, driver {options.driver}, {when}, `{options.command}`"))
    good = rows and all(verdict(row) in ("pass", "-", "skipped") for row in rows.values())
    return 0 if good else 1


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="mode", required=True)
    for mode in ("tests", "sanitizer"):
        commands.add_parser(mode).add_argument("folder")
    tabled = commands.add_parser("table")
    tabled.add_argument("--expected")
    tabled.add_argument("--gpus", type=int, default=1)
    for name in ("device", "driver", "command"):
        tabled.add_argument(f"--{name}", default="unknown")
    tabled.add_argument("reports", nargs="*")
    options = parser.parse_args(arguments)
    if options.mode == "table":
        return make_table(options)
    report = tests_report if options.mode == "tests" else sanitizer_report
    json.dump({"figures": report(options.folder)}, sys.stdout, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
