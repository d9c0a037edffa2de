"""bench/published/slant.py on small networks and the CPU: `PIPELINE=path TEST_PYTHON=path slant_test.py`."""

import json
import pathlib
import subprocess
import sys
import unittest

# Where packages are missing this ends, or begins anew with a Python that has them.
from volume_case import ENVIRONMENT, PIPELINE, ROOT, Volumes, network
from time_limits import time_limit  # noqa: E402

SCRIPT = ROOT / "bench" / "published" / "slant.py"
sys.path.insert(0, str(SCRIPT.parent))
import slant  # noqa: E402


class Slant(Volumes):
    def slant(self, *arguments, **more):
        command = [sys.executable, "-B", SCRIPT, "--pipeline", PIPELINE, "--device", "cpu", "--json", *arguments]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=time_limit(250), check=False,
                              env={**ENVIRONMENT, **more})

    def test_the_sequential_way_gives_the_same_labels(self):
        nets = self.folder / "slant"
        for i in range(27):
            network(nets / f"network-{i + 1}.onnx", seed=i)
        out = self.folder / "kept"
        done = self.slant("--networks", nets, "--size", "20x24x14", "--count", 2, "--threads", 1, "--out", out,
                          "--trace", self.folder / "trace.csv", "--only", "sequential,alone,own,threads")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual((found["networks"], found["volumes"], found["labels_equal"]), (27, 2, 1.0))
        for name in ("sequential", "alone", "own_one", "own_all", "own_threads_1"):
            self.assertGreater(found[name]["seconds"], 0, name)
        self.assertGreater(found["own_all_over_sequential"], 0)
        self.assertTrue(0 <= found["own_all"]["run"] < found["own_all"]["seconds"])
        seconds, host, gpu, busy = found["own_all"]["over_time"][0]
        self.assertLess(seconds, found["own_all"]["seconds"])
        self.assertTrue(0 < host <= found["own_all"]["host_mib"])
        self.assertEqual((gpu, busy, found["own_all"]["gpu_busy"]), (0, [], []))
        head, *lines = (self.folder / "trace.csv").read_text(encoding="utf-8").splitlines()
        self.assertEqual(head, "run,seconds,host_mib,gpu_mib,budget_mib")
        self.assertIn(f"own_all,{seconds},{host},0,", lines)

    def test_networks_are_in_the_order_of_their_numbers(self):
        nets = self.folder / "ordered"
        nets.mkdir()
        names = [f"network-{i + 1}.onnx" for i in range(12)]
        for name in (*names, ".network-13.onnx"):
            (nets / name).touch()
        self.assertEqual([file.name for file in slant.network_files(nets)], names)

    def test_a_machine_without_nvidia_smi_gets_one_line(self):
        nets = network(self.folder / "one" / "network.onnx").parent
        done = self.slant("--networks", nets, "--grid", "1,1,1", "--size", "20x24x14", "--count", 1, "--device", "cuda",
                          "--only", "own", PATH=str(self.folder / "no programs"))
        # Where there is no GPU the program fails.
        found = json.loads(done.stdout)
        self.assertEqual(done.returncode, 1 if "failed" in found["own_one"] else 0, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(done.stderr.count("nvidia-smi isn't there"), 1, done.stderr)

    def test_what_is_wrong_is_said_in_one_line(self):
        for arguments, words in ((("--networks", self.folder / "none"), "0 networks; --grid wants 27 (--make slant)"),
                                 (("--only", "some"), "'some' is none of sequential")):
            done = self.slant(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr.strip().splitlines()[-1])


if __name__ == "__main__":
    assert pathlib.Path(PIPELINE).exists()
    unittest.main()
