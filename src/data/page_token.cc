#include "data/page_token.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "net/page_token.h"

namespace expanse::data {
namespace {

std::string FilterText(const store::ExecutionFilter& filter) {
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
  return all;
}

}  // namespace

std::string EncodePageToken(const store::ExecutionCursor& cursor,
                            const store::ExecutionFilter& filter) {
  return net::EncodePageToken({cursor.sort_micros, cursor.execution_id}, FilterText(filter));
}

base::Result<store::ExecutionCursor> DecodePageToken(std::string_view token,
                                                     const store::ExecutionFilter& filter) {
  EXPANSE_ASSIGN_OR_RETURN(auto place, net::DecodePageToken(token, FilterText(filter)));
  return store::ExecutionCursor{.sort_micros = place.sort_micros,
                                .execution_id = std::move(place.id)};
}

}  // namespace expanse::data
