"""Nodes that the controller does not sample itself: hooks start a sampler, which speaks through the spool.

Runs beside other tests.
"""

import os
import pathlib
import signal
import socket
import time
import unittest

from harness import BIN, wait_until
from slurm_lab import SlurmPlatform
from slurm_scenarios import PYTHON
from slurm_truth import assert_same_run, ended_rows, eventually, now, seconds

MIB = 1 << 20
FAKE_TIME = pathlib.Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
HOLD = f"{PYTHON} -c 'import time; block = bytearray(b\"x\") * ({{size}} << 20); time.sleep({{wait}})'"


class SlurmSampler(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.platform = SlurmPlatform(samplers=True)
        cls.platform.__enter__()
        cls.lab = cls.platform.lab
        cls.spool = cls.platform.prefix / "spool"
        cls.use_sampler()

    @classmethod
    def tearDownClass(cls):
        cls.platform.__exit__(None, None, None)

    @classmethod
    def use_sampler(cls, environment=""):
        """What the hooks start from now on: it samples every second, so that short jobs have points."""
        program = cls.platform.prefix / "bin/expanse-daemon"
        program.unlink()
        program.write_text(f"#!/bin/sh\nexec env {environment} {BIN}/expanse-daemon \"$@\" "
                           "--sample-interval 1s --sample-flush-interval 2s\n")
        program.chmod(0o755)

    def captured(self, job, wait=40):
        """The execution of an ended job, once it agrees with sacct."""
        row = ended_rows(self.lab, job)[-1]

        def agree():
            run = self.platform.runs(str(job))[-1]
            assert_same_run(self, run, now(self.lab, row))
            return run
        return eventually(wait, agree)

    def points(self, execution, metric, at_least, wait=60):
        def enough():
            answer = self.platform.json("metrics", execution["execution_id"], metric, "--json")
            answers = answer if isinstance(answer, list) else [answer]
            found = [point for part in answers for series in part.get("series", [])
                     for point in series.get("points", [])]
            return found if len(found) >= at_least else None
        return wait_until(f"{at_least} points of {metric}", wait, enough, 0.5)

    def sampler(self):
        """The pid of the one sampler of this node."""
        found = wait_until("a sampler runs", 20, self.platform.samplers, 0.2)
        self.assertEqual(len(found), 1)
        return found[0]

    def test_series_and_usage_through_the_spool(self):
        job = self.lab.submit(HOLD.format(size=100, wait=12), "--job-name=sampled", "--mem=300M")
        self.lab.wait_state(job, "RUNNING")
        pid = self.sampler()
        self.assertEqual(os.readlink(f"/proc/{pid}/cwd"), "/")
        run = self.captured(job)
        values = sorted(point.get("value", 0) for point in self.points(run, "memory", at_least=5))
        self.assertGreaterEqual(values[len(values) // 2], 100 * MIB)
        self.assertGreaterEqual(int(run["used"]["memory_peak_bytes"]), 100 * MIB)
        self.assertEqual({path.name for path in self.spool.iterdir()}, {socket.gethostname()})
        if not self.others_run_here():
            # What was delivered is not kept. (What belongs to nodes of another lab waits for ten minutes.)
            wait_until("the spool is drained", 40, lambda: len(list(self.spool.glob("*/*.seg"))) < 5, 1)

    def others_run_here(self):
        """Whether nodes of another lab share this host."""
        nodes = {path.name.removeprefix("slurm_") for path in pathlib.Path("/sys/fs/cgroup").glob("*/slurm_*")}
        return bool(nodes - set(self.lab.nodes))

    def test_one_sampler_however_many_jobs(self):
        jobs = [self.lab.submit("sleep 1", "--job-name=many") for _ in range(10)]
        for job in jobs:
            self.captured(job)
        self.assertEqual(len(self.platform.samplers()), 1)

    def test_killed_sampler_is_started_again_by_the_next_job(self):
        first = self.lab.submit(HOLD.format(size=50, wait=20), "--job-name=through-a-kill")
        self.lab.wait_state(first, "RUNNING")
        old = self.sampler()
        time.sleep(3)
        self.platform.end_samplers()
        second = self.lab.submit("sleep 4; exit 3", "--job-name=starts-it-again")
        self.lab.wait_state(second, "RUNNING")
        new = self.sampler()
        self.assertNotEqual(new, old)
        self.assertEqual(self.captured(second)["exit_code"], 3)
        run = self.captured(first)
        self.points(run, "memory", at_least=8)
        self.assertGreaterEqual(int(run["used"]["memory_peak_bytes"]), 50 * MIB)

    def test_spool_that_cannot_be_written_hurts_no_job(self):
        self.platform.end_samplers()
        away = self.platform.prefix / "spool-away"
        self.spool.rename(away)
        self.spool.touch()
        try:
            started = time.time()
            job = self.lab.submit("sleep 1; exit 5", "--job-name=no-spool")
            self.lab.wait_state(job, "FAILED")
            self.assertLess(time.time() - started, 15)
            run = self.captured(job)
            self.assertEqual(run["exit_code"], 5)
            self.assertLessEqual(seconds(run["ended_at"]) - seconds(run["started_at"]), 3)
        finally:
            self.spool.unlink()
            away.rename(self.spool)

    def test_stopped_sampler_hurts_no_job(self):
        self.captured(self.lab.submit("true", "--job-name=starts-it"))
        pid = self.sampler()
        os.kill(pid, signal.SIGSTOP)
        try:
            run = self.captured(self.lab.submit("sleep 1; exit 4", "--job-name=sampler-stopped"))
            self.assertEqual(run["exit_code"], 4)
            self.assertLessEqual(seconds(run["ended_at"]) - seconds(run["started_at"]), 3)
        finally:
            os.kill(pid, signal.SIGCONT)

    def test_clock_that_is_90_seconds_ahead(self):
        if not FAKE_TIME.exists():
            self.skipTest("no libfaketime: see dev/install-packages lab")
        self.platform.end_samplers()
        self.use_sampler(f"LD_PRELOAD={FAKE_TIME} FAKETIME=+90s FAKETIME_DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1")
        try:
            self.captured(self.lab.submit("true", "--job-name=starts-it"))
            # One segment proves nothing: a clock counts as wrong once several agree.
            log = self.platform.dir / "daemon.log"
            wait_until("the clock is corrected", 120, lambda: "spool.clock_corrected" in log.read_text(), 1)
            job = self.lab.submit(HOLD.format(size=40, wait=25), "--job-name=skewed")
            run = self.captured(job)
            points = self.points(run, "memory", at_least=5)
            begin, end = seconds(run["started_at"]), seconds(run["ended_at"])
            for point in points:
                self.assertGreaterEqual(seconds(point["timestamp"]), begin - 2)
                self.assertLessEqual(seconds(point["timestamp"]), end + 2)
            skew = wait_until("health tells the skew", 40, lambda: next(
                (row["figures"].get("skew_s") for name, row in self.platform.health().items()
                 if name.startswith("spool/")), None), 1)
            self.assertAlmostEqual(skew, 90, delta=3)
        finally:
            self.platform.end_samplers()
            self.use_sampler()


if __name__ == "__main__":
    unittest.main()
