// Pieces that the wire_*.cc files share: checked text, times and amounts. Not for other folders.
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/text.h"
#include "base/time.h"
#include "evidence/wire.h"

namespace expanse::evidence::wire {

inline std::unexpected<base::Error> TooLarge(std::string message) {
  return base::Fail(base::Code::kInvalidArgument, "evidence.too_large", std::move(message));
}
inline std::unexpected<base::Error> Malformed(std::string message) {
  return base::Fail(base::Code::kInvalidArgument, "evidence.malformed", std::move(message));
}

void PutTime(base::WallTime time, google::protobuf::Timestamp* out);
// `what` names the field in errors.
base::Result<base::WallTime> TakeTime(const google::protobuf::Timestamp& in, base::WallTime now,
                                      std::string_view what);
// The range that FromProto of wire.h promises.
base::Status CheckTime(base::WallTime time, base::WallTime now, std::string_view what);

// A short word or name that programs compare: at most limits.name bytes, no control characters.
base::Status CheckName(std::string_view text, std::string_view what, const WireLimits& limits,
                       bool may_be_empty);

// `raw` replaces `text` when it is there; it must be what `text` was made from.
base::Result<std::string> TakeRaw(std::string_view text, const std::string* raw,
                                  std::string_view what);

// Amounts go into signed 64-bit columns.
inline bool FitsSigned(std::uint64_t amount) {
  return amount <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
}

}  // namespace expanse::evidence::wire
