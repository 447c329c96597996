#include "schedulers/slurm/commands/scontrol_text.h"

#include <algorithm>

#include "base/text.h"

namespace expanse::schedulers::slurm {
namespace {

std::string_view TrimLeft(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

bool IsNothing(std::string_view value) {
  return value == "(null)" || value == "N/A" || value == "n/a" || value == "n/s";
}

// The key that begins at `text`, if one of `keys` does.
std::string_view KeyAt(std::string_view text, std::span<const std::string_view> keys) {
  const std::size_t equals = text.substr(0, 64).find('=');
  if (equals == std::string_view::npos) return {};
  const std::string_view key = text.substr(0, equals);
  return std::find(keys.begin(), keys.end(), key) == keys.end() ? std::string_view() : key;
}

}  // namespace

ScontrolRecord::ScontrolRecord(std::string_view text, std::span<const std::string_view> keys) {
  for (const std::string_view line : base::Split(text, '\n')) AddLine(line, keys);
}

void ScontrolRecord::AddLine(std::string_view line, std::span<const std::string_view> keys) {
  std::string_view key;
  std::size_t value_begin = 0;
  for (std::size_t at = line.find_first_not_of(' '); at != std::string_view::npos;) {
    if (const std::string_view next = KeyAt(line.substr(at), keys); !next.empty()) {
      if (!key.empty())
        values_.emplace_back(key, base::Trim(line.substr(value_begin, at - value_begin)));
      key = next;
      value_begin = at + next.size() + 1;
    }
    const std::size_t space = line.find(' ', at);
    at = space == std::string_view::npos ? space : line.find_first_not_of(' ', space);
  }
  if (!key.empty()) values_.emplace_back(key, base::Trim(line.substr(value_begin)));
}

std::optional<std::string_view> ScontrolRecord::Get(std::string_view key) const {
  for (const auto& [name, value] : values_) {
    if (name != key) continue;
    if (IsNothing(value)) return std::nullopt;
    return value;
  }
  return std::nullopt;
}

std::vector<std::string_view> SplitRecords(std::string_view text, std::string_view head,
                                           std::size_t most) {
  std::vector<std::size_t> begins;
  for (std::size_t line = 0; line < text.size();) {
    if (TrimLeft(text.substr(line, 64)).starts_with(head)) {
      if (begins.size() == most) {
        text = text.substr(0, line);
        break;
      }
      begins.push_back(line);
    }
    const std::size_t newline = text.find('\n', line);
    if (newline == std::string_view::npos) break;
    line = newline + 1;
  }
  std::vector<std::string_view> records;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const std::size_t end = i + 1 < begins.size() ? begins[i + 1] : text.size();
    records.push_back(text.substr(begins[i], end - begins[i]));
  }
  return records;
}

}  // namespace expanse::schedulers::slurm
