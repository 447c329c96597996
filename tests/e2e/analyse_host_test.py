"""`expanse analyse` without a scheduler: what earlier `expanse run` of a source file says about its next run.

Runs beside other tests.
"""

import concurrent.futures
import json
import os
import unittest

from harness import Platform, wait_until

MIB = 1 << 20

MODEL = """def hold(mib):
    return bytearray(b"x") * (mib << 20)
"""
TRAIN = """# Stands for a training run.
import sys
import time

import model

held = model.hold(int(sys.argv[1]))
time.sleep(2)
print("done", len(held))
"""
FLAKY = """import sys, time
print("this one reads", sys.argv)
for line in range(20):
    time.sleep(0.1)
if "x" in sys.argv:
    raise SystemExit("no such data")
"""


class AnalyseHost(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.platform = Platform()
        cls.platform.__enter__()
        cls.addClassCleanup(cls.platform.__exit__, None, None, None)
        cls.work = cls.platform.dir / "work"
        cls.work.mkdir()
        (cls.work / "model.py").write_text(MODEL)
        (cls.work / "train.py").write_text(TRAIN)
        (cls.work / "flaky.py").write_text(FLAKY)
        (cls.work / "never.sh").write_text("#!/bin/sh\nsort data | uniq -c\n")
        runs = [("good-%d" % n, "train.py", "150") for n in range(4)] + \
            [("flaky-0", "flaky.py", "y"), ("flaky-1", "flaky.py", "x")]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(lambda run: cls.platform.run("python3", *run[1:], options=["--name", run[0]], cwd=cls.work), runs))
        cls.stored = {run[0]: cls.platform.execution(run[0]) for run in runs}

    def cli(self, *args, **options):
        return self.platform.cli("analyse", *args, cwd=self.work, **options)

    def analyse(self, *args):
        answer = json.loads(self.cli(*args, "--json", "--no-cache").stdout)
        self.assertEqual(answer["status"], "RUN_STATUS_SUCCEEDED", answer)
        return answer["result"]

    def analyse_with(self, count, *args):
        """The answer once the index knows so many runs."""
        def known():
            result = self.analyse(*args)
            return result if len(result.get("evidence", [])) >= count else None
        return wait_until(f"{count} runs behind {args}", 60, known, 1)

    def test_good_runs_of_a_source_file(self):
        result = self.analyse_with(4, "train.py")
        self.assertEqual(result["target_kind"], "python")
        self.assertEqual(result["confidence"], "CONFIDENCE_LABEL_HIGH", result)
        completion = result["completion_probability"]
        self.assertEqual([completion[key] for key in ("mean", "sigma", "p10", "p90", "success_count")],
                         [0.9, 0.12, 0.73, 1, 4])
        self.assertEqual({run["execution_id"] for run in result["evidence"]},
                         {self.stored[f"good-{n}"]["execution_id"] for n in range(4)})
        wanted = int(result["recommended_resources"]["memory_bytes"])
        self.assertGreaterEqual(wanted, 150 * MIB)
        self.assertLessEqual(wanted, 1024 * MIB)
        # A source file asks for nothing: there is nothing to change in it.
        self.assertNotIn("artifacts", result)
        text = self.cli("train.py").stdout.decode()
        self.assertIn("completion_probability  mean=0.90 sigma=0.12 p10=0.73 p90=1.00\n", text)
        self.assertRegex(text, r"successful_runs +4 \(host runs ")

    def test_a_copy_elsewhere_is_the_same_workload(self):
        self.analyse_with(4, "train.py")
        other = self.platform.dir / "elsewhere"
        other.mkdir()
        (other / "model.py").write_text(MODEL)
        # Comments and blank lines are not the workload.
        (other / "train.py").write_text("\n\n" + TRAIN.replace("# Stands", "# It stands"))
        answer = self.platform.json("analyse", str(other / "train.py"), "--json")
        self.assertEqual(answer["result"]["confidence"], "CONFIDENCE_LABEL_HIGH", answer)
        self.assertEqual(len(answer["result"]["evidence"]), 4)

    def test_failures_count(self):
        result = self.analyse_with(2, "flaky.py")
        completion = result["completion_probability"]
        # Jeffreys' prior: one of two.
        self.assertEqual((completion["mean"], completion["success_count"]), (0.5, 1))
        self.assertIn("failure", [risk["class"] for risk in result["failure_risks"]])
        self.assertEqual(sorted(run["ending"] for run in result["evidence"]), ["failure", "success"])

    def test_what_never_ran(self):
        result = self.analyse("never.sh")
        self.assertEqual(result["confidence"], "CONFIDENCE_LABEL_LOW")
        self.assertTrue(result["warnings"])
        self.assertNotIn("completion_probability", result)

    def test_standard_input_and_refusals(self):
        done = self.cli("-", "--json", input=b"#!/bin/sh\n#SBATCH --mem=1G\necho hello\n")
        self.assertEqual(json.loads(done.stdout)["result"]["target_kind"], "sbatch")
        (self.work / "core").write_bytes(os.urandom(2000) + b"\0")
        (self.work / "bad.slurm").write_text("#!/bin/sh\n#SBATCH --mem=lots\n")
        for name, code in (("core", 2), ("bad.slurm", 2), ("missing.py", 3)):
            done = self.cli(name, check=False)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(name.encode(), done.stderr)
            self.assertEqual(done.stdout, b"")


if __name__ == "__main__":
    unittest.main()
