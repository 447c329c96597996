"""Runs a table of jobs on one Slurm lab and holds `expanse diagnose` of each against what went wrong in it."""

import dataclasses
import json
import os
import re
import shutil
import threading
import unittest
from typing import Callable

from harness import wait_until
from slurm_lab import SlurmPlatform
from slurm_truth import seconds as epoch

SURE = ("MEDIUM", "HIGH")
UNITS = {"B": 0, "KiB": 10, "MiB": 20, "GiB": 30}


@dataclasses.dataclass
class Diagnosed:
    """What the answer for one run must be. `failure_class` "": nothing failed."""

    failure_class: str
    state: str = "failed"
    # Each of these is in what the job wrote, and in a line that the answer quotes from there.
    quotes: tuple = ()
    # Each of these is known of the run and, where something failed, in evidence of that origin: (origin, text).
    cites: tuple = ()
    # Regular expressions that the root cause has.
    says: tuple = ()
    confidence: tuple = SURE


@dataclasses.dataclass
class Scenario:
    name: str
    # The lines below the first; {out} is the lab's directory.
    script: str = "true"
    options: tuple = ()
    # Of each run of the job, in the order of their submission.
    runs: tuple = ()
    # What follows the job's id in the native id: "_1" of an array's task.
    suffix: str = ""
    shell: str = "/bin/sh"
    user: bool = False
    # Another way to submit than sbatch with the fields above: takes the lab, gives the id.
    submit: Callable = None
    # What is done to the job once it is submitted: takes the lab and the id, on a thread of its own.
    act: Callable = None
    # The run does not end by itself: it is diagnosed in this native state, or for this reason.
    stays: str = ""
    seconds: float = 150
    # Nobody asks: its class is in the list all the same.
    unasked: bool = False
    # A program or file without which it cannot run here.
    needs: str = ""


class DiagnosedJobs(unittest.TestCase):
    """The jobs run while the tests, one a scenario, wait for theirs."""

    scenarios = ()
    nodes = 2
    # Index of the first node that only scenarios with a --nodelist of their own use.
    reserved_from = None

    @classmethod
    def setUpClass(cls):
        if not cls.scenarios:
            raise unittest.SkipTest("no table")
        cls.platform = SlurmPlatform(lab_options=["--nodes", str(cls.nodes)],
                                     daemon_args=["--sample-young-interval", "500ms", "--sample-flush-interval", "1s"])
        cls.platform.__enter__()
        cls.addClassCleanup(cls.platform.__exit__, None, None, None)
        cls.lab = cls.platform.lab
        cls.prepare(cls.lab.out)
        cls.jobs, cls.failures, cls.threads = {}, {}, {}
        for scenario in cls.scenarios:
            if scenario.needs and not shutil.which(scenario.needs, mode=os.F_OK):
                continue
            thread = cls.threads[scenario.name] = threading.Thread(target=cls.start, args=(scenario,), daemon=True)
            thread.start()
            thread.join(0.2)  # dozens of sbatch at once would only wait for each other

    @classmethod
    def prepare(cls, folder):
        """Writes the programs of the jobs."""

    @classmethod
    def start(cls, scenario):
        try:
            cls.jobs[scenario.name] = job = (scenario.submit or cls.submitter(scenario))(cls.lab)
            if scenario.act:
                scenario.act(cls.lab, job)
        except BaseException as error:  # told by the scenario's test
            cls.failures[scenario.name] = error

    @classmethod
    def submitter(cls, scenario):
        def submit(lab):
            options = [option.format(nodes=lab.nodes, out=lab.out) for option in scenario.options]
            if cls.reserved_from and not any(option.startswith("--nodelist") for option in options):
                options.append("--exclude=" + ",".join(lab.nodes[cls.reserved_from:]))
            return lab.submit(scenario.script.replace("{out}", str(lab.out)), "--job-name", scenario.name, *options,
                              user=lab.user if scenario.user else None, cwd=lab.out, shell=scenario.shell)
        return submit

    def run_scenario(self, scenario):
        if scenario.name not in self.threads:
            self.skipTest(f"not installed: {scenario.needs}")
        thread = self.threads[scenario.name]
        thread.join(scenario.seconds)
        self.assertFalse(thread.is_alive(), "still submitting or acting")
        if scenario.name in self.failures:
            raise self.failures[scenario.name]
        for run, expected in zip(self.captured(scenario), scenario.runs):
            if scenario.unasked:
                wait_until("the class in the list", scenario.seconds,
                           lambda: self.row_of(run)[-1] == expected.failure_class, 1)
            else:
                self.assert_diagnosed(run, expected)

    # --- what was captured

    def captured(self, scenario):
        """The runs, once all that the diagnosis is to rest on has been captured."""
        native = f"{self.jobs[scenario.name]}{scenario.suffix}"

        def there():
            runs = self.platform.runs(native)
            complete = [self.is_complete(scenario, *pair) for pair in zip(runs, scenario.runs)]
            return runs if len(complete) == len(scenario.runs) and all(complete) else None

        try:
            return wait_until("captured", scenario.seconds, there, 0.5)
        except AssertionError as error:
            runs = self.platform.runs(native)
            logs = [self.log_of(run) for run in runs]
            raise AssertionError(f"{error}: {json.dumps(runs, indent=1)}\n{logs}") from None

    def is_complete(self, scenario, run, expected):
        if scenario.stays:
            return scenario.stays in (run.get("native_state"), run.get("native_reason"))
        # Steps come with sacct's record, which is the last.
        if "ended_at" not in run or (run.get("started_at") and not run.get("steps")):
            return False
        if any(origin == "event" for origin, _ in expected.cites) and not run.get("used", {}).get("oom_kills"):
            return False
        if any(origin == "source" for origin, _ in expected.cites) and not run.get("bundle_hash"):
            return False
        # squeue and sacct tell in no order, and not all of it each.
        known = " ".join(record_sentences(run))
        if not all(text in known for origin, text in expected.cites if origin in ("scheduler", "exit")):
            return False
        log = self.log_of(run) if expected.quotes else ""
        return all(quote in log for quote in expected.quotes)

    def log_of(self, run):
        return self.platform.cli("logs", run["execution_id"], check=False).stdout.decode(errors="replace")

    # --- what is said of it

    def row_of(self, run):
        """The words of the run's row in the table of executions."""
        rows = self.platform.cli("executions", "--limit", "1000").stdout.decode().splitlines()
        return next(row.split() for row in rows if row.startswith(run["execution_id"]))

    def diagnose(self, run):
        answer = json.loads(self.platform.cli("diagnose", run["execution_id"], "--json", "--no-cache").stdout)
        self.assertEqual(answer["status"], "RUN_STATUS_SUCCEEDED", answer)
        return answer["result"]

    def assert_diagnosed(self, run, expected):
        result = self.diagnose(run)
        shown = json.dumps({**result, "agent_prompt": ""}, indent=1)
        display = result["display"]
        self.assertEqual(display["state"], expected.state, shown)
        self.assertEqual(display.get("failure_class", ""), expected.failure_class, shown)
        evidence = result.get("evidence", [])
        # Samples of its last seconds may have come meanwhile.
        records = [run, *(one for one in self.platform.runs(run["native_id"])
                          if one["execution_id"] == run["execution_id"])]
        for cited in evidence:
            self.assert_is_there(records, cited)
        for pattern in expected.says:
            self.assertRegex(result["root_cause"], pattern.format(nodes=self.lab.nodes), shown)
        if not expected.failure_class:
            self.assertNotIn("agent_prompt", result)
            return
        self.assertIn(result["confidence"].removeprefix("CONFIDENCE_LABEL_"), expected.confidence, shown)
        for origin, text in (*(("log", quote) for quote in expected.quotes), *expected.cites):
            cited = [item["quote"] for item in evidence if item.get("origin") == origin]
            self.assertTrue(any(text in quote for quote in cited), f"no {origin} evidence has {text!r}: {shown}")

    def assert_is_there(self, records, cited):
        """What is cited is in one of the records, or in what was captured and what the job wrote or was made from."""
        run, origin, quote = records[0], cited.get("origin"), cited.get("quote", "")
        if origin == "log":
            self.assertIn(quote, self.log_of(run))
            self.assertIn(quote, (self.lab.out / f"job-{run['native_id']}.out").read_text(errors="replace"))
        elif origin == "source":
            self.assertIn(quote.encode(), self.source(run["name"], cited["where"].rpartition(" line ")[0]))
        elif origin in ("scheduler", "exit"):
            self.assertIn(quote, set().union(*map(record_sentences, records)))
        elif origin == "event":
            self.assertIn(quote, {f"processes killed at the memory limit: {record['used'].get('oom_kills')}"
                                  for record in records})
        elif origin == "metric":
            self.assertTrue(any(is_measured(record, quote) for record in records), (quote, records))
        else:
            self.assertEqual(origin, "similar", cited)

    def source(self, job_name, path):
        if path != "batch_script":
            return (self.lab.out / path).read_bytes()
        return next(scenario.script for scenario in self.scenarios if scenario.name == job_name).encode()


def is_measured(run, quote):
    """Whether this sentence is about a run that was measured so."""
    runtime = epoch(run["ended_at"]) - epoch(run["started_at"])
    if match := re.fullmatch(r"ran (\d+) s of (\d+) s", quote):
        return int(match[1]) == runtime and match[2] == run["requested"]["walltime_seconds"]
    if match := re.fullmatch(r"no activity in the last (\d+) s", quote):
        return int(match[1]) <= runtime
    if match := re.fullmatch(r"peak memory ([\d.]+) (\w+) of ([\d.]+) (\w+)", quote):
        peak, limit = (float(match[at]) * 2 ** UNITS[match[at + 1]] for at in (1, 3))
        return (abs(peak / int(run["used"]["memory_peak_bytes"]) - 1) < 0.01
                and abs(limit / int(run["requested"]["memory_bytes"]) - 1) < 0.01)
    return False


def record_sentences(run):
    """All that may be cited of an execution's record."""
    said = {"scheduler slurm", f"state {run.get('native_state')}", f"reason {run.get('native_reason')}",
            f"exit code {run.get('exit_code')}", f"signal {run.get('signal')}",
            f"restarted {run.get('restart_count')} times",
            f"cancelled by uid {run.get('labels', {}).get('slurm.cancelled_by')}",
            "status " + run["status"].removeprefix("EXECUTION_STATUS_").lower(),
            "outcome " + run.get("outcome", "").removeprefix("EXECUTION_OUTCOME_").lower()}
    for step in run.get("steps", []):
        text = f"step {step['id']} {step['native_state']}"
        if "exit_code" in step:
            text += f", exit code {step['exit_code']}"
        if step.get("signal"):
            text += f", signal {step['signal']}"
        said.add(text)
    return said


def add_tests(case):
    """A test for each scenario of a class."""
    for scenario in case.scenarios:
        def test(self, scenario=scenario):
            self.run_scenario(scenario)
        name = f"test_{scenario.name.replace('-', '_')}"
        assert not hasattr(case, name)
        setattr(case, name, test)
