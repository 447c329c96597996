// ReduceLog of log_lines.h: the lines that stay, and what the others are counted to.
#include <algorithm>
#include <deque>
#include <unordered_map>

#include "base/text.h"
#include "intelligence/diagnose/log_lines.h"

namespace expanse::intelligence::diagnose {
namespace {

constexpr std::size_t kPerTemplate = 20;
constexpr std::size_t kMaxTemplates = 100'000;  // that are remembered

bool IsHex(char c) { return base::IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// Two messages of one template have the same hash: runs of digits and of hexadecimal digits are one
// mark (Drain's masking; https://github.com/logpai/Drain3).
std::uint64_t TemplateHash(std::string_view message) {
  std::uint64_t hash = 1469598103934665603ULL;  // FNV-1a
  const auto mix = [&](char c) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  };
  std::size_t at = 0;
  while (at < message.size()) {
    if (base::IsDigit(message[at])) {
      while (at < message.size() && (IsHex(message[at]) || message[at] == 'x')) ++at;
      mix('#');
      continue;
    }
    mix(message[at++]);
  }
  return hash;
}

// Keeps the first and the last of the distinct lines, and per template the first few and the last.
// Positions are counted over all lines that were kept at some time: those of the beginning stay,
// of the others the oldest go.
class Reducer {
 public:
  explicit Reducer(std::size_t most) : most_(most), most_head_(most / 4) {}

  void Line(std::string_view raw, std::size_t number) {
    const std::size_t hash = std::hash<std::string_view>()(raw);
    const auto same = by_raw_.find(hash);
    Kept* known = same == by_raw_.end() ? nullptr : At(same->second);
    if (known != nullptr && known->raw == raw) {
      ++known->count;
      known->last = number;
      return;
    }
    const std::string_view message = Strip(raw, &space_).message;
    if (message.empty()) return;
    if (templates_.size() >= kMaxTemplates) Forget();
    const std::uint64_t key = TemplateHash(message);
    std::uint8_t& seen = templates_[key];
    if (seen < kPerTemplate) {
      ++seen;
      Keep({.raw = raw, .number = number, .last = number}, hash);
      return;
    }
    // Only the newest of the rest stays.
    const auto [newest, is_first] = newest_.try_emplace(key);
    const std::uint32_t count = is_first ? 1 : newest->second.count + 1;
    newest->second = {.raw = raw, .number = number, .last = number, .count = count};
  }

  Reduced Take(std::size_t total_lines) {
    Forget();
    std::vector<Kept> kept = std::move(head_);
    kept.insert(kept.end(), tail_.begin(), tail_.end());
    std::ranges::sort(kept, {}, &Kept::number);
    if (kept.size() > most_) {
      const auto first = kept.begin() + static_cast<std::ptrdiff_t>(most_head_);
      const std::size_t excess = kept.size() - most_;
      kept.erase(first, first + static_cast<std::ptrdiff_t>(excess));
      dropped_ += excess;
    }
    Reduced result{.lines = {}, .total_lines = total_lines, .dropped = dropped_};
    result.lines.reserve(kept.size());
    for (const Kept& line : kept) {
      LogLine& to = result.lines.emplace_back();
      to.raw = line.raw;
      to.number = line.number;
      to.last = line.last;
      to.count = line.count;
      StripLine(line.raw, &to);
    }
    return result;
  }

 private:
  struct Kept {
    std::string_view raw;
    std::size_t number = 0;
    std::size_t last = 0;
    std::uint32_t count = 1;
  };

  // Null: it is gone.
  Kept* At(std::size_t position) {
    if (position < head_.size()) return &head_[position];
    if (position < tail_begin_) return nullptr;
    return &tail_[position - tail_begin_];
  }

  void Keep(const Kept& line, std::size_t hash) {
    if (head_.size() < most_head_) {
      by_raw_[hash] = head_.size();
      head_.push_back(line);
      tail_begin_ = head_.size();
      return;
    }
    by_raw_[hash] = tail_begin_ + tail_.size();
    tail_.push_back(line);
    if (tail_.size() <= most_ - most_head_) return;
    const auto oldest = by_raw_.find(std::hash<std::string_view>()(tail_.front().raw));
    if (oldest != by_raw_.end() && oldest->second == tail_begin_) by_raw_.erase(oldest);
    tail_.pop_front();
    ++tail_begin_;
    ++dropped_;
  }

  // Begins again with templates; the newest line of each stays.
  void Forget() {
    std::vector<Kept> newest;
    for (const auto& [key, line] : newest_) newest.push_back(line);
    std::ranges::sort(newest, {}, &Kept::number);
    newest_.clear();
    templates_.clear();
    for (const Kept& line : newest) Keep(line, std::hash<std::string_view>()(line.raw));
  }

  std::size_t most_;
  std::size_t most_head_;
  std::vector<Kept> head_;
  std::deque<Kept> tail_;
  std::size_t tail_begin_ = 0;  // position of the first of tail_
  std::size_t dropped_ = 0;
  std::unordered_map<std::size_t, std::size_t> by_raw_;        // hash of a line → position
  std::unordered_map<std::uint64_t, std::uint8_t> templates_;  // hash → lines that were kept
  std::unordered_map<std::uint64_t, Kept> newest_;             // of those with more than that
  std::string space_;
};

// Feeds the lines of a part of the log; returns the number of the last.
std::size_t Feed(std::string_view part, std::size_t number, Reducer* to) {
  while (!part.empty()) {
    const std::size_t end = std::min(part.find('\n'), part.size());
    to->Line(part.substr(0, end), ++number);
    part.remove_prefix(std::min(end + 1, part.size()));
  }
  return number;
}

}  // namespace

Reduced ReduceLog(std::string_view text, std::size_t most) {
  Reducer reducer(most);
  if (text.size() <= kMaxLogText) return reducer.Take(Feed(text, 0, &reducer));
  // No line is cut: the first part ends with one, the second begins with one.
  const std::size_t before = text.rfind('\n', kMaxLogText / 4);
  const std::size_t head = before == std::string_view::npos ? 0 : before + 1;
  std::size_t newline = text.find('\n', text.size() - kMaxLogText / 4 * 3);
  if (newline == std::string_view::npos || newline + 1 == text.size())
    newline = text.rfind('\n', text.size() - 2);
  const std::size_t tail = newline == std::string_view::npos ? 0 : newline + 1;
  std::size_t number = Feed(text.substr(0, std::min(head, tail)), 0, &reducer);
  const std::string_view between = text.substr(std::min(head, tail), tail - std::min(head, tail));
  number += static_cast<std::size_t>(std::count(between.begin(), between.end(), '\n'));
  return reducer.Take(Feed(text.substr(tail), number, &reducer));
}

}  // namespace expanse::intelligence::diagnose
