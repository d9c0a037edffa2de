"""The snippets of docs/python.md and README.md, in order and in one session."""

import importlib.util
import pathlib
import re

import pytest
from conftest import synth
from test_cuda import why_no_gpu

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("page", "count"), [("docs/python.md", 10), ("README.md", 1)])
def test_the_snippets_of(page, count, tmp_path, monkeypatch):
    (tmp_path / "slides").mkdir()
    synth(tmp_path / "slide.svs", "--size", "1536x1280")
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
