// The reader's half of Outbox: batches, acknowledgements, dropping.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "daemon/outbox.h"

namespace expanse::daemon {
namespace {

FrameReader::ReadAt ReadFrom(const base::UniqueFd& fd) {
  return [&fd](std::uint64_t offset, std::size_t size, std::string* out) -> base::Status {
    out->resize(size);
    std::size_t done = 0;
    while (done < size) {
      const ssize_t got =
          ::pread(fd.get(), out->data() + done, size - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return base::FailErrno(errno, "read segment");
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    out->resize(done);
    return {};
  };
}

base::Result<base::UniqueFd> OpenForReading(const std::string& path) {
  base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return base::FailErrno(errno, "open " + path);
  return fd;
}

}  // namespace

std::optional<Outbox::Segment> Outbox::NextToRead(std::uint64_t* offset) const {
  std::scoped_lock lock(mutex_);
  for (const Segment& segment : segments_) {
    if (segment.number < cursor_segment_) continue;
    *offset = segment.number == cursor_segment_ ? cursor_offset_ : 0;
    *offset = std::max<std::uint64_t>(*offset, kSegmentHeaderSize);
    if (*offset < segment.readable) return segment;
    if (segment.number == active_.number) return std::nullopt;
  }
  return std::nullopt;
}

// The file is gone: dropped a moment ago, or deleted by somebody else.
void Outbox::Forget(std::uint64_t number) {
  std::scoped_lock lock(mutex_);
  const auto erased =
      std::erase_if(segments_, [&](const Segment& s) { return s.number == number; });
  if (erased == 0) return;
  ++state_.damaged;
  state_dirty_ = true;
  if (active_.number == number) active_.broken = true;  // the next record opens a new file
  base::LogWarn("outbox.segment_gone",
                {{"stream", Name(options_.stream_class)}, {"segment", number}});
}

base::Result<OutboxBatch> Outbox::ReadBatch(std::size_t max_bytes, std::size_t max_records) {
  OutboxBatch batch;
  std::uint64_t offset = 0;
  while (std::optional<Segment> segment = NextToRead(&offset)) {
    auto fd = OpenForReading(SegmentPath(segment->number));
    if (!fd && fd.error().reason == "os.ENOENT") {
      Forget(segment->number);
      continue;
    }
    if (!fd) return std::unexpected(std::move(fd.error()));
    std::uint64_t acknowledged = 0;
    {
      std::scoped_lock lock(mutex_);
      if (segment->stream_id == state_.stream_id) acknowledged = state_.acknowledged;
    }
    batch = {.stream_id = segment->stream_id,
             .frames = {},
             .segment = segment->number,
             .read_to = offset};
    FrameReader reader(ReadFrom(*fd), FrameSeed(segment->stream_id), offset, segment->readable);
    std::size_t bytes = 0;
    bool full = false;
    while (!full) {
      EXPANSE_ASSIGN_OR_RETURN(auto frame, reader.Next());
      if (!frame) break;
      if (frame->sequence <= acknowledged) {
        batch.read_to = frame->end;
        continue;
      }
      bytes += frame->payload.size() + kFrameHeaderSize;
      full = !batch.empty() && bytes > max_bytes;
      if (full) break;
      batch.damaged = reader.damaged();
      batch.read_to = frame->end;
      batch.frames.push_back(std::move(*frame));
      full = batch.frames.size() >= max_records;
    }
    if (!full) {
      batch.read_to = segment->readable;
      batch.damaged = reader.damaged();
    }
    if (!batch.empty()) return batch;
    // Nothing to deliver up to the end: the cursor moves past it.
    EXPANSE_RETURN_IF_ERROR(Acknowledge(batch, 0));
  }
  return batch.empty() ? OutboxBatch{} : std::move(batch);
}

base::Status Outbox::Acknowledge(const OutboxBatch& batch, std::uint64_t watermark) {
  {
    std::scoped_lock lock(mutex_);
    std::uint64_t delivered = 0;
    std::uint64_t to = batch.empty() ? batch.read_to : 0;
    for (const Frame& frame : batch.frames) {
      if (frame.sequence > watermark) break;
      delivered = frame.sequence;
      to = frame.end;
    }
    if (to == 0) return {};
    const bool all = batch.empty() || delivered == batch.frames.back().sequence;
    if (all) to = batch.read_to;
    cursor_segment_ = batch.segment;
    cursor_offset_ = to;
    if (batch.stream_id == state_.stream_id && delivered > state_.acknowledged) {
      state_.acknowledged = delivered;
      state_dirty_ = true;
    }
    if (all && batch.damaged > 0) {
      state_.damaged += batch.damaged;
      state_dirty_ = true;
      for (Segment& segment : segments_) {
        if (segment.number == batch.segment) segment.damaged = true;
      }
      base::LogWarn("outbox.damaged", {{"stream", Name(options_.stream_class)},
                                       {"segment", batch.segment},
                                       {"stretches", batch.damaged}});
    }
  }
  return RemoveFinished();
}

// Deletes delivered segments; damaged ones go to quarantine instead. One that cannot be deleted
// stays in the list and is tried again next time.
base::Status Outbox::RemoveFinished() {
  while (true) {
    Segment segment;
    {
      std::scoped_lock lock(mutex_);
      if (segments_.empty()) return {};
      segment = segments_.front();
      const bool delivered =
          segment.number < cursor_segment_ ||
          (segment.number == cursor_segment_ && cursor_offset_ >= segment.readable);
      if (!delivered || segment.number == active_.number) return {};
    }
    const std::string path = SegmentPath(segment.number);
    EXPANSE_RETURN_IF_ERROR(segment.damaged ? Quarantine(path.substr(path.rfind('/') + 1))
                                            : files_.Remove(path));
    std::scoped_lock lock(mutex_);
    if (!segments_.empty() && segments_.front().number == segment.number) segments_.pop_front();
  }
}

base::Result<std::uint64_t> Outbox::CountUndelivered(const Segment& segment) {
  std::uint64_t offset = kSegmentHeaderSize;
  std::uint64_t acknowledged = 0;
  {
    std::scoped_lock lock(mutex_);
    if (segment.number < cursor_segment_) return 0;
    if (segment.number == cursor_segment_) offset = std::max(offset, cursor_offset_);
    if (segment.stream_id == state_.stream_id) acknowledged = state_.acknowledged;
  }
  EXPANSE_ASSIGN_OR_RETURN(base::UniqueFd fd, OpenForReading(SegmentPath(segment.number)));
  FrameReader reader(ReadFrom(fd), FrameSeed(segment.stream_id), offset, segment.readable);
  std::uint64_t count = 0;
  while (true) {
    EXPANSE_ASSIGN_OR_RETURN(auto frame, reader.Next());
    if (!frame) return count;
    if (frame->sequence > acknowledged) ++count;
  }
}

base::Result<bool> Outbox::DropOldest() {
  std::scoped_lock append(append_mutex_);
  Segment segment;
  bool active = false;
  {
    std::scoped_lock lock(mutex_);
    if (segments_.empty()) return false;
    segment = segments_.front();
    active = segment.number == active_.number;
  }
  if (active) (void)CloseActive();
  const std::uint64_t dropped = CountUndelivered(segment).value_or(0);
  EXPANSE_RETURN_IF_ERROR(files_.Remove(SegmentPath(segment.number)));
  std::scoped_lock lock(mutex_);
  if (!segments_.empty() && segments_.front().number == segment.number) segments_.pop_front();
  state_.dropped += dropped;
  state_dirty_ = true;
  return true;
}

base::Status Outbox::SetAside(const OutboxBatch& batch, std::string_view why) {
  const std::string directory = base::JoinPath(options_.directory, "refused");
  EXPANSE_RETURN_IF_ERROR(base::MakeDirectories(directory, 0700));
  EXPANSE_ASSIGN_OR_RETURN(const auto held, base::ListDirectory(directory));
  std::size_t room = options_.refused_files - std::min(options_.refused_files, held.size());
  for (const Frame& frame : batch.frames) {
    // A plane that refuses everything must not fill the disk; the first ones tell why.
    if (room == 0) break;
    --room;
    const std::string name = fmt::format("{}-{}.record", batch.stream_id, frame.sequence);
    EXPANSE_RETURN_IF_ERROR(ReplaceFile(files_, directory, name, frame.payload));
    base::LogError(
        "outbox.set_aside",
        {{"stream", Name(options_.stream_class)}, {"file", directory + "/" + name}, {"why", why}});
  }
  CountRefused(batch.frames.size());
  return {};
}

}  // namespace expanse::daemon
