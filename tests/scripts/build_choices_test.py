"""Which builds have kernels for GPUs, and why: cmake/Cuda.cmake with a made-up nvidia-smi; and what the scripts that build
refuse."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NVCC = shutil.which("nvcc")


class Choices(unittest.TestCase):
    known = {}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.tools = self.folder / "tools"
        self.tools.mkdir()
        (self.folder / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.22)\nproject(choices LANGUAGES CXX)\n"
            f'option(SLIDESTREAM_WERROR "" OFF)\ninclude("{ROOT}/cmake/Cuda.cmake")\n')

    def gpus(self, *capabilities, status=0):
        tool = self.tools / "nvidia-smi"
        tool.write_text("#!/bin/sh\n" + "".join(f"echo {text}\n" for text in capabilities) + f"exit {status}\n")
        tool.chmod(0o755)

    def configure(self, *options, nvcc=False):
        """`nvcc`: whether CUDA's compiler can be found, where it is installed at all."""
        path = f"{self.tools}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path}
        for name in "CUDACXX", "CUDAARCHS", "CUDAHOSTCXX":
            environment.pop(name, None)
        hidden = [] if nvcc else ["-DCMAKE_CUDA_COMPILER=NOTFOUND"]
        hidden.append(f"-DSLIDESTREAM_NVIDIA_SMI={self.tools / 'nvidia-smi'}")
        # What CMake found out about the C++ compiler is the same each time.
        build = self.folder / "build"
        for file in build.glob("CMakeFiles/*/CMake*") if build.exists() else ():
            if file.name in ("CMakeCXXCompiler.cmake", "CMakeSystem.cmake"):
                self.known[file.relative_to(build)] = file.read_bytes()
        shutil.rmtree(build, ignore_errors=True)
        for file, content in self.known.items():
            (build / file).parent.mkdir(parents=True, exist_ok=True)
            (build / file).write_bytes(content)
        return subprocess.run(["cmake", "-S", self.folder, "-B", build, "-G", "Ninja", *hidden, *options],
                              env=environment, capture_output=True, text=True, check=False)

    def chosen(self, *options, nvcc=False):
        done = self.configure(*options, nvcc=nvcc)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line for line in done.stdout.splitlines() if line.startswith("-- slidestream: ")]
        self.assertEqual(len(lines), 1, done.stdout)
        return lines[0].removeprefix("-- slidestream: ")

    def refused(self, *options):
        done = self.configure(*options)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        return " ".join(done.stderr.split())

    def test_without_a_gpu(self):
        without = "CPU only, as no GPU is here; -DSLIDESTREAM_CUDA=ON compiles for GPUs all the same"
        self.assertEqual(self.chosen(), without)
        # The driver's tool is there, and there is no GPU, or one that the kernels don't support.
        self.gpus(status=9)
        self.assertEqual(self.chosen(), without)
        self.gpus("7.5")
        self.assertEqual(self.chosen(), without)
        self.assertIn("lists no GPU of compute capability 8.0",
                      self.refused("-DSLIDESTREAM_CUDA=ON", "-DSLIDESTREAM_CUDA_ARCHITECTURES=native"))

    def test_off(self):
        self.gpus("9.0")
        self.assertEqual(self.chosen("-DSLIDESTREAM_CUDA=OFF"), "CPU only, as SLIDESTREAM_CUDA is OFF")

    def test_without_a_compiler(self):
        self.gpus("9.0")
        self.assertIn("no CUDA compiler (12.8 or newer) was found", self.chosen())
        self.assertIn("put nvcc on the PATH or set CUDACXX", self.refused("-DSLIDESTREAM_CUDA=ON"))

    def test_with_a_compiler(self):
        if NVCC is None:
            print("SKIPPED: no nvcc here")
            self.skipTest("no nvcc")
        self.gpus("8.6", "9.0", "9.0", "12.0")
        self.assertRegex(self.chosen(nvcc=True), r"^CPU and GPU \(CUDA [0-9.]+, architectures 86-real, 90-real, 90-virtual\)$")
        self.assertRegex(self.chosen("-DSLIDESTREAM_CUDA_ARCHITECTURES=80-real", nvcc=True), "architectures 80-real\\)$")
        self.gpus(status=9)
        self.assertRegex(self.chosen("-DSLIDESTREAM_CUDA=ON", nvcc=True),
                         "architectures 80-real, 86-real, 89-real, 90-real, 90-virtual\\)$")


class Usage(unittest.TestCase):
    def test_unknown_options_start_nothing(self):
        for script in "quickstart.sh", "test.sh":
            done = subprocess.run([ROOT / "scripts" / script, "--gpu"], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""), script)
            self.assertIn("usage: ", done.stderr)

    def test_checks_of_unknown_things_start_nothing(self):
        for words, said in ((["check.sh"], "usage: "), (["check.sh", "nowhere"], "tests/nowhere/CMakeLists.txt is missing"),
                            (["check-deep.sh", "everything"], "no part is called everything; there are slow ")):
            done = subprocess.run([ROOT / "scripts" / words[0], *words[1:]], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()
