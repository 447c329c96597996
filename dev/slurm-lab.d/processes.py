"""Daemons of a lab as processes: started in the background, known by pid and start time, ended for sure."""

import os
import pathlib
import signal
import subprocess
import time


def StartTime(pid):
    """Clock ticks since boot at which `pid` began, or None: with the pid it names a process for good."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    fields = stat.rsplit(")", 1)[1].split()
    return None if fields[0] in "ZX" else fields[19]


def Environment(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def AllPids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


class Daemon:
    """One background process with a pid file ("<pid> <start time>") and a log."""

    def __init__(self, name, argv, state, environment=None):
        self.name = name
        self.argv = [str(word) for word in argv]
        self.pid_file = state / "run" / f"{name}.pid"
        self.log = state / "log" / f"{name}.log"
        self.environment = environment or {}

    def Pid(self):
        """The pid while it runs, else None."""
        try:
            pid, started = self.pid_file.read_text().split()
        except (OSError, ValueError):
            return None
        return int(pid) if StartTime(int(pid)) == started else None

    def Start(self):
        """Starts it unless it runs. Does not wait until it serves."""
        if self.Pid():
            return
        clean = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_")}
        with open(self.log, "ab") as log:
            child = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     start_new_session=True, cwd="/", env={**clean, **self.environment})
        self.pid_file.write_text(f"{child.pid} {StartTime(child.pid)}")

    def Signal(self, number):
        pid = self.Pid()
        if pid:
            os.kill(pid, number)

    def Stop(self, seconds=10):
        """SIGTERM, then SIGKILL after `seconds`."""
        self.Signal(signal.SIGCONT)
        self.Signal(signal.SIGTERM)
        if not WaitFor(lambda: not self.Pid(), seconds):
            self.Kill()
        self.pid_file.unlink(missing_ok=True)

    def Kill(self):
        self.Signal(signal.SIGKILL)
        WaitFor(lambda: not self.Pid(), 5)
        self.pid_file.unlink(missing_ok=True)


def WaitFor(condition, seconds, pause=0.05):
    """Whether `condition()` came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def KillAll(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
