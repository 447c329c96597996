#include "schedulers/slurm/node/node_claim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/log.h"
#include "base/text.h"
#include "schedulers/slurm/node/hook_script.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kProgram = "expanse-daemon";
constexpr auto kLookEvery = 100ms;

std::string_view NameOf(NodeRole role) {
  return role == NodeRole::kSampler ? "sampler" : "controller";
}

std::optional<NodeMarker> ReadMarker(const std::string& path) {
  const auto text = base::ReadFile(path, 256);
  return text ? ParseMarker(*text) : std::nullopt;
}

// The pid of a marker that was left behind may be somebody else's by now.
bool IsOurs(const std::string& proc, pid_t pid) {
  const auto comm = base::ReadFile(fmt::format("{}/{}/comm", proc, pid), 64);
  return comm && base::Trim(*comm) == kProgram;
}

bool MayReplace(const NodeMarker& present, const NodeClaimOptions& options) {
  if (present.role == NodeRole::kController) return false;
  return options.role == NodeRole::kController || present.version != options.version;
}

// The tasks of all users look into it, whatever our umask is.
void MakeForAll(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0) ::chmod(path.c_str(), 0755);
}

base::Status MakeRunDirectories(const std::string& run_directory) {
  const std::string above = run_directory.substr(0, run_directory.rfind('/'));
  if (!above.empty()) EXPANSE_RETURN_IF_ERROR(base::MakeDirectories(above, 0755));
  MakeForAll(run_directory);
  // Where only root may make it, a hook does.
  MakeForAll(base::JoinPath(run_directory, kAgentDirectory));
  const std::string hooks = base::JoinPath(run_directory, kHookDirectory);
  if (::mkdir(hooks.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return base::FailErrno(errno, "mkdir " + hooks);
}

}  // namespace

std::string FormatMarker(const NodeMarker& marker) {
  return fmt::format("{} {} {}\n", marker.pid, marker.version, NameOf(marker.role));
}

std::optional<NodeMarker> ParseMarker(std::string_view text) {
  const auto words = base::SplitSpaces(text);
  if (words.size() != 3) return std::nullopt;
  const auto pid = base::ParseInt<pid_t>(words[0]);
  if (!pid || *pid <= 1) return std::nullopt;
  for (const NodeRole role : {NodeRole::kSampler, NodeRole::kController}) {
    if (words[2] != NameOf(role)) continue;
    return NodeMarker{.pid = *pid, .version = std::string(words[1]), .role = role};
  }
  return std::nullopt;
}

base::Result<NodeClaim> NodeClaim::Take(const NodeClaimOptions& options, base::Clock& clock,
                                        std::stop_token stop) {
  EXPANSE_RETURN_IF_ERROR(MakeRunDirectories(options.run_directory));
  const std::string directory = base::JoinPath(options.run_directory, kHookDirectory);
  const std::string path = base::JoinPath(directory, kSamplerMarker);
  const std::string lock_path = path + ".lock";
  base::UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) return base::FailErrno(errno, "open " + lock_path);
  const base::MonoTime until = clock.Mono() + options.patience;
  pid_t told = 0;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return base::FailErrno(errno, "lock " + lock_path);
    const auto present = ReadMarker(path);
    // Without a marker it has only just begun, or is about to end.
    if (present && !MayReplace(*present, options)) {
      return base::Fail(base::Code::kAlreadyExists, "node.taken",
                        fmt::format("process {} samples this node already ({}, version {})",
                                    present->pid, NameOf(present->role), present->version));
    }
    if (present && present->pid != told && IsOurs(options.proc, present->pid)) {
      told = present->pid;
      base::LogInfo("node.replacing", {{"pid", told}, {"version", present->version}});
      ::kill(told, SIGTERM);
      ::kill(told, SIGCONT);  // one that is stopped hears nothing
    }
    if (clock.Mono() >= until || !clock.WaitFor(stop, kLookEvery)) {
      return base::Fail(base::Code::kDeadlineExceeded, "node.stuck",
                        "another process samples this node and does not end");
    }
  }
  NodeClaim claim(path, {.pid = ::getpid(), .version = options.version, .role = options.role},
                  std::move(lock));
  EXPANSE_RETURN_IF_ERROR(claim.Renew());
  return claim;
}

base::Status NodeClaim::Renew() {
  if (ReadMarker(path_) == marker_) return {};
  return base::WriteFileAtomically(path_, FormatMarker(marker_), 0644);
}

NodeClaim::~NodeClaim() {
  if (lock_.valid() && ReadMarker(path_) == marker_) ::unlink(path_.c_str());
}

}  // namespace expanse::schedulers::slurm
