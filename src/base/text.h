// Small text tools: numbers without locale or exceptions, UTF-8, escaping, edit distance.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace expanse::base {

inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }
inline bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::string_view Trim(std::string_view text);
// Pieces between separators, empty ones included; one empty piece for empty text.
std::vector<std::string_view> Split(std::string_view text, char separator);
// Pieces between runs of white space, no empty ones.
std::vector<std::string_view> SplitSpaces(std::string_view text);
std::string ToLower(std::string_view text);  // ASCII

// The whole of `text` as a decimal integer, or nothing (sign, overflow and junk included).
template <typename T>
std::optional<T> ParseInt(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}
std::optional<double> ParseDouble(std::string_view text);
// Digits only, at most 18 of them.
std::optional<std::uint64_t> ParseUnsignedDigits(std::string_view text);

// True for well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms).
bool IsValidUtf8(std::string_view bytes);
// Each byte that is not part of well-formed UTF-8 replaced by U+FFFD.
std::string ToValidUtf8(std::string_view bytes);
// Safe on a terminal and in one table cell: control characters, C1 codes and invalid bytes as \n,
// \t, \x1b, …; bidirectional overrides as \u202e. Other UTF-8 is kept.
std::string EscapeForDisplay(std::string_view bytes);
// Columns that a terminal uses for well-formed UTF-8 text (wide East Asian and emoji count two).
std::size_t DisplayWidth(std::string_view utf8);

// Damerau-Levenshtein distance, for "did you mean".
std::size_t EditDistance(std::string_view a, std::string_view b);
// The candidate nearest to `word` within distance 2, if there is one.
std::optional<std::string> NearestWord(std::string_view word,
                                       const std::vector<std::string>& candidates);

}  // namespace expanse::base
