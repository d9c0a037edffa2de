"""Whether an installed slidestream gives what the program of a plain build gives, for scripts/test-wheel.sh:
`wheel_check.py prepare PIPELINE FOLDER` writes slides, and what is right of them;
`wheel_check.py licences WHEEL...` fails where one has a library inside whose terms nobody read, or leaves out their text;
`wheel_check.py check FOLDER SCRATCH [--bare PREFIX...]` compares, and with --bare fails where a library lies in none of the
places that are named and isn't one of those that any Linux has."""

import filecmp
import os
import pathlib
import re
import subprocess
import sys
import zipfile

CODECS = ("jpeg420", "jpeg422", "jpeg444", "rgb", "grey", "jpeg2000", "none")
RUN = {"analysis.window": 128, "analysis.stride": 64}
FORMATS = ("ome-tiff", "ome-zarr", "dzi")


def prepare(pipeline, folder):
    folder.mkdir(parents=True)

    def program(*arguments):
        subprocess.run([pipeline, *map(str, arguments)], cwd=folder, check=True, stdout=subprocess.DEVNULL)

    for codec in CODECS:
        program("synth", "--out", f"{codec}.svs", "--size", "1100x724", "--codec", codec, "--tile", "128", "--levels", "2",
                "--mpp", "0.5")
        program("convert", f"{codec}.svs", f"{codec}.ome.tif", "--compression", "zstd", "--quiet")
    settings = [part for key, value in RUN.items() for part in ("-s", f"{key}={value}")]
    for image in FORMATS:
        program("jpeg420.svs", "-o", f"run-{image}", "-q", "-s", 'operators.run=["spectrum", "identity", "sobel", "tissue"]',
                "-s", f"image.format={image}", "--maps", "npy", *settings)


def check_pixels(ss, numpy, folder):
    for codec in CODECS:
        slide, exact = ss.Slide(folder / f"{codec}.svs"), ss.Slide(folder / f"{codec}.ome.tif")
        size = slide.levels[0].size
        right = exact.read_region((0, 0), 0, size)
        assert right.std() > 5, codec
        assert numpy.array_equal(slide.read_region((0, 0), 0, size), right), codec
        windows = 0
        for batch in ss.tiles(folder / f"{codec}.svs", size=96, step=64, batch=7, edge="pad"):
            for (x, y), pixels in zip(batch.coords, batch.pixels[:batch.count]):
                there = right[y:y + 96, x:x + 96]
                assert numpy.array_equal(pixels[:there.shape[0], :there.shape[1]], there), (codec, x, y)
                windows += 1
        assert windows > 150, windows


def files_below(folder):
    return sorted(file.relative_to(folder) for file in folder.rglob("*") if file.is_file())


def check_run(ss, folder, scratch):
    for image in FORMATS:
        ours, theirs = scratch / f"run-{image}", folder / f"run-{image}"
        result = ss.run(folder / "jpeg420.svs", ["spectrum", "identity", "sobel", "tissue"], ours, image={"format": image},
                        output={"maps": "npy"}, analysis={key.split(".")[1]: value for key, value in RUN.items()})
        assert [slide.done for slide in result] == [True], result.slides[0].error
        files = [file for kind in ("images", "maps") for file in files_below(theirs / kind)]
        assert len(files) > 3, files
        for kind in ("images", "maps"):
            assert files_below(ours / kind) == files_below(theirs / kind), image
            for file in files_below(theirs / kind):
                assert filecmp.cmp(ours / kind / file, theirs / kind / file, shallow=False), (image, file)
        assert filecmp.cmp(ours / "histograms.npy", theirs / "histograms.npy", shallow=False)


def check_features(ss, numpy, folder, scratch):
    """h5py has an HDF5 of its own, which the package's mustn't meet."""
    import h5py

    file = scratch / "features.h5"
    ss.map(folder / "jpeg420.svs", lambda pixels: pixels.mean(axis=(1, 2)), tile=128, batch=6, out=file, name="means")
    slide = ss.Slide(folder / "jpeg420.svs")
    with h5py.File(file) as features:
        coords, vectors = features["coords"][:], features["features"][:]
        assert features["features"].attrs["encoder"] == "means (Python)"
    assert vectors.shape == (54, 3), vectors.shape
    for (x, y), vector in zip(coords, vectors):
        region = slide.read_region((x, y), 0, (128, 128))
        if x + 128 <= 1100 and y + 128 <= 724:
            assert numpy.allclose(region.mean(axis=(0, 1)), vector, atol=1e-3), (x, y)


def check_libraries(prefixes):
    runtime = re.compile(r"/(ld-linux-[^/]*|lib(c|m|pthread|dl|rt|util|stdc\+\+|gcc_s|z))\.so(\.[0-9]+)*$")
    loaded = {line.split(maxsplit=5)[5].strip() for line in open("/proc/self/maps") if re.search(r"\.so(\.[0-9]+)*$", line)}
    inside = [name for name in loaded if "/slidestream.libs/" in name]
    assert {"libtiff", "libtbb"} <= {re.match(r"[a-z]+", os.path.basename(name)).group() for name in inside}, inside
    strangers = sorted(name for name in loaded
                       if not runtime.search(name) and not any(name.startswith(prefix + "/") for prefix in prefixes))
    assert not strangers, strangers


def check_licences(wheel):
    from permissive import PERMISSIVE

    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        others, = (name for name in names if name.endswith("/licenses/OTHERS.txt"))
        text = packed.read(others).decode()
        module, = (packed.read(name) for name in names if re.search(r"/_core[^/]*\.so$", name))
    libraries, _, compiled_in = text.partition("and, compiled into slidestream/_core:")
    texts = {name.rsplit("/", 1)[1] for name in names if "/licenses/others/" in name}
    inside = {re.sub(r"-[0-9a-f]{8}\.", ".", name.split("/")[1]) for name in names if name.startswith("slidestream.libs/")}
    listed = dict(line.split(": ", 1) for line in libraries.splitlines() if ".so" in line)
    assert inside == set(listed), inside ^ set(listed)
    for soname, origin in listed.items():
        assert soname.split(".so")[0] in PERMISSIVE, f"{soname}: read its licence, and name it in permissive.py"
        assert {"tiff": "libtiff"}.get(origin.split()[0], origin.split()[0]) in texts, origin
    compiled_in = {line.split()[0] for line in compiled_in.splitlines() if line} - {"None"}
    assert {"libhdf5", "nanobind", "nlohmann-json3-dev"} <= compiled_in <= texts, compiled_in ^ texts
    assert ("cuda" in compiled_in) == (b"cudaGetDeviceCount" in module), "CUDA's runtime"
    assert b"jbg_dec_init" not in module and not any("jbig" in name for name in names)


def main():
    if sys.argv[1] == "prepare":
        prepare(pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]))
        return
    if sys.argv[1] == "licences":
        for wheel in sys.argv[2:]:
            check_licences(wheel)
        return
    import numpy

    import slidestream as ss

    folder, scratch = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    check_pixels(ss, numpy, folder)
    check_run(ss, folder, scratch)
    check_features(ss, numpy, folder, scratch)
    try:
        ss.Slide(folder / "none.such")
    except ss.SlideError as error:
        assert "none.such" in str(error), error
    else:
        raise AssertionError("a slide that isn't there was opened")
    if "--bare" in sys.argv:
        check_libraries(sys.argv[sys.argv.index("--bare") + 1:])


if __name__ == "__main__":
    main()
