"""One host of the full lab: a systemd-nspawn container with its own systemd, network, cgroups and disk.

Its disk is the base tree under a layer of its own (STATE/hosts/NAME). It needs no systemd on this
machine: a shell loop runs systemd-nspawn again when the host reboots, and what machinectl would do is
done by signals to the host's PID 1.
"""

import os
import pathlib
import signal
import subprocess

import cgroups
import processes

SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# systemd-nspawn --keep-unit leaves with 133 when the host wants to boot again.
SUPERVISOR = """for group in $LAB_CGROUPS; do echo $$ >"$group/cgroup.procs" || exit; done
while :; do systemd-nspawn "$@"; [ $? = 133 ] || exit 0; done"""
POWER_OFF = signal.SIGRTMIN + 4  # systemd(1): what its PID 1 takes for `poweroff`

# The address is given here and not from outside, so that it is there again after a reboot. systemd-nspawn
# mounts cgroup v1 read-only; each host has subtrees of its own there, and slurmd makes its cgroups in them.
SETUP = """#!/bin/sh
set -e
ip link set host0 up
ip address replace {address}/24 dev host0
for hierarchy in /sys/fs/cgroup/*/; do
  ! mountpoint -q "$hierarchy" || mount -o remount,bind,rw "$hierarchy"
done
"""
SETUP_UNIT = """[Unit]
Description=Address and cgroups of a host of the Slurm lab
Before=network.target network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/lab-host

[Install]
WantedBy=multi-user.target
"""


class Machine:
    """Made from facts alone, so any later call can control or end it."""

    def __init__(self, name, address, lab_tag, state):
        self.name = name
        self.address = address
        self.tag = lab_tag
        self.directory = state / "hosts" / name
        self.root = self.directory / "root"
        self.supervisor = processes.Daemon(name, [], state)

    # --- disk

    def Mount(self, tree):
        """Puts the host's own layer over the base tree."""
        for name in ("layer", "work", "root"):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        if not os.path.ismount(self.root):
            layers = f"lowerdir={tree},upperdir={self.directory}/layer,workdir={self.directory}/work"
            subprocess.run(["mount", "-t", "overlay", "-o", layers, "expanse-slurm-lab", self.root], check=True)

    def Unmount(self):
        """Whether the disk is free."""
        if os.path.ismount(self.root):
            processes.WaitFor(lambda: subprocess.run(["umount", self.root], check=False,
                                                     stderr=subprocess.DEVNULL).returncode == 0, 10, pause=0.2)
        return not os.path.ismount(self.root)

    def Write(self, path, text, mode=0o644, owner=0):
        """A file of the host while it does not run; `path` begins with /."""
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        file.chmod(mode)
        os.chown(file, owner, owner)

    def Enable(self, *units):
        subprocess.run(["systemctl", f"--root={self.root}", "--quiet", "enable", *units], check=True)

    def Furnish(self):
        """What makes a copy of the base tree this host."""
        self.Write("/etc/hostname", f"{self.name}\n")
        self.Write("/usr/local/sbin/lab-host", SETUP.format(address=self.address), 0o755)
        self.Write("/etc/systemd/system/lab-host.service", SETUP_UNIT)
        self.Enable("lab-host.service")

    # --- life

    def Start(self, bridge, binds):
        """Boots it unless it runs. `binds`: options for systemd-nspawn."""
        if self.Leader():
            return
        self.supervisor.Kill()
        self.supervisor.argv = [
            "/bin/sh", "-c", SUPERVISOR, "lab-host", f"--directory={self.root}", "--boot", "--quiet",
            "--register=no", "--keep-unit", f"--machine={self.tag}-{self.name}", f"--hostname={self.name}",
            f"--network-bridge={bridge}", "--resolv-conf=off", "--timezone=off", "--link-journal=no",
            "--console=read-only", *binds]
        groups = " ".join(str(path) for path in cgroups.MakeEverywhere(f"{self.tag}/{self.name}"))
        self.supervisor.environment = {"LAB_CGROUPS": groups, "PATH": SEARCH}
        self.supervisor.Start()

    def Leader(self):
        """The pid, here, of the host's PID 1, or None."""
        supervisor = self.supervisor.Pid()
        for pid in _Descendants(supervisor, 3) if supervisor else []:
            try:
                status = pathlib.Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            ids = next((line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")), [])
            if len(ids) == 2 and ids[1] == "1":
                return pid
        return None

    def WaitBooted(self, seconds=60):
        return processes.WaitFor(
            lambda: not self.supervisor.Pid() or
            self.Run("systemctl", "is-active", "--quiet", "multi-user.target").returncode == 0, seconds, 0.3) and \
            bool(self.supervisor.Pid())

    def PowerOff(self, seconds=30):
        """As its administrator would; cut off when that takes too long."""
        leader = self.Leader()
        if leader:
            os.kill(leader, POWER_OFF)
            processes.WaitFor(lambda: not self.supervisor.Pid(), seconds, pause=0.1)
        self.Cut()

    def Cut(self):
        """The power fails: everything in it ends at once, and its memory is gone."""
        cgroups.Thaw(self.Trees())  # what a suspended job had frozen would outlive any signal
        self.supervisor.Signal(signal.SIGKILL)  # first, or it would take the end for a reboot
        leader = self.Leader() or self._OrphanedLeader()
        if leader:
            processes.KillAll([leader])
        self.supervisor.Kill()
        cgroups.RemoveTrees(self.Trees)

    def Trees(self):
        return cgroups.Everywhere(f"{self.tag}/{self.name}")

    def _OrphanedLeader(self):
        """PID 1 of the host when its supervisor is gone: the process in its cgroups that is one there."""
        for pid in cgroups.PidsIn(self.Trees()):
            try:
                if "\nNSpid:\t%d\t1\n" % pid in pathlib.Path(f"/proc/{pid}/status").read_text():
                    return pid
            except OSError:
                pass
        return None

    # --- use

    def EnterCommand(self, argv):
        """The command line that runs `argv` in the host as root, or None while the host is down."""
        leader = self.Leader()
        if not leader:
            return None
        return ["nsenter", f"--target={leader}", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup",
                "--root", "--wd", "env", "-i", f"PATH={SEARCH}", "HOME=/root", "LANG=C.UTF-8", *map(str, argv)]

    def Run(self, *argv, input="", seconds=60):
        """Runs a program in the host and waits; while the host is down that fails with 255."""
        command = self.EnterCommand(argv)
        if not command:
            return subprocess.CompletedProcess(argv, 255, "", f"{self.name} is down")
        return subprocess.run(command, capture_output=True, text=True, errors="replace", input=input,
                              timeout=seconds, check=False)


def _Descendants(pid, generations):
    found, parents = [], [pid]
    for _ in range(generations):
        children = []
        for parent in parents:
            try:
                children += pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
            except OSError:
                pass
        parents = [int(child) for child in children]
        found += parents
    return found
