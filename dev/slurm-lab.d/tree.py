"""The base tree of the full lab's hosts: Debian with systemd and Slurm, made once and never written to.

It lies in /var/cache/expanse-slurm-lab under a name that tells what is in it, and serves every lab of
this machine as the lower layer of its hosts. To be rid of it: rm -r that directory.
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile

import config

CACHE = pathlib.Path("/var/cache/expanse-slurm-lab")
SUITE = "bookworm"
# Counted up when _Finish changes, so that a tree that was made before is not taken for the new one.
RECIPE = 1
LAB_UID = 20100
HOMES = pathlib.Path("/shared/home")
# What a host of the lab starts is said by the lab; what only looks after an installation, by nobody.
DISABLED = ("slurmctld", "slurmd", "slurmdbd", "mariadb", "munge")
MASKED = ("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer",
          "e2scrub_reap.service", "fstrim.timer", "getty.target", "console-getty.service", "logrotate.timer",
          "rpcbind.service", "rpcbind.socket")


class TreeError(Exception):
    """Says why there is no tree."""


def _Packages():
    listed = pathlib.Path(__file__).resolve().parent.parent / "packages.txt"
    lines = [line.partition(":") for line in listed.read_text().splitlines()]
    return sorted({package.strip() for kind, _, package in lines if kind == "lab-host"})


def Path():
    what = "\n".join([str(RECIPE), *_Packages()])
    return CACHE / f"{SUITE}-slurm-{hashlib.sha256(what.encode()).hexdigest()[:8]}"


def Ensure(say):
    """The tree's path; makes it when it is not there, which takes minutes."""
    tree = Path()
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not tree.exists():
            say(f"making {tree}, once; this takes some minutes")
            with tempfile.TemporaryDirectory(prefix="expanse-slurm-lab.", dir=_Workplace()) as place:
                made = pathlib.Path(place) / "tree"
                _Bootstrap(made)
                _Finish(made)
                part = tree.with_name(tree.name + ".part")
                shutil.rmtree(part, ignore_errors=True)
                subprocess.run(["cp", "-a", made, part], check=True)
                part.rename(tree)
    return tree


def _Workplace():
    """In memory if there is room: dpkg waits for the disk thousands of times, a copy does not."""
    with contextlib.suppress(OSError):
        memory = os.statvfs("/dev/shm")
        room = memory.f_bavail * memory.f_frsize
        if room > 3 << 30 and not memory.f_flag & (os.ST_NODEV | os.ST_NOEXEC):
            return "/dev/shm"
    return CACHE


def _Bootstrap(tree):
    cached = CACHE / "packages"
    cached.mkdir(exist_ok=True)
    log = CACHE / "debootstrap.log"
    with open(log, "wb") as output:
        done = subprocess.run(
            ["debootstrap", "--variant=minbase", f"--cache-dir={cached}", f"--include={','.join(_Packages())}",
             SUITE, tree], stdout=output, stderr=output, stdin=subprocess.DEVNULL, check=False,
            env={**os.environ, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"})
    if done.returncode != 0:
        end = "\n  ".join(log.read_text(errors="replace").splitlines()[-8:])
        raise TreeError(f"debootstrap failed; {log}:\n  {end}")


def _Finish(tree):
    """What all hosts have in common and no package gives them."""
    (tree / "etc/machine-id").write_text("")  # systemd gives each host one of its own
    (tree / "etc/hostname").unlink(missing_ok=True)
    for directory in ("shared", "opt/expanse"):
        (tree / directory).mkdir(parents=True, exist_ok=True)
    subprocess.run(["systemctl", f"--root={tree}", "--quiet", "disable", *DISABLED], check=True)
    subprocess.run(["systemctl", f"--root={tree}", "--quiet", "mask", *MASKED], check=True)
    # The same user with the same uid everywhere, as a site's directory service would have it.
    subprocess.run(["chroot", tree, "/usr/sbin/useradd", f"--uid={LAB_UID}", "--user-group", "--no-create-home",
                    f"--home-dir={HOMES / config.LAB_USER}", "--shell=/bin/bash", config.LAB_USER], check=True)
    shutil.rmtree(tree / "var/cache/apt/archives", ignore_errors=True)
    shutil.rmtree(tree / "var/lib/apt/lists", ignore_errors=True)
