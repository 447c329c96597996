"""A whole platform for a test: server, one compute, its daemon, a signed-in CLI. Standard library only."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get("EXPANSE_BIN_DIR") or ROOT / "build/dev/bin").resolve()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(what, seconds, condition, pause=0.1):
    """The first true value of condition(); fails the test after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(pause)


def http(url, body=None, headers=None, method=None):
    """(status, body bytes, headers) of one request; HTTP errors are answers, not exceptions."""
    request = urllib.request.Request(url, data=body, headers=headers or {}, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=20) as answer:
            return answer.status, answer.read(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read(), dict(error.headers)


class Platform:
    """Starts in `with`; everything lives in one temporary directory and is gone afterwards."""

    def __init__(self, control_url=None, server_args=(), daemon_args=()):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="expanse-e2e."))
        self.control_port, self.data_port, self.intelligence_port = free_port(), free_port(), free_port()
        self.listen_on("127.0.0.1")
        # Where the daemon and the CLI look for the control plane; a test may put a recorder between.
        self.seen_control_url = control_url or self.control_url
        self.server_args, self.daemon_args = list(server_args), list(daemon_args)
        self.server = self.daemon = None
        self.spool = self.dir / "spool"
        self.config = self.dir / "config.json"

    # --- life

    def __enter__(self):
        try:
            self.start_server()
            self.sign_in()
            self.compute_id = self.install()
            self.start_daemon()
            self.wait_active()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind, value, trace):
        for process in (self.daemon, self.server):
            if process and process.poll() is None:
                process.terminate()
                try:
                    process.wait(15)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        if kind:
            for log in ("server.log", "daemon.log"):
                path = self.dir / log
                if path.exists():
                    print(f"--- end of {log}\n" + path.read_text(errors="replace")[-4000:])
        if not os.environ.get("EXPANSE_KEEP"):
            shutil.rmtree(self.dir, ignore_errors=True)

    def listen_on(self, address):
        """Where the server is to be found; before it starts."""
        self.address = address
        self.control_url = self.seen_control_url = f"http://{address}:{self.control_port}"
        self.data_url = f"http://{address}:{self.data_port}"
        self.intelligence_url = f"http://{address}:{self.intelligence_port}"

    def start_server(self):
        self.server = self.spawn(
            "server.log", [BIN / "expanse-server", "--state-dir", self.dir / "server",
             "--control-listen", f"{self.address}:{self.control_port}",
             "--data-listen", f"{self.address}:{self.data_port}",
             "--intelligence-listen", f"{self.address}:{self.intelligence_port}",
             "--control-public-url", self.seen_control_url, *self.server_args])
        wait_until("all planes ready", 30, self.ready, 0.02)

    def ready(self):
        if self.server.poll() is not None:
            raise AssertionError("server ended: " + (self.dir / "server.log").read_text()[-2000:])
        try:
            return all(http(f"{url}/readyz")[0] == 200 for url in (self.control_url, self.data_url, self.intelligence_url))
        except OSError:
            return False

    def start_daemon(self):
        self.daemon = self.spawn(
            "daemon.log", [BIN / "expanse-daemon", "--config", self.config, "--state-dir", self.dir / "daemon",
             "--spool-dir", self.spool, *self.daemon_args])

    def spawn(self, log_name, argv):
        with open(self.dir / log_name, "ab") as log:
            return subprocess.Popen(argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def kill(self, name):
        process = getattr(self, name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def sign_in(self):
        link = subprocess.run([BIN / "expanse-server", "sign-in-link", "--state-dir", self.dir / "server"],
                              check=True, capture_output=True, text=True).stdout.strip()
        self.cli("login", env={"EXPANSE_SIGN_IN_LINK": link})

    def install(self):
        answer = self.json("compute", "register", "--type", "host", "--name", "under-test", "--json")
        self.cli("compute", "install", "--control-plane", self.seen_control_url, "--data-plane", self.data_url,
                 "--config", self.config, env={"EXPANSE_INSTALL_TOKEN": answer["install_token"]["token"]})
        return answer["compute"]["compute_id"]

    def wait_active(self):
        def active():
            computes = self.json("compute", "list", "--json").get("computes", [])
            return any(c["compute_id"] == self.compute_id and c["state"] == "COMPUTE_STATE_ACTIVE" for c in computes)
        wait_until("compute active", 30, active)

    # --- use

    def environment(self, extra=None):
        env = {"PATH": os.environ["PATH"], "HOME": str(self.dir / "home"), "EXPANSE_HOME": str(self.dir / "home"),
               "EXPANSE_API_URL": self.seen_control_url, "EXPANSE_SPOOL_DIR": str(self.spool), "LANG": "C.UTF-8"}
        env.update(extra or {})
        os.makedirs(env["EXPANSE_HOME"], mode=0o700, exist_ok=True)
        return env

    def cli(self, *args, env=None, check=True, input=None, timeout=60, cwd=None):
        done = subprocess.run([BIN / "expanse", *args], env=self.environment(env), input=input or b"",
                              capture_output=True, timeout=timeout, cwd=cwd or self.dir)
        if check and done.returncode != 0:
            raise AssertionError(f"expanse {args}: exit {done.returncode}\n{done.stdout.decode()}\n{done.stderr.decode()}")
        return done

    def json(self, *args):
        return json.loads(self.cli(*args).stdout)

    def run(self, *command, options=(), timeout=120, cwd=None):
        """`expanse run OPTIONS -- COMMAND`: the finished process, whatever its exit code."""
        return self.cli("run", *options, "--", *command, check=False, timeout=timeout, cwd=cwd)

    def run_popen(self, *command, options=(), **popen):
        return subprocess.Popen([BIN / "expanse", "run", *options, "--", *command], env=self.environment(),
                                cwd=self.dir, **popen)

    def executions(self, *args):
        return self.json("executions", "--limit", "1000", "--json", *args).get("executions", [])

    def execution(self, name, seconds=30, ended=True):
        """The execution called `name`, once it is there (and has ended)."""
        def find():
            found = [e for e in self.executions() if e.get("name") == name]
            if len(found) > 1:
                raise AssertionError(f"{len(found)} executions are called {name}")
            return found[0] if found and (not ended or "ended_at" in found[0]) else None
        return wait_until(f"execution {name}", seconds, find, 0.3)

    def call(self, plane_url, method, message, token=None):
        """One raw Connect call as JSON: (status, answer)."""
        headers = {"Content-Type": "application/json", "Connect-Protocol-Version": "1"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        service, _, name = method.rpartition(".")
        status, body, _ = http(f"{plane_url}/{service}/{name}", json.dumps(message).encode(), headers)
        return status, json.loads(body or b"{}")

    def access_token(self):
        """An access token of the signed-in user, renewed through the CLI when it is about to end."""
        self.cli("status")
        session = json.loads((self.dir / "home" / "session.json").read_text())
        return session["access_token"]

    def compute_token(self):
        identity = json.loads(self.config.read_text())
        status, answer = self.call(self.control_url, "expanse.control.v1.AuthService.MintComputeToken",
                                   {"compute_id": identity["compute_id"], "credential": identity["credential"]})
        assert status == 200, answer
        return answer["access"]["token"]
