// Takes secrets out of text that is about to leave a process: logs, source files, command lines.
// What is recognised: credentials in assignments, flags, JSON, URLs and HTTP headers; private key
// blocks; JWTs; the key formats that well-known providers document; our own exp_* secrets. Every
// other byte stays as it is, whatever its encoding.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace expanse::collect {

// What stands in the place of a secret. Never recognised as a secret itself.
inline constexpr std::string_view kRedactionMark = "[redacted]";

// A part of a text that holds a secret, as byte offsets [begin, end).
struct SecretSpan {
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct RedactedText {
  std::string text;
  std::uint32_t redactions = 0;  // how many spans were replaced
};

// Where the secrets of `text` are: sorted, merged where they touch. Linear in the length of the
// text (RE2), about 100 MB/s. Thread-safe, as is all below; the patterns are compiled at the first
// call (about 3 ms).
std::vector<SecretSpan> FindSecrets(std::string_view text);

// `text` with each secret replaced by kRedactionMark. Idempotent: a second pass changes nothing.
RedactedText Redact(std::string_view text);

// Where in `original` the bytes stood that one mark of the redacted text, at `at`, replaces.
struct RedactedSpan {
  SecretSpan original;
  std::size_t at = 0;
};

struct PlacedRedaction {
  std::string text;                 // as Redact() gives it
  std::vector<RedactedSpan> spans;  // in order, one for each mark that was put in
};

// Redact(), and what every mark stands for, so that the secrets can be put back here later.
PlacedRedaction RedactWithPlaces(std::string_view text);

// The arguments of a command, each redacted, and also the one behind a flag that takes a secret
// ("--token", "abc"). `redactions` (may be null) is raised by the number of replacements.
std::vector<std::string> RedactArguments(const std::vector<std::string>& arguments,
                                         std::uint32_t* redactions);

}  // namespace expanse::collect
