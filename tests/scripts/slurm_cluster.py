"""A Slurm of its own on loopback: munged, slurmctld and one slurmd, with key, ports, spool and logs in a new folder."""

import atexit
import contextlib
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

NODE = "node1"
PROGRAMS = "setpriv", "munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "sinfo", "scancel"
# Daemons of distributions lie where a user's PATH doesn't look.
PLACES = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin:/usr/local/sbin"
START_SECONDS = 40
STOP_SECONDS = 10


class Unavailable(Exception):
    """Why there can be no Slurm here."""


def program(name):
    path = shutil.which(name, path=PLACES)
    if path is None:
        raise Unavailable(f"{name} is missing (Debian packages slurm-wlm and munge)")
    return path


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def cgroup_plugin():
    return "cgroup/v2" if pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists() else "cgroup/v1"


class SlurmCluster:
    """`with SlurmCluster(cpus=2) as cluster:`. Raises Unavailable where programs or rights are missing, or the daemons
    don't come up in time; takes every process down that it started, and those of jobs. Only for the main thread."""

    def __init__(self, cpus=2):
        self.cpus = cpus
        self.folder = None
        self.daemons = []  # (name, process), in the order of their start

    def __enter__(self):
        if os.geteuid() != 0:
            raise Unavailable("slurmd and slurmctld want to be root here")
        self.programs = {name: program(name) for name in PROGRAMS}
        # Ends of the test that nobody catches.
        atexit.register(self._stop)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        try:
            self._try_to_start()
        except Unavailable:
            # Another process may have taken a port between its choice and its use.
            self._try_to_start()
        return self

    def __exit__(self, *_):
        self._stop()

    def environment(self):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_"))}
        return {**kept, "SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": PLACES}

    def run(self, name, *arguments, check=True, timeout=30):
        """What one of Slurm's programs prints."""
        result = subprocess.run([self.programs[name], *map(str, arguments)], capture_output=True, text=True,
                                timeout=timeout, env=self.environment(), stdin=subprocess.DEVNULL, check=False)
        if check and result.returncode != 0:
            raise RuntimeError(f"{name} {' '.join(map(str, arguments))}: {result.stderr.strip()}")
        return result.stdout

    def node_state(self):
        return self.run("sinfo", "--noheader", "--Node", "--partition=all", "--format=%T").strip()

    def logs(self):
        """The ends of the daemons' logs, for a test that failed."""
        text = ""
        for file in sorted((self.folder / "log").glob("*")):
            text += f"--- {file.name}\n" + "".join(file.read_text(errors="replace").splitlines(True)[-40:])
        return text

    def _try_to_start(self):
        # A short path: sockets have no room for a long one.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
        self.daemons = []
        try:
            self._start()
        except BaseException:
            self._stop()
            raise

    def _start(self):
        for name in "log", "state", "spool", "munge":
            (self.folder / name).mkdir(mode=0o755)
        key = self.folder / "munge/key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        self._write_configuration()
        munge = self.folder / "munge"
        self._spawn("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={munge}/socket",
                    f"--pid-file={munge}/pid", f"--seed-file={munge}/seed", f"--log-file={self.folder}/log/munged.log",
                    "--num-threads=2")
        self._wait_for("munged", (munge / "socket").exists)
        self._spawn("slurmctld", "-D", "-f", self.folder / "slurm.conf")
        self._wait_for("slurmctld", lambda: " is UP" in self.run("scontrol", "ping", check=False))
        self._spawn("slurmd", "-D", "-N", NODE, "-f", self.folder / "slurm.conf")
        self._wait_for("slurmd", lambda: self.node_state() == "idle")

    def _write_configuration(self):
        host = socket.gethostname().split(".")[0]
        controller, daemon = free_ports(2)
        (self.folder / "cgroup.conf").write_text(f"CgroupPlugin={cgroup_plugin()}\nIgnoreSystemd=yes\n")
        # Credentials that end soon: a requeued job waits for the end of its last one's, two minutes otherwise.
        (self.folder / "slurm.conf").write_text(f"""\
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
AuthType=auth/munge
AuthInfo=socket={self.folder}/munge/socket,cred_expire=5
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd.pid
SlurmctldLogFile={self.folder}/log/slurmctld.log
SlurmdLogFile={self.folder}/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2,sched_min_interval=100000
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
KillWait=5
MinJobAge=600
InactiveLimit=0
NodeName={NODE} NodeHostname={host} NodeAddr=127.0.0.1 CPUs={self.cpus} RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes={NODE} Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
""")

    def _spawn(self, name, *arguments):
        # Even a test that is killed takes them along.
        command = [self.programs["setpriv"], "--pdeathsig", "KILL", self.programs[name], *map(str, arguments)]
        with open(self.folder / f"log/{name}.out", "wb") as output:
            process = subprocess.Popen(command, env=self.environment(), cwd=self.folder, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        self.daemons.append((name, process))

    def _wait_for(self, name, ready):
        end = time.monotonic() + START_SECONDS
        while not self._holds(ready):
            process = dict(self.daemons)[name]
            if process.poll() is not None or time.monotonic() > end:
                how = "ended" if process.returncode is not None else f"wasn't ready within {START_SECONDS} s"
                raise Unavailable(f"{name} {how}: {self._last_error(name)}")
            time.sleep(0.1)

    @staticmethod
    def _holds(ready):
        try:
            return ready()
        except subprocess.TimeoutExpired:
            return False

    def _last_error(self, name):
        lines = []
        for file in self.folder / f"log/{name}.out", self.folder / f"log/{name}.log":
            if file.exists():
                lines += [line for line in file.read_text(errors="replace").splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower() or "fatal" in line.lower()]
        return (errors or lines or ["it said nothing"])[-1].strip()

    def _stop(self):
        if self.folder is None:
            return
        names = dict(self.daemons)
        if "slurmctld" in names and names["slurmctld"].poll() is None:
            with contextlib.suppress(Exception):
                self.run("scancel", "--full", "--user=root", timeout=5)
                self._wait_until_empty()
        for _, process in reversed(self.daemons):
            self._end(process)
        # Step daemons outlive slurmd, and jobs their step daemon.
        for pid in self._left_over():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder = None

    def _wait_until_empty(self):
        end = time.monotonic() + STOP_SECONDS
        while time.monotonic() < end and self.run("squeue", "--noheader", timeout=5).strip():
            time.sleep(0.1)

    @staticmethod
    def _end(process):
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _left_over(self):
        """Processes that have this Slurm's configuration in their environment: its step daemons and its jobs'."""
        mark = f"SLURM_CONF={self.folder}/slurm.conf".encode()
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark in entry.read_bytes().split(b"\0") and int(entry.parent.name) != os.getpid():
                    found.append(int(entry.parent.name))
        return found
