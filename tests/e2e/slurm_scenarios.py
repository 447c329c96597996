"""The table of jobs that slurm_jobs_test.py runs at the same time on one lab.

Each scenario submits something, may do something to it, and says what the test knows: which runs there
must be and how each ends. What sacct says is compared besides, in every scenario.
"""

import dataclasses
import os
import signal
import sys
import time
from typing import Callable

PYTHON = sys.executable if os.access(sys.executable, os.X_OK) else "python3"


@dataclasses.dataclass
class Run:
    """One ended run as the test knows it. Zero is a code of zero and no signal."""

    state: str
    exit_code: int = 0
    signal: int = 0


@dataclasses.dataclass
class Scenario:
    name: str
    script: str = "true"
    options: tuple = ()
    # {what follows the id in native ids: runs in the order of their submission}
    runs: dict = dataclasses.field(default_factory=lambda: {"": [Run("COMPLETED")]})
    user: bool = False
    cwd: str = ""
    # Another way to submit than sbatch with the fields above: takes the lab, gives the id.
    submit: Callable = None
    # What is done to the job once it is submitted: takes the lab and the id, on a thread of its own.
    act: Callable = None
    # Further claims on the executions, by native id suffix: takes test, lab, job id, {suffix: executions}.
    check: Callable = None
    # sacct ends a run that never started with its own ideas of allocation; the table says which those are.
    seconds: float = 60


# --- things done to jobs

def cancel_running(lab, job):
    lab.wait_state(job, "RUNNING")
    time.sleep(0.5)
    lab.command("scancel", str(job))


def cancel(lab, job):
    lab.command("scancel", str(job))


def requeue(lab, job):
    lab.wait_state(job, "RUNNING")
    time.sleep(0.5)
    lab.command("scontrol", "requeue", str(job))
    lab.start_again_at_once(job)


def preempt(lab, job):
    """A job of a higher QOS takes the node."""
    lab.wait_state(job, "RUNNING")
    time.sleep(1)
    winner = lab.submit("sleep 1", "--job-name=preemptor", "--qos=high", "--exclusive", f"--nodelist={lab.nodes[2]}")
    lab.wait_state(winner, "COMPLETED")
    lab.start_again_at_once(job)


def suspend(lab, job):
    lab.wait_state(job, "RUNNING")
    lab.command("scontrol", "suspend", str(job))
    time.sleep(3)
    lab.command("scontrol", "resume", str(job))


def release(lab, job):
    lab.wait_state(job, "PENDING")
    time.sleep(2)
    lab.command("scontrol", "release", str(job))


def cancel_after_failed_dependency(lab, job):
    """The job can never start; slurmctld leaves it pending for ever."""
    time.sleep(8)
    lab.command("scancel", str(job))


# --- other ways to submit

def submit_srun(lab):
    done = lab.command("srun", "--job-name=srun-only", "--ntasks=2", "sh", "-c", "echo $SLURM_JOB_ID", timeout=60)
    return int(done.stdout.split()[0])


def submit_salloc(lab):
    done = lab.command("salloc", "--job-name=salloc", "--ntasks=1", "sh", "-c",
                       "echo id $SLURM_JOB_ID; srun true; exit 5", check=False, timeout=60)
    assert done.returncode == 5, done
    return int(done.stdout.split(b"id ")[1].split()[0])


def submit_het(lab):
    return lab.submit("#SBATCH --ntasks=1\n#SBATCH hetjob\n#SBATCH --ntasks=2\nsrun --het-group=0,1 true",
                      "--job-name=het", "--output", lab.out / "het-%j.out")


def submit_dependent(lab):
    failing = lab.submit("exit 1", "--job-name=fails-first")
    return lab.submit("true", "--job-name=never-satisfied", f"--dependency=afterok:{failing}")


def submit_after(lab):
    first = lab.submit("sleep 2", "--job-name=goes-first")
    return lab.submit("true", "--job-name=goes-second", f"--dependency=afterok:{first}")


def submit_reserved(lab):
    lab.command("scontrol", "create", "reservation", "ReservationName=e2e", "StartTime=now", "Duration=10",
                "Users=root", f"Nodes={lab.nodes[1]}", "CoreCnt=2")
    return lab.submit("true", "--job-name=reserved", "--reservation=e2e")


# --- claims

def only(runs, suffix=""):
    assert len(runs[suffix]) == 1, runs[suffix]
    return runs[suffix][0]


def has_children_of(parent_suffixes):
    def check(test, lab, job, runs):
        for suffix in parent_suffixes:
            test.assertEqual(only(runs, suffix)["parent_native_id"], str(job))
    return check


def restarts(test, lab, job, runs):
    first, second = runs[""]
    test.assertNotEqual(first["execution_id"], second["execution_id"])
    test.assertLess(first["submitted_at"], second["submitted_at"])
    test.assertEqual(second.get("restart_count"), 1)
    test.assertFalse(first.get("restart_count"))


def never_started(test, lab, job, runs):
    test.assertNotIn("started_at", only(runs))


def has_label(name, value):
    def check(test, lab, job, runs):
        test.assertEqual(only(runs).get("labels", {}).get(name), value)
    return check


def asked_for(**resources):
    def check(test, lab, job, runs):
        requested = only(runs)["requested"]
        for field, value in resources.items():
            test.assertEqual(int(requested[field]), value, field)
    return check


def was_suspended(test, lab, job, runs):
    test.assertGreaterEqual(int(only(runs).get("suspended_seconds", 0)), 2)


def waited(at_least):
    def check(test, lab, job, runs):
        run = only(runs)
        from slurm_truth import seconds
        test.assertGreaterEqual(seconds(run["started_at"]) - seconds(run["submitted_at"]), at_least)
    return check


def step_count(count):
    def check(test, lab, job, runs):
        numbered = [step for step in only(runs)["steps"] if step["id"].isdigit()]
        test.assertEqual(len(numbered), count)
    return check


def on_nodes(count):
    def check(test, lab, job, runs):
        test.assertEqual(len(only(runs)["nodes"]), count)
        test.assertEqual(only(runs)["allocated"]["node_count"], count)
    return check


def exact_text(field, data):
    def check(test, lab, job, runs):
        from slurm_truth import exact
        test.assertEqual(exact(only(runs), field), data)
    return check


def wrote_to(pattern):
    """The stored stdout path is the file that Slurm made. `pattern` has {job} in it."""
    def check(test, lab, job, runs):
        run = only(runs)
        test.assertEqual(run["stdout_path"], str(lab.out / pattern.format(job=job)))
        test.assertTrue(os.path.exists(run["stdout_path"]))
    return check


def killed_child(test, lab, job, runs):
    """The script itself ended well; only memory says what happened."""
    test.assertGreaterEqual(int(only(runs).get("used", {}).get("oom_kills", 0)), 1)


def of_user(test, lab, job, runs):
    test.assertEqual(only(runs)["user"], lab.user)
    test.assertEqual(only(runs)["account"], "research")


EAT = f"{PYTHON} -c 'x = bytearray(400 << 20)'"
STRANGE = 'pipe|quote"newline\n\U0001f680 <img src=x onerror=alert(1)> \\ %s'.encode()
COMMENT = "a|b;c=d 'e' $(f) `g`\nh"

SCENARIOS = [
    # --- ends
    Scenario("complete", "sleep 1"),
    Scenario("fail", "exit 3", runs={"": [Run("FAILED", exit_code=3)]}),
    Scenario("exit-255", "exit 255", runs={"": [Run("FAILED", exit_code=255)]}),
    Scenario("signal", "kill -SEGV $$", runs={"": [Run("FAILED", signal=signal.SIGSEGV)]}),
    # The counter of kills is in a cgroup that goes with the job: it must be there when it is looked for.
    Scenario("oom-in-child", f"{EAT}; sleep 3; exit 0", ("--mem=60M",), runs={"": [Run("OUT_OF_MEMORY", signal=125)]},
             check=killed_child),
    Scenario("timeout", "sleep 600", ("--time=1", "--partition=short"), runs={"": [Run("TIMEOUT")]}, seconds=150),
    Scenario("cancel-pending", options=("--hold",), runs={"": [Run("CANCELLED")]}, act=cancel, check=never_started),
    Scenario("cancel-running", "sleep 300", runs={"": [Run("CANCELLED")]}, act=cancel_running),
    Scenario("one-second", "sleep 1"),
    Scenario("no-second"),
    # --- several runs of one job
    Scenario("requeue", "sleep 3", runs={"": [Run("REQUEUED"), Run("COMPLETED")]}, act=requeue, check=restarts,
             seconds=90),
    Scenario("preempted", "sleep 5", ("--qos=low", "--nodelist={nodes[2]}", "--exclusive"),
             runs={"": [Run("PREEMPTED"), Run("COMPLETED")]}, act=preempt, check=restarts, seconds=90),
    # --- several executions of one job
    Scenario("array", 'test "$SLURM_ARRAY_TASK_ID" != 2', ("--array=0-3",),
             runs={f"_{task}": [Run("FAILED", exit_code=1) if task == 2 else Run("COMPLETED")] for task in range(4)},
             check=has_children_of(["_0", "_3"])),
    Scenario("array-throttle", "sleep 1", ("--array=1-7:2%2",),
             runs={f"_{task}": [Run("COMPLETED")] for task in (1, 3, 5, 7)}),
    Scenario("het", submit=submit_het, runs={"+0": [Run("COMPLETED")], "+1": [Run("COMPLETED")]},
             check=has_children_of(["+0", "+1"])),
    # --- ways to run
    Scenario("srun-only", submit=submit_srun),
    Scenario("salloc", submit=submit_salloc, runs={"": [Run("FAILED", exit_code=5)]}),
    Scenario("multi-step", "srun true; srun sh -c 'exit 4'; srun -n2 true; exit 0", ("--ntasks=2",), check=step_count(3)),
    Scenario("multi-node", "srun sleep 1", ("--nodes=2", "--ntasks=2"), check=on_nodes(2)),
    Scenario("second-user", "id -un", user=True, check=of_user),
    # --- what users write
    Scenario("strange-name", options=("--job-name", STRANGE), check=exact_text("name", STRANGE)),
    Scenario("name-not-utf8", options=("--job-name", b"caf\xe9|\xff\xfe"), check=exact_text("name", b"caf\xe9|\xff\xfe")),
    Scenario("comment", options=("--comment", COMMENT), check=exact_text("comment", COMMENT.encode())),
    Scenario("long-name", options=("--job-name", "n" * 500), check=exact_text("name", b"n" * 500)),
    Scenario("workdir", "pwd", cwd="a dir|with 'pipe", check=lambda test, lab, job, runs: test.assertEqual(
        only(runs)["working_directory"], str(lab.out / "a dir|with 'pipe"))),
    Scenario("stdout-pattern", "echo here", ("--job-name=named", "--output={out}/%x-%u-%j-%%.log"),
             check=wrote_to("named-root-{job}-%.log")),
    # --- waiting
    Scenario("suspend", "sleep 4", act=suspend, check=was_suspended),
    Scenario("dependency-met", submit=submit_after, check=waited(1)),
    Scenario("dependency-never", submit=submit_dependent, act=cancel_after_failed_dependency,
             runs={"": [Run("CANCELLED")]}, check=never_started),
    Scenario("reservation", submit=submit_reserved, check=has_label("slurm.reservation", "e2e")),
    Scenario("hold-release", options=("--hold",), act=release, check=waited(2)),
    Scenario("begin-time", options=("--begin=now+4",), check=waited(3)),
    # --- resources
    Scenario("gpus", "sleep 1", ("--gres=gpu:1",), check=asked_for(gpu_count=1)),
    Scenario("gpus-on-two-nodes", "sleep 1", ("--nodes=2", "--gpus-per-node=1"), check=asked_for(gpu_count=2)),
    Scenario("mem-per-cpu", "sleep 1", ("--cpus-per-task=2", "--mem-per-cpu=70M"),
             check=asked_for(cpu_cores=2, memory_bytes=140 << 20)),
    Scenario("exclusive", "sleep 1", ("--exclusive", "--mem=100M", "--nodelist={nodes[2]}"),
             check=lambda test, lab, job, runs: test.assertGreater(
                 only(runs)["allocated"]["cpu_cores"], only(runs)["requested"]["cpu_cores"])),
    Scenario("unlimited-time", options=("--time=UNLIMITED",),
             check=lambda test, lab, job, runs: test.assertNotIn("walltime_seconds", only(runs)["requested"])),
]
