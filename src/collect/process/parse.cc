#include "collect/process/parse.h"

#include <array>

#include "base/text.h"
#include "collect/kernel_file.h"

namespace expanse::collect {
namespace {

std::optional<std::uint64_t> Kilobytes(std::string_view& line) {
  const auto value = NextNumber(line);
  if (!value || *value > (UINT64_MAX >> 10)) return std::nullopt;
  return *value << 10;
}

}  // namespace

std::optional<ProcStat> ParseProcStat(std::string_view text) {
  // "pid (name) state ppid …": the name may hold brackets, so its end is the last one.
  const auto open = text.find('(');
  const auto close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return std::nullopt;
  ProcStat stat;
  const auto pid = base::ParseInt<pid_t>(base::Trim(text.substr(0, open)));
  stat.name = text.substr(open + 1, close - open - 1);
  std::string_view rest = text.substr(close + 1);
  const std::string_view state = NextWord(rest);
  const auto parent = base::ParseInt<pid_t>(NextWord(rest));
  if (!pid || *pid <= 0 || state.size() != 1 || !parent || *parent < 0) return std::nullopt;
  stat.pid = *pid;
  stat.state = state[0];
  stat.parent = *parent;
  // Fields 5 to 24; negative ones (tty_nr, tpgid, priority, nice) are skipped.
  constexpr std::size_t kFirst = 5;
  std::array<std::optional<std::uint64_t>, 20> fields;
  for (auto& field : fields) field = NextNumber(rest);
  const auto field = [&](std::size_t number) { return fields[number - kFirst]; };
  if (!field(14) || !field(15) || !field(20) || !field(22) || !field(24)) return std::nullopt;
  stat.user = *field(14);
  stat.system = *field(15);
  // Signed in the kernel: has been seen below zero, which is no use at all.
  stat.children_user = field(16).value_or(0);
  stat.children_system = field(17).value_or(0);
  stat.threads = *field(20);
  stat.start = *field(22);
  stat.rss_pages = *field(24);
  return stat;
}

std::optional<ProcResident> ParseProcStatus(std::string_view text) {
  ProcResident resident;
  bool found = false;
  std::string_view line;
  while (NextLine(text, line)) {
    if (!line.starts_with("Rss")) {
      if (found) break;  // the three stand together
      continue;
    }
    const std::string_view key = NextWord(line);
    const auto value = Kilobytes(line);
    if (!value) continue;
    if (key == "RssAnon:") resident.anon = *value;
    if (key == "RssFile:") resident.file = *value;
    if (key == "RssShmem:") resident.shmem = *value;
    found = true;
  }
  if (!found) return std::nullopt;
  return resident;
}

std::optional<std::uint64_t> ParseProportionalNeed(std::string_view text) {
  std::optional<std::uint64_t> all;
  std::optional<std::uint64_t> anon;
  std::optional<std::uint64_t> shmem;
  std::string_view line;
  while (NextLine(text, line)) {
    const std::string_view key = NextWord(line);
    if (key == "Pss:") all = Kilobytes(line);
    if (key == "Pss_Anon:") anon = Kilobytes(line);
    if (key == "Pss_Shmem:") shmem = Kilobytes(line);
  }
  if (anon) return *anon + shmem.value_or(0);
  return all;
}

}  // namespace expanse::collect
