#include "schedulers/slurm/text/output_path.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "schedulers/slurm/text/values.h"

namespace expanse::schedulers::slurm {
namespace {

constexpr std::size_t kMaxWidth = 10;
constexpr Version kFirstWithModulo = {23, 2, 0};
// slurm.h: what %a is in a job that is no array task.
constexpr std::uint32_t kNoVal = 0xFFFFFFFE;

std::string Padded(std::uint32_t number, std::size_t width) {
  return fmt::format("{:0{}}", number, width);
}

// What %<letter> stands for; nothing where it stands for nothing.
std::optional<std::string> Value(char letter, std::size_t width, const OutputNames& names) {
  const std::uint32_t array_task = names.array_task.value_or(kNoVal);
  switch (letter) {
    case 'A':
      return Padded(names.array_job_id.value_or(names.job_id), width);
    case 'a':
      return Padded(array_task, width);
    case 'b':
      if (names.version && *names.version < kFirstWithModulo) return std::nullopt;
      return Padded(array_task % 10, width);
    case 'J':
      return names.step.empty() || names.step == "batch"
                 ? Padded(names.job_id, width)
                 : fmt::format("{}.{}", Padded(names.job_id, width), names.step);
    case 'j':
      return Padded(names.job_id, width);
    case 'n':
      return Padded(names.node_index, width);
    case 't':
      return Padded(names.task, width);
    case 's': {
      if (names.step.empty()) return "batch";
      const auto number = base::ParseInt<std::uint32_t>(names.step);
      return number ? Padded(*number, width) : names.step;
    }
    case 'N':
      return names.node;
    case 'u':
      return names.user;
    case 'x':
      return names.job_name;
    default:
      return std::nullopt;
  }
}

std::string Expand(std::string_view pattern, const OutputNames& names) {
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      path += pattern[i];
      continue;
    }
    std::size_t letter = i + 1;
    std::size_t width = 0;
    while (letter < pattern.size() && base::IsDigit(pattern[letter])) {
      width = std::min(width * 10 + static_cast<std::size_t>(pattern[letter] - '0'), kMaxWidth);
      ++letter;
    }
    if (letter < pattern.size() && pattern[letter] == '%') {
      path += '%';
      i = letter;
    } else if (const auto value =
                   letter < pattern.size() ? Value(pattern[letter], width, names) : std::nullopt) {
      path += *value;
      i = letter;
    } else if (letter == i + 1) {
      path += '%';
    }  // else: of "%4q", Slurm leaves "4q"
  }
  return path;
}

// The path without its backslashes: each stands for the character behind it.
std::string Unescape(std::string_view pattern) {
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    path += pattern[i];
  }
  return path;
}

}  // namespace

OutputPath AsOutputPath(std::string_view path, std::string_view working_directory) {
  if (path.empty() || path == "(null)" || path == "N/A") return {};
  if (path == "/dev/null") return {.kind = OutputPath::Kind::kDiscarded, .path = "/dev/null"};
  if (path.front() == '/') return {.kind = OutputPath::Kind::kFile, .path = std::string(path)};
  if (!working_directory.starts_with('/')) return {};
  std::string whole(working_directory);
  if (whole.back() != '/') whole += '/';
  whole += path;
  return {.kind = OutputPath::Kind::kFile, .path = std::move(whole)};
}

OutputPath ExpandOutputPath(std::string_view pattern, const OutputNames& names) {
  const bool escaped = pattern.find('\\') != std::string_view::npos;
  const std::string path = escaped ? Unescape(pattern) : Expand(pattern, names);
  return AsOutputPath(path, names.working_directory);
}

std::string_view DefaultOutputPattern(const OutputNames& names) {
  return names.array_task ? "slurm-%A_%a.out" : "slurm-%j.out";
}

}  // namespace expanse::schedulers::slurm
