#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "intelligence/history/execution_run.h"

namespace expanse::intelligence::history {
namespace {

// Integers as LEB128, texts with their length before them, doubles as their eight bytes in this
// machine's order (the file stays on it), optionals behind a byte that says whether they are there.
class Writer {
 public:
  void Field(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  void Field(const std::string& text) {
    Field(std::uint64_t{text.size()});
    out_ += text;
  }
  void Field(double value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out_.append(bytes, sizeof value);
  }
  void Field(const std::optional<double>& value) {
    out_ += value ? '\1' : '\0';
    if (value) Field(*value);
  }
  std::string Finish() { return std::move(out_); }

 private:
  std::string out_;
};

class Reader {
 public:
  explicit Reader(std::string_view in) : in_(in) {}
  bool Whole() const { return good_ && in_.empty(); }
  bool good() const { return good_; }

  void Field(std::uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<std::uint8_t>(Take(1)[0]);
      if (!good_) return;
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return;
    }
    good_ = false;
  }
  void Field(std::string& text) {
    std::uint64_t size = 0;
    Field(size);
    const std::string_view taken = Take(size);
    if (good_) text = taken;
  }
  void Field(double& value) {
    const std::string_view taken = Take(sizeof value);
    if (good_) std::memcpy(&value, taken.data(), sizeof value);
  }
  void Field(std::optional<double>& value) {
    value.reset();
    if (Take(1)[0] != '\0' && good_) Field(value.emplace());
  }

 private:
  // At least one byte, whatever is asked for.
  std::string_view Take(std::uint64_t size) {
    if (size > in_.size()) good_ = false;
    if (!good_) return std::string_view("\0", 1);
    const std::string_view taken = in_.substr(0, size);
    in_.remove_prefix(size);
    return taken;
  }
  std::string_view in_;
  bool good_ = true;
};

// The one list of fields, for both directions. `enums` are those that the caller keeps as numbers.
struct Numbers {
  std::uint64_t source_type = 0;
  std::uint64_t ending = 0;
  std::uint64_t submitted = 0;
  std::uint64_t is_floor = 0;
};

template <typename Stream, typename Indexed>
void EachField(Stream& stream, Indexed& indexed, Numbers& numbers) {
  stream.Field(numbers.source_type);
  stream.Field(numbers.ending);
  stream.Field(numbers.submitted);
  stream.Field(numbers.is_floor);
  stream.Field(indexed.compute_id);
  stream.Field(indexed.user);
  stream.Field(indexed.job_name);
  stream.Field(indexed.owner);
  stream.Field(indexed.arguments_hash);
  stream.Field(indexed.arguments_shape);
  stream.Field(indexed.array_index);
  auto& run = indexed.run;
  stream.Field(run.native_id);
  stream.Field(run.gpu_type);
  for (auto* amount :
       {&run.requested.cpu_cores, &run.requested.memory_bytes, &run.requested.gpu_count,
        &run.requested.walltime_s, &run.runtime_s, &run.memory_peak_bytes, &run.cpu_mean_cores,
        &run.cpu_peak_cores, &run.gpu_memory_peak_bytes, &run.gpu_memory_available_bytes,
        &run.gpu_utilisation_pct, &run.gpus_active})
    stream.Field(*amount);
}

}  // namespace

std::string EncodeRun(const IndexedRun& run) {
  Writer writer;
  Numbers numbers{.source_type = static_cast<std::uint64_t>(run.source_type),
                  .ending = static_cast<std::uint64_t>(run.run.ending),
                  .submitted = std::bit_cast<std::uint64_t>(run.run.submitted_micros),
                  .is_floor = run.run.memory_is_floor ? 1U : 0U};
  EachField(writer, run, numbers);
  writer.Field(std::uint64_t{run.numbers.size()});
  for (const double number : run.numbers) writer.Field(number);
  return writer.Finish();
}

std::optional<IndexedRun> DecodeRun(std::string_view bytes) {
  Reader reader(bytes);
  IndexedRun run;
  Numbers numbers;
  EachField(reader, run, numbers);
  std::uint64_t count = 0;
  reader.Field(count);
  if (!reader.good() || count > kMaxNumbers) return std::nullopt;
  run.numbers.resize(count);
  for (double& number : run.numbers) reader.Field(number);
  if (!reader.Whole() || numbers.ending > static_cast<std::uint64_t>(predict::Ending::kUnknown) ||
      numbers.source_type > static_cast<std::uint64_t>(evidence::SourceType::kHost))
    return std::nullopt;
  run.source_type = static_cast<evidence::SourceType>(numbers.source_type);
  run.run.ending = static_cast<predict::Ending>(numbers.ending);
  run.run.submitted_micros = std::bit_cast<std::int64_t>(numbers.submitted);
  run.run.memory_is_floor = numbers.is_floor != 0;
  return run;
}

}  // namespace expanse::intelligence::history
