// What a diagnosis says. Plain data; protobuf stays at the plane's edge.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "intelligence/diagnose/case.h"
#include "intelligence/diagnose/verdict.h"
#include "intelligence/predict/run.h"

namespace expanse::intelligence::diagnose {

enum class StageStatus : std::uint8_t { kOk, kDegraded, kSkipped };

// One step of the pipeline: what evidence the diagnosis stands on.
struct Stage {
  std::string name;  // "evidence", "similar", "sources", "attribution", "metrics", "runbooks", …
  StageStatus status = StageStatus::kSkipped;
  std::string summary;  // "5 similar executions"
};

// Evidence that the answer rests on. `quote` is byte for byte in the evidence.
struct CitedEvidence {
  std::string id;      // of the ledger
  std::string origin;  // "log", "scheduler", …
  std::string where;   // "stderr line 12"
  std::string quote;
  std::string execution_id;  // whose evidence it is
  std::string summary;       // for people; of similar executions, what they show
};

struct Alternative {
  std::string failure_class;
  std::string title;
  std::vector<std::string> supporting;  // ids of evidence
  std::vector<std::string> against;
};

// How a row of the snapshot bears on the failure.
enum class FieldStatus : std::uint8_t { kOk, kWarning, kError };

struct Diagnosis {
  State state = State::kUnknown;
  // The class; empty where nothing failed; "unknown" where nothing explains it.
  std::string failure_class;
  std::string title;
  std::string kind;   // "cause", "symptom", "outcome"
  std::string owner;  // "user", "infrastructure", …
  predict::Confidence confidence = predict::Confidence::kLow;
  std::vector<std::string> doubts;
  std::string root_cause;
  std::string advice;
  std::string retry;
  std::string verify;
  std::vector<std::string> explained;  // classes that it absorbed
  std::vector<std::string> collect;    // what would tell more
  std::vector<CitedEvidence> evidence;
  std::vector<Alternative> alternatives;
  std::optional<predict::Probability> recurrence;
  Snapshot snapshot;
  std::map<std::string, FieldStatus> fields;  // by row name: "host_ram_observed_peak_gb"
  std::vector<Stage> pipeline;
  std::string agent_prompt;  // of a failed execution
};

}  // namespace expanse::intelligence::diagnose
