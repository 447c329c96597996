#include "workload/source/command_files.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "workload/source/launchers.h"

namespace expanse::workload::source {
namespace {

constexpr std::size_t kMaxName = 1024;

constexpr auto kEndings = std::to_array<std::string_view>(
    {"c",   "cc",  "cfg", "conf", "cpp", "csv",  "cu",    "dat", "f90",     "fa",   "fasta", "gms",
     "gro", "h5",  "hcl", "in",   "inp", "ini",  "ipynb", "jar", "jl",      "json", "jsonl", "lua",
     "m",   "mdp", "nc",  "nf",   "nml", "npy",  "npz",   "par", "parquet", "pdb",  "pkl",   "pl",
     "pt",  "py",  "r",   "rb",   "rmd", "sas",  "sh",    "sif", "smk",     "sql",  "tex",   "toml",
     "top", "tpr", "tsv", "txt",  "xml", "yaml", "yml",   "do",  "config"});

constexpr auto kInterpreters = std::to_array<std::string_view>(
    {"Rscript", "julia", "perl", "ruby", "node", "octave", "lua", "gnuplot", "expect", "tclsh"});

bool IsName(std::string_view word) {
  return !word.empty() && word.size() <= kMaxName && word.front() != '-' &&
         word.find_first_of("*?[]{}$`<>|;&\n\"'") == std::string_view::npos &&
         !word.contains("://");
}

bool EndsLikeAFile(std::string_view word) {
  if (!IsName(word)) return false;
  const std::string_view name = BaseName(word);
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return false;
  const std::string ending = base::ToLower(name.substr(dot + 1));
  return std::ranges::find(kEndings, ending) != kEndings.end();
}

bool RunsAFile(std::string_view program) {
  return IsPython(program) || IsShell(program) ||
         std::ranges::find(kInterpreters, BaseName(program)) != kInterpreters.end();
}

class Finder {
 public:
  void Add(const Command& command) {
    if (command.words.empty()) return;
    const Word& program = command.words.front();
    if (program.resolved && program.text.contains('/') && !program.text.starts_with('/') &&
        IsName(program.text))
      Put(program.text);
    bool script = program.resolved && RunsAFile(program.text);
    for (std::size_t i = 1; i < command.words.size(); ++i) {
      const Word& word = command.words[i];
      // "-c" and "-m" give code and a module; what follows are their arguments.
      if (script && (word.text == "-c" || word.text == "-m" || word.text == "-e")) {
        script = false;
        ++i;
        continue;
      }
      if (!word.resolved) {
        script = false;
        continue;
      }
      if (word.text.starts_with('-')) {
        const std::size_t equals = word.text.find('=');
        if (equals != std::string::npos) PutIfFile(std::string_view(word.text).substr(equals + 1));
        continue;
      }
      if (script) {
        script = false;
        if (IsName(word.text)) Put(word.text);
      } else {
        const std::size_t equals = word.text.find('=');
        PutIfFile(std::string_view(word.text).substr(equals == std::string::npos ? 0 : equals + 1));
      }
    }
  }

  std::vector<std::string> Take() { return std::move(files_); }

 private:
  void PutIfFile(std::string_view word) {
    if (EndsLikeAFile(word)) Put(word);
  }

  void Put(std::string_view name) {
    if (files_.size() >= kMaxCommandFiles) return;
    if (std::ranges::find(files_, name) == files_.end()) files_.emplace_back(name);
  }

  std::vector<std::string> files_;
};

}  // namespace

std::vector<std::string> FilesOfCommands(const std::vector<Command>& commands) {
  Finder finder;
  for (const Command& command : commands) finder.Add(command);
  return finder.Take();
}

}  // namespace expanse::workload::source
