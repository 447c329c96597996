"""Importing history gives what live capture gave: the same executions, once, however often it is tried.

Runs beside other tests.
"""

import signal
import subprocess
import time
import unittest

from harness import BIN, wait_until
from slurm_lab import SlurmPlatform
from slurm_truth import as_stored, ended_rows, exact, heard_of_its_start, seconds

# What accounting tells, and must tell alike. Names have lost what slurmdbd does not keep.
SAME = ("native_id", "parent_native_id", "user", "account", "queue", "qos", "native_state", "status", "outcome",
        "signal", "working_directory", "nodes", "submitted_at", "started_at", "ended_at")

# Of these accounting forgets the signal.
ENDED_BY_SLURM = ("CANCELLED", "PREEMPTED", "REQUEUED", "TIMEOUT")


class SlurmBackfill(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.platform = SlurmPlatform()
        cls.platform.__enter__()
        lab = cls.lab = cls.platform.lab
        requeued = lab.submit("sleep 3", "--job-name=requeued")
        lab.wait_state(requeued, "RUNNING")
        time.sleep(1)  # its Prolog is over: it has begun
        lab.command("scontrol", "requeue", str(requeued))
        lab.submit("exit 3", "--job-name=fails")
        lab.submit("srun -n2 true; srun true", "--job-name=steps", "--ntasks=2")
        lab.submit('test "$SLURM_ARRAY_TASK_ID" != 2', "--job-name=array", "--array=0-3")
        lab.submit("#SBATCH --ntasks=1\n#SBATCH hetjob\n#SBATCH --ntasks=2\ntrue", "--job-name=het",
                   "--output", lab.out / "het-%j.out")
        lab.submit("true", "--job-name", 'a"b|c\nd \U0001f680')
        lab.submit("true", "--job-name=gpus", "--gres=gpu:1", "--comment=x|y")
        lab.submit("true", "--job-name=theirs", user=lab.user)
        cancelled = lab.submit("sleep 300", "--job-name=cancelled")
        lab.wait_state(cancelled, "RUNNING")
        lab.command("scancel", str(cancelled))
        lab.start_again_at_once(requeued)
        lab.wait_idle()

    @classmethod
    def tearDownClass(cls):
        cls.platform.__exit__(None, None, None)

    def rows(self):
        return ended_rows(self.lab, runs=14)

    def compute(self, name):
        """A further compute of the same cluster: (id, identity file)."""
        answer = self.platform.json("compute", "register", "--type", "slurm", "--name", name, "--json")
        config = self.platform.dir / f"{name}.json"
        self.platform.cli("compute", "install", "--type", "slurm", "--write-config-only",
                          "--control-plane", self.platform.control_url, "--data-plane", self.platform.data_url,
                          "--config", config, env={"EXPANSE_INSTALL_TOKEN": answer["install_token"]["token"]})
        return answer["compute"]["compute_id"], config

    def backfill(self, name, config, *options):
        return subprocess.Popen(
            [BIN / "expanse-daemon", "backfill", "--config", config, "--state-dir", self.platform.dir / name,
             "--since", "1d", *options], env=self.platform.daemon_environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def finish(self, process):
        output = process.communicate(timeout=90)[0]
        self.assertEqual(process.returncode, 0, output)
        return output

    def stored(self, compute):
        return {(run["native_id"], seconds(run["submitted_at"])): run
                for run in self.platform.executions("--compute", compute)}

    def test_history_equals_live_capture(self):
        rows = self.rows()
        keys = {(row["JobID"], int(row["Submit"])) for row in rows}

        def live():
            found = self.stored(self.platform.compute_id)
            # Steps come with sacct's record, the last that is heard of a run.
            return found if keys <= found.keys() and all(found[key].get("steps") for key in keys) else None
        live = wait_until("all of it captured live", 60, live, 0.5)
        compute, config = self.compute("history")
        self.finish(self.backfill("history", config))
        history = wait_until("all of it imported", 30, lambda: (
            lambda found: found if len(found) >= len(keys) else None)(self.stored(compute)), 0.5)
        self.assertEqual(history.keys(), keys)
        heard = {(row["JobID"], int(row["Submit"])): heard_of_its_start(row) for row in rows}
        for key, run in history.items():
            with self.subTest(job=key[0]):
                if not heard[key]:  # accounting lost what live capture has
                    self.assertEqual(run["status"], live[key]["status"])
                    continue
                for field in SAME:
                    if field == "signal" and field not in run and run["native_state"] in ENDED_BY_SLURM:
                        continue  # only squeue tells it
                    self.assertEqual(run.get(field), live[key].get(field), field)
                self.assertEqual(exact(run, "name"), as_stored(exact(live[key], "name")))
                self.assertEqual(run.get("exit_code", 0), live[key].get("exit_code", 0) % 128)
                for field in ("requested", "allocated"):
                    for amount in ("cpu_cores", "memory_bytes", "gpu_count", "node_count"):
                        self.assertEqual(run[field].get(amount), live[key][field].get(amount), f"{field} {amount}")
                self.assertEqual({step["id"] for step in run.get("steps", [])},
                                 {step["id"] for step in live[key].get("steps", [])})
        # Once more changes nothing.
        self.finish(self.backfill("history", config, "--again"))
        time.sleep(2)
        self.assertEqual(self.stored(compute).keys(), keys)

    def test_interrupted_and_taken_up_again(self):
        self.rows()
        compute, config = self.compute("interrupted")
        process = self.backfill("interrupted", config, "--chunk", "1h", "--pause", "1s")
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=20)[0]
        self.assertEqual(process.returncode, 130, output)
        self.finish(self.backfill("interrupted", config, "--chunk", "1h", "--pause", "0s"))
        keys = {(row["JobID"], int(row["Submit"])) for row in self.rows()}
        wait_until("all of it imported", 30, lambda: self.stored(compute).keys() >= keys, 0.5)
        self.assertEqual(self.stored(compute).keys(), keys)


if __name__ == "__main__":
    unittest.main()
