"""`expanse diagnose` of programs in other languages, MPI and modules, and of a job that hangs, on a real Slurm.

Debian 12 has no Julia, so that none of its crashes is here.

label: slow
"""

import os
import shutil
import subprocess
import unittest

from diagnose_jobs import Diagnosed, DiagnosedJobs, Scenario, add_tests

ANY = ("LOW", "MEDIUM", "HIGH")
MODULES = "/usr/share/modules/init/sh"
# A minute of work, then a lock that nobody gives back; the limit comes twelve minutes later.
HANG = """import threading, time
end = time.monotonic() + 60
while time.monotonic() < end: pass
lock = threading.Lock()
lock.acquire()
print("waiting for the lock", flush=True)
lock.acquire()
"""
PROGRAMS = {
    "hang.py": HANG,
    "reads.f90": "program reads\n  open(10, file='/data/none/mesh.dat', status='old')\n  close(10)\nend program\n",
    "bounds.f90": "program bounds\n  real :: a(4)\n  integer :: i\n  read(*,*) i\n  a(i) = 1.0\n  print *, a\nend program\n",
    "package.R": 'library(packageThatNobodyHas)\n',
    "object.R": 'total <- 1\nprint(totl + 1)\n',
    "vector.R": 'x <- numeric(2e11)\n',
    "Empty.java": "class Empty { public static void main(String[] words) {\n"
                  "    String none = words.length > 5 ? \"\" : null;\n    System.out.println(none.length());\n} }\n",
    "Heap.java": "class Heap { public static void main(String[] words) {\n"
                 "    var kept = new java.util.ArrayList<byte[]>();\n    while (true) kept.add(new byte[1 << 20]);\n} }\n",
    "rank.c": "#include <mpi.h>\n#include <stdio.h>\nint main(int count, char **words) {\n  int rank;\n"
              "  MPI_Init(&count, &words);\n  MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n"
              "  if (rank == 1) { fprintf(stderr, \"residual is too large\\n\"); MPI_Abort(MPI_COMM_WORLD, 17); }\n"
              "  MPI_Barrier(MPI_COMM_WORLD);\n  MPI_Finalize();\n}\n",
    "null.c": "#include <mpi.h>\nint main(int count, char **words) {\n  int rank;\n  MPI_Init(&count, &words);\n"
              "  MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n  if (rank == 1) *(volatile int *)0 = 1;\n"
              "  MPI_Barrier(MPI_COMM_WORLD);\n  MPI_Finalize();\n}\n",
}
MPIRUN = "mpirun --allow-run-as-root -n 2"

SCENARIOS = [
    Scenario("hang", "exec python3 hang.py", ("--time=13",), seconds=1200,
             runs=(Diagnosed("hang_no_progress", cites=(("metric", "no activity in the last"),),
                             says=(r"did nothing in its last 1\d min",), confidence=ANY),)),
    Scenario("fortran-file", "./reads", needs="gfortran",
             runs=(Diagnosed("fortran_io_error", quotes=("Fortran runtime error",), says=("mesh.dat",)),)),
    Scenario("fortran-bounds", "echo 9 | ./bounds", needs="gfortran",
             runs=(Diagnosed("shape_or_type_error", quotes=("above upper bound",)),)),
    Scenario("r-package", "Rscript package.R", needs="Rscript",
             runs=(Diagnosed("import_error", quotes=("packageThatNobodyHas",)),)),
    Scenario("r-object", "Rscript object.R", needs="Rscript",
             runs=(Diagnosed("shape_or_type_error", quotes=("object 'totl' not found",)),)),
    Scenario("r-memory", "Rscript vector.R", needs="Rscript",
             runs=(Diagnosed("host_out_of_memory", quotes=("cannot allocate vector of size",), confidence=ANY),)),
    Scenario("java-null", "java -cp . Empty", ("--mem=500M",), needs="javac",
             runs=(Diagnosed("shape_or_type_error", quotes=("NullPointerException",)),)),
    Scenario("java-heap", "java -Xmx64m -cp . Heap", ("--mem=500M",), needs="javac",
             runs=(Diagnosed("java_heap_exhausted", quotes=("Java heap space",), confidence=("HIGH",)),)),
    Scenario("mpi-abort", f"{MPIRUN} ./rank", ("--ntasks=2", "--mem=500M"), needs="mpicc",
             runs=(Diagnosed("mpi_abort", quotes=("MPI_ABORT was invoked on rank 1",)),)),
    Scenario("mpi-crash", f"{MPIRUN} ./null", ("--ntasks=2", "--mem=500M"), needs="mpicc",
             runs=(Diagnosed("segmentation_fault", quotes=("signal 11",)),)),
    Scenario("module", f". {MODULES}; module load solver/9.1 || exit 1; solver", needs=MODULES,
             runs=(Diagnosed("module_not_found", quotes=("Unable to locate a modulefile for 'solver/9.1'",),
                             says=("solver/9.1",)),)),
]


class DiagnoseLanguages(DiagnosedJobs):
    scenarios = SCENARIOS

    @classmethod
    def prepare(cls, folder):
        for name, text in PROGRAMS.items():
            (folder / name).write_text(text)
        for tool, argv in (("gfortran", ("-o", "reads", "reads.f90")),
                           ("gfortran", ("-fcheck=bounds", "-o", "bounds", "bounds.f90")),
                           ("javac", ("Empty.java", "Heap.java")),
                           ("mpicc", ("-o", "rank", "rank.c")), ("mpicc", ("-o", "null", "null.c"))):
            if shutil.which(tool):
                subprocess.run((tool, *argv), cwd=folder, check=True, env={**os.environ, "OMPI_CC": "gcc"})


add_tests(DiagnoseLanguages)
del DiagnosedJobs  # has no jobs of its own

if __name__ == "__main__":
    unittest.main()
