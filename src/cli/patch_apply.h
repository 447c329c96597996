// From a patch of the server to the bytes of a user's file. The server knows the file as it was
// sent, secrets taken out (collect/logs/redact.h), and its patch is made against that; here the
// change is made in the redacted text, checked, and the secrets are put back. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace expanse::cli {

// `text` as it is sent to a server.
std::string RedactedForServer(std::string_view text);

// "sha256:" and the digest of the text as it is sent.
std::string SourceHash(std::string_view text);

struct FilePatch {
  std::string_view path;         // of the file: tells what it is
  std::string_view diff;         // unified, against the text as it was sent
  std::string_view source_hash;  // SourceHash() of that text
};

// `original` with the change made. Fails with
//   patch.changed    (failed_precondition) the file is another one by now,
//   patch.secret     (failed_precondition) the change touches a secret,
//   patch.not_resources (failed_precondition) it would change more than requested resources: what
//                    runs, the environment, names,
//   diff.syntax, diff.mismatch as ApplyUnifiedDiff.
base::Result<std::string> PatchOriginal(const FilePatch& patch, std::string_view original);

struct DiffLines {
  std::size_t added = 0;
  std::size_t removed = 0;
};
DiffLines CountLines(std::string_view diff);

}  // namespace expanse::cli
