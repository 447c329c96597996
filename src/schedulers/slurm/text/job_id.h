// Ids of jobs, array tasks, het components and steps as users and Slurm's programs write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace expanse::schedulers::slurm {

// A list of array tasks: "0-9%2,12", "3,5,7-21:2", "0-99%5".
struct ArrayTasks {
  std::uint64_t count = 0;                // of tasks; a lower bound where `cut`
  std::optional<std::uint32_t> throttle;  // %N: how many may run at once
  bool cut = false;                       // ended in "...": Slurm shortens long lists
  bool operator==(const ArrayTasks&) const = default;
};
std::optional<ArrayTasks> ParseArrayTasks(std::string_view text);

// "123", "123_4", "123_[0-9%2,12]", "123+1", each with a step behind a dot: "123_4.0", "123.batch",
// "123+1.extern", "123.interactive", "123.TBD", "123.0+1" (a component of a het step).
struct JobId {
  std::uint32_t job_id = 0;  // as written: the array's or het job's, where there is more
  std::optional<std::uint32_t> array_task;
  std::optional<ArrayTasks> pending_tasks;  // of an array, or part of one, that is not split yet
  std::string pending_expression;           // what stood in the brackets
  std::optional<std::uint32_t> het_offset;
  std::string step;  // "" for the job itself
  bool operator==(const JobId&) const = default;
};
std::optional<JobId> ParseJobId(std::string_view text);

// True for "s" and 13 characters of Crockford's base32: a SLUID of Slurm 26.05 and later.
bool IsSluid(std::string_view text);

}  // namespace expanse::schedulers::slurm
