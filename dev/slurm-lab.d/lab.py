"""The light lab: life cycle of one Slurm under one state directory (lab.json says which one it is)."""

import dataclasses
import json
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
import time

import cgroups
import config
import options as lab_options
import processes
import shared

# Programs and the directories Debian puts them into; root's PATH need not have sbin.
SEARCH = "/usr/sbin:/usr/bin:/sbin:/bin"


class LabError(Exception):
    """Says what is wrong and what to do."""


def Say(text):
    print(f"slurm-lab: {text}", flush=True)


def Program(name):
    path = shutil.which(name, path=SEARCH)
    if not path:
        raise LabError(f"{name} is not installed; run dev/install-packages lab")
    return path


class Lab:
    """All that is known of a lab comes from STATE/lab.json, so any later call can control or end it."""

    def __init__(self, state):
        self.state = state
        self.facts = None
        file = state / "lab.json"
        if file.exists():
            self.facts = json.loads(file.read_text())

    # --- commands

    def Up(self, options):
        began = time.monotonic()
        if os.geteuid() != 0:
            raise LabError("needs root: cgroups, and daemons that start jobs of several users")
        for name in ("munged", "mariadbd", "mariadb-install-db", "slurmdbd", "slurmctld", "slurmd", "sacctmgr"):
            Program(name)
        wanted = dataclasses.asdict(options)
        if self.facts and self.facts["options"] != wanted:
            if wanted != dataclasses.asdict(lab_options.Options()):
                raise LabError(f"{self.state} was made with other options; take it down first")
        with shared.Lock():
            if not self.facts:
                self._Make(options, wanted)
            shared.Register(self.state)
            self._GiveHome()
        self._StartAll()
        Say(f"{self.facts['cluster']} is up after {time.monotonic() - began:.1f} s: "
            f"{len(self.facts['nodes'])} nodes; . {self.state}/env")

    def Down(self):
        if not self.facts:
            if self.state.exists() and any(self.state.iterdir()):
                raise LabError(f"{self.state} is not the state of a lab")
            return
        nodes = self.facts["nodes"]
        daemons = self._Daemons()
        # slurmd first: it would restart nothing, but slurmctld would wait for nodes that are gone.
        for name in reversed(list(daemons)):
            daemons[name].Signal(processes.signal.SIGKILL if name == "mariadbd" else processes.signal.SIGTERM)
        processes.KillAll(self._Strays())
        for name in reversed(list(daemons)):
            daemons[name].Stop()
        removed = cgroups.Remove(nodes)
        processes.KillAll(self._Strays())
        with shared.Lock():
            shared.Unregister(self.state)
        shutil.rmtree(self.state, ignore_errors=True)
        if not removed:
            raise LabError("cgroups are left: " + " ".join(str(tree) for tree in cgroups.Trees(nodes)))

    def Status(self):
        if not self.facts:
            Say(f"no lab in {self.state}")
            return 3
        all_run = True
        for name, daemon in self._Daemons().items():
            pid = daemon.Pid()
            all_run = all_run and bool(pid)
            print(f"{name:14} {pid or '-':>8}  {'running' if pid else 'stopped'}")
        if all_run:
            for line in self._Slurm("sinfo", "--Node", "--noheader", "--partition=main",
                                    "--format=%N %t %C").stdout.splitlines():
                print(f"{'node':14} {line}")
        return 0 if all_run else 1

    def Control(self, verb, name):
        self._MustExist()
        daemons = self._Daemons()
        if name not in daemons:
            raise LabError(f"no daemon {name}; there are {', '.join(daemons)}")
        if verb == "stop":
            daemons[name].Stop()
        elif verb == "kill":
            daemons[name].Kill()
        else:
            daemons[name].Start()
            self._WaitServing(name)

    def Enter(self, name, command):
        raise LabError("the daemons of the light form are on this host; . STATE/env")

    def WaitIdle(self, seconds):
        self._MustExist()

        def Idle():
            jobs = self._Slurm("squeue", "--noheader", "--format=%i", "--states=PD,R,S,CG,CF")
            states = self._Slurm("sinfo", "--noheader", "--format=%t", "--partition=main").stdout.split()
            return jobs.returncode == 0 and not jobs.stdout.strip() and set(states) == {"idle"}
        if not processes.WaitFor(Idle, seconds, pause=0.3):
            raise LabError(f"jobs or nodes are busy after {seconds:.0f} s")

    # --- parts of up

    def _Make(self, options, wanted):
        if self.state.exists() and any(self.state.iterdir()):
            raise LabError(f"{self.state} has files that are not a lab's")
        cluster = options.cluster or f"lab{shared.Tag(self.state)}"
        nodes = [f"{cluster}node{index}" for index in range(1, options.nodes + 1)]
        ports = shared.FreePorts(self.state, ["slurmctld", "slurmdbd", *nodes])
        for name in ("run", "log", "etc", "munge", "db", "ctld", "gpus", "home",
                     *(f"spool-{node}" for node in nodes)):
            (self.state / name).mkdir(parents=True)
        self.state.chmod(0o755)
        (self.state / "ctld").chmod(0o700)
        for index in range(options.gpus):
            os.mknod(self.state / "gpus" / f"card{index}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        etc = self.state / "etc"
        (etc / "slurm.conf").write_text(config.SlurmConf(
            cluster, config.LightPlaces(self.state, ports),
            {node: config.LightNode(node, ports, options) for node in nodes}, options))
        (etc / "cgroup.conf").write_text(config.CgroupConf(options))
        (etc / "gres.conf").write_text(config.GresConf(self.state, options, nodes))
        (etc / "slurmdbd.conf").touch(0o600)
        (etc / "slurmdbd.conf").write_text(config.SlurmdbdConf(self.state, ports))
        (self.state / "env").write_text(config.Env(self.state, cluster, nodes))
        (self.state / "ports").write_text(" ".join(str(port) for port in ports.values()))
        key = self.state / "munge" / "munge.key"
        key.touch(0o600)
        key.write_bytes(os.urandom(128))
        self.facts = {"cluster": cluster, "nodes": nodes, "ports": ports, "options": wanted}
        (self.state / "lab.json").write_text(json.dumps(self.facts, indent=1))

    def _GiveHome(self):
        user = pwd.getpwnam(config.LAB_USER)
        os.chown(self.state / "home", user.pw_uid, user.pw_gid)

    def _Daemons(self):
        """In the order in which they start."""
        state, etc = self.state, self.state / "etc"
        munge, database = state / "munge", state / "db"
        slurm = {"SLURM_CONF": f"{etc}/slurm.conf"}
        daemons = [
            processes.Daemon("munged", [
                Program("munged"), "--foreground", "--force", f"--key-file={munge}/munge.key",
                f"--socket={munge}/munge.sock", f"--pid-file={munge}/munged.pid",
                f"--log-file={munge}/munged.log", f"--seed-file={munge}/munged.seed"], state),
            processes.Daemon("mariadbd", [
                Program("mariadbd"), "--no-defaults", "--user=root", f"--datadir={database}/data",
                f"--socket={database}/db.sock", f"--pid-file={database}/db.pid", "--skip-networking",
                "--character-set-server=utf8mb4", "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M",
                "--innodb-lock-wait-timeout=900", "--innodb-flush-log-at-trx-commit=0",
                "--innodb-flush-method=nosync", "--innodb-fast-shutdown=2", "--performance-schema=OFF"], state),
            processes.Daemon("slurmdbd", [Program("slurmdbd"), "-D"], state,
                             {**slurm, "MYSQL_UNIX_PORT": f"{database}/db.sock"}),
            processes.Daemon("slurmctld", [Program("slurmctld"), "-D"], state, slurm),
        ]
        for index, node in enumerate(self.facts["nodes"], start=1):
            daemons.append(processes.Daemon(f"slurmd-node{index}", [Program("slurmd"), "-D", "-N", node],
                                            state, slurm))
        return {daemon.name: daemon for daemon in daemons}

    def _StartAll(self):
        daemons = self._Daemons()
        if not (self.state / "db" / "data" / "mysql").exists():
            self._MakeDatabase()
        for name in ("munged", "mariadbd"):
            daemons[name].Start()
        for name in ("munged", "mariadbd"):
            self._WaitServing(name)
        daemons["slurmdbd"].Start()
        self._WaitServing("slurmdbd")
        if not (self.state / "associations").exists():
            self._MakeAssociations()
        for name, daemon in daemons.items():
            daemon.Start()
        for name in daemons:
            if name.startswith("slurm"):
                self._WaitServing(name)

    def _MakeDatabase(self):
        # In memory first: the program waits for the disk a hundred times, a copy does not.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with (open(self.state / "log" / "install-db.log", "ab") as log,
              tempfile.TemporaryDirectory(prefix="expanse-slurm-lab.", dir=memory) as made):
            done = subprocess.run(
                [Program("mariadb-install-db"), "--no-defaults", "--user=root", "--skip-test-db",
                 "--auth-root-authentication-method=normal", f"--datadir={made}/data",
                 "--innodb-log-file-size=16M", "--skip-name-resolve"],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, timeout=120, check=False)
            if done.returncode != 0:
                raise LabError(f"mariadb-install-db failed; see {log.name}")
            shutil.copytree(f"{made}/data", self.state / "db" / "data")

    def _MakeAssociations(self):
        """The cluster must be known to slurmdbd before slurmctld starts without a state of its own."""
        cluster, user = self.facts["cluster"], config.LAB_USER
        lines = [f"add cluster {cluster}",
                 f"add account research,teaching cluster={cluster} description=lab organization=lab",
                 "add qos low priority=1 preemptmode=requeue",
                 "add qos high priority=1000 preempt=low,normal",
                 f"add user root,{user} account=research,teaching cluster={cluster} defaultaccount=research",
                 "modify user root set defaultaccount=research"]
        # One process for all of it, since connecting to slurmdbd is what takes long; a second one because
        # the first does not see the QOS that it has made itself.
        made = self._Slurm("sacctmgr", "--immediate", input="\n".join(lines) + "\n")
        allowed = self._Slurm("sacctmgr", "--immediate", "modify", "account", "root", "set", "qos=normal,low,high")
        known = self._Slurm("sacctmgr", "--noheader", "--parsable2", "show", "assoc", "format=cluster,account,user,qos")
        if f"{cluster}|research|{user}|high,low,normal" not in known.stdout:
            raise LabError(f"sacctmgr did not take it all: {made.stdout}{made.stderr}{allowed.stdout}{allowed.stderr}"
                           f"{known.stdout}")
        (self.state / "associations").touch()

    def _WaitServing(self, name, seconds=30):
        """Until the daemon answers; a daemon that ended is an error at once, with the end of its log."""
        daemon = self._Daemons()[name]

        def Answers():
            if name == "munged":
                return (self.state / "munge" / "munge.sock").exists()
            if name == "mariadbd":
                return subprocess.run([Program("mariadb-admin"), "--no-defaults", "--user=root",
                                       f"--socket={self.state}/db/db.sock", "ping"],
                                      capture_output=True, timeout=10, check=False).returncode == 0
            if name == "slurmdbd":
                return self._Slurm("sacctmgr", "--noheader", "list", "cluster").returncode == 0
            if name == "slurmctld":
                return self._Slurm("scontrol", "ping").returncode == 0
            node = self.facts["nodes"][int(name.removeprefix("slurmd-node")) - 1]
            shown = self._Slurm("sinfo", "--noheader", f"--nodes={node}", "--format=%t", "--partition=main")
            return shown.stdout.strip() in ("idle", "mix", "alloc", "comp", "resv", "drain", "drng")
        served = processes.WaitFor(lambda: not daemon.Pid() or Answers(), seconds, pause=0.1)
        if not served or not daemon.Pid():
            lines = daemon.log.read_text(errors="replace").splitlines()[-8:]
            raise LabError(f"{name} {'did not answer' if daemon.Pid() else 'ended'}; {daemon.log}:\n  " +
                           "\n  ".join(lines))

    # --- helpers

    def _MustExist(self):
        if not self.facts:
            raise LabError(f"no lab in {self.state}; bring it up first")

    def _Slurm(self, program, *words, input=""):
        clean = {key: value for key, value in os.environ.items()
                 if not key.startswith(("SLURM_", "SINFO_", "SQUEUE_"))}
        return subprocess.run([Program(program), *words], capture_output=True, text=True, errors="replace",
                              timeout=30, check=False, input=input,
                              env={**clean, "SLURM_CONF": f"{self.state}/etc/slurm.conf"})

    def _Strays(self):
        """Processes of this lab that no pid file names: slurmstepd and what jobs started, and daemons whose
        pid file was lost. A shell that sourced the env file is none."""
        strays = cgroups.Pids(self.facts["nodes"])
        conf = f"SLURM_CONF={self.state}/etc/slurm.conf".encode()
        for pid in processes.AllPids():
            environment = processes.Environment(pid)
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            program = os.path.basename(words[0].split(b":")[0]) if words else b""
            daemon = program in (b"slurmstepd", b"slurmd", b"slurmctld", b"slurmdbd", b"mariadbd", b"munged")
            ours = conf in environment or any(str(self.state).encode() + b"/" in word for word in words)
            if daemon and ours:
                strays.add(pid)
        return strays
