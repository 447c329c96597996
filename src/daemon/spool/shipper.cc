#include "daemon/spool/shipper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>
#include <vector>

namespace expanse::daemon::spool {
namespace {

using namespace std::chrono_literals;

constexpr base::BackoffPolicy kRetry{.first = 500ms, .most = 30s};
constexpr auto kMeasureEvery = 60s;

bool IsOutOfSpace(const base::Error& error) {
  return error.reason == "os.ENOSPC" || error.reason == "os.EDQUOT";
}

struct Shipped {
  SegmentName name;
  std::uint64_t size = 0;
};

// The host's segments in the spool, oldest first, those of samples alone before the others: the
// order in which they may go.
base::Result<std::vector<Shipped>> ListShipped(const std::string& directory) {
  EXPANSE_ASSIGN_OR_RETURN(const auto names, base::ListDirectory(directory));
  std::vector<Shipped> shipped;
  std::vector<Shipped> with_events;
  for (const std::string& file : names) {
    auto name = ParseSegmentName(file);
    struct stat info{};
    if (!name || ::lstat(base::JoinPath(directory, file).c_str(), &info) != 0) continue;
    std::vector<Shipped>& kind = name->events ? with_events : shipped;
    kind.push_back({.name = std::move(*name), .size = static_cast<std::uint64_t>(info.st_size)});
  }
  std::ranges::move(with_events, std::back_inserter(shipped));
  return shipped;
}

}  // namespace

Shipper::Shipper(ShipperOptions options, std::shared_ptr<PartQueue> queue, FileIo& files,
                 base::Clock& clock)
    : options_(std::move(options)),
      directory_(base::JoinPath(options_.spool, options_.host)),
      queue_(std::move(queue)),
      files_(files),
      clock_(clock),
      backoff_(kRetry,
               /*seed=*/static_cast<std::uint64_t>(clock.Mono().time_since_epoch().count())) {}

ShipperFigures Shipper::figures() const {
  std::scoped_lock lock(mutex_);
  return figures_;
}

// A controller that does not run as root owns the spool, and what lies in it has to be its own.
void Shipper::GiveToOwner(int fd) const {
  if (::geteuid() == 0 && owner_ != 0) (void)!::fchown(fd, owner_, group_);
}

base::Status Shipper::PrepareDirectory() {
  struct stat info{};
  if (::stat(options_.spool.c_str(), &info) != 0) {
    return base::Fail(
        base::Code::kUnavailable, "spool.missing",
        fmt::format("{} is not there: is the shared file system mounted?", options_.spool));
  }
  owner_ = info.st_uid;
  group_ = info.st_gid;
  const bool made = ::mkdir(directory_.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return base::FailErrno(errno, "mkdir " + directory_);
  base::UniqueFd fd(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return base::FailErrno(errno, "open " + directory_);
  if (made) GiveToOwner(fd.get());
  if (prepared_) return {};
  // What a writer that died was writing; this host has no other.
  EXPANSE_ASSIGN_OR_RETURN(const auto names, base::ListDirectory(directory_));
  for (const std::string& name : names) {
    if (name.starts_with('.') && name.ends_with(".tmp"))
      EXPANSE_RETURN_IF_ERROR(files_.Remove(base::JoinPath(directory_, name)));
  }
  prepared_ = true;
  return {};
}

// Removes segments until at least `at_least` bytes are gone. Fails with spool.full when there are
// not that many.
base::Status Shipper::DropOldest(std::uint64_t at_least) {
  EXPANSE_ASSIGN_OR_RETURN(const auto shipped, ListShipped(directory_));
  std::uint64_t gone = 0;
  for (const Shipped& one : shipped) {
    if (gone >= at_least) break;
    EXPANSE_RETURN_IF_ERROR(files_.Remove(base::JoinPath(directory_, FormatSegmentName(one.name))));
    gone += one.size;
    std::scoped_lock lock(mutex_);
    ++(one.name.events ? figures_.dropped_events : figures_.dropped_samples);
  }
  bytes_ -= std::min(bytes_, gone);
  if (gone >= at_least) return {};
  return base::Fail(base::Code::kResourceExhausted, "spool.full",
                    fmt::format("no room for a segment in {}", directory_));
}

base::Status Shipper::MakeRoom(std::uint64_t bytes) {
  const base::MonoTime now = clock_.Mono();
  // The controller takes segments away, so what is there is less than what was put there.
  if (!measured_at_ || now - *measured_at_ >= kMeasureEvery ||
      bytes_ + bytes > options_.max_bytes) {
    EXPANSE_ASSIGN_OR_RETURN(const auto shipped, ListShipped(directory_));
    bytes_ = 0;
    for (const Shipped& one : shipped) bytes_ += one.size;
    measured_at_ = now;
  }
  if (bytes_ + bytes <= options_.max_bytes) return {};
  return DropOldest(bytes_ + bytes - options_.max_bytes);
}

base::Status Shipper::Write(const std::string& bytes, const std::string& name) {
  const std::string path = base::JoinPath(directory_, name);
  const std::string temporary = base::JoinPath(directory_, "." + name + ".tmp");
  EXPANSE_RETURN_IF_ERROR(files_.Remove(temporary));
  EXPANSE_ASSIGN_OR_RETURN(base::UniqueFd fd, files_.Create(temporary));
  GiveToOwner(fd.get());
  auto written = files_.Write(fd.get(), bytes, 0);
  if (written) written = files_.Sync(fd.get());
  if (written) written = files_.Rename(temporary, path);
  if (!written) {
    (void)files_.Remove(temporary);
    return written;
  }
  return files_.SyncDirectory(directory_);
}

base::Status Shipper::Ship(const Part& part) {
  // The mount may have gone and come back, or an administrator have tidied up.
  EXPANSE_RETURN_IF_ERROR(PrepareDirectory());
  EXPANSE_ASSIGN_OR_RETURN(std::string bytes, base::ReadFile(part.path, kMaxSegmentFile));
  if (bytes.size() < part.size) {
    return base::Fail(base::Code::kDataLoss, "spool.part_changed",
                      part.path + " is not as it was written");
  }
  bytes.resize(part.size);  // half a block may follow that could not be cut off
  // Now, not when it was closed: the controller compares this with when it sees the file.
  part.encoder.AppendTrailer({.wall = clock_.Now(), .mono = clock_.Mono()}, &bytes);
  EXPANSE_RETURN_IF_ERROR(MakeRoom(bytes.size()));
  const std::string name = FormatSegmentName(part.name);
  auto written = Write(bytes, name);
  // A file system that others filled: our own samples make room.
  if (!written && IsOutOfSpace(written.error()) && DropOldest(bytes.size()))
    written = Write(bytes, name);
  if (written) bytes_ += bytes.size();
  return written;
}

bool Shipper::ShipOne() {
  const auto part = queue_->Take();
  if (!part) return false;
  {
    std::scoped_lock lock(mutex_);
    figures_.inside_since = clock_.Mono();
  }
  const base::Status shipped = Ship(*part);
  // A file that is gone or was changed under us will not get better.
  const bool lost =
      !shipped && (shipped.error().reason == "spool.part_changed" || !base::Exists(part->path));
  if (shipped || lost) {
    queue_->Done(/*dropped_by_spool=*/lost);
  } else {
    queue_->Release();
  }
  std::scoped_lock lock(mutex_);
  figures_.inside_since.reset();
  figures_.reason = shipped ? "" : shipped.error().reason;
  figures_.message = shipped ? "" : shipped.error().message;
  if (shipped) return true;
  ++figures_.failures;
  if (log_.Allow()) base::LogWarn("spool.not_shipped", {{"message", figures_.message}});
  return lost;
}

void Shipper::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    queue_->WaitForPart(stop, 1s);
    if (ShipOne()) {
      backoff_.Reset();
    } else if (!figures().reason.empty()) {
      (void)clock_.WaitFor(stop, backoff_.Next());
    }
  }
  // What was closed at the end goes too, up to the first failure.
  while (ShipOne()) {
  }
}

}  // namespace expanse::daemon::spool
