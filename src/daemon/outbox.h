// One stream of evidence on disk, between the collectors and the uploader: numbered records in
// append-only segment files (docs/formats/outbox.md). What Sync confirmed survives a power cut; a
// sequence is never used twice; nothing is deleted before it is acknowledged, except by DropOldest.
//
// Thread-safe: any number of appenders, one reader (ReadBatch, Acknowledge, SetAside). Memory is
// bounded by the largest batch asked for, not by what lies on disk. All calls but the counters do
// file I/O and may block for as long as the disk does.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "base/time.h"
#include "daemon/file_io.h"
#include "daemon/outbox_format.h"

namespace expanse::daemon {

struct OutboxOptions {
  StreamClass stream_class = StreamClass::kLifecycle;
  std::string directory;
  std::uint64_t segment_bytes = 8U << 20;  // a segment that reached it is closed
  std::size_t quarantine_files = 8;        // damaged segments kept for people to look at
  std::size_t refused_files = 64;          // likewise records that the data plane refused
};

// Records of one stream, ready to be sent.
struct OutboxBatch {
  std::string stream_id;
  std::vector<Frame> frames;  // ascending sequences
  std::uint64_t segment = 0;  // for Acknowledge
  std::uint64_t read_to = 0;
  std::uint64_t damaged = 0;  // stretches stepped over in front of or between the frames
  bool empty() const { return frames.empty(); }
};

struct OutboxFigures {
  std::uint64_t bytes = 0;  // on disk
  std::uint64_t segments = 0;
  std::uint64_t appended = 0;      // records, since start
  std::uint64_t acknowledged = 0;  // highest sequence
  std::uint64_t last_sequence = 0;
  std::uint64_t dropped = 0;         // records, ever
  std::uint64_t damaged = 0;         // stretches of damaged bytes, ever
  std::uint64_t refused = 0;         // records that the data plane refused for good, ever
  std::uint64_t write_failures = 0;  // since start
  std::string last_failure;          // empty once a write succeeded again
};

class Outbox {
 public:
  // Opens or makes the outbox and repairs what a crash left: a torn tail is cut off, a file that is
  // no segment goes to quarantine/. Fails with outbox.version or os.*.
  static base::Result<std::unique_ptr<Outbox>> Open(OutboxOptions options, FileIo& files,
                                                    base::Clock& clock);

  // Writes one record (evidence::Encode; the frame's sequence replaces the record's own) and
  // returns a ticket for Sync. Fails with outbox.record_too_large or os.*; then nothing was
  // appended.
  base::Result<std::uint64_t> Append(std::string_view payload);
  // Returns once everything up to `ticket` is durable. Concurrent callers share one fdatasync.
  base::Status Sync(std::uint64_t ticket);
  // Syncs what was appended, and the acknowledgements.
  base::Status Flush();

  // Records after the acknowledged ones, of one stream and one segment; empty when there are none.
  // At least one record, however large, then up to both limits.
  base::Result<OutboxBatch> ReadBatch(std::size_t max_bytes, std::size_t max_records);
  // Marks everything up to `watermark` of the batch as delivered and deletes segments that are
  // done.
  base::Status Acknowledge(const OutboxBatch& batch, std::uint64_t watermark);
  // Keeps the batch's records in refused/ for people to look at, while there are few, and counts
  // them; the caller then acknowledges them.
  base::Status SetAside(const OutboxBatch& batch, std::string_view why);
  void CountRefused(std::uint64_t records);

  // Deletes the oldest segment, delivered or not; its undelivered records count as dropped. False
  // when there is none.
  base::Result<bool> DropOldest();
  // Counts records that were never appended for want of space.
  void CountDropped(std::uint64_t records);
  // Further records get a stream of their own: the data plane knows more of the present one than we
  // ever sent (the directory was restored from a copy), so its numbers are spent.
  base::Status StartNewStream();

  OutboxFigures figures() const;
  StreamClass stream_class() const { return options_.stream_class; }
  std::string stream_id() const;

 private:
  struct Segment {
    std::uint64_t number = 0;
    std::string stream_id;
    std::uint64_t size = 0;      // bytes of whole frames, header included
    std::uint64_t readable = 0;  // lifecycle: what is durable; samples: what is written
    bool damaged = false;
  };
  struct Active {
    std::shared_ptr<base::UniqueFd> fd;
    std::uint64_t number = 0;
    std::uint64_t size = 0;
    std::uint32_t seed = 0;
    bool broken = false;  // a sync failed: what the kernel holds of it cannot be trusted any more
  };

  Outbox(OutboxOptions options, FileIo& files, base::Clock& clock);

  // outbox_recovery.cc
  base::Status LoadState();
  base::Status LoadSegments();
  base::Status LoadSegment(std::uint64_t number, bool newest);
  base::Status CutTornTail(Segment* segment, const std::string& path);
  base::Status Quarantine(const std::string& name);

  base::Status SaveState();
  base::Status ReserveSequences();  // with append_mutex_
  base::Status OpenActive();        // with append_mutex_
  base::Status CloseActive();       // with append_mutex_
  void DetachActive();              // with append_mutex_
  void NoteFailure(const base::Error& error);
  base::Status RemoveFinished();
  // Where to go on reading; nothing when all is delivered that can be read.
  std::optional<Segment> NextToRead(std::uint64_t* offset) const;
  void Forget(std::uint64_t number);
  base::Result<std::uint64_t> CountUndelivered(const Segment& segment);
  std::string SegmentPath(std::uint64_t number) const;

  const OutboxOptions options_;
  FileIo& files_;
  base::Clock& clock_;

  // Lock order: append_mutex_, state_file_mutex_, mutex_. The first two order writes to a file and
  // are held over them; mutex_ never is.
  std::mutex append_mutex_;      // guards active_ and the order of frames in it
  std::mutex state_file_mutex_;  // guards the state file

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable synced_;
  Active active_;                 // written under append_mutex_ and mutex_
  std::deque<Segment> segments_;  // oldest first; the active one is the last
  OutboxState state_;
  OutboxFigures counters_;
  std::uint64_t next_sequence_ = 1;
  std::uint64_t next_segment_ = 1;
  std::uint64_t cursor_segment_ = 0;  // the segment that is being delivered
  std::uint64_t cursor_offset_ = 0;   // everything before is delivered; 0: from its start
  std::uint64_t appended_ticket_ = 0;
  std::uint64_t synced_ticket_ = 0;
  // Tickets above the first and up to the second were written but could not be made durable.
  std::uint64_t lost_above_ = 0;
  std::uint64_t lost_upto_ = 0;
  bool syncing_ = false;
  bool state_dirty_ = false;
};

}  // namespace expanse::daemon
