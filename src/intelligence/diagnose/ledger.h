// The evidence of one case as a list of items that an answer can cite: each with id, origin, place
// and its exact text. Nothing is quoted that is not in here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace expanse::intelligence::diagnose {

// The kinds of evidence that count as independent of each other.
enum class Origin : std::uint8_t { kText, kExit, kScheduler, kMetric, kEvent, kSource, kSimilar };
std::string_view Name(Origin origin);  // "log", "exit", "scheduler", "metric", …

struct Item {
  std::string id;  // "E1", "E2", …
  Origin origin = Origin::kText;
  std::string where;  // "stderr line 1042", "state", "cgroup", "train.py line 7"
  std::optional<base::WallTime> at;
  std::string node;
  std::optional<std::uint32_t> rank;
  std::string text;         // exact bytes, at most kMaxItemText of them
  std::uint32_t count = 1;  // lines of the same template that this one stands for
  std::size_t order = 0;    // position within its origin: line number, …
};

inline constexpr std::size_t kMaxItemText = 2048;

// Not thread-safe. Bounded: beyond kMaxItems nothing is added.
class Ledger {
 public:
  static constexpr std::size_t kMaxItems = 4096;

  // Gives the item its id; returns its index, or nothing when the ledger is full.
  std::optional<std::size_t> Add(Item item);
  const std::vector<Item>& items() const { return items_; }
  const Item& operator[](std::size_t index) const { return items_[index]; }
  // Whether some item holds these bytes.
  bool Holds(std::string_view quote) const;

 private:
  std::vector<Item> items_;
};

}  // namespace expanse::intelligence::diagnose
