// Whose runs tell about a workload: the recorded runs of the same source, of similar source, of the
// same name, in that order (docs/prediction.md, "Whose runs").
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "evidence/execution.h"
#include "intelligence/history/fingerprint.h"
#include "intelligence/predict/run.h"

namespace expanse::intelligence::history {

struct Query {
  std::string organisation_id;  // always applied
  // Where the workload is to run; empty: any that the caller may see. Runs elsewhere count only
  // where this compute has none of the same kind, and a note says so.
  std::string compute_id;
  // The computes whose runs the caller may see; absent: all of the organisation. `compute_id` is
  // looked at only if it is one of them.
  std::optional<std::vector<std::string>> visible_computes = {};
  Fingerprint fingerprint;
  std::vector<std::string> arguments = {};  // the words after the script
  std::string local_user = {};              // with job_name: runs of the same user and name
  std::string job_name = {};
  std::string owner = {};  // OwnerName(…); empty: none
  // Runs that do not count: the one a diagnosis is about.
  std::string exclude_execution_id = {};
  std::size_t limit = 500;  // the newest; at most kMaxRuns
};

inline constexpr std::size_t kMaxRuns = 500;

// Of the run at the same index.
struct Origin {
  std::string compute_id;
  evidence::SourceType source_type = evidence::SourceType::kUnspecified;
  std::string user;
  std::string job_name;
  bool same_arguments = false;
};

struct Found {
  predict::Basis basis = predict::Basis::kNone;
  double similarity = 0;           // the highest of the runs; 1 for the same source
  std::vector<predict::Run> runs;  // oldest first
  std::vector<Origin> origins;     // of each run
  // What Run::input_size measures ("argument 2", "number 3 of job.sh", "array index"), and its
  // value in what was asked; empty: nothing that varies was found.
  std::string input_name;
  std::optional<double> input_size;
  bool elsewhere = false;  // the runs are of other computes than the one asked for
  bool truncated = false;  // there are older runs beyond the limit
  // Changes whenever the answer does: of the runs and all else here.
  std::string version;
  std::vector<std::string> notes;  // sentences for people
};

// Thread-safe.
class History {
 public:
  virtual ~History() = default;
  // Nothing found is an answer, not an error. Reads the local index only; milliseconds.
  virtual base::Result<Found> Find(const Query& query) = 0;
};

}  // namespace expanse::intelligence::history
