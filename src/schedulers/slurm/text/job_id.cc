#include "schedulers/slurm/text/job_id.h"

#include "base/text.h"

namespace expanse::schedulers::slurm {
namespace {

// Digits of a number that fits, without sign or leading "+".
std::optional<std::uint32_t> Number(std::string_view text) {
  if (text.empty() || text.size() > 10 || !base::IsDigit(text.front())) return std::nullopt;
  return base::ParseInt<std::uint32_t>(text);
}

// "7", "0-9", "0-98:2": how many. One written backwards is none.
std::optional<std::uint64_t> RangeCount(std::string_view text) {
  std::uint32_t stride = 1;
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    const auto value = Number(text.substr(colon + 1));
    if (!value || *value == 0) return std::nullopt;
    stride = *value;
    text = text.substr(0, colon);
  }
  const std::size_t dash = text.find('-');
  const auto first = Number(text.substr(0, dash));
  if (!first) return std::nullopt;
  if (dash == std::string_view::npos) return 1;
  const auto last = Number(text.substr(dash + 1));
  if (!last || *last < *first) return std::nullopt;
  return std::uint64_t{*last - *first} / stride + 1;
}

// Takes the number at the start of `text`.
std::optional<std::uint32_t> TakeNumber(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && base::IsDigit(text[length])) ++length;
  const auto value = Number(text.substr(0, length));
  text.remove_prefix(length);
  return value;
}

bool IsStepName(std::string_view text) {
  if (text.empty() || text.size() > 32) return false;
  for (char c : text) {
    const bool word = base::IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!word && c != '+' && c != '_' && c != '.') return false;
  }
  return true;
}

// What follows the job's number: "_4", "_[0-9]", "+1". False for what is none of them.
bool TakeQualifier(std::string_view& text, JobId& id) {
  const char kind = text.front();
  text.remove_prefix(1);
  if (kind == '+') {
    id.het_offset = TakeNumber(text);
    return id.het_offset.has_value();
  }
  if (kind != '_' || text.empty()) return false;
  if (text.front() != '[') {
    id.array_task = TakeNumber(text);
    return id.array_task.has_value();
  }
  const std::size_t end = text.find(']');
  if (end == std::string_view::npos) return false;
  id.pending_expression = std::string(text.substr(1, end - 1));
  id.pending_tasks = ParseArrayTasks(id.pending_expression);
  text.remove_prefix(end + 1);
  return id.pending_tasks.has_value();
}

}  // namespace

std::optional<ArrayTasks> ParseArrayTasks(std::string_view text) {
  ArrayTasks tasks;
  if (text.empty()) return std::nullopt;
  for (std::string_view piece : base::Split(text, ',')) {
    if (tasks.cut) return std::nullopt;
    if (piece.ends_with("...")) {
      tasks.cut = true;
      piece.remove_suffix(3);
      // What stands before the dots may be half a number; nothing is lost by leaving it out.
      continue;
    }
    if (const std::size_t percent = piece.find('%'); percent != std::string_view::npos) {
      tasks.throttle = Number(piece.substr(percent + 1));
      if (!tasks.throttle) return std::nullopt;
      piece = piece.substr(0, percent);
    }
    const auto count = RangeCount(piece);
    if (!count) return std::nullopt;
    tasks.count += *count;
  }
  return tasks;
}

std::optional<JobId> ParseJobId(std::string_view text) {
  JobId id;
  const auto job = TakeNumber(text);
  if (!job || *job == 0) return std::nullopt;
  id.job_id = *job;
  if (!text.empty() && text.front() != '.' && !TakeQualifier(text, id)) return std::nullopt;
  if (text.empty()) return id;
  if (text.front() != '.' || !IsStepName(text.substr(1))) return std::nullopt;
  id.step = std::string(text.substr(1));
  return id;
}

bool IsSluid(std::string_view text) {
  constexpr std::string_view kCrockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  if (text.size() != 14 || text.front() != 's') return false;
  return text.substr(1).find_first_not_of(kCrockford) == std::string_view::npos;
}

}  // namespace expanse::schedulers::slurm
