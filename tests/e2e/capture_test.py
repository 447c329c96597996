"""What `expanse run` captures is what the workload did: memory and CPU within 3 %, ends told apart."""

import base64
import os
import signal
import sys
import time
import unittest

from harness import Platform, wait_until

HOLD = """
import sys, time
block = bytearray(b"x") * (int(sys.argv[1]) << 20)
time.sleep(float(sys.argv[2]))
"""
BURN = """
import multiprocessing, sys, time
def burn(until):
    while time.monotonic() < until: pass
until = time.monotonic() + float(sys.argv[2])
workers = [multiprocessing.Process(target=burn, args=(until,)) for _ in range(int(sys.argv[1]))]
[w.start() for w in workers]; [w.join() for w in workers]
"""


def series(platform, execution, metric, *args):
    answer = platform.json("metrics", execution["execution_id"], metric, "--json", *args)
    answers = answer if isinstance(answer, list) else [answer]
    return [s for a in answers for s in a.get("series", [])]


class Capture(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.platform = Platform()
        cls.platform.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.platform.__exit__(None, None, None)

    def points(self, execution, metric, at_least=1):
        def enough():
            found = series(self.platform, execution, metric)
            values = [p.get("value", 0) for s in found for p in s.get("points", [])]
            return values if len(values) >= at_least else None
        return wait_until(f"{metric} points", 40, enough, 0.5)

    def test_memory_of_300_mib_within_3_percent(self):
        self.platform.run(sys.executable, "-c", HOLD, "300", "20", options=("--name", "hold-300"))
        execution = self.platform.execution("hold-300")
        values = sorted(self.points(execution, "memory", at_least=10))
        # What the interpreter holds besides the block is not ours to count: measured on an empty one.
        self.platform.run(sys.executable, "-c", HOLD, "0", "5", options=("--name", "hold-0"))
        base = sorted(self.points(self.platform.execution("hold-0"), "memory", at_least=3))
        held = values[len(values) // 2] - base[len(base) // 2]
        self.assertAlmostEqual(held / (300 << 20), 1.0, delta=0.03)
        self.assertGreaterEqual(int(execution["used"]["memory_peak_bytes"]), 300 << 20)

    def test_two_burnt_cores_within_3_percent(self):
        if os.cpu_count() < 2:
            self.skipTest("needs two cores")
        begin = os.times()
        started = time.monotonic()
        self.platform.run(sys.executable, "-c", BURN, "2", "15", options=("--name", "burn-2"))
        # The truth is what the kernel gave the workload (other load may take a part of two cores).
        wall = time.monotonic() - started
        end = os.times()
        spent = (end.children_user + end.children_system) - (begin.children_user + begin.children_system)
        execution = self.platform.execution("burn-2")
        self.assertAlmostEqual(execution["used"]["cpu_seconds"] / spent, 1.0, delta=0.03)
        values = sorted(self.points(execution, "cpu", at_least=8))
        self.assertAlmostEqual(values[len(values) // 2] / (spent / wall), 1.0, delta=0.06)
        if spent / wall > 1.94:  # nobody else took CPU: the plain claim
            self.assertAlmostEqual(values[len(values) // 2] / 2, 1.0, delta=0.03)

    def test_sub_second_run_has_times_exit_code_and_log_tail(self):
        done = self.platform.run("sh", "-c", "echo out; echo err >&2; exit 7", options=("--name", "short"))
        self.assertEqual(done.returncode, 7)
        self.assertEqual(done.stdout, b"out\n")
        self.assertIn(b"err\n", done.stderr)
        execution = self.platform.execution("short")
        self.assertEqual(execution["exit_code"], 7)
        self.assertIn("started_at", execution)
        self.assertIn("ended_at", execution)
        self.assertEqual(execution["status"], "EXECUTION_STATUS_FAILED")
        self.assertEqual(execution["outcome"], "EXECUTION_OUTCOME_FAILURE")
        logs = wait_until("log tail", 20, lambda: self.platform.cli("logs", execution["execution_id"]).stdout)
        self.assertIn(b"out", logs)
        self.assertIn(b"err", logs)

    def test_success(self):
        self.platform.run("true", options=("--name", "fine"))
        execution = self.platform.execution("fine")
        self.assertEqual(execution["status"], "EXECUTION_STATUS_SUCCEEDED")
        self.assertEqual(execution["outcome"], "EXECUTION_OUTCOME_SUCCESS")

    def test_killed_by_its_memory_limit_is_out_of_memory(self):
        if os.geteuid() != 0:
            self.skipTest("a memory limit needs a cgroup of its own, which needs root here")
        done = self.platform.run(sys.executable, "-c", HOLD, "400", "5", options=("--name", "oom", "--memory", "150MiB"))
        self.assertEqual(done.returncode, 128 + signal.SIGKILL)
        execution = self.platform.execution("oom")
        self.assertEqual(execution["outcome"], "EXECUTION_OUTCOME_OUT_OF_MEMORY")
        self.assertEqual(execution["status"], "EXECUTION_STATUS_FAILED")
        self.assertGreaterEqual(int(execution["used"]["oom_kills"]), 1)

    def test_walltime_and_timeout_command_are_timeouts(self):
        self.platform.run("sleep", "30", options=("--name", "walltime", "--walltime", "1s"))
        self.assertEqual(self.platform.execution("walltime")["outcome"], "EXECUTION_OUTCOME_TIMEOUT")
        done = self.platform.run("timeout", "1", "sleep", "30", options=("--name", "timeout-command"))
        self.assertEqual(done.returncode, 124)
        self.assertEqual(self.platform.execution("timeout-command")["outcome"], "EXECUTION_OUTCOME_TIMEOUT")

    def test_a_crash_by_signal_and_a_cancel_are_told_apart(self):
        done = self.platform.run("sh", "-c", "kill -SEGV $$", options=("--name", "crash"))
        self.assertEqual(done.returncode, 128 + signal.SIGSEGV)
        execution = self.platform.execution("crash")
        self.assertEqual(execution["signal"], signal.SIGSEGV)
        self.assertEqual(execution["outcome"], "EXECUTION_OUTCOME_FAILURE")
        running = self.platform.run_popen("sleep", "30", options=("--name", "cancelled"))
        self.platform.execution("cancelled", ended=False)
        running.terminate()
        running.wait(10)
        self.assertEqual(self.platform.execution("cancelled")["status"], "EXECUTION_STATUS_CANCELLED")

    def test_names_that_are_not_utf8_come_back_byte_exact(self):
        name = b'pipe|quote"new\nline \xf0\x9f\x9a\x80 \xff\xfe'
        self.platform.cli("run", "--name", name, "--", "true")
        def find():
            for execution in self.platform.executions():
                raw = execution.get("raw_bytes", {}).get("name")
                if raw and base64.b64decode(raw) == name:
                    return execution
            return None
        wait_until("the strange name", 30, find)
        table = self.platform.cli("executions").stdout
        self.assertNotIn(b"\xff", table)

    def test_secrets_in_output_never_leave_the_node(self):
        secret = "ghp_" + "a1B2" * 9
        self.platform.run("sh", "-c", f"echo token={secret}", options=("--name", "leaky", "--no-sources"))
        execution = self.platform.execution("leaky")
        logs = wait_until("log tail", 20, lambda: self.platform.cli("logs", execution["execution_id"]).stdout)
        self.assertNotIn(secret.encode(), logs)
        self.assertIn(b"token=", logs)


if __name__ == "__main__":
    unittest.main()
