"""A full Slurm lab, hosts of their own, with Expanse on it as docs/daemon.md installs it. See dev/slurm-lab."""

import json
import os
import pathlib
import shutil
import subprocess
import unittest

from harness import BIN, ROOT, Platform, wait_until
from slurm_lab import Lab

SHARED = pathlib.Path("/shared")
PREFIX = SHARED / "expanse"
DEPLOY = ROOT / "deploy/systemd"
UNITS = "/etc/systemd/system"
SLURM_UID = 64030  # Debian's, the same everywhere


def require_hosts():
    """Skips the test, with the reason, where no full lab can run."""
    if os.geteuid() != 0:
        raise unittest.SkipTest("hosts in containers need root")
    missing = [name for name in ("systemd-nspawn", "debootstrap", "nsenter") if not shutil.which(name)]
    if missing:
        raise unittest.SkipTest(f"not installed: {', '.join(missing)}; see dev/install-packages lab-full")


class FullLab(Lab):
    """Slurm's programs run on the controller. `out` is a path of the hosts, `here` finds it on this machine."""

    def up(self, *options):
        """Without options: starts what is missing of it."""
        self.tool("--full", "up", *(["--programs", BIN, *options] if options else []), timeout=1500)
        facts = json.loads((self.state / "lab.json").read_text())
        self.cluster, self.nodes, self.user = facts["cluster"], facts["nodes"], "slurmlab"
        self.facts, self.gateway = facts, facts["gateway"]
        self.out = SHARED / "out"
        self.here(self.out).mkdir(exist_ok=True)
        self.here(self.out).chmod(0o1777)

    def here(self, path):
        return self.state / "shared" / pathlib.Path(path).relative_to(SHARED)

    def tool(self, *args, timeout=180):
        done = subprocess.run([ROOT / "dev/slurm-lab", "--state", self.state, *args], capture_output=True, text=True,
                              timeout=timeout)
        if done.returncode != 0:
            raise AssertionError(f"slurm-lab {args}: {done.stdout}{done.stderr}")
        return done.stdout

    def on(self, host, *argv, check=True, input=None, timeout=60):
        """Runs a program on a host as root."""
        done = subprocess.run([ROOT / "dev/slurm-lab", "--state", self.state, "enter", host, *argv],
                              capture_output=True, timeout=timeout, input=input or b"")
        if check and done.returncode != 0:
            raise AssertionError(f"{host}: {argv}: exit {done.returncode}\n{done.stdout!r}\n{done.stderr!r}")
        return done

    def write(self, host, path, text, mode="644", owner="root"):
        self.on(host, "install", "-D", f"--mode={mode}", f"--owner={owner}", "/dev/stdin", path,
                input=text if isinstance(text, bytes) else text.encode())

    def command(self, *argv, user=None, check=True, timeout=60, env=None, cwd=None, input=None):
        home = f"/shared/home/{user}" if user else "/root"
        place = ["env", "-C", cwd or (home if user else self.out), f"HOME={home}",
                 *(f"{key}={value}" for key, value in (env or {}).items())]
        drop = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"] if user else []
        return self.on("ctl", *drop, *place, *argv, check=check, timeout=timeout, input=input)


class FullPlatform(Platform):
    """The server on this machine, the daemon as a unit on the controller, samplers started by the Prolog."""

    def __init__(self, lab_options=(), **options):
        require_hosts()
        super().__init__(server_args=["--tls-allow-plain-remote"], **options)
        self.dir.chmod(0o755)
        self.lab = FullLab(self.dir / "lab")
        self.lab_options = list(lab_options)

    def __enter__(self):
        try:
            hooks = [word for kind in ("prolog", "epilog", "task-prolog")
                     for word in (f"--{kind}", f"/etc/slurm/expanse-{kind}")]
            self.lab.up(*hooks, *self.lab_options)
            self.install_prefix()
            self.install_hooks()
            self.listen_on(self.lab.gateway)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return super().__enter__()

    def wait_active(self):
        try:
            super().wait_active()
        except AssertionError:
            self.print_journals()
            raise

    def __exit__(self, kind, value, trace):
        if kind:
            self.print_journals()
        try:
            self.lab.down()
        finally:
            super().__exit__(kind, value, trace)

    def print_journals(self):
        done = self.lab.on("ctl", "journalctl", "--unit=expanse-daemon", "--lines=60", "--no-pager", check=False)
        print("--- end of the daemon's journal\n" + done.stdout.decode(errors="replace"))

    def install_prefix(self):
        prefix = self.lab.here(PREFIX)
        for name in ("bin", "lib", "spool", "assign"):
            (prefix / name).mkdir(parents=True, exist_ok=True)
        (prefix / "bin/expanse-daemon").symlink_to("/opt/expanse/bin/expanse-daemon")
        for name in ("spool", "assign"):
            os.chown(prefix / name, SLURM_UID, SLURM_UID)

    def install_hooks(self):
        """As the unit of the sampler has it: samplers are the controller's user."""
        for kind in ("prolog", "epilog", "task-prolog"):
            text = subprocess.run([BIN / "expanse-daemon", "hooks", kind, "--prefix", PREFIX, "--user", "slurm"],
                                  check=True, capture_output=True).stdout
            hook = self.lab.state / f"etc/slurm/expanse-{kind}"
            hook.write_bytes(text)
            hook.chmod(0o755)

    def install(self):
        answer = self.json("compute", "register", "--type", "slurm", "--name", "under-test", "--json")
        self.cli("compute", "install", "--type", "slurm", "--write-config-only", "--control-plane",
                 self.seen_control_url, "--data-plane", self.data_url, "--config", self.config,
                 env={"EXPANSE_INSTALL_TOKEN": answer["install_token"]["token"]})
        return answer["compute"]["compute_id"]

    def unit(self, name):
        """A file of deploy/systemd for this prefix."""
        return (DEPLOY / name).read_text().replace("/srv/expanse", str(PREFIX))

    def start_daemon(self):
        lab = self.lab
        lab.on("ctl", "ln", "-sf", "/opt/expanse/bin/expanse-daemon", "/usr/local/bin/expanse-daemon")
        lab.write("ctl", "/etc/expanse/config.json", self.config.read_bytes(), mode="600", owner="slurm")
        settings = {"SLURM_QUEUE_INTERVAL": "5s", "SLURM_ACCOUNTING_INTERVAL": "5s",
                    "SLURM_NODES_INTERVAL": "10s", "SLURM_PARTITIONS_INTERVAL": "30s"}
        lab.write("ctl", "/etc/expanse/daemon.env",
                  "".join(f"EXPANSE_{key}={value}\n" for key, value in settings.items()))
        lab.write("ctl", f"{UNITS}/expanse-daemon.service", self.unit("expanse-daemon.service"))
        lab.write("ctl", f"{UNITS}/expanse-daemon.service.d/slurm.conf", self.unit("expanse-daemon-slurm.conf"))
        lab.on("ctl", "systemctl", "daemon-reload")
        lab.on("ctl", "systemctl", "enable", "--now", "expanse-daemon")

    def start_sampler_unit(self, node, environment):
        """Instead of the sampler that the Prolog starts; `environment` for it alone."""
        self.lab.write(node, f"{UNITS}/expanse-sampler.service", self.unit("expanse-sampler.service"))
        lines = "".join(f"Environment={key}={value}\n" for key, value in environment.items())
        self.lab.write(node, f"{UNITS}/expanse-sampler.service.d/test.conf", f"[Service]\n{lines}")
        self.lab.on(node, "systemctl", "daemon-reload")
        self.end_sampler(node)
        self.lab.on(node, "systemctl", "start", "expanse-sampler")

    def sampler_pid(self, node):
        """As the node counts, of the sampler that lives there, else None."""
        marker = self.lab.on(node, "cat", "/run/expanse/hooks/sampler", check=False).stdout.decode().split()
        if len(marker) != 3 or marker[2] != "sampler":
            return None
        words = self.lab.on(node, "cat", f"/proc/{marker[0]}/cmdline", check=False).stdout
        return int(marker[0]) if b"sampler" in words else None

    def end_sampler(self, node):
        pid = self.sampler_pid(node)
        if pid:
            self.lab.on(node, "kill", "-KILL", str(pid))
            wait_until("the sampler is gone", 10, lambda: not self.sampler_pid(node))

    # --- what was captured

    def runs(self, native_id):
        """Executions of this id, in the order of their submission."""
        found = [run for run in self.executions("--compute", self.compute_id) if run.get("native_id") == native_id]
        return sorted(found, key=lambda run: run.get("submitted_at", ""))

    def health(self):
        """{collector: row} as the daemon last wrote it."""
        text = self.lab.on("ctl", "cat", "/var/lib/expanse/health.json", check=False).stdout
        return {row["collector"]: row for row in json.loads(text).get("rows", [])} if text else {}

    def series(self, execution, metric):
        """{node: [(epoch seconds, value)]} of an execution."""
        answer = self.json("metrics", execution["execution_id"], metric, "--json")
        found = {}
        for part in answer if isinstance(answer, list) else [answer]:
            for series in part.get("series", []):
                found.setdefault(series["info"].get("node", ""), []).extend(
                    (point["timestamp"], point.get("value", 0)) for point in series.get("points", []))
        return found
