"""What jobs used: memory and CPU within 3 %, the page cache told apart, logs and sources, and what is off."""

import base64
import time
import unittest

from harness import wait_until
from slurm_lab import SlurmPlatform
from slurm_scenarios import PYTHON

MIB = 1 << 20
# Says on stdout what it knows of itself: the anonymous memory it has once the block is touched.
HOLD = f"""{PYTHON} -c '
import sys, time
block = bytearray(b"x") * ({{size}} << 20)
fields = dict(line.split(":") for line in open("/proc/self/smaps_rollup") if ":" in line)
print("anonymous", int(fields["Anonymous"].split()[0]) << 10, flush=True)
time.sleep({{wait}})
'"""
BURN = f"""{PYTHON} -c '
import os, time
end = time.monotonic() + {{wait}}
while time.monotonic() < end: pass
print("cpu", sum(os.times()[:2]), flush=True)
'"""
# Writes and reads a file: charged to the job's cgroup, but nothing that it needs.
CACHE = """
dd if=/dev/zero of={file} bs=1M count=200 status=none
cat {file} > /dev/null
sleep 8
rm {file}
"""


class SlurmUsage(unittest.TestCase):
    """Each job is alone on a CPU of the lab's; all of them run at the same time."""

    @classmethod
    def setUpClass(cls):
        cls.platform = SlurmPlatform(daemon_args=["--sample-young-interval", "500ms", "--sample-flush-interval", "1s"])
        cls.platform.__enter__()
        lab = cls.lab = cls.platform.lab
        lab.out.joinpath("helper.py").write_text("print('helped')\n")
        secret = "ghp_" + "a1B2" * 9
        cls.jobs = {
            "hold": lab.submit(HOLD.format(size=100, wait=10), "--job-name=hold", "--mem=300M"),
            "burn": lab.submit(BURN.format(wait=12), "--job-name=burn"),
            "cache": lab.submit(CACHE.format(file=lab.out / "cached"), "--job-name=cache", "--mem=400M"),
            "two-nodes": lab.submit(f"srun {HOLD.format(size=60, wait=8)}", "--job-name=two-nodes", "--nodes=2",
                                    "--mem=200M"),
            "talks": lab.submit(f"echo out; echo err >&2; echo token={secret}; {PYTHON} helper.py; sleep 3; exit 1",
                                "--job-name=talks", "--error", lab.out / "talks.err", cwd=lab.out),
            "off": lab.submit("echo secret of theirs", "--job-name=off", "--comment=project=x,expanse=off"),
        }
        cls.secret = secret

    @classmethod
    def tearDownClass(cls):
        cls.platform.__exit__(None, None, None)

    def ended(self, name):
        """The execution, once sacct's last word is in it."""
        job = str(self.jobs[name])
        return wait_until(f"{name} has its steps", 60, lambda: next(
            (run for run in self.platform.runs(job) if "ended_at" in run and run.get("steps")), None), 0.5)

    def said(self, name, what):
        text = (self.lab.out / f"job-{self.jobs[name]}.out").read_text()
        return [float(line.split()[1]) for line in text.splitlines() if line.startswith(what)]

    def values(self, execution, metric, at_least):
        def enough():
            answer = self.platform.json("metrics", execution["execution_id"], metric, "--json")
            answers = answer if isinstance(answer, list) else [answer]
            found = [point.get("value", 0) for part in answers for series in part.get("series", [])
                     for point in series.get("points", [])]
            return found if len(found) >= at_least else None
        return wait_until(f"{metric} points", 40, enough, 0.5)

    def test_memory_of_100_mib_within_3_percent(self):
        execution = self.ended("hold")
        values = sorted(self.values(execution, "memory-anon", at_least=5))
        # Besides the interpreter the cgroup holds its shell and slurmstepd's part of the step.
        self.assertGreaterEqual(values[len(values) // 2], 100 * MIB)
        truth, = self.said("hold", "anonymous")
        self.assertAlmostEqual(values[len(values) // 2] / truth, 1.0, delta=0.03)
        self.assertGreaterEqual(int(execution["used"]["memory_peak_bytes"]), 100 * MIB)

    def test_cpu_within_3_percent(self):
        execution = self.ended("burn")
        truth, = self.said("burn", "cpu")
        self.assertAlmostEqual(execution["used"]["cpu_seconds"] / truth, 1.0, delta=0.03)

    def test_page_cache_is_no_need(self):
        execution = self.ended("cache")
        cached = self.values(execution, "memory-file", at_least=3)
        self.assertGreaterEqual(max(cached), 150 * MIB)
        needed = self.values(execution, "memory", at_least=3)
        self.assertLess(max(needed), 40 * MIB)
        self.assertLess(int(execution["used"]["memory_peak_bytes"]), 40 * MIB, execution["used"])

    def test_two_nodes_add_up(self):
        execution = self.ended("two-nodes")
        self.assertGreaterEqual(int(execution["used"]["memory_peak_bytes"]), 120 * MIB)
        answer = self.platform.json("metrics", execution["execution_id"], "memory", "--json")
        answers = answer if isinstance(answer, list) else [answer]
        nodes = {series["info"].get("node") for part in answers for series in part.get("series", [])}
        self.assertEqual(nodes, set(self.lab.nodes))

    def test_logs_and_sources(self):
        execution = self.ended("talks")
        logs = wait_until("both streams", 30, lambda: self.both_streams(execution), 0.5)
        self.assertIn(b"token=", logs)
        self.assertNotIn(self.secret.encode(), logs)
        self.assertTrue(execution.get("bundle_hash"))
        status, bundle = self.platform.call(
            self.platform.data_url, "expanse.data.v1.QueryService.GetSourceBundle",
            {"execution_id": execution["execution_id"], "include_data": True}, self.platform.access_token())
        self.assertEqual(status, 200, bundle)
        text = b"".join(base64.b64decode(file.get("data", "")) for file in bundle["files"])
        self.assertIn(b"helper.py", text)
        self.assertIn(b"print('helped')", text)
        self.assertNotIn(self.secret.encode(), text)

    def both_streams(self, execution):
        logs = self.platform.cli("logs", execution["execution_id"], check=False).stdout
        return logs if b"out" in logs and b"err" in logs else None

    def test_off_by_comment(self):
        execution = self.ended("off")
        time.sleep(3)
        logs = self.platform.cli("logs", execution["execution_id"], check=False)
        self.assertNotIn(b"secret of theirs", logs.stdout)
        self.assertFalse(execution.get("bundle_hash"))
        self.assertTrue(any("off" in note for note in execution.get("capture_notes", [])),
                        execution.get("capture_notes"))

    def test_jobs_found_here_are_those_that_run(self):
        health = wait_until("health of jobs", 40, lambda: self.platform.health().get("slurm_jobs"), 1)
        self.assertIn(health["status"], ("ok", "HEALTH_STATUS_OK"), health)


if __name__ == "__main__":
    unittest.main()
