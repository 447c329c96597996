#include "intelligence/history/fingerprint.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "base/crypto.h"
#include "base/text.h"
#include "intelligence/history/normalise.h"
#include "intelligence/history/shingles.h"

namespace expanse::intelligence::history {
namespace {

// Of all files together: what a capture holds. What is beyond counts for the key alone.
constexpr std::size_t kMaxShingledBytes = 1U << 20;
constexpr std::size_t kHashDigits = 32;  // 128 bits: none will ever be equal by chance

std::string ShortHash(std::string_view data) {
  std::string hex = base::Sha256Hex(data);
  hex.resize(kHashDigits);
  return hex;
}

bool IsNameChar(char c) {
  return base::IsDigit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Whether a name goes on before or behind a number: "v2", "16G", "1.2.3", "llama-3.1-8b".
bool NameBefore(std::string_view text, std::size_t at) {
  if (at == 0) return false;
  if (text[at - 1] == '-') return at > 1 && IsNameChar(text[at - 2]);
  return IsNameChar(text[at - 1]) || text[at - 1] == '.';
}
bool NameAfter(std::string_view text, std::size_t at) {
  if (at == text.size()) return false;
  if (text[at] == '-' || text[at] == '.') return at + 1 < text.size() && IsNameChar(text[at + 1]);
  return IsNameChar(text[at]);
}

// The number that begins at `at` and stands by itself, and where it ends.
std::optional<double> NumberAt(std::string_view text, std::size_t at, std::size_t* end) {
  if (!base::IsDigit(text[at]) || NameBefore(text, at)) return std::nullopt;
  constexpr std::size_t kLongest = 32;
  double value = 0;
  const std::string_view rest = text.substr(at, kLongest);
  const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  const std::size_t length = static_cast<std::size_t>(stop - rest.data());
  if (error != std::errc() || length == kLongest) return std::nullopt;
  if (NameAfter(text, at + length)) return std::nullopt;
  *end = at + length;
  return value;
}

// The text with its first kMaxNumbers numbers as "#", which goes to `numbers`.
std::string MaskNumbers(std::string_view text, std::vector<double>* numbers) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    const auto number = numbers->size() < kMaxNumbers ? NumberAt(text, at, &end) : std::nullopt;
    if (number) {
      numbers->push_back(*number);
      out += '#';
    } else {
      out += text[at];
    }
    at = end;
  }
  return out;
}

std::string KeyOf(std::vector<std::string> hashes) {
  std::sort(hashes.begin(), hashes.end());
  std::string all;
  for (const std::string& hash : hashes) all += hash;
  return all.empty() ? all : ShortHash(all);
}

}  // namespace

std::size_t EntryOf(std::span<const SourceText> files) {
  const auto at = std::ranges::find(files, "script", &SourceText::role);
  return at == files.end() ? 0 : static_cast<std::size_t>(at - files.begin());
}

std::string BundleKey(std::span<const FilePrint> files) {
  std::vector<std::string> hashes;
  for (const FilePrint& file : files) {
    if (file.is_source && !file.normalised_hash.empty()) hashes.push_back(file.normalised_hash);
  }
  return KeyOf(std::move(hashes));
}

Fingerprint MakeFingerprint(std::span<const SourceText> files, std::size_t entry) {
  Fingerprint print;
  print.entry = entry;
  ShingleSet shingles;
  std::size_t unshingled = kMaxShingledBytes;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const SourceText& file = files[i];
    const std::string text = NormaliseSource(file.path, file.data);
    FilePrint made{.path = std::string(file.path),
                   .role = std::string(file.role),
                   .content_hash = file.content_hash.empty() ? base::Sha256Hex(file.data)
                                                             : std::string(file.content_hash),
                   .normalised_hash = text.empty() ? std::string() : ShortHash(text)};
    made.is_source =
        i == entry || file.role == "script" || LanguageOf(file.path, text) != Language::kUnknown;
    if (made.is_source) {
      const std::string_view taken = std::string_view(text).substr(0, unshingled);
      shingles.Add(taken);
      unshingled -= taken.size();
    }
    if (i == entry) print.shape_hash = ShortHash(MaskNumbers(text, &print.numbers));
    print.files.push_back(std::move(made));
  }
  print.bundle_key = BundleKey(print.files);
  print.signature = MinHash(shingles.Take());
  return print;
}

double Similarity(const Signature& a, const Signature& b) {
  if (a.empty() || a.size() != b.size()) return 0;
  std::size_t equal = 0;
  for (std::size_t i = 0; i < a.size(); ++i) equal += a[i] == b[i] ? 1 : 0;
  return static_cast<double>(equal) / static_cast<double>(a.size());
}

ArgumentsPrint MakeArgumentsPrint(std::span<const std::string> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const std::size_t equals = word.find('=');
    if (IsOutputOption(word.substr(0, equals))) {
      const bool next = equals == std::string_view::npos && i + 1 < words.size() &&
                        !words[i + 1].starts_with('-');
      if (next) ++i;
      continue;
    }
    text += word;
    text += '\0';
  }
  ArgumentsPrint print;
  print.hash = ShortHash(text);
  print.shape = ShortHash(MaskNumbers(text, &print.numbers));
  return print;
}

std::string OwnerName(std::string_view kind, std::string_view name_space, std::string_view name) {
  std::string owner(kind);
  for (const std::string_view part : {name_space, name}) {
    owner += '/';
    owner += part;
  }
  return owner;
}

}  // namespace expanse::intelligence::history
