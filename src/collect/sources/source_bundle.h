// The source of a run: the script and the files that its command line names, and one level of what
// these name. Text only, bounded in number and size, secrets taken out before anything is written.
// Reads with the rights of the calling thread: the user's own (`expanse run`), or those that it has
// taken (collect/files/user_files.h).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collect/files/user_files.h"
#include "evidence/records.h"

namespace expanse::collect {

struct SourceLimits {
  std::size_t files = 32;
  std::size_t file_bytes = 256U << 10;  // a larger file is skipped: "too_large"
  std::size_t total_bytes = 1U << 20;   // of all files; what goes beyond is skipped: "budget"
};

struct SourceRequest {
  std::vector<std::string> command;  // argv
  std::string program;               // what argv[0] was resolved to; empty: unknown
  std::string working_directory;     // relative paths are relative to it
  std::vector<std::string> extra;    // asked for by the user: role "argument", skipped loudly
  SourceLimits limits;
  // The text of the batch script that command[0] was when it was submitted: taken as it is here,
  // and its command lines are searched for files too (script_files.h).
  std::optional<std::string> script = {};
  std::string script_path = {};  // what to call it; empty: "batch_script"
  FileOpener open = {};          // null: OpenRegularFile
};

// Never fails: what could not be taken is in `skipped` with a word for the reason: "not_found",
// "no_permission", "not_regular", "binary", "too_large", "budget", "secret_name", "unreadable",
// "link". Arguments that are no files are not mentioned. `key` is the caller's to set. Blocks on
// the file system only; FIFOs and devices are never opened.
evidence::SourceBundle CollectSources(const SourceRequest& request);

// Paths that a script refers to, as written: the arguments of `source`, `.`, `bash`, `python` and
// "./program" lines, and Python's `import x` / `from x import` as "x.py". Not resolved or checked.
std::vector<std::string> FindReferences(std::string_view script);

}  // namespace expanse::collect
