// Job scripts are anything their users type. What is found in them is bounded, is named once, and
// could be a file's name.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "collect/sources/script_files.h"
#include "collect/sources/source_bundle.h"

using namespace expanse::collect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view script(reinterpret_cast<const char*>(data), size);
  const auto files = FindScriptFiles(script, "/scratch/run");
  if (files.size() > kMaxScriptFiles) std::abort();
  std::set<std::string> names;
  for (const ScriptFile& file : files) {
    if (file.path.empty() || file.path.find('\0') != std::string::npos) std::abort();
    if (file.path.size() > 4096 || !names.insert(file.path).second) std::abort();
  }
  // A comment in front of a script changes nothing.
  if (FindScriptFiles("# python x.py\n" + std::string(script), "/scratch/run") != files)
    std::abort();
  for (const std::string& name : FindReferences(script))
    if (name.empty() || name.size() > 2048) std::abort();
  return 0;
}
