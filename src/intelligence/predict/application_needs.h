// What well-known programs typically take, as their own documentation says.
#pragma once

#include <optional>
#include <string>

#include "workload/source/source_facts.h"

namespace expanse::intelligence::predict {

struct ApplicationNeed {
  std::optional<double> memory_bytes;
  std::string memory_reason;
  std::optional<double> walltime_s;  // a limit that the program keeps by itself
  std::string walltime_reason;
  std::string missing;  // what its need depends on and the command does not tell
};
ApplicationNeed NeedOf(const workload::Application& application, std::optional<double> threads);

}  // namespace expanse::intelligence::predict
