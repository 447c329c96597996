// An answer of `analyse` as text: sections of `name value` rows in the order of the reference.
// Pure.
#pragma once

#include <string>

#include "cli/table.h"
#include "expanse/intelligence/v1/analyse.pb.h"
#include "expanse/intelligence/v1/run.pb.h"

namespace expanse::cli {

struct AnalyseHeading {
  std::string target;
  std::string job_name;
  std::string run_id;
  intelligence::v1::RunStatus status = intelligence::v1::RUN_STATUS_UNSPECIFIED;
  bool cached = false;
  std::string error;  // of a run that failed
};

struct AnalyseStyle {
  TableStyle table;
  std::size_t most_runs = 0;  // named in a row of EVIDENCE; 0: all
};

// `result` may be null: the heading alone. What is unknown reads "unknown". Every row ends with a
// newline, whatever the server sent.
std::string RenderAnalyse(const AnalyseHeading& heading,
                          const intelligence::v1::AnalyseResult* result, const AnalyseStyle& style);

// "run_status_succeeded".
std::string StatusLabel(intelligence::v1::RunStatus status);

}  // namespace expanse::cli
