"""`expanse analyse` on a real Slurm: what good, killed and timed-out runs of a script say about its next one.

Runs beside other tests.
"""

import hashlib
import json
import os
import pty
import re
import secrets
import sqlite3
import subprocess
import time
import unittest
import uuid

from harness import BIN, wait_until
from slurm_lab import SlurmPlatform

GIB = 1 << 30
MIB = 1 << 20

# Fills memory and keeps it: hold.py MIB SECONDS.
HOLD = """import sys, time
held = bytearray(b"x") * (int(sys.argv[1]) << 20)
time.sleep(float(sys.argv[2]))
print("held", len(held))
"""

SCRIPTS = {
    # Asks for ten times what it takes.
    "wasteful.slurm": "#SBATCH --job-name=wasteful\n#SBATCH --ntasks=1 --cpus-per-task=1\n#SBATCH --mem=2000M  # generous\n"
                      "#SBATCH --time=5\nexport API_TOKEN={secret}\nsrun python3 hold.py 180 3\n",
    # Asks for less than it takes.
    "starved.slurm": "#SBATCH --job-name=starved --time=5\n#SBATCH --mem=100M\nexec python3 hold.py 260 4\n",
    # Takes longer than it may.
    "late.slurm": "#SBATCH --job-name=late\n#SBATCH --mem=200M\n#SBATCH -t 1\npython3 hold.py 20 150\n",
}
NEVER_RAN = """#SBATCH --job-name=never --mem=4G --time=30
python3 -c 'print(6 * 7)' > other.txt
sort other.txt | uniq -c | awk '{print $2}'
"""


def rows(text):
    """{section: [(name, value)]} of the CLI's text."""
    sections, current = {}, None
    for line in text.splitlines():
        if not line:
            continue
        if re.fullmatch(r"[A-Z ]+", line):
            current = sections.setdefault(line, [])
        else:
            name, _, value = line.partition(" ")
            current.append((name, value.strip()))
    return sections


class AnalyseSlurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.platform = SlurmPlatform(lab_options=["--nodes", "2"])
        cls.platform.__enter__()
        cls.addClassCleanup(cls.platform.__exit__, None, None, None)
        cls.lab = cls.platform.lab
        cls.secret = "hf_" + secrets.token_hex(17)
        (cls.lab.out / "hold.py").write_text(HOLD)
        for name, body in SCRIPTS.items():
            cls.write(name, body.format(secret=cls.secret))
        cls.write("never.slurm", NEVER_RAN)
        cls.jobs = {"late.slurm": [cls.sbatch("late.slurm")], "starved.slurm": [cls.sbatch("starved.slurm")],
                    "wasteful.slurm": [cls.sbatch("wasteful.slurm") for _ in range(4)]}

    @classmethod
    def write(cls, name, body):
        (cls.lab.out / name).write_text("#!/bin/bash\n" + body)

    @classmethod
    def sbatch(cls, name):
        done = cls.lab.command("sbatch", "--parsable", name)
        return int(done.stdout.split(b";")[0])

    def captured(self, script, outcome, seconds=120):
        """Waits until all jobs of a script are stored with their end, and answers count them."""
        for job in self.jobs[script]:
            for run in self.platform.wait_final(str(job), seconds=seconds):
                self.assertEqual(run["outcome"], outcome, run)
        # Until then runs of similar scripts count instead.
        jobs = set(map(str, self.jobs[script]))
        wait_until(f"the index knows {script}", 60,
                   lambda: jobs <= {run["native_id"] for run in self.analyse(script).get("evidence", [])}, 1)

    def cli(self, *args, **options):
        return self.platform.cli("analyse", *args, cwd=self.lab.out, **options)

    def analyse(self, *args):
        answer = json.loads(self.cli(*args, "--json", "--no-cache").stdout)
        self.assertEqual(answer["status"], "RUN_STATUS_SUCCEEDED", answer)
        return answer["result"]

    def peaks(self, script):
        return [run["used"]["memory_peak_bytes"] for job in self.jobs[script] for run in self.platform.runs(str(job))]

    def test_four_good_runs(self):
        self.captured("wasteful.slurm", "EXECUTION_OUTCOME_SUCCESS")
        result = self.analyse("wasteful.slurm")
        self.assertEqual(result["confidence"], "CONFIDENCE_LABEL_HIGH", result)
        self.assertEqual((result["confidence_score"], result["confidence_score_fit"], result["confidence_score_runs"]),
                         (0.83, 4, 4))
        completion = result["completion_probability"]
        self.assertEqual([completion[key] for key in ("mean", "sigma", "p10", "p90", "success_count", "basis")],
                         [0.9, 0.12, 0.73, 1, 4, "exact_bundle"])
        self.assertEqual(sorted(int(run["native_id"]) for run in result["evidence"]), self.jobs["wasteful.slurm"])

        # Ten times too much memory: the need of its runs and some room, not less and not much more.
        self.assertIn("memory_lower", result["right_size"]["class"])
        self.assertTrue(result["right_size"]["review_required"])
        need = max(map(int, self.peaks("wasteful.slurm")))
        self.assertGreater(need, 150 * MIB)
        wanted = int(result["recommended_resources"]["memory_bytes"])
        self.assertGreaterEqual(wanted, need)
        self.assertLessEqual(wanted, 3 * need)

        text = rows(self.cli("wasteful.slurm").stdout.decode())
        row = dict(text["RESOURCE RECOMMENDATION"])
        self.assertEqual(row["completion_probability"], "mean=0.90 sigma=0.12 p10=0.73 p90=1.00")
        self.assertEqual(row["confidence"], "high (0.83, 4 of 4 measured runs fit)")
        self.assertEqual(row["gpu_count"], "0")
        self.assertEqual(text["FAILURE RISK"], [("class", "none")])
        said = re.fullmatch(r"4 \(SLURM jobs (.*); similarity 1\.00\)", dict(text["EVIDENCE"])["successful_runs"])
        self.assertEqual(sorted(map(int, said[1].split(", "))), self.jobs["wasteful.slurm"])

    def test_patched_copy_is_accepted_and_completes(self):
        self.captured("wasteful.slurm", "EXECUTION_OUTCOME_SUCCESS")
        original = (self.lab.out / "wasteful.slurm").read_bytes()
        result = self.analyse("wasteful.slurm")
        artefact = result["right_size"]["artifact_id"]
        diff = self.cli("diff", "--artefact", artefact).stdout.decode()
        self.assertIn("-#SBATCH --mem=2000M  # generous\n", diff)
        self.assertIn("[redacted]", diff)
        self.assertNotIn(self.secret, diff)
        copy = self.lab.out / "copy.slurm"
        copy.write_bytes(original)
        copy.chmod(0o750)
        self.cli("apply", "--artefact", artefact, "--file", str(copy))
        patched = copy.read_text()
        self.assertIn(self.secret, patched)
        self.assertEqual(copy.stat().st_mode & 0o777, 0o750)
        self.assertEqual((self.lab.out / "wasteful.slurm").read_bytes(), original)
        # Nothing but the number differs, and it is what was recommended.
        memory = int(re.search(r"--mem=(\d+)M  # generous", patched)[1]) * MIB
        self.assertGreaterEqual(memory, int(result["recommended_resources"]["memory_bytes"]))
        lines = zip(original.decode().splitlines(), patched.splitlines(), strict=True)
        self.assertLessEqual(sum(before != after for before, after in lines), 2)
        # Twice is a conflict.
        self.assertEqual(self.cli("apply", "--artefact", artefact, "--file", str(copy), check=False).returncode, 6)
        job = self.sbatch("copy.slurm")
        run = self.platform.wait_final(str(job))[0]
        self.assertEqual(run["outcome"], "EXECUTION_OUTCOME_SUCCESS", run)
        self.assertEqual(int(run["requested"]["memory_bytes"]), memory)

    def test_prompt_on_a_terminal(self):
        self.captured("wasteful.slurm", "EXECUTION_OUTCOME_SUCCESS")
        asked = self.lab.out / "asked.slurm"
        original = (self.lab.out / "wasteful.slurm").read_text()
        for answer, changed in (("n", False), ("y", True)):
            asked.write_text(original)
            said = self.on_a_terminal("asked.slurm", answer=answer)
            self.assertIn("Apply the resource recommendations automatically? [y/n] ", said)
            self.assertEqual(asked.read_text() != original, changed, said)
            self.assertIn("-#SBATCH --mem=2000M" if changed else "expanse analyse apply --artefact ", said)

    def on_a_terminal(self, *args, answer):
        """What `expanse analyse` says to a person who gives one answer."""
        ours, theirs = pty.openpty()
        with subprocess.Popen([BIN / "expanse", "analyse", *args], stdin=theirs, stdout=theirs, stderr=theirs,
                              cwd=self.lab.out, env=self.platform.environment()) as process:
            os.close(theirs)
            said = b""
            while True:
                try:
                    part = os.read(ours, 4096)
                except OSError:  # the other end is closed
                    part = b""
                if not part:
                    break
                said += part
                if answer and said.endswith(b"[y/n] "):
                    os.write(ours, answer.encode() + b"\n")
                    answer = None
            self.assertEqual(process.wait(20), 0, said)
        os.close(ours)
        return said.decode().replace("\r\n", "\n")

    def test_out_of_memory_raises_memory(self):
        self.captured("starved.slurm", "EXECUTION_OUTCOME_OUT_OF_MEMORY")
        result = self.analyse("starved.slurm")
        self.assertIn("memory_raise", result["right_size"]["class"], result)
        self.assertGreater(int(result["recommended_resources"]["memory_bytes"]), 100 * MIB)
        self.assertIn("out_of_memory", [risk["class"] for risk in result["failure_risks"]])
        text = rows(self.cli("starved.slurm").stdout.decode())
        self.assertIn(("class", "out_of_memory"), text["FAILURE RISK"])
        self.assertRegex(dict(text["EVIDENCE"])["out_of_memory_runs"],
                         rf"^1 \(SLURM job {self.jobs['starved.slurm'][0]}; ")

    def test_timeout_raises_walltime(self):
        self.captured("late.slurm", "EXECUTION_OUTCOME_TIMEOUT", seconds=200)
        result = self.analyse("late.slurm")
        self.assertIn("walltime_raise", result["right_size"]["class"], result)
        self.assertGreater(int(result["recommended_resources"]["walltime_seconds"]), 60)
        self.assertIn("timeout", [risk["class"] for risk in result["failure_risks"]])

    def test_without_history_it_says_so(self):
        result = self.analyse("never.slurm")
        self.assertEqual(result["confidence"], "CONFIDENCE_LABEL_LOW", result)
        self.assertNotIn("completion_probability", result)
        self.assertNotIn("confidence_score", result)
        self.assertNotIn("evidence", result)
        self.assertTrue(result["warnings"])
        text = rows(self.cli("never.slurm").stdout.decode())
        self.assertEqual(dict(text["RESOURCE RECOMMENDATION"])["completion_probability"], "unknown")
        self.assertEqual(dict(text["EVIDENCE"])["successful_runs"], "0")
        self.assertIn("warning", dict(text["EVIDENCE"]))

    def test_queued_then_shown(self):
        answer = json.loads(self.cli("never.slurm", "--queue", "--json", "--no-cache").stdout)
        self.assertIn(answer["status"], ("RUN_STATUS_QUEUED", "RUN_STATUS_RUNNING", "RUN_STATUS_SUCCEEDED"))

        def shown():
            run = json.loads(self.cli("show", answer["run_id"], "--json").stdout)["run"]
            return run if run["status"] == "RUN_STATUS_SUCCEEDED" else None
        run = wait_until("the queued run is done", 30, shown, 0.2)
        self.assertEqual(run["analyse"]["confidence"], "CONFIDENCE_LABEL_LOW")
        self.assertIn(answer["run_id"], self.cli("list").stdout.decode())

    def test_an_equal_question_is_answered_from_the_earlier_run(self):
        first = json.loads(self.cli("never.slurm", "--memory", "3GiB", "--json").stdout)
        again = json.loads(self.cli("never.slurm", "--memory", "3GiB", "--json").stdout)
        fresh = json.loads(self.cli("never.slurm", "--memory", "3GiB", "--json", "--no-cache").stdout)
        # Unless a job ended between the two, which makes it another question.
        if again.get("cached"):
            self.assertEqual(again["run_id"], first["run_id"])
        self.assertFalse(fresh.get("cached", False))
        self.assertNotEqual(fresh["run_id"], first["run_id"])

    def test_another_organisation_sees_nothing(self):
        self.captured("wasteful.slurm", "EXECUTION_OUTCOME_SUCCESS")
        ours = json.loads(self.cli("wasteful.slurm", "--json").stdout)
        artefact = ours["result"]["right_size"]["artifact_id"]
        stranger = {"EXPANSE_HOME": str(self.platform.dir / "stranger")}
        self.platform.cli("login", "--control-plane", self.platform.seen_control_url,
                          env={**stranger, "EXPANSE_API_KEY": self.add_stranger()})
        result = json.loads(self.cli("wasteful.slurm", "--json", "--no-cache", env=stranger).stdout)["result"]
        self.assertEqual(result["confidence"], "CONFIDENCE_LABEL_LOW")
        self.assertNotIn("evidence", result)
        self.assertEqual(self.cli("show", ours["run_id"], env=stranger, check=False).returncode, 3)
        self.assertEqual(self.cli("diff", "--artefact", artefact, env=stranger, check=False).returncode, 3)
        self.assertNotIn(ours["run_id"], self.cli("list", env=stranger).stdout.decode())

    def add_stranger(self):
        """An owner of a second organisation, whom no call can make yet; his personal key."""
        key, now = "exp_user_" + secrets.token_urlsafe(32), int(time.time() * 1e6)
        organisation, role, user = (str(uuid.uuid4()) for _ in range(3))
        database = self.platform.dir / "server/control/identity.db"
        with sqlite3.connect(database, timeout=30) as db:
            db.execute("INSERT INTO organisation VALUES (?, 'Elsewhere', ?)", (organisation, now))
            db.execute("INSERT INTO role VALUES (?, ?, 'Owner', 1, '')", (role, organisation))
            db.execute("INSERT INTO person VALUES (?, 'Stranger', '', '', ?)", (user, now))
            db.execute("INSERT INTO membership VALUES (?, ?, ?, ?)", (user, organisation, role, now))
            db.execute("INSERT INTO personal_key (id, user_id, name, hint, hash, created_at) VALUES (?, ?, 'k', 'k', ?, ?)",
                       (str(uuid.uuid4()), user, hashlib.sha256(key.encode()).hexdigest(), now))
        db.close()
        return key


if __name__ == "__main__":
    unittest.main()
