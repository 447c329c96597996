"""The full lab: a controller and workers as hosts of their own, with systemd, a network and a shared directory.

Like the light lab in all that is Slurm's, but as a site has it: SlurmUser slurm, Debian's units, accounting on
the controller, /shared (with the users' homes) at the same path on every host, /etc/slurm alike on all of
them. This machine is the gateway: hosts reach what listens on its address of the lab's network.
"""

import dataclasses
import ipaddress
import json
import os
import pathlib
import shutil
import subprocess
import time

import cgroups
import config
import machine
import options as lab_options
import processes
import shared
import tree
from lab import Lab, LabError, Program, Say

CONTROLLER = "ctl"
# 198.18.0.0/15 is set aside for tests (RFC 2544): nobody's real network is in the way.
NETWORKS = ipaddress.ip_network("198.18.0.0/15").subnets(new_prefix=24)
RESTART = "[Unit]\nRequires=lab-host.service\nAfter=lab-host.service\n[Service]\nRestart=on-failure\nRestartSec=2\n"
# The same database as the light lab's: fast and small, since nothing in it has to outlive a power cut.
DATABASE = """[mariadbd]
skip-networking
character-set-server = utf8mb4
innodb-buffer-pool-size = 64M
innodb-log-file-size = 16M
innodb-lock-wait-timeout = 900
innodb-flush-log-at-trx-commit = 0
innodb-flush-method = nosync
performance-schema = OFF
"""
ACCOUNTING = "CREATE DATABASE slurm_acct_db; CREATE USER slurm@localhost IDENTIFIED VIA unix_socket; " \
             "GRANT ALL ON slurm_acct_db.* TO slurm@localhost;"
SLURMDBD = """AuthType=auth/munge
DbdHost={controller}
SlurmUser=slurm
LogFile=/var/log/slurm/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=slurm_acct_db
"""


class FullLab(Lab):
    """Its "daemons" (stop, start, kill) are hosts: shut down, boot, power cut."""

    def Up(self, options):
        began = time.monotonic()
        if os.geteuid() != 0:
            raise LabError("needs root: it runs other hosts in containers")
        for name in ("systemd-nspawn", "debootstrap", "nsenter", "ip", "systemctl"):
            if not shutil.which(name, path=machine.SEARCH):
                raise LabError(f"{name} is not installed; run dev/install-packages lab-full")
        options = dataclasses.replace(options, full=True, gpus=0)  # its hosts have none
        wanted = dataclasses.asdict(options)
        if self.facts and self.facts["options"] != wanted:
            if wanted != dataclasses.asdict(lab_options.Options(full=True, gpus=0)):
                raise LabError(f"{self.state} was made with other options; take it down first")
        try:
            base = tree.Ensure(Say)
        except tree.TreeError as error:
            raise LabError(str(error)) from error
        with shared.Lock():
            if not self.facts:
                self._Make(options, wanted)
            self._MakeBridge()
        for host in self._Hosts().values():
            self._Boot(host, base)
        for name in self._Hosts():
            self._WaitServing(name)
        Say(f"{self.facts['cluster']} is up after {time.monotonic() - began:.1f} s: {CONTROLLER} and "
            f"{len(self.facts['nodes'])} nodes; slurm-lab enter {CONTROLLER}")

    def Down(self):
        if not self.facts:
            super().Down()
            return
        left = []
        for host in self._Hosts().values():
            host.Cut()
            if not host.Unmount():
                left.append(str(host.root))
        if not cgroups.RemoveTrees(lambda: cgroups.Everywhere(self.facts["tag"])):
            left += [str(path) for path in cgroups.Everywhere(self.facts["tag"])]
        subprocess.run([Program("ip"), "link", "delete", self.facts["bridge"]], check=False,
                       stderr=subprocess.DEVNULL)
        if left:
            raise LabError("something is left: " + " ".join(left))
        shutil.rmtree(self.state, ignore_errors=True)

    def Status(self):
        if not self.facts:
            Say(f"no lab in {self.state}")
            return 3
        all_run = True
        for host in self._Hosts().values():
            leader = host.Leader()
            all_run = all_run and bool(leader)
            print(f"{host.name:14} {leader or '-':>8}  {'running' if leader else 'stopped'}  {host.address}")
        if self._Hosts()[CONTROLLER].Leader():
            for line in self._Slurm("sinfo", "--Node", "--noheader", "--partition=main",
                                    "--format=%N %t %C").stdout.splitlines():
                print(f"{'node':14} {line}")
        return 0 if all_run else 1

    def Control(self, verb, name):
        host = self._Host(name)
        if verb == "stop":
            host.PowerOff()
        elif verb == "kill":
            host.Cut()
        else:
            self._Boot(host, tree.Path())
            self._WaitServing(name)

    def Enter(self, name, command):
        """Becomes a command in the host, or a shell."""
        argv = self._Host(name).EnterCommand(command or ["bash", "--login"])
        if not argv:
            raise LabError(f"{name} is down")
        os.execvp(argv[0], argv)

    # --- parts of up

    def _Make(self, options, wanted):
        if self.state.exists() and any(self.state.iterdir()):
            raise LabError(f"{self.state} has files that are not a lab's")
        mark = shared.Tag(self.state)
        network = _FreeNetwork()
        nodes = [f"node{index}" for index in range(1, options.nodes + 1)]
        hosts = {name: str(network[index]) for index, name in enumerate([CONTROLLER, *nodes], start=2)}
        self.facts = {"form": "full", "cluster": options.cluster or f"lab{mark}", "nodes": nodes, "hosts": hosts,
                      "tag": f"slab{mark}", "bridge": f"slab{mark}", "gateway": str(network[1]), "options": wanted}
        for name in ("run", "log", "etc/slurm", f"shared/home/{config.LAB_USER}"):
            (self.state / name).mkdir(parents=True)
        self.state.chmod(0o755)
        os.chown(self.state / "shared/home" / config.LAB_USER, tree.LAB_UID, tree.LAB_UID)
        (self.state / "munge.key").touch(0o600)
        (self.state / "munge.key").write_bytes(os.urandom(128))
        (self.state / "etc/hosts").write_text("127.0.0.1 localhost\n" + "".join(
            f"{address} {name}\n" for name, address in {**hosts, "gateway": self.facts["gateway"]}.items()))
        self._WriteSlurmConf(options)
        (self.state / "lab.json").write_text(json.dumps(self.facts, indent=1))

    def _WriteSlurmConf(self, options):
        hosts, etc = self.facts["hosts"], self.state / "etc/slurm"
        places = {
            "SlurmctldHost": CONTROLLER,
            "SlurmUser": "slurm",
            "StateSaveLocation": "/var/lib/slurm/slurmctld",
            "SlurmdSpoolDir": "/var/lib/slurm/slurmd",
            "SlurmctldLogFile": "/var/log/slurm/slurmctld.log",
            "SlurmdLogFile": "/var/log/slurm/slurmd.log",
            "AccountingStorageHost": CONTROLLER,
        }
        lines = {node: f"NodeName={node} CPUs={options.cpus} RealMemory={options.memory_mb} State=UNKNOWN"
                 for node in self.facts["nodes"]}
        (etc / "slurm.conf").write_text(config.SlurmConf(self.facts["cluster"], places, lines, options))
        (etc / "cgroup.conf").write_text(config.CgroupConf(options))
        (etc / "slurmdbd.conf").touch(0o600)
        (etc / "slurmdbd.conf").write_text(SLURMDBD.format(controller=CONTROLLER))
        os.chown(etc / "slurmdbd.conf", *_Ids(tree.Path(), "slurm"))

    def _MakeBridge(self):
        bridge, ip = self.facts["bridge"], Program("ip")
        if pathlib.Path(f"/sys/class/net/{bridge}").exists():
            return
        subprocess.run([ip, "link", "add", bridge, "type", "bridge"], check=True)
        subprocess.run([ip, "address", "add", f"{self.facts['gateway']}/24", "dev", bridge], check=True)
        subprocess.run([ip, "link", "set", bridge, "up"], check=True)

    def _Boot(self, host, base):
        """Starts a host; the first time as what its name says."""
        host.Mount(base)
        if not (host.root / "etc/systemd/system/lab-host.service").exists():
            self._Furnish(host, base)
        state, options = self.state, self.facts["options"]
        binds = [f"--bind={state}/shared:/shared", f"--bind-ro={state}/etc/slurm:/etc/slurm",
                 f"--bind-ro={state}/etc/hosts:/etc/hosts"]
        if options["programs"]:
            binds.append(f"--bind-ro={options['programs']}:/opt/expanse/bin")
        host.Start(self.facts["bridge"], binds)

    def _Furnish(self, host, base):
        host.Write("/etc/munge/munge.key", (self.state / "munge.key").read_bytes(), 0o400, _Ids(base, "munge")[0])
        units = ("slurmd",) if host.name != CONTROLLER else ("slurmctld", "slurmdbd", "mariadb")
        for unit in ("munge", *units):
            host.Write(f"/etc/systemd/system/{unit}.service.d/lab.conf", RESTART)
        if host.name == CONTROLLER:
            host.Write("/etc/mysql/mariadb.conf.d/90-lab.cnf", DATABASE)
            # slurmdbd and slurmctld are enabled once there is something for them to start with.
            host.Enable("munge", "mariadb")
        else:
            host.Enable("munge", "slurmd")
        host.Furnish()  # last: its unit says that all this is done

    def _WaitServing(self, name, seconds=90):
        host = self._Host(name)
        if not host.WaitBooted(seconds):
            raise LabError(f"{name} does not boot; see {host.supervisor.log}")
        if name == CONTROLLER:
            self._FirstAccounting(host)
        if not processes.WaitFor(lambda: self._Answers(name), seconds, pause=0.3):
            what = ("slurmctld", "slurmdbd") if name == CONTROLLER else ("slurmd",)
            told = host.Run("journalctl", "--no-pager", "--lines=20", *(f"--unit={unit}" for unit in what)).stdout
            raise LabError(f"{name} boots, but Slurm on it does not answer:\n{told}")

    def _Answers(self, name):
        if name == CONTROLLER:
            return self._Slurm("scontrol", "ping").returncode == 0
        # slurmctld may not yet know that the node was away: slurmd itself is asked first.
        if self._Host(name).Run("scontrol", "show", "slurmd").returncode != 0:
            return False
        shown = self._Slurm("sinfo", "--noheader", f"--nodes={name}", "--format=%t", "--partition=main")
        return shown.stdout.strip() in ("idle", "mix", "alloc", "comp", "resv", "drain", "drng")

    def _FirstAccounting(self, controller):
        """The cluster must be known to slurmdbd before slurmctld starts for the first time."""
        if (self.state / "associations").exists():
            return
        made = controller.Run("mariadb", "--execute", ACCOUNTING)
        if made.returncode != 0 and "exists" not in made.stderr:
            raise LabError(f"MariaDB on {CONTROLLER}: {made.stderr}")
        controller.Run("systemctl", "enable", "--quiet", "--now", "slurmdbd")
        if not processes.WaitFor(lambda: self._Slurm("sacctmgr", "--noheader", "list", "cluster").returncode == 0,
                                 60, pause=0.3):
            raise LabError(f"slurmdbd on {CONTROLLER} does not answer")
        self._MakeAssociations()
        controller.Run("systemctl", "enable", "--quiet", "--now", "slurmctld")

    # --- helpers

    def _Hosts(self):
        self._MustExist()
        return {name: machine.Machine(name, address, self.facts["tag"], self.state)
                for name, address in self.facts["hosts"].items()}

    def _Host(self, name):
        hosts = self._Hosts()
        if name not in hosts:
            raise LabError(f"no host {name}; there are {', '.join(hosts)}")
        return hosts[name]

    def _Slurm(self, program, *words, input=""):
        return self._Hosts()[CONTROLLER].Run(program, *words, input=input)


def _FreeNetwork():
    routes = subprocess.run([Program("ip"), "-o", "-4", "address"], capture_output=True, text=True, check=True).stdout
    for network in NETWORKS:
        if f" {network[1]}/" not in routes:
            return network
    raise LabError("no free network; are there 512 labs?")


def _Ids(base, user):
    """uid and gid of a user of the base tree."""
    for line in (base / "etc/passwd").read_text().splitlines():
        name, _, uid, gid, *_ = line.split(":")
        if name == user:
            return int(uid), int(gid)
    raise LabError(f"the base tree {base} has no user {user}")
