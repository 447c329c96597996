"""Not a byte of workload data reaches the control plane: workloads full of planted strings run and are asked about,
and everything that was sent to control, and everything it stored, is searched for them."""

import base64
import json
import socket
import threading
import unittest

from harness import Platform, wait_until

CANARY = "canary7f3a"


class Recorder(threading.Thread):
    """A TCP relay in front of the control plane that keeps every byte of both directions."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.target = None
        self.seen = bytearray()
        self.lock = threading.Lock()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target), 5)
            except OSError:
                client.close()
                continue
            threading.Thread(target=self.serve, args=(client, server), daemon=True).start()

    def serve(self, client, server):
        with client, server:
            back = threading.Thread(target=self.relay, args=(server, client), daemon=True)
            back.start()
            self.relay(client, server)
            back.join()

    def relay(self, source, sink):
        try:
            while data := source.recv(65536):
                with self.lock:
                    self.seen += data
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


ANALYSE = "expanse.intelligence.v1.IntelligenceService.Analyse"


class Boundary(unittest.TestCase):
    def analyse(self, platform):
        """Asks about a job full of canaries, at once and through the queue; the answers are shown again."""
        script = f"""#!/bin/sh
#SBATCH --job-name={CANARY}-job
#SBATCH --mem=2G
#SBATCH --time=1:00:00
# {CANARY}-comment
echo {CANARY}-command
"""
        token = platform.access_token()
        for queue in (False, True):
            status, answer = platform.call(
                platform.intelligence_url, ANALYSE,
                {"target": {"path": f"{CANARY}-target.sh", "data": base64.b64encode(script.encode()).decode()},
                 "local_user": f"{CANARY}-user", "compute_id": platform.compute_id, "queue": queue}, token)
            self.assertEqual(status, 200, answer)

            def ended(run_id=answer["run_id"]):
                _, shown = platform.call(platform.intelligence_url, ANALYSE.replace("Analyse", "GetRun"),
                                         {"run_id": run_id}, token)
                return shown["run"] if "finished_at" in shown["run"] else None
            run = wait_until("the run's end", 30, ended)
            self.assertEqual(run["status"], "RUN_STATUS_SUCCEEDED", run)
            self.assertIn(CANARY, json.dumps(run))

    def test_control_never_sees_workload_data(self):
        recorder = Recorder()
        platform = Platform(control_url=f"http://127.0.0.1:{recorder.port}")
        recorder.target = platform.control_port
        recorder.start()
        with platform:
            script = platform.dir / f"{CANARY}-script.sh"
            script.write_text(f"#!/bin/sh\n# {CANARY}-source\necho {CANARY}-out; echo {CANARY}-err >&2; exit 3\n")
            script.chmod(0o755)
            platform.run(str(script), f"{CANARY}-argument", options=("--name", f"{CANARY}-name", "--comment", f"{CANARY}-comment"))
            execution = platform.execution(f"{CANARY}-name")
            platform.cli("metrics", execution["execution_id"], "memory")
            self.assertIn(CANARY.encode(), platform.cli("logs", execution["execution_id"]).stdout)
            self.analyse(platform)
            platform.daemon.terminate()
            platform.daemon.wait(15)
            platform.server.terminate()
            platform.server.wait(15)
            recorder.listener.close()
            with recorder.lock:
                self.assertGreater(len(recorder.seen), 1000, "the recorder was not in the way")
                self.assertNotIn(CANARY.encode(), recorder.seen)
            stored = {"control": False, "data": False, "intelligence": False}
            for path in (platform.dir / "server").rglob("*"):
                if not path.is_file():
                    continue
                plane = path.relative_to(platform.dir / "server").parts[0]
                found = CANARY.encode() in path.read_bytes()
                if "control" in plane:
                    self.assertFalse(found, f"{path} holds workload data")
                    stored["control"] = True
                elif found:
                    stored[plane] = True
            self.assertEqual(stored, {"control": True, "data": True, "intelligence": True}, "looked in the wrong places")


if __name__ == "__main__":
    unittest.main()
