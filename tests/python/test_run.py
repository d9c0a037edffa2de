"""`run`: results and messages against the program's."""

import pathlib
import filecmp
import io
import json
import logging
import os
import shutil
import subprocess
import sys
import types

import numpy
import pytest
from conftest import synth
from test_lifetimes import interrupt_when_told

import slidestream as ss
from slidestream import _progress


def program(*arguments):
    return subprocess.run([os.environ["PIPELINE"], *arguments], capture_output=True, text=True)


def test_results_are_the_programs(slides, tmp_path):
    paths = [slides["jpeg420"], slides["jpeg422"], str(tmp_path / "none.svs")]
    result = ss.run(paths, ["spectrum", "sobel", "tissue"], tmp_path / "ours", image={"format": "ome-tiff"},
                    output={"maps": "npy"}, analysis={"radial": True, "window": 128, "stride": 64})
    done = program(*paths, "-o", tmp_path / "theirs", "-q", "-s", 'operators.run=["spectrum", "sobel", "tissue"]', "-s",
                   "image.format=ome-tiff", "--maps", "npy", "-s", "analysis.radial=true", "-s", "analysis.window=128", "-s",
                   "analysis.stride=64")
    assert done.returncode == 1
    for name in ("histograms.npy", "radial.npy", "artifacts.csv", "failures.csv", "maps/jpeg422.npy",
                 "images/jpeg420.sobel.ome.tif"):
        assert filecmp.cmp(tmp_path / "ours" / name, tmp_path / "theirs" / name, shallow=False), name
    beside = {"run.sqlite-wal", "run.sqlite-shm"}  # none of both, as behind the program
    assert {path.name for path in (tmp_path / "ours").iterdir()} & beside == set()
    assert numpy.array_equal(result.histograms, numpy.load(tmp_path / "theirs" / "histograms.npy"))
    assert numpy.array_equal(result.slides[0].series["radial"], numpy.load(tmp_path / "theirs" / "radial.npy")[0],
                             equal_nan=True)
    assert numpy.array_equal(result.slides[1].map, numpy.load(tmp_path / "theirs" / "maps" / "jpeg422.npy"))
    assert 0 < result.slides[0].values["tissue.share"] < 1
    assert [os.path.basename(file) for file in result.slides[0].files] == [
        "jpeg420.sobel.ome.tif", "jpeg420.tissue.geojson", "jpeg420.tissue.ome.tif"]
    assert all(os.path.exists(file) for slide in result.slides for file in slide.files)
    assert [slide.done for slide in result] == [True, True, False] and result.failed[0].path == paths[2]
    assert "can't be opened" in result.failed[0].error
    pandas = pytest.importorskip("pandas")
    ours, theirs = result.to_pandas(), pandas.read_csv(tmp_path / "theirs" / "slides.csv")
    assert list(ours.columns) == list(theirs.columns)
    for column in set(ours.columns) - {"seconds", "error"}:
        assert ours[column].equals(theirs[column]), column
    # The same again: nothing is left to do, and the results are there.
    again = ss.run(paths, ["spectrum", "sobel", "tissue"], tmp_path / "ours", image={"format": "ome-tiff"},
                   output={"maps": "npy"}, analysis={"radial": True, "window": 128, "stride": 64})
    assert numpy.array_equal(again.histograms, result.histograms) and again.windows == result.windows


def test_in_memory_it_finds_the_same_and_writes_nothing(slide, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    moments = []
    result = ss.run(slide, output={"maps": "npy"}, on_progress=moments.append)
    assert os.listdir(tmp_path) == []
    written = ss.run([slide], out="results")
    assert numpy.array_equal(result.histogram, written.histogram) and result.mean == written.mean
    assert numpy.array_equal(result.slides[0].histogram, result.histogram)
    assert result.histogram.dtype == numpy.int64 and result.histogram.sum() == result.windows * 256 * 256
    assert len(result.bin_edges) == len(result.histogram) + 1
    assert result.slides[0].map.shape == (4, 7, 2)
    found = result.slides[0]
    assert result.percentile(50) == found.percentile(50) == result.quantile(0.5) == found.quantile(0.5)
    assert result.percentile(5) == result.quantile(0.05) < result.percentile(95)
    for too_large in (lambda: result.percentile(101), lambda: result.quantile(1.5), lambda: found.quantile(1.5)):
        with pytest.raises(ss.ConfigError, match="expected 0 to"):
            too_large()
    assert moments[-1].slides_done == 1 and moments[-1].pixels == 1100 * 724
    assert not result.interrupted and result.backend == "cpu" and result.stages["decode"] > 0
    # A view keeps what it looks at.
    histogram = result.histogram
    del result
    assert histogram.sum() > 0


def test_settings_come_from_a_dict_a_file_and_keywords(slide, tmp_path):
    (tmp_path / "my.toml").write_text("[analysis]\nbins = 30\nwindow = 64\n")
    result = ss.run(slide, config=tmp_path / "my.toml", analysis={"window": 128, "range": (0, 100.5)})
    assert len(result.histogram) == 30 and result.bin_edges[-1] == 100.5
    assert "window = 128" in result.settings
    result = ss.run(slide, config={"analysis": {"bins": 20, "value": "db"}}, input={"level": 1})
    assert len(result.histogram) == 20 and result.slides[0].level == 1


def test_wrong_settings_are_told_as_the_program_does(slide, tmp_path):
    cases = [("analysis.windw=3", {"analysis": {"windw": 3}}), ("analysis.bins=0", {"analysis": {"bins": 0}}),
             ("analysis.range=[5, 5]", {"analysis": {"range": [5, 5]}}), ("nothing.at=1", {"nothing": {"at": 1}}),
             ('operators.run=["sobl"]', {"operators": {"run": ["sobl"]}}),
             ('output.journal="x\\"y"', {"output": {"journal": 'x"y'}})]
    for setting, sections in cases:
        done = program(slide, "-o", tmp_path / "results", "-s", setting)
        assert done.returncode == 2
        with pytest.raises(ss.ConfigError) as caught:
            ss.run(slide, out=tmp_path / "results", config=sections)
        assert f"error: {caught.value}\n" == done.stderr
    assert not (tmp_path / "results").exists()
    for keywords, message in (({"config": {"analysis": 3}}, "analysis is 3; expected a dict"),
                              ({"analysis": {"bins": object()}}, "is no value of the configuration"),
                              ({"operators": ["tissue"]}, "the operator tissue makes files: name a folder for them with out$"),
                              ({"operators": ["spectrm"]}, r"^operators is 'spectrm'; expected 'spectrum' or .*; did you mean 'spectrum'\?$"),
                              ({"operators": []}, "^operators is empty; expected 'spectrum' or "),
                              ({"shard": (2, 2), "out": tmp_path / "x"}, "shard"), ({"shard": 1}, "shard is 1")):
        with pytest.raises(ss.ConfigError, match=message):
            ss.run(slide, **keywords)
    with pytest.raises(ss.ConfigError, match="^no slide: the argument slides names none, and input.slides isn't set$"):
        ss.run([])
    (tmp_path / "file").write_text("")
    with pytest.raises(ss.OutputError, match="file"):
        ss.run(slide, out=tmp_path / "file")


def test_messages_go_to_logging(slide, bad_slide, caplog):
    with caplog.at_level(logging.INFO, logger="slidestream"):
        ss.run([slide, bad_slide, "none.svs"], decode={"on_bad_tile": "white"})
    told = {(record.levelno, record.getMessage()) for record in caplog.records if record.name == "slidestream"}
    assert (logging.WARNING, f"{bad_slide}: 2 missing and 2 bad tiles, taken as white") in told
    assert any(level == logging.ERROR and text.startswith("none.svs: ") for level, text in told)
    assert any(level == logging.INFO for level, _ in told)
    caplog.clear()
    with caplog.at_level(logging.ERROR, logger="slidestream"):
        ss.run([bad_slide], decode={"on_bad_tile": "white"})
    assert not caplog.records


def test_what_a_callback_raises_comes_out(slides):
    def stop(_):
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        ss.run(list(slides.values()), on_progress=stop)


def test_a_bar_is_shown_without_tqdm(slide, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    ss.run(slide, progress=True)
    assert "100% |##############################| 1/1 slides" in shown.getvalue()


def test_the_bar_of_volumes_tells_volumes_and_voxels(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    moment = types.SimpleNamespace(slides_done=1, slides_failed=0, slides_total=2, pixels=84_200, pixels_started=84_200, seconds=2.0,
                                   images_share=None)
    _progress._Bar(volumes=True).update(moment)
    assert "1/2 volumes, 0.0421 Mvoxels/s" in shown.getvalue()


def test_shards_are_the_programs(slides, tmp_path):
    paths = [slides[codec] for codec in ("jpeg420", "jpeg422", "none")]
    parts = [ss.run(paths, out=tmp_path / str(i), shard=(i, 2)) for i in range(2)]
    assert sorted(slide.path for part in parts for slide in part) == sorted(paths)
    assert program("merge", tmp_path / "0", tmp_path / "1", "--out", tmp_path / "all").returncode == 0


def test_what_is_for_a_folder_is_refused_without_one(slides, tmp_path):
    paths = [slides["jpeg420"], slides["none"]]
    for keywords in ({"shard": (0, 2)}, {"max_failures": 1}, {"metrics": tmp_path / "a.prom"}, {"trace": tmp_path / "a.json"}):
        with pytest.raises(ss.ConfigError, match=f"^{next(iter(keywords))} is for results in a folder: name one with out$"):
            ss.run(paths, **keywords)
    with pytest.raises(ss.ConfigError, match="^shard is for results in a folder"):
        ss.map(paths[0], lambda pixels: pixels, tile=512, out=tmp_path / "a.ome.tif", shard=(0, 2))
    for shard in ((2, 2), (-1, 2), (0, 0), (0, 1000001), 3, (0.5, 2)):
        with pytest.raises(ss.ConfigError, match="^shard is .*; expected .i, n. with i from 0 to n - 1, and n from 1 to 1000000$"):
            ss.run(paths, out=tmp_path / "out", shard=shard)
    with pytest.raises(ss.ConfigError, match="shard_by is 'name'; expected 'path' or 'size'"):
        ss.run(paths, out=tmp_path / "out", shard=(0, 2), shard_by="name")
    assert not os.listdir(tmp_path)


def test_files_beside_results_never_replace_a_slide(slide, tmp_path):
    copied = tmp_path / "a.svs"
    copied.write_bytes(open(slide, "rb").read())
    for name, ending in (("metrics", ".prom"), ("trace", ".json")):
        with pytest.raises(ss.ConfigError, match=f"{name} is .*a.svs'; expected a name that ends in {ending}"):
            ss.run(copied, out=tmp_path / "out", **{name: copied})
    assert copied.read_bytes() == open(slide, "rb").read()


def test_of_no_values_there_is_nothing_to_say(slide, bad_slide, tmp_path):
    for result in (ss.run(bad_slide), ss.run(slide, ["tissue"], tmp_path / "out")):
        found = result.slides[0]
        numbers = [result.mean, result.std, result.percentile(50), found.mean, found.std, found.quantile(0.5)]
        assert numpy.isnan(numbers).all() and not result.histogram.any()
    with pytest.raises(ss.ConfigError, match="p is 'half'; expected a finite number"):
        result.percentile("half")


def test_an_interrupt_ends_a_run_cleanly(slide, tmp_path):
    large = synth(tmp_path / "large.svs", "--size", "16384x8192", "--distinct", "40", "--levels", "1")
    paths = [slide] + [str(tmp_path / f"{i}.svs") for i in range(8)]
    for path in paths[1:]:
        shutil.copyfile(large, path)  # links are one slide
    code, out, err = interrupt_when_told("""
import sys, slidestream as ss
told = []
def on_progress(moment):
    if moment.slides_done and not told:
        told.append(1)
        print("ready", flush=True)
try:
    ss.run(sys.argv[2:], out=sys.argv[1], on_progress=on_progress, analysis={"stride": 64},
           pipeline={"threads": 1})
except KeyboardInterrupt:
    print("interrupted")
""", str(tmp_path / "results"), *paths)
    assert (code, out, err) == (0, "interrupted\n", "")
    # What was done is written, and nobody holds the folder.
    done = program("status", tmp_path / "results")
    assert done.returncode in (0, 1) and "9" in done.stdout
    assert (tmp_path / "results" / "slides.csv").read_text().count(",done,") in range(1, 9)


def test_a_slide_without_a_pixel_size_is_told(slide, tmp_path, caplog):
    unknown = tmp_path / "unknown.svs"
    unknown.write_bytes(pathlib.Path(slide).read_bytes().replace(b"MPP = ", b"XPP = "))
    assert ss.Slide(unknown).mpp is None
    with caplog.at_level(logging.INFO, "slidestream"):
        ss.run([unknown], ["tissue"], tmp_path / "out")
    line = ("unknown.svs: the slide doesn't say its pixel size: tissue is found at 1/32 of its sides, without "
            "tissue.min_um2 and tissue.fill_um2; set input.mpp")
    assert [record.levelno for record in caplog.records if line in record.getMessage()] == [logging.WARNING]
    quiet = program("tissue", unknown, "-o", tmp_path / "quiet", "-q")
    assert quiet.returncode == 0 and quiet.stderr.count(line) == 1
    caplog.clear()
    with caplog.at_level(logging.INFO, "slidestream"):
        ss.run([slide], ["tissue"], tmp_path / "known")
    assert "pixel size" not in caplog.text


def test_a_reference_of_stains_without_a_pixel_size_is_told(slide, tmp_path, caplog):
    unknown = tmp_path / "unknown.svs"
    unknown.write_bytes(pathlib.Path(slide).read_bytes().replace(b"MPP = ", b"XPP = "))
    line = (f"stain.reference: {unknown}: the slide doesn't say its pixel size: tissue is found at 1/32 of its sides, without "
            "tissue.min_um2 and tissue.fill_um2, and stains are fitted as if 4 pixels were 1 um; set input.mpp_default")
    image = {"format": "ome-tiff"}
    with caplog.at_level(logging.INFO, "slidestream"):
        ss.run([slide], ["stain"], tmp_path / "out", stain={"reference": str(unknown)}, image=image)
    assert [record.levelno for record in caplog.records if line in record.getMessage()] == [logging.WARNING]
    quiet = program("stain", slide, "--reference", unknown, "-o", tmp_path / "quiet", "-q")
    assert quiet.stderr.count(line) == 1
    caplog.clear()
    with caplog.at_level(logging.INFO, "slidestream"):
        ss.run([slide], ["stain"], tmp_path / "known", stain={"reference": str(slide)}, image=image)
        ss.run([slide], ["stain"], tmp_path / "given", stain={"reference": str(unknown)}, image=image, input={"mpp_default": 0.5})
    assert "pixel size" not in caplog.text


def test_points_among_outlines_are_ignored_with_a_line(slide, tmp_path, caplog):
    """One marked point failed the slide."""
    copy = tmp_path / "marked.svs"
    copy.write_bytes(pathlib.Path(slide).read_bytes())
    point = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [8, 8]}}
    ring = [[0, 0], [400, 0], [400, 300], [0, 300], [0, 0]]
    area = {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [ring]}}
    outlines = copy.with_suffix(".geojson")
    outlines.write_text(json.dumps({"type": "FeatureCollection", "features": [point, area]}))
    with caplog.at_level(logging.INFO, "slidestream"):
        result = ss.run([copy], ["tissue"], tmp_path / "out", tissue={"source": "geojson"})
    assert result.slides[0].done
    told = [record for record in caplog.records if "points and lines of its outlines are ignored" in record.getMessage()]
    assert [record.levelno for record in told] == [logging.WARNING]
    assert told[0].getMessage().endswith("marked.svs: points and lines of its outlines are ignored, as they have no area: 1")
    outlines.write_text(json.dumps(point))
    result = ss.run([copy], ["tissue"], tmp_path / "alone", tissue={"source": "geojson"})
    assert "it holds points and lines alone" in result.slides[0].error


def test_clipped_values_are_counted_and_told(slide, tmp_path, caplog):
    """A percentile in an end bin with clipped values is no number; a warning says so with and without a folder."""
    for out in (None, tmp_path / "out"):
        caplog.clear()
        with caplog.at_level("WARNING", "slidestream"):
            result = ss.run([slide], out=out, analysis={"range": [20.0, 60.0], "bins": 40})
        told = [record.message for record in caplog.records if "outside analysis.range" in record.message]
        assert len(told) == 1 and told[0].startswith(f"{result.clipped} of ")
        assert result.clipped == result.slides[0].clipped > 0
        assert numpy.isnan(result.quantile(0)) and numpy.isnan(result.slides[0].percentile(100))
        assert 20 < result.percentile(50) < 60
    above = ss.run([slide], analysis={"range": [0.0, 60.0], "bins": 2})
    assert above.clipped > 0 and above.slides[0].percentile(0.1) < 30 and numpy.isnan(above.percentile(100))
    whole = ss.run([slide])
    assert whole.clipped == 0 and not numpy.isnan(whole.percentile(100))


def test_an_operator_that_fails_leaves_what_the_others_made(slide, tmp_path):
    """The slide is done with an error until the file that it wanted is there."""
    copy = tmp_path / "copy.svs"
    copy.write_bytes(pathlib.Path(slide).read_bytes())
    call = {"operators": ["identity", "tissue"], "out": tmp_path / "out", "tissue": {"source": "geojson"}}
    result = ss.run([copy], **call)
    found = result.slides[0]
    assert found.done and found.error.startswith("tissue: ") and "copy.geojson" in found.error
    assert [slide.path for slide in result.failed] == [found.path]
    assert [file.name for file in found.files] == ["copy.identity.ome.tif"]
    assert "done but for tissue: " in repr(found)
    assert result.to_pandas()["status"].tolist() == ["done"]
    assert ss.run([copy], **call).slides[0].error == found.error
    (tmp_path / "copy.geojson").write_text('{"type": "Polygon", "coordinates": [[[0, 0], [99, 0], [99, 99], [0, 0]]]}')
    again = ss.run([copy], **call).slides[0]
    assert again.done and not again.error and len(again.files) == 3


def test_settings_of_tissue(slide, tmp_path):
    """Specks, holes and the threshold follow the settings."""

    def share(name, **tissue):
        return ss.run([slide], operators=["tissue"], out=tmp_path / name, tissue=tissue).slides[0].values["tissue.share"]

    usual = share("usual")
    assert share("high", threshold=254) == 0 < usual
    assert share("specks", min_um2=1e9) == 0
    assert share("holes", fill_um2=0) <= usual
    assert share("exact", simplify_px=0) == usual
    sizes = [next((tmp_path / name / "images").glob("*.geojson")).stat().st_size for name in ("exact", "usual")]
    assert sizes[1] < sizes[0] / 1.5
    with pytest.raises(ss.ConfigError, match="tissue.fill_um2 must be -1, or 0 or more"):
        share("refused", fill_um2=-0.5)
    with pytest.raises(ss.ConfigError, match="^tissue.model: .*none.onnx"):
        share("refused", **{"model": tmp_path / "none.onnx", "class": 0, "probability": 0.25})
