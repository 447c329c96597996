// Hostlist expressions: bounded however much they stand for, counted as they expand, and a list of
// the hosts is an expression of the same hosts.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "schedulers/slurm/text/hostlist.h"

using namespace expanse::schedulers::slurm;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr std::size_t kLimit = 5000;
  const auto count = CountHosts(text);
  const auto hosts = ExpandHostlist(text, kLimit);
  if (!hosts) {
    EXPANSE_CHECK(!count || *count > kLimit);
    return 0;
  }
  EXPANSE_CHECK(count && *count == hosts->size());
  std::string list;
  for (const std::string& host : *hosts) {
    if (!list.empty()) list += ',';
    list += host;
  }
  const auto again = ExpandHostlist(list, kLimit);
  // One host called like a word for "no hosts" is the only list that is not read back.
  if (hosts->size() > 1) EXPANSE_CHECK(again && *again == *hosts);
  return 0;
}
