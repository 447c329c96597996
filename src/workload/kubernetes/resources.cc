#include "workload/kubernetes/resources.h"

#include <algorithm>
#include <array>

namespace expanse::workload::kubernetes {
namespace {

constexpr double kMiB = 1024.0 * 1024;
constexpr double kGiB = 1024.0 * kMiB;

struct Known {
  std::string_view name;
  Resource resource;
};

constexpr std::array kExact = {
    Known{"cpu", {.quantity = Quantity::kCpu}},
    Known{"memory", {.quantity = Quantity::kMemory}},
    Known{"ephemeral-storage", {.quantity = Quantity::kDisk}},
    // Memory of a shared device: HAMi and Volcano count MiB, Alibaba's scheduler GiB.
    Known{"nvidia.com/gpumem", {Quantity::kGpuMemory, kMiB, "MiB"}},
    Known{"volcano.sh/vgpu-memory", {Quantity::kGpuMemory, kMiB, "MiB"}},
    Known{"aliyun.com/gpu-mem", {Quantity::kGpuMemory, kGiB, "GiB"}},
    Known{"gpu", {.quantity = Quantity::kGpu}},  // of NVIDIA Dynamo's services
    Known{"nvidia.com/gpu", {.quantity = Quantity::kGpu}},
    Known{"nvidia.com/gpu.shared", {.quantity = Quantity::kGpu}},
    Known{"nvidia.com/pgpu", {.quantity = Quantity::kGpu}},
    Known{"amd.com/gpu", {.quantity = Quantity::kGpu}},
    Known{"gpu.intel.com/i915", {.quantity = Quantity::kGpu}},
    Known{"gpu.intel.com/xe", {.quantity = Quantity::kGpu}},
    Known{"habana.ai/gaudi", {.quantity = Quantity::kGpu}},
    Known{"google.com/tpu", {.quantity = Quantity::kGpu}},
    Known{"aws.amazon.com/neuron", {.quantity = Quantity::kGpu}},
    Known{"aws.amazon.com/neuroncore", {.quantity = Quantity::kGpu}},
    Known{"aws.amazon.com/neurondevice", {.quantity = Quantity::kGpu}},
    Known{"volcano.sh/vgpu-number", {.quantity = Quantity::kGpu}},
    Known{"aliyun.com/gpu", {.quantity = Quantity::kGpu}},
    Known{"aliyun.com/gpu-count", {.quantity = Quantity::kGpu}},
    Known{"cambricon.com/mlu", {.quantity = Quantity::kGpu}},
    Known{"cambricon.com/vmlu", {.quantity = Quantity::kGpu}},
    Known{"hygon.com/dcu", {.quantity = Quantity::kGpu}},
    Known{"hygon.com/dcunum", {.quantity = Quantity::kGpu}},
    Known{"iluvatar.ai/vgpu", {.quantity = Quantity::kGpu}},
    Known{"iluvatar.ai/gpu", {.quantity = Quantity::kGpu}},
    Known{"metax-tech.com/gpu", {.quantity = Quantity::kGpu}},
    Known{"mthreads.com/vgpu", {.quantity = Quantity::kGpu}},
    Known{"mthreads.com/gpu", {.quantity = Quantity::kGpu}},
    Known{"kunlunxin.com/xpu", {.quantity = Quantity::kGpu}},
    Known{"enflame.com/gcu", {.quantity = Quantity::kGpu}},
    Known{"vastaitech.com/va", {.quantity = Quantity::kGpu}},
    Known{"rebellions.ai/ATOM", {.quantity = Quantity::kGpu}},
    Known{"furiosa.ai/npu", {.quantity = Quantity::kGpu}},
};

constexpr std::array<std::string_view, 5> kDevicePrefixes = {
    "nvidia.com/mig-", "cloud-tpus.google.com/", "huawei.com/Ascend",
    "amd.com/cpx_",    "amd.com/spx_",
};

// "nvidia.com/gpu-10gb": a slice by its memory.
bool IsMemorySlice(std::string_view name) {
  constexpr std::string_view kPrefix = "nvidia.com/gpu-";
  return name.starts_with(kPrefix) && name.ends_with("gb");
}

}  // namespace

std::optional<Resource> FindResource(std::string_view name) {
  const auto known = std::find_if(kExact.begin(), kExact.end(),
                                  [&](const Known& each) { return each.name == name; });
  if (known != kExact.end()) return known->resource;
  const bool device =
      IsMemorySlice(name) || name.ends_with("/gpu") ||
      std::any_of(kDevicePrefixes.begin(), kDevicePrefixes.end(),
                  [&](std::string_view prefix) { return name.starts_with(prefix); });
  // "huawei.com/Ascend910-memory" counts MiB of a device.
  if (name.starts_with("huawei.com/Ascend") && name.ends_with("-memory"))
    return Resource{Quantity::kGpuMemory, kMiB, "MiB"};
  if (device) return Resource{.quantity = Quantity::kGpu};
  return std::nullopt;
}

}  // namespace expanse::workload::kubernetes
