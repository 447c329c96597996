// What a Prolog or Epilog says of a job: the content of one file in the node's event directory. The
// format is in docs/formats/hook-event.md. Plain data and a parser; hook_directory.h reads the
// files, hook_script.h has the scripts that write them.
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

enum class HookKind : std::uint8_t { kProlog, kEpilog };

// An empty text or absent number: this version of Slurm does not tell it, or it does not apply.
struct HookEvent {
  HookKind kind = HookKind::kProlog;
  std::uint32_t job_id = 0;  // raw, what Slurm calls SLURM_JOB_ID; never 0
  std::string sluid;         // of Slurm 26.05 and later
  std::optional<uid_t> uid;
  std::string user;
  std::string cluster;
  std::string node;  // the slurmd that ran the hook
  std::string partition;
  std::string node_list;  // as Slurm writes it: "gpu[01-04,7]"
  std::optional<std::uint32_t> array_job_id;
  std::optional<std::uint32_t> array_task_id;
  std::optional<std::uint32_t> het_job_id;
  std::optional<std::uint32_t> het_offset;
  std::optional<std::uint32_t> restart_count;
  // Of the whole job. Only an Epilog has them, and only of Slurm versions that tell it.
  std::optional<std::int32_t> exit_code;
  std::optional<std::int32_t> signal;
  std::optional<base::WallTime> started_at;  // of the job, by slurmctld's clock
  std::string job_gpus;         // SLURM_JOB_GPUS: numbers of devices on the node, or UUIDs
  std::string visible_devices;  // CUDA_VISIBLE_DEVICES: numbers as the job sees them, or UUIDs
  base::WallTime at{};          // when the hook ran, by the node's clock; not in the file's content
  bool operator==(const HookEvent&) const = default;
};

// A larger file is no event.
inline constexpr std::size_t kMaxHookEvent = 64U << 10;

// Never trusts `bytes`. `at` is left alone. Fails with hook.torn (its end is missing: it is being
// written, or the file system was full), hook.version or hook.malformed.
base::Result<HookEvent> ParseHookEvent(std::string_view bytes);

// GPUs that are named by UUID ("GPU-…", "MIG-…", the older "MIG-GPU-…/1/0"), in order, each once.
// Empty when they are named by number.
std::vector<std::string> GrantedGpuUuids(const HookEvent& event);
// Numbers in SLURM_JOB_GPUS ("0,1", "0-3"): those of /dev/nvidiaN on an undivided NVIDIA host,
// something else elsewhere (AMD counts from 128). Nothing when it is no such list.
std::optional<std::vector<std::uint32_t>> GrantedGpuNumbers(const HookEvent& event);

}  // namespace expanse::schedulers::slurm
