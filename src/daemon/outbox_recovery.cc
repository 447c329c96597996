// Opening an Outbox: what a crash, a full disk or a damaged file left is put in order here.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/crypto.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/outbox.h"

namespace expanse::daemon {
namespace {

// "0000000000000042.seg" -> 42
std::optional<std::uint64_t> SegmentNumber(std::string_view name) {
  if (name.size() != 20 || !name.ends_with(".seg")) return std::nullopt;
  return base::ParseUnsignedDigits(name.substr(0, 16));
}

struct OpenedFile {
  base::UniqueFd fd;
  std::uint64_t size = 0;
};

base::Result<OpenedFile> OpenWithSize(const std::string& path) {
  OpenedFile file{base::UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW))};
  if (!file.fd.valid()) return base::FailErrno(errno, "open " + path);
  struct stat info{};
  if (::fstat(file.fd.get(), &info) != 0) return base::FailErrno(errno, "stat " + path);
  file.size = static_cast<std::uint64_t>(info.st_size);
  return file;
}

base::Status ReadAt(int fd, std::uint64_t offset, std::size_t size, std::string* out) {
  out->resize(size);
  const ssize_t got = ::pread(fd, out->data(), size, static_cast<off_t>(offset));
  if (got < 0) return base::FailErrno(errno, "read segment");
  out->resize(static_cast<std::size_t>(got));
  return {};
}

}  // namespace

base::Result<std::unique_ptr<Outbox>> Outbox::Open(OutboxOptions options, FileIo& files,
                                                   base::Clock& clock) {
  EXPANSE_RETURN_IF_ERROR(base::MakeDirectories(options.directory, 0700));
  std::unique_ptr<Outbox> outbox(new Outbox(std::move(options), files, clock));
  auto loaded = outbox->LoadState();
  if (loaded) loaded = outbox->LoadSegments();
  if (!loaded)
    return std::unexpected(std::move(loaded.error()).With("outbox " + outbox->options_.directory));
  return outbox;
}

base::Status Outbox::LoadState() {
  auto bytes = base::ReadFile(base::JoinPath(options_.directory, "state"), 4096);
  if (!bytes && bytes.error().reason != "os.ENOENT")
    return std::unexpected(std::move(bytes.error()));
  auto state = bytes ? DecodeOutboxState(*bytes) : base::Result<OutboxState>(OutboxState{});
  if (!state && state.error().reason == "outbox.version")
    return std::unexpected(std::move(state.error()));
  if (bytes && (!state || state->stream_class != options_.stream_class)) {
    base::LogError("outbox.state_damaged",
                   {{"directory", options_.directory}, {"next", "a new stream"}});
    EXPANSE_RETURN_IF_ERROR(Quarantine("state"));
    bytes = base::Fail(base::Code::kNotFound, "outbox.state", "set aside");
  }
  if (bytes) {
    state_ = std::move(*state);
    next_sequence_ = state_.reserved + 1;
    return {};
  }
  // Without its numbers the old stream must not be continued; segments keep the id they were made
  // with.
  state_ = {.stream_class = options_.stream_class, .stream_id = base::NewUuid(clock_.Now())};
  return SaveState();
}

base::Status Outbox::LoadSegments() {
  EXPANSE_ASSIGN_OR_RETURN(auto names, base::ListDirectory(options_.directory));
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : names) {
    if (name.ends_with(".tmp")) {
      EXPANSE_RETURN_IF_ERROR(files_.Remove(base::JoinPath(options_.directory, name)));
    } else if (auto number = SegmentNumber(name)) {
      numbers.push_back(*number);
    }
  }
  for (std::uint64_t number : numbers) {
    EXPANSE_RETURN_IF_ERROR(LoadSegment(number, number == numbers.back()));
  }
  if (!numbers.empty()) next_segment_ = numbers.back() + 1;
  return {};
}

base::Status Outbox::LoadSegment(std::uint64_t number, bool newest) {
  const std::string path = SegmentPath(number);
  const std::string name = path.substr(path.rfind('/') + 1);
  EXPANSE_ASSIGN_OR_RETURN(OpenedFile file, OpenWithSize(path));
  std::string bytes;
  EXPANSE_RETURN_IF_ERROR(ReadAt(file.fd.get(), 0, kSegmentHeaderSize, &bytes));
  // Made and not yet written to when the crash came: no record can have been in it.
  if (file.size <= kSegmentHeaderSize && newest) return files_.Remove(path);
  auto header = DecodeSegmentHeader(bytes);
  if (!header && header.error().reason == "outbox.version") {
    return std::unexpected(std::move(header.error()).With(name));
  }
  if (!header || header->stream_class != options_.stream_class) {
    base::LogError("outbox.segment_damaged",
                   {{"file", path}, {"next", "set aside in quarantine/"}});
    ++state_.damaged;
    state_dirty_ = true;
    return Quarantine(name);
  }
  Segment segment{
      .number = number, .stream_id = header->stream_id, .size = file.size, .readable = file.size};
  if (newest) {
    EXPANSE_RETURN_IF_ERROR(CutTornTail(&segment, path));
    if (segment.size <= kSegmentHeaderSize) return files_.Remove(path);
  }
  segments_.push_back(std::move(segment));
  return {};
}

// Half a frame at the end was never confirmed to anybody: the crash came before its sync returned.
base::Status Outbox::CutTornTail(Segment* segment, const std::string& path) {
  EXPANSE_ASSIGN_OR_RETURN(OpenedFile file, OpenWithSize(path));
  const int fd = file.fd.get();
  FrameReader reader([fd](std::uint64_t offset, std::size_t size,
                          std::string* out) { return ReadAt(fd, offset, size, out); },
                     FrameSeed(segment->stream_id), kSegmentHeaderSize, segment->size);
  while (true) {
    EXPANSE_ASSIGN_OR_RETURN(auto frame, reader.Next());
    if (!frame) break;
    if (segment->stream_id == state_.stream_id)
      next_sequence_ = std::max(next_sequence_, frame->sequence + 1);
  }
  // Numbers above the reservation only exist if the state file is older than the segment
  // (restored).
  state_.reserved = std::max(state_.reserved, next_sequence_ - 1);
  if (!reader.torn_tail()) return {};
  base::LogInfo("outbox.torn_tail", {{"file", path}, {"bytes", segment->size - reader.good_end()}});
  segment->size = segment->readable = reader.good_end();
  return files_.Truncate(path, static_cast<std::int64_t>(segment->size));
}

base::Status Outbox::Quarantine(const std::string& name) {
  const std::string directory = base::JoinPath(options_.directory, "quarantine");
  EXPANSE_RETURN_IF_ERROR(base::MakeDirectories(directory, 0700));
  const std::string kept = fmt::format("{}/{}-{}", directory, base::ToMicros(clock_.Now()), name);
  EXPANSE_RETURN_IF_ERROR(files_.Rename(base::JoinPath(options_.directory, name), kept));
  EXPANSE_ASSIGN_OR_RETURN(auto names, base::ListDirectory(directory));
  for (std::size_t i = 0; i + options_.quarantine_files < names.size(); ++i) {
    EXPANSE_RETURN_IF_ERROR(files_.Remove(base::JoinPath(directory, names[i])));
  }
  return {};
}

}  // namespace expanse::daemon
