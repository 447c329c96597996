// Captures of real Slurm clusters outside the repository, read in place where they are there.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace expanse::schedulers::slurm {

inline std::string ReferenceTextDirectory() {
  const char* given = std::getenv("EXPANSE_REFERENCE_DIR");
  const std::string root =
      given != nullptr ? given : EXPANSE_SOURCE_DIR "/../../../../shared/reference";
  return root + "/fixtures/slurm-text";
}

// Paths of the captures whose name contains `part`, sorted; none without the directory.
inline std::vector<std::string> ReferenceTexts(std::string_view part) {
  std::vector<std::string> paths;
  const std::string directory = ReferenceTextDirectory();
  if (const auto names = base::ListDirectory(directory)) {
    for (const std::string& name : *names) {
      if (name.find(part) != std::string::npos) paths.push_back(directory + "/" + name);
    }
  }
  return paths;
}

}  // namespace expanse::schedulers::slurm
