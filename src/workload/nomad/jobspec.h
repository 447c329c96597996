// A jobspec as a submission, with the tree that it was read from: for the patcher, which needs to
// know where things stand and where their values come from.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "workload/nomad/section.h"
#include "workload/parse_options.h"
#include "workload/submission.h"

namespace expanse::workload::nomad {

// How many tasks of one file are read.
inline constexpr std::size_t kMaxParts = 1000;

struct Jobspec {
  std::unique_ptr<const hcl::Body> file;
  std::unique_ptr<Context> context;
  bool api = false;  // names are those of the JSON API

  // Of one part.
  struct Task {
    Section section;                             // the scope is gone after reading: places only
    Section resources;                           // body null where there is none
    std::vector<const hcl::Expression*> values;  // of each setting; null where a label gives it
    std::vector<Section> devices;                // that count as GPUs
  };
  std::vector<Task> tasks;  // as submission.parts
  Submission submission;
};

Parsed<Jobspec> ReadJobspec(std::string_view text, const ParseOptions& options);

// task.cc: the settings and the request of a task.
void ReadResources(Context& context, const Section& task, Part& part, Jobspec::Task& places);
// A size with a unit as Nomad's device attributes have: "8 GiB", "500 MB".
std::optional<double> ParseUnitSize(std::string_view text);
// The whole number times `factor` as a setting's value, or why there is none.
void SetAmount(const hcl::Value& value, double factor, Setting& setting);
// Adds a setting whose value is a number in the file times `factor`.
Setting& AddSetting(Context& context, const Section& in, const hcl::Expression& value,
                    Setting setting, double factor, Part& part, Jobspec::Task& places);

// command.cc: what a task runs, and the files it names.
void ReadCommand(Context& context, const Section& task, Part& part, std::size_t begin);
void ReadFiles(Context& context, const Section& task, std::vector<std::string>& files);

}  // namespace expanse::workload::nomad
