"""Every command of README.md, ARCHITECTURE.md, CONTRIBUTING.md, docs/ and configs/, run as it stands, or listed with the
reason why not: `documents_test.py BUILD_DIR [CLASS ...]`. A command that isn't in COMMANDS below fails. Slides for benchmarks
are as large as documents say where SLIDESTREAM_TEST_WIDE is set, and small ones else."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

BUILD = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else None
DOCUMENTS = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", *sorted(str(file.relative_to(ROOT)) for file in ROOT.glob("docs/*.md")),
             *sorted(str(file.relative_to(ROOT)) for file in ROOT.glob("configs/**/*.toml"))]

# What a command line begins with, where one stands in a sentence or a comment.
BEGINS = (r"(?:pipeline|slidestream-submit|cmake|ninja|ctest|python3|taskset|scp|ssh|sbatch|scancel|nsys|ncu"
          r"|(?:scripts|build|bench|bin)/\S+|\w+_bench) +[^ :]")
# A name in a sentence, not a command; a form with a place for the reader's own words.
NAME = re.compile(r"pipeline (?:synth|sweep|merge|report|compare|status|verify|info|convert|stain|tissue|features|segment|volume)|scripts/\S+")
FORM = re.compile(r"(?:^|[ ./])[A-Z]{3,}(?![a-z0-9_.]*\.(?:md|toml))")

# Where a command is run: in a folder with what the page names (page), in a fresh clone (clone; cuda where there is
# CUDA's compiler), in one with the tests' build (built).
GPU = "needs a GPU"
COMMANDS = {
    "README.md": {
        "scripts/quickstart.sh": "clone",
        "scripts/test.sh": "not: this test is part of it",
        "cmake --install build/release --prefix ~/.local": "clone",
        "pipeline synth --out slide.svs --size 8192x6144": "by: tests/scripts/readme_test.py",
        "pipeline slides/ --config configs/h200x4.toml": "not: " + GPU,
        **{command: "by: tests/networks/models_test.py" for command in (
            "scripts/make-models.py models",
            "pipeline features slides/ --model models/features.onnx -o vectors",
            "pipeline segment slides/ --model models/unet.onnx -o classes")},
        "python3 -m venv env && env/bin/pip install .": "not: builds everything anew for minutes; scripts/build-wheel.sh does the same",
        **{command: "by: tests/scripts/readme_test.py" for command in (
            "pipeline convert slide.svs slide.ome.tif",
            "pipeline stain slide.svs -o normalised",
            "pipeline tissue slide.svs -o found",
            "pipeline slides/ --operators stain,tissue -o both",
            "pipeline slide.svs")},
    },
    "docs/formats.md": {
        "pipeline info series/level-0.dcm": "page",
        "pipeline series/ -o results": "page",
        "pipeline convert slide.svs slide.ome.tif --set input.colour=srgb": "by: tests/cli/icc_profiles_test.py",
        "pipeline info --check slides/": "by: tests/cli/openslide_test.py",
        "pipeline synth --format dicom --out series": "page",
    },
    "docs/commands.md": {
        "cmake --preset cuda && ninja -C build/cuda": "cuda",
        "scripts/bundle.sh": "cuda",
        "scp -r build/bundle node: && ssh node bundle/bin/pipeline --help": "cuda",
        "cmake --preset cuda": "cuda",
        "scripts/make-pictures.py build/release/pipeline": "by: tests/scripts/make_pictures_test.py",
        "pipeline --print-config": "page",
        # The list by example.
        **{command: "by: tests/scripts/readme_test.py" for command in (
            "pipeline synth --out slide.svs --size 8192x6144",
            "mkdir slides && cp slide.svs slides/other.svs",
            "echo slide.svs > more.list",
            "pipeline info slide.svs",
            "pipeline convert slide.svs slide.ome.tif",
            "pipeline stain slide.svs -o normalised",
            "pipeline tissue slide.svs -o found",
            "pipeline slide.svs",
            "pipeline slides/ more.list -o many --maps npy",
            "pipeline slides/ --operators stain,tissue -o both",
            "pipeline slide.svs -c configs/demo.toml -o demo",
            "pipeline slide.svs -s analysis.stride=64 -o denser",
            "pipeline --print-config > my.toml",
            "pipeline slides/ -c my.toml --dry-run",
            "pipeline slide.svs -o traced --trace trace.json",
            "pipeline sweep slide.svs -o swept --over pipeline.queue_depth=1,4",
            "pipeline compare slidestream-out denser",
            "pipeline report many --html report.html",
            "pipeline status many",
            "pipeline verify many",
            "pipeline --help")},
    },
    "docs/clusters.md": {
        "pipeline --print-config > cohort.toml": "page",
        "pipeline cohort.list --shard 1/3 --out results/part-1": "page",
        "pipeline cohort.list --shard 2/3 --out results/part-2": "page",
        "pipeline cohort.list --shard 3/3 --out results/part-3": "page",
        "pipeline merge results/part-* --out results": "page",
        "pipeline status results/part-1": "page",
        "slidestream-submit cohort.list --nodes 4 --gpus-per-node 1 --config cohort.toml --out cohort": "page",
    },
    "docs/configuration.md": {"pipeline --print-config": "page"},
    "SECURITY.md": {"pipeline --version": "page"},
    "docs/security.md": {
        "systemd-run --user --scope -p MemoryMax=4G -p MemorySwapMax=0 -p TasksMax=256 pipeline cohort.list -o results":
            "not: needs a session of systemd",
        "slidestream-submit cohort.list --nodes 4 --cpus-per-task 16 --out cohort --sbatch=--mem=16G --sbatch=--time=1-00:00:00":
            "page",
    },
    "docs/decoder.md": {
        "pipeline synth --out ycc420.svs --size 16384x16384 --distinct 300 --levels 1": "page",
        "build/cuda/bench/jpeg_gpu_bench ycc420.svs cmu-1-small-region.svs --tiles 0,16384,1024": "not: " + GPU,
        "bench/decode_table.py --pipeline build/cuda/pipeline --bench build/cuda/bench": "not: " + GPU,
        "build/cuda/bench/jpeg_gpu_bench cmu-1-small-region.svs": "not: " + GPU,
        "jpeg2000_gpu_bench tcga-cr-7395.svs": "not: " + GPU,
        "pipeline synth --out lossless.svs --size 2048x2048 --codec jpeg2000 --quality 100 --levels 1": "page",
        "jpeg2000_gpu_bench lossless.svs --tiles 16384,1024": "not: " + GPU,
        "python3 bench/published/jpeg2000.py slide.svs --bench build/cuda/bench/jpeg2000_gpu_bench":
            "not: " + GPU + ", nvJPEG2000 and nvImageCodec",
    },
    "docs/reliability.md": {
        "scripts/check.sh operators": "not: a build of its own takes minutes",
        "scripts/loaded.sh 20": "not: it takes hours",
    },
    "CONTRIBUTING.md": {
        "scripts/check.sh operators": "not: a build of its own takes minutes",
        'build/dev/tests/operators/operators_kernels_test -tc="sobel*"': "not: the build above",
        "scripts/quickstart.sh --cuda": "not: README.md's without the option is run, kernels are by its preset",
        "scripts/test.sh --cuda": "not: this test is part of it",
    },
    "docs/encoder.md": {
        "pipeline synth --out dense.svs --size 4096x4096 --distinct 300 --levels 1": "page",
        "encode_gpu_bench cmu-1-small-region.svs": "not: " + GPU,
    },
    "docs/images.md": {
        "pipeline convert slide.svs slide.ome.tif": "page",
        "pipeline convert slides/ --to ome-tiff --out converted": "page",
        "pipeline convert slides/ --to ome-zarr --out chunks": "page",
        "pipeline convert slide.svs slide.dzi": "page",
        "pipeline convert slide.svs slide.dicom": "page",
        "pipeline convert slide.svs case.dicom --compression copy -s dicom.attributes=case.toml": "page",
        "pipeline convert slide.svs exact.ome.tif --compression zstd": "page",
        "pipeline convert slide.svs same.ome.tif --compression copy": "page",
        "pipeline convert slide.svs quarter.ome.tif --level 1 -Q 75": "page",
        "pipeline info slide.ome.tif": "page",
        "pipeline status slide.ome.tif": "by: tests/cli/slow_storage_test.py",
        "pipeline slides/ --out edges -s operators.run=sobel -s image.format=ome-tiff": "page",
    },
    "docs/volumes.md": {
        "pip install onnx onnxruntime": "by: scripts/install-deps.sh",
        "scripts/make-models.py models slant_small": "by: tests/volume/volume_test.py",
        "scripts/make-models.py models unet_64": "by: tests/volume/volume_test.py",
        "pipeline synth --volume --out head.nii.gz": "page",
        "pipeline volume head.nii.gz --networks models/slant_small -o labels":
            "not: 13 s of processor time; tests/volume/volume_test.py has smaller networks",
        "pipeline volume head.nii.gz --networks models/unet_64.onnx -o out -s volume.fragment=[64,64,64] -s volume.grid=[3,4,3]":
            "by: tests/volume/volume_test.py",
        "pipeline volume head.nii.gz --networks models/unet_64.onnx -o resampled -s volume.fragment=[64,64,64] -s volume.grid=[3,5,4] "
        "-s volume.spacing=[1.0,0.8,0.8]":
            "by: tests/volume/volume_test.py",
        "python3 bench/published/slant.py --networks models/slant --make slant": "not: " + GPU,
    },
    "docs/tissue.md": {
        "pipeline tissue slides/ -o masks": "page",
        "pipeline tissue slides/ --model found.onnx -o masks": "by: tests/networks/tissue_test.py",
        "pip install numpy scipy tifffile imagecodecs": "not: PyPI",
        "python3 bench/tissue/scenes.py --pipeline build/release/pipeline":
            "not: minutes, and SciPy; tests/operators/operators_test.py has four of its scenes",
    },
    "docs/performance.md": {
        "build/release/bench/pipeline_bench --benchmark_filter=whole_over_floor": "built",
        "pipeline synth --out headline.svs --size 65664x43264 --distinct 300": "page",
        "build/release/bench/spectrum_bench --benchmark_min_time=0.5": "built",
        "build/release/bench/colour_bench --benchmark_min_time=2": "built",
        "build/release/bench/pipeline_bench --benchmark_filter=decode": "built",
        "bench/convert_bench.py build/release/pipeline build/release/bench/jpeg_floor --size 16384x16384":
            "not: minutes, and libvips",
        "build/release/bench/read_bench --dir reads --rounds 3": "by: bench/CMakeLists.txt",
        "build/release/bench/host_bandwidth --dir /dev/shm --json host.json": "by: bench/CMakeLists.txt",
        "bench/host_model.py host.json --slide-mb 450 --gpu-ms 26.0 --copy-gbps 55.4": "by: tests/scripts/host_model_test.py",
        "bench/convert_bench.py build/cuda/pipeline --size 65664x43264 --threads 16 --only archive --slides 64 --at-once 8 16 "
        "--peer-slides 16 --set pipeline.memory_mib=8192 --set pipeline.queue_depth=8": "not: " + GPU,
        "python3 bench/published/compare.py slide.svs --pipeline build/cuda/pipeline":
            "not: " + GPU + ", cuCIM, CuPy and PyTorch",
        "scripts/gpu-check.sh --only bench": "not: " + GPU,
    },
    "docs/performance-log.md": {
        "build/release/bench/spectrum_bench --benchmark_filter='spectrum/(highway|highway-avx2|highway-sse4|fftw)/' "
        "--benchmark_min_time=0.05 --benchmark_repetitions=5 --benchmark_enable_random_interleaving=true": "built",
        "pipeline synth --out s.svs --size 32768x32768 --distinct 300 --levels 1": "not: the next one's slide",
        "pipeline convert s.svs --out out --backend cpu --levels 1": "not: takes long; another slide is converted so",
        "gpu_bench --only one_slide --trace one.json": "not: " + GPU,
        "build/cuda/bench/gpu_bench --only io --dir io": "not: " + GPU,
        "pipeline sweep slides --config configs/h200.toml --over pipeline.strip_height=256,512,1024,2048,4096 --over "
        "pipeline.queue_depth=1,2,4,8 --repeat 3 --overlap --out sweep": "not: " + GPU,
        "pipeline report sweep --html sweep.html": "not: of a sweep on a GPU; docs/tuning.md's is run",
        "gpu_bench --only several_gpus --dir /dev/shm/bench": "not: " + GPU,
        "gpu_bench --only convert": "not: " + GPU,
        "pipeline synth --out raw.tif --size 65664x43264 --distinct 300 --levels 1 --codec none --tile 1024 --bigtiff":
            "not: 8.8 GB",
        "python3 bench/published/whole_slide.py raw.tif out.zarr": "not: " + GPU,
        "time build/cuda/pipeline headline.svs --quiet --config configs/h100.toml --set pipeline.memory_mib=8192 "
        "--out started": "not: " + GPU,
        "gpu_bench --only startup": "not: " + GPU,
    },
    "docs/models.md": {
        "pip install onnx onnxruntime": "by: scripts/install-deps.sh",
        "scripts/make-models.py models": "by: tests/networks/models_test.py",
        "pipeline segment slides/ --model models/unet.onnx -o classes":
            "by: tests/networks/models_test.py",
        "pipeline features slides/ --model models/features.onnx -o vectors":
            "by: tests/networks/models_test.py",
        "pipeline features slides/ -s features.coords_only=true -s model.tile=256 --mpp 0.5 -o places":
            "by: tests/networks/models_test.py",
        **{"python3 bench/published/networks.py --pipeline build/cuda/pipeline" + more: "not: " + GPU
           for more in ("", " --only gpus,cores,mps")},
        "python3 bench/published/features.py slide.svs --model models/features.onnx --device cpu --workers 2 "
        "--coords vectors/features/slide.h5 --check": "not: PyTorch and OpenSlide for Python aren't installed for tests",
    },
    "docs/qupath.md": {
        "pipeline convert slides/ --to ome-tiff --out converted": "page",
        "pipeline tissue slides/ -o found": "page",
        "pipeline tissue slides/ --source geojson -o corrected": "page",
    },
    "docs/python.md": {
        "scripts/install-deps.sh": "not: changes the machine; scripts/test.sh begins with it",
        "python3 -m venv env": "not: a part of the next one",
        "env/bin/pip install .": "not: builds everything anew for minutes; scripts/build-wheel.sh does the same",
        "scripts/build-wheel.sh": "not: builds everything anew for minutes, and takes tools from PyPI",
        "scripts/test-wheel.sh": "not: wants the wheel that the one before makes",
        "cmake --preset release && cmake --build build/release --target pipeline jpeg_floor":
            "not: scripts/test.sh builds both",
        "bench/python/tiles_bench.py slide.svs build/release/bench/jpeg_floor": "by: tests/python/test_documents.py",
        "bench/python/run_bench.py build/release/pipeline slide.svs": "by: tests/python/test_documents.py",
        "bench/python/gpu_tiles_bench.py slide.svs": "not: " + GPU + ", PyTorch and cuCIM",
        "pipeline synth --out slide.svs --size 1536x1280 --mpp 0.5": "by: tests/python/test_documents.py",
    },
    "docs/notebook.md": {
        "pipeline synth --out slide.svs --size 8192x6144 --mpp 0.5": "by: tests/python/test_documents.py",
    },
    "docs/releasing.md": {
        "scripts/release.sh": "not: builds a release for an hour, as root; release_test.py tries its parts",
        "scripts/release.sh --cpu-only": "not: the same",
        "scripts/aarch64.sh": "not: cross-compiles for an hour",
    },
    "docs/tuning.md": {
        "pipeline --print-config > base.toml": "page",
        "pipeline --config configs/h200x4.toml cohort.csv --dry-run": "page",
        "pipeline --config configs/h200x4.toml --dry-run --assume-gpu h200": "page",
        "pipeline sweep --config base.toml slide.svs --over pipeline.strip_height=256,512,1024,2048 "
        "--over pipeline.queue_depth=1,2,4,8 --out sweep": "page",
        "pipeline --config sweep/tuned.toml slides/": "page",
        "pipeline report sweep --html sweep.html": "page",
        "pipeline compare baseline optimised --tolerance 0.001": "page",
    },
    "docs/using-results.md": {
        "pipeline report results --html report.html": "page",
        "pipeline report results --html report.html --manifest cohort.csv --cohort stain": "page",
        "pipeline report scanner-a scanner-b --html both.html": "page",
        "pipeline report results --html report.html --trace trace.json": "page",
        "pipeline report swept --html sweep.html": "page",
    },
    "configs/cpu.toml": {
        "pipeline --config configs/cpu.toml cohort.csv --out results": "page",
        "pipeline --config configs/cpu.toml --dry-run --threads 16": "page",
    },
    "configs/demo.toml": {
        "pipeline --config configs/demo.toml slide.svs": "page",
        "pipeline --print-config": "page",
        "pipeline --config configs/demo.toml --dry-run --backend cpu --threads 16": "page",
    },
    **{f"configs/{name}{gpus}.toml": {
        f"pipeline --config configs/{name}{gpus}.toml cohort.csv --out results": "not: " + GPU,
        f"pipeline --config configs/{name}{gpus}.toml --dry-run --assume-gpu {name} --threads 16": "page",
    } for name, gpus in (("a40", "x4"), ("h100", ""), ("h200", ""), ("h200", "x4"))},
    **{f"configs/published/{name}.toml": {f"pipeline --config configs/published/{name}.toml slide.svs": "not: " + GPU}
       for name in ("a", "b", "bplus")},
}


def commands_of_block(block):
    """Lines of a block of commands, joined where they go on, without what is said of them behind two blanks."""
    for line in re.sub(r"\\\n\s*", "", block).splitlines():
        command = re.split(r" {2,}", line.strip())[0]
        if command:
            yield command


def commands_of(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    if document.endswith(".toml"):
        text = "\n".join(line[1:] for line in text.splitlines() if line.startswith("#"))
        yield from (match.group(1) for match in re.finditer(rf"^ {{3}}({BEGINS}.*)$", text, re.M))
    else:
        for language, block in re.findall(r"^```(\w*)[^\n]*\n(.*?)^```", text, re.S | re.M):
            if language in ("", "sh", "bash", "console"):
                yield from commands_of_block(block)
        text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    for span in re.findall(r"`([^`]+)`", text):
        span = " ".join(span.split())
        if re.match(BEGINS, span) and not NAME.fullmatch(span) and not FORM.search(span):
            yield span


class Listed(unittest.TestCase):
    def test_every_command_is_run_or_has_a_reason(self):
        count = 0
        for document in DOCUMENTS:
            found = set(commands_of(document))
            count += len(found)
            with self.subTest(document=document):
                self.assertEqual(sorted(found), sorted(COMMANDS.get(document, {})),
                                 f"list every command of it, and no other, in {pathlib.Path(__file__).name}")
        self.assertGreater(count, 40)
        self.assertEqual(set(COMMANDS) - set(DOCUMENTS), set())

    def test_those_that_others_run_are_read_there(self):
        for document, commands in COMMANDS.items():
            for command, how in commands.items():
                kind, _, what = how.partition(": ")
                self.assertIn(kind, ("page", "clone", "cuda", "built", "by", "not"), command)
                self.assertEqual(kind in ("by", "not"), bool(what), command)
                if kind == "by":
                    self.assertTrue((ROOT / what).is_file(), f"{document}: {command}: {what}")

    def test_blocks_are_found(self):
        self.assertEqual(list(commands_of_block("a b \\\n    c  # what\n\nd      it does d\n")), ["a b c", "d"])


class Running(unittest.TestCase):
    """Runs commands of documents in self.folder."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name, "here")
        self.folder.mkdir()
        self.tools = pathlib.Path(folder.name, "tools")
        self.tools.mkdir()
        self.home = pathlib.Path(folder.name, "home")
        self.home.mkdir()
        self.environment = {**os.environ, "HOME": str(self.home), "PATH": f"{self.tools}:{os.environ['PATH']}"}

    def tool(self, name, text):
        (self.tools / name).write_text("#!/bin/bash\n" + text)
        (self.tools / name).chmod(0o755)

    def sh(self, command, timeout=600):
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=timeout, check=False)
        self.assertEqual(done.returncode, 0, f"{command}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        return done.stdout

    def run_commands(self, document, where, behind="", changed=str):
        """`behind`: options that come after the command's own, and win; `changed`: what a command becomes."""
        ran = 0
        for command in dict.fromkeys(commands_of(document)):
            if COMMANDS[document].get(command) == where:
                self.sh(changed(command) + behind, timeout=1500)
                ran += 1
        return ran


def smaller(command):
    """A command that makes a slide, with a smaller one, unless all is to be as it stands."""
    if "SLIDESTREAM_TEST_WIDE" in os.environ:
        return command
    if command.startswith("pipeline synth ") and "--size" not in command:
        return command + " --size 512x384"
    return re.sub(r"--size \d+x\d+", "--size 512x384", command)


class Pages(Running):
    """Commands that want the program and slides."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.made = pathlib.Path(folder.name)
        (cls.made / "slides").mkdir()
        for name, size, seed in ("slide.svs", "768x512", 1), ("slides/one.svs", "384x512", 2), ("slides/two.svs", "512x384", 3):
            subprocess.run([BUILD / "pipeline", "synth", "--out", cls.made / name, "--size", size, "--seed", str(seed)],
                           stdout=subprocess.DEVNULL, check=True)

    def setUp(self):
        super().setUp()
        (self.tools / "pipeline").symlink_to(BUILD / "pipeline")
        (self.tools / "slidestream-submit").symlink_to(ROOT / "scripts" / "slurm" / "slidestream-submit")
        self.tool("sbatch", "echo 1\n")
        shutil.copytree(ROOT / "configs", self.folder / "configs")
        shutil.copytree(self.made, self.folder, dirs_exist_ok=True)
        (self.folder / "cohort.list").write_text("slides/one.svs\nslides/two.svs\nslide.svs\n")
        (self.folder / "cohort.csv").write_text("path,stain\nslides/one.svs,HE\nslides/two.svs,PAS\n")

    def test_commands(self):
        self.assertEqual(self.run_commands("docs/commands.md", "page"), 1)

    def test_configuration(self):
        self.assertEqual(self.run_commands("docs/configuration.md", "page"), 1)

    def test_security(self):
        self.assertEqual(self.run_commands("SECURITY.md", "page"), 1)
        self.assertEqual(self.run_commands("docs/security.md", "page"), 1)

    def test_clusters(self):
        # Blocks come before what stands in sentences.
        self.sh("pipeline --print-config > cohort.toml")
        self.assertEqual(self.run_commands("docs/clusters.md", "page"), 7)
        table = (self.folder / "results" / "slides.csv").read_text().splitlines()
        self.assertEqual([line.split(",")[1] for line in table], ["status", "done", "done", "done"])
        self.assertTrue(list((self.folder / "cohort" / "slurm").glob("*.sh")))

    def test_qupath(self):
        # What QuPath would save as corrected.
        self.sh("pipeline tissue slides/ -o before && for name in one two; do "
                "cp before/images/$name.tissue.geojson slides/$name.geojson; done")
        self.assertEqual(self.run_commands("docs/qupath.md", "page"), 3)
        for name in ("converted/images/one.identity.ome.tif", "found/images/one.tissue.geojson",
                     "corrected/images/two.tissue.ome.tif"):
            self.assertTrue((self.folder / name).is_file(), name)

    def test_formats(self):
        self.assertEqual(self.run_commands("docs/formats.md", "page", changed=smaller), 3)
        self.assertTrue((self.folder / "results" / "slides.csv").is_file())

    def test_encoder(self):
        self.assertEqual(self.run_commands("docs/encoder.md", "page", changed=smaller), 1)

    def test_images(self):
        attributes = (ROOT / "docs" / "images.md").read_text().split("```toml\n")[1].split("```")[0]
        (self.folder / "case.toml").write_text(attributes)
        self.assertEqual(self.run_commands("docs/images.md", "page"), 11)
        self.assertIn(b"Doe^Jane", (self.folder / "case.dicom" / "level-0.dcm").read_bytes())
        for name in "slide.dicom/level-1.dcm", "slide.ome.tif", "slide.view.html", "chunks/images/two.identity.ome.zarr/.zattrs", "converted/images/one.identity.ome.tif", "edges/images/two.sobel.ome.tif":
            self.assertTrue((self.folder / name).exists(), name)

    def test_tuning(self):
        # What the page speaks of.
        self.sh("pipeline --print-config > base.toml && pipeline slide.svs -o baseline"
                " && pipeline slide.svs -o optimised -s pipeline.strip_height=256")
        self.assertEqual(self.run_commands("docs/tuning.md", "page"), 7)
        self.assertIn("strip_height", (self.folder / "sweep" / "tuned.toml").read_text())

    def test_using_results(self):
        # What the page speaks of.
        self.sh("pipeline slides/ -o results --maps npy --trace trace.json"
                " && pipeline slides/one.svs -o scanner-a && pipeline slides/two.svs -o scanner-b"
                " && pipeline sweep slide.svs -o swept --over pipeline.queue_depth=1,4 --repeat 2")
        self.assertEqual(self.run_commands("docs/using-results.md", "page"), 5)
        for name in "report.html", "both.html", "sweep.html":
            self.assertIn("</html>", (self.folder / name).read_text())

    def test_configurations(self):
        for document in COMMANDS:
            if not document.startswith("configs/"):
                continue
            self.run_commands(document, "page")
            for name, done in (("results", "configs/cpu.toml"), ("slidestream-out", "configs/demo.toml")):
                table = self.folder / name / "slides.csv"
                self.assertEqual(table.exists() and ",done," in table.read_text(), document == done)
                shutil.rmtree(self.folder / name, ignore_errors=True)

    def test_performance(self):
        self.assertEqual(self.run_commands("docs/performance.md", "page", changed=smaller), 1)

    def test_decoder(self):
        self.assertEqual(self.run_commands("docs/decoder.md", "page", changed=smaller), 2)


class Benchmarks(Running):
    def test_performance(self):
        (self.folder / "build").mkdir()
        (self.folder / "build" / "release").symlink_to(BUILD)
        if not (BUILD / "bench" / "pipeline_bench").exists():
            print("SKIPPED: this build is without pipeline_bench")
            self.skipTest("no benchmarks")
        # Whether they run is asked here, not what they measure.
        shorter = " --benchmark_min_time=0.001 --benchmark_repetitions=1"
        self.assertEqual(self.run_commands("docs/performance.md", "built", shorter), 4)
        self.assertEqual(self.run_commands("docs/performance-log.md", "built", shorter), 1)


class Cloned(Running):
    """Commands for a fresh clone, which build. The compiler's cache has what the build of these tests made."""

    def setUp(self):
        super().setUp()
        cache = (BUILD / "CMakeCache.txt").read_text()
        if not re.search(r"^CMAKE_CXX_COMPILER_LAUNCHER:\w+=.*ccache", cache, re.M) or shutil.which("ccache") is None:
            print("SKIPPED: this build is without ccache, and a fresh clone would take as long as it did")
            self.skipTest("no ccache")
        files = subprocess.run(["git", "ls-files", "-z", "-c", "-o", "--exclude-standard"], cwd=ROOT,
                               capture_output=True, text=True, check=True).stdout
        for name in filter(None, files.split("\0")):
            if (ROOT / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.folder / name)
        location = subprocess.run(["ccache", "--get-config", "cache_dir"], capture_output=True, text=True, check=True)
        self.environment.update(
            CCACHE_DIR=location.stdout.strip(), CCACHE_BASEDIR=str(self.folder), CCACHE_NOHASHDIR="1",
            CMAKE_C_COMPILER_LAUNCHER="ccache", CMAKE_CXX_COMPILER_LAUNCHER="ccache", CMAKE_CUDA_COMPILER_LAUNCHER="ccache")
        for name in "BUILD_TYPE", "CMAKE_BUILD_TYPE", "CUDAARCHS":
            self.environment.pop(name, None)

    def hide_packages_for_tests(self):
        """What `install-deps.sh --tests` installs, and `install-deps.sh` alone doesn't, isn't found by CMake."""
        text = (ROOT / "scripts" / "install-deps.sh").read_text()
        lists = dict(re.findall(r"^(\w*packages)=\((.*?)\)$", text, re.S | re.M))
        hidden = [name for name in re.findall(r"[\w.+-]+-dev\b", lists["test_packages"])
                  if not re.search(rf"\b{re.escape(name)}\b", lists["packages"])]
        self.assertIn("libbenchmark-dev", hidden)
        files = subprocess.run(["dpkg", "-L", *hidden], capture_output=True, text=True, check=False).stdout.split("\n")
        names = sorted({match.group(1) for match in map(re.compile(r".*/(.+?)(?:-config|Config)\.cmake").fullmatch, files)
                        if match})
        self.assertIn("benchmark", names)
        toolchain = self.tools / "hide.cmake"
        # For the GPUs of this build, which the compiler's cache has.
        gpus = re.search(r"^SLIDESTREAM_CUDA_ARCHITECTURES:\w+=(.+)$", (BUILD / "CMakeCache.txt").read_text(), re.M)
        toolchain.write_text("".join(f"set(CMAKE_DISABLE_FIND_PACKAGE_{name} ON)\n" for name in names)
                             + (f'set(SLIDESTREAM_CUDA_ARCHITECTURES "{gpus.group(1)}" CACHE STRING "")\n' if gpus else ""))
        self.environment["CMAKE_TOOLCHAIN_FILE"] = str(toolchain)
        left = self.tools / "pkgconfig"
        left.mkdir()
        searched = subprocess.run(["pkg-config", "--variable", "pc_path", "pkg-config"], capture_output=True, text=True,
                                  check=True).stdout.strip()
        for folder in searched.split(":"):
            for file in pathlib.Path(folder).glob("*.pc"):
                if str(file) not in files and not (left / file.name).exists():
                    (left / file.name).symlink_to(file)
        self.environment["PKG_CONFIG_LIBDIR"] = str(left)


class Clone(Cloned):
    def test_readme(self):
        self.hide_packages_for_tests()
        self.assertEqual(self.run_commands("README.md", "clone"), 2)
        self.assertIn(",done,", (self.folder / "slidestream-demo" / "results" / "slides.csv").read_text())
        shown = subprocess.run([self.home / ".local" / "bin" / "pipeline", "--help"], capture_output=True, text=True)
        self.assertIn("Usage: pipeline", shown.stdout)


class CudaClone(Cloned):
    def test_readme(self):
        if "-DSLIDESTREAM_HAVE_CUDA=1" not in (BUILD / "build.ninja").read_text():
            print("SKIPPED: no CUDA here (12.8 or newer, nvcc on the PATH)")
            self.skipTest("no CUDA")
        self.hide_packages_for_tests()
        # The libtiff for bundles that this tree has, or has from now on.
        made = subprocess.run([ROOT / "scripts" / "build-libtiff.sh"], capture_output=True, text=True)
        if "no source package" in made.stderr:
            print("SKIPPED: " + made.stderr.strip())
            self.skipTest("no libtiff for bundles")
        self.assertEqual(made.returncode, 0, made.stderr)
        (self.folder / "build").mkdir(exist_ok=True)
        made = pathlib.Path(made.stdout.strip()).parent
        (self.folder / "build" / made.name).symlink_to(made)
        node = self.home / "node"
        node.mkdir()
        self.tool("scp", f'[[ "$1 $3" == "-r node:" ]] && cp -r "$2" "{node}/"\n')
        self.tool("ssh", f'[[ "$1" == node ]] && cd "{node}" && env -i bash -c "${{*:2}}" >"{node}/said"\n')
        self.assertEqual(self.run_commands("docs/commands.md", "cuda"), 4)
        self.assertIn("Usage: pipeline", (node / "said").read_text())
        names = {entry.name for entry in (node / "bundle" / "bin").iterdir()}
        self.assertLessEqual({"pipeline", "gpu-check.sh", "gpu_pipeline_test", "gpu_bench", "jpeg_gpu_bench"}, names)
        self.assertFalse((self.folder / "build" / "cuda" / "bench" / "pipeline_bench").exists(), "packages were not hidden")


if __name__ == "__main__":
    unittest.main()
