#include "schedulers/slurm/commands/sacct_rows.h"

#include <algorithm>
#include <utility>

#include "base/result.h"

namespace expanse::schedulers::slurm {

SacctRows::SacctRows(SacctFormat format, std::string separator,
                     std::function<void(const SacctRow&)> on_row, std::size_t max_row)
    : format_(std::move(format)),
      separator_(std::move(separator)),
      on_row_(std::move(on_row)),
      max_row_(max_row) {
  EXPANSE_CHECK(!separator_.empty());
  ends_.reserve(format_.columns().size());
  cells_.reserve(format_.columns().size());
}

// Reads on to the end of the cell; false when the input does not have it yet.
bool SacctRows::TakeCell() {
  const bool last = cells_read_ + 1 == format_.columns().size();
  const std::string_view end = last ? std::string_view("\n") : std::string_view(separator_);
  const std::size_t found = std::string_view(buffer_).find(end, std::max(scanned_, cell_begin_));
  if (found == std::string_view::npos) {
    // The piece may have been cut within a separator.
    scanned_ = buffer_.size() - std::min(buffer_.size(), end.size() - 1);
    return false;
  }
  if (!skipping_) ends_.push_back(found - row_begin_);
  ++cells_read_;
  cell_begin_ = found + end.size();
  scanned_ = cell_begin_;
  return true;
}

void SacctRows::EndRow() {
  if (skipping_) {
    ++too_long_;
  } else {
    const std::string_view row = std::string_view(buffer_).substr(row_begin_);
    cells_.clear();
    std::size_t begin = 0;
    for (const std::size_t end : ends_) {
      cells_.push_back(row.substr(begin, end - begin));
      begin = end + separator_.size();
    }
    ++rows_;
    on_row_(SacctRow(format_, cells_));
  }
  ends_.clear();
  cells_read_ = 0;
  skipping_ = false;
  row_begin_ = cell_begin_;
}

void SacctRows::DropScanned() {
  buffer_.erase(0, scanned_);
  cell_begin_ -= std::min(cell_begin_, scanned_);
  row_begin_ = 0;
  scanned_ = 0;
}

void SacctRows::Feed(std::string_view piece) {
  buffer_ += piece;
  while (TakeCell()) {
    if (cells_read_ == format_.columns().size()) EndRow();
  }
  if (!skipping_ && buffer_.size() - row_begin_ > max_row_) {
    skipping_ = true;
    ends_.clear();
  }
  if (skipping_) return DropScanned();
  buffer_.erase(0, row_begin_);
  cell_begin_ -= row_begin_;
  scanned_ -= std::min(scanned_, row_begin_);
  row_begin_ = 0;
}

bool SacctRows::Finish() {
  const bool whole = buffer_.empty() && cells_read_ == 0;
  buffer_.clear();
  ends_.clear();
  row_begin_ = cell_begin_ = scanned_ = cells_read_ = 0;
  skipping_ = false;
  return whole;
}

}  // namespace expanse::schedulers::slurm
