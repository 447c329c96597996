// The Slurm observer's state file: read from a disk that may hold anything. The checksum is put
// behind the input, so that what it guards is reached.
#include <cstdint>
#include <string>

#include "base/crypto.h"
#include "schedulers/slurm/job_table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using expanse::schedulers::slurm::JobTable;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  const std::uint32_t crc = expanse::base::Crc32c(bytes);
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(crc >> shift);
  JobTable table(JobTable::ClusterOf(bytes));
  if (!table.Decode(bytes)) {
    if (!table.runs().empty()) __builtin_trap();
    return 0;
  }
  // What was read is written alike.
  JobTable again(table.cluster());
  if (!again.Decode(table.Encode()) || again.runs().size() != table.runs().size()) __builtin_trap();
  return 0;
}
