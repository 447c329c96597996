#include "daemon/spool/part_queue.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/log.h"

namespace expanse::daemon::spool {
namespace {

constexpr std::string_view kSuffix = ".part";

}  // namespace

std::string PartPath(const std::string& directory, const SegmentName& name) {
  std::string file =
      FormatSegmentName({.stream_id = name.stream_id, .sequence = name.sequence, .events = false});
  return base::JoinPath(directory, file.replace(file.size() - 6, 6, kSuffix));
}

base::Result<std::unique_ptr<PartQueue>> PartQueue::Open(const std::string& directory,
                                                         std::uint64_t max_bytes, FileIo& files) {
  std::unique_ptr<PartQueue> queue(new PartQueue(max_bytes, files));
  EXPANSE_RETURN_IF_ERROR(queue->Recover(directory));
  return queue;
}

base::Status PartQueue::Recover(const std::string& directory) {
  EXPANSE_ASSIGN_OR_RETURN(const auto names, base::ListDirectory(directory));
  for (const std::string& name : names) {
    if (!name.ends_with(kSuffix)) continue;
    const std::string path = base::JoinPath(directory, name);
    const auto bytes = base::ReadFile(path, kMaxSegmentFile);
    auto prefix =
        bytes ? ReadPrefix(*bytes) : base::Result<SegmentPrefix>(std::unexpected(bytes.error()));
    if (!prefix || prefix->records == 0) {
      // Nothing was taken yet, or it is not ours.
      if (!prefix && prefix.error().reason != "spool.torn") {
        ++figures_.damaged;
        base::LogWarn("spool.part_damaged", {{"file", path}, {"why", prefix.error().message}});
      }
      EXPANSE_RETURN_IF_ERROR(files_.Remove(path));
      continue;
    }
    if (prefix->size < bytes->size()) {
      EXPANSE_RETURN_IF_ERROR(files_.Truncate(path, static_cast<std::int64_t>(prefix->size)));
    }
    parts_.push_back({.name = {.stream_id = prefix->header.stream_id,
                               .sequence = prefix->header.sequence,
                               .events = prefix->events},
                      .path = path,
                      .size = prefix->size,
                      .encoder = prefix->encoder});
    figures_.waiting_bytes += prefix->size;
  }
  return {};
}

void PartQueue::Add(Part part) {
  {
    std::scoped_lock lock(mutex_);
    figures_.waiting_bytes += part.size;
    parts_.push_back(std::move(part));
  }
  added_.notify_all();
}

std::optional<Part> PartQueue::Take() {
  std::scoped_lock lock(mutex_);
  if (parts_.empty()) return std::nullopt;
  taken_ = true;
  return parts_.front();
}

void PartQueue::Release() {
  std::scoped_lock lock(mutex_);
  taken_ = false;
}

void PartQueue::Done(bool dropped_by_spool) {
  std::string path;
  {
    std::scoped_lock lock(mutex_);
    const Part& part = parts_.front();
    path = part.path;
    figures_.waiting_bytes -= part.size;
    if (!dropped_by_spool) ++figures_.shipped;
    if (dropped_by_spool) ++(part.name.events ? figures_.dropped_events : figures_.dropped_samples);
    parts_.pop_front();
    taken_ = false;
  }
  // If it stays, the next sampler ships it again; the controller knows its name.
  if (auto removed = files_.Remove(path); !removed) {
    base::LogWarn("spool.part_not_removed", {{"message", removed.error().message}});
  }
}

void PartQueue::WaitForPart(const std::stop_token& stop, base::Duration most) {
  std::unique_lock lock(mutex_);
  added_.wait_for(lock, stop, most, [this] { return !parts_.empty(); });
}

bool PartQueue::DropOne() {
  std::string path;
  {
    std::scoped_lock lock(mutex_);
    const auto begin = parts_.begin() + (taken_ ? 1 : 0);
    auto victim = std::find_if(begin, parts_.end(), [](const Part& p) { return !p.name.events; });
    if (victim == parts_.end()) victim = begin;
    if (victim == parts_.end()) return false;
    ++(victim->name.events ? figures_.dropped_events : figures_.dropped_samples);
    figures_.waiting_bytes -= victim->size;
    path = victim->path;
    parts_.erase(victim);
  }
  return files_.Remove(path).has_value();
}

bool PartQueue::MakeRoom(std::uint64_t bytes) {
  while (true) {
    {
      std::scoped_lock lock(mutex_);
      if (figures_.waiting_bytes + bytes <= max_bytes_) return true;
    }
    if (!DropOne()) return false;
  }
}

PartFigures PartQueue::figures() const {
  std::scoped_lock lock(mutex_);
  PartFigures figures = figures_;
  figures.waiting = parts_.size();
  return figures;
}

}  // namespace expanse::daemon::spool
