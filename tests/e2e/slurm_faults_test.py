"""What breaks around a running cluster: nothing is lost, and no job notices.

Runs beside other tests.
"""

import shutil
import signal
import time
import unittest

from harness import wait_until
from slurm_lab import SlurmPlatform
from slurm_truth import assert_same_run, ended_rows, eventually, now, seconds, word


class SlurmFaults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.platform = SlurmPlatform()
        cls.platform.__enter__()
        cls.lab = cls.platform.lab

    @classmethod
    def tearDownClass(cls):
        cls.platform.__exit__(None, None, None)

    def tearDown(self):
        """Whatever a test took down is up again for the next one."""
        for process in (self.platform.daemon, self.platform.server):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
        self.lab.tool("up")
        if self.platform.daemon.poll() is not None:
            self.platform.start_daemon()

    def rows(self, *jobs, runs=1, wait=40):
        return ended_rows(self.lab, *jobs, runs=runs, wait=wait)

    def assert_captured(self, rows, wait=40):
        """Each row is stored once, with what it says."""
        def agree():
            for row in rows:
                found = [run for run in self.platform.runs(row["JobID"])
                         if seconds(run.get("submitted_at")) == int(row["Submit"])]
                self.assertEqual(len(found), 1, row["JobID"])
                assert_same_run(self, found[0], now(self.lab, row))
        eventually(wait, agree)

    # --- our side is away

    def test_jobs_start_and_end_while_the_daemon_is_down(self):
        across = self.lab.submit("sleep 6", "--job-name=before-and-after")
        ends_in = self.lab.submit("sleep 3; exit 2", "--job-name=ends-meanwhile")
        self.lab.wait_state(across, "RUNNING")
        self.lab.wait_state(ends_in, "RUNNING")
        self.platform.stop_daemon()
        all_in = self.lab.submit("exit 1", "--job-name=starts-and-ends-meanwhile")
        starts_in = self.lab.submit("sleep 8", "--job-name=starts-meanwhile")
        self.lab.wait_state(starts_in, "RUNNING")
        self.lab.wait_state(all_in, "FAILED")
        self.lab.wait_state(ends_in, "FAILED")
        self.platform.start_daemon()
        self.assert_captured(self.rows(across, ends_in, all_in, starts_in, runs=4))

    def test_daemon_killed(self):
        jobs = [self.lab.submit(f"sleep {wait}", f"--job-name=killed-{wait}") for wait in (1, 3, 5)]
        self.lab.wait_state(jobs[0], "RUNNING")
        for _ in range(3):
            self.platform.kill("daemon")
            self.platform.start_daemon()
            time.sleep(1)
        self.assert_captured(self.rows(*jobs, runs=3))

    def test_daemon_stopped_hurts_no_job(self):
        """SIGSTOP: the hooks find a daemon that is alive and takes nothing."""
        self.platform.daemon.send_signal(signal.SIGSTOP)
        self.assert_jobs_unharmed("stopped")
        self.platform.daemon.send_signal(signal.SIGCONT)

    def test_server_away_hurts_no_job(self):
        self.platform.server.send_signal(signal.SIGSTOP)
        self.assert_jobs_unharmed("server-away")
        self.platform.server.send_signal(signal.SIGCONT)

    def test_no_room_for_events_hurts_no_job(self):
        """The hooks' directory is a file: nothing can be written. Listings still find the jobs."""
        events = self.platform.run_dir / "hooks"
        self.platform.stop_daemon()
        shutil.rmtree(events, ignore_errors=True)
        events.touch()
        try:
            self.platform.start_daemon()
            self.assert_jobs_unharmed("no-room")
        finally:
            events.unlink()

    def assert_jobs_unharmed(self, name):
        """Exit codes are the scripts' own, nothing lasts a second longer, and all of it is captured later."""
        jobs = {self.lab.submit(f"sleep 1; exit {code}", f"--job-name={name}-{code}"): code for code in (0, 7)}
        started = time.monotonic()
        done = self.lab.command("srun", "sh", "-c", "exit 9", check=False)
        self.assertEqual(done.returncode, 9)
        self.assertLess(time.monotonic() - started, 8)
        rows = self.rows(*jobs, runs=2)
        for row in rows:
            self.assertEqual(row["ExitCode"], f"{jobs[int(row['JobID'])]}:0")
            self.assertLessEqual(int(row["End"]) - int(row["Start"]), 2 + 1)  # both ends are rounded
        for process in (self.platform.daemon, self.platform.server):
            process.send_signal(signal.SIGCONT)
        self.assert_captured(rows)

    # --- Slurm is away

    def test_slurmctld_restarts(self):
        job = self.lab.submit("sleep 20; exit 4", "--job-name=over-restart")
        self.lab.wait_state(job, "RUNNING")
        time.sleep(6)  # slurmctld's state is on disk by then
        self.lab.tool("kill", "slurmctld")
        time.sleep(6)  # a listing fails meanwhile
        self.assertNotIn("ended_at", self.platform.runs(str(job))[0], "an outage is no end")
        self.lab.tool("start", "slurmctld")
        later = self.lab.submit("true", "--job-name=after-restart")
        self.assert_captured(self.rows(job, later, runs=2))

    def test_slurmdbd_away(self):
        self.lab.tool("stop", "slurmdbd")
        job = self.lab.submit("exit 6", "--job-name=without-accounting")
        self.lab.wait_state(job, "FAILED")
        run = self.platform.wait_final(str(job), seconds=60)[0]
        self.assertEqual(run["exit_code"], 6)
        self.assertEqual(run["native_state"], "FAILED")
        wait_until("health says so", 60, lambda: self.platform.health().get("slurm_sacct", {}).get("status") not in
                   (None, "ok", "HEALTH_STATUS_OK"), 1)
        self.lab.tool("start", "slurmdbd")
        self.assert_captured(self.rows(job), wait=60)

    def test_node_fails(self):
        """The job that may be requeued has two runs, the other one is over."""
        node = self.lab.nodes[1]
        again = self.lab.submit("sleep 60", "--job-name=failed-over", f"--nodelist={node}", "--requeue")
        over = self.lab.submit("sleep 60", "--job-name=failed", f"--nodelist={node}", "--no-requeue")
        self.lab.wait_state(again, "RUNNING")
        self.lab.wait_state(over, "RUNNING")
        self.lab.tool("kill", "slurmd-node2")
        self.lab.wait_state(over, "NODE_FAIL", seconds=60)
        self.lab.command("scancel", str(again))
        self.lab.tool("start", "slurmd-node2")
        rows = self.rows(again, over, runs=2, wait=60)
        self.assertEqual({word(row["State"]) for row in rows if row["JobID"] == str(over)}, {"NODE_FAIL"})
        self.assertEqual(word(rows[0]["State"]), "NODE_FAIL")
        self.assert_captured([row for row in rows if word(row["State"]) == "NODE_FAIL"], wait=60)

    def test_job_ids_begin_again(self):
        """slurmctld has lost its state: an id means another job now. Both are kept."""
        self.lab.wait_idle()
        first = self.lab.submit("exit 1", "--job-name=first-of-its-id")
        rows = self.rows(first)
        self.assert_captured(rows)
        self.lab.tool("stop", "slurmctld")
        for file in (self.lab.state / "ctld").glob("job_state*"):
            file.unlink()
        (self.lab.state / "ctld/job_state.old").unlink(missing_ok=True)
        self.lab.set_conf(FirstJobId=first)
        self.lab.tool("start", "slurmctld")
        second = self.lab.submit("exit 2", "--job-name=second-of-its-id")
        self.assertEqual(second, first)
        rows = self.rows(first, runs=2)
        self.assertEqual([row["ExitCode"] for row in rows], ["1:0", "2:0"])
        self.assert_captured(rows)
        runs = self.platform.runs(str(first))
        self.assertEqual([run["exit_code"] for run in runs], [1, 2])
        self.assertEqual([run["name"] for run in runs], ["first-of-its-id", "second-of-its-id"])


if __name__ == "__main__":
    unittest.main()
