// `scontrol show config`: what of the cluster's configuration matters to us.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace expanse::schedulers::slurm {

// Texts are as Slurm prints them, empty where it prints none: "(null)".
struct SlurmConfig {
  std::string cluster;
  std::string version;                   // "22.05.8"; of slurmctld
  std::vector<std::string> controllers;  // host names, the primary first
  std::string state_save_location;
  std::string slurm_user;
  std::optional<uid_t> slurm_uid;
  std::string prolog;
  std::string epilog;
  std::string task_prolog;
  std::string prolog_flags;  // "Alloc,Contain"
  std::string select_type;
  std::string proctrack_type;
  std::string job_acct_gather_type;
  std::string accounting_storage_type;
  std::string accounting_storage_tres;              // what is tracked: "cpu,mem,gres/gpu"
  std::optional<std::chrono::seconds> min_job_age;  // how long ended jobs stay in squeue
  std::optional<std::uint32_t> max_job_id;          // ids are used again from there
  std::optional<std::uint32_t> max_array_size;
  bool operator==(const SlurmConfig&) const = default;

  // False where sacct has nothing to tell.
  bool has_accounting() const {
    return !accounting_storage_type.empty() && accounting_storage_type != "accounting_storage/none";
  }
};

// Fails with slurm.config when it names no cluster: without one there are no identities.
base::Result<SlurmConfig> ParseSlurmConfig(std::string_view text);

}  // namespace expanse::schedulers::slurm
