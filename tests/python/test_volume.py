"""Volumes: `map_volume` beside NumPy, and `segment_volume` where a network can be run."""

import gzip
import importlib.util
import os
import pathlib
import re
import shutil
import struct
import subprocess

import numpy
import pytest

import slidestream as ss

FRAGMENT = (8, 10, 6)
GRID = (2, 3, 2)


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    file = tmp_path_factory.mktemp("volumes") / "head.nii.gz"
    subprocess.run([os.environ["PIPELINE"], "synth", "--volume", "13x21x9", "--out", file], check=True,
                   stdout=subprocess.DEVNULL)
    return file


def samples_of(file):
    """A file's samples as z, y, x."""
    bytes_of = gzip.decompress(file.read_bytes())
    sides = struct.unpack_from("<8h", bytes_of, 40)[1:4]
    kind = {2: "u1", 4: "<i2", 512: "<u2", 16: "<f4"}[struct.unpack_from("<h", bytes_of, 70)[0]]
    offset = int(struct.unpack_from("<f", bytes_of, 108)[0])
    return numpy.frombuffer(bytes_of, kind, int(numpy.prod(sides)), offset).reshape(sides[::-1])


def mapped(head, out, function, **more):
    [made] = ss.map_volume(function, head, out, fragment=FRAGMENT, grid=GRID, **more)
    return made, samples_of(made.file)


def test_labels_scores_and_images_are_those_of_the_whole(head, tmp_path):
    whole = samples_of(head)
    made, labels = mapped(head, tmp_path / "labels", lambda part: (part > 300).astype("u1"))
    numpy.testing.assert_array_equal(labels, whole > 300)
    assert made.voxels == {0: int((whole <= 300).sum()), 1: int((whole > 300).sum())}
    assert made.mm3 == made.voxels and made.file.name == "head.labels.nii.gz"
    for fusion in ("vote", "mean"):
        def scores(part):
            return numpy.stack([part < 200, (part >= 200) & (part < 500), part >= 500]).astype("f4")
        _, labels = mapped(head, tmp_path / fusion, scores, fusion=fusion)
        numpy.testing.assert_array_equal(labels, (whole >= 200).astype("u1") + (whole >= 500))
    made, image = mapped(head, tmp_path / "image", lambda part: part * 2, fusion="blend", range=(0, 4000))
    assert made.voxels == {} and image.dtype == numpy.float32 and made.clamped == 0
    numpy.testing.assert_allclose(image, whole * 2.0, atol=4000 / 65535)


def test_values_that_an_image_clamps_are_counted_and_told(head, tmp_path, caplog):
    given = []

    def same(part):
        given.append(part.copy())
        return part

    with caplog.at_level("WARNING", logger="slidestream"):
        made, image = mapped(head, tmp_path / "out", same, fusion="blend", range=(0, 300))
    share = float(((numpy.stack(given) < 0) | (numpy.stack(given) > 300)).mean())
    assert 0 < share < 1 and made.clamped == pytest.approx(share) and image.max() == 300
    assert (f"head.nii.gz: the function gave values outside range=; the image has them clamped: {100 * share:.3g} % of its "
            "values") in caplog.text
    with pytest.raises(ss.SlideError, match="the function gives values .* range= is 0.0 to 1.0; set range= or activation="):
        mapped(head, tmp_path / "mean", lambda part: numpy.stack([part, part]), fusion="mean")


def test_a_function_of_another_spacing_sees_that(head, tmp_path):
    seen = []

    def see(part):
        seen.append(part.shape)
        return numpy.zeros(part.shape, "u1")

    made = ss.map_volume(see, [head], tmp_path / "out", fragment=FRAGMENT, grid=(2, 2, 2), spacing=(2, 2, 2))
    assert seen == [FRAGMENT] * 8
    assert samples_of(made[0].file).shape == (13, 21, 9)


def test_wide_labels_and_those_that_are_ignored(head, tmp_path):
    _, labels = mapped(head, tmp_path / "wide", lambda part: part.astype("i4").clip(0))
    assert labels.dtype == numpy.uint16
    numpy.testing.assert_array_equal(labels, samples_of(head).clip(0))
    _, labels = mapped(head, tmp_path / "ignored", lambda part: numpy.full(part.shape, 7, "u1"), ignore=7)
    assert set(labels.ravel()) == {7}
    for sample, ignore, most in ("uint8", 256, 255), ("uint16", 65536, 65535), (None, 65536, 65535), (None, -1, 65535):
        with pytest.raises(ss.ConfigError, match=f"ignore is {ignore}; expected 0 to {most}"):
            mapped(head, tmp_path / "none", lambda part: pytest.fail("called"), ignore=ignore, sample=sample)
    with pytest.raises(ss.ConfigError, match="ignore is 256; expected 0 to 255"):
        mapped(head, tmp_path / "none", lambda part: numpy.zeros(part.shape, "u1"), ignore=256)


def test_values_become_float32_first(head, tmp_path):
    # In float64 the second class is larger. Of equals the lowest wins.
    for step, winner in (1e-12, 0), (1e-6, 1):
        _, labels = mapped(head, tmp_path / f"{winner}", lambda part: numpy.stack([numpy.ones(part.shape), 1 + step * numpy.ones(part.shape)]))
        assert set(labels.ravel()) == {winner}


def test_the_last_of_256_classes_votes_and_more_classes_than_labels_are_refused(head, tmp_path):
    def winner(*turns, **more):
        given = iter(turns)

        def scores(part):
            classes = numpy.zeros((256, *part.shape), "f4")
            classes[next(given)] = 1
            return classes
        # Each fragment has the whole volume.
        [made] = ss.map_volume(scores, head, tmp_path, fragment=(13, 21, 9), grid=(1, 1, 3), overwrite=True, **more)
        assert samples_of(made.file).dtype == numpy.uint8
        return list(made.voxels)

    assert winner(255, 7, 255) == [255]
    assert winner(255, 7, 255, ignore=255) == [7]
    with pytest.raises(ss.ConfigError, match="gave 65536 channels; expected at most 65,535"):
        ss.map_volume(lambda part: numpy.zeros((65536, *part.shape), "u1"), head, tmp_path / "many", fragment=(1, 1, 1),
                      grid=(1, 1, 1), spacing=(50, 50, 50))


def test_a_qform_that_is_no_rotation_gets_a_line(head, tmp_path, caplog):
    odd = tmp_path / "odd.nii"
    whole = bytearray(gzip.decompress(head.read_bytes()))
    struct.pack_into("<h", whole, 252, 1)
    struct.pack_into("<3f", whole, 256, 0.75, 0.75, 0)
    odd.write_bytes(whole)
    with caplog.at_level("WARNING", logger="slidestream"):
        mapped(odd, tmp_path / "out", lambda part: numpy.zeros(part.shape, "u1"))
    [line] = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"{odd}: its qform is no rotation")


def test_mistakes_are_said_in_one_line(head, tmp_path):
    def same(part):
        return part

    for more, words in (({"fusion": "some"}, "fusion is 'some'"), ({"spacing": (1, 2)}, "spacing is (1, 2)"),
                        ({"range": (1, 0), "fusion": "mean"}, "low < high"), ({"range": 5}, "range is 5; expected (low, high)"),
                        ({"spacing": (1, 1, 1), "fusion": "blend"}, "only labels are resampled back"),
                        ({"fusion": "mean"}, "fusion='mean' wants one per class"),
                        ({"fusion": "mean", "ignore": 1}, 'ignore is 1; only fusion = "vote" leaves a label out'),
                        ({"fusion": "blend", "ignore": 0}, 'ignore is 0; only fusion = "vote" leaves a label out'),
                        ({"range": (0, 3)}, 'range is [0.0, 3.0]; fusion = "vote" takes labels as they are'),
                        ({"range": (0, 1)}, 'range is [0.0, 1.0]; fusion = "vote" takes labels as they are'),
                        ({"activation": "softmax"}, 'activation is "softmax"; fusion = "vote" takes labels as they are'),
                        ({"fusion": "blend", "activation": "softmax"}, 'activation is "softmax"; an image of one channel has no use'),
                        ({"fusion": "blend", "activation": "sigmoid", "range": (0, 3)},
                         'range is [0.0, 3.0], and activation is "sigmoid", which gives values from 0 to 1; leave range out'),
                        ({"fusion": "blend", "sample": "uint8"}, "sample is of labels; images of volumes are float32"),
                        ({"sample": "int8"}, "sample is 'int8'"),
                        ({"fill": 1e300}, "fill is 1e+300; expected -1e30 to 1e30"), ({"fill": float("nan")}, "fill is nan")):
        with pytest.raises(ss.ConfigError, match=re.escape(words)):
            ss.map_volume(same, head, tmp_path / "no", fragment=FRAGMENT, grid=GRID, **more)
    for arguments in ({"fragment": (8, 8), "grid": GRID}, {"fragment": FRAGMENT, "grid": (0, 1, 1)}):
        with pytest.raises(ss.ConfigError, match="along z, y, x"):
            ss.map_volume(same, head, tmp_path / "no", **arguments)
    with pytest.raises(ss.SlideError, match="head.nii.gz: fragments leave samples out"):
        ss.map_volume(same, head, tmp_path / "no", fragment=FRAGMENT, grid=(1, 1, 1))
    with pytest.raises(ss.ConfigError, match="gave 2 x 2 of float64 for a fragment of 8 x 10 x 6"):
        ss.map_volume(lambda part: numpy.zeros((2, 2)), head, tmp_path / "no", fragment=FRAGMENT, grid=GRID)
    with pytest.raises(ss.SlideError, match="the label 0.5"):
        mapped(head, tmp_path / "no", lambda part: numpy.full(part.shape, 0.5))
    with pytest.raises(ZeroDivisionError):
        mapped(head, tmp_path / "no", lambda part: 1 // 0)
    mapped(head, tmp_path / "there", lambda part: numpy.zeros(part.shape, "u1"))
    with pytest.raises(ss.ConfigError, match="overwrite=True"):
        mapped(head, tmp_path / "there", lambda part: numpy.zeros(part.shape, "u1"))
    mapped(head, tmp_path / "there", lambda part: numpy.zeros(part.shape, "u1"), overwrite=True)


def test_what_a_call_reads_is_never_what_it_writes(head, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    first, second = out / "head.nii.gz", out / "head.labels.nii.gz"
    link, hard = tmp_path / "link.nii.gz", tmp_path / "hard.nii.gz"
    for file in first, second:
        shutil.copy(head, file)
    link.symlink_to(second)
    os.link(second, hard)
    for read in second, out / ".." / "out" / second.name, link, hard:
        for more in {}, {"overwrite": True}:
            with pytest.raises(ss.ConfigError) as caught:
                ss.map_volume(lambda part: pytest.fail("called"), [first, read], out, fragment=FRAGMENT, grid=GRID, **more)
            assert str(caught.value) == f"{second}: would be written, and the run reads it as {read}"
    assert second.read_bytes() == head.read_bytes()
    assert sorted(file.name for file in out.iterdir()) == [second.name, first.name]


def test_results_beside_the_volumes_are_no_inputs_of_the_next_call(head, tmp_path, caplog):
    folder = tmp_path / "both"
    folder.mkdir()
    scan = folder / "head.nii.gz"
    theirs = folder / "theirs.labels.nii.gz"
    shutil.copy(head, scan)
    theirs.write_bytes(gzip.compress(gzip.decompress(head.read_bytes())))

    def call(volumes, out, **more):
        caplog.clear()
        with caplog.at_level("WARNING", logger="slidestream"):
            made = ss.map_volume(lambda part: part * 0, volumes, out, fragment=FRAGMENT, grid=GRID, **more)
        return [volume.path for volume in made], [record.getMessage() for record in caplog.records]

    both = [str(scan), str(theirs)]
    assert call(folder, folder) == (both, [])
    def line(count):
        return (f"{folder}/head.labels.nii.gz: a result of slidestream, as others in folders are; {count} files passed over; "
                "naming them uses them")

    for volumes in folder, tmp_path:
        assert call(volumes, folder, overwrite=True) == (both, [line(2)])
    # Wherever the call's own results go.
    assert call(folder, tmp_path / "other") == (both, [line(2)])
    assert call(folder, folder, fusion="blend") == (both, [line(2)])
    both_again, [text] = call(folder, tmp_path / "third")
    assert both_again == both and "4 files passed over" in text
    # Volumes that are named aren't passed over.
    named = folder / "head.labels.nii.gz"
    assert call([named], folder) == ([str(named)], [])


def test_a_volume_that_fails_does_not_keep_the_others_from_being_computed(head, tmp_path, caplog):
    broken = tmp_path / "broken.nii.gz"
    broken.write_bytes(gzip.compress(bytes(400)))
    with caplog.at_level("ERROR", logger="slidestream"), pytest.raises(ss.SlideError) as caught:
        ss.map_volume(lambda part: (part > 300).astype("u1"), [broken, head], tmp_path / "out", fragment=FRAGMENT, grid=GRID)
    [line] = [record.getMessage() for record in caplog.records]
    assert "broken.nii.gz: " in line
    assert str(caught.value) == f"1 of 2 volumes failed; the first: {line}"
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["head.labels.nii.gz"]
    numpy.testing.assert_array_equal(samples_of(tmp_path / "out" / "head.labels.nii.gz"), samples_of(head) > 300)


@pytest.mark.parametrize("kind", [ss.SlideError, ss.OutputError, ValueError])
def test_what_the_function_raises_ends_the_call(head, tmp_path, kind):
    other = tmp_path / "other.nii.gz"
    shutil.copy(head, other)
    raised = kind("of the function")
    calls = []

    def fail(part):
        calls.append(part.shape)
        raise raised

    with pytest.raises(kind) as caught:
        ss.map_volume(fail, [head, other], tmp_path / "out", fragment=FRAGMENT, grid=GRID)
    assert caught.value is raised and len(calls) == 1


def test_a_folder_that_cannot_be_made_is_an_error_of_output(head, tmp_path):
    file = tmp_path / "file"
    file.write_text("stays")
    for out in file, file / "below":
        with pytest.raises(ss.OutputError, match=f"^{re.escape(str(out))}: "):
            ss.map_volume(lambda part: pytest.fail("called"), head, out, fragment=FRAGMENT, grid=GRID)
    assert file.read_text() == "stays"


def test_inputs_without_a_volume_are_refused(tmp_path):
    def refusal(volumes):
        with pytest.raises(ss.ConfigError) as caught:
            ss.map_volume(lambda part: part, volumes, tmp_path / "out", fragment=FRAGMENT, grid=GRID)
        assert not (tmp_path / "out").exists()
        return str(caught.value)

    empty = tmp_path / "empty"
    empty.mkdir()
    assert refusal(empty) == f"no volume in {empty}"
    assert refusal([empty, tmp_path]) == f"no volume in {empty} and the other inputs"
    assert refusal([]) == "no volume: the argument volumes names none"
    with pytest.raises(ss.ConfigError, match="^no volume: the argument volumes names none, and input.slides isn't set$"):
        ss.segment_volume([], tmp_path / "none.onnx", tmp_path / "out")


def test_segmenting_says_what_is_missing(head, tmp_path):
    with pytest.raises(ss.ConfigError, match="none.onnx: No such file"):
        ss.segment_volume(head, tmp_path / "none.onnx", tmp_path / "out")
    with pytest.raises(ss.ConfigError, match="fusion is"):
        ss.segment_volume(head, tmp_path / "none.onnx", tmp_path / "out", fusion="mode")
    with pytest.raises(ss.ConfigError, match="operators are for slides"):
        ss.segment_volume(head, tmp_path / "none.onnx", tmp_path / "out", operators={"run": ["sobel"]})
    with pytest.raises(ss.ConfigError, match="an argument of its own"):
        ss.segment_volume(head, tmp_path / "none.onnx", tmp_path / "out", volume={"grid": [3, 3, 3]})
    with pytest.raises(ss.ConfigError, match="volume.in_flight"):
        ss.segment_volume(head, tmp_path / "none.onnx", tmp_path / "out", volume={"in_flight": -1})
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(importlib.util.find_spec("onnx") is None or importlib.util.find_spec("onnxruntime") is None,
                    reason="needs onnx and onnxruntime")
def test_segmenting_is_what_the_program_does(head, tmp_path):
    from onnx import TensorProto, helper

    shape = [1, 1, *FRAGMENT]
    nodes = [helper.make_node("Constant", [], ["most"], value=helper.make_tensor("most", TensorProto.FLOAT, [], [300.0])),
             helper.make_node("Greater", ["in", "most"], ["out"])]
    graph = helper.make_graph(nodes, "network", [helper.make_tensor_value_info("in", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("out", TensorProto.BOOL, shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    net = tmp_path / "net.onnx"
    net.write_bytes(model.SerializeToString())
    runtime = pathlib.Path(importlib.util.find_spec("onnxruntime").origin).parent / "capi"
    model = {"provider": "cpu", "runtime": str(runtime)}
    result = ss.segment_volume(head, net, tmp_path / "out", fragment=FRAGMENT, grid=GRID, model=model)
    assert len(result) == 1 and not result.failed and result.backend == "cpu"
    [file] = result[0].files
    numpy.testing.assert_array_equal(samples_of(file), samples_of(head) > 300)
    assert result[0].values["volume.voxels.1"] == (samples_of(head) > 300).sum()
    assert (tmp_path / "out" / "labels.csv").exists()
    again = ss.segment_volume(head, net, tmp_path / "out", fragment=FRAGMENT, grid=GRID, model=model)
    assert len(again) == 1
