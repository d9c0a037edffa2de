#!/usr/bin/env python3
"""`pipeline volume` beside the published way of segmenting volumes by 27 networks, on one machine:

    slant.py [--pipeline PATH] [--networks DIR] [--device cuda|cpu] [--only PART,...] [--json]

Sequential: one process loads each network, runs it on its fragment, and votes, volume after volume. Alone: each network
on a fragment that stays in memory, loaded and warm; the sum over all is what no program can go below with one stream.
MONAI: its sliding-window inferer with the first network, where monai and torch are installed. Own: the program, with one
volume and several, with fewer threads and cores, with one GPU and two, and as several processes with and without MPS.
"seconds" include the start, "run" doesn't. Memory is that of the program's process, and of the GPU by nvidia-smi, twice a
second: at most, and over time (seconds, host, GPU, how busy each GPU was in %). "budget" is what networks may take of a GPU,
as --dry-run says.

Needs the packages numpy, nibabel and onnxruntime (onnxruntime-gpu for cuda); onnx where DIR isn't there: then
make-models.py makes the networks named by --make.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PARTS = ("sequential", "alone", "monai", "own", "threads", "gpus", "mps")


def say(*words):
    print(*words, file=sys.stderr, flush=True)


# What processes of their own do: --measure PART.


def providers(device):
    if device == "cpu":
        return ["CPUExecutionProvider"]
    return [("CUDAExecutionProvider", {"cudnn_conv_algo_search": "HEURISTIC", "use_tf32": "0",
                                       "arena_extend_strategy": "kSameAsRequested"})]


def session_of(file, device, threads):
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.use_deterministic_compute = True
    if threads:
        settings.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(file), settings, providers=providers(device))
    if device == "cuda" and session.get_providers()[0] != "CUDAExecutionProvider":
        raise SystemExit("ONNX Runtime can't use the GPU")
    return session


def read(path):
    """A volume as z, y, x."""
    import nibabel
    import numpy

    return numpy.asarray(nibabel.load(path).dataobj).T.astype("f4")


def begins_of(shape, fragment, grid):
    """Of each fragment, in row-major order."""
    axes = [[(2 * i * (size - tile) + n - 1) // (2 * (n - 1)) if n > 1 else 0 for i in range(n)]
            for size, tile, n in zip(shape, fragment, grid)]
    return [(z, y, x) for z in axes[0] for y in axes[1] for x in axes[2]]


def network_files(folder):
    """In the order of fragments: by the numbers in their names, as the program has them."""
    found = [file for file in folder.glob("*.onnx") if not file.name.startswith(".")]
    return sorted(found, key=lambda file: ([int(number) for number in re.findall("[0-9]+", file.name)], file.name))


def fragment_of(session):
    return session.get_inputs()[0].shape[2:]


def sequential(options):
    """Seconds of a volume after the other, each network loaded for its fragment; the labels of each go to a file."""
    import numpy

    seconds = []
    for number, path in enumerate(options.volumes):
        start = time.perf_counter()
        volume = read(path)
        votes = None
        session = session_of(options.files[0], options.device, options.threads)
        tile = fragment_of(session)
        for place, file in zip(begins_of(volume.shape, tile, options.grid), options.files):
            session = session_of(file, options.device, options.threads)
            takes = session.get_inputs()[0]
            window = tuple(slice(begin, begin + side) for begin, side in zip(place, tile))
            kind = "f2" if "16" in takes.type else "f4"
            given = session.run(None, {takes.name: volume[window][None, None].astype(kind)})[0][0]
            if votes is None:
                votes = numpy.zeros((len(given), *volume.shape), "u1")
            own = given.argmax(axis=0)
            at = numpy.indices(own.shape, sparse=True)
            votes[(slice(None), *window)][(own, *at)] += 1
        numpy.save(options.out / f"sequential-{number}.npy", votes.argmax(axis=0).astype("u1"))
        seconds.append(time.perf_counter() - start)
    return {"seconds": sum(seconds), "first": seconds[0]}


def alone(options):
    """Seconds that all networks take for a fragment each, on data that stays where they compute."""
    import numpy
    import onnxruntime

    total = 0.0
    for file in options.files:
        session = session_of(file, options.device, options.threads)
        takes = session.get_inputs()[0]
        kind = "float16" if "16" in takes.type else "float32"
        data = numpy.random.RandomState(1).standard_normal(takes.shape).astype(kind)
        binding = session.io_binding()
        binding.bind_ortvalue_input(takes.name, onnxruntime.OrtValue.ortvalue_from_numpy(data, options.device, 0))
        binding.bind_output(session.get_outputs()[0].name, options.device)
        times = []
        for _ in range(4):
            start = time.perf_counter()
            session.run_with_iobinding(binding)
            times.append(time.perf_counter() - start)
        total += min(times[1:])
    return {"seconds": total * len(options.volumes), "per_volume": total}


def monai(options):
    """Seconds of MONAI's inferer with the first network for all windows, an overlap of a half."""
    import torch
    from monai.inferers import sliding_window_inference

    session = session_of(options.files[0], options.device, options.threads)
    name = session.get_inputs()[0].name
    kind = "f2" if "16" in session.get_inputs()[0].type else "f4"

    def run(windows):
        return torch.from_numpy(session.run(None, {name: windows.numpy().astype(kind)})[0])

    start = time.perf_counter()
    for path in options.volumes:
        volume = torch.from_numpy(read(path))[None, None]
        sliding_window_inference(volume, fragment_of(session), 1, run, overlap=0.5).argmax(dim=1)
    return {"seconds": time.perf_counter() - start}


def measured(options, part, volumes, out, threads=0):
    command = [sys.executable, __file__, "--measure", part, "--device", options.device, "--networks", options.networks,
               "--threads", threads, "--grid", ",".join(map(str, options.grid)), "--out", out, "--volumes", *volumes]
    run = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         timeout=options.timeout, check=False)
    if run.returncode:
        raise RuntimeError((run.stderr.strip().splitlines() or [f"status {run.returncode}"])[-1])
    return json.loads(run.stdout.splitlines()[-1])


# The program.


class Memory(threading.Thread):
    """What a process has in memory, the GPU that has most, and how busy GPUs are: looked at twice a second."""

    def __init__(self, pid, on_gpu):
        super().__init__(daemon=True)
        self.pid, self.on_gpu, self.looks, self.over = pid, on_gpu, [], threading.Event()
        self.start()

    def run(self):
        start = time.perf_counter()
        while True:
            try:
                with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
                    host = sum(-(-int(line.split()[1]) // 1024) for line in status if line.startswith("VmRSS"))
            except OSError:
                return
            gpus = []
            if self.on_gpu:
                asked = subprocess.run(["nvidia-smi", "--query-gpu=memory.used,utilization.gpu", "--format=csv,noheader,nounits"],
                                       capture_output=True, text=True, check=False)
                gpus = [tuple(map(int, pair)) for pair in re.findall(r"^(\d+), (\d+)$", asked.stdout, re.MULTILINE)]
            self.looks.append((round(time.perf_counter() - start, 1), host, max((used for used, _ in gpus), default=0),
                               [busy for _, busy in gpus]))
            if self.over.wait(0.5):
                return

    def found(self):
        self.over.set()
        self.join()
        shares = list(zip(*(look[3] for look in self.looks)))
        return {"host_mib": max((look[1] for look in self.looks), default=0),
                "gpu_mib": max((look[2] for look in self.looks), default=0),
                "gpu_busy": [round(sum(share) / len(share)) for share in shares], "over_time": self.looks}


def command_of(options, volumes, *settings):
    command = [options.pipeline, "volume", *volumes, "--networks", options.networks, "-s", f"model.provider={options.device}",
               "-s", f"volume.grid=[{','.join(map(str, options.grid))}]", "-s", f"volume.fragment={options.fragment}"]
    for setting in [*settings, *options.set]:
        command += ["-s", setting]
    return list(map(str, command))


def said(pattern, text):
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else ""


def seconds_said(text):
    """Of a run, without its start: "9.04 s", "1:20" or "1:02:20"."""
    seconds = 0.0
    for part in said(r"^speed +([\d.:]+)", text).split(":"):
        seconds = 60 * seconds + float(part or 0)
    return seconds


def budget(options, volumes):
    """What networks may take of a GPU."""
    run = subprocess.run([*command_of(options, volumes), "-o", str(options.out / "none"), "--dry-run"], capture_output=True,
                         text=True, timeout=options.timeout, check=False)
    return said(r"([\d.,]+ \w+) of a GPU may be taken", run.stdout)


def own(options, volumes, out, *settings, cores=None, environment=None, shards=1):
    """Seconds of the program, and what it took; several processes are shards of one run."""
    command = command_of(options, volumes, *settings)
    if cores:
        command = ["taskset", "-c", f"0-{cores - 1}", *command]
    start = time.perf_counter()
    runs = []
    for i in range(shards):
        part = [*command, "-o", str(out if shards == 1 else f"{out}-{i}")]
        part += ["--shard", f"{i + 1}/{shards}"] if shards > 1 else []
        runs.append(subprocess.Popen(part, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                     env={**os.environ, **(environment or {})}))
    memory = Memory(runs[0].pid, options.watches_gpus)
    longest = 0.0
    for run in runs:
        text, errors = run.communicate(timeout=options.timeout)
        if run.returncode:
            raise RuntimeError((errors.strip().splitlines() or [f"status {run.returncode}"])[-1])
        longest = max(longest, seconds_said(text))
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "run": longest, **memory.found()}


def mib_of(text):
    """Of memory as the program says it: "108.7 GiB"."""
    number, _, unit = text.partition(" ")
    return round(float(number.replace(",", "")) * {"KiB": 1 / 1024, "MiB": 1, "GiB": 1024, "TiB": 1 << 20}[unit]) if unit else ""


def write_trace(file, found):
    """Memory over time of each run of the program, a look per line, beside what its networks may take of a GPU."""
    may_take = mib_of(found.get("budget", ""))
    with open(file, "w", encoding="utf-8") as trace:
        trace.write("run,seconds,host_mib,gpu_mib,budget_mib\n")
        for name, value in found.items():
            for seconds, host, gpu, _ in value.get("over_time", ()) if isinstance(value, dict) else ():
                trace.write(f"{name},{seconds},{host},{gpu},{may_take}\n")


def same_labels(options, out):
    """Whether the program's labels are those of the sequential way, voxel by voxel, as a share."""
    import nibabel
    import numpy

    shares = []
    for i, path in enumerate(options.volumes):
        file = options.out / f"sequential-{i}.npy"
        made = out / "images" / f"{path.name.split('.')[0]}.labels.nii.gz"
        if file.exists() and made.exists():
            shares.append(float((numpy.load(file) == numpy.asarray(nibabel.load(made).dataobj).T).mean()))
    return min(shares, default=None)


def compare(options):
    found = {"device": options.device, "networks": len(options.files), "volumes": len(options.volumes)}
    one, all_volumes = options.volumes[:1], options.volumes
    options.watches_gpus = options.device == "cuda" and shutil.which("nvidia-smi") is not None
    if options.device == "cuda" and not options.watches_gpus:
        say("nvidia-smi isn't there: memory of GPUs, and how busy they are, are left out")

    def part(name, work):
        say(f"{name} ...")
        try:
            found[name] = work()
            say("  ", json.dumps(found[name]))
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            found[name] = {"failed": str(error)}
            say("   failed:", error)

    for name in ("sequential", "alone"):
        if name in options.parts:
            part(name, lambda name=name: measured(options, name, all_volumes, options.out))
    if "monai" in options.parts:
        if all(importlib.util.find_spec(package) for package in ("monai", "torch")):
            part("monai", lambda: measured(options, "monai", all_volumes, options.out))
        else:
            say("monai: left out, the packages monai and torch aren't there")
    if "own" in options.parts:
        part("own_one", lambda: own(options, one, options.out / "one"))
        part("own_all", lambda: own(options, all_volumes, options.out / "all"))
        if options.device == "cuda":
            found["budget"] = budget(options, one)
        found["labels_equal"] = same_labels(options, options.out / "all")
    cores = len(os.sched_getaffinity(0))
    if "threads" in options.parts:
        for threads in [n for n in (1, 2, 4, 8, 16, 32) if n <= cores]:
            part(f"own_threads_{threads}", lambda n=threads: own(options, all_volumes, options.out / f"threads-{n}",
                                                                 f"pipeline.threads={n}", cores=n))
    if "gpus" in options.parts and options.device == "cuda":
        for devices in ("[0]", "[0,1]"):
            part(f"own_gpus_{devices.count(',') + 1}", lambda d=devices: own(options, all_volumes, options.out / f"gpus{d}",
                                                                            f"gpu.devices={d}"))
    if "mps" in options.parts and options.device == "cuda":
        share = "gpu.memory_fraction=0.4"
        part("own_processes_2", lambda: own(options, all_volumes, options.out / "two", share, shards=2))
        if shutil.which("nvidia-cuda-mps-control"):
            part("own_processes_2_mps", lambda: with_mps(options, lambda environment: own(
                options, all_volumes, options.out / "mps", share, shards=2, environment=environment)))
    for name, over in (("own_all_over_alone", "alone"), ("own_all_over_sequential", "sequential")):
        if all("seconds" in found.get(key, {}) for key in ("own_all", over)):
            found[name] = found[over]["seconds"] / found["own_all"]["seconds"]
    return found


def with_mps(options, work):
    folder = options.out / "mps-control"
    folder.mkdir()
    environment = {"CUDA_MPS_PIPE_DIRECTORY": str(folder), "CUDA_MPS_LOG_DIRECTORY": str(folder)}
    subprocess.run(["nvidia-cuda-mps-control", "-d"], env={**os.environ, **environment}, check=True)
    try:
        return work(environment)
    finally:
        subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, env={**os.environ, **environment}, check=False)


def grid_from(text):
    """Fragments along z, y and x."""
    counts = re.split("[,x]", text)
    if len(counts) != 3 or not all(re.fullmatch("0*[1-9][0-9]*", count, re.ASCII) for count in counts):
        raise argparse.ArgumentTypeError(f"{text!r}: expected three whole numbers above 0, as 3,3,3 or 3x3x3")
    return list(map(int, counts))


def parsed(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pipeline", type=pathlib.Path, default=ROOT / "build" / "release" / "pipeline")
    parser.add_argument("--networks", type=pathlib.Path, default=ROOT / "build" / "slant-models" / "slant")
    parser.add_argument("--make", default="", help="slant, slant_half or slant_small: made beside --networks where it isn't there")
    parser.add_argument("--volumes", type=pathlib.Path, nargs="*", default=[], help="default: six heads that the program makes")
    parser.add_argument("--count", type=int, default=6, help="heads to make")
    parser.add_argument("--size", default="172x220x156", help="of these, z x y x x")
    parser.add_argument("--grid", type=grid_from, default=[3, 3, 3],
                        help="fragments along z, y and x: 3,3,3 or 3x3x3; a network for each")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--threads", type=int, default=0, help="of the sequential way; 0: as ONNX Runtime likes")
    parser.add_argument("--set", action="append", default=[], help="a setting of the program's runs")
    parser.add_argument("--only", type=lambda text: text.split(","), dest="parts", default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--timeout", type=int, default=3600)
    parser.add_argument("--out", type=pathlib.Path, help="a folder for results, which stay")
    parser.add_argument("--trace", type=pathlib.Path, help="a CSV file to write: memory over time beside the budget (part own)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure", choices=("sequential", "alone", "monai"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"--only: {part!r} is none of {', '.join(PARTS)}")
    return options


def main(arguments):
    options = parsed(arguments)
    if not options.networks.exists() and options.make:
        subprocess.run([sys.executable, ROOT / "scripts" / "make-models.py", options.networks.parent, options.make], check=True)
    options.files = network_files(options.networks)
    fragments = options.grid[0] * options.grid[1] * options.grid[2]
    if len(options.files) != fragments:
        print(f"slant.py: {options.networks}: {len(options.files)} networks; --grid wants {fragments} (--make slant)",
              file=sys.stderr)
        return 2
    if options.measure:
        print(json.dumps({"sequential": sequential, "alone": alone, "monai": monai}[options.measure](options)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        options.out = options.out or pathlib.Path(folder)
        options.out.mkdir(parents=True, exist_ok=True)
        options.fragment = fragment_of(session_of(options.files[0], "cpu", 1))
        for i in range(0 if options.volumes else options.count):
            options.volumes.append(options.out / f"head{i}.nii.gz")
            subprocess.run([options.pipeline, "synth", "--volume", options.size, "--seed", str(i), "--out", options.volumes[-1]],
                           check=True, stdout=subprocess.DEVNULL)
        found = compare(options)
        if options.trace:
            write_trace(options.trace, found)
    if options.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name}: {json.dumps(value)}")
    return 1 if any(isinstance(value, dict) and "failed" in value for value in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
