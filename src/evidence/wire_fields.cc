#include "evidence/wire_fields.h"

#include <fmt/format.h>

#include <algorithm>

namespace expanse::evidence::wire {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

constexpr base::WallTime kEarliest = std::chrono::sys_days(std::chrono::year(1990) / 1 / 1);
// protobuf's own bounds: the years 1 to 9999.
constexpr std::int64_t kLeastSeconds = -62'135'596'800;
constexpr std::int64_t kMostSeconds = 253'402'300'799;

}  // namespace

void PutTime(base::WallTime time, google::protobuf::Timestamp* out) {
  const auto whole = std::chrono::floor<seconds>(time);
  out->set_seconds(whole.time_since_epoch().count());
  out->set_nanos(static_cast<std::int32_t>((time - whole).count() * 1000));
}

base::Status CheckTime(base::WallTime time, base::WallTime now, std::string_view what) {
  constexpr auto kAhead = std::chrono::hours(24);
  const bool too_late = now < base::WallTime::max() - kAhead && time > now + kAhead;
  if (time >= kEarliest && !too_late) return {};
  return base::Fail(
      base::Code::kInvalidArgument, "evidence.time",
      fmt::format("{} is {}: {}; check the clock of the sender", what, base::FormatRfc3339(time),
                  too_late ? "more than a day ahead" : "before 1990"));
}

base::Result<base::WallTime> TakeTime(const google::protobuf::Timestamp& in, base::WallTime now,
                                      std::string_view what) {
  if (in.nanos() < 0 || in.nanos() > 999'999'999 || in.seconds() > kMostSeconds ||
      in.seconds() < kLeastSeconds) {
    return Malformed(fmt::format("{} is not a timestamp", what));
  }
  const base::WallTime time{seconds(in.seconds()) + microseconds(in.nanos() / 1000)};
  EXPANSE_RETURN_IF_ERROR(CheckTime(time, now, what));
  return time;
}

base::Status CheckName(std::string_view text, std::string_view what, const WireLimits& limits,
                       bool may_be_empty) {
  if (text.size() > limits.name) {
    return TooLarge(
        fmt::format("{} has {} bytes, at most {} are taken", what, text.size(), limits.name));
  }
  if (text.empty() && !may_be_empty) return Malformed(fmt::format("{} is empty", what));
  const bool control = std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  if (control || !base::IsValidUtf8(text)) {
    return Malformed(fmt::format("{} has control characters or is not UTF-8", what));
  }
  return {};
}

base::Result<std::string> TakeRaw(std::string_view text, const std::string* raw,
                                  std::string_view what) {
  if (raw == nullptr) {
    if (!base::IsValidUtf8(text)) return Malformed(fmt::format("{} is not UTF-8", what));
    return std::string(text);
  }
  // Otherwise people would see one value and programs would use another.
  if (base::ToValidUtf8(*raw) != text)
    return Malformed(fmt::format("raw_bytes of {} contradict its text", what));
  return *raw;
}

}  // namespace expanse::evidence::wire
