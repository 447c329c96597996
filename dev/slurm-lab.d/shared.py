"""What labs of one host share: the second user, and the lock under which ports are chosen.

/run/expanse-slurm-lab has one link per lab to its state directory. The first lab makes directory and
user, the last one removes them; a user that was there before is left alone.
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import pwd
import shutil
import socket
import subprocess

import config

DIRECTORY = pathlib.Path("/run/expanse-slurm-lab")
COMMENT = "made by dev/slurm-lab"


def Tag(state):
    """Six characters that tell this state directory from others."""
    return hashlib.sha256(str(state).encode()).hexdigest()[:6]


@contextlib.contextmanager
def Lock():
    # In /run itself, so that it outlives DIRECTORY: two labs never hold different locks.
    path = pathlib.Path("/run/lock/expanse-slurm-lab")
    with open(path, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def Register(state):
    """Enters a lab; makes the second user if there is none. Call with the lock held."""
    DIRECTORY.mkdir(exist_ok=True)
    link = DIRECTORY / Tag(state)
    if not link.is_symlink():
        link.symlink_to(state)
    try:
        pwd.getpwnam(config.LAB_USER)
    except KeyError:
        subprocess.run(["useradd", "--system", "--no-create-home", "--home-dir", "/nonexistent", "--shell", "/bin/bash",
                        "--user-group", "--comment", COMMENT, config.LAB_USER], check=True)


def Unregister(state):
    """Leaves; the last one out removes the user. Call with the lock held."""
    (DIRECTORY / Tag(state)).unlink(missing_ok=True)
    for link in DIRECTORY.glob("*"):
        if not (link / "lab.json").exists():
            link.unlink(missing_ok=True)  # its state directory was deleted by hand
    if DIRECTORY.exists() and os.listdir(DIRECTORY):
        return
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    try:
        made_by_us = pwd.getpwnam(config.LAB_USER).pw_gecos == COMMENT
    except KeyError:
        return
    if made_by_us:
        subprocess.run(["userdel", "--force", config.LAB_USER], check=False, stderr=subprocess.DEVNULL)


def FreePorts(state, names):
    """A free port for each name, below the range that the kernel hands out. Call with the lock held."""
    taken = set()
    for link in DIRECTORY.glob("*"):
        with contextlib.suppress(OSError):
            taken.update(int(port) for port in (link / "ports").read_text().split())
    port = 20000 + int(Tag(state), 16) % 10000
    ports = {}
    for name in names:
        while True:
            port = port + 1 if port < 31999 else 20000
            if port in taken:
                continue
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(("0.0.0.0", port))
                except OSError:
                    continue
            break
        ports[name] = port
    return ports
