// Where the captured sources ask for a resource: what the owner of a run would change. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "intelligence/diagnose/case.h"
#include "workload/submission.h"

namespace expanse::intelligence::diagnose {

struct RequestLine {
  workload::Quantity quantity = workload::Quantity::kMemory;
  std::string option;      // as the file spells it: "--mem", "resources.limits.memory"
  std::string path;        // of the file
  std::uint32_t line = 0;  // from 1
  std::string text;        // that line, byte for byte
};

// At most one a quantity, of the first source that is a job script, a manifest or a jobspec. Left
// out is what more than one part of the file asks for: which of them failed is not known here. A
// limit stands before a request. Linear in that source.
std::vector<RequestLine> FindRequestLines(const std::vector<SourceText>& sources);

// What people of the scheduler call the option where no source is known: "--mem"; empty where there
// is none.
std::string_view OptionOf(evidence::SourceType scheduler, workload::Quantity quantity);

}  // namespace expanse::intelligence::diagnose
