"""Cgroups of a lab: those that its nodes made, and those in which hosts of the full lab live.

Debian's slurmd puts the node's name into the path: <controller>/slurm_<node> with cgroup v1,
<node>_slurmstepd.scope (in system.slice or at the root) with v2.
"""

import pathlib

import processes

ROOT = pathlib.Path("/sys/fs/cgroup")


def Trees(nodes):
    found = []
    for node in nodes:
        for pattern in (f"slurm_{node}", f"*/slurm_{node}", f"{node}_slurmstepd.scope",
                        f"system.slice/{node}_slurmstepd.scope", f"*/system.slice/{node}_slurmstepd.scope"):
            found += [path for path in ROOT.glob(pattern) if path.is_dir() and not path.is_symlink()]
    return found


def Pids(nodes):
    return PidsIn(Trees(nodes))


def PidsIn(trees):
    pids = set()
    for tree in trees:
        for procs in tree.rglob("cgroup.procs"):
            try:
                pids.update(int(line) for line in procs.read_text().split())
            except OSError:
                pass  # the cgroup went away, or takes no processes
    return pids


def Thaw(trees):
    """Lets go what a suspended job holds: a frozen process does not even die of SIGKILL."""
    for tree in trees:
        for name, value in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
            for switch in sorted(tree.rglob(name), key=lambda path: len(path.parts)):
                try:
                    switch.write_text(value)
                except OSError:
                    pass  # went away meanwhile


def Remove(nodes, seconds=5):
    """Kills what is in them and removes them, children first. False when one cannot be removed."""
    return RemoveTrees(lambda: Trees(nodes), seconds)


def RemoveTrees(trees, seconds=5):
    """As Remove; `trees()` are those that are there now."""
    def Attempt():
        Thaw(trees())
        processes.KillAll(PidsIn(trees()))
        for tree in trees():
            children = sorted((path for path in tree.rglob("*") if path.is_dir()),
                              key=lambda path: len(path.parts), reverse=True)
            for path in [*children, tree]:
                try:
                    path.rmdir()
                except OSError:
                    pass  # busy until the killed processes are gone: the next attempt sees
        return not trees()
    return processes.WaitFor(Attempt, seconds)


def _Hierarchies():
    """Mount points: each of the v1 controllers, or the one of v2."""
    if (ROOT / "cgroup.controllers").exists():
        return [ROOT]
    return [path for path in ROOT.iterdir() if path.is_dir() and not path.is_symlink()]


def Everywhere(name):
    """The cgroups of this path, one per hierarchy, as far as they are there."""
    return [hierarchy / name for hierarchy in _Hierarchies() if (hierarchy / name).is_dir()]


def MakeEverywhere(name):
    """Makes `name` (a/b) in each hierarchy; the paths."""
    made = []
    for hierarchy in _Hierarchies():
        path = hierarchy
        for part in pathlib.Path(name).parts:
            path = path / part
            path.mkdir(exist_ok=True)
            for file in ("cpuset.cpus", "cpuset.mems"):  # v1: nothing runs where these are empty
                if (path / file).exists() and (hierarchy / file).exists():
                    (path / file).write_text((hierarchy / file).read_text())
        made.append(path)
    return made
