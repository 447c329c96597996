// The schema of the history index. Internal to history.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "store/sql/database.h"

namespace expanse::intelligence::history {

std::span<const store::sql::Migration> HistoryMigrations();

// What rows mean. An index of another version is emptied and made again.
inline constexpr std::int64_t kIndexVersion = 2;

// Keys of text in indexes: 63 bits of its SHA-256, never 0. Whoever finds a row by one compares the
// text.
std::int64_t TextKey(std::string_view text);
// Of a user and a job name together.
std::int64_t NameKey(std::string_view user, std::string_view job_name);

}  // namespace expanse::intelligence::history
