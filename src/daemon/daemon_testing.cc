#include "daemon/daemon_testing.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace expanse::daemon {

void FaultyFileIo::FailAt(std::uint64_t at, std::uint64_t count, int error) {
  std::scoped_lock lock(mutex_);
  fail_from_ = at;
  fail_to_ = at + count;
  error_ = error;
}

void FaultyFileIo::OnlyKind(std::string kind) {
  std::scoped_lock lock(mutex_);
  kind_ = std::move(kind);
}

void FaultyFileIo::DieAt(std::uint64_t at, Death how) {
  std::scoped_lock lock(mutex_);
  die_at_ = at;
  death_ = how;
}

std::uint64_t FaultyFileIo::operations() const {
  std::scoped_lock lock(mutex_);
  return operations_;
}

void FaultyFileIo::Die() {
  if (death_ == Death::kPowerCut) {
    for (const auto& [path, tracked] : files_) {
      struct stat info{};
      if (::stat(path.c_str(), &info) != 0) continue;
      if (!tracked.named) {
        ::unlink(path.c_str());
      } else if (info.st_size > tracked.synced) {
        // Some of what was not synced may have reached the disk all the same.
        (void)::truncate(path.c_str(), tracked.synced + (info.st_size - tracked.synced) / 3);
      }
    }
  }
  ::_exit(7);
}

int FaultyFileIo::Enter(const char* kind, bool* dying) {
  ++operations_;
  if (operations_ == die_at_) {
    if (dying == nullptr) Die();
    *dying = true;
    return 0;
  }
  const bool spoiled =
      operations_ >= fail_from_ && operations_ < fail_to_ && (kind_.empty() || kind_ == kind);
  return spoiled ? error_ : 0;
}

base::Result<base::UniqueFd> FaultyFileIo::Create(const std::string& path) {
  std::scoped_lock lock(mutex_);
  if (const int error = Enter("create")) return base::FailErrno(error, "create " + path);
  auto fd = real_.Create(path);
  if (fd) {
    open_[fd->get()] = path;
    files_[path] = {};
  }
  return fd;
}

base::Status FaultyFileIo::Write(int fd, std::string_view data, std::int64_t offset) {
  std::scoped_lock lock(mutex_);
  bool dying = false;
  const int error = Enter("write", &dying);
  if (dying || error != 0) {
    (void)real_.Write(fd, data.substr(0, data.size() / 2), offset);
    if (dying) Die();
    return base::FailErrno(error, "write");
  }
  return real_.Write(fd, data, offset);
}

base::Status FaultyFileIo::Sync(int fd) {
  std::scoped_lock lock(mutex_);
  if (const int error = Enter("sync")) return base::FailErrno(error, "fdatasync");
  struct stat info{};
  if (::fstat(fd, &info) == 0 && open_.contains(fd)) files_[open_[fd]].synced = info.st_size;
  return {};  // the real one would only make the tests slow: no power is cut
}

base::Status FaultyFileIo::Truncate(const std::string& path, std::int64_t size) {
  std::scoped_lock lock(mutex_);
  if (const int error = Enter("truncate")) return base::FailErrno(error, "truncate");
  if (const auto found = files_.find(path); found != files_.end()) {
    found->second.synced = std::min(found->second.synced, size);
  }
  return real_.Truncate(path, size);
}

base::Status FaultyFileIo::Rename(const std::string& from, const std::string& to) {
  std::scoped_lock lock(mutex_);
  if (const int error = Enter("rename")) return base::FailErrno(error, "rename");
  auto renamed = real_.Rename(from, to);
  if (auto node = files_.extract(from); renamed && !node.empty()) {
    node.mapped().named = true;  // after a crash either the old or the new file is there, whole
    files_.erase(to);
    node.key() = to;
    files_.insert(std::move(node));
  }
  return renamed;
}

base::Status FaultyFileIo::Remove(const std::string& path) {
  std::scoped_lock lock(mutex_);
  if (const int error = Enter("remove")) return base::FailErrno(error, "remove");
  files_.erase(path);
  return real_.Remove(path);
}

base::Status FaultyFileIo::SyncDirectory(const std::string& path) {
  std::scoped_lock lock(mutex_);
  if (const int error = Enter("sync_directory")) return base::FailErrno(error, "fsync " + path);
  for (auto& [name, tracked] : files_) {
    if (name.starts_with(path + "/")) tracked.named = true;
  }
  return {};
}

void FakePlanes::set_ingest_fault(
    When when, std::function<base::Status(const data::v1::IngestRequest&)> fault) {
  std::scoped_lock lock(mutex_);
  (when == When::kBefore ? before_ : after_) = std::move(fault);
}
void FakePlanes::set_mint_fault(std::function<base::Status()> fault) {
  std::scoped_lock lock(mutex_);
  mint_fault_ = std::move(fault);
}
void FakePlanes::set_reject(std::function<std::string(const data::v1::EvidenceRecord&)> reject) {
  std::scoped_lock lock(mutex_);
  reject_ = std::move(reject);
}
void FakePlanes::set_down(bool down) {
  std::scoped_lock lock(mutex_);
  down_ = down;
}
void FakePlanes::RevokeTokens() {
  std::scoped_lock lock(mutex_);
  tokens_.clear();
}
void FakePlanes::SetWatermark(const std::string& stream_id, std::uint64_t watermark) {
  std::scoped_lock lock(mutex_);
  watermarks_[stream_id] = watermark;
}
std::vector<FakePlanes::Applied> FakePlanes::applied() const {
  std::scoped_lock lock(mutex_);
  return applied_;
}
std::vector<std::string> FakePlanes::applied_names() const {
  std::scoped_lock lock(mutex_);
  std::vector<std::string> names;
  for (const Applied& one : applied_) {
    if (one.record.has_execution()) names.push_back(one.record.execution().execution().name());
  }
  return names;
}
std::vector<std::pair<std::size_t, std::size_t>> FakePlanes::batches() const {
  std::scoped_lock lock(mutex_);
  return batches_;
}
int FakePlanes::mints() const {
  std::scoped_lock lock(mutex_);
  return mints_;
}
int FakePlanes::heartbeats() const {
  std::scoped_lock lock(mutex_);
  return heartbeats_;
}
std::vector<data::v1::ReportHealthRequest> FakePlanes::reports() const {
  std::scoped_lock lock(mutex_);
  return reports_;
}

std::vector<data::v1::ReportClusterStateRequest> FakePlanes::cluster_states() const {
  std::scoped_lock lock(mutex_);
  return cluster_states_;
}
void FakePlanes::set_cluster_interval(std::chrono::seconds interval) {
  std::scoped_lock lock(mutex_);
  cluster_interval_ = interval;
}
void FakePlanes::set_cluster_fault(std::function<base::Status()> fault) {
  std::scoped_lock lock(mutex_);
  cluster_fault_ = std::move(fault);
}

base::Status FakePlanes::Check(const std::string& token) const {
  if (down_)
    return base::Fail(base::Code::kUnavailable, "client.unreachable", "connection refused");
  if (!tokens_.contains(token))
    return base::Fail(base::Code::kUnauthenticated, "token.expired", "token expired");
  return {};
}

base::Result<control::v1::MintComputeTokenResponse> FakePlanes::MintComputeToken(
    const control::v1::MintComputeTokenRequest& request, std::chrono::milliseconds) {
  std::scoped_lock lock(mutex_);
  if (down_)
    return base::Fail(base::Code::kUnavailable, "client.unreachable", "connection refused");
  ++mints_;
  if (mint_fault_) EXPANSE_RETURN_IF_ERROR(mint_fault_());
  control::v1::MintComputeTokenResponse response;
  const std::string token = fmt::format("{}-token-{}", request.compute_id(), mints_);
  tokens_.insert(token);
  response.mutable_access()->set_token(token);
  response.mutable_access()->mutable_expires_at()->set_seconds(
      base::ToMicros(clock_.Now()) / 1'000'000 + 600);
  return response;
}

base::Result<control::v1::HeartbeatResponse> FakePlanes::Heartbeat(
    const std::string& token, const control::v1::HeartbeatRequest&, std::chrono::milliseconds) {
  std::scoped_lock lock(mutex_);
  EXPANSE_RETURN_IF_ERROR(Check(token));
  ++heartbeats_;
  control::v1::HeartbeatResponse response;
  response.mutable_interval()->set_seconds(20);
  return response;
}

base::Result<data::v1::IngestResponse> FakePlanes::Ingest(const std::string& token,
                                                          const data::v1::IngestRequest& request,
                                                          std::chrono::milliseconds) {
  std::scoped_lock lock(mutex_);
  EXPANSE_RETURN_IF_ERROR(Check(token));
  if (before_) EXPANSE_RETURN_IF_ERROR(before_(request));
  batches_.emplace_back(request.records_size(), request.ByteSizeLong());
  std::uint64_t& watermark = watermarks_[request.stream_id()];
  data::v1::IngestResponse response;
  for (const auto& record : request.records()) {
    if (record.sequence() <= watermark) continue;
    watermark = record.sequence();
    if (const std::string reason = reject_ ? reject_(record) : ""; !reason.empty()) {
      auto* rejected = response.add_rejected();
      rejected->set_sequence(record.sequence());
      rejected->set_reason(reason);
      continue;
    }
    applied_.push_back({request.stream_id(), record.sequence(), record});
  }
  if (after_) EXPANSE_RETURN_IF_ERROR(after_(request));
  response.set_watermark(watermark);
  return response;
}

base::Result<data::v1::ReportHealthResponse> FakePlanes::ReportHealth(
    const std::string& token, const data::v1::ReportHealthRequest& request,
    std::chrono::milliseconds) {
  std::scoped_lock lock(mutex_);
  EXPANSE_RETURN_IF_ERROR(Check(token));
  reports_.push_back(request);
  data::v1::ReportHealthResponse response;
  response.mutable_interval()->set_seconds(15);
  return response;
}

base::Result<data::v1::ReportClusterStateResponse> FakePlanes::ReportClusterState(
    const std::string& token, const data::v1::ReportClusterStateRequest& request,
    std::chrono::milliseconds) {
  std::scoped_lock lock(mutex_);
  EXPANSE_RETURN_IF_ERROR(Check(token));
  if (cluster_fault_) EXPANSE_RETURN_IF_ERROR(cluster_fault_());
  cluster_states_.push_back(request);
  data::v1::ReportClusterStateResponse response;
  response.mutable_interval()->set_seconds(cluster_interval_.count());
  return response;
}

evidence::Payload ExecutionNamed(const std::string& name) {
  evidence::ExecutionObservation seen;
  seen.key = {evidence::SourceType::kHost, name};
  seen.execution.name = name;
  return seen;
}

evidence::SampleBatch SamplesOf(const std::string& identity, std::size_t points,
                                base::WallTime from) {
  evidence::SampleBatch batch;
  if (!identity.empty()) batch.key = evidence::ExecutionKey{evidence::SourceType::kHost, identity};
  evidence::SeriesColumn column{.metric = "cpu", .source = "cgroup", .node = "n1", .unit = "cores"};
  for (std::size_t i = 0; i < points; ++i) {
    batch.times.push_back(from + std::chrono::seconds(i));
    column.values.push_back(double(i));
  }
  batch.columns.push_back(std::move(column));
  return batch;
}

}  // namespace expanse::daemon
