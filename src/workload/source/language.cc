#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/text.h"
#include "workload/source/launchers.h"
#include "workload/source/source.h"

namespace expanse::workload {
namespace {

using Entry = std::pair<std::string_view, std::string_view>;

constexpr auto kExtensions =
    std::to_array<Entry>({{"py", "python"},      {"pyw", "python"},    {"ipynb", "notebook"},
                          {"sh", "shell"},       {"bash", "shell"},    {"zsh", "shell"},
                          {"ksh", "shell"},      {"csh", "shell"},     {"tcsh", "shell"},
                          {"pbs", "shell"},      {"lsf", "shell"},     {"r", "r"},
                          {"rmd", "r"},          {"jl", "julia"},      {"m", "matlab"},
                          {"pl", "perl"},        {"c", "c"},           {"cc", "c++"},
                          {"cpp", "c++"},        {"cxx", "c++"},       {"h", "c"},
                          {"hpp", "c++"},        {"cu", "cuda"},       {"hip", "hip"},
                          {"f", "fortran"},      {"f77", "fortran"},   {"f90", "fortran"},
                          {"f95", "fortran"},    {"f03", "fortran"},   {"f08", "fortran"},
                          {"for", "fortran"},    {"java", "java"},     {"scala", "scala"},
                          {"go", "go"},          {"rs", "rust"},       {"js", "javascript"},
                          {"mjs", "javascript"}, {"ts", "typescript"}, {"rb", "ruby"},
                          {"lua", "lua"},        {"smk", "snakemake"}, {"snakefile", "snakemake"},
                          {"nf", "nextflow"},    {"wdl", "wdl"},       {"cwl", "cwl"},
                          {"do", "stata"},       {"sas", "sas"},       {"awk", "awk"},
                          {"tcl", "tcl"},        {"inp", "input"},     {"in", "input"},
                          {"mdp", "gromacs"},    {"sql", "sql"},       {"nim", "nim"},
                          {"chpl", "chapel"},    {"hs", "haskell"}});

constexpr auto kNames = std::to_array<Entry>({{"snakefile", "snakemake"},
                                              {"makefile", "make"},
                                              {"gnumakefile", "make"},
                                              {"dockerfile", "docker"},
                                              {"jenkinsfile", "groovy"}});

// By the name of the interpreter, without its version.
constexpr auto kInterpreters = std::to_array<Entry>(
    {{"python", "python"},     {"pypy", "python"},     {"ipython", "python"},
     {"sh", "shell"},          {"bash", "shell"},      {"zsh", "shell"},
     {"dash", "shell"},        {"ksh", "shell"},       {"csh", "shell"},
     {"tcsh", "shell"},        {"rscript", "r"},       {"r", "r"},
     {"julia", "julia"},       {"perl", "perl"},       {"octave", "matlab"},
     {"matlab", "matlab"},     {"node", "javascript"}, {"ruby", "ruby"},
     {"nextflow", "nextflow"}, {"lua", "lua"},         {"awk", "awk"},
     {"gawk", "awk"},          {"tclsh", "tcl"},       {"snakemake", "snakemake"},
     {"make", "make"}});

std::string_view Find(const auto& entries, std::string_view name) {
  const auto found = std::ranges::find(entries, name, &Entry::first);
  return found == entries.end() ? std::string_view() : found->second;
}

// The language of "#!/usr/bin/env -S python3.11 -u".
std::string_view ByInterpreter(std::string_view text) {
  if (!text.starts_with("#!")) return {};
  const std::string_view line = text.substr(2, std::min(text.find('\n'), text.size()) - 2);
  for (const std::string_view word : base::SplitSpaces(line.substr(0, 1000))) {
    const std::string_view program = source::BaseName(word);
    if (program == "env" || program.starts_with('-') || program.contains('=')) continue;
    std::string name = base::ToLower(program);
    while (!name.empty() && (base::IsDigit(name.back()) || name.back() == '.')) name.pop_back();
    return Find(kInterpreters, name);
  }
  return {};
}

}  // namespace

std::string_view SourceLanguage(std::string_view path, std::string_view text) {
  const std::string name = base::ToLower(source::BaseName(path));
  if (const std::string_view named = Find(kNames, name); !named.empty()) return named;
  const std::size_t dot = name.rfind('.');
  if (dot != std::string::npos) {
    const std::string_view language = Find(kExtensions, std::string_view(name).substr(dot + 1));
    if (!language.empty()) return language;
  }
  return ByInterpreter(text);
}

}  // namespace expanse::workload
