"""A cluster of hosts of their own: units, samplers through the spool, and what happens when a host fails.

label: slow
"""

import pathlib
import time
import unittest

from harness import wait_until
from slurm_full_lab import PREFIX, FullPlatform
from slurm_truth import assert_same_run, is_final, sacct, seconds, word

MIB = 1 << 20
# Holds memory, and says how much of it is really its own.
HOLD = """python3 -c '
import time
block = bytearray(b"x") * ({size} << 20)
fields = dict(line.split(":") for line in open("/proc/self/smaps_rollup") if ":" in line)
print("anonymous", int(fields["Anonymous"].split()[0]) << 10, flush=True)
time.sleep({wait})
'"""
BURN = """python3 -c '
import os, time
end = time.monotonic() + {wait}
while time.monotonic() < end: pass
print("cpu", sum(os.times()[:2]), flush=True)
'"""
FAKE_TIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"


class SlurmFull(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.platform = FullPlatform()
        cls.platform.__enter__()
        cls.lab = cls.platform.lab

    @classmethod
    def tearDownClass(cls):
        cls.platform.__exit__(None, None, None)
        # Nothing of it is left on this machine.
        mark = cls.lab.state.parent.name
        assert mark not in pathlib.Path("/proc/self/mountinfo").read_text(), "mounts are left"
        tag = cls.lab.facts["tag"]
        assert not list(pathlib.Path("/sys/class/net").glob(f"*{tag}*")), "network devices are left"
        assert not list(pathlib.Path("/sys/fs/cgroup").glob(f"*/{tag}")), "cgroups are left"

    def tearDown(self):
        """Whatever a test took down is up again for the next one."""
        self.lab.up()
        wait_until("all nodes are idle", 90, self.all_idle, 1)

    def all_idle(self):
        states = self.lab.command("sinfo", "--noheader", "--Node", "--format=%T", "--partition=main").stdout.split()
        return states == [b"idle"] * len(self.lab.nodes)

    def submit(self, script, *options, node=None, **more):
        where = [f"--nodelist={node}"] if node else []
        return self.lab.submit(script, *options, *where, **more)

    def captured(self, job, wait=60):
        """The execution of an ended job, once it says all that sacct says."""
        def final():
            rows = sacct(self.lab, job)
            return rows if rows and all(is_final(row) for row in rows) else None
        row = wait_until(f"sacct has the end of {job}", 60, final, 0.5)[-1]

        def agree():
            found = [run for run in self.platform.runs(str(job))
                     if seconds(run.get("submitted_at")) == int(row["Submit"])]
            self.assertEqual(len(found), 1, job)
            assert_same_run(self, found[0], row)
            return found[0]

        def settled():
            try:
                return agree()
            except (AssertionError, KeyError):
                return None
        try:
            return wait_until("agreement", wait, settled, 1)
        except AssertionError:
            return agree()

    def said(self, job, what):
        text = self.lab.here(self.lab.out / f"job-{job}.out").read_text()
        return [float(line.split()[1]) for line in text.splitlines() if line.startswith(what)]

    def series(self, execution, metric, nodes, at_least=3, wait=60):
        """{node: points}, once each of these nodes has so many."""
        def enough():
            found = self.platform.series(execution, metric)
            return found if all(len(found.get(node, [])) >= at_least for node in nodes) else None
        return wait_until(f"{metric} of {nodes}", wait, enough, 1)

    def measured(self, job):
        """The execution once its peak is what samplers saw, which is better than what sacct says."""
        run, = self.platform.runs(str(job))
        return run if run["used"].get("memory_peak_basis") in ("sampled", "cgroup_peak") else None

    def sampler(self, node):
        return wait_until(f"a sampler lives on {node}", 20, lambda: self.platform.sampler_pid(node), 0.3)

    # --- all is well

    def test_jobs_of_both_workers_and_of_all(self):
        jobs = [self.submit("sleep 2; exit 3", "--job-name=first", node="node1"),
                self.submit("sleep 2", "--job-name=second", node="node2"),
                self.submit("srun sleep 2; srun -n1 false", "--job-name=both", "--nodes=2", "--ntasks=2"),
                self.submit("true", "--job-name=theirs", "--output=/shared/home/slurmlab/%j.out", user=self.lab.user)]
        codes = [self.captured(job).get("exit_code", 0) for job in jobs]
        self.assertEqual(codes, [3, 0, 1, 0])
        for node in self.lab.nodes:
            pid = self.sampler(node)
            status = self.lab.on(node, "cat", f"/proc/{pid}/status").stdout.decode()
            self.assertIn("\nUid:\t64030\t64030\t64030\t64030\n", status, "not the controller's user")
            # It left the job in which it was started: Slurm would have killed it at the job's end.
            groups = self.lab.on(node, "cat", f"/proc/{pid}/cgroup").stdout.decode()
            self.assertNotIn("/job_", groups)
        for row in ("spool", "slurm_squeue", "slurm_sacct"):
            health = self.platform.health()
            self.assertIn(health[row]["status"], ("ok", "HEALTH_STATUS_OK"), health[row])

    def test_memory_and_cpu_of_two_nodes(self):
        holds = self.submit(f"srun {HOLD.format(size=150, wait=15)}", "--job-name=holds", "--nodes=2", "--ntasks=2",
                            "--mem=300M")
        burns = self.submit(f"{BURN.format(wait=12)}", "--job-name=burns", node="node2")
        run = self.captured(holds)
        run = wait_until("both nodes have told their share", 30, lambda: self.measured(holds), 1)
        truth = self.said(holds, "anonymous")
        self.assertEqual(len(truth), 2)
        held = self.series(run, "memory-anon", self.lab.nodes, at_least=5)
        for node, points in held.items():
            values = sorted(value for _, value in points)
            # The first node also holds the batch script's shell.
            self.assertAlmostEqual(values[len(values) // 2] / truth[0], 1.0, delta=0.03, msg=node)
        peak = int(run["used"]["memory_peak_bytes"])
        self.assertGreaterEqual(peak, sum(truth))
        self.assertLess(peak, sum(truth) * 1.15, "of both nodes, and not more")
        cpu, = self.said(burns, "cpu")
        self.captured(burns)
        run = wait_until("its node has told", 30, lambda: self.measured(burns), 1)
        self.assertAlmostEqual(run["used"]["cpu_seconds"] / cpu, 1.0, delta=0.05)

    def test_limit_kills(self):
        job = self.submit(HOLD.format(size=300, wait=1), "--job-name=too-much", "--mem=100M", node="node1")
        self.assertEqual(self.captured(job)["native_state"], "OUT_OF_MEMORY")

    def test_output_that_only_the_worker_sees(self):
        """The same path on the controller is another file; it must not be taken."""
        # Output is left to samplers that are known to live.
        self.series(self.captured(self.submit("sleep 3", node="node2")), "memory", ["node2"], at_least=1)
        self.lab.write("ctl", "/tmp/own-disk.out", "this is the controller's\n", owner=self.lab.user)
        job = self.submit("echo on my own disk; echo oops >&2; sleep 4; exit 1", "--job-name=own-disk",
                          "--output=/tmp/own-disk.out", node="node2", user=self.lab.user)
        run = self.captured(job)
        logs = wait_until("its output", 40, lambda: (lambda text: text if b"own disk" in text else None)(
            self.platform.cli("logs", run["execution_id"], check=False).stdout), 1)
        self.assertIn(b"oops", logs)
        self.assertNotIn(b"controller's", logs)

    def test_batch_script_of_slurmctld(self):
        job = self.submit("# only in this script\nsleep 3", "--job-name=script", user=self.lab.user,
                          node="node1")
        run = self.captured(job)
        self.assertTrue(wait_until("its sources", 40, lambda: self.platform.runs(str(job))[0].get("bundle_hash"), 1),
                        run)

    # --- something fails

    def test_sampler_killed_and_back_with_the_next_job(self):
        first = self.submit("sleep 45", "--job-name=through-a-kill", node="node1")
        self.lab.wait_state(first, "RUNNING")
        old = self.sampler("node1")
        time.sleep(15)  # what is younger than a flush of samples goes with the process
        killed = time.time()
        self.lab.on("node1", "kill", "-KILL", str(old))
        second = self.submit("sleep 6; exit 4", "--job-name=starts-it-again", node="node1")
        self.lab.wait_state(second, "RUNNING")
        self.assertNotEqual(self.sampler("node1"), old)
        self.assertEqual(self.captured(second)["exit_code"], 4)
        self.series(self.captured(second), "memory", ["node1"])
        moments = [seconds(moment) for moment, _ in self.series(self.captured(first), "memory", ["node1"])["node1"]]
        self.assertGreaterEqual(len([moment for moment in moments if moment < killed]), 3, moments)
        self.assertGreaterEqual(len([moment for moment in moments if moment > killed + 2]), 2, moments)

    def test_spool_that_cannot_be_written_for_a_while(self):
        job = self.submit("sleep 12; exit 5", "--job-name=no-spool", node="node2")
        self.lab.wait_state(job, "RUNNING")
        self.sampler("node2")
        place = self.lab.here(PREFIX / "spool/node2")
        wait_until("the node has a place", 20, place.is_dir, 0.3)
        place.chmod(0o500)
        try:
            run = self.captured(job)
            self.assertEqual(run["exit_code"], 5)
            self.assertLessEqual(seconds(run["ended_at"]) - seconds(run["started_at"]), 13)
        finally:
            place.chmod(0o755)
        # What was measured meanwhile comes later, and all of it.
        points = sorted(time for time, _ in self.series(run, "memory", ["node2"], at_least=9)["node2"])
        self.assertLessEqual(seconds(points[0]), seconds(run["started_at"]) + 3)
        self.assertGreaterEqual(seconds(points[-1]), seconds(run["ended_at"]) - 3)

    def test_worker_whose_clock_is_90_seconds_ahead(self):
        self.platform.start_sampler_unit("node1", {
            "LD_PRELOAD": FAKE_TIME, "FAKETIME": "+90s", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1"})
        try:
            # A handful of segments tell how far it is off; what came before them keeps the times it had.
            row = wait_until("its clock is corrected for", 120, lambda: self.corrected("node1"), 1)
            self.assertAlmostEqual(row["figures"]["correction_s"], 90, delta=2)
            # Its job looks old to this sampler, since files keep the true time: a point each ten seconds.
            job = self.submit("sleep 32", "--job-name=skewed", node="node1")
            run = self.captured(job)
            for moment, _ in self.series(run, "memory", ["node1"], at_least=3)["node1"]:
                self.assertGreaterEqual(seconds(moment), seconds(run["started_at"]) - 2)
                self.assertLessEqual(seconds(moment), seconds(run["ended_at"]) + 2)
        finally:
            self.lab.on("node1", "systemctl", "stop", "expanse-sampler")

    def corrected(self, host):
        row = self.platform.health().get(f"spool/{host}", {})
        return row if row.get("reason") == "spool.clock_skew" and row["figures"].get("correction_s") else None

    def test_power_cut_of_a_worker(self):
        lost = self.submit("sleep 600", "--job-name=lost", "--no-requeue", node="node2")
        safe = self.submit("sleep 45; exit 6", "--job-name=safe", node="node1")
        self.lab.wait_state(lost, "RUNNING")
        time.sleep(15)
        self.lab.tool("kill", "node2")
        self.lab.wait_state(lost, "NODE_FAIL", seconds=120)
        run = self.captured(lost)
        self.assertEqual(run["native_state"], "NODE_FAIL")
        self.series(run, "memory", ["node2"], at_least=3)  # what it had told before
        self.assertEqual(self.captured(safe, wait=90)["exit_code"], 6)
        self.lab.tool("start", "node2")
        wait_until("node2 is back", 90, self.all_idle, 1)
        again = self.submit("sleep 5", "--job-name=after-the-cut", node="node2")
        self.series(self.captured(again), "memory", ["node2"])

    def test_controller_reboots(self):
        job = self.submit("sleep 40; exit 7", "--job-name=over-the-reboot", node="node1")
        self.lab.wait_state(job, "RUNNING")
        time.sleep(8)  # slurmctld's state is on disk by then
        self.lab.on("ctl", "systemctl", "reboot", check=False)
        time.sleep(3)
        self.lab.tool("start", "ctl")
        wait_until("the daemon's unit is up again", 30, lambda: self.lab.on(
            "ctl", "systemctl", "is-active", "--quiet", "expanse-daemon", check=False).returncode == 0, 0.5)
        later = self.submit("exit 8", "--job-name=after-the-reboot", node="node2")
        self.assertEqual(self.captured(later)["exit_code"], 8)
        run = self.captured(job, wait=90)
        self.assertEqual(run["exit_code"], 7)
        self.assertEqual(word(run["native_state"]), "FAILED")
        # Samples of the time in which nobody took them.
        self.series(run, "memory", ["node1"], at_least=10)


if __name__ == "__main__":
    unittest.main()
