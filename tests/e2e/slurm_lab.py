"""A light Slurm lab and the platform that captures it. Needs root and Debian's Slurm (dev/install-packages lab)."""

import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from harness import BIN, ROOT, Platform, wait_until

TOOL = ROOT / "dev/slurm-lab"


def require_slurm():
    """Skips the test, with the reason, where no lab can run."""
    if os.geteuid() != 0:
        raise unittest.SkipTest("a Slurm lab needs root")
    missing = [name for name in ("slurmctld", "slurmd", "slurmdbd", "munged", "mariadbd")
               if not shutil.which(name, path="/usr/sbin:/usr/bin")]
    if missing:
        raise unittest.SkipTest(f"not installed: {', '.join(missing)}; see dev/install-packages lab")


class Lab:
    """One lab under `state`. Jobs write into `out`, which everybody may."""

    def __init__(self, state):
        self.state = pathlib.Path(state)
        self.out = None
        self.cluster = ""
        self.nodes = []
        self.user = ""
        self.environment = {}

    def up(self, *options):
        self.tool("up", *options)
        facts = json.loads((self.state / "lab.json").read_text())
        self.cluster, self.nodes, self.user = facts["cluster"], facts["nodes"], "slurmlab"
        self.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin", "LANG": "C.UTF-8", "HOME": "/root",
                            "SLURM_CONF": str(self.state / "etc/slurm.conf")}
        self.out = self.state / "out"
        self.out.mkdir(exist_ok=True)
        self.out.chmod(0o1777)

    def down(self):
        self.tool("down")

    def tool_result(self, *args):
        return subprocess.run([TOOL, "--state", self.state, *args], capture_output=True, text=True, timeout=180)

    def tool(self, *args):
        done = self.tool_result(*args)
        if done.returncode != 0:
            raise AssertionError(f"slurm-lab {args}: {done.stdout}{done.stderr}")
        return done.stdout

    def command(self, *argv, user=None, check=True, timeout=60, env=None, cwd=None, input=None):
        """Runs one of Slurm's programs; its output as bytes."""
        if user:
            argv = ("setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", *argv)
        home = str(self.state / "home") if user else "/root"
        done = subprocess.run(argv, capture_output=True, timeout=timeout, cwd=cwd or (home if user else self.out),
                              env={**self.environment, "HOME": home, **(env or {})}, input=input)
        if check and done.returncode != 0:
            raise AssertionError(f"{argv}: exit {done.returncode}\n{done.stdout!r}\n{done.stderr!r}")
        return done

    def submit(self, script, *options, user=None, cwd=None, shell="/bin/sh"):
        """sbatch of a script's text (the lines below #!/bin/sh or another shell); the raw id of the job or array."""
        if not any(str(option).startswith(("-o", "--output")) for option in options if isinstance(option, str)):
            options = (*options, "--output", self.out / "%x-%A_%a-%j.out" if "--array" in options
                       else self.out / "job-%j.out")
        done = self.command("sbatch", "--parsable", *options, input=f"#!{shell}\n{script}\n".encode(),
                            user=user, cwd=cwd)
        return int(done.stdout.split(b";")[0])

    def state_of(self, job):
        """The state that squeue tells now, "" for a job that slurmctld has forgotten."""
        done = self.command("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T", check=False)
        return done.stdout.decode().strip().split("\n")[0]

    def wait_state(self, job, *states, seconds=60):
        return wait_until(f"job {job} is {' or '.join(states)}, not {self.state_of(job)}", seconds,
                          lambda: self.state_of(job) in states, 0.1)

    def update(self, job, *settings):
        self.command("scontrol", "update", f"JobId={job}", *settings)

    def start_again_at_once(self, job, seconds=30):
        """A requeued job waits two minutes before it starts again; a test does not."""
        self.wait_state(job, "PENDING", seconds=seconds)
        self.update(job, "StartTime=now")

    def wait_idle(self, seconds=60):
        self.tool("wait-idle", "--timeout", str(seconds))

    def set_conf(self, **settings):
        """Replaces lines of slurm.conf; the caller restarts whom it concerns."""
        path = self.state / "etc/slurm.conf"
        kept = [line for line in path.read_text().splitlines() if line.split("=")[0] not in settings]
        path.write_text("\n".join([*(f"{key}={value}" for key, value in settings.items()), *kept]) + "\n")

    def pid_of(self, daemon):
        return int((self.state / "run" / f"{daemon}.pid").read_text().split()[0])


class SlurmPlatform(Platform):
    """A platform whose compute is a light lab with our hooks; `with` brings all of it up and down.

    Intervals are short, so that what only a listing can tell is told within seconds.
    """

    def __init__(self, lab_options=(), slurm_conf=(), hooks=True, daemon_args=(), samplers=False, **options):
        """`samplers`: as on a cluster whose nodes are other hosts than the controller's. The daemon does not
        sample this one and knows nothing of its hooks; a sampler does, which the hooks start."""
        require_slurm()
        if samplers:
            daemon_args = [*daemon_args, "--collect-disable", "host,cgroup,process,gpu"]
        super().__init__(daemon_args=daemon_args, **options)
        self.dir.chmod(0o755)
        self.lab = Lab(self.dir / "lab")
        self.lab_options, self.slurm_conf, self.hooks = list(lab_options), list(slurm_conf), hooks
        self.prefix = self.dir / "prefix"
        # Of this test alone: a node has one event directory, and tests may share a machine.
        self.run_dir = pathlib.Path(tempfile.mkdtemp(prefix="expanse-run.", dir="/run"))
        self.run_dir.chmod(0o755)
        self.daemon_run_dir = self.run_dir / "controller" if samplers else self.run_dir

    def __enter__(self):
        try:
            options = [*self.lab_options, *(self.install_hooks() if self.hooks else [])]
            if self.slurm_conf:
                options += ["--", *self.slurm_conf]
            self.lab.up(*options)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return super().__enter__()

    def __exit__(self, kind, value, trace):
        try:
            for process in (self.daemon, self.server):
                if process and process.poll() is None:
                    process.send_signal(signal.SIGCONT)
            self.lab.down()
        finally:
            self.end_samplers()
            super().__exit__(kind, value, trace)
            shutil.rmtree(self.run_dir, ignore_errors=True)

    def samplers(self):
        """Pids of samplers that hooks of this test have started."""
        mark, found = f"--run-dir\0{self.run_dir}\0".encode(), []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes()
            except OSError:
                continue  # it has ended
            if mark in words and b"expanse-daemon\0sampler\0" in words:
                found.append(int(folder.name))
        return found

    def end_samplers(self):
        """SIGKILL; gone afterwards, also for the hooks: to them one that nobody has waited for looks alive."""
        killed = self.samplers()
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        wait_until("samplers are gone", 60, lambda: not any(os.path.exists(f"/proc/{pid}") for pid in killed))

    def install_hooks(self):
        """Writes the three hooks below the prefix; the lab's options that name them."""
        for folder in ("bin", "hooks", "spool"):
            (self.prefix / folder).mkdir(parents=True, exist_ok=True)
        self.prefix.chmod(0o755)
        (self.prefix / "bin/expanse-daemon").symlink_to(BIN / "expanse-daemon")
        options = []
        for kind in ("prolog", "epilog", "task-prolog"):
            text = subprocess.run([BIN / "expanse-daemon", "hooks", kind, "--prefix", self.prefix,
                                   "--run-dir", self.run_dir], check=True, capture_output=True).stdout
            path = self.prefix / "hooks" / kind
            path.write_bytes(text)
            path.chmod(0o755)
            options += [f"--{kind}", path]
        return options

    def install(self):
        answer = self.json("compute", "register", "--type", "slurm", "--name", "under-test", "--json")
        self.cli("compute", "install", "--type", "slurm", "--write-config-only", "--control-plane", self.seen_control_url,
                 "--data-plane", self.data_url, "--config", self.config,
                 env={"EXPANSE_INSTALL_TOKEN": answer["install_token"]["token"]})
        return answer["compute"]["compute_id"]

    def daemon_environment(self):
        """Where the lab is, and intervals that are short enough to wait for."""
        settings = {"SLURM_QUEUE_INTERVAL": "5s", "SLURM_ACCOUNTING_INTERVAL": "5s", "SLURM_NODES_INTERVAL": "10s",
                    "SLURM_PARTITIONS_INTERVAL": "30s", "SLURM_CONF": str(self.lab.state / "etc/slurm.conf"),
                    "PREFIX": str(self.prefix), "RUN_DIR": str(self.daemon_run_dir)}
        return {**os.environ, **{f"EXPANSE_{key}": value for key, value in settings.items()}}

    def start_daemon(self):
        with open(self.dir / "daemon.log", "ab") as log:
            self.daemon = subprocess.Popen(
                [BIN / "expanse-daemon", "--config", self.config, "--state-dir", self.dir / "daemon",
                 "--spool-dir", self.spool, *self.daemon_args],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.daemon_environment())

    def stop_daemon(self):
        self.daemon.terminate()
        self.daemon.wait(20)

    # --- what was captured

    def runs(self, native_id):
        """Executions of this id, in the order of their submission."""
        found = [run for run in self.executions("--compute", self.compute_id) if run.get("native_id") == native_id]
        return sorted(found, key=lambda run: run.get("submitted_at", ""))

    def health(self):
        """{collector: row} as the daemon last wrote it."""
        try:
            text = (self.dir / "daemon/health.json").read_text()
        except OSError:
            return {}
        return {row["collector"]: row for row in json.loads(text).get("rows", [])}

    def wait_final(self, native_id, runs=1, seconds=60):
        """All runs of a job, once there are so many and each has ended."""
        def ended():
            found = self.runs(native_id)
            return found if len(found) >= runs and all("ended_at" in run for run in found) else None
        return wait_until(f"{runs} ended runs of {native_id}", seconds, ended, 0.5)


def sleep_until(moment):
    time.sleep(max(0.0, moment - time.time()))


def uid_of(user):
    return pwd.getpwnam(user).pw_uid
