#include "collect/logs/tail_ring.h"

#include <re2/re2.h>

#include <algorithm>

#include "base/result.h"
#include "collect/logs/redact.h"

namespace expanse::collect {
namespace {

constexpr std::size_t kCarry = 64;
// Looking for error words costs 2 ns a byte; beyond this much output without one it is given up.
constexpr std::uint64_t kMaxSearched = 256U << 20;
// A line longer than this is not held back whole in a snapshot that is not final.
constexpr std::size_t kMaxHeldBack = 8U << 10;

const re2::RE2& ErrorPattern() {
  static const re2::RE2 pattern = [] {
    re2::RE2::Options options;
    options.set_encoding(re2::RE2::Options::EncodingLatin1);
    options.set_case_sensitive(false);
    return re2::RE2(
        R"((?:^|[^a-z0-9_])(?:traceback \(most recent|(?:[a-z_.]*(?:error|exception)|fatal|panic|abort(?:ed)?|failed|failure|critical)(?::|\]|\b[^a-z_=]{0,2}[ :])|segmentation fault|core dumped|out of memory|oom-kill|killed|no such file|permission denied|command not found|no space left|assertion [^\n]{0,40}failed|undefined reference|cannot allocate|illegal instruction|bus error|connection refused))",
        options);
  }();
  EXPANSE_CHECK(pattern.ok());
  return pattern;
}

// The end of what may be shown of an unfinished stream: behind the last line break, or, in a line
// without end, behind the last blank.
std::size_t SafeEnd(std::string_view text) {
  const std::size_t line = text.rfind('\n');
  if (line != std::string_view::npos && text.size() - line <= kMaxHeldBack) return line + 1;
  const std::size_t blank = text.find_last_of(" \t\r\n");
  return blank == std::string_view::npos ? 0 : blank + 1;
}

// Where a text that begins in mid-line may begin to be shown, if possible within `wanted` bytes:
// behind a line break, else behind a blank.
std::size_t SafeBegin(std::string_view text, std::size_t wanted) {
  const std::size_t line = text.substr(0, wanted).find('\n');
  if (line != std::string_view::npos) return line + 1;
  const std::size_t blank = text.find_first_of(" \t\r\n");
  return blank == std::string_view::npos ? text.size() : blank + 1;
}

// text[begin:] with the secrets that were found in all of `text` replaced.
RedactedText RedactFrom(std::string_view text, std::size_t begin) {
  RedactedText shown;
  for (const SecretSpan& span : FindSecrets(text)) {
    if (span.end <= begin) continue;
    if (span.begin > begin) shown.text += text.substr(begin, span.begin - begin);
    shown.text += kRedactionMark;
    ++shown.redactions;
    begin = span.end;
  }
  shown.text += text.substr(begin);
  RedactedText again = Redact(shown.text);
  again.redactions += shown.redactions;
  return again;
}

}  // namespace

std::size_t FindErrorWord(std::string_view text) {
  const re2::StringPiece input(text.data(), text.size());
  re2::StringPiece found;
  std::size_t at = 0;
  while (ErrorPattern().Match(input, at, text.size(), re2::RE2::UNANCHORED, &found, 1)) {
    const auto begin = static_cast<std::size_t>(found.data() - text.data());
    const std::string_view before = text.substr(0, begin + 1);
    const bool counted_zero =
        before.ends_with("0 ") || before.ends_with("no ") || before.ends_with("No ");
    if (!counted_zero) return begin;
    at = begin + found.size();
  }
  return std::string_view::npos;
}

void TailRing::Append(std::string_view bytes) {
  if (error_wanted_ > 0) {
    const std::string_view more = bytes.substr(0, error_wanted_);
    error_ += more;
    error_wanted_ -= more.size();
  }
  const std::size_t limit = options_.tail + options_.context;
  // It wants what stood in front of these bytes, so it runs before they replace it. Binary output
  // has no error messages in it.
  const bool search = !error_seen_ && total_ < kMaxSearched;
  if (search && bytes.find('\0') == std::string_view::npos) LookForError(bytes);
  if (bytes.size() >= limit) {
    kept_.assign(bytes.substr(bytes.size() - limit));
  } else {
    kept_ += bytes;
    if (kept_.size() > 2 * limit) kept_.erase(0, kept_.size() - limit);
  }
  total_ += bytes.size();
}

void TailRing::Skip(std::uint64_t bytes) {
  if (bytes == 0) return;
  kept_.clear();
  carry_.clear();
  total_ += bytes;
}

void TailRing::LookForError(std::string_view bytes) {
  const std::size_t carried = carry_.size();
  std::size_t found = std::string_view::npos;  // relative to carry + bytes
  if (carried > 0) {
    carry_ += bytes.substr(0, kCarry);
    found = FindErrorWord(carry_);
  }
  if (found == std::string_view::npos) {
    found = FindErrorWord(bytes);
    if (found != std::string_view::npos) found += carried;
  }
  if (found == std::string_view::npos) {
    carry_.resize(carried);
    carry_ += bytes.substr(bytes.size() - std::min(bytes.size(), kCarry));
    if (carry_.size() > kCarry) carry_.erase(0, carry_.size() - kCarry);
    return;
  }
  error_seen_ = true;
  carry_.clear();
  // In front of it: what of the stream is still there, from the beginning of a line if possible.
  const std::uint64_t position = total_ - carried + found;
  const std::size_t in_bytes = position > total_ ? static_cast<std::size_t>(position - total_) : 0;
  const std::size_t in_kept = position < total_ ? static_cast<std::size_t>(total_ - position) : 0;
  std::string before = kept_.substr(0, kept_.size() - std::min(kept_.size(), in_kept));
  before += bytes.substr(0, in_bytes);
  const bool whole_stream = before.size() == position;
  if (before.size() > options_.error_before || !whole_stream) {
    const std::size_t keep = std::min(before.size(), options_.error_before);
    before.erase(0, before.size() - keep);
    error_cut_ = true;
  }
  error_offset_ = position - before.size();
  error_ = std::move(before);
  if (in_kept > 0) error_ += kept_.substr(kept_.size() - std::min(kept_.size(), in_kept));
  const std::string_view after = bytes.substr(in_bytes, options_.error_after);
  error_ += after;
  error_wanted_ = options_.error_after - after.size();
}

evidence::LogTail TailRing::Snapshot(bool final) const {
  evidence::LogTail tail;
  tail.total_bytes = total_;
  std::string_view raw(kept_);
  if (!final) raw = raw.substr(0, SafeEnd(raw));
  const std::uint64_t kept_offset = total_ - kept_.size();
  // Secrets are looked for in tail and context; then the context goes.
  std::size_t begin = raw.size() > options_.tail ? raw.size() - options_.tail : 0;
  if (kept_offset > 0) {
    // The first line has lost its beginning, and with it perhaps the name of a secret.
    std::size_t safe = SafeBegin(raw, std::max(begin, options_.tail));
    if (safe > begin && raw.size() > options_.tail)
      safe = begin + SafeBegin(raw.substr(begin), options_.tail / 4);
    begin = std::max(begin, safe);
  }
  RedactedText redacted = RedactFrom(raw, begin);
  tail.offset = kept_offset + begin;
  tail.data = std::move(redacted.text);
  tail.redactions = redacted.redactions;

  if (error_seen_ && error_offset_ < tail.offset) {
    std::string_view region(error_);
    std::size_t from = 0;
    if (error_cut_) from = SafeBegin(region, options_.error_before);
    std::size_t to = region.size();
    if (!final || error_wanted_ == 0) to = std::max(from, SafeEnd(region));
    RedactedText error = Redact(region.substr(from, to - from));
    tail.first_error = std::move(error.text);
    tail.first_error_offset = error_offset_ + from;
    tail.redactions += error.redactions;
  }
  return tail;
}

}  // namespace expanse::collect
