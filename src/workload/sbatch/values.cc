#include "workload/sbatch/values.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/text.h"

namespace expanse::workload::sbatch {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::size_t kMaxGresItems = 1000;
constexpr std::int64_t kMaxMinutes = 0xfffffffe;  // what slurmctld can keep

std::string_view SkipPlus(std::string_view text) {
  if (text.size() > 1 && text.front() == '+') text.remove_prefix(1);
  return text;
}

// A count with the suffix that strtol and its callers take: "2", "4k", "1M".
std::optional<std::uint64_t> ParseScaled(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::uint64_t scale = 1;
  switch (text.back()) {
    case 'k':
    case 'K':
      scale = 1024;
      break;
    case 'm':
    case 'M':
      scale = std::uint64_t{1024} * 1024;
      break;
    default:
      break;
  }
  if (scale != 1) text.remove_suffix(1);
  const auto value = base::ParseUnsignedDigits(SkipPlus(text));
  if (!value || *value > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return *value * scale;
}

std::optional<std::vector<std::int64_t>> ParseFields(std::string_view text, std::size_t most) {
  std::vector<std::int64_t> fields;
  for (const std::string_view piece : base::Split(text, ':')) {
    const auto value = base::ParseUnsignedDigits(piece);
    if (!value || *value > std::numeric_limits<std::int32_t>::max() || fields.size() == most)
      return std::nullopt;
    fields.push_back(static_cast<std::int64_t>(*value));
  }
  return fields;
}

}  // namespace

std::optional<Time> ParseTime(std::string_view text) {
  const std::string lower = base::ToLower(text);
  if (lower == "-1" || lower == "unlimited" || lower == "infinite") return Time{.unlimited = true};
  std::int64_t seconds = 0;
  const std::size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto days = base::ParseUnsignedDigits(text.substr(0, dash));
    if (!days || *days > 1'000'000) return std::nullopt;
    seconds = static_cast<std::int64_t>(*days) * 86400;
    if (const std::string_view rest = text.substr(dash + 1); !rest.empty()) {
      const auto fields = ParseFields(rest, 3);
      if (!fields) return std::nullopt;
      std::int64_t unit = 3600;
      for (const std::int64_t field : *fields) {
        seconds += field * unit;
        unit /= 60;
      }
    }
  } else {
    const auto fields = ParseFields(text, 3);
    if (!fields) return std::nullopt;
    std::int64_t unit = fields->size() == 3 ? 3600 : 60;
    for (const std::int64_t field : *fields) {
      seconds += field * unit;
      unit /= 60;
    }
  }
  const std::int64_t minutes = (seconds + 59) / 60;
  if (minutes == 0) return Time{.unlimited = true};
  if (minutes >= kMaxMinutes) return std::nullopt;
  return Time{.unlimited = false, .seconds = minutes * 60};
}

std::optional<std::uint64_t> ParseMemory(std::string_view text) {
  text = SkipPlus(text);
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto value = base::ParseUnsignedDigits(text.substr(0, digits));
  if (!value) return std::nullopt;
  const std::string unit = base::ToLower(text.substr(digits));
  std::uint64_t mib = *value;
  std::uint64_t scale = 1;
  if (unit == "k" || unit == "kb") {
    mib = *value / 1024 + (*value % 1024 != 0 ? 1 : 0);
  } else if (unit == "g" || unit == "gb") {
    scale = 1024;
  } else if (unit == "t" || unit == "tb") {
    scale = kMiB;
  } else if (!unit.empty() && unit != "m" && unit != "mb") {
    return std::nullopt;
  }
  // Slurm counts MiB; what would not fit into bytes is more than any machine has.
  if (mib > std::numeric_limits<std::int64_t>::max() / kMiB / scale) return std::nullopt;
  return mib * scale * kMiB;
}

std::optional<std::uint32_t> ParseCount(std::string_view text) {
  const auto value = base::ParseUnsignedDigits(SkipPlus(text));
  if (!value || *value == 0 || *value > std::numeric_limits<std::int32_t>::max())
    return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

std::optional<NodeCount> ParseNodes(std::string_view text) {
  while (!text.empty() && base::IsSpace(text.back())) text.remove_suffix(1);
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) {
    const auto count = ParseScaled(text);
    if (!count || *count > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
    const auto nodes = static_cast<std::uint32_t>(*count);
    return NodeCount{.min = nodes, .max = nodes, .min_begin = 0, .min_end = text.size()};
  }
  const auto min = dash == 0 ? std::optional<std::uint64_t>(1) : ParseScaled(text.substr(0, dash));
  const auto max = ParseScaled(text.substr(dash + 1));
  if (!min || !max || *max > std::numeric_limits<std::int32_t>::max() || *max < *min)
    return std::nullopt;
  return NodeCount{.min = static_cast<std::uint32_t>(*min),
                   .max = static_cast<std::uint32_t>(*max),
                   .min_begin = 0,
                   .min_end = dash};
}

namespace {

std::optional<GresItem> ParseGresItem(std::string_view item, std::size_t begin, bool gpus) {
  GresItem gres;
  gres.begin = begin;
  const std::string_view words = item.substr(0, item.find('('));
  std::vector<std::string_view> parts = base::Split(words, ':');
  std::size_t name_parts = gpus ? 1 : 2;
  if (!gpus) {
    gres.name = parts.front();
    if (gres.name.empty()) return std::nullopt;
  }
  const std::size_t equals = words.find('=');
  if (!gpus && equals != std::string_view::npos) {  // "gpu=2", "gpu:a100=2"
    gres.name = words.substr(0, std::min(words.find(':'), equals));
    const std::size_t colon = words.find(':');
    if (colon < equals) gres.type = words.substr(colon + 1, equals - colon - 1);
    gres.count = ParseScaled(words.substr(equals + 1));
    if (!gres.count) return std::nullopt;
    gres.count_begin = begin + equals + 1;
    gres.count_end = begin + words.size();
    return gres;
  }
  if (parts.size() > name_parts + 1) return std::nullopt;
  gres.count_begin = gres.count_end = begin + words.size();
  const bool has_last = parts.size() > (gpus ? 0U : 1U);
  if (has_last && !parts.back().empty() && base::IsDigit(parts.back().front())) {
    if (const auto count = ParseScaled(parts.back())) {
      gres.count = count;
      gres.count_begin = begin + words.size() - parts.back().size();
      parts.pop_back();
    }
  }
  const std::size_t type_at = gpus ? 0 : 1;
  if (parts.size() > type_at + 1) return std::nullopt;
  if (parts.size() == type_at + 1) gres.type = parts[type_at];
  if (parts.size() > type_at && gres.type.empty()) return std::nullopt;
  return gres;
}

}  // namespace

std::optional<std::vector<GresItem>> ParseGres(std::string_view text, bool gpus) {
  std::vector<GresItem> items;
  std::size_t at = 0;
  while (at <= text.size()) {
    std::size_t end = at;
    for (int depth = 0; end < text.size() && (depth > 0 || text[end] != ','); ++end) {
      if (text[end] == '(') ++depth;
      if (text[end] == ')') --depth;
    }
    std::size_t begin = at;
    if (!gpus && (text.substr(at).starts_with("gres/") || text.substr(at).starts_with("gres:")))
      begin += 5;
    auto item = ParseGresItem(text.substr(begin, end - begin), begin, gpus);
    if (!item) return std::nullopt;
    if (items.size() == kMaxGresItems) return std::nullopt;
    item->begin = at;
    items.push_back(*item);
    at = end + 1;
  }
  return items;
}

std::optional<std::uint32_t> ParseArraySize(std::string_view text) {
  const std::size_t percent = text.find('%');
  if (percent != std::string_view::npos) {
    if (!base::ParseUnsignedDigits(text.substr(percent + 1))) return std::nullopt;
    text = text.substr(0, percent);
  }
  if (text.size() > 1 && text.front() == '[' && text.back() == ']')
    text = text.substr(1, text.size() - 2);
  std::uint64_t count = 0;
  for (const std::string_view range : base::Split(text, ',')) {
    const std::size_t colon = range.find(':');
    std::uint64_t step = 1;
    if (colon != std::string_view::npos) {
      const auto parsed = base::ParseUnsignedDigits(range.substr(colon + 1));
      if (!parsed || *parsed == 0) return std::nullopt;
      step = *parsed;
    }
    const std::string_view ends = range.substr(0, colon);
    const std::size_t dash = ends.find('-');
    const auto first = base::ParseUnsignedDigits(ends.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : base::ParseUnsignedDigits(ends.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    if (colon != std::string_view::npos && dash == std::string_view::npos) return std::nullopt;
    count += (*last - *first) / step + 1;
    if (count > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  }
  return static_cast<std::uint32_t>(count);
}

}  // namespace expanse::workload::sbatch
