// Drops old points, one short transaction at a time. Internal to store/series.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "store/sql/database.h"

namespace expanse::store::series {

// One pass over what is older than a time. Create one per pass and call Step until it says done.
class RetentionPass {
 public:
  explicit RetentionPass(std::int64_t before_us) : before_(before_us) {}

  struct Progress {
    std::uint64_t dropped = 0;
    bool done = false;
  };
  // At most kStepRows chunks or tails; in a write transaction.
  base::Result<Progress> Step(sql::Transaction& tx);

 private:
  static constexpr std::int64_t kStepRows = 200;
  base::Result<Progress> StepChunks(sql::Transaction& tx);
  base::Result<Progress> StepTails(sql::Transaction& tx);

  const std::int64_t before_;
  // Where the pass stands: rows are visited by (first time, id), so that a damaged row, which can
  // be dropped only as a whole, does not hold it up.
  bool chunks_done_ = false;
  std::int64_t cursor_first_ = INT64_MIN;
  std::int64_t cursor_id_ = 0;
};

}  // namespace expanse::store::series
