// Any bytes as a source file under any name: normalisation settles, never grows, and equal text
// gives equal fingerprints.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "intelligence/history/fingerprint.h"

using expanse::intelligence::history::Fingerprint;
using expanse::intelligence::history::MakeArgumentsPrint;
using expanse::intelligence::history::MakeFingerprint;
using expanse::intelligence::history::NormaliseSource;
using expanse::intelligence::history::Similarity;
using expanse::intelligence::history::SourceText;

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

// The first line is the name, the rest the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find('\n');
  const std::string_view name = input.substr(0, end);
  const std::string_view text = end == std::string_view::npos ? "" : input.substr(end + 1);

  const std::string once = NormaliseSource(name, text);
  Require(once.size() <= text.size() + 1);
  Require(NormaliseSource(name, once) == once);

  const SourceText files[] = {{.path = name, .role = "script", .data = text}};
  const SourceText normal[] = {{.path = name, .role = "script", .data = once}};
  const Fingerprint print = MakeFingerprint(files, 0);
  const Fingerprint again = MakeFingerprint(normal, 0);
  Require(print.bundle_key == again.bundle_key && print.signature == again.signature);
  Require(print.shape_hash == again.shape_hash && print.numbers.size() == again.numbers.size());
  Require(print.signature.empty() || Similarity(print.signature, again.signature) == 1);

  std::vector<std::string> words;
  for (const std::string_view word : expanse::base::SplitSpaces(text)) words.emplace_back(word);
  Require(MakeArgumentsPrint(words).hash.size() == 32);
  return 0;
}
