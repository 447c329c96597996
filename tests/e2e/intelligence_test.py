"""The intelligence plane as a server: beside the others or in a process of its own, its queue across kill -9.
What analyse says is tested elsewhere; here it only has to say something."""

import base64
import os
import pathlib
import re
import secrets
import subprocess
import tempfile
import time
import unittest

from harness import BIN, Platform, http, wait_until

SERVICE = "expanse.intelligence.v1.IntelligenceService."
SCRIPT = b"#!/bin/sh\n#SBATCH --job-name=asked\n#SBATCH --mem=2G\n#SBATCH --time=1:00:00\npython train.py --seed %d\n"


def question(seed=1, **more):
    return {"target": {"path": "asked.sh", "data": base64.b64encode(SCRIPT % seed).decode()}, **more}


class Intelligence(unittest.TestCase):
    def ask(self, platform, method, message, status=200):
        got, answer = platform.call(platform.intelligence_url, SERVICE + method, message, platform.access_token())
        self.assertEqual(got, status, answer)
        return answer

    def caught_up(self, platform):
        """When the index of recorded runs last was whole; 0: it never was."""
        metrics = http(platform.intelligence_url + "/metrics")[1].decode()
        return float(re.search(r"^expanse_history_caught_up_timestamp_seconds (\S+)", metrics, re.M)[1])

    def check_answers(self, platform):
        wait_until("a whole index", 10, lambda: self.caught_up(platform))
        answer = self.ask(platform, "Analyse", question())
        self.assertEqual(answer["status"], "RUN_STATUS_SUCCEEDED")
        self.assertEqual(answer["result"]["job_name"], "asked")
        again = self.ask(platform, "Analyse", question())
        self.assertEqual(again["run_id"], answer["run_id"])
        self.assertTrue(again["cached"])
        run = self.ask(platform, "GetRun", {"run_id": answer["run_id"]})["run"]
        self.assertEqual(run["analyse"], answer["result"])
        listed = self.ask(platform, "ListRuns", {})["runs"]
        self.assertEqual([r["run_id"] for r in listed], [answer["run_id"]])
        self.ask(platform, "Analyse", {"target": {"path": "x", "data": ""}}, status=400)
        metrics = http(platform.intelligence_url + "/metrics")[1].decode()
        self.assertIn('expanse_runs_total{kind="analyse",status="cached"} 1', metrics)
        self.assertLess(abs(time.time() - self.caught_up(platform)), 30)

    def test_beside_the_others(self):
        with Platform() as platform:
            self.check_answers(platform)
            endpoints = platform.call(platform.control_url, "expanse.control.v1.DiscoveryService.GetEndpoints", {})[1]
            self.assertEqual(endpoints["intelligence_plane_url"], platform.intelligence_url)

    def test_runbooks_of_a_site(self):
        """A bad file does not keep the server from starting, and what is mended is in force without a restart."""
        with tempfile.TemporaryDirectory() as name:
            file = pathlib.Path(name, "site.yaml")
            file.write_text("- id: site_licence\n  colour: red\n")
            with Platform(server_args=("--intelligence-runbook-directory", name,
                                       "--intelligence-runbook-poll", "1s")) as platform:
                listed = self.ask(platform, "ListRunbooks", {})
                self.assertIn(f"{file}:2: unknown key 'colour'", listed["site_error"])
                self.assertNotIn("site_licence", [runbook["id"] for runbook in listed["runbooks"]])
                mended = pathlib.Path(name, ".site.new")
                mended.write_text("- id: site_licence\n  title: No licence\n  what: there was no licence.\n"
                                  "  signatures: ['LM-7']\n  must_match: ['LM-7: down']\n")
                mended.rename(file)
                listed = wait_until("the mended runbook", 60, lambda: self.in_force(platform))
                self.assertNotIn("site_error", listed)
                shown = self.ask(platform, "GetRunbook", {"id": "site_licence"})
                self.assertEqual(shown["summary"]["origin"], str(file))
                self.assertTrue(shown["yaml"].startswith("- id: site_licence\n"))

    def in_force(self, platform):
        listed = self.ask(platform, "ListRunbooks", {})
        return listed if any(runbook["id"] == "site_licence" for runbook in listed["runbooks"]) else None

    def test_in_a_process_of_its_own(self):
        secret = secrets.token_hex(32)
        os.environ["EXPANSE_CONTROL_INTELLIGENCE_PLANE_SECRETS"] = secret
        self.addCleanup(os.environ.pop, "EXPANSE_CONTROL_INTELLIGENCE_PLANE_SECRETS")
        platform = Platform(server_args=("--planes", "control,data"))
        platform.server_args += ["--control-intelligence-public-url", platform.intelligence_url]
        argv = [BIN / "expanse-server", "--state-dir", platform.dir / "server", "--planes", "intelligence",
                "--intelligence-listen", f"127.0.0.1:{platform.intelligence_port}",
                "--intelligence-control-url", platform.control_url]
        os.environ["EXPANSE_INTELLIGENCE_PLANE_SECRET"] = secret
        self.addCleanup(os.environ.pop, "EXPANSE_INTELLIGENCE_PLANE_SECRET")
        own = platform.spawn("intelligence.log", argv)
        try:
            with platform:
                self.check_answers(platform)
                second = subprocess.run([*argv[:-2], "--intelligence-control-url", platform.control_url],
                                        capture_output=True, timeout=20)
                self.assertNotEqual(second.returncode, 0)
                self.assertIn(b"intelligence plane", second.stderr)
                own.terminate()
                self.assertEqual(own.wait(15), 0)
        finally:
            if own.poll() is None:
                own.kill()
                own.wait()

    def test_the_queue_survives_kill_9(self):
        with Platform(server_args=("--intelligence-queue-workers", "1")) as platform:
            token = platform.access_token()
            runs = []
            for seed in range(60):
                status, answer = platform.call(platform.intelligence_url, SERVICE + "Analyse",
                                               question(seed, queue=True), token)
                self.assertEqual(status, 200, answer)
                self.assertEqual(answer["status"], "RUN_STATUS_QUEUED")
                runs.append(answer["run_id"])
            platform.kill("server")
            platform.start_server()

            def ended():
                listed = self.ask(platform, "ListRuns", {"page_size": 1000})["runs"]
                return listed if all("finished_at" in r for r in listed) else None
            listed = wait_until("all runs ended", 60, ended)
            self.assertEqual(sorted(r["run_id"] for r in listed), sorted(runs))
            failed = [r for r in listed if r["status"] != "RUN_STATUS_SUCCEEDED"]
            self.assertLessEqual(len(failed), 1, failed)  # the one that was being worked on
            for run in failed:
                self.assertEqual(run["error_reason"], "run.interrupted")


if __name__ == "__main__":
    unittest.main()
