"""Every kind of Slurm job: what is stored is what sacct says and what the test did (slurm_scenarios.py).

Runs beside other tests.
"""

import threading
import unittest

from slurm_lab import SlurmPlatform
from slurm_scenarios import SCENARIOS
from slurm_truth import assert_same_run, code_and_signal, ended_rows, eventually, now, word


class SlurmJobs(unittest.TestCase):
    """One lab for all; the jobs run while the tests wait for theirs."""

    @classmethod
    def setUpClass(cls):
        cls.platform = SlurmPlatform(lab_options=["--nodes", "3"])
        cls.platform.__enter__()
        cls.lab = cls.platform.lab
        cls.jobs, cls.failures, threads = {}, {}, []
        for scenario in SCENARIOS:
            thread = threading.Thread(target=cls.start, args=(scenario,), daemon=True)
            thread.start()
            threads.append(thread)
            if not scenario.submit:
                thread.join(0.2)  # dozens of sbatch at once would only wait for each other
        cls.threads = dict(zip((scenario.name for scenario in SCENARIOS), threads))

    @classmethod
    def tearDownClass(cls):
        cls.platform.__exit__(None, None, None)

    @classmethod
    def start(cls, scenario):
        lab = cls.lab
        try:
            if scenario.submit:
                job = scenario.submit(lab)
            else:
                options = [option.format(nodes=lab.nodes, out=lab.out) if isinstance(option, str) and "{" in option
                           else option for option in scenario.options]
                named = any(option in ("--job-name",) or str(option).startswith("--job-name=") for option in options)
                cwd = lab.out / scenario.cwd
                cwd.mkdir(exist_ok=True)
                job = lab.submit(scenario.script, *([] if named else ["--job-name", scenario.name]), *options,
                                 user=lab.user if scenario.user else None, cwd=None if scenario.user else cwd)
            cls.jobs[scenario.name] = job
            if scenario.act:
                scenario.act(lab, job)
        except BaseException as error:  # told by the scenario's test
            cls.failures[scenario.name] = error

    def run_scenario(self, scenario):
        thread = self.threads[scenario.name]
        thread.join(scenario.seconds)
        self.assertFalse(thread.is_alive(), "still submitting or acting")
        if scenario.name in self.failures:
            raise self.failures[scenario.name]
        job = self.jobs[scenario.name]
        expected_runs = sum(len(runs) for runs in scenario.runs.values())
        rows = ended_rows(self.lab, job, runs=expected_runs, wait=scenario.seconds)
        self.assertEqual(len(rows), expected_runs)
        captured = {}
        for suffix, expected in scenario.runs.items():
            native = f"{job}{suffix}"
            ours = [row for row in rows if row["JobID"] == native]
            self.assertEqual([word(row["State"]) for row in ours], [run.state for run in expected])
            for row, known in zip(ours, expected):
                code, number = code_and_signal(row["ExitCode"])
                if known.state not in ("CANCELLED", "REQUEUED", "PREEMPTED", "TIMEOUT"):
                    self.assertEqual((code, number), (known.exit_code % 128, known.signal))
            captured[suffix] = self.stored(native, ours)
            for run, known in zip(captured[suffix], expected):
                self.assertEqual(run.get("exit_code", 0), known.exit_code)
        if scenario.check:
            scenario.check(self, self.lab, job, captured)

    def stored(self, native, rows):
        """The executions of `native`; each must agree with its row, within the time that sacct is asked in."""
        def agree():
            runs = self.platform.runs(native)
            self.assertEqual(len(runs), len(rows))
            for run, row in zip(runs, rows):
                assert_same_run(self, run, now(self.lab, row))
            return runs
        return eventually(25, agree)


def add_tests():
    for scenario in SCENARIOS:
        def test(self, scenario=scenario):
            self.run_scenario(scenario)
        name = f"test_{scenario.name.replace('-', '_')}"
        assert not hasattr(SlurmJobs, name)
        setattr(SlurmJobs, name, test)


add_tests()

if __name__ == "__main__":
    unittest.main()
