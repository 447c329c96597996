// Whatever stands around it, a secret in a provider's format never comes out; a second pass changes
// nothing; and text without secrets stays as it is.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "collect/logs/redact.h"
#include "collect/logs/tail_ring.h"

using namespace expanse::collect;

namespace {

void CheckIdempotent(std::string_view text) {
  const RedactedText once = Redact(text);
  const RedactedText twice = Redact(once.text);
  if (twice.redactions != 0 || twice.text != once.text) std::abort();
  if (once.redactions == 0 && once.text != text) std::abort();
}

// Marks are told in order and in bounds. (What they stand for is all of what is missing but where a
// second secret began within a mark; users of it check that.)
void CheckPlaces(std::string_view text) {
  const PlacedRedaction placed = RedactWithPlaces(text);
  if (placed.text != Redact(text).text) std::abort();
  std::size_t at = 0;
  std::size_t original = 0;
  for (const RedactedSpan& span : placed.spans) {
    if (span.at < at || placed.text.compare(span.at, kRedactionMark.size(), kRedactionMark) != 0)
      std::abort();
    if (span.original.begin < original || span.original.end < span.original.begin ||
        span.original.end > text.size())
      std::abort();
    at = span.at + kRedactionMark.size();
    original = span.original.end;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckIdempotent(text);
  CheckPlaces(text);

  // Planted in the middle, with white space around it as a word of its own.
  static const std::string kSecrets[] = {
      std::string("gh") + "p_Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4fGh7j",
      std::string("hf") + "_Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4fGh7j",
      std::string("password=") + "Zq9zQq8yPp7xOo6wNn5v"};
  const std::size_t middle = size / 2;
  for (const std::string& secret : kSecrets) {
    std::string planted(text.substr(0, middle));
    planted += '\n';
    planted += secret;
    planted += '\n';
    planted += text.substr(middle);
    const std::string_view value = std::string_view(secret).substr(secret.find('=') + 1);
    if (Redact(planted).text.find(value) != std::string::npos) std::abort();
    // In pieces through the ring, as it comes from a pipe, nothing more gets out.
    TailRing ring({.tail = 512, .context = 512, .error_before = 64, .error_after = 128});
    const std::size_t piece = size > 0 ? 1 + data[0] % 64U : 7;
    for (std::size_t at = 0; at < planted.size(); at += piece) {
      ring.Append(std::string_view(planted).substr(at, piece));
      if (at % 5 == 0 && ring.Snapshot(/*final=*/false).data.find(value) != std::string::npos)
        std::abort();
    }
    const auto tail = ring.Snapshot(/*final=*/true);
    if (tail.data.find(value) != std::string::npos ||
        tail.first_error.find(value) != std::string::npos)
      std::abort();
  }
  return 0;
}
