#include "schedulers/slurm/text/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/text.h"
#include "schedulers/slurm/text/values.h"

namespace expanse::schedulers::slurm {
namespace {

constexpr std::uint64_t kMany = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kMaxBrackets = 8;  // of one host name

struct Range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::size_t width = 0;  // digits to pad to with zeros
};

// Either fixed text or, if there are ranges, a bracket.
struct Part {
  std::string_view text;
  std::vector<Range> ranges;
};

std::uint64_t Add(std::uint64_t a, std::uint64_t b) { return a > kMany - b ? kMany : a + b; }
std::uint64_t Times(std::uint64_t a, std::uint64_t b) {
  return a != 0 && b > kMany / a ? kMany : a * b;
}

std::uint64_t Count(const std::vector<Range>& ranges) {
  std::uint64_t count = 0;
  for (const Range& range : ranges) count = Add(count, Add(range.last - range.first, 1));
  return count;
}

std::uint64_t Count(const std::vector<Part>& parts) {
  std::uint64_t count = 1;
  for (const Part& part : parts) {
    if (!part.ranges.empty()) count = Times(count, Count(part.ranges));
  }
  return count;
}

// At most what the names of `parts` are long together.
std::uint64_t Bytes(const std::vector<Part>& parts) {
  std::uint64_t longest = 0;
  for (const Part& part : parts) {
    std::size_t digits = 0;
    for (const Range& range : part.ranges)
      digits = std::max({digits, range.width, fmt::formatted_size("{}", range.last)});
    longest += part.text.size() + digits;
  }
  return Times(Count(parts), longest);
}

std::optional<Range> ParseRange(std::string_view text) {
  const std::size_t dash = text.find('-');
  const std::string_view low = text.substr(0, dash);
  const auto first = base::ParseUnsignedDigits(low);
  if (!first) return std::nullopt;
  Range range{.first = *first, .last = *first, .width = low.size()};
  if (dash != std::string_view::npos) {
    const auto last = base::ParseUnsignedDigits(text.substr(dash + 1));
    if (!last || *last < *first) return std::nullopt;
    range.last = *last;
  }
  return range;
}

base::Error Syntax(std::string_view text) {
  return {.code = base::Code::kInvalidArgument,
          .reason = "slurm.hostlist_syntax",
          .message =
              fmt::format("not a list of hosts: {}", base::EscapeForDisplay(text.substr(0, 200)))};
}

// The names between commas outside brackets; nothing where brackets do not match.
std::optional<std::vector<std::string_view>> SplitNames(std::string_view text) {
  std::vector<std::string_view> names;
  bool inside = false;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '[' || c == ']') {
      if (inside == (c == '[')) return std::nullopt;
      inside = !inside;
    } else if (c == ',' && (!inside || i == text.size())) {
      if (inside) return std::nullopt;
      names.push_back(base::Trim(text.substr(start, i - start)));
      start = i + 1;
    }
  }
  return names;
}

std::optional<std::vector<Part>> ParseName(std::string_view name) {
  std::vector<Part> parts;
  std::size_t brackets = 0;
  while (!name.empty()) {
    const std::size_t open = name.find('[');
    if (open != 0) parts.push_back({.text = name.substr(0, open), .ranges = {}});
    if (open == std::string_view::npos) break;
    const std::size_t close = name.find(']', open);
    if (close == std::string_view::npos || ++brackets > kMaxBrackets) return std::nullopt;
    Part part;
    for (std::string_view piece : base::Split(name.substr(open + 1, close - open - 1), ',')) {
      const auto range = ParseRange(piece);
      if (!range) return std::nullopt;
      part.ranges.push_back(*range);
    }
    parts.push_back(std::move(part));
    name.remove_prefix(close + 1);
  }
  return parts;
}

// Control characters and blanks are in no host name; other bytes are let through.
bool IsHostText(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= 0x20 || byte == 0x7F || c == '/';
  });
}

base::Result<std::vector<std::vector<Part>>> Parse(std::string_view text) {
  std::vector<std::vector<Part>> names;
  if (IsAbsent(text)) return names;
  const auto pieces = SplitNames(base::Trim(text));
  if (!pieces) return std::unexpected(Syntax(text));
  for (std::string_view piece : *pieces) {
    auto parts = ParseName(piece);
    if (!parts || parts->empty() || !IsHostText(piece)) return std::unexpected(Syntax(text));
    names.push_back(std::move(*parts));
  }
  return names;
}

// All spellings of parts[at..] behind `prefix`. Depth is bounded by the number of parts.
void Expand(const std::vector<Part>& parts, std::size_t at, std::string& prefix,
            std::vector<std::string>& hosts) {
  if (at == parts.size()) {
    hosts.push_back(prefix);
    return;
  }
  const std::size_t length = prefix.size();
  if (parts[at].ranges.empty()) {
    prefix += parts[at].text;
    Expand(parts, at + 1, prefix, hosts);
    prefix.resize(length);
    return;
  }
  for (const Range& range : parts[at].ranges) {
    for (std::uint64_t number = range.first; number <= range.last; ++number) {
      fmt::format_to(std::back_inserter(prefix), "{:0{}}", number, range.width);
      Expand(parts, at + 1, prefix, hosts);
      prefix.resize(length);
    }
  }
}

}  // namespace

base::Result<std::vector<std::string>> ExpandHostlist(std::string_view text, std::size_t limit) {
  EXPANSE_ASSIGN_OR_RETURN(const auto names, Parse(text));
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  for (const auto& parts : names) {
    count = Add(count, Count(parts));
    bytes = Add(bytes, Bytes(parts));
  }
  if (count > limit || bytes > kMaxHostBytes) {
    return base::Fail(
        base::Code::kResourceExhausted, "slurm.hostlist_too_long",
        fmt::format("a list of {} hosts, {} bytes, over the limit of {}, {} bytes: {}", count,
                    bytes, limit, kMaxHostBytes, base::EscapeForDisplay(text.substr(0, 200))));
  }
  std::vector<std::string> hosts;
  hosts.reserve(count);
  std::string prefix;
  for (const auto& parts : names) Expand(parts, 0, prefix, hosts);
  return hosts;
}

base::Result<std::uint64_t> CountHosts(std::string_view text) {
  EXPANSE_ASSIGN_OR_RETURN(const auto names, Parse(text));
  std::uint64_t count = 0;
  for (const auto& parts : names) count = Add(count, Count(parts));
  return count;
}

}  // namespace expanse::schedulers::slurm
