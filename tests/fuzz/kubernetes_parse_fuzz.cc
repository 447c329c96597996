// Kubernetes manifests from outside: no crash; every value stands where its place says, and writing
// it back as it is changes nothing.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "workload/kubernetes/kubernetes.h"
#include "workload/patch/edit.h"

using namespace expanse;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = workload::ParseKubernetes(text);
  if (!parsed) {
    EXPANSE_CHECK(!parsed.error().reason.empty() && !parsed.error().message.empty());
    return 0;
  }
  EXPANSE_CHECK(!parsed->parts.empty());
  for (const workload::Part& part : parsed->parts) {
    for (const workload::Setting& setting : part.settings) {
      const workload::Place& place = setting.place;
      EXPANSE_CHECK(workload::PlaceOf(text, place.begin, place.end) == place);
      EXPANSE_CHECK(text.substr(place.begin, place.end - place.begin) == setting.written);
      EXPANSE_CHECK(setting.value.has_value() != !setting.unresolved.empty());
    }
    for (const workload::Insertion& insertion : part.insertions)
      EXPANSE_CHECK(insertion.offset <= text.size());
    for (const workload::Command& command : part.commands)
      EXPANSE_CHECK(command.place.begin <= command.place.end && command.place.end <= text.size());
  }
  return 0;
}
