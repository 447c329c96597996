// Who samples this node: one process at a time, the controller's daemon on its own host, else a
// sampler. The claim is a lock and, for the hooks to read, a marker beside it
// (docs/formats/hook-event.md).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/result.h"
#include "base/time.h"

namespace expanse::schedulers::slurm {

enum class NodeRole { kSampler, kController };

struct NodeMarker {
  pid_t pid = 0;
  std::string version;
  NodeRole role = NodeRole::kSampler;
  bool operator==(const NodeMarker&) const = default;
};
// "1234 0.1.0 sampler\n", and back; nothing for anything else.
std::string FormatMarker(const NodeMarker& marker);
std::optional<NodeMarker> ParseMarker(std::string_view text);

struct NodeClaimOptions {
  std::string run_directory;
  std::string version;
  NodeRole role = NodeRole::kSampler;
  // How long one that is to go may take; its last look and its last segment are in it.
  std::chrono::milliseconds patience{20'000};
  std::string proc = "/proc";
};

// Not thread-safe. Destruction takes the marker away and lets the next one in.
class NodeClaim {
 public:
  // Makes the directories that are missing. One that samples the node already is told to end
  // (SIGTERM) and waited for, if it is a sampler of another version, or if a controller takes over;
  // a controller is never told to go. Fails with node.taken (by one of this version or by a
  // controller), node.stuck (it did not end in time) or os.*.
  static base::Result<NodeClaim> Take(const NodeClaimOptions& options, base::Clock& clock,
                                      std::stop_token stop = {});
  NodeClaim(NodeClaim&&) noexcept = default;
  NodeClaim& operator=(NodeClaim&&) = delete;
  ~NodeClaim();

  // Writes the marker again if it is gone or another's: somebody cleaned up.
  base::Status Renew();

 private:
  NodeClaim(std::string marker_path, NodeMarker marker, base::UniqueFd lock)
      : path_(std::move(marker_path)), marker_(std::move(marker)), lock_(std::move(lock)) {}
  std::string path_;
  NodeMarker marker_;
  base::UniqueFd lock_;
};

}  // namespace expanse::schedulers::slurm
