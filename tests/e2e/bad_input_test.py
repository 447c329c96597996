"""Bad input meets a clear error: at the planes' doors, at the CLI, at the daemon's configuration."""

import base64
import json
import os
import subprocess
import unittest

from harness import BIN, Platform, http

LIST = "expanse.data.v1.QueryService.ListExecutions"
JSON = {"Content-Type": "application/json"}


class BadInput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.platform = Platform()
        cls.platform.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.platform.__exit__(None, None, None)

    def url(self, plane, method):
        service, _, name = method.rpartition(".")
        return f"{plane}/{service}/{name}"

    # --- planes

    def test_tokens(self):
        p = self.platform
        self.assertEqual(p.call(p.data_url, LIST, {})[0], 401)
        self.assertEqual(p.call(p.data_url, LIST, {}, "nonsense")[0], 401)
        good = p.access_token()
        head, body, signature = good.split(".")
        self.assertEqual(p.call(p.data_url, LIST, {}, f"{head}.{body}.{signature[:-4]}AAAA")[0], 401)
        self.assertEqual(p.call(p.data_url, LIST, {}, f"eyJhbGciOiJub25lIn0.{body}.")[0], 401)
        self.assertEqual(p.call(p.data_url, LIST, {}, good)[0], 200)
        # A compute may not read, a user may not ingest.
        self.assertEqual(p.call(p.data_url, LIST, {}, p.compute_token())[0], 403)
        self.assertEqual(p.call(p.data_url, "expanse.data.v1.IngestService.Ingest", {}, good)[0], 403)

    def test_questions(self):
        p = self.platform
        analyse = "expanse.intelligence.v1.IntelligenceService.Analyse"
        question = {"target": {"path": "job.sh", "data": base64.b64encode(b"#!/bin/sh\n#SBATCH --mem=1G\ntrue\n").decode()}}
        good = p.access_token()
        self.assertEqual(p.call(p.intelligence_url, analyse, question)[0], 401)
        self.assertEqual(p.call(p.intelligence_url, analyse, question, p.compute_token())[0], 403)
        self.assertEqual(p.call(p.intelligence_url, analyse, question, good)[0], 200)
        for bad in ({}, {"target": {"path": "x"}}, {"target": {"path": "a.yaml", "data": base64.b64encode(b"\0\xff{").decode()}},
                    {"target": {"path": "big.sh", "data": base64.b64encode(b"#" * (4 << 20) + b"\n").decode()}},
                    dict(question, requested={"cpu_cores": -1}), dict(question, workload="x" * 2000)):
            status, answer = p.call(p.intelligence_url, analyse, bad, good)
            self.assertEqual(status, 400, str(bad)[:100])
            self.assertTrue(answer["message"], answer)
        status, answer = p.call(p.intelligence_url, analyse, {"target": {"path": "x", "data": "A" * (12 << 20)}}, good)
        self.assertEqual((status, answer["code"]), (429, "resource_exhausted"))

    def test_bodies(self):
        p = self.platform
        auth = dict(JSON, Authorization="Bearer " + p.access_token())
        url = self.url(p.data_url, LIST)
        for body in (b"{", b'{"page_size": "many"}', b'{"status": "EXECUTION_STATUS_NOPE"}', b"[]", b'{"users": ["\xff\xfe"]}',
                     b'{"page_token": "?"}', b'{"page_size": 4000000}', b'{"a":' * 5000 + b"1" + b"}" * 5000):
            status, answer, _ = http(url, body, auth)
            self.assertEqual(status, 400, body[:60])
            self.assertEqual(json.loads(answer)["code"], "invalid_argument", body[:60])
        # curl asks before it sends (Expect: 100-continue); a client that does not may see a reset instead.
        huge = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--noproxy", "*", "--data-binary", "@-",
                               "-H", "Content-Type: application/json", "-H", "Expect: 100-continue", url],
                              input=b"x" * (20 << 20), capture_output=True, timeout=60)
        self.assertEqual(huge.stdout, b"413")
        self.assertEqual(http(url, b"{}", dict(auth, **{"Content-Encoding": "gzip"}))[0], 400)
        self.assertEqual(http(url, b"{}", dict(auth, **{"Content-Encoding": "br"}))[0], 501)
        self.assertEqual(http(url, b"{}", dict(auth, **{"Content-Type": "text/plain"}))[0], 415)
        self.assertEqual(http(url.replace("ListExecutions", "Nothing"), b"{}", auth)[0], 404)
        self.assertEqual(http(p.data_url + "/../../etc/passwd")[0], 404)

    def test_install_token_works_once(self):
        p = self.platform
        exchange = "expanse.data.v1.IngestService.ExchangeInstallToken"
        status, made = p.call(p.control_url, "expanse.control.v1.ComputeService.RegisterCompute",
                              {"name": "once", "type": "SOURCE_TYPE_HOST"}, p.access_token())
        self.assertEqual(status, 200)
        token = made["install_token"]["token"]
        self.assertEqual(p.call(p.data_url, exchange, {"install_token": "exp_install_" + "A" * 43})[0], 401)
        status, answer = p.call(p.data_url, exchange, {"install_token": token, "type": "SOURCE_TYPE_SLURM"})
        self.assertIn(status, (400, 403, 412))
        status, first = p.call(p.data_url, exchange, {"install_token": token, "type": "SOURCE_TYPE_HOST"})
        self.assertEqual(status, 200, first)
        # A retry works until the first heartbeat, and replaces the credential.
        status, second = p.call(p.data_url, exchange, {"install_token": token})
        self.assertEqual(status, 200, second)
        mint = "expanse.control.v1.AuthService.MintComputeToken"
        self.assertEqual(p.call(p.control_url, mint, {"compute_id": first["compute_id"], "credential": first["credential"]})[0], 401)
        status, minted = p.call(p.control_url, mint, {"compute_id": second["compute_id"], "credential": second["credential"]})
        self.assertEqual(status, 200, minted)
        status, _ = p.call(p.control_url, "expanse.control.v1.ComputeService.Heartbeat", {"daemon_version": "t"}, minted["access"]["token"])
        self.assertEqual(status, 200)
        status, replay = p.call(p.data_url, exchange, {"install_token": token})
        self.assertNotEqual(status, 200, "an install token was replayed after the first heartbeat")
        self.assertIn("token", replay["message"])

    def test_revoked_compute_stops(self):
        p = self.platform
        _, made = p.call(p.control_url, "expanse.control.v1.ComputeService.RegisterCompute",
                         {"name": "gone", "type": "SOURCE_TYPE_HOST"}, p.access_token())
        _, got = p.call(p.data_url, "expanse.data.v1.IngestService.ExchangeInstallToken", {"install_token": made["install_token"]["token"]})
        p.cli("compute", "revoke", made["compute"]["compute_id"], "--yes")
        status, _ = p.call(p.control_url, "expanse.control.v1.AuthService.MintComputeToken",
                           {"compute_id": got["compute_id"], "credential": got["credential"]})
        self.assertEqual(status, 401)

    # --- CLI

    def cli_fails(self, code, *args, env=None, says=()):
        done = self.platform.cli(*args, check=False, env=env)
        self.assertEqual(done.returncode, code, (args, done.stderr))
        self.assertEqual(done.stdout, b"", args)
        self.assertTrue(done.stderr.startswith(b"expanse: "), done.stderr)
        for text in says:
            self.assertIn(text, done.stderr.decode())

    def test_cli_errors(self):
        self.cli_fails(2, "executoins", says=("executions",))
        self.cli_fails(2, "executions", "--stauts", "failed", says=("--status",))
        self.cli_fails(2, "executions", "--status", "sideways")
        self.cli_fails(2, "executions", "--limit", "minus one")
        self.cli_fails(2, "metrics", "x")
        self.cli_fails(3, "metrics", "00000000-0000-8000-8000-000000000000", "cpu")
        self.cli_fails(2, "compute", "register", "--type", "toaster")
        self.cli_fails(5, "status", env={"EXPANSE_API_URL": "http://127.0.0.1:1"})
        home = self.platform.dir / "nobody"
        home.mkdir(exist_ok=True)
        self.cli_fails(4, "executions", env={"EXPANSE_HOME": str(home)}, says=("login",))
        self.cli_fails(4, "login", env={"EXPANSE_API_KEY": "exp_user_" + "A" * 43})

    # --- daemon

    def daemon(self, *args):
        return subprocess.run([BIN / "expanse-daemon", *args], capture_output=True, timeout=20)

    def test_daemon_configuration(self):
        p = self.platform
        state = ("--state-dir", p.dir / "other-state")
        loose = p.dir / "loose.json"
        loose.write_text(p.config.read_text())
        loose.chmod(0o644)
        done = self.daemon("--config", loose, *state)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"chmod", done.stderr)
        loose.chmod(0o600)
        loose.write_text("{")
        self.assertNotEqual(self.daemon("--config", loose, *state).returncode, 0)
        self.assertNotEqual(self.daemon("--config", p.dir / "missing.json", *state).returncode, 0)
        done = self.daemon("--config", p.config, "--state-dir", p.dir / "daemon", "--spool-dir", p.spool)
        self.assertNotEqual(done.returncode, 0, "two daemons share a state directory")
        self.assertNotEqual(self.daemon("--no-such-flag").returncode, 0)

    def test_server_settings(self):
        done = subprocess.run([BIN / "expanse-server", "--state-dir", self.platform.dir / "s2", "--control-listen", "0.0.0.0:0",
                               "--data-listen", "127.0.0.1:0", "--intelligence-listen", "127.0.0.1:0"], capture_output=True, timeout=20)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"TLS", done.stderr)


if __name__ == "__main__":
    unittest.main()
