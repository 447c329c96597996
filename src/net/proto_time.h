// Timestamps of requests and responses.
#pragma once

#include <fmt/format.h>
#include <google/protobuf/timestamp.pb.h>

#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace expanse::net {

inline void PutTime(base::WallTime time, google::protobuf::Timestamp* out) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  out->set_seconds(whole.time_since_epoch().count());
  out->set_nanos(static_cast<std::int32_t>((time - whole).count() * 1000));
}

// Fails with time.range; `field` names it in the error.
inline base::Result<base::WallTime> ReadTime(const google::protobuf::Timestamp& in,
                                             std::string_view field) {
  constexpr std::int64_t kMostSeconds = 253'402'300'799;  // the end of the year 9999
  if (in.seconds() < 0 || in.seconds() > kMostSeconds || in.nanos() < 0 ||
      in.nanos() > 999'999'999) {
    return base::Fail(base::Code::kInvalidArgument, "time.range",
                      fmt::format("{} is not a time from 1970 to 9999", field));
  }
  return base::WallTime{std::chrono::seconds(in.seconds()) +
                        std::chrono::microseconds(in.nanos() / 1000)};
}

}  // namespace expanse::net
