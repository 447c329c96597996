#include "schedulers/slurm/node/gpu_grants.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/text.h"

namespace expanse::schedulers::slurm {
namespace {

constexpr std::size_t kMostInformation = 16U << 10;

}  // namespace

GpuInformation ParseGpuInformation(std::string_view text) {
  GpuInformation information;
  for (std::string_view line : base::Split(text, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view name = base::Trim(line.substr(0, colon));
    const std::string_view value = base::Trim(line.substr(colon + 1));
    if (name == "GPU UUID") information.uuid = value;
    if (name == "Device Minor") information.minor = base::ParseInt<std::uint32_t>(value);
  }
  return information;
}

GpuNumbers::GpuNumbers(const std::string& root) {
  const std::string driver = base::JoinPath(root, "proc/driver/nvidia");
  const auto devices = base::ListDirectory(driver + "/gpus");
  if (!devices) return;
  for (const std::string& device : *devices) {
    const auto text =
        base::ReadFile(fmt::format("{}/gpus/{}/information", driver, device), kMostInformation);
    if (!text) continue;
    GpuInformation information = ParseGpuInformation(*text);
    if (!information.minor || information.uuid.empty()) continue;
    // An instance of a divided device has a directory there: gi1, gi2, …
    const auto instances =
        base::ListDirectory(fmt::format("{}/capabilities/gpu{}/mig", driver, *information.minor));
    divided_ = divided_ || (instances && std::ranges::any_of(*instances, [](const auto& name) {
                              return name.starts_with("gi");
                            }));
    uuids_[*information.minor] = std::move(information.uuid);
  }
}

std::vector<std::string> GpuNumbers::UuidsOf(const HookEvent& event) const {
  std::vector<std::string> uuids = GrantedGpuUuids(event);
  if (!uuids.empty() || divided_) return uuids;
  const auto numbers = GrantedGpuNumbers(event);
  if (!numbers) return {};
  for (const std::uint32_t number : *numbers) {
    const auto known = uuids_.find(number);
    if (known == uuids_.end()) return {};
    uuids.push_back(known->second);
  }
  return uuids;
}

}  // namespace expanse::schedulers::slurm
