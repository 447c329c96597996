"""What we read from batch scripts is what Slurm reads: time, memory, CPUs, nodes, tasks and GPUs.

Runs beside other tests. Every script of tests/corpus/sbatch, and of the reference folder where there is one, is
submitted (held) to a real Slurm; `scontrol show job` tells what that made of it, `parse_bench` what we make of it.
"""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from harness import BIN, ROOT
from slurm_lab import Lab, require_slurm

PARSE = BIN.parent / "bench/parse_bench"
CORPUS = ROOT / "tests/corpus/sbatch"
REFERENCE = pathlib.Path(os.environ.get("EXPANSE_REFERENCE_DIR", ROOT.parent / "shared/reference")) / "sbatch"
DEFAULT_MINUTES = 10  # the lab's partition
SIZES = {"": 1, "K": 1 / 1024, "M": 1, "G": 1024, "T": 1024 ** 2, "P": 1024 ** 3}
# What a script may name that this lab does not have, and what is no quantity: taken out before it is submitted.
ELSEWHERE = re.compile(
    rb"(?<!\S)(?:-(?:p|A|q|C|L|w|x|F|D|M|d|o|e|i|a|b)(?:[ \t]*|=)|--(?:partition|account|qos|constraint|prefer|licenses|nodelist|"
    rb"exclude|nodefile|reservation|chdir|clusters?|cluster-constraint|dependency|output|error|input|array|"
    rb"mail-type|mail-user|wckey|switches|deadline|begin|uid|gid|export-file|get-user-env|priority|power|bb|bbf|mcs-label|"
    rb"container|core-spec|acctg-freq|profile|network)(?:=|[ \t]+))"
    rb"(?:\"[^\"\n]*\"|'[^'\n]*'|[^ \t\r\n#\"'])+")


WAIT = re.compile(rb"(?<!\S)(?:--wait|-W)(?!\S)")


def for_this_lab(script):
    """The script with nothing in its directives that only its own cluster has."""
    lines = []
    for line in script.split(b"\n"):
        if re.match(rb"#(SBATCH|SLURM)", line):
            line = WAIT.sub(b"", ELSEWHERE.sub(b"", line))
        lines.append(line)
    return b"\n".join(lines)


def mib(text):
    """Slurm's "1920M", "7812.50P", "0" in MiB."""
    number, unit = re.fullmatch(r"([0-9.]+)([KMGTP]?)", text).groups()
    return float(number) * SIZES[unit]


def minutes(text):
    if text == "UNLIMITED":
        return None
    days, _, clock = text.rpartition("-")
    hours, minute, second = (int(part) for part in clock.split(":"))
    return int(days or 0) * 1440 + hours * 60 + minute + (second > 0)


class Job:
    """One component as `scontrol show job -o` shows it."""

    def __init__(self, line):
        fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
        tres = dict(item.rsplit("=", 1) for item in re.search(r" TRES=(\S+)", line).group(1).split(",")
                    if "=" in item)
        self.minutes = minutes(fields["TimeLimit"])
        self.nodes = int(tres.get("node", 0))
        self.tasks = int(fields["NumTasks"])
        self.cpus = int(fields["NumCPUs"].split("-")[0])
        self.memory = mib(tres["mem"]) if "mem" in tres else None
        self.per_node = fields.get("MinMemoryNode")
        self.defaulted = fields.get("MinMemoryCPU") == "64M" and "MemPerTres" not in fields
        self.gpus = int(tres.get("gres/gpu", 0))
        per_gpu = re.search(r" CpusPerTres=gres:gpu:(\d+)", line)
        self.cpus_per_gpu = int(per_gpu.group(1)) if per_gpu else 0
        self.cpus_per_node = int(fields["MinCPUsNode"])
        self.tasks_per_node = int(fields["NtasksPerN:B:S:C"].split(":")[0])


class SbatchReading(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        require_slurm()
        cls.state = tempfile.TemporaryDirectory(prefix="expanse-sbatch.")
        os.chmod(cls.state.name, 0o755)
        cls.addClassCleanup(cls.state.cleanup)
        cls.lab = Lab(pathlib.Path(cls.state.name) / "lab")
        cls.addClassCleanup(cls.lab.down)
        cls.lab.up("--nodes", "2", "--", "GresTypes=gpu,shard,mps,lscratch,nvme,tmpfs,craynetwork,disk,tmpdisk,localtmp")

    def ours(self, folder):
        done = subprocess.run([PARSE, "--roundtrip", folder], check=True, capture_output=True)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        lines = [line for line in lines if not line["path"].endswith(".txt")]  # golden files
        for line in lines:
            self.assertEqual(line.get("roundtrip", "same"), "same", line["path"])
        return {line["path"]: line for line in lines}

    def slurm(self, script):
        """(components, "") of an accepted script, (None, message) of one that is refused."""
        path = self.lab.out / "script"
        path.write_bytes(for_this_lab(script))
        done = self.lab.command("sbatch", "--hold", "--parsable", "--output=/dev/null", path, check=False)
        if done.returncode != 0:
            return None, done.stderr.decode(errors="replace").strip().split("\n")[-1]
        job = done.stdout.decode().split(";")[0].strip()
        shown = self.lab.command("scontrol", "show", "job", "-o", job).stdout.decode(errors="replace")
        self.lab.command("scancel", job)
        return [Job(line) for line in shown.splitlines() if line.startswith("JobId=")], ""

    def at_start(self, script):
        """The processors that Slurm would give, with what only counts once nodes are chosen; None if it cannot."""
        path = self.lab.out / "script"
        path.write_bytes(for_this_lab(script))
        done = self.lab.command("sbatch", "--test-only", path, check=False)
        found = re.search(rb"using (\d+) processors", done.stderr)
        return int(found.group(1)) if found else None

    def differences(self, part, job, script):
        """Quantities that Slurm reads otherwise: {name: (ours, Slurm's)}."""
        # A script without directives in its head is read as the program that it is, and asks for nothing.
        nothing = {} if part["kind"] == "sbatch" else {"nodes": 1, "tasks": 1, "cpu_cores": 1}
        asked, found = {**nothing, **part["request"]}, {}

        def compare(name, ours, theirs):
            if ours != theirs:
                found[name] = (ours, theirs)

        unlimited = any(s.get("unresolved") == "unlimited" and s["effective"] for s in part["settings"])
        own = asked["walltime_s"] / 60 if "walltime_s" in asked else None if unlimited else DEFAULT_MINUTES
        compare("minutes", own, job.minutes)
        # How many nodes a number of tasks a node makes is told only when the job starts.
        spread = job.tasks_per_node and job.nodes < asked["nodes"] == -(-asked["tasks"] // job.tasks_per_node)
        if not spread:
            compare("nodes", asked["nodes"], job.nodes)
        compare("tasks", asked["tasks"], job.tasks)
        # CPUs per GPU, per node of a range and --mincpus count when the job starts, not while it waits.
        later = max(job.cpus, job.cpus_per_gpu * job.gpus, job.cpus_per_node * job.nodes)
        if asked["cpu_cores"] not in (job.cpus, later) and asked["cpu_cores"] != self.at_start(script):
            found["cpus"] = (asked["cpu_cores"], job.cpus)
        if "memory_bytes" not in asked:
            compare("memory", "default", "default" if job.defaulted else job.memory)
        elif asked["memory_bytes"] == 0:
            compare("memory", "0", job.per_node)
        else:
            ours = asked["memory_bytes"] / 2 ** 20
            per_cpu = any(s["name"] == "--mem-per-cpu" and s["effective"] for s in part["settings"])
            theirs = job.memory * asked["cpu_cores"] / job.cpus if per_cpu and job.cpus else job.memory
            theirs = theirs * asked["nodes"] / job.nodes if spread and not per_cpu else theirs
            # scontrol shows large sizes with two digits behind the point.
            if abs(ours - theirs) > max(0.005 * ours if ours > 99999 else 0, 0.5):
                found["memory"] = (ours, theirs)
        compare("gpus", asked.get("gpu_count", 0), job.gpus)
        return found

    def compare_all(self, folder):
        """Prints the counts; accepted and equal, {path: differences}, {path: message}: refused by Slurm alone."""
        accepted, different, only_slurm = 0, {}, {}
        for name, ours in self.ours(folder).items():
            script = (folder / name).read_bytes()
            components, message = self.slurm(script)
            if components is None:
                if "refusal" not in ours:
                    only_slurm[name] = (message, ours)
                continue
            accepted += 1
            if "refusal" in ours:
                different[name] = {"refused": ours["refusal"]}
                continue
            if len(ours["parts"]) != len(components):
                different[name] = {"components": (len(ours["parts"]), len(components))}
                continue
            for part, job in zip(ours["parts"], components):
                found = self.differences(part, job, script)
                if found:
                    different.setdefault(name, {}).update(found)
        print(f"{folder}: Slurm accepts {accepted}, equal {accepted - len(different)}, different {len(different)}; "
              f"refused by Slurm alone {len(only_slurm)}")
        for name, found in different.items():
            print(f"  {name}: {found}")
        for name, (message, _) in only_slurm.items():
            print(f"  only Slurm refuses {name}: {message}")
        return accepted, different, only_slurm

    def test_own_corpus(self):
        accepted, different, only_slurm = self.compare_all(CORPUS)
        self.assertGreater(accepted, 60)
        self.assertEqual(different, {})
        # What we read although Slurm does not, we say so: each has a note or an unresolved value.
        for name, (message, ours) in only_slurm.items():
            said = [note["reason"] for note in ours["notes"]]
            said += [s["unresolved"] for part in ours["parts"] for s in part["settings"] if "unresolved" in s]
            self.assertTrue(said, f"{name}: {message}")

    def test_reference(self):
        if not REFERENCE.is_dir():
            self.skipTest("no reference data")
        accepted, different, _ = self.compare_all(REFERENCE)
        self.assertGreater(accepted, 100)
        self.assertEqual(different, {})


if __name__ == "__main__":
    unittest.main()
