"""Daemon or server away: the command runs all the same and the record arrives later."""

import time
import unittest

from harness import Platform


class Outage(unittest.TestCase):
    def test_daemon_away_during_the_whole_run(self):
        with Platform() as platform:
            platform.kill("daemon")
            begin = time.monotonic()
            done = platform.run("sh", "-c", "echo while away; exit 4", options=("--name", "daemonless"))
            self.assertLess(time.monotonic() - begin, 5)
            self.assertEqual((done.returncode, done.stdout), (4, b"while away\n"))
            platform.start_daemon()
            execution = platform.execution("daemonless")
            self.assertEqual(execution["exit_code"], 4)
            self.assertIn("used", execution)

    def test_started_before_and_ended_after_a_daemon_restart(self):
        with Platform() as platform:
            running = platform.run_popen("sleep", "6", options=("--name", "across"))
            platform.execution("across", ended=False)
            platform.kill("daemon")
            time.sleep(1)
            platform.start_daemon()
            running.wait(20)
            self.assertEqual(platform.execution("across")["outcome"], "EXECUTION_OUTCOME_SUCCESS")

    def test_server_away(self):
        with Platform() as platform:
            platform.kill("server")
            for n in range(5):
                platform.run("true", options=("--name", f"serverless-{n}"))
            time.sleep(2)
            platform.start_server()
            for n in range(5):
                platform.execution(f"serverless-{n}", seconds=90)

    def test_sigterm_of_the_daemon_delivers_what_it_has(self):
        with Platform() as platform:
            platform.run("true", options=("--name", "last-words"))
            platform.daemon.terminate()
            self.assertEqual(platform.daemon.wait(15), 0)
            platform.execution("last-words", seconds=10)

    def test_run_killed_hard_is_finished_by_the_daemon(self):
        with Platform() as platform:
            running = platform.run_popen("sleep", "3", options=("--name", "orphan"))
            platform.execution("orphan", ended=False)
            running.kill()
            running.wait()
            execution = platform.execution("orphan", seconds=40)
            self.assertEqual(execution["status"], "EXECUTION_STATUS_UNKNOWN")

    def test_unwritable_spool_never_harms_the_run(self):
        with Platform() as platform:
            done = platform.cli("run", "--name", "nowhere", "--", "sh", "-c", "echo fine; exit 5", check=False,
                                env={"EXPANSE_SPOOL_DIR": "/proc/nowhere"})
            self.assertEqual((done.returncode, done.stdout), (5, b"fine\n"))


if __name__ == "__main__":
    unittest.main()
