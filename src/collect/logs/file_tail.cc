#include "collect/logs/file_tail.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "base/crypto.h"

namespace expanse::collect {
namespace {

constexpr std::size_t kHead = 256;
constexpr std::size_t kChunk = 64U << 10;

std::uint64_t SizeOf(const struct stat& info) {
  return info.st_size > 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

std::int64_t ModifiedNs(const struct stat& info) {
  return std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

base::Status Stat(int fd, struct stat* info) {
  if (::fstat(fd, info) != 0) return base::FailErrno(errno, "looking at an output file");
  return {};
}

// Bytes [begin, end) of the file into `out`, all of them.
base::Status ReadRange(int fd, std::uint64_t begin, std::uint64_t end, std::string* out) {
  out->resize(end - begin);
  std::size_t got = 0;
  while (got < out->size()) {
    const ssize_t n =
        ::pread(fd, out->data() + got, out->size() - got, static_cast<off_t>(begin + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::FailErrno(errno, "reading an output file");
    if (n == 0) {
      return base::Fail(base::Code::kAborted, "files.changed",
                        "an output file got shorter while it was read");
    }
    got += static_cast<std::size_t>(n);
  }
  return {};
}

base::Result<std::uint32_t> SumHead(int fd, std::size_t size) {
  std::string head;
  EXPANSE_RETURN_IF_ERROR(ReadRange(fd, 0, size, &head));
  return base::Crc32c(head);
}

// Whether it is still the file of the last look, perhaps longer.
base::Result<bool> GoesOn(int fd, const struct stat& info, const FileTailState& state) {
  if (info.st_dev != state.device || info.st_ino != state.inode) return false;
  if (SizeOf(info) < state.size) return false;
  EXPANSE_ASSIGN_OR_RETURN(const std::uint32_t sum, SumHead(fd, state.head_size));
  return sum == state.head_sum;
}

base::Status NoteIdentity(int fd, const struct stat& info, FileTailState& state) {
  state.device = info.st_dev;
  state.inode = info.st_ino;
  state.head_size = static_cast<std::uint16_t>(std::min<std::uint64_t>(SizeOf(info), kHead));
  EXPANSE_ASSIGN_OR_RETURN(state.head_sum, SumHead(fd, state.head_size));
  state.seen = true;
  return {};
}

// Goes on searching for the first error where the last look ended.
base::Status Search(int fd, const FileTailOptions& options, FileTailState& state) {
  const std::uint64_t give_up = state.begin + kMaxErrorSearch;
  const std::uint64_t end = std::min({state.size, state.scanned + options.scan_bytes, give_up});
  std::string chunk;
  while (!state.error_at && state.scanned < end) {
    const std::uint64_t to = std::min<std::uint64_t>(end, state.scanned + kChunk);
    const std::uint64_t carried = std::min<std::uint64_t>(state.scanned - state.begin, kErrorCarry);
    const std::uint64_t from = state.scanned - carried;
    EXPANSE_RETURN_IF_ERROR(ReadRange(fd, from, to, &chunk));
    // Binary output has no error messages in it.
    if (chunk.find('\0') == std::string::npos) {
      const std::size_t found = FindErrorWord(chunk);
      if (found != std::string::npos) state.error_at = from + found;
    }
    state.scanned = to;
  }
  return {};
}

bool AllSearched(const FileTailState& state) {
  return state.error_at || state.scanned >= state.size ||
         state.scanned - state.begin >= kMaxErrorSearch;
}

base::Result<evidence::LogTail> Show(int fd, const FileTailOptions& options, bool final,
                                     FileTailState& state) {
  const TailOptions& wanted = options.tail;
  const std::uint64_t length = state.size - state.begin;
  const std::uint64_t size = std::min<std::uint64_t>(length, wanted.tail + wanted.context);
  std::string kept;
  EXPANSE_RETURN_IF_ERROR(ReadRange(fd, state.size - size, state.size, &kept));
  TailView view{.kept = kept, .total = length, .error = {}};
  std::string around;
  if (state.error_at) {
    const std::uint64_t at = *state.error_at;
    const std::uint64_t from = at - std::min<std::uint64_t>(at - state.begin, wanted.error_before);
    const std::uint64_t to = std::min<std::uint64_t>(state.size, at + wanted.error_after);
    EXPANSE_RETURN_IF_ERROR(ReadRange(fd, from, to, &around));
    view.error = ErrorView{.bytes = around,
                           .offset = from - state.begin,
                           .cut = from > state.begin,
                           .more_follows = to < state.size};
  }
  state.shown = true;
  state.held_back = !final && !kept.empty() && kept.back() != '\n';
  return ShowTail(view, wanted, final);
}

}  // namespace

base::Status SkipOldContents(int fd, base::WallTime started, FileTailState& state) {
  if (state.seen) return {};
  struct stat info{};
  EXPANSE_RETURN_IF_ERROR(Stat(fd, &info));
  // A file server has a clock of its own. Old output shown is a blemish, new output left out is a
  // loss: so only what is clearly older counts.
  constexpr std::int64_t kSlackNs = 300LL * 1000 * 1000 * 1000;
  if (ModifiedNs(info) >= base::ToMicros(started) * 1000 - kSlackNs) return {};
  FileTailState next = state;
  EXPANSE_RETURN_IF_ERROR(NoteIdentity(fd, info, next));
  next.begin = next.size = next.scanned = SizeOf(info);
  next.modified_ns = ModifiedNs(info);
  state = next;
  return {};
}

base::Result<std::optional<evidence::LogTail>> LookAtFile(int fd, const FileTailOptions& options,
                                                          bool final, FileTailState& state) {
  struct stat info{};
  EXPANSE_RETURN_IF_ERROR(Stat(fd, &info));
  FileTailState next = state;
  bool same = state.seen;
  if (state.seen) {
    EXPANSE_ASSIGN_OR_RETURN(same, GoesOn(fd, info, state));
    if (!same) next = {.restarts = state.restarts + 1};
  }
  const bool unchanged =
      same && state.size == SizeOf(info) && state.modified_ns == ModifiedNs(info);
  next.size = SizeOf(info);
  next.modified_ns = ModifiedNs(info);
  if (!same || next.head_size < kHead) EXPANSE_RETURN_IF_ERROR(NoteIdentity(fd, info, next));
  if (!AllSearched(next)) EXPANSE_RETURN_IF_ERROR(Search(fd, options, next));

  const bool news = !unchanged || next.error_at != state.error_at || !state.shown;
  const bool wanted = final ? news || state.held_back : news && next.size > next.begin;
  std::optional<evidence::LogTail> tail;
  if (wanted) {
    EXPANSE_ASSIGN_OR_RETURN(tail, Show(fd, options, final, next));
  }
  state = next;
  return tail;
}

}  // namespace expanse::collect
