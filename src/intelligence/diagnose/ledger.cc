#include "intelligence/diagnose/ledger.h"

#include <algorithm>

namespace expanse::intelligence::diagnose {

std::string_view Name(Origin origin) {
  switch (origin) {
    case Origin::kText:
      return "log";
    case Origin::kExit:
      return "exit";
    case Origin::kScheduler:
      return "scheduler";
    case Origin::kMetric:
      return "metric";
    case Origin::kEvent:
      return "event";
    case Origin::kSource:
      return "source";
    case Origin::kSimilar:
      return "similar";
  }
  return "";
}

std::optional<std::size_t> Ledger::Add(Item item) {
  if (items_.size() >= kMaxItems) return std::nullopt;
  item.id = "E" + std::to_string(items_.size() + 1);
  if (item.text.size() > kMaxItemText) item.text.resize(kMaxItemText);
  items_.push_back(std::move(item));
  return items_.size() - 1;
}

bool Ledger::Holds(std::string_view quote) const {
  return std::any_of(items_.begin(), items_.end(), [&](const Item& item) {
    return std::string_view(item.text).find(quote) != std::string_view::npos;
  });
}

}  // namespace expanse::intelligence::diagnose
