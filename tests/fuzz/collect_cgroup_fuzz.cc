// The files of cgroups, and the ones that say where cgroups are. The first byte chooses the parser.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "collect/cgroup/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace expanse::collect;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  CgroupUsage usage;
  switch (data[0] % 12) {
    case 0:
      ParseV2CpuStat(text, usage);
      break;
    case 1:
      ParseV2MemoryStat(text, usage);
      break;
    case 2:
      ParseV2MemoryEvents(text, usage);
      break;
    case 3:
      ParseV2IoStat(text, 253, usage);
      break;
    case 4:
      ParseV1CpuStat(text, usage);
      break;
    case 5:
      ParseV1Throttling(text, usage);
      break;
    case 6:
      ParseV1MemoryStat(text, usage);
      break;
    case 7:
      ParseV1Io(text, 253, usage);
      break;
    case 8:
      ParseV1OomKills(text);
      break;
    case 9:
      ParsePressureTotal(text);
      break;
    case 10:
      ParseDeviceMapperMajor(text);
      break;
    case 11: {
      // What is mounted and what a process is in, apart by an empty line.
      const auto gap = text.find("\n\n");
      const auto hierarchy = ParseCgroupMounts(text.substr(0, gap));
      const auto members =
          gap == std::string_view::npos ? std::string_view() : text.substr(gap + 2);
      for (const auto& directory : CgroupDirectories(hierarchy, ParseProcCgroup(members))) {
        if (directory.empty()) std::abort();
      }
      break;
    }
  }
  return 0;
}
