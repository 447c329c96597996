// The files of /proc: of the machine and of one process. The first byte chooses the parser.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "collect/host/parse.h"
#include "collect/process/parse.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace expanse::collect;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 8) {
    case 0:
      ParseStat(text);
      break;
    case 1:
      ParseMeminfo(text);
      break;
    case 2:
      ParseLoadavg(text);
      break;
    case 3:
      ParseDiskstats(text);
      break;
    case 4:
      for (const auto& one : ParseNetDev(text)) IsPhysicalInterface(one.name);
      break;
    case 5:
      if (const auto stat = ParseProcStat(text); stat && (stat->pid <= 0 || stat->parent < 0))
        std::abort();
      break;
    case 6:
      ParseProcStatus(text);
      break;
    case 7:
      ParseProportionalNeed(text);
      break;
  }
  return 0;
}
