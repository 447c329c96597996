"""The lab itself: comes up again and again, side by side, and leaves nothing behind, whatever was killed.

Runs beside other tests.
"""

import os
import pathlib
import shutil
import signal
import tempfile
import unittest

from harness import wait_until
from slurm_lab import Lab, require_slurm

# Where labs of a host know of each other.
SHARED = pathlib.Path("/run/expanse-slurm-lab")


def processes_of(state):
    """Processes that the lab has: their words or their SLURM_CONF name its directory."""
    mark, found = str(state).encode() + b"/", []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "cmdline").read_bytes() or mark in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            pass  # it has ended
    return found


def cgroups_of(lab):
    return [path for node in lab.nodes for path in pathlib.Path("/sys/fs/cgroup").glob(f"**/*{node}*")
            if path.is_dir()]


class SlurmLab(unittest.TestCase):
    def setUp(self):
        require_slurm()
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="expanse-lab."))
        self.base.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.base, ignore_errors=True)

    def lab(self, name):
        lab = Lab(self.base / name)
        self.addCleanup(lab.down)
        return lab

    def assert_gone(self, lab):
        self.assertFalse(lab.state.exists())
        self.assertEqual(processes_of(lab.state), [])
        self.assertEqual(cgroups_of(lab), [])
        self.assertFalse(any(pathlib.Path(os.readlink(link)) == lab.state for link in SHARED.glob("*")))

    def test_nothing_is_left_of_frozen_tasks(self):
        """slurmstepd freezes what it signals. If it dies then, its tasks do not even die of SIGKILL."""
        lab = self.lab("frozen")
        lab.up("--nodes", "1")
        job = lab.submit("sleep 300")
        lab.wait_state(job, "RUNNING")
        wait_until("tasks are in cgroups", 10, lambda: len(cgroups_of(lab)) > 2)
        switches = [(path / name, value) for path in cgroups_of(lab)
                    for name, value in (("freezer.state", "FROZEN"), ("cgroup.freeze", "1")) if (path / name).exists()]
        self.assertTrue(switches)
        for switch, value in switches:
            switch.write_text(value)
        lab.down()
        self.assert_gone(lab)

    def test_nothing_is_left_after_kills(self):
        lab = self.lab("one")
        lab.up("--nodes", "2")
        jobs = [lab.submit("sleep 300 & sleep 300", f"--nodelist={node}") for node in lab.nodes]
        for job in jobs:
            lab.wait_state(job, "RUNNING")
        wait_until("tasks are in cgroups", 10, lambda: len(cgroups_of(lab)) > 4)
        os.kill(lab.pid_of("slurmd-node1"), signal.SIGKILL)
        os.kill(lab.pid_of("slurmctld"), signal.SIGKILL)
        os.kill(lab.pid_of("munged"), signal.SIGKILL)
        (lab.state / "run/slurmdbd.pid").unlink()  # nobody knows it by its file any more
        lab.down()
        self.assert_gone(lab)
        lab.down()  # nothing to do is no failure

    def test_up_again_starts_what_is_missing(self):
        lab = self.lab("one")
        lab.up("--nodes", "2")
        before = lab.pid_of("slurmd-node2")
        lab.tool("kill", "slurmctld")
        lab.tool("kill", "slurmd-node1")
        self.assertIn("stopped", lab.tool_result("status").stdout)
        lab.tool("up")
        self.assertEqual(lab.pid_of("slurmd-node2"), before)
        self.assertNotIn("stopped", lab.tool("status"))
        lab.wait_state(lab.submit("true"), "COMPLETED")
        self.assertNotEqual(lab.tool_result("up", "--nodes", "3").returncode, 0, "other options than it was made with")

    def test_two_side_by_side(self):
        one, other = self.lab("one"), self.lab("other")
        one.up("--nodes", "2")
        other.up("--nodes", "2", "--", "FirstJobId=500")
        self.assertNotEqual(one.cluster, other.cluster)
        job = one.submit("sleep 60")
        self.assertEqual(other.submit("true"), 500)
        one.wait_state(job, "RUNNING")
        other.down()
        self.assert_gone(other)
        self.assertEqual(one.state_of(job), "RUNNING")
        one.down()
        self.assert_gone(one)

    def test_a_directory_that_is_no_lab_is_left_alone(self):
        lab = self.lab("precious")
        lab.state.mkdir()
        (lab.state / "thesis.tex").touch()
        self.addCleanup((lab.state / "thesis.tex").unlink)  # so that the last down finds nothing to refuse
        self.assertNotEqual(lab.tool_result("up").returncode, 0)
        self.assertNotEqual(lab.tool_result("down").returncode, 0)
        self.assertTrue((lab.state / "thesis.tex").exists())

    def test_status_and_names(self):
        lab = self.lab("one")
        self.assertEqual(lab.tool_result("status").returncode, 3)
        self.assertIn("bring it up first", lab.tool_result("kill", "slurmctld").stderr)
        lab.up("--nodes", "1", "--gpus", "0")
        self.assertIn("there are munged", lab.tool_result("kill", "slurmd-node2").stderr)
        self.assertIn("idle", lab.tool("status"))


if __name__ == "__main__":
    unittest.main()
