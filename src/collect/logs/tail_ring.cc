#include "collect/logs/tail_ring.h"

#include <algorithm>

namespace expanse::collect {

void TailRing::Append(std::string_view bytes) {
  if (error_wanted_ > 0) {
    const std::string_view more = bytes.substr(0, error_wanted_);
    error_ += more;
    error_wanted_ -= more.size();
  }
  const std::size_t limit = options_.tail + options_.context;
  // It wants what stood in front of these bytes, so it runs before they replace it. Binary output
  // has no error messages in it.
  const bool search = !error_seen_ && total_ < kMaxErrorSearch;
  if (search && bytes.find('\0') == std::string_view::npos) LookForError(bytes);
  if (bytes.size() >= limit) {
    kept_.assign(bytes.substr(bytes.size() - limit));
  } else {
    kept_ += bytes;
    if (kept_.size() > 2 * limit) kept_.erase(0, kept_.size() - limit);
  }
  total_ += bytes.size();
}

void TailRing::Skip(std::uint64_t bytes) {
  if (bytes == 0) return;
  kept_.clear();
  carry_.clear();
  total_ += bytes;
}

void TailRing::LookForError(std::string_view bytes) {
  const std::size_t carried = carry_.size();
  std::size_t found = std::string_view::npos;  // relative to carry + bytes
  if (carried > 0) {
    carry_ += bytes.substr(0, kErrorCarry);
    found = FindErrorWord(carry_);
  }
  if (found == std::string_view::npos) {
    found = FindErrorWord(bytes);
    if (found != std::string_view::npos) found += carried;
  }
  if (found == std::string_view::npos) {
    carry_.resize(carried);
    carry_ += bytes.substr(bytes.size() - std::min(bytes.size(), kErrorCarry));
    if (carry_.size() > kErrorCarry) carry_.erase(0, carry_.size() - kErrorCarry);
    return;
  }
  error_seen_ = true;
  carry_.clear();
  // In front of it: what of the stream is still there, from the beginning of a line if possible.
  const std::uint64_t position = total_ - carried + found;
  const std::size_t in_bytes = position > total_ ? static_cast<std::size_t>(position - total_) : 0;
  const std::size_t in_kept = position < total_ ? static_cast<std::size_t>(total_ - position) : 0;
  std::string before = kept_.substr(0, kept_.size() - std::min(kept_.size(), in_kept));
  before += bytes.substr(0, in_bytes);
  const bool whole_stream = before.size() == position;
  if (before.size() > options_.error_before || !whole_stream) {
    const std::size_t keep = std::min(before.size(), options_.error_before);
    before.erase(0, before.size() - keep);
    error_cut_ = true;
  }
  error_offset_ = position - before.size();
  error_ = std::move(before);
  if (in_kept > 0) error_ += kept_.substr(kept_.size() - std::min(kept_.size(), in_kept));
  const std::string_view after = bytes.substr(in_bytes, options_.error_after);
  error_ += after;
  error_wanted_ = options_.error_after - after.size();
}

evidence::LogTail TailRing::Snapshot(bool final) const {
  TailView view{.kept = kept_, .total = total_, .error = {}};
  if (error_seen_) {
    view.error = ErrorView{.bytes = error_,
                           .offset = error_offset_,
                           .cut = error_cut_,
                           .more_follows = error_wanted_ == 0};
  }
  return ShowTail(view, options_, final);
}

}  // namespace expanse::collect
