"""`expanse diagnose` on a real Slurm: each failure is named, with evidence that is there (diagnose_scenarios.py).

Runs beside other tests.
"""

import shutil
import unittest

from diagnose_jobs import DiagnosedJobs, add_tests
from diagnose_scenarios import SCENARIOS, make_binaries, make_programs


class DiagnoseSlurm(DiagnosedJobs):
    scenarios = SCENARIOS
    nodes = 5
    reserved_from = 2

    @classmethod
    def prepare(cls, folder):
        make_programs(folder)
        if shutil.which("gcc"):
            make_binaries(folder)


add_tests(DiagnoseSlurm)
del DiagnosedJobs  # has no jobs of its own

if __name__ == "__main__":
    unittest.main()
