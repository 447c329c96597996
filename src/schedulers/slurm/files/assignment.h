// Which jobs' files a node's sampler is to follow for the controller, which may not see them: home
// directories are often mounted on the nodes and not where slurmctld runs. One small text file a
// host; the format is in docs/formats/assignment.md. Plain data, a writer and a parser.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace expanse::schedulers::slurm {

struct Assignment {
  std::uint32_t job_id = 0;  // raw; never 0
  uid_t uid = 0;             // never root's
  bool logs = true;
  bool sources = true;
  bool ended = false;
  std::string stdout_path;
  std::string stderr_path;
  std::string working_directory;
  std::string command;
  // SHA-256, hex, of the batch script as Slurm has it; empty: there is none, or it is unknown.
  std::string script_sha256;
  std::optional<base::WallTime> started;  // in seconds
  bool operator==(const Assignment&) const = default;
};

inline constexpr std::string_view kAssignDirectory = "assign";  // below the prefix
inline constexpr std::size_t kMaxAssignments = 20'000;
inline constexpr std::size_t kMaxAssignmentBytes = 32U << 20;

// Of no more than kMaxAssignments jobs, the first ones.
std::string EncodeAssignments(std::string_view host, const std::vector<Assignment>& assignments);

// Never trusts `bytes`. What a newer version adds is left out. Fails with assign.torn (its end is
// missing or does not fit the rest), assign.version, assign.host (of another host) or
// assign.malformed (root's jobs among them are that too).
base::Result<std::vector<Assignment>> ParseAssignments(std::string_view bytes,
                                                       std::string_view host);

}  // namespace expanse::schedulers::slurm
