"""What `slurm-lab up` can be told. The options of a lab are kept with it (lab.json)."""

import argparse
import dataclasses


@dataclasses.dataclass
class Options:
    """Every field is an option of `up` of the same name."""

    full: bool = False
    nodes: int = 2
    cpus: int = 16
    memory_mb: int = 8192
    gpus: int = 2
    cluster: str = ""
    cgroup: str = "auto"
    prolog_flags: str = "Contain"
    prolog: str = ""
    epilog: str = ""
    task_prolog: str = ""
    prolog_slurmctld: str = ""
    epilog_slurmctld: str = ""
    # Full form: a directory of this machine that hosts see, read-only, as /opt/expanse/bin.
    programs: str = ""
    # Lines of slurm.conf that replace ours, one value per key.
    overrides: dict = dataclasses.field(default_factory=dict)


def Declare(parser):
    default = Options()
    parser.add_argument("--full", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    parser.add_argument("--programs", default=default.programs, metavar="DIR",
                        help="full form: seen by the hosts as /opt/expanse/bin, read-only")
    parser.add_argument("--nodes", type=int, default=default.nodes, help="how many slurmd")
    parser.add_argument("--cpus", type=int, default=default.cpus,
                        help="CPUs a node claims to have, whatever this host has")
    parser.add_argument("--memory-mb", type=int, default=default.memory_mb,
                        help="MiB a node claims to have")
    parser.add_argument("--gpus", type=int, default=default.gpus, help="GPUs counted per node; no devices; light form")
    parser.add_argument("--cluster", default=default.cluster,
                        help="ClusterName; empty: made from the state directory")
    parser.add_argument("--cgroup", choices=("auto", "v1", "v2"), default=default.cgroup,
                        help="cgroup plugin; auto looks at /sys/fs/cgroup")
    parser.add_argument("--prolog-flags", default=default.prolog_flags, help="PrologFlags; empty: none")
    for name in ("prolog", "epilog", "task-prolog", "prolog-slurmctld", "epilog-slurmctld"):
        parser.add_argument(f"--{name}", default="", metavar="FILE", help="the setting of this name")


def FromArguments(parsed, overrides):
    values = {field.name: getattr(parsed, field.name) for field in dataclasses.fields(Options)
              if field.name != "overrides"}
    return Options(**values, overrides=dict(line.split("=", 1) for line in overrides))
