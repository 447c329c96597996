#include "daemon/outbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/crypto.h"
#include "base/log.h"

namespace expanse::daemon {
namespace {

// Sequences are reserved in the state file this many at a time, so that it is rarely written and a
// crash can only leave a gap, never a number that is used again.
constexpr std::uint64_t kReserve = 4096;

}  // namespace

Outbox::Outbox(OutboxOptions options, FileIo& files, base::Clock& clock)
    : options_(std::move(options)), files_(files), clock_(clock) {}

std::string Outbox::SegmentPath(std::uint64_t number) const {
  return fmt::format("{}/{:016}.seg", options_.directory, number);
}

void Outbox::NoteFailure(const base::Error& error) {
  std::scoped_lock lock(mutex_);
  ++counters_.write_failures;
  counters_.last_failure = error.message;
}

base::Status Outbox::SaveState() {
  std::scoped_lock file(state_file_mutex_);
  OutboxState state;
  {
    std::scoped_lock lock(mutex_);
    state = state_;
    state_dirty_ = false;
  }
  auto saved = ReplaceFile(files_, options_.directory, "state", EncodeOutboxState(state));
  if (!saved) {
    std::scoped_lock lock(mutex_);
    state_dirty_ = true;
  }
  return saved;
}

base::Status Outbox::ReserveSequences() {
  {
    std::scoped_lock lock(mutex_);
    if (next_sequence_ <= state_.reserved) return {};
    state_.reserved += kReserve;
  }
  auto saved = SaveState();
  if (!saved) {
    std::scoped_lock lock(mutex_);
    state_.reserved -= kReserve;
  }
  return saved;
}

void Outbox::DetachActive() {
  std::scoped_lock lock(mutex_);
  active_ = {};
}

// Ends the active segment; what is in it becomes durable first, or is known to be lost.
base::Status Outbox::CloseActive() {
  std::uint64_t ticket = 0;
  std::uint64_t number = 0;
  {
    std::scoped_lock lock(mutex_);
    if (active_.fd == nullptr) return {};
    ticket = appended_ticket_;
    number = active_.number;
  }
  auto synced = Sync(ticket);
  std::uint64_t keep = 0;
  {
    std::scoped_lock lock(mutex_);
    for (Segment& segment : segments_) {
      if (segment.number != number) continue;
      // Samples are read before they are synced; lifecycle records that were refused must not
      // appear.
      if (options_.stream_class == StreamClass::kLifecycle) segment.size = segment.readable;
      keep = segment.size;
    }
    active_ = {};
  }
  // Best effort: the reader stops at `size` now, and recovery steps over damage later.
  if (!synced && keep > 0)
    (void)files_.Truncate(SegmentPath(number), static_cast<std::int64_t>(keep));
  return synced;
}

base::Status Outbox::OpenActive() {
  bool close = false;
  std::string stream;
  std::uint64_t number = 0;
  {
    std::scoped_lock lock(mutex_);
    close = active_.fd != nullptr && (active_.broken || active_.size >= options_.segment_bytes);
    if (active_.fd != nullptr && !close) return {};
  }
  if (close) (void)CloseActive();  // whoever waits for its records hears of a failure from Sync
  {
    std::scoped_lock lock(mutex_);
    stream = state_.stream_id;
    number = next_segment_++;
  }
  const std::string path = SegmentPath(number);
  const std::string header = EncodeSegmentHeader(
      {.stream_class = options_.stream_class, .stream_id = stream, .created_at = clock_.Now()});
  EXPANSE_ASSIGN_OR_RETURN(base::UniqueFd fd, files_.Create(path));
  auto ready = files_.Write(fd.get(), header, 0);
  if (ready) ready = files_.Sync(fd.get());
  if (ready) ready = files_.SyncDirectory(options_.directory);
  if (!ready) {
    (void)files_.Remove(path);
    return ready;
  }
  std::scoped_lock lock(mutex_);
  active_ = {.fd = std::make_shared<base::UniqueFd>(std::move(fd)),
             .number = number,
             .size = header.size(),
             .seed = FrameSeed(stream)};
  segments_.push_back(
      {.number = number, .stream_id = stream, .size = header.size(), .readable = header.size()});
  return {};
}

base::Result<std::uint64_t> Outbox::Append(std::string_view payload) {
  if (payload.size() > kMaxFramePayload) {
    return base::Fail(base::Code::kInvalidArgument, "outbox.record_too_large",
                      fmt::format("a record of {} bytes is above the limit of {}", payload.size(),
                                  kMaxFramePayload));
  }
  std::scoped_lock append(append_mutex_);
  auto ready = ReserveSequences();
  if (ready) ready = OpenActive();
  if (!ready) {
    NoteFailure(ready.error());
    return std::unexpected(std::move(ready.error()).With("outbox"));
  }
  std::shared_ptr<base::UniqueFd> fd;
  std::string frame;
  std::uint64_t at = 0;
  std::uint64_t number = 0;
  {
    std::scoped_lock lock(mutex_);
    fd = active_.fd;
    at = active_.size;
    number = active_.number;
    AppendFrame(active_.seed, next_sequence_, payload, &frame);
  }
  if (auto written = files_.Write(fd->get(), frame, static_cast<std::int64_t>(at)); !written) {
    NoteFailure(written.error());
    // Nothing may follow half a frame: cut it off, or leave the segment to recovery.
    if (!files_.Truncate(SegmentPath(number), static_cast<std::int64_t>(at))) (void)CloseActive();
    return std::unexpected(std::move(written.error()).With("outbox"));
  }
  std::scoped_lock lock(mutex_);
  if (active_.broken) {
    return base::Fail(base::Code::kUnavailable, "outbox.sync_failed", "the disk refused to sync");
  }
  ++next_sequence_;
  ++counters_.appended;
  active_.size = at + frame.size();
  segments_.back().size = active_.size;
  if (options_.stream_class == StreamClass::kSamples) segments_.back().readable = active_.size;
  counters_.last_failure.clear();
  return ++appended_ticket_;
}

base::Status Outbox::Sync(std::uint64_t ticket) {
  std::unique_lock lock(mutex_);
  while (true) {
    if (ticket > lost_above_ && ticket <= lost_upto_) {
      return base::Fail(base::Code::kUnavailable, "outbox.sync_failed",
                        "the record could not be made durable: " + counters_.last_failure);
    }
    if (ticket <= synced_ticket_) return {};
    if (!syncing_) break;
    synced_.wait(lock);  // the leader's fdatasync; as long as the disk takes
  }
  // This caller leads: one fdatasync for all that was appended so far.
  syncing_ = true;
  const Active active = active_;
  const std::uint64_t target = appended_ticket_;
  lock.unlock();
  auto status = files_.Sync(active.fd->get());
  lock.lock();
  syncing_ = false;
  if (status) {
    synced_ticket_ = target;
    for (Segment& segment : segments_) {
      if (segment.number == active.number)
        segment.readable = std::max(segment.readable, active.size);
    }
  } else {
    // After a failed fdatasync the kernel may have dropped the pages and report success next time,
    // so everything since the last good one counts as lost and the segment is not written to again.
    if (lost_upto_ == 0) lost_above_ = synced_ticket_;
    lost_upto_ = appended_ticket_;
    synced_ticket_ = appended_ticket_;
    active_.broken = true;
    ++counters_.write_failures;
    counters_.last_failure = status.error().message;
  }
  synced_.notify_all();
  return status;
}

base::Status Outbox::Flush() {
  std::uint64_t ticket = 0;
  bool dirty = false;
  {
    std::scoped_lock lock(mutex_);
    ticket = appended_ticket_;
    dirty = state_dirty_;
  }
  auto synced = Sync(ticket);
  if (dirty) EXPANSE_RETURN_IF_ERROR(SaveState());
  return synced;
}

base::Status Outbox::StartNewStream() {
  std::scoped_lock append(append_mutex_);
  (void)CloseActive();
  {
    std::scoped_lock lock(mutex_);
    state_.stream_id = base::NewUuid(clock_.Now());
    state_.reserved = 0;
    state_.acknowledged = 0;
    next_sequence_ = 1;
  }
  return SaveState();
}

void Outbox::CountRefused(std::uint64_t records) {
  std::scoped_lock lock(mutex_);
  state_.refused += records;
  state_dirty_ = true;
}

void Outbox::CountDropped(std::uint64_t records) {
  std::scoped_lock lock(mutex_);
  state_.dropped += records;
  state_dirty_ = true;
}

std::string Outbox::stream_id() const {
  std::scoped_lock lock(mutex_);
  return state_.stream_id;
}

OutboxFigures Outbox::figures() const {
  std::scoped_lock lock(mutex_);
  OutboxFigures figures = counters_;
  figures.segments = segments_.size();
  for (const Segment& segment : segments_) figures.bytes += segment.size;
  figures.acknowledged = state_.acknowledged;
  figures.last_sequence = next_sequence_ - 1;
  figures.dropped = state_.dropped;
  figures.damaged = state_.damaged;
  figures.refused = state_.refused;
  return figures;
}

}  // namespace expanse::daemon
