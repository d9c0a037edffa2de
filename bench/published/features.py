#!/usr/bin/env python3
"""Features of a slide's tiles the way they are usually made: `features.py SLIDE --model M.onnx [options]`.

What TRIDENT and CLAM do (https://github.com/mahmoodlab/TRIDENT, https://github.com/mahmoodlab/CLAM): a PyTorch
DataLoader whose workers read tiles by OpenSlide, scale them with Pillow where the level isn't the wanted one, and make
them float32 planes; batches go to the network as they come, in pinned memory where there is a GPU. As fast as that gets:
16 workers that keep their slide open and their batches ahead, no gradients, the clock starts when workers and network are
warm. The network is the same ONNX file, run by ONNX Runtime with the same settings, or by PyTorch (a ResNet-18 of
torchvision, in the precision that --half says).

Tiles are those of `--coords FILE.h5`, a file of features (pipeline's or TRIDENT's), else all of the slide. With a file
of the program's features and its model, `--check` says how far the two are apart.

Packages: torch, openslide-python, openslide-bin, onnxruntime (or onnxruntime-gpu), h5py, pillow; torchvision for
--engine torch.
"""

import argparse
import importlib.util
import json
import sys
import time

PACKAGES = {"torch": "torch", "openslide": "openslide-python openslide-bin", "numpy": "numpy", "PIL": "pillow"}


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("slide", metavar="SLIDE")
    parser.add_argument("--model", metavar="M.onnx", help="of --engine ort")
    parser.add_argument("--engine", choices=["ort", "torch"], default="ort")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--coords", metavar="FILE.h5", help="tiles to take; all of the slide without it")
    parser.add_argument("--tile", type=int, default=224, help="side of tiles without --coords")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--limit", type=int, default=0, help="tiles at most")
    parser.add_argument("--mean", type=float, nargs=3, default=[0.485, 0.456, 0.406])
    parser.add_argument("--std", type=float, nargs=3, default=[0.229, 0.224, 0.225])
    parser.add_argument("--half", action="store_true", help="float16, of --engine torch")
    parser.add_argument("--check", action="store_true", help="compare with the features in --coords")
    options = parser.parse_args(arguments)
    if options.engine == "ort" and not options.model:
        parser.error("--model is missing")
    if options.check and not options.coords:
        parser.error("--check wants --coords")
    return options


def tiles_of(options):
    """Corners in level 0 pixels, side of a tile, side in level 0, and the features that are there already."""
    import numpy
    import openslide

    if not options.coords:
        with openslide.OpenSlide(options.slide) as slide:
            width, height = slide.dimensions
        corners = [(x, y) for y in range(0, height - options.tile + 1, options.tile)
                   for x in range(0, width - options.tile + 1, options.tile)]
        return numpy.array(corners, "int64").reshape(-1, 2), options.tile, options.tile, None
    import h5py

    with h5py.File(options.coords, "r") as file:
        coords = file["coords"]
        features = file["features"][:] if "features" in file else None
        return coords[:], int(coords.attrs["tile_size"]), int(coords.attrs["patch_size_level0"]), features


def make_dataset(options, corners, side, level0_side, kind):
    import numpy
    import openslide
    import torch
    from PIL import Image

    mean = torch.tensor(options.mean).view(3, 1, 1)
    deviation = torch.tensor(options.std).view(3, 1, 1)

    class Tiles(torch.utils.data.Dataset):
        slide = None  # each worker's own

        def __len__(self):
            return len(corners)

        def __getitem__(self, index):
            if self.slide is None:
                self.slide = openslide.OpenSlide(options.slide)
                downsample = level0_side / side
                self.level = self.slide.get_best_level_for_downsample(downsample * 1.02)
                self.read = round(level0_side / self.slide.level_downsamples[self.level])
            x, y = corners[index]
            tile = self.slide.read_region((int(x), int(y)), self.level, (self.read, self.read)).convert("RGB")
            if self.read != side:
                tile = tile.resize((side, side), Image.BILINEAR)
            planes = torch.from_numpy(numpy.array(tile)).permute(2, 0, 1).to(torch.float32).div_(255)
            return planes.sub_(mean).div_(deviation).to(kind)

    return Tiles()


def make_network(options, side):
    """A function from a batch on the host to features on the host, and the type of number that it takes."""
    import torch

    if options.engine == "torch":
        from torchvision.models import resnet18

        network = resnet18(weights=None)
        network.fc = torch.nn.Identity()
        kind = torch.float16 if options.half else torch.float32
        network = network.eval().to(options.device, kind)

        def run_torch(batch):
            with torch.inference_mode():
                return network(batch.to(options.device, kind, non_blocking=True)).float().cpu().numpy()

        return run_torch, torch.float32
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    provider = "CPUExecutionProvider"
    if options.device == "cuda":
        provider = ("CUDAExecutionProvider", {"cudnn_conv_algo_search": "HEURISTIC", "use_tf32": "0"})
    session = onnxruntime.InferenceSession(options.model, settings, providers=[provider])
    if options.device == "cuda" and session.get_providers()[0] != "CUDAExecutionProvider":
        raise SystemExit("features.py: ONNX Runtime can't use the GPU")
    takes = session.get_inputs()[0]

    def run_ort(batch):
        # The last batch has the shape of the others, as the program's has.
        missing = options.batch - len(batch)
        if missing:
            batch = torch.cat([batch, batch.new_zeros((missing, 3, side, side))])
        return session.run(None, {takes.name: batch.numpy()})[0][: options.batch - missing]

    return run_ort, torch.float16 if "float16" in takes.type else torch.float32


def main(arguments):
    options = parse(arguments)
    wanted = dict(PACKAGES)
    if options.engine == "ort":
        wanted["onnxruntime"] = "onnxruntime"
    else:
        wanted["torchvision"] = "torchvision"
    if options.coords:
        wanted["h5py"] = "h5py"
    missing = [f"{name} (pip install {package})" for name, package in wanted.items() if not importlib.util.find_spec(name)]
    if missing:
        print("features.py: missing Python packages: " + ", ".join(missing), file=sys.stderr)
        return 2
    import numpy
    import torch

    corners, side, level0_side, expected = tiles_of(options)
    if options.limit:
        corners = corners[: options.limit]
    network, kind = make_network(options, side)
    network(torch.zeros((options.batch, 3, side, side), dtype=kind))
    loader = torch.utils.data.DataLoader(make_dataset(options, corners, side, level0_side, kind), batch_size=options.batch,
                                         num_workers=options.workers, pin_memory=options.device == "cuda",
                                         persistent_workers=options.workers > 0)
    if options.workers:
        iter(loader)  # starts them; the loop below begins anew, with them
    made = []
    start = time.perf_counter()
    for batch in loader:
        made.append(network(batch))
    seconds = time.perf_counter() - start
    features = numpy.concatenate(made) if made else numpy.zeros((0, 1), "float32")
    result = {"engine": options.engine, "device": options.device, "workers": options.workers, "patches": len(features),
              "seconds": seconds, "patches_per_second": len(features) / seconds}
    if options.check:
        difference = numpy.abs(features.astype("float32") - expected[: len(features)])
        result["largest_difference"] = float(difference.max(initial=0))
        result["largest_feature"] = float(numpy.abs(expected).max(initial=0))
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
