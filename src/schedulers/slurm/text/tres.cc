#include "schedulers/slurm/text/tres.h"

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "schedulers/slurm/text/values.h"

namespace expanse::schedulers::slurm {
namespace {

constexpr std::size_t kMaxEntries = 1024;
constexpr std::size_t kMaxIndices = 4096;

// Text of one entry at a time; commas inside () and [] do not separate.
template <typename Take>
void ForEachEntry(std::string_view text, Take take) {
  std::size_t start = 0;
  std::size_t entries = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '(' || c == '[') ++depth;
    if ((c == ')' || c == ']') && depth > 0) --depth;
    if (c != ',' || (depth > 0 && i < text.size())) continue;
    const std::string_view entry = base::Trim(text.substr(start, i - start));
    start = i + 1;
    if (entry.empty()) continue;
    if (++entries > kMaxEntries) return;
    take(entry);
  }
}

struct KeyValue {
  std::string_view key;
  std::string_view value;
};

// The database's own numbers of the fixed resources; slurmdbd tables keep them for ever.
std::string_view KeyName(std::string_view key) {
  if (key == "1") return "cpu";
  if (key == "2") return "mem";
  if (key == "3") return "energy";
  if (key == "4") return "node";
  if (key == "5") return "billing";
  if (key == "6") return "fs/disk";
  if (key == "7") return "vmem";
  if (key == "8") return "pages";
  return key;
}

std::optional<KeyValue> CutEntry(std::string_view entry) {
  const std::size_t equals = entry.rfind('=');
  if (equals == std::string_view::npos || equals == 0) return std::nullopt;
  return KeyValue{.key = KeyName(entry.substr(0, equals)), .value = entry.substr(equals + 1)};
}

std::optional<double> Number(std::string_view text) {
  if (text.empty() || !base::IsDigit(text.front())) return std::nullopt;
  if (const auto value = base::ParseDouble(text)) {
    if (*value >= 0 && *value < 1e15) return value;
    return std::nullopt;
  }
  const auto count = ParseCount(text);
  if (!count) return std::nullopt;
  return static_cast<double>(*count);
}

std::optional<std::uint64_t> Bytes(std::string_view text, std::uint64_t bare_unit) {
  const auto memory = ParseMemory(text, bare_unit);
  if (!memory || memory->scope != MemoryScope::kTotal) return std::nullopt;
  return memory->bytes;
}

std::uint32_t Saturate(std::uint64_t value) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}

void AddType(std::string_view type, std::string& types) {
  if (type.empty()) return;
  for (std::string_view known : base::Split(types, ',')) {
    if (known == type) return;
  }
  if (!types.empty()) types += ',';
  types += type;
}

// Adds up GPUs by the rule of the header.
class GpuSum {
 public:
  void Add(std::string_view type, std::uint64_t count) {
    if (type.empty()) {
      plain_ = count;
    } else {
      typed_ = typed_.value_or(0) + std::min<std::uint64_t>(count, 1U << 31);
      if (count > 0) AddType(type, types_);
    }
  }
  std::optional<std::uint32_t> count() const {
    const auto& sum = plain_ ? plain_ : typed_;
    if (!sum) return std::nullopt;
    return Saturate(*sum);
  }
  const std::string& types() const { return types_; }

 private:
  std::optional<std::uint64_t> plain_;
  std::optional<std::uint64_t> typed_;
  std::string types_;
};

// "0,3", "0-3,5"; "N/A" and what is no such list: none.
std::vector<std::uint32_t> ParseIndices(std::string_view text) {
  std::vector<std::uint32_t> indices;
  for (std::string_view piece : base::Split(text, ',')) {
    const std::size_t dash = piece.find('-');
    const auto first = base::ParseInt<std::uint32_t>(piece.substr(0, dash));
    const auto last = dash == std::string_view::npos
                          ? first
                          : base::ParseInt<std::uint32_t>(piece.substr(dash + 1));
    if (!first || !last || *last < *first || *last - *first >= kMaxIndices - indices.size()) {
      return {};
    }
    for (std::uint64_t index = *first; index <= *last; ++index) {
      indices.push_back(static_cast<std::uint32_t>(index));
    }
  }
  return indices;
}

// Takes what stands in brackets behind an entry.
void TakeBrackets(std::string_view& entry, Gres& gres) {
  const std::size_t open = entry.find('(');
  if (open == std::string_view::npos) return;
  std::string_view inside = entry.substr(open + 1);
  entry = entry.substr(0, open);
  if (inside.ends_with(')')) inside.remove_suffix(1);
  constexpr std::string_view kIndex = "IDX:";
  if (inside.starts_with(kIndex)) gres.indices = ParseIndices(inside.substr(kIndex.size()));
}

std::optional<Gres> ParseGresEntry(std::string_view entry) {
  Gres gres;
  TakeBrackets(entry, gres);
  if (entry.starts_with("gres:") || entry.starts_with("gres/")) entry.remove_prefix(5);
  std::vector<std::string_view> parts;
  std::string_view rest = entry;
  // At most name, type and count; further colons (as in "no_consume") are part of none.
  while (!rest.empty() && parts.size() < 4) {
    const std::size_t end = rest.find_first_of(":=");
    parts.push_back(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  std::erase(parts, std::string_view("no_consume"));
  if (parts.empty() || parts[0].empty() || base::IsDigit(parts[0].front())) return std::nullopt;
  gres.name = parts[0];
  if (parts.size() > 1) {
    // Types may begin with a digit ("1080ti") or be one ("1080"); the last part is the count.
    const auto count = ParseCount(parts.back());
    if (count) gres.count = *count;
    if (count ? parts.size() > 2 : true) gres.type = parts[1];
  }
  return gres;
}

}  // namespace

Tres ParseTres(std::string_view text) {
  Tres tres;
  GpuSum gpus;
  ForEachEntry(text, [&](std::string_view entry) {
    const auto item = CutEntry(entry);
    if (!item) return;
    if (item->key == "cpu") {
      tres.cpus = Number(item->value);
    } else if (item->key == "mem") {
      tres.memory_bytes = Bytes(item->value, kMebibyte);
    } else if (item->key == "node") {
      tres.nodes = ParseCount(item->value);
    } else if (item->key == "billing") {
      tres.billing = Number(item->value);
    } else if (item->key == "gres/gpu" || item->key.starts_with("gres/gpu:")) {
      const auto count = ParseCount(item->value);
      if (count) gpus.Add(item->key.substr(std::min<std::size_t>(9, item->key.size())), *count);
    }
  });
  tres.gpus = gpus.count();
  tres.gpu_type = gpus.types();
  return tres;
}

evidence::Resources ResourcesFromTres(std::string_view text) {
  evidence::Resources resources;
  if (IsAbsent(text)) return resources;
  const Tres tres = ParseTres(text);
  resources.cpu_cores = tres.cpus;
  resources.memory_bytes = tres.memory_bytes;
  resources.gpu_count = tres.gpus;
  resources.gpu_type = tres.gpu_type;
  if (tres.nodes) resources.node_count = Saturate(*tres.nodes);
  resources.tres = text;
  return resources;
}

std::vector<Gres> ParseGres(std::string_view text) {
  std::vector<Gres> list;
  if (IsAbsent(text)) return list;
  ForEachEntry(text, [&](std::string_view entry) {
    if (auto gres = ParseGresEntry(entry)) list.push_back(std::move(*gres));
  });
  return list;
}

GpuCount GpusOf(const std::vector<Gres>& list) {
  GpuCount gpus;
  std::uint64_t sum = 0;
  bool found = false;
  for (const Gres& gres : list) {
    if (gres.name != "gpu") continue;
    found = true;
    sum += std::min<std::uint64_t>(gres.count, 1U << 31);
    if (gres.count > 0) AddType(gres.type, gpus.type);
  }
  if (found) gpus.count = Saturate(sum);
  return gpus;
}

TresUsage ParseTresUsage(std::string_view text) {
  TresUsage usage;
  ForEachEntry(text, [&](std::string_view entry) {
    const auto item = CutEntry(entry);
    if (!item) return;
    if (item->key == "cpu") {
      const auto elapsed = ParseElapsed(item->value);
      if (elapsed) usage.cpu_s = std::chrono::duration<double>(*elapsed).count();
    } else if (item->key == "mem") {
      usage.memory_bytes = Bytes(item->value, kBytes);
    } else if (item->key == "vmem") {
      usage.virtual_memory_bytes = Bytes(item->value, kBytes);
    } else if (item->key == "fs/disk") {
      usage.disk_bytes = Bytes(item->value, kBytes);
    } else if (item->key == "pages") {
      usage.pages = ParseCount(item->value);
    } else if (item->key == "energy") {
      usage.energy_j = Number(item->value);
    } else if (item->key == "gres/gpuutil") {
      usage.gpu_utilisation_pct = Number(item->value);
    } else if (item->key == "gres/gpumem") {
      usage.gpu_memory_bytes = Bytes(item->value, kBytes);
    }
  });
  return usage;
}

}  // namespace expanse::schedulers::slurm
