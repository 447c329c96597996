// Executions that are to be diagnosed without anybody asking, and how far the change feed was read
// for them: both move in one transaction, so that a crash loses nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "store/records/evidence_store.h"

namespace expanse::store {

// What a change of an execution means for the queue.
struct DiagnosisChange {
  std::string organisation_id;
  std::string execution_id;
  std::optional<base::WallTime> due;  // absent: nothing to diagnose (any more)
  bool removed = false;               // its label goes too
};

struct DueDiagnosis {
  std::string organisation_id;
  std::string execution_id;
  std::uint64_t version = 0;    // of the entry: it changes with each change and each take
  std::uint32_t tries = 0;      // since the last change or success, with this one
  base::WallTime changed_at{};  // when the last change was taken in
};

// Thread-safe. What is written is durable on return.
class DiagnosisQueue {
 public:
  virtual ~DiagnosisQueue() = default;

  virtual base::Result<FeedPlace> Place() = 0;
  // Takes a page of changes in. An execution that waits already is due at the earlier of both
  // times.
  virtual base::Status Follow(std::span<const DiagnosisChange> changes, const FeedPlace& next,
                              base::WallTime now) = 0;
  // Forgets place and queue.
  virtual base::Status StartOver() = 0;

  // What has been due for longest; due again at `lease` unless it is finished. Nothing where
  // nothing is due.
  virtual base::Result<std::optional<DueDiagnosis>> Take(base::WallTime now,
                                                         base::WallTime lease) = 0;
  // Due again at `next`, or no longer. Nothing happens where a change or another take came between.
  // `succeeded` starts the count of tries over.
  virtual base::Status Finish(const DueDiagnosis& taken, std::optional<base::WallTime> next,
                              bool succeeded) = 0;
  virtual base::Result<std::size_t> Waiting() = 0;
  // When the next one is due; nothing where none waits.
  virtual base::Result<std::optional<base::WallTime>> NextDue() = 0;
};

}  // namespace expanse::store
