#!/usr/bin/env python3
"""Networks in the program beside the same networks alone, and beside a loader, on one machine:

    networks.py [--pipeline PATH] [--models DIR] [--json]

Alone: ONNX Runtime in Python with one batch that stays in the GPU's memory, run again and again by one thread. The
program: slides that it makes itself, under several names; its rate is that of batches between the first third of a run
and its end, from its trace, and the busy share the time in that span in which one of the network's kernels ran. The
loader: features.py, with 16 workers. Then what several sessions and fewer cores bring, and whether bits are the same.
Needs a GPU and these Python packages: numpy, onnxruntime-gpu; onnx where DIR lacks models, which are made there
(make-models.py);
for the loader what features.py needs.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGES = {"numpy": "numpy", "onnxruntime": "onnxruntime-gpu"}
PARTS = ("alone", "own", "loader", "bits", "gpus", "cores", "mps")
# Kernels of which each network has some, and nothing else here: a stream that runs one is the network's.
NETWORK_KERNELS = re.compile("gemm|convolve|cudnn|cutlass|xmma|fprop|winograd|pooling|nchw|nhwc", re.IGNORECASE)
MODELS = ("resnet18_half", "resnet18", "unet_half")


def fail(why):
    print(f"networks.py: {why}", file=sys.stderr)
    return 2


def say(*words):
    print(*words, file=sys.stderr, flush=True)


# The network alone: what the process of --measure does.


def alone(file, batch, device, seconds, options):
    """Batches a second of a network with `batch` tiles at a time, whose input and output stay where it computes."""
    import numpy
    import onnxruntime

    provider = "CPUExecutionProvider"
    if device == "cuda":
        provider = ("CUDAExecutionProvider", {"cudnn_conv_algo_search": "HEURISTIC", "use_tf32": "0", **options})
    settings = onnxruntime.SessionOptions()
    settings.use_deterministic_compute = True
    session = onnxruntime.InferenceSession(str(file), settings, providers=[provider])
    if device == "cuda" and session.get_providers()[0] != "CUDAExecutionProvider":
        raise SystemExit("ONNX Runtime can't use the GPU")
    takes = session.get_inputs()[0]
    kind = "float16" if "16" in takes.type else "float32"
    tiles = numpy.random.RandomState(1).standard_normal((batch, *takes.shape[1:])).astype(kind)
    binding = session.io_binding()
    binding.bind_ortvalue_input(takes.name, onnxruntime.OrtValue.ortvalue_from_numpy(tiles, device, 0))
    binding.bind_output(session.get_outputs()[0].name, device)
    for _ in range(3 if device == "cuda" else 1):
        session.run_with_iobinding(binding)
    runs, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        session.run_with_iobinding(binding)
        runs += 1
    return runs / (time.perf_counter() - start)


def measure_alone(options, model, **settings):
    # As the program does: channels last for networks of float16.
    settings = {**({"prefer_nhwc": "1"} if model.endswith("half") else {}), **settings}
    command = [sys.executable, __file__, "--measure", options.models / f"{model}.onnx", "--batch", options.batches[model],
               "--device", options.device, "--seconds", options.seconds, "--provider-options", json.dumps(settings)]
    run = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    if run.returncode:
        raise RuntimeError((run.stderr.strip().splitlines() or [f"status {run.returncode}"])[-1])
    return json.loads(run.stdout.splitlines()[-1])


# The program.


def command_of(options, model, slides, out, *settings, where="all"):
    command = [options.pipeline, *slides, "--out", out, "-s", 'operators.run=["model"]', "-s",
               f"model.file={options.models / model}.onnx", "-s", f"model.where={where}", "-s",
               f"model.provider={options.device}", "-s", f"model.batch={options.batches[model]}"]
    if options.runtime:
        command += ["-s", f"model.runtime={options.runtime}"]
    if options.device == "cuda":
        command += ["-s", "pipeline.backend=cuda", "-s", "decode.device=gpu", "-s", "pipeline.memory_mib=4096", "-s",
                    "pipeline.queue_depth=8", "-s", "gpu.memory_fraction=0.4"]
    if model.startswith("unet"):
        command += ["-s", "image.format=ome-tiff"]
    for setting in [*settings, *options.set]:
        command += ["-s", setting]
    return list(map(str, command))


def run_own(options, model, slides, *settings, cores=None, trace=True, keep=None):
    """Runs it and gives what its trace shows; its files are gone but for `keep`, a folder."""
    with tempfile.TemporaryDirectory(dir=options.dir) as name:
        folder = pathlib.Path(name)
        command = command_of(options, model, slides, folder / "out", *settings)
        command += ["--trace", str(folder / "trace.json")] if trace else []
        if cores:
            command = ["taskset", "-c", f"0-{cores - 1}", *command]
        start = time.perf_counter()
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=options.timeout)
        seconds = time.perf_counter() - start
        if run.returncode:
            raise RuntimeError("; ".join(run.stdout.strip().splitlines()[-2:]) or f"status {run.returncode}")
        found = read_trace(folder / "trace.json") if trace else {}
        found["run_seconds"] = round(seconds, 2)
        if keep:
            shutil.move(folder / "out", keep)
    return found


def union(spans):
    total, until = 0.0, -1e30
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


def read_trace(file):
    """Batches a second, and shares of that time: of the network's kernels, and of each stage's threads."""
    events = json.loads(pathlib.Path(file).read_text(encoding="utf-8"))
    events = [event for event in (events["traceEvents"] if isinstance(events, dict) else events) if event.get("ph") == "X"]
    batches = sorted(event["ts"] + event["dur"] for event in events if event["cat"] == "stage" and event["name"] == "network")
    first = len(batches) // 3
    begin, end = batches[first], batches[-1]
    span = max(end - begin, 1e-3)

    def inside(event):
        return max(begin, event["ts"]), min(end, event["ts"] + event["dur"])

    def spans_of(chosen):
        return [inside(event) for event in chosen if event["ts"] < end and event["ts"] + event["dur"] > begin]

    found = {"batches": len(batches), "span_seconds": span / 1e6,
             "batches_a_second": (len(batches) - 1 - first) / span * 1e6, "stages": {}}
    stages = {event["name"] for event in events if event["cat"] == "stage"}
    for stage in sorted(stages):
        each = spans_of(event for event in events if event["cat"] == "stage" and event["name"] == stage)
        found["stages"][stage] = round(sum(b - a for a, b in each) / span, 3)
    streams, names = {}, {}
    for event in events:
        if event["cat"] == "kernel":
            streams.setdefault((event["pid"], event["tid"]), []).append(event)
    networks, others = [], []
    for stream, kernels in streams.items():
        of_network = any(NETWORK_KERNELS.search(kernel["name"]) for kernel in kernels)
        (networks if of_network else others).extend(kernels)
        for kernel in kernels:
            place = ("network " if of_network else "other ") + kernel["name"]
            names[place] = names.get(place, 0.0) + kernel["dur"]
    devices = max(1, len({kernel["pid"] for kernel in networks}))
    if networks:
        found["busy"] = sum(union(spans_of(kernel for kernel in networks if kernel["pid"] == device))
                            for device in {kernel["pid"] for kernel in networks}) / span / devices
        found["other_kernels"] = union(spans_of(others)) / span
        found["streams"] = len(streams)
        found["kernels"] = {name: round(time / 1e3, 1) for name, time in
                            sorted(names.items(), key=lambda entry: -entry[1])[:12]}
        copies = [event for event in events if event["cat"] == "copy"]
        found["copies"] = union(spans_of(copies)) / span
    return found


def digest(folder):
    """Of the files in a folder, with their names."""
    found = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        found.update(file.name.encode() + file.read_bytes())
    return found.hexdigest()


class Bench:
    def __init__(self, options):
        self.options = options
        self.figures = []
        self.rates = {}
        self.slides = {}

    def slide(self, size, count=1):
        """`count` copies of a slide of that size."""
        folder = self.options.dir / f"slides-{size}"
        first = folder / "0.svs"
        if not first.exists():
            folder.mkdir()
            subprocess.run([str(self.options.pipeline), "synth", "--out", str(first), "--size", size, "--distinct", "300",
                            "--levels", "1"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for number in range(1, count):
            if not (folder / f"{number}.svs").exists():
                shutil.copyfile(first, folder / f"{number}.svs")
        return [folder / f"{number}.svs" for number in range(count)]

    def figure(self, name, value, unit, target=None, direction="at_least", **more):
        self.figures.append({"name": name, "value": value, "unit": unit, "target": target, "direction": direction, **more})
        say(f"{name}: {value if value is None else round(value, 4)} {unit}{'' if target is None else f' ({direction} {target})'}")

    def slides_of(self, model):
        options = self.options
        if model.startswith("unet"):
            return self.slide(options.image_size)
        return self.slide(options.size, options.slides)

    def alone(self):
        for model in self.options.only_models:
            batch = self.options.batches[model]
            self.rates[model] = measure_alone(self.options, model)
            self.figure(f"{model}_alone", self.rates[model] * batch, "tiles/s")
            for setting in self.options.try_settings:
                name, value = setting.split("=")
                self.figure(f"{model}_alone_{name}", measure_alone(self.options, model, **{name: value}) * batch, "tiles/s")

    def own(self):
        for model in self.options.only_models:
            for sessions in self.options.sessions:
                found = run_own(self.options, model, self.slides_of(model), f"model.sessions={sessions}",
                                keep=self.options.dir / f"{model}-{sessions}")
                say(model, sessions, "sessions:", json.dumps(found))
                wanted = sessions == self.options.sessions[0]
                name = model if wanted else f"{model}_{sessions}_sessions"
                self.figure(name, found["batches_a_second"] * self.options.batches[model], "tiles/s")
                if "busy" in found:
                    self.figure(f"{name}_busy", found["busy"], "of the time", 0.95 if wanted else None)
                if model in self.rates:
                    self.figure(f"{name}_over_alone", found["batches_a_second"] / self.rates[model], "times",
                                (0.98 if model.startswith("unet") else 0.95) if wanted else None)

    def loader(self):
        for model in self.options.only_models:
            features = sorted((self.options.dir / f"{model}-{self.options.sessions[0]}" / "features").glob("*.h5"))
            if not features:
                continue
            command = [sys.executable, HERE / "features.py", self.slide(self.options.size)[0], "--model",
                       self.options.models / f"{model}.onnx", "--coords", features[0], "--check", "--limit",
                       self.options.limit, "--workers", self.options.workers, "--device", self.options.device, "--batch",
                       self.options.batches[model]]
            run = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 timeout=self.options.timeout)
            if run.returncode:
                why = (run.stderr.strip().splitlines() or [f"features.py: status {run.returncode}"])[-1]
                self.figure(f"{model}_over_loader", None, "times", 4, **{"skipped" if run.returncode == 2 else "note": why})
                continue
            found = json.loads(run.stdout.splitlines()[-1])
            say(json.dumps(found))
            own = next(row["value"] for row in self.figures if row["name"] == model)
            self.figure(f"{model}_loader", found["patches_per_second"], "tiles/s")
            self.figure(f"{model}_over_loader", own / found["patches_per_second"], "times", 4)

    def bits(self):
        for model in self.options.only_models:
            kind = "images" if model.startswith("unet") else "features"
            kept = [self.options.dir / f"{model}-{sessions}" / kind for sessions in self.options.sessions]
            other = self.options.dir / f"{model}-strips"
            run_own(self.options, model, self.slides_of(model)[:1], "pipeline.strip_height=1024", "pipeline.queue_depth=2",
                    "pipeline.threads=3", trace=False, keep=other)
            # That run has but the first slide.
            first = sorted((other / kind).iterdir())[0].name
            made = {hashlib.sha256((folder / first).read_bytes()).hexdigest() for folder in [*kept, other / kind]}
            self.figure(f"{model}_other_bits", len(made) - 1, "runs", 0, "at_most")

    def gpus(self):
        """One GPU and two."""
        for model in self.options.only_models:
            rates, made = [], set()
            for count in (1, 2):
                folder = self.options.dir / f"{model}-{count}-gpus"
                found = run_own(self.options, model, self.slides_of(model), f"gpu.devices={list(range(count))}", keep=folder)
                say(model, count, "GPUs:", json.dumps(found))
                rates.append(found["batches_a_second"])
                made.add(digest(folder / ("images" if model.startswith("unet") else "features")))
            self.figure(f"{model}_2_gpus", rates[1] * self.options.batches[model], "tiles/s")
            self.figure(f"{model}_speedup_2_gpus", rates[1] / rates[0], "times")
            self.figure(f"{model}_other_bits_2_gpus", len(made) - 1, "runs", 0, "at_most")

    def cores(self):
        model = self.options.only_models[0]
        for cores in self.options.cores:
            found = run_own(self.options, model, self.slides_of(model)[:2], cores=cores)
            self.figure(f"{model}_{cores}_cores", found["batches_a_second"] * self.options.batches[model], "tiles/s")

    def mps(self):
        """Two processes at a time, without and with CUDA's MPS."""
        model = self.options.only_models[0]
        control = shutil.which("nvidia-cuda-mps-control")
        for name in ("processes", "mps"):
            if name == "mps":
                if not control:
                    self.figure(f"{model}_2_mps", None, "s", skipped="nvidia-cuda-mps-control isn't there")
                    return
                subprocess.run([control, "-d"], check=False)
            slides = self.slides_of(model)[:2]
            start = time.perf_counter()
            commands = [command_of(self.options, model, [slide], self.options.dir / f"{name}-{slide.stem}",
                                   "gpu.memory_fraction=0.2") for slide in slides]
            running = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for command in commands]
            statuses = [process.wait(timeout=self.options.timeout) for process in running]
            value = time.perf_counter() - start if not any(statuses) else None
            self.figure(f"{model}_2_{name}", value, "s", **({} if value else {"skipped": f"statuses {statuses}"}))
            if name == "mps":
                subprocess.run([control], input="quit\n", text=True, check=False)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pipeline", type=pathlib.Path, help="default: bin/pipeline of a bundle, else build/cuda/pipeline")
    parser.add_argument("--runtime", help="model.runtime; default: where onnxruntime's package lies")
    parser.add_argument("--models", type=pathlib.Path, help="a folder of the models; those that it lacks are made there. Default: a new one")
    parser.add_argument("--dir", type=pathlib.Path, help="for slides and results, which go at the end; default: a new one")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: to look at it, not at times")
    parser.add_argument("--only", default="alone,own,loader,bits", help=f"of {','.join(PARTS)}; default: the first four")
    parser.add_argument("--only-models", default=",".join(MODELS), help=f"of {','.join(MODELS)}; default: all")
    parser.add_argument("--size", default="65664x43264", help="of the slides for features; default 65664x43264")
    parser.add_argument("--slides", type=int, default=3, help="of these in a run; default 3")
    parser.add_argument("--image-size", default="32768x21632", help="of the slide for images; default 32768x21632")
    parser.add_argument("--batch", type=int, default=0, help="tiles at a time; 0: 256 for features, 16 for images")
    parser.add_argument("--sessions", default="0", help="a GPU, such as 0,1,2, of which the first is judged; 0, the default: "
                        "as many as the program takes")
    parser.add_argument("--cores", default="8,4,2", help="for the part cores; default 8,4,2")
    parser.add_argument("--workers", type=int, default=16, help="the loader's; default 16")
    parser.add_argument("--limit", type=int, default=20000, help="tiles for the loader; default 20,000")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each network alone; default 3")
    parser.add_argument("--timeout", type=float, default=200, help="of each run, s; default 200")
    parser.add_argument("--try-settings", default="", help="of the CUDA provider, for the network alone: prefer_nhwc=1,...")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the program, as its own --set")
    parser.add_argument("--json", action="store_true", help="JSON instead of lines")
    parser.add_argument("--measure", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--provider-options", default="{}", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.only = options.only.split(",")
    options.only_models = options.only_models.split(",")
    if not set(options.only) <= set(PARTS) or not set(options.only_models) <= set(MODELS):
        parser.error("--only or --only-models names something else")
    options.sessions = [int(each) for each in options.sessions.split(",")]
    options.cores = [int(each) for each in options.cores.split(",")]
    options.try_settings = [each for each in options.try_settings.split(",") if each]
    options.batches = {model: options.batch or (16 if model.startswith("unet") else 256) for model in MODELS}
    bundled = ROOT / "bin" / "pipeline"
    options.pipeline = options.pipeline or (bundled if bundled.exists() else ROOT / "build" / "cuda" / "pipeline")
    return options


def missing_models(options):
    folder = options.models
    return [model for model in options.only_models if not (folder and (folder / f"{model}.onnx").exists())]


def make_models(options):
    models = missing_models(options)
    if not models:
        return
    makers = [ROOT / "scripts" / "make-models.py", HERE.parent / "make-models.py"]
    maker = next(file for file in makers if file.exists())
    say(f"networks.py: makes {', '.join(models)} in {options.models}")
    subprocess.run([sys.executable, maker, options.models, *models], check=True)


def missing_packages(options):
    wanted = dict(PACKAGES)
    if missing_models(options) and not options.measure:
        wanted["onnx"] = "onnx"
    return [f"{name} (pip install {package})" for name, package in wanted.items() if not importlib.util.find_spec(name)]


def main(arguments):
    options = parse(arguments)
    missing = missing_packages(options)
    if missing:
        return fail("missing Python packages: " + ", ".join(missing))
    if options.measure:
        settings = json.loads(options.provider_options)
        print(json.dumps(alone(options.measure, options.batch, options.device, options.seconds, settings)))
        return 0
    if not os.access(options.pipeline, os.X_OK):
        return fail(f"{options.pipeline} is no program: name it with --pipeline")
    import onnxruntime

    if options.device == "cuda" and "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        return fail("this onnxruntime is one without CUDA (pip install onnxruntime-gpu)")
    if not options.runtime:
        options.runtime = importlib.util.find_spec("onnxruntime").submodule_search_locations[0]
    status = 0
    with tempfile.TemporaryDirectory(dir=options.dir) as folder:
        options.dir = pathlib.Path(folder)
        options.models = options.models or options.dir / "models"
        try:
            make_models(options)
        except (OSError, subprocess.SubprocessError) as error:
            return fail(f"the models can't be made in {options.models}: {error}")
        bench = Bench(options)
        for part in options.only:
            try:
                getattr(bench, part)()
            except (RuntimeError, OSError, subprocess.SubprocessError, StopIteration, IndexError, KeyError) as error:
                say(f"networks.py: {part}: {error!r}")
                bench.figure(part, None, "", note=str(error))
                status = 1
    if options.json:
        print(json.dumps({"figures": bench.figures}, indent=1))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
