// Which GPUs of this host a hook's event means, by UUID.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedulers/slurm/node/hook_event.h"

namespace expanse::schedulers::slurm {

// The numbers of NVIDIA's device files, which is what Slurm counts GPUs by (gres.conf, File=). They
// are neither nvidia-smi's index nor what a job sees. Source: /proc/driver/nvidia of the driver.
class GpuNumbers {
 public:
  // `root` is "/" or a copy of a host's tree. Reads a few small files; none without the driver.
  explicit GpuNumbers(const std::string& root);

  // UUIDs where the event names them, else those of its numbers. Empty, for unknown, where one
  // number is of no device here, and wherever a device of the host is divided (MIG): what Slurm
  // counts then is not defined.
  std::vector<std::string> UuidsOf(const HookEvent& event) const;

 private:
  std::map<std::uint32_t, std::string> uuids_;  // by minor number
  bool divided_ = false;
};

// "GPU UUID" and "Device Minor" of /proc/driver/nvidia/gpus/*/information; absent: "" and nothing.
struct GpuInformation {
  std::string uuid;
  std::optional<std::uint32_t> minor;
};
GpuInformation ParseGpuInformation(std::string_view text);

}  // namespace expanse::schedulers::slurm
