// Runbooks are data that sites write: any bytes are read or refused with a message, and what is
// taken matches any line.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/text.h"
#include "intelligence/diagnose/runbook.h"
#include "intelligence/diagnose/runbook_set.h"

using namespace expanse;
using namespace expanse::intelligence::diagnose;

namespace {

template <typename T>
bool Refused(const base::Result<T>& result) {
  if (result) return false;
  if (result.error().message.empty() || result.error().reason.empty()) std::abort();
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto decoys = ParseDecoys(text, "decoys.yaml");
  if (!Refused(decoys)) (void)Refused(RunbookSet::Create({}, std::move(*decoys)));
  auto runbooks = ParseRunbooks(text, "site.yaml");
  if (Refused(runbooks)) return 0;
  const std::size_t count = runbooks->size();
  const auto set = RunbookSet::Create(std::move(*runbooks), {}, /*replace=*/true);
  if (Refused(set)) return 0;
  if ((*set)->runbooks().size() > count) std::abort();
  for (const std::string_view line : base::Split(text, '\n')) {
    for (const SignatureHit& hit : (*set)->Match(line))
      if (hit.runbook >= count) std::abort();
  }
  return 0;
}
