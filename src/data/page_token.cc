#include "data/page_token.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/crypto.h"

namespace expanse::data {
namespace {

constexpr char kVersion = 1;
constexpr std::size_t kHashBytes = 8;
constexpr std::size_t kHeaderBytes = 1 + 8 + kHashBytes;
constexpr std::size_t kMostBytes = kHeaderBytes + 64;

std::string FilterHash(const store::ExecutionFilter& filter) {
  std::string all;
  const auto add = [&all](std::string_view part) {
    all += fmt::format("{}:{},", part.size(), part);
  };
  const auto add_time = [&](const std::optional<base::WallTime>& time) {
    add(time ? std::to_string(base::ToMicros(*time)) : std::string());
  };
  add(filter.organisation_id);
  add(filter.status ? evidence::Name(*filter.status) : "");
  add(filter.outcome ? evidence::Name(*filter.outcome) : "");
  std::vector<std::string> users = filter.users;
  std::sort(users.begin(), users.end());
  for (const std::string& user : users) add(user);
  add("users end");
  add(filter.compute_id);
  add(filter.source_type ? evidence::Name(*filter.source_type) : "");
  add(filter.native_id);
  add_time(filter.started_after);
  add_time(filter.started_before);
  return base::Sha256(all).substr(0, kHashBytes);
}

}  // namespace

std::string EncodePageToken(const store::ExecutionCursor& cursor,
                            const store::ExecutionFilter& filter) {
  std::string raw(1, kVersion);
  const auto bits = static_cast<std::uint64_t>(cursor.sort_micros);
  for (int shift = 56; shift >= 0; shift -= 8) raw += static_cast<char>(bits >> shift & 0xFF);
  return base::Base64UrlEncode(raw + FilterHash(filter) + cursor.execution_id);
}

base::Result<store::ExecutionCursor> DecodePageToken(std::string_view token,
                                                     const store::ExecutionFilter& filter) {
  const auto malformed = [] {
    return base::Fail(base::Code::kInvalidArgument, "page_token.malformed",
                      "page_token is not one of next_page_token; start without it");
  };
  if (token.size() > kMostBytes * 2) return malformed();
  const std::optional<std::string> raw = base::Base64UrlDecode(token);
  if (!raw || raw->size() <= kHeaderBytes || raw->size() > kMostBytes || raw->front() != kVersion)
    return malformed();
  if (std::string_view(*raw).substr(9, kHashBytes) != FilterHash(filter)) {
    return base::Fail(base::Code::kInvalidArgument, "page_token.filter",
                      "page_token belongs to a list with other filters; start without it");
  }
  std::uint64_t bits = 0;
  for (std::size_t i = 1; i <= 8; ++i) bits = bits << 8 | static_cast<unsigned char>((*raw)[i]);
  store::ExecutionCursor cursor{.sort_micros = static_cast<std::int64_t>(bits),
                                .execution_id = raw->substr(kHeaderBytes)};
  if (!base::IsUuid(cursor.execution_id)) return malformed();
  return cursor;
}

}  // namespace expanse::data
