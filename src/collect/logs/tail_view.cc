#include "collect/logs/tail_view.h"

#include <re2/re2.h>

#include <algorithm>
#include <string>

#include "base/result.h"
#include "collect/logs/redact.h"

namespace expanse::collect {
namespace {

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

// Where the shown part of `raw` begins; the stream's first `kept_offset` bytes are not in it.
std::size_t ShownBegin(std::string_view raw, std::uint64_t kept_offset, std::size_t tail) {
  std::size_t begin = raw.size() > tail ? raw.size() - tail : 0;
  if (kept_offset == 0) return begin;
  // The first line has lost its beginning, and with it perhaps the name of a secret.
  std::size_t safe = SafeBegin(raw, std::max(begin, tail));
  if (safe > begin && raw.size() > tail) safe = begin + SafeBegin(raw.substr(begin), tail / 4);
  return std::max(begin, safe);
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

evidence::LogTail ShowTail(const TailView& view, const TailOptions& options, bool final) {
  evidence::LogTail tail;
  tail.total_bytes = view.total;
  std::string_view raw = view.kept;
  if (!final) raw = raw.substr(0, SafeEnd(raw));
  const std::uint64_t kept_offset = view.total - view.kept.size();
  // Secrets are looked for in tail and context; then the context goes.
  const std::size_t begin = ShownBegin(raw, kept_offset, options.tail);
  RedactedText redacted = RedactFrom(raw, begin);
  tail.offset = kept_offset + begin;
  tail.data = std::move(redacted.text);
  tail.redactions = redacted.redactions;

  if (view.error && view.error->offset < tail.offset) {
    const std::string_view region = view.error->bytes;
    const std::size_t from = view.error->cut ? SafeBegin(region, options.error_before) : 0;
    std::size_t to = region.size();
    if (!final || view.error->more_follows) to = std::max(from, SafeEnd(region));
    RedactedText error = Redact(region.substr(from, to - from));
    tail.first_error = std::move(error.text);
    tail.first_error_offset = view.error->offset + from;
    tail.redactions += error.redactions;
  }
  return tail;
}

}  // namespace expanse::collect
