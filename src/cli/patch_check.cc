#include "cli/patch_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "workload/parse.h"

namespace expanse::cli {
namespace {

bool SameCommands(const workload::Part& a, const workload::Part& b) {
  return std::equal(a.commands.begin(), a.commands.end(), b.commands.begin(), b.commands.end(),
                    [](const workload::Command& one, const workload::Command& other) {
                      return one.words == other.words && one.launcher == other.launcher;
                    });
}

bool SameButResources(const workload::Submission& a, const workload::Submission& b) {
  const auto same_part = [](const workload::Part& one, const workload::Part& other) {
    return one.workload == other.workload && one.kind == other.kind &&
           one.name_space == other.name_space && one.group == other.group &&
           one.name == other.name && one.image == other.image && one.is_init == other.is_init &&
           one.replicas == other.replicas && one.array_size == other.array_size &&
           one.environment == other.environment && one.annotations == other.annotations &&
           SameCommands(one, other);
  };
  return a.format == b.format && a.language == b.language && a.name == b.name &&
         a.files == b.files && a.outputs == b.outputs &&
         std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(), same_part);
}

// In the order of the text. A GPU's type, which stands for one of them, is no amount.
std::vector<workload::Setting> SettingsOf(const workload::Submission& submission) {
  const auto is_amount = [](const workload::Setting& setting) {
    return setting.quantity != workload::Quantity::kGpu ||
           (!setting.written.empty() && base::IsDigit(setting.written.front()));
  };
  std::vector<workload::Setting> settings;
  for (const workload::Part& part : submission.parts) {
    std::copy_if(part.settings.begin(), part.settings.end(), std::back_inserter(settings),
                 is_amount);
  }
  std::sort(settings.begin(), settings.end(),
            [](const auto& a, const auto& b) { return a.place.begin < b.place.begin; });
  return settings;
}

using Words = std::vector<std::string>;
using WordSet = std::set<std::string, std::less<>>;

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || base::IsDigit(c) || c == '_' ||
         c == '-' || c == '.' || c == '/' || (static_cast<unsigned char>(c) & 0x80) != 0;
}

// Words and single marks, without white space and without the values of resources. `lines`: ends
// of lines are words too.
Words WordsOf(std::string_view text, const std::vector<workload::Setting>& settings, bool lines) {
  Words words;
  auto setting = settings.begin();
  bool within = false;  // a word that goes on
  for (std::size_t at = 0; at < text.size();) {
    while (setting != settings.end() && setting->place.begin < at) ++setting;
    if (setting != settings.end() && setting->place.begin == at && setting->place.end > at) {
      at = setting->place.end;
      within = false;
      continue;
    }
    const char c = text[at++];
    if (c == '\n' && lines) words.emplace_back("\n");
    const bool goes_on = IsWordByte(c);
    if (goes_on && within) {
      words.back() += c;
    } else if (!base::IsSpace(c)) {
      words.emplace_back(1, c);
    }
    within = goes_on;
  }
  return words;
}

// What a place for a resource is written with: the names of settings and marks around them.
WordSet ResourceWords(const std::vector<workload::Setting>& settings) {
  WordSet words = {"resources", "requests", "limits", "device", "count", "nvidia/gpu", "-",
                   "{",         "}",        ":",      ",",      "=",     "\""};
  for (const workload::Setting& setting : settings) {
    std::string_view name = setting.name;
    words.emplace(name);
    while (true) {
      const std::size_t dot = name.find('.');
      words.emplace(name.substr(0, dot));
      if (dot == std::string_view::npos) break;
      name.remove_prefix(dot + 1);
      words.emplace(name);
    }
  }
  return words;
}

// Names of Nomad's locals that give a resource its value ("local.memory").
WordSet LocalsOf(const std::vector<workload::Setting>& settings) {
  WordSet locals;
  for (const workload::Setting& setting : settings) {
    std::string_view written = setting.written;
    if (written.starts_with("${") && written.ends_with('}')) {
      written = base::Trim(written.substr(2, written.size() - 3));
    }
    if (written.starts_with("local.")) locals.emplace(written.substr(6));
  }
  return locals;
}

// A number that is the default of a variable, or a local, which stands for the value of a resource
// (Nomad, HCL and JSON).
bool IsSource(const Words& words, std::size_t at, const WordSet& locals) {
  if (at < 4 || !std::all_of(words[at].begin(), words[at].end(), base::IsDigit)) return false;
  const auto names = [&](const std::string& word) {
    return word == "default" || locals.contains(word);
  };
  const std::size_t sign = words[at - 1] == "\"" ? at - 2 : at - 1;
  return (words[sign] == "=" && names(words[sign - 1])) ||
         (words[sign] == ":" && words[sign - 1] == "\"" && names(words[sign - 2]));
}

// All words of `before` in their order, and none more but those of resources. (A null may give
// way.)
bool SameWords(const Words& before, const Words& after, const WordSet& resource_words,
               const WordSet& locals = {}) {
  std::size_t old = 0;
  for (std::size_t i = 0; i < after.size(); ++i) {
    while (old < before.size() && before[old] == "null" && after[i] != "null") ++old;
    if (old < before.size() && (before[old] == after[i] ||
                                (IsSource(before, old, locals) && IsSource(after, i, locals)))) {
      ++old;
    } else if (!resource_words.contains(after[i])) {
      return false;
    }
  }
  return old == before.size();
}

// --- batch scripts: line by line, since a shell reads lines

std::vector<Words> LinesOf(Words words) {
  std::vector<Words> lines(1);
  for (std::string& word : words) {
    if (word == "\n") {
      lines.emplace_back();
    } else {
      lines.back().push_back(std::move(word));
    }
  }
  return lines;
}

bool IsDirective(const Words& line) {
  return line.size() > 2 && line[0] == "#" && line[1] == "SBATCH";
}

// "#SBATCH --gres=gpu:" and nothing else: it asks for one resource.
bool AsksForOne(const Words& line, const WordSet& names) {
  if (!IsDirective(line)) return false;
  const auto around = [](const std::string& word) {
    return word == "=" || word == ":" || word == "gpu";
  };
  return names.contains(line[2]) && std::all_of(line.begin() + 3, line.end(), around);
}

// The same lines in the same order, but for values, and for directives of a resource that came.
bool SameScript(const std::vector<Words>& before, const std::vector<Words>& after,
                const std::vector<workload::Setting>& settings) {
  WordSet names;
  for (const workload::Setting& setting : settings) names.emplace(setting.name);
  static const WordSet kAround = {":", "gpu"};  // "gpu" that becomes "gpu:2"
  std::size_t old = 0;
  for (const Words& line : after) {
    const bool same = old < before.size() &&
                      (before[old] == line || (IsDirective(line) && IsDirective(before[old]) &&
                                               SameWords(before[old], line, kAround)));
    if (same) {
      ++old;
    } else if (!AsksForOne(line, names)) {
      return false;
    }
  }
  return old == before.size();
}

// What a shell would run, byte for byte: white space means something to it.
std::vector<std::string_view> BodyOf(std::string_view text) {
  std::vector<std::string_view> lines = base::Split(text, '\n');
  std::erase_if(lines, [](std::string_view line) { return line.starts_with('#'); });
  return lines;
}

bool SameButResources(std::string_view path, std::string_view original, std::string_view patched) {
  const auto before = workload::Parse(path, original);
  const auto after = workload::Parse(path, patched);
  if (!before || !after || !SameButResources(*before, *after)) return false;
  const bool lines = before->format == workload::Format::kSbatch;
  const auto settings = SettingsOf(*after);
  Words old_words = WordsOf(original, SettingsOf(*before), lines);
  Words new_words = WordsOf(patched, settings, lines);
  switch (before->format) {
    case workload::Format::kSbatch:
      return BodyOf(original) == BodyOf(patched) &&
             SameScript(LinesOf(std::move(old_words)), LinesOf(std::move(new_words)), settings);
    case workload::Format::kKubernetes:
    case workload::Format::kNomad:
      return SameWords(old_words, new_words, ResourceWords(settings), LocalsOf(settings));
    case workload::Format::kSource:
      return original == patched;  // it asks for nothing
  }
  return false;
}

}  // namespace

base::Status CheckChange(std::string_view path, std::string_view original,
                         std::string_view patched) {
  if (SameButResources(path, original, patched)) return {};
  return base::Fail(
      base::Code::kFailedPrecondition, "patch.not_resources",
      fmt::format("the patch would change more of {} than requested resources", path));
}

}  // namespace expanse::cli
