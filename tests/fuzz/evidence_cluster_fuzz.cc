// A cluster's state of any bytes: no crash, and what is taken goes round the wire unchanged.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/result.h"
#include "evidence/wire.h"
#include "expanse/data/v1/cluster.pb.h"

namespace {

using namespace expanse;

const base::WallTime kNow{std::chrono::seconds(1'800'000'000)};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  data::v1::ClusterState message;
  if (!message.ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto first = evidence::FromProto(message, kNow);
  if (!first) {
    EXPANSE_CHECK(first.error().reason.starts_with("evidence."));
    return 0;
  }
  evidence::ToProto(*first, &message);
  const auto second = evidence::FromProto(message, kNow);
  EXPANSE_CHECK(second.has_value());
  EXPANSE_CHECK(*second == *first);
  return 0;
}
