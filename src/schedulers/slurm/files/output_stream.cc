#include "schedulers/slurm/files/output_stream.h"

#include <utility>

namespace expanse::schedulers::slurm {
namespace {

constexpr std::uint8_t kMissedOften = 3;

std::string_view Describe(StreamTrouble trouble) {
  switch (trouble) {
    case StreamTrouble::kNone:
      return {};
    case StreamTrouble::kNotFound:
      return "not found here";
    case StreamTrouble::kNoPermission:
      return "its user may not read it";
    case StreamTrouble::kNotRegular:
      return "not a regular file";
    case StreamTrouble::kLink:
      return "behind a link that is not followed";
    case StreamTrouble::kUnreadable:
      return "unreadable";
    case StreamTrouble::kNoRights:
      return "the daemon may not read as the job's user";
    case StreamTrouble::kUnknownUser:
      return "the job's user is not known here";
  }
  return {};
}

}  // namespace

void OutputStream::SetPath(std::string_view path) {
  if (path == "/dev/null") path = {};
  if (path == path_) return;
  path_ = path;
  state_ = {};
  trouble_ = StreamTrouble::kNone;
  failures_ = 0;
  transient_ = grew_ = false;
}

void OutputStream::Begin(const collect::FileOpener& open, base::WallTime started) {
  if (!followed()) return;
  const auto file = open(path_);
  // What cannot be opened yet is the first look's business.
  if (file) (void)collect::SkipOldContents(file->get(), started, state_);
}

std::optional<evidence::LogTail> OutputStream::Look(const collect::FileOpener& open,
                                                    const collect::FileTailOptions& options,
                                                    bool final) {
  grew_ = transient_ = false;
  if (!followed()) return std::nullopt;
  auto file = open(path_);
  if (!file) {
    SetTrouble(file.error());
    return std::nullopt;
  }
  auto tail = collect::LookAtFile(file->get(), options, final, state_);
  if (!tail) {
    SetTrouble(tail.error());
    return std::nullopt;
  }
  trouble_ = StreamTrouble::kNone;
  failures_ = 0;
  if (!*tail) return std::nullopt;
  grew_ = true;
  (*tail)->stream = name_;
  return *std::move(tail);
}

void OutputStream::Fail(StreamTrouble trouble) {
  grew_ = transient_ = false;
  if (!followed()) return;
  trouble_ = trouble;
  if (failures_ < kMissedOften) ++failures_;
}

void OutputStream::SetTrouble(const base::Error& error) {
  const std::string& reason = error.reason;
  if (reason == "files.not_found") {
    Fail(StreamTrouble::kNotFound);
  } else if (reason == "files.no_permission") {
    Fail(StreamTrouble::kNoPermission);
  } else if (reason == "files.not_regular") {
    Fail(StreamTrouble::kNotRegular);
  } else if (reason == "files.link") {
    Fail(StreamTrouble::kLink);
  } else {
    Fail(StreamTrouble::kUnreadable);
    transient_ = error.code == base::Code::kAborted || reason == "os.ESTALE";
  }
}

std::optional<std::string> OutputStream::Note(bool final) const {
  if (!followed()) return std::nullopt;
  const std::string begin = std::string(name_) + ": ";
  if (trouble_ == StreamTrouble::kNotFound && state_.shown)
    return begin + "removed or renamed since";
  const bool may_pass =
      trouble_ == StreamTrouble::kNotFound || trouble_ == StreamTrouble::kUnreadable;
  const bool sure = final || (failures_ >= kMissedOften && !may_pass);
  if (trouble_ != StreamTrouble::kNone && sure) {
    return begin + std::string(Describe(trouble_));
  }
  if (state_.restarts > 0) return begin + "truncated or replaced while the job ran";
  return std::nullopt;
}

}  // namespace expanse::schedulers::slurm
