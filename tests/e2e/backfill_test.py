"""`expanse-daemon backfill` with the real server, against Slurm programs that are scripts: what is imported, once;
what an interruption, a database that is away and a data plane that is away change (nothing, in the end)."""

import fcntl
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

from harness import BIN, Platform, wait_until

DAYS = 5
JOBS_A_DAY = 40

# Answers like sacct: the fields of --format, the separator, and the jobs that ended in the window. Reads its
# behaviour from files beside it.
SACCT = r'''#!/usr/bin/env python3
import calendar, os, pathlib, sys, time
here = pathlib.Path(__file__).parent
option = {a.partition("=")[0]: a.partition("=")[2] for a in sys.argv[1:]}
with open(here / "queries", "a") as log:
    log.write(" ".join(sys.argv[1:]) + "\n")
if (here / "away").exists():
    sys.exit("sacct: error: Problem talking to the database: Connection refused")
FIELDS = """JobID DBIndex Cluster User UID Account Partition QOS JobName State ExitCode Submit Eligible Start End
 ElapsedRaw TimelimitRaw ReqTRES AllocTRES NNodes NodeList NTasks TotalCPU MaxRSS TRESUsageInTot SubmitLine JobIDRaw"""
if "--helpformat" in option:
    print(FIELDS)
    sys.exit(0)
if (here / "slow").exists():
    time.sleep(float((here / "slow").read_text()))
assert os.environ["TZ"] == "UTC"
moment = lambda name: calendar.timegm(time.strptime(option[name], "%Y-%m-%dT%H:%M:%S"))
first, last = moment("--starttime"), moment("--endtime")
base, days, jobs = (int(x) for x in (here / "history").read_text().split())
out = sys.stdout.buffer
for n in range(days * jobs):
    end = base + n * 86400 // jobs
    if not first <= end <= last:
        continue
    row = {"JobIDRaw": n + 1, "JobID": n + 1, "DBIndex": n, "Cluster": "aurora", "User": "ines", "UID": 2001,
           "Account": "bio", "Partition": "batch", "JobName": "job|%d\n\xff" % n, "State": "COMPLETED",
           "ExitCode": "0:0", "Submit": end - 700, "Start": end - 600, "End": end, "ElapsedRaw": 600,
           "TimelimitRaw": 60, "ReqTRES": "cpu=2,mem=4G,node=1", "AllocTRES": "cpu=2,mem=4G,node=1",
           "NodeList": "c1", "TotalCPU": "15:00.000"}
    step = {"JobIDRaw": "%d.batch" % (n + 1), "DBIndex": n, "JobName": "batch", "State": "COMPLETED",
            "ExitCode": "0:0", "Start": end - 600, "End": end, "NTasks": 1, "MaxRSS": 2 << 30}
    for cells in (row, step):
        line = option["--delimiter"].join(str(cells.get(f, "")) for f in option["--format"].split(","))
        out.write(line.encode("latin-1") + b"\n")
'''

CONFIG = """Configuration data as of 2026-11-30T12:00:00
AccountingStorageType   = {accounting}
ClusterName             = aurora
SLURM_VERSION           = 23.11.4
"""


class Backfill(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.platform = SlurmPlatform()
        cls.platform.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.platform.__exit__(None, None, None)

    def setUp(self):
        self.platform.fresh_state()

    def test_imports_each_run_once_beside_a_running_daemon(self):
        platform = self.platform
        # What a running daemon holds.
        os.makedirs(platform.state, mode=0o700)
        with open(platform.state / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = platform.backfill("--since", platform.since)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"imported {DAYS * JOBS_A_DAY} runs", done.stdout)
        runs = platform.executions()
        self.assertEqual(len(runs), DAYS * JOBS_A_DAY)
        one = next(run for run in runs if run["native_id"] == "7")
        self.assertEqual(one["status"], "EXECUTION_STATUS_SUCCEEDED")
        self.assertEqual(one["user"], "ines")
        self.assertEqual(one["used"]["memory_peak_bytes"], str(2 << 30))
        self.assertEqual(one["used"]["cpu_seconds"], 900)
        self.assertTrue(one["name"].startswith("job|6\n"))

        queries = platform.queries()
        again = platform.backfill("--since", platform.since)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertLessEqual(platform.queries() - queries, 2)  # the fields, and the last minutes
        self.assertEqual(len(platform.executions()), DAYS * JOBS_A_DAY)
        everything = platform.backfill("--since", platform.since, "--again")
        self.assertEqual(everything.returncode, 0, everything.stderr)
        self.assertEqual(len(platform.executions()), DAYS * JOBS_A_DAY)

    def test_goes_on_after_an_interruption(self):
        platform = self.platform
        (platform.slurm / "slow").write_text("0.5")
        with platform.backfill_popen("--since", platform.since, "--chunk", "12h") as process:
            wait_until("some chunks", 30, lambda: platform.queries() >= 5)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130, err)
        done_before = json.loads((platform.state / "backfill/resume.json").read_text())["done"]
        self.assertEqual(len(done_before), 1)
        (platform.slurm / "slow").unlink()
        (platform.slurm / "queries").unlink()
        done = platform.backfill("--since", platform.since)
        self.assertEqual(done.returncode, 0, done.stderr)
        first = (platform.slurm / "queries").read_text().splitlines()[1]
        expected = time.strftime("--starttime=%Y-%m-%dT%H:%M:%S", time.gmtime(done_before[0][1]))
        self.assertIn(expected, first)
        self.assertEqual(len(platform.executions()), DAYS * JOBS_A_DAY)

    def test_only_one_at_a_time(self):
        platform = self.platform
        (platform.slurm / "slow").write_text("1")
        with platform.backfill_popen("--since", platform.since) as process:
            wait_until("its first query", 20, lambda: platform.queries() >= 2)
            second = platform.backfill("--since", "1d")
            self.assertEqual(second.returncode, 1)
            self.assertIn("another `expanse-daemon backfill` is at work", second.stderr)
            process.terminate()
            process.communicate(timeout=20)

    def test_waits_for_a_database_that_is_away(self):
        platform = self.platform
        (platform.slurm / "away").touch()
        with platform.backfill_popen("--since", platform.since) as process:
            wait_until("a query", 20, lambda: platform.queries() >= 1)
            time.sleep(0.5)
            self.assertIsNone(process.poll())
            (platform.slurm / "away").unlink()
            out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("waiting: ", err)
        self.assertIn(f"imported {DAYS * JOBS_A_DAY} runs", out)

    def test_keeps_what_the_data_plane_could_not_take(self):
        platform = self.platform
        platform.server.terminate()
        platform.server.wait(15)
        with platform.backfill_popen("--since", platform.since) as process:
            wait_until("100 %", 30, lambda: platform.covered() > 4 * 86400)
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("not all of it is delivered", err)
        platform.start_server()
        done = platform.backfill("--since", platform.since)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(platform.executions()), DAYS * JOBS_A_DAY)

    def test_says_what_is_wrong(self):
        platform = self.platform
        for arguments, code, message in (
                ((), 2, "--since is needed"),
                (("--since", "tomorrow"), 2, "no time in the past"),
                (("--since", "1d", "--until", "2d"), 2, "--until must be later"),
                (("--since", "1d", "--chunk", "1s"), 2, "--chunk must be"),
                (("--since", "1d", "--max-age", "1s"), 2, "no option of `expanse-daemon backfill`")):
            done = platform.backfill(*arguments, plain=True)
            self.assertEqual(done.returncode, code, arguments)
            self.assertIn(message, done.stderr)
        platform.configure("accounting_storage/none")
        done = platform.backfill("--since", "1d")
        self.assertEqual(done.returncode, 1)
        self.assertIn("keeps no accounting", done.stderr)


class SlurmPlatform(Platform):
    """A server and the identity of a Slurm compute; no daemon but `backfill`."""

    def __init__(self):
        super().__init__()
        self.slurm = self.dir / "slurm"
        self.slurm.mkdir()
        self.state = self.dir / "daemon"
        for name, text in (("sacct", SACCT), ("squeue", "#!/bin/sh\n"), ("scontrol", f"#!/bin/sh\ncat {self.slurm}/config\n")):
            (self.slurm / name).write_text(text)
            (self.slurm / name).chmod(0o755)
        self.states = 0

    def install(self):
        answer = self.json("compute", "register", "--type", "slurm", "--name", "under-test", "--json")
        self.cli("compute", "install", "--type", "slurm", "--write-config-only", "--control-plane", self.control_url,
                 "--data-plane", self.data_url, "--config", self.config,
                 env={"EXPANSE_INSTALL_TOKEN": answer["install_token"]["token"]})
        return answer["compute"]["compute_id"]

    def start_daemon(self):
        pass

    def wait_active(self):
        pass

    def configure(self, accounting):
        (self.slurm / "config").write_text(CONFIG.format(accounting=accounting))

    def fresh_state(self):
        """Slurm as usual, and nothing imported; what the server has stays, under the same identities."""
        self.states += 1
        self.state = self.dir / f"daemon-{self.states}"
        self.configure("accounting_storage/slurmdbd")
        for name in ("slow", "away", "queries"):
            (self.slurm / name).unlink(missing_ok=True)
        if not (self.slurm / "history").exists():
            begin = int(time.time()) - DAYS * 86400 - 3600
            (self.slurm / "history").write_text(f"{begin} {DAYS} {JOBS_A_DAY}")
            self.since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begin))

    def queries(self):
        path = self.slurm / "queries"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def covered(self):
        path = self.state / "backfill/resume.json"
        return sum(b - a for a, b in json.loads(path.read_text())["done"]) if path.exists() else 0

    def arguments(self, *given, plain=False):
        fast = () if plain else ("--pause", "0s")
        return [BIN / "expanse-daemon", "backfill", "--config", self.config, "--state-dir", self.state,
                "--slurm-bin-dir", self.slurm, *fast, *given]

    def backfill(self, *given, plain=False):
        return subprocess.run(self.arguments(*given, plain=plain), capture_output=True, text=True, timeout=120,
                              env=self.environment())

    def backfill_popen(self, *given):
        return subprocess.Popen(self.arguments(*given), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=self.environment())


if __name__ == "__main__":
    unittest.main()
