#include "workload/source/source.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "workload/source/launchers.h"
#include "workload/source/shell_commands.h"

namespace expanse::workload {
namespace {

constexpr std::size_t kMaxFiles = 256;

using Entry = std::pair<std::string_view, std::string_view>;
constexpr auto kRunners = std::to_array<Entry>({{"python", "python"},
                                                {"notebook", "jupyter"},
                                                {"r", "Rscript"},
                                                {"julia", "julia"},
                                                {"matlab", "matlab"},
                                                {"perl", "perl"},
                                                {"javascript", "node"},
                                                {"ruby", "ruby"},
                                                {"snakemake", "snakemake"},
                                                {"nextflow", "nextflow"},
                                                {"make", "make"}});

std::unexpected<Refusal> Refuse(std::string reason, std::string message) {
  return std::unexpected(
      Refusal{.line = 0, .column = 0, .reason = std::move(reason), .message = std::move(message)});
}

std::string Stem(std::string_view path) {
  const std::string_view name = source::BaseName(path);
  const std::size_t dot = name.rfind('.');
  return std::string(dot == std::string_view::npos || dot == 0 ? name : name.substr(0, dot));
}

// A word that names a script or program of the user's rather than an option or a program in PATH.
bool NamesAFile(std::string_view word) {
  if (word.empty() || word.starts_with('-') || word.size() > 4096) return false;
  if (word.contains("://") || word.contains('\n')) return false;
  if (word.starts_with("./") || word.starts_with("../")) return true;
  const std::size_t dot = word.rfind('.');
  if (dot == std::string_view::npos || dot + 1 == word.size()) return false;
  constexpr std::array<std::string_view, 14> kScripts = {
      "py", "sh", "bash", "R", "r", "jl", "pl", "m", "smk", "nf", "yaml", "yml", "json", "toml"};
  return std::ranges::find(kScripts, word.substr(dot + 1)) != kScripts.end();
}

void AddFiles(const std::vector<Command>& commands, std::vector<std::string>* files) {
  std::set<std::string_view> seen;
  for (const Command& command : commands) {
    for (const Word& word : command.words) {
      if (files->size() >= kMaxFiles) return;
      if (!word.resolved || !NamesAFile(word.text) || !seen.insert(word.text).second) continue;
      files->push_back(word.text);
    }
  }
}

}  // namespace

Parsed<Submission> ParseSource(std::string_view path, std::string_view text) {
  if (text.size() > kMaxText) return Refuse("too_large", "it is larger than 4 MiB");
  if (text.contains('\0')) return Refuse("binary", "it is a binary file, not a source");
  const std::string_view language = SourceLanguage(path, text);
  if (language.empty()) {
    return Refuse("unknown_format",
                  "neither its name nor its first line tells what language it is in");
  }
  Submission submission{.format = Format::kSource, .language = std::string(language)};
  submission.name = Stem(path);
  Part part{.workload = submission.name, .kind = submission.language};
  if (language == "shell") {
    source::ShellScript script = source::ReadShellScript(text);
    part.commands = std::move(script.commands);
    part.environment = std::move(script.environment);
    AddFiles(part.commands, &submission.files);
  } else if (const auto runner = std::ranges::find(kRunners, language, &Entry::first);
             runner != kRunners.end() && !path.empty()) {
    part.commands.push_back(
        {.words = {{.text = std::string(runner->second)}, {.text = std::string(path)}},
         .launcher = {},
         .place = {.begin = 0, .end = 0, .line = 1, .column = 1}});
  }
  submission.parts.push_back(std::move(part));
  return submission;
}

}  // namespace expanse::workload
