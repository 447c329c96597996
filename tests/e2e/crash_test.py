"""kill -9 of daemon and server at random moments under load: nothing acknowledged is lost, nothing is applied
twice. EXPANSE_KILL_ROUNDS rounds for each of the two (default 12; the slow tier runs 200)."""

import os
import random
import threading
import time
import unittest

from harness import Platform, wait_until

ROUNDS = int(os.environ.get("EXPANSE_KILL_ROUNDS", "12"))


class Crash(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(int(os.environ.get("EXPANSE_SEED", "20261130")))

    def load(self, platform, stop, names):
        """Short runs one after the other; a name counts once `expanse run` has returned."""
        n = 0
        while not stop.is_set():
            name = f"load-{threading.get_ident() % 1000}-{n}"
            done = platform.run("sh", "-c", "echo line; sleep 0.05", options=("--name", name))
            if done.returncode == 0:
                names.append(name)
            n += 1

    def kill_rounds(self, platform, victim, restart):
        stop, names = threading.Event(), []
        threads = [threading.Thread(target=self.load, args=(platform, stop, names)) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(ROUNDS):
                time.sleep(self.random.uniform(0.05, 1.0))
                platform.kill(victim)
                restart()
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        return names

    def check(self, platform, names):
        self.assertGreater(len(names), 5)
        self.assertEqual(len(names), len(set(names)))

        def all_there():
            seen = {}
            page = ""
            token = platform.access_token()
            while True:
                status, answer = platform.call(platform.data_url, "expanse.data.v1.QueryService.ListExecutions",
                                               {"page_size": 1000, "page_token": page}, token)
                if status != 200:
                    return None
                for execution in answer.get("executions", []):
                    name = execution.get("name")
                    self.assertNotIn(name, seen, "an execution was applied twice")
                    seen[name] = execution
                page = answer.get("next_page_token", "")
                if not page:
                    break
            missing = [n for n in names if n not in seen or "ended_at" not in seen[n]]
            return seen if not missing else None

        seen = wait_until("every acknowledged run in the store", 120, all_there, 1.0)
        for name in names:
            self.assertEqual(seen[name]["status"], "EXECUTION_STATUS_SUCCEEDED", name)

    def check_samples(self, platform, execution_id):
        """A long run's series has points, and none twice."""
        answer = platform.json("metrics", execution_id, "memory", "--json")
        answers = answer if isinstance(answer, list) else [answer]
        times = [p["timestamp"] for a in answers for s in a.get("series", []) for p in s["points"]]
        self.assertEqual(len(times), len(set(times)))
        self.assertGreater(len(times), 1)

    def test_daemon_killed(self):
        with Platform() as platform:
            witness = platform.run_popen("sleep", "3600", options=("--name", "witness"))
            try:
                # Its id now: later it is too far down the list of newest executions.
                witness_id = platform.execution("witness", ended=False)["execution_id"]
                names = self.kill_rounds(platform, "daemon", platform.start_daemon)
                self.check(platform, names)
                time.sleep(12)  # a sampling interval and an upload after the last kill
                self.check_samples(platform, witness_id)
            finally:
                witness.terminate()
                witness.wait(10)

    def test_server_killed(self):
        with Platform() as platform:
            names = self.kill_rounds(platform, "server", platform.start_server)
            self.check(platform, names)


if __name__ == "__main__":
    unittest.main()
