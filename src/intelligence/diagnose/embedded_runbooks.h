// The files of runbooks/ as they are compiled into the program.
#pragma once

#include <string_view>
#include <vector>

namespace expanse::intelligence::diagnose {

struct EmbeddedFile {
  std::string_view name;
  std::string_view text;
};

// "decoys.yaml" holds decoys, all others runbooks.
const std::vector<EmbeddedFile>& EmbeddedFiles();

}  // namespace expanse::intelligence::diagnose
