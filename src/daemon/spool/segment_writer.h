// The sampler's end of the spool: takes evidence and samples, gathers them into a segment on the
// node, closes it by size or age and leaves it to the shipper. docs/formats/spool-segment.md.
//
// A record is taken once it is in a file on the node: it survives the sampler, not the machine.
// Nothing here waits for the shared file system.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "base/time.h"
#include "collect/collector.h"
#include "daemon/file_io.h"
#include "daemon/spool/abandonable_thread.h"
#include "daemon/spool/part_queue.h"
#include "daemon/spool/shipper.h"
#include "evidence/records.h"
#include "schedulers/observer.h"

namespace expanse::daemon::spool {

struct SegmentWriterOptions {
  std::string queue_directory;  // on the node itself, private to the sampler: below /run
  std::string spool;            // <prefix>/spool, shared; never made here
  std::string host;             // names the directory in the spool
  std::string version;          // of the sampler, for the controller's health
  std::chrono::milliseconds event_age{1000};     // a segment with an event is closed after it
  std::chrono::milliseconds sample_age{10'000};  // at most one segment of samples alone in it
  std::chrono::milliseconds status_age{60'000};  // one without records, as a sign of life
  std::size_t segment_bytes = 4U << 20;          // before compression
  std::uint64_t queue_max_bytes = 64U << 20;
  std::uint64_t spool_max_bytes = 512U << 20;
  bool own_thread = true;  // false: Step ships, for tests
};

// For the sampler's thread alone.
class SegmentWriter final : public schedulers::EvidenceSink {
 public:
  // Makes the queue's directory and takes it for itself. Fails with spool.locked (another sampler
  // has it), spool.host_name, spool.queue_untrusted or os.*. `files` and `clock` live until the
  // process ends, should Stop give up.
  static base::Result<std::unique_ptr<SegmentWriter>> Create(SegmentWriterOptions options,
                                                             FileIo& files, base::Clock& clock);
  ~SegmentWriter() override;

  // Fail with spool.record_too_large (for good), spool.full or os.*.
  base::Status Emit(evidence::Payload payload, base::WallTime observed_at) override;
  schedulers::EmittedAll EmitAll(std::vector<evidence::Payload> payloads,
                                 base::WallTime observed_at) override;
  // For the Sampler: on the node's disk after the next Step. What finds no room is dropped, counted
  // and said.
  base::Status EmitSamples(evidence::SampleBatch batch, base::WallTime observed_at);

  // Writes what was gathered and closes the segment when it is due. To be called every second.
  void Step(const collect::Tick& tick);
  // Goes with the next segment, with a row "spool_writer" of its own.
  void SetStatus(std::vector<evidence::HealthRow> rows);
  // Closes the segment and ships what can be within `deadline`. False: the shipper hangs; the rest
  // is shipped by the next sampler.
  bool Stop(std::chrono::milliseconds deadline);

  // "spool_writer": degraded with spool.hung, the shipper's reason, spool.queue_failed, or for an
  // hour spool.dropped.
  evidence::HealthRow health(const collect::Tick& now) const;

 private:
  struct Open {
    SegmentName name;
    std::string path;
    base::UniqueFd fd;
    SegmentEncoder encoder;
    std::uint64_t size = 0;
    std::size_t unpacked = 0;
    std::optional<base::MonoTime> first_event;
  };

  SegmentWriter(SegmentWriterOptions options, base::UniqueFd lock, std::unique_ptr<PartQueue> queue,
                FileIo& files, base::Clock& clock);
  base::Status OpenSegment();
  base::Status WriteBlock(BlockKind kind, const std::vector<std::string>& records,
                          std::size_t bytes);
  base::Status WriteAt(const std::string& bytes);
  base::Status FlushSamples();
  base::Result<std::string> EncodeRecord(evidence::Payload payload, base::WallTime observed_at);
  void Close();
  void NoteDrops(base::MonoTime now);
  bool IsDue(base::MonoTime now) const;

  const SegmentWriterOptions options_;
  const base::UniqueFd lock_;
  const std::shared_ptr<PartQueue> queue_;
  FileIo& files_;
  base::Clock& clock_;
  const std::shared_ptr<Shipper> shipper_;
  const std::string stream_id_;
  const base::WallTime started_at_;
  std::uint64_t next_sequence_ = 1;
  std::uint64_t next_record_ = 1;
  std::optional<Open> open_;
  std::vector<std::string> samples_;  // encoded, not yet written
  std::size_t samples_bytes_ = 0;
  std::string status_;  // encoded
  base::MonoTime last_close_;
  std::uint64_t lost_batches_ = 0;
  std::uint64_t dropped_ = 0;  // segments, as of the last step
  std::optional<base::MonoTime> dropped_at_;
  std::string last_failure_;
  AbandonableThread thread_;  // last: it ends before what it uses
};

}  // namespace expanse::daemon::spool
