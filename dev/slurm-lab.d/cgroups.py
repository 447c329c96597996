"""Cgroups that a lab's nodes made: finds their processes and removes them.

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
    pids = set()
    for tree in Trees(nodes):
        for procs in tree.rglob("cgroup.procs"):
            try:
                pids.update(int(line) for line in procs.read_text().split())
            except OSError:
                pass  # the cgroup went away, or takes no processes
    return pids


def Remove(nodes, seconds=5):
    """Kills what is in them and removes them, children first. False when one cannot be removed."""
    def Attempt():
        processes.KillAll(Pids(nodes))
        for tree in Trees(nodes):
            children = sorted((path for path in tree.rglob("*") if path.is_dir()),
                              key=lambda path: len(path.parts), reverse=True)
            for path in [*children, tree]:
                try:
                    path.rmdir()
                except OSError:
                    pass  # busy until the killed processes are gone: the next attempt sees
        return not Trees(nodes)
    return processes.WaitFor(Attempt, seconds)
