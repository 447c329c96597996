// What `expanse analyse` asks about: a file as the user named it and the files that it names, taken
// as capture takes them (collect/sources), so that what is asked about is recognised among what
// ran. Secrets are taken out before anything is sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "workload/submission.h"

namespace expanse::cli {

struct SentFile {
  std::string path;  // as the user named it; relative to where the user is, if it is below
  std::string data;
  std::string role;  // "script", "argument", "import"
};

struct AnalyseTarget {
  SentFile file;
  std::vector<SentFile> files;
  workload::Format format = workload::Format::kSource;
};

// All of standard input, at most so many bytes.
using InputReader = std::function<base::Result<std::string>(std::size_t limit)>;

// `path` "-" is standard input. Relative names in the file are relative to the working directory,
// as they are for sbatch, or to the directory that the script says it runs in. What is no workload
// is refused here, so that nothing of it is sent: invalid_argument with target.<word> (the message
// says why and where); files.not_found, …. Blocks on the file system.
base::Result<AnalyseTarget> ReadTarget(const std::string& path, const InputReader& input);

}  // namespace expanse::cli
