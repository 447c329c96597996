// The daemon's way out for evidence: two outboxes under one size cap. Lifecycle records
// (executions, log tails, sources) have a stream of their own, so that after an outage they do not
// wait behind gigabytes of samples, and so that samples can be dropped, oldest first, without
// touching them. Samples of an execution may therefore arrive before its record; ids are derived,
// so that is fine.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "daemon/file_io.h"
#include "daemon/outbox.h"
#include "evidence/records.h"
#include "schedulers/observer.h"

namespace expanse::daemon {

struct OutboxesOptions {
  std::string directory;               // holds lifecycle/ and samples/
  std::uint64_t max_bytes = 1U << 30;  // of both together
};

// Thread-safe.
class Outboxes final : public schedulers::EvidenceSink {
 public:
  // Fails like Outbox::Open.
  static base::Result<std::unique_ptr<Outboxes>> Open(const OutboxesOptions& options, FileIo& files,
                                                      base::Clock& clock);

  // Durable once it succeeds. To make room for a lifecycle record samples are dropped; outbox.full
  // when even that is not enough, os.* when the disk refuses: the caller keeps its copy and offers
  // it again.
  base::Status Emit(evidence::Payload payload, base::WallTime observed_at) override;
  // One fdatasync per stream for all of them, however many; memory for one encoded record at a
  // time. Records of both streams may be mixed, each stream keeps its order.
  schedulers::EmittedAll EmitAll(std::vector<evidence::Payload> payloads,
                                 base::WallTime observed_at) override;
  // The same for records with times of their own. Their sequences are not used.
  schedulers::EmittedAll EmitRecords(std::span<evidence::Record> records);
  // Durable after the next Flush. A batch that finds no room is dropped and counted, and says so.
  base::Status EmitSamples(evidence::SampleBatch batch, base::WallTime observed_at);
  // Makes samples and acknowledgements durable; the daemon calls it every second.
  base::Status Flush();

  Outbox& lifecycle() { return *lifecycle_; }
  Outbox& samples() { return *samples_; }
  // Collector "outbox": degraded while writing fails or space is short, with its figures.
  evidence::HealthRow health(base::WallTime now) const;

 private:
  Outboxes(const OutboxesOptions& options, std::unique_ptr<Outbox> lifecycle,
           std::unique_ptr<Outbox> samples, base::Clock& clock);
  base::Status MakeRoom(std::uint64_t bytes, StreamClass for_class);
  struct Ticket {
    bool samples = false;
    std::uint64_t number = 0;
  };
  base::Result<Ticket> Append(evidence::Record& record);
  base::Status Sync(const Ticket& ticket);
  base::Result<std::uint64_t> AppendLifecycle(std::string_view bytes);
  base::Result<std::uint64_t> AppendSamples(std::string_view bytes);

  const std::uint64_t max_bytes_;
  const std::unique_ptr<Outbox> lifecycle_;
  const std::unique_ptr<Outbox> samples_;
  base::Clock& clock_;
  std::atomic<std::int64_t> last_drop_ns_{0};  // Mono of the last drop; 0: none
  mutable base::RateLimit drop_log_{std::chrono::seconds(60)};
};

}  // namespace expanse::daemon
