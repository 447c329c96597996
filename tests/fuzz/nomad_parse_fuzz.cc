// Jobspecs are anything their users type. Whatever is read stands where it is said to stand, is
// bounded by the text, and reads the same again; asking for what is asked changes nothing.
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "workload/nomad/nomad.h"

using namespace expanse;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = workload::ParseNomad(text, {.variables = {{"a", "1"}, {"b", "[2]"}}});
  if (!parsed) {
    EXPANSE_CHECK(!parsed.error().reason.empty() && !parsed.error().message.empty());
    return 0;
  }
  EXPANSE_CHECK(!parsed->parts.empty() && parsed->parts.size() <= 1000);
  for (const workload::Part& part : parsed->parts) {
    EXPANSE_CHECK(std::isfinite(part.replicas) && part.replicas >= 0);
    for (const workload::Setting& setting : part.settings) {
      const workload::Place& place = setting.place;
      EXPANSE_CHECK(place.begin <= place.end && place.end <= size);
      EXPANSE_CHECK(workload::PlaceOf(text, place.begin, place.end) == place);
      const std::string_view there = text.substr(place.begin, place.end - place.begin);
      EXPANSE_CHECK(there.starts_with(setting.written));
      EXPANSE_CHECK(setting.value.has_value() == setting.unresolved.empty());
      EXPANSE_CHECK(!setting.value || (std::isfinite(*setting.value) && *setting.value >= 0));
    }
    for (const workload::Insertion& insertion : part.insertions)
      EXPANSE_CHECK(insertion.offset <= size);
  }
  const auto again = workload::ParseNomad(text, {.variables = {{"a", "1"}, {"b", "[2]"}}});
  EXPANSE_CHECK(again && again->parts.size() == parsed->parts.size());
  return 0;
}
