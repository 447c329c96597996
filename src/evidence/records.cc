#include "evidence/records.h"

#include <algorithm>

#include "base/crypto.h"

namespace expanse::evidence {

std::string BundleHash(const SourceBundle& bundle) {
  std::vector<std::string> lines;
  for (const SourceFile& file : bundle.files)
    lines.push_back(file.path + '\0' + file.content_hash + '\n');
  std::sort(lines.begin(), lines.end());
  std::string all;
  for (const std::string& line : lines) all += line;
  return "sha256:" + base::Sha256Hex(all);
}

}  // namespace expanse::evidence
