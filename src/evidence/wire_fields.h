// Pieces that the wire_*.cc files share: checked text, times and amounts. Not for other folders.
#pragma once

#include <google/protobuf/map.h>
#include <google/protobuf/timestamp.pb.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "base/time.h"
#include "evidence/wire.h"

namespace expanse::data::v1 {
class Execution;
class Resources;
class Usage;
}  // namespace expanse::data::v1

namespace expanse::evidence::wire {

using RawMap = google::protobuf::Map<std::string, std::string>;

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

// Text of any bytes, byte-exact: into *out, and into *raw under `field` where it is not UTF-8.
void PutText(const std::string& text, std::string_view field, std::string* out, RawMap* raw);
// Back again, at most `limit` bytes.
base::Status TakeText(const std::string& text, const RawMap& raw, std::string_view field,
                      std::size_t limit, std::string* out);

// An amount that is there must be finite, not negative and at most 2^63-1.
base::Status TakeAmount(bool has, double in, std::string_view what, std::optional<double>* out);
base::Status TakeAmount(bool has, std::uint64_t in, std::string_view what,
                        std::optional<std::uint64_t>* out);
base::Status TakeAmount(bool has, std::int64_t in, std::string_view what,
                        std::optional<std::int64_t>* out);

void PutResources(const Resources& in, std::string_view field, data::v1::Resources* out,
                  RawMap* raw);
base::Status TakeResources(const data::v1::Resources& in, const RawMap& raw, std::string_view field,
                           const WireLimits& limits, Resources* out);
void PutUsage(const Usage& in, data::v1::Usage* out);
base::Status TakeUsage(const data::v1::Usage& in, const WireLimits& limits, Usage* out);

// Cuts `text` to `limit` bytes, not in the middle of a UTF-8 sequence; true when it was longer.
bool CutText(std::string* text, std::size_t limit);

void PutSteps(const std::vector<Step>& steps, data::v1::Execution* out);
base::Status TakeSteps(const data::v1::Execution& in, base::WallTime now, const WireLimits& limits,
                       std::vector<Step>* out);
// Bounds their number (BoundSteps notes it) and texts; true when one of those was too long.
bool CutSteps(Execution* execution, const WireLimits& limits);

// Amounts go into signed 64-bit columns.
inline bool FitsSigned(std::uint64_t amount) {
  return amount <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
}

}  // namespace expanse::evidence::wire
