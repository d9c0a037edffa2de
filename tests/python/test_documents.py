"""The snippets of docs/python.md, docs/notebook.md and README.md, each page in order and in one session; its benchmarks."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest
from conftest import synth
from test_cuda import why_no_gpu

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("page", "count"), [("docs/python.md", 13), ("docs/notebook.md", 5), ("README.md", 1)])
def test_the_snippets_of(page, count, tmp_path, monkeypatch):
    (tmp_path / "slides").mkdir()
    synth(tmp_path / "slide.svs", "--size", "1536x1280", "--mpp", "0.5")
    synth(tmp_path / "slides" / "one.svs", "--size", "768x512", "--seed", "2")
    monkeypatch.chdir(tmp_path)
    session, left_out = {}, []
    snippets = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)
    assert len(snippets) == count
    for snippet in snippets:
        wanted = {match.split(".")[0] for match in re.findall(r"^(?:import|from) ([\w.]+)", snippet, re.M)}
        missing = [name for name in wanted if importlib.util.find_spec(name) is None]
        # What only some have; run gives tables by pandas.
        missing += ["pandas"] if "to_pandas" in snippet and importlib.util.find_spec("pandas") is None else []
        missing += ["a GPU"] if 'device="cuda"' in snippet and why_no_gpu() else []
        if missing:
            left_out += missing
            continue
        exec(compile(snippet, page, "exec"), session)
    assert "pandas" in left_out or list(tmp_path.glob("*/slides.csv"))
    assert set(left_out) <= {"torch", "PIL", "pandas", "a GPU"}
    if left_out:
        pytest.skip("without " + ", ".join(sorted(set(left_out))) + "; the others passed")


@pytest.mark.parametrize("command", ["tiles_bench.py slide.svs {floor} --regions 4", "run_bench.py {pipeline} slide.svs"])
def test_the_benchmarks_of_the_page_run(command, tmp_path):
    pipeline = os.environ["PIPELINE"]
    floor = pathlib.Path(pipeline).parent / "bench" / "jpeg_floor"
    if not floor.exists():
        pytest.skip("the benchmarks aren't built")
    synth(tmp_path / "slide.svs", "--size", "1536x1280")
    script, *arguments = command.format(floor=floor, pipeline=pipeline).split()
    done = subprocess.run([sys.executable, ROOT / "bench" / "python" / script, *arguments, "--rounds", "1"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "ratio" in done.stdout or "of libjpeg-turbo's" in done.stdout
