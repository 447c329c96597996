#include "workload/source/applications.h"

#include <algorithm>

#include "workload/source/launchers.h"

namespace expanse::workload::source {
namespace {

const std::vector<KnownApplication>& Applications() {
  static const std::vector<KnownApplication> kApplications = {
      {"gaussian", {"g16", "g09", "g03"}},
      {"vasp", {"vasp", "vasp_std", "vasp_gam", "vasp_ncl", "vasp_gpu"}},
      {"gromacs", {"gmx", "gmx_mpi", "gmx_d", "mdrun", "mdrun_mpi"}, {"-nt", "-ntomp"}},
      {"lammps", {"lmp", "lmp_mpi", "lmp_serial", "lmp_intel_cpu_intelmpi", "lammps"}},
      {"namd", {"namd2", "namd3", "charmrun"}, {"+p"}},
      {"amber", {"sander", "sander.MPI", "pmemd", "pmemd.MPI", "pmemd.cuda", "pmemd.cuda.MPI"}},
      {"quantum espresso", {"pw.x", "ph.x", "cp.x", "neb.x", "pp.x", "dos.x", "bands.x"}},
      {"cp2k", {"cp2k", "cp2k.psmp", "cp2k.popt", "cp2k.ssmp"}},
      {"orca", {"orca"}},
      {"nwchem", {"nwchem"}},
      {"openfoam",
       {"simpleFoam", "pimpleFoam", "pisoFoam", "icoFoam", "interFoam", "rhoSimpleFoam",
        "rhoPimpleFoam", "buoyantSimpleFoam", "snappyHexMesh", "blockMesh", "foamRun"}},
      {"fluent", {"fluent"}, {"-t"}},
      {"ansys mechanical", {"ansys", "mapdl", "ansys232"}, {"-np"}},
      {"abaqus", {"abaqus", "abq2023"}},
      {"comsol", {"comsol"}, {"-np"}},
      {"wrf", {"wrf.exe", "real.exe"}},
      {"blast",
       {"blastn", "blastp", "blastx", "tblastn", "tblastx", "psiblast", "rpsblast"},
       {"-num_threads"}},
      {"diamond", {"diamond"}, {"--threads", "-p"}},
      {"hmmer", {"hmmsearch", "hmmscan", "jackhmmer", "phmmer"}, {"--cpu"}},
      {"star", {"STAR", "STARlong"}, {"--runThreadN"}},
      {"bwa", {"bwa", "bwa-mem2"}, {"-t"}},
      {"bowtie2", {"bowtie2", "bowtie2-build"}, {"-p", "--threads"}},
      {"hisat2", {"hisat2", "hisat2-build"}, {"-p", "--threads"}},
      {"minimap2", {"minimap2"}, {"-t"}},
      {"salmon", {"salmon"}, {"-p", "--threads"}},
      {"kallisto", {"kallisto"}, {"-t", "--threads"}},
      {"samtools", {"samtools"}, {"-@", "--threads"}},
      {"gatk", {"gatk", "gatk.jar", "picard.jar"}, {"--native-pair-hmm-threads"}},
      {"fastqc", {"fastqc"}, {"-t", "--threads"}},
      {"cellranger", {"cellranger"}, {"--localcores"}},
      {"trinity", {"Trinity"}, {"--CPU"}},
      {"spades", {"spades.py", "metaspades.py", "rnaspades.py"}, {"-t", "--threads"}},
      {"megahit", {"megahit"}, {"-t"}},
      {"kraken2", {"kraken2", "kraken2-build"}, {"--threads"}},
      {"iqtree", {"iqtree", "iqtree2"}, {"-T", "-nt"}},
      {"raxml", {"raxmlHPC-PTHREADS", "raxml-ng"}, {"-T", "--threads"}},
      {"alphafold", {"run_alphafold.py", "run_alphafold.sh"}},
      {"relion", {"relion_refine", "relion_refine_mpi"}, {"--j"}},
      {"freesurfer", {"recon-all"}, {"-openmp", "-threads"}},
      {"fmriprep", {"fmriprep"}, {"--nthreads", "--nprocs", "--n_cpus"}},
      {"nextflow", {"nextflow"}},
      {"snakemake", {"snakemake"}, {"--cores", "-j", "-c", "--jobs"}},
      {"parallel", {"parallel"}, {"-j", "--jobs"}},
      {"matlab", {"matlab"}},
      {"r", {"Rscript", "R"}},
      {"julia", {"julia"}, {"-t", "--threads"}},
  };
  return kApplications;
}

const KnownApplication* ByProgram(std::string_view program) {
  for (const KnownApplication& application : Applications()) {
    if (std::ranges::find(application.programs, program) != application.programs.end()) {
      return &application;
    }
  }
  return nullptr;
}

}  // namespace

const KnownApplication* FindApplication(const std::vector<Word>& words) {
  if (words.empty()) return nullptr;
  const std::string_view program = BaseName(words[0].text);
  if (const KnownApplication* known = ByProgram(program)) return known;
  if (!IsPython(program) && program != "java" && !IsShell(program)) return nullptr;
  for (std::size_t i = 1; i < words.size() && i < 16; ++i) {
    if (words[i].text.starts_with('-')) continue;
    return ByProgram(BaseName(words[i].text));
  }
  return nullptr;
}

}  // namespace expanse::workload::source
