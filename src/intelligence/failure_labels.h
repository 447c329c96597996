// Keeps the class of every diagnosis as the execution's label, and shows the labels of executions:
// the method ListFailureClasses.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "intelligence/diagnose/case.h"
#include "intelligence/diagnoser.h"
#include "net/caller.h"
#include "store/runs/run_store.h"

namespace expanse::intelligence::v1 {
class ListFailureClassesRequest;
class ListFailureClassesResponse;
}  // namespace expanse::intelligence::v1

namespace expanse::intelligence {

// Equal for executions of the same workload.
std::string WorkloadOf(const evidence::Execution& execution);

// Makes `outcome` of the run the execution's label, or takes that away where nothing failed. A
// label that says the same stays, so that a run of the system, which all may see, stays named.
base::Status KeepLabel(store::LabelStore& labels, const DiagnoseTask& task,
                       const DiagnoseOutcome& outcome, const store::RunRow& run,
                       base::WallTime now);

// How long before the end of an execution what failed on its nodes is looked at, and after it.
inline constexpr std::chrono::hours kNodeLookBack{24 * 30};
inline constexpr std::chrono::hours kNodeLookAhead{24};

// Fills in what earlier diagnoses know: the classes of the similar runs, and those classes that
// point to a node of the execution (others would only make equal evidence look new). A few reads,
// bounded as LabelStore says.
base::Status AddKnownFailures(store::LabelStore& labels, const DiagnoseTask& task,
                              diagnose::Case* of);

// Thread-safe. Holds a reference.
class FailureClassService {
 public:
  explicit FailureClassService(store::LabelStore& labels) : labels_(labels) {}

  // Fails with classes.too_many or classes.id (no UUID).
  base::Result<v1::ListFailureClassesResponse> ListFailureClasses(
      const net::CallContext& context, const v1::ListFailureClassesRequest& request);

 private:
  store::LabelStore& labels_;
};

}  // namespace expanse::intelligence
