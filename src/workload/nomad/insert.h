// Where something that is missing can be written, and how it has to look there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workload/nomad/jobspec.h"
#include "workload/patch/edit.h"

namespace expanse::workload::nomad {

// Stands for the value in the text of an insertion.
inline constexpr char kValueMark = '\x01';

// Edits that write the memory of a task that has none, kValueMark where the value belongs: into its
// resources, or with a new block for them.
std::vector<Edit> InsertMemory(std::string_view text, const Jobspec& jobspec,
                               const Jobspec::Task& task);

// Edits that write the count of a device block that has none.
std::vector<Edit> InsertCount(std::string_view text, const Section& device, bool api);

}  // namespace expanse::workload::nomad
