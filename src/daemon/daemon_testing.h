// Fakes for tests of the daemon and of what builds on it: a disk that fails on command, planes that
// live in memory, and records to send.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "daemon/file_io.h"
#include "daemon/planes.h"
#include "evidence/records.h"

namespace expanse::daemon {

// Passes on to the real file system, but for the operations that the plan spoils. Operations are
// numbered from 1. Thread-safe.
class FaultyFileIo final : public FileIo {
 public:
  enum class Death : std::uint8_t { kKill, kPowerCut };

  // Operation `at` and the `count` - 1 after it fail with `error`; writes leave half of their
  // bytes.
  void FailAt(std::uint64_t at, std::uint64_t count, int error);
  // Only operations of this kind ("write", "sync", "create", "remove", …) count as spoiled; "":
  // all.
  void OnlyKind(std::string kind);
  // The process ends in operation `at`: a write leaves half of its bytes. With kPowerCut what was
  // not synced is lost first.
  void DieAt(std::uint64_t at, Death how);
  std::uint64_t operations() const;

  base::Result<base::UniqueFd> Create(const std::string& path) override;
  base::Status Write(int fd, std::string_view data, std::int64_t offset) override;
  base::Status Sync(int fd) override;
  base::Status Truncate(const std::string& path, std::int64_t size) override;
  base::Status Rename(const std::string& from, const std::string& to) override;
  base::Status Remove(const std::string& path) override;
  base::Status SyncDirectory(const std::string& path) override;

 private:
  // 0: go on; else the errno to fail with. Does not return from the operation of death, but for a
  // write, which comes back with `dying` set.
  int Enter(const char* kind, bool* dying = nullptr);
  [[noreturn]] void Die();

  struct Tracked {
    std::int64_t synced = 0;
    bool named = false;  // its directory was synced since it was made
  };
  mutable std::mutex mutex_;  // guards all below
  SystemFileIo real_;
  std::uint64_t operations_ = 0;
  std::uint64_t fail_from_ = 0;
  std::uint64_t fail_to_ = 0;
  int error_ = 0;
  std::string kind_;
  std::uint64_t die_at_ = 0;
  Death death_ = Death::kKill;
  std::map<int, std::string> open_;
  std::map<std::string, Tracked> files_;
};

// Both planes in memory. The data plane keeps a watermark per stream and applies each sequence
// once, as the real one does. Thread-safe.
class FakePlanes final : public Planes {
 public:
  explicit FakePlanes(base::Clock& clock) : clock_(clock) {}

  struct Applied {
    std::string stream_id;
    std::uint64_t sequence = 0;
    data::v1::EvidenceRecord record;
  };

  // Called before an Ingest is applied (kBefore) or after (kAfter); an error is what the caller
  // gets.
  enum class When : std::uint8_t { kBefore, kAfter };
  void set_ingest_fault(When when,
                        std::function<base::Status(const data::v1::IngestRequest&)> fault);
  void set_mint_fault(std::function<base::Status()> fault);
  // Records for which this gives a reason are rejected for good.
  void set_reject(std::function<std::string(const data::v1::EvidenceRecord&)> reject);
  void set_down(bool down);  // everything is unreachable
  void RevokeTokens();       // tokens given out so far stop working
  void SetWatermark(const std::string& stream_id, std::uint64_t watermark);

  std::vector<Applied> applied() const;
  // Names of executions in the order in which they were applied.
  std::vector<std::string> applied_names() const;
  std::vector<std::pair<std::size_t, std::size_t>> batches()
      const;  // records and bytes of each request
  int mints() const;
  int heartbeats() const;
  std::vector<data::v1::ReportHealthRequest> reports() const;
  std::vector<data::v1::ReportClusterStateRequest> cluster_states() const;
  void set_cluster_interval(std::chrono::seconds interval);
  // Called instead of taking a cluster's state; an error is what the caller gets.
  void set_cluster_fault(std::function<base::Status()> fault);

  base::Result<control::v1::MintComputeTokenResponse> MintComputeToken(
      const control::v1::MintComputeTokenRequest& request,
      std::chrono::milliseconds timeout) override;
  base::Result<control::v1::HeartbeatResponse> Heartbeat(
      const std::string& token, const control::v1::HeartbeatRequest& request,
      std::chrono::milliseconds timeout) override;
  base::Result<data::v1::IngestResponse> Ingest(const std::string& token,
                                                const data::v1::IngestRequest& request,
                                                std::chrono::milliseconds timeout) override;
  base::Result<data::v1::ReportHealthResponse> ReportHealth(
      const std::string& token, const data::v1::ReportHealthRequest& request,
      std::chrono::milliseconds timeout) override;
  base::Result<data::v1::ReportClusterStateResponse> ReportClusterState(
      const std::string& token, const data::v1::ReportClusterStateRequest& request,
      std::chrono::milliseconds timeout) override;

 private:
  base::Status Check(const std::string& token) const;

  base::Clock& clock_;
  mutable std::mutex mutex_;  // guards all below
  bool down_ = false;
  int mints_ = 0;
  int heartbeats_ = 0;
  std::set<std::string> tokens_;
  std::function<base::Status(const data::v1::IngestRequest&)> before_;
  std::function<base::Status(const data::v1::IngestRequest&)> after_;
  std::function<base::Status()> mint_fault_;
  std::function<std::string(const data::v1::EvidenceRecord&)> reject_;
  std::map<std::string, std::uint64_t> watermarks_;
  std::vector<Applied> applied_;
  std::vector<std::pair<std::size_t, std::size_t>> batches_;
  std::vector<data::v1::ReportHealthRequest> reports_;
  std::vector<data::v1::ReportClusterStateRequest> cluster_states_;
  std::chrono::seconds cluster_interval_{30};
  std::function<base::Status()> cluster_fault_;
};

// A record of an execution called `name`.
evidence::Payload ExecutionNamed(const std::string& name);
// A batch of one series with `points` points.
evidence::SampleBatch SamplesOf(const std::string& identity, std::size_t points,
                                base::WallTime from);

}  // namespace expanse::daemon
