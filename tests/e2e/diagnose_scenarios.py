"""The table of jobs that diagnose_slurm_test.py runs at the same time on one lab, each with what went wrong in it.

A scenario says what `expanse diagnose` must name, what of the evidence it must quote, and what its root cause says.
Nodes: the first two are for everybody, the third for what is preempted, the fourth loses its slurmd, the fifth is
taken down.
"""

import subprocess

from diagnose_jobs import SURE, Diagnosed, Scenario
from harness import wait_until
from slurm_scenarios import PYTHON, preempt

ANY = ("LOW", *SURE)
HIGH = ("HIGH",)


# --- programs that jobs run; made once, before them

PROGRAMS = {
    "env-crlf.sh": "#!/usr/bin/env bash\r\necho started\r\n",
    "body-crlf.sh": "#!/bin/bash\r\n\r\nls\r\n",
    "no-interpreter.sh": "#!/opt/none/bin/interpreter\necho started\n",
    "needs_package.py": "print('loading')\nimport package_that_nobody_has\n",
    "open_many.py": "kept = [open('/dev/null') for _ in range(100)]\n",
    "listen_twice.py": "import socket\nfirst = socket.socket()\nfirst.bind(('127.0.0.1', 0))\nfirst.listen()\n"
                       "second = socket.socket()\nsecond.bind(first.getsockname())\n",
    "fill_shm.py": "import mmap, os\nfile = os.open('/dev/shm/block', os.O_RDWR | os.O_CREAT)\n"
                   "os.ftruncate(file, 8 << 20)\nblock = mmap.mmap(file, 8 << 20)\n"
                   "for at in range(0, 8 << 20, 4096):\n    block[at] = 1\n",
    "touch_null.py": "import ctypes\nprint('about to read', flush=True)\nctypes.string_at(0)\n",
    "eat.py": "import sys, time\nprint('eating', flush=True)\nx = bytearray(int(sys.argv[1]) << 20)\nprint('fed')\n",
    "reads.py": "import sys\nprint('opening', flush=True)\nfor line in open('/data/none/input.csv'):\n    print(line)\n",
    "looks_up.py": "prices = {'apple': 1}\nprint(prices['pear'])\n",
}
ASSERTS = "#include <assert.h>\nint main(int count, char **words) { assert(count > 5); return words != 0; }\n"
NO_SOURCE = "int answer(void) { return 42; }\n"
TRAP = "int main(void) { __builtin_trap(); }\n"
USES = "int answer(void);\nint main(void) { return answer() - 42; }\n"


def make_programs(folder):
    for name, text in PROGRAMS.items():
        path = folder / name
        path.write_bytes(text.encode())
        path.chmod(0o755)
    (folder / "locked").mkdir()
    (folder / "locked").chmod(0o700)


def make_binaries(folder):
    """Those that a compiler makes: one with an instruction that no processor has, one without its library."""
    for name, text in {"trap.c": TRAP, "asserts.c": ASSERTS, "answer.c": NO_SOURCE, "uses.c": USES}.items():
        (folder / name).write_text(text)
    for argv in (("-o", "trap", "trap.c"), ("-o", "asserts", "asserts.c"),
                 ("-shared", "-fPIC", "-o", "libanswer.so", "answer.c"),
                 ("-o", "uses", "uses.c", "-L.", "-lanswer")):
        subprocess.run(("gcc", *argv), cwd=folder, check=True)
    (folder / "libanswer.so").unlink()


# --- things done to jobs, and other ways to submit

def wait_output(lab, job):
    """Until the job has written something: it runs, and what Slurm will say of its end is written too."""
    path = lab.out / f"job-{job}.out"
    wait_until(f"output of {job}", 60, lambda: path.exists() and path.stat().st_size > 0)


def cancel_as_admin(lab, job):
    wait_output(lab, job)
    lab.command("scancel", str(job))


def cancel_as_user(lab, job):
    wait_output(lab, job)
    lab.command("scancel", str(job), user=lab.user)


def requeue(lab, job):
    wait_output(lab, job)
    lab.command("scontrol", "requeue", str(job))


def lose_node(lab, job):
    wait_output(lab, job)
    lab.tool("kill", "slurmd-node4")


def take_node_down(lab, job):
    wait_output(lab, job)
    lab.command("scontrol", "update", f"NodeName={lab.nodes[4]}", "State=DOWN", "Reason=for a test")


def hold(lab, job):
    lab.command("scontrol", "hold", str(job))


def submit_dependent(lab):
    """Waits for a job that runs and then fails."""
    failing = lab.submit("sleep 8; exit 1", "--job-name=fails-first", "--nodelist", lab.nodes[0])
    return lab.submit("true", "--job-name=never-satisfied", f"--dependency=afterok:{failing}")


def in_small(place, command, size="1m"):
    """A command that finds a small file system of its own at `place`; it goes with the command."""
    return f"unshare -m sh -c 'mount -t tmpfs -o size={size} none {place} && {command}'"


GOOD = Diagnosed("", state="succeeded")
OOM = "host_out_of_memory"
NOISE = "echo 'WARNING: retrying after error 3 of 5'; echo '0 errors, 0 failed'; echo 'Killed 0 stale workers' >&2"
RANK = f"if [ $SLURM_PROCID = 2 ]; then exec {PYTHON} eat.py 400; else sleep 20; fi"

SCENARIOS = [
    # --- memory
    Scenario("oom", f"{PYTHON} eat.py 400", ("--mem=60M",),
             (Diagnosed(OOM, quotes=("kill event",), cites=(("scheduler", "OUT_OF_MEMORY"),), says=(r"60(\.0)? MiB",),
                        confidence=HIGH),)),
    # The counter of kills is in a cgroup that goes with the job: it must be there when it is looked for.
    Scenario("oom-of-a-child", f"{PYTHON} eat.py 400; sleep 4; exit 0", ("--mem=60M",),
             (Diagnosed(OOM, cites=(("event", "processes killed at the memory limit: 1"),), says=(r"60(\.0)? MiB", "1"),
                        confidence=HIGH),)),
    Scenario("oom-of-one-rank", f"srun --kill-on-bad-exit=1 sh -c '{RANK}'", ("--mem=60M", "--ntasks=4"),
             (Diagnosed(OOM, quotes=("task 2",), says=(r"60(\.0)? MiB",), confidence=HIGH),)),
    Scenario("memory-error", f"ulimit -v 200000; exec {PYTHON} eat.py 900", ("--mem=1000M",),
             (Diagnosed(OOM, quotes=("MemoryError",), says=("refused memory",), confidence=("LOW", "MEDIUM")),)),
    Scenario("shm-full", in_small("/dev/shm", f"{PYTHON} fill_shm.py"),
             runs=(Diagnosed("bus_error_shm", quotes=("Bus error",), confidence=ANY),)),
    Scenario("open-files", f"ulimit -n 40; exec {PYTHON} open_many.py",
             runs=(Diagnosed("too_many_open_files", quotes=("Too many open files",), confidence=HIGH),)),
    Scenario("no-fork", "exec bash -c 'ulimit -u 1; ls /; exit 3'", user=True,
             runs=(Diagnosed("cannot_fork_nproc", quotes=("fork",)),)),
    # --- what the scheduler did
    Scenario("walltime", "echo computing; exec sleep 600", ("--time=1", "--partition=short"),
             (Diagnosed("walltime_exceeded", quotes=("DUE TO TIME LIMIT",), cites=(("scheduler", "TIMEOUT"),),
                        says=("00:01:00|60 s|1 min",), confidence=HIGH),), seconds=240),
    Scenario("cancel-by-user", "echo computing; exec sleep 300", user=True, act=cancel_as_user,
             runs=(Diagnosed("cancelled_by_user", state="cancelled", quotes=("CANCELLED AT",),
                             cites=(("scheduler", "cancelled by uid"),), says=("cancelled by its own user",),
                             confidence=HIGH),)),
    Scenario("cancel-by-admin", "echo computing; exec sleep 300", user=True, act=cancel_as_admin,
             runs=(Diagnosed("cancelled_by_user", state="cancelled", quotes=("CANCELLED AT",),
                             cites=(("scheduler", "cancelled by uid 0"),), says=(r"another user \(root\)",),
                             confidence=HIGH),)),
    Scenario("node-lost", "echo computing; exec sleep 300", ("--nodelist={nodes[3]}", "--no-requeue"), act=lose_node,
             runs=(Diagnosed("node_failure", cites=(("scheduler", "NODE_FAIL"),), says=("{nodes[3]}",),
                             confidence=HIGH),)),
    Scenario("node-taken-down", "echo computing; exec sleep 300", ("--nodelist={nodes[4]}", "--no-requeue"),
             act=take_node_down,
             runs=(Diagnosed("node_failure", cites=(("scheduler", "NODE_FAIL"),), says=("{nodes[4]}",),
                             confidence=HIGH),)),
    Scenario("preempted", "sleep 5", ("--qos=low", "--nodelist={nodes[2]}", "--exclusive"), act=preempt,
             runs=(Diagnosed("preempted", state="cancelled", cites=(("scheduler", "PREEMPTED"),), confidence=HIGH),
                   GOOD)),
    # Its next run waits for two minutes, which is longer than the tests take.
    Scenario("requeued", "echo computing; exec sleep 300", act=requeue,
             runs=(Diagnosed("requeued", state="cancelled", cites=(("scheduler", "REQUEUED"),), confidence=ANY),)),
    Scenario("dependency", submit=submit_dependent, stays="DependencyNeverSatisfied",
             runs=(Diagnosed("dependency_never_satisfied", state="queued",
                             cites=(("scheduler", "reason DependencyNeverSatisfied"),)),)),
    Scenario("held", options=("--hold",), stays="JobHeldUser",
             runs=(Diagnosed("job_held", state="queued", cites=(("scheduler", "JobHeldUser"),)),)),
    Scenario("held-by-admin", options=("--begin=now+1hour",), user=True, act=hold, stays="JobHeldAdmin",
             runs=(Diagnosed("job_held", state="queued", cites=(("scheduler", "reason JobHeldAdmin"),)),)),
    # --- what could not be started
    Scenario("crlf-shebang", "./env-crlf.sh",
             runs=(Diagnosed("bad_interpreter_crlf", quotes=("bash\\r",)),)),
    Scenario("crlf-body", "bash body-crlf.sh",
             runs=(Diagnosed("bad_interpreter_crlf", quotes=("\\r': command not found",),
                             cites=(("source", "#!/bin/bash\r"),)),)),
    # dash says no more than that it is not found.
    Scenario("crlf-in-source", "./body-crlf.sh",
             runs=(Diagnosed("bad_interpreter_crlf", cites=(("source", "#!/bin/bash\r"), ("exit", "127")),
                             confidence=ANY),)),
    Scenario("no-interpreter", "bash -c ./no-interpreter.sh",
             runs=(Diagnosed("bad_shebang_or_no_exec_bit", quotes=("no-interpreter.sh",)),)),
    Scenario("command-sh", "echo starting\nno-such-tool --version",
             runs=(Diagnosed("command_not_found", quotes=("no-such-tool: not found",), cites=(("exit", "127"),),
                             says=("no-such-tool",), confidence=HIGH),)),
    Scenario("command-bash", "echo starting\nno-such-tool --version", shell="/bin/bash",
             runs=(Diagnosed("command_not_found", quotes=("line 3: no-such-tool: command not found",),
                             cites=(("exit", "127"),), confidence=HIGH),)),
    Scenario("command-srun", "srun no-such-tool --version",
             runs=(Diagnosed("command_not_found", quotes=("execve(): no-such-tool",), says=("no-such-tool",),
                             confidence=HIGH),)),
    Scenario("no-module-command", "module load solver/2\nsolver --version",
             runs=(Diagnosed("module_command_missing", quotes=("module: not found",)),)),
    Scenario("python-package", f"exec {PYTHON} needs_package.py",
             runs=(Diagnosed("import_error", quotes=("package_that_nobody_has",), says=("package_that_nobody_has",)),)),
    Scenario("array-task", f"test $SLURM_ARRAY_TASK_ID != 1 || exec {PYTHON} needs_package.py",
             ("--array=0-2", "--output={out}/job-%A_%a.out"), suffix="_1",
             runs=(Diagnosed("import_error", quotes=("package_that_nobody_has",)),)),
    Scenario("library", "./uses", needs="gcc",
             runs=(Diagnosed("shared_library_missing", quotes=("libanswer.so",), says=("libanswer.so",)),)),
    # --- files
    Scenario("permission", "echo result > {out}/locked/result", user=True,
             runs=(Diagnosed("permission_denied", quotes=("Permission denied",), says=("locked/result",)),)),
    Scenario("no-output-folder", "echo never", ("--output={out}/none/%j.out",),
             runs=(Diagnosed("output_path_unwritable", cites=(("exit", "signal 53"),)),)),
    Scenario("disk-full", in_small("/mnt", "dd if=/dev/zero of=/mnt/result bs=64k count=40"),
             runs=(Diagnosed("no_space_left", quotes=("No space left on device",)),)),
    # --- crashes
    Scenario("crash", f"ulimit -c 0; {PYTHON} touch_null.py",
             runs=(Diagnosed("segmentation_fault", quotes=("Segmentation fault",), cites=(("exit", "139"),)),)),
    Scenario("crash-bash", f"{PYTHON} touch_null.py", shell="/bin/bash",
             runs=(Diagnosed("segmentation_fault", quotes=("Segmentation fault",), cites=(("exit", "139"),)),)),
    Scenario("crash-with-core", f"ulimit -c unlimited; {PYTHON} touch_null.py",
             runs=(Diagnosed("segmentation_fault", quotes=("(core dumped)",)),)),
    Scenario("crash-of-a-rank", f"srun --ntasks=2 sh -c 'test $SLURM_PROCID = 0 || exec {PYTHON} touch_null.py'",
             ("--ntasks=2",),
             runs=(Diagnosed("segmentation_fault", quotes=("task 1: Segmentation fault",)),)),
    Scenario("instruction", "exec ./trap", needs="gcc",
             runs=(Diagnosed("illegal_instruction", cites=(("exit", "signal 4"),)),)),
    Scenario("instruction-step", "srun ./trap", needs="gcc",
             runs=(Diagnosed("illegal_instruction", quotes=("Illegal instruction",), confidence=HIGH),)),
    Scenario("assertion", "./asserts", needs="gcc",
             runs=(Diagnosed("aborted_assert", quotes=("Assertion `count > 5' failed",), cites=(("exit", "134"),)),)),
    Scenario("python-error", f"exec {PYTHON} looks_up.py",
             runs=(Diagnosed("shape_or_type_error", quotes=("KeyError: 'pear'",)),)),
    Scenario("killed", "kill -KILL $$",
             runs=(Diagnosed("killed_unknown", cites=(("exit", "signal 9"),), confidence=("LOW",)),)),
    Scenario("unasked", "exec ./no-such-program", unasked=True, runs=(Diagnosed("command_not_found"),)),
    Scenario("exit-code-alone", "exit 3",
             runs=(Diagnosed("application_error", cites=(("exit", "exit code 3"),), says=("exit code 3",),
                             confidence=("LOW",)),)),
    # --- called successful
    Scenario("hidden-by-or", f"{PYTHON} reads.py || true",
             runs=(Diagnosed("scheduler_state_masks_failure", state="succeeded", quotes=("/data/none/input.csv",),
                             cites=(("source", "|| true"),)),)),
    Scenario("hidden-by-pipe", f"{PYTHON} reads.py 2>&1 | tee copy.txt",
             runs=(Diagnosed("scheduler_state_masks_failure", state="succeeded", quotes=("/data/none/input.csv",),
                             cites=(("source", "| tee"),)),)),
    # --- network
    Scenario("port", f"exec {PYTHON} listen_twice.py",
             runs=(Diagnosed("port_in_use", quotes=("Address already in use",)),)),
    # --- nothing failed
    Scenario("good", "echo done", runs=(GOOD,)),
    Scenario("failed-step", "srun sh -c 'exit 4'; echo the rest is done",
             runs=(Diagnosed("", state="succeeded", cites=(("exit", "step 0 FAILED, exit code 4"),),
                             says=(r"but not step 0 \(exit code 4\)",)),)),
    Scenario("noisy-good", NOISE, runs=(GOOD,)),
    Scenario("running", f"{NOISE}; exec sleep 600", stays="RUNNING", runs=(Diagnosed("", state="running"),)),
]
