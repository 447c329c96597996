#include "schedulers/slurm/files/capture_choice.h"

#include <algorithm>

namespace expanse::schedulers::slurm {
namespace {

bool Contains(const std::vector<std::string>& names, std::string_view name) {
  return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
}

bool HasWord(std::string_view comment, std::string_view word) {
  constexpr std::string_view kSeparators = " \t\r\n\v\f,;";
  while (!comment.empty()) {
    const std::size_t end = std::min(comment.find_first_of(kSeparators), comment.size());
    if (comment.substr(0, end) == word) return true;
    comment.remove_prefix(std::min(end + 1, comment.size()));
  }
  return false;
}

// Why it is off, most general reason first; empty: it is on.
std::string_view WhyOff(bool compute, std::string_view word, const CaptureSwitches& switches,
                        std::string_view user, std::string_view account, std::string_view comment) {
  if (!compute) return "off for this compute";
  if (Contains(switches.exclude_accounts, account)) return "off for this account";
  if (Contains(switches.exclude_users, user)) return "off for this user";
  if (HasWord(comment, "expanse=off") || HasWord(comment, word)) return "off for this job";
  return {};
}

}  // namespace

CaptureChoice ChooseCapture(const CaptureSwitches& switches, std::string_view user,
                            std::string_view account, std::string_view comment) {
  CaptureChoice choice;
  const auto logs = WhyOff(switches.logs, "expanse=nologs", switches, user, account, comment);
  const auto sources =
      WhyOff(switches.sources, "expanse=nosources", switches, user, account, comment);
  choice.logs = logs.empty();
  choice.sources = sources.empty();
  if (!logs.empty()) choice.notes.push_back("logs: " + std::string(logs));
  if (!sources.empty()) choice.notes.push_back("sources: " + std::string(sources));
  return choice;
}

}  // namespace expanse::schedulers::slurm
