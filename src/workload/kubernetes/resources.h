// Which resource names of containers stand for what.
// https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/ and the device
// plugins' own pages.
#pragma once

#include <optional>
#include <string_view>

#include "workload/submission.h"

namespace expanse::workload::kubernetes {

struct Resource {
  Quantity quantity = Quantity::kCpu;
  double factor = 1;           // of the written number, to the quantity's unit
  std::string_view unit = {};  // that the factor stands for, where the quantity has no suffix
};

// "cpu", "memory", "ephemeral-storage", devices ("nvidia.com/gpu", "nvidia.com/mig-1g.10gb",
// "amd.com/gpu", "google.com/tpu", …) and device memory of GPU sharing ("nvidia.com/gpumem"), or
// nothing for others (hugepages, shares of a device, RDMA ports).
std::optional<Resource> FindResource(std::string_view name);

}  // namespace expanse::workload::kubernetes
