// What scontrol prints holds text of users and administrators. The first byte chooses the parser.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "schedulers/slurm/commands/scontrol_cluster.h"
#include "schedulers/slurm/commands/scontrol_config.h"

using namespace expanse::schedulers::slurm;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    // One text as both, so that names meet.
    auto partitions = ParseScontrolPartitions(text);
    const auto nodes = ParseScontrolNodes(text);
    for (const auto& node : nodes) {
      if (node.name.empty()) std::abort();
    }
    AddUpNodes(nodes, &partitions);
  } else {
    const auto config = ParseSlurmConfig(text);
    if (config && config->cluster.empty()) std::abort();
  }
  return 0;
}
