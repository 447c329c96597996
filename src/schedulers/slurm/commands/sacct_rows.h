// Splits what sacct writes into rows and cells as it comes. Cells are byte-exact: they may hold
// newlines, the usual separators and bytes that are not UTF-8; only the random separator of this
// invocation (sacct_query.h) and the newline behind the last cell count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "schedulers/slurm/commands/sacct_query.h"

namespace expanse::schedulers::slurm {

// One row; valid during the call that it is given to.
class SacctRow {
 public:
  SacctRow(const SacctFormat& format, const std::vector<std::string_view>& cells)
      : format_(format), cells_(cells) {}
  // Empty for a field that this version of sacct does not have.
  std::string_view operator[](SacctField field) const {
    return format_.Has(field) ? cells_[format_.ColumnOf(field)] : std::string_view();
  }

 private:
  const SacctFormat& format_;
  const std::vector<std::string_view>& cells_;
};

// Not thread-safe. Memory is bounded by one row of `max_row` bytes and one piece of input.
class SacctRows {
 public:
  static constexpr std::size_t kMaxRow = 8U << 20;

  SacctRows(SacctFormat format, std::string separator, std::function<void(const SacctRow&)> on_row,
            std::size_t max_row = kMaxRow);

  // The next piece of output, cut anywhere. Calls `on_row` for each row that is complete.
  void Feed(std::string_view piece);
  // The output has ended. True when it ended with a whole row; else what is left was torn off.
  bool Finish();

  const SacctFormat& format() const { return format_; }
  std::uint64_t rows() const { return rows_; }
  std::uint64_t too_long() const { return too_long_; }  // rows that were left out for their length

 private:
  bool TakeCell();
  void EndRow();
  void DropScanned();

  const SacctFormat format_;
  const std::string separator_;
  const std::function<void(const SacctRow&)> on_row_;
  const std::size_t max_row_;

  std::string buffer_;         // from the first byte of the row that is being read
  std::size_t row_begin_ = 0;  // offsets into buffer_
  std::size_t cell_begin_ = 0;
  std::size_t scanned_ = 0;        // no separator begins before this
  std::vector<std::size_t> ends_;  // of the cells of this row, relative to row_begin_
  std::size_t cells_read_ = 0;
  bool skipping_ = false;  // this row is too long: its cells are counted, not kept
  std::uint64_t rows_ = 0;
  std::uint64_t too_long_ = 0;
  std::vector<std::string_view> cells_;
};

}  // namespace expanse::schedulers::slurm
