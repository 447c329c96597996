// The state file: JobTable::Encode and Decode. docs/formats/slurm-state.md.
#include <bit>
#include <cstring>
#include <string>
#include <type_traits>

#include "base/crypto.h"
#include "schedulers/slurm/job_table.h"

namespace expanse::schedulers::slurm {
namespace {

using base::Code;

constexpr std::string_view kMagic = "EXPSLURM";
constexpr std::uint32_t kVersion = 2;
constexpr std::size_t kMaxRuns = 4'000'000;

constexpr std::uint8_t kFinal = 1;
constexpr std::uint8_t kGuessed = 2;
constexpr std::uint8_t kBundled = 4;

template <typename T>
void Put(std::string& out, T value) {
  static_assert(std::is_integral_v<T>);
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out += static_cast<char>(static_cast<std::make_unsigned_t<T>>(value) >> (8 * i));
}

void PutText(std::string& out, std::string_view text) {
  Put(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

// Reads little-endian numbers; once something is missing, all that follows is zero and ok() false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  template <typename T>
  T Get() {
    if (left_.size() < sizeof(T)) ok_ = false;
    if (!ok_) return 0;
    std::make_unsigned_t<T> value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value = static_cast<std::make_unsigned_t<T>>(
          value | static_cast<std::make_unsigned_t<T>>(static_cast<unsigned char>(left_[i]))
                      << (8 * i));
    }
    left_.remove_prefix(sizeof(T));
    return static_cast<T>(value);
  }
  std::string_view GetText() {
    const auto size = Get<std::uint32_t>();
    if (left_.size() < size) ok_ = false;
    if (!ok_) return {};
    const std::string_view text = left_.substr(0, size);
    left_.remove_prefix(size);
    return text;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return left_.empty(); }

 private:
  std::string_view left_;
  bool ok_ = true;
};

// What stands between the magic and the checksum, if that holds.
std::optional<std::string_view> CheckedBody(std::string_view bytes) {
  if (bytes.size() < kMagic.size() + 8 || !bytes.starts_with(kMagic)) return std::nullopt;
  Reader trailer(bytes.substr(bytes.size() - 4));
  bytes.remove_suffix(4);
  if (trailer.Get<std::uint32_t>() != base::Crc32c(bytes)) return std::nullopt;
  return bytes.substr(kMagic.size());
}

void PutRun(std::string& out, RunId id, const TrackedRun& run) {
  Put(out, id.job_id);
  Put(out, id.submitted_s);
  Put(out, run.row_hash);
  Put(out, run.final_hash);
  Put(out, run.started_s);
  Put(out, run.ended_s);
  Put(out, run.emitted_s);
  Put(out, run.gone_s);
  Put(out, run.node_count);
  Put(out, static_cast<std::uint8_t>(run.phase));
  Put(out, static_cast<std::uint8_t>((run.final ? kFinal : 0) | (run.guessed ? kGuessed : 0) |
                                     (run.bundled ? kBundled : 0)));
}

// False for a run that makes no sense.
bool GetRun(Reader& reader, RunId& id, TrackedRun& run) {
  id.job_id = reader.Get<std::uint32_t>();
  id.submitted_s = reader.Get<std::int64_t>();
  run.row_hash = reader.Get<std::uint64_t>();
  run.final_hash = reader.Get<std::uint64_t>();
  run.started_s = reader.Get<std::int64_t>();
  run.ended_s = reader.Get<std::int64_t>();
  run.emitted_s = reader.Get<std::int64_t>();
  run.gone_s = reader.Get<std::int64_t>();
  run.node_count = reader.Get<std::uint32_t>();
  const auto phase = reader.Get<std::uint8_t>();
  const auto flags = reader.Get<std::uint8_t>();
  run.phase = static_cast<RunPhase>(phase);
  run.final = (flags & kFinal) != 0;
  run.guessed = (flags & kGuessed) != 0;
  run.bundled = (flags & kBundled) != 0;
  return reader.ok() && phase >= 1 && phase <= 3 && id.job_id != 0;
}

}  // namespace

std::string JobTable::Encode() const {
  std::string out;
  out.reserve(64 + runs_.size() * 64);
  out += kMagic;
  Put(out, kVersion);
  PutText(out, cluster_);
  Put(out, marks.hash_seed);
  Put(out, marks.accounting_cursor_s);
  Put(out, static_cast<std::uint32_t>(runs_.size()));
  for (const auto& [id, run] : runs_) PutRun(out, id, run);
  Put(out, static_cast<std::uint32_t>(sluids_.size()));
  for (const auto& [sluid, id] : sluids_) {
    PutText(out, sluid);
    Put(out, id.job_id);
    Put(out, id.submitted_s);
  }
  Put(out, base::Crc32c(out));
  return out;
}

std::string JobTable::ClusterOf(std::string_view bytes) {
  const auto body = CheckedBody(bytes);
  if (!body) return {};
  Reader reader(*body);
  if (reader.Get<std::uint32_t>() != kVersion) return {};
  return std::string(reader.GetText());
}

base::Status JobTable::Decode(std::string_view bytes) {
  const auto corrupt = base::Fail(Code::kDataLoss, "table.corrupt",
                                  "the remembered jobs are damaged and are started anew");
  const auto body = CheckedBody(bytes);
  if (!body) return corrupt;
  Reader reader(*body);
  if (reader.Get<std::uint32_t>() != kVersion) {
    return base::Fail(Code::kFailedPrecondition, "table.version",
                      "the remembered jobs were written by another version and are started anew");
  }
  if (reader.GetText() != cluster_) {
    return base::Fail(Code::kFailedPrecondition, "table.cluster",
                      "the remembered jobs are of another cluster and are left out");
  }
  TableMarks read_marks;
  read_marks.hash_seed = reader.Get<std::uint64_t>();
  read_marks.accounting_cursor_s = reader.Get<std::int64_t>();
  Runs runs;
  const auto count = reader.Get<std::uint32_t>();
  if (count > kMaxRuns) return corrupt;
  for (std::uint32_t i = 0; i < count; ++i) {
    RunId id;
    TrackedRun run;
    if (!GetRun(reader, id, run)) return corrupt;
    runs.insert_or_assign(runs.end(), id, std::move(run));
  }
  std::unordered_map<std::string, RunId> sluids;
  const auto sluid_count = reader.Get<std::uint32_t>();
  for (std::uint32_t i = 0; i < sluid_count && reader.ok(); ++i) {
    std::string sluid(reader.GetText());
    RunId id;
    id.job_id = reader.Get<std::uint32_t>();
    id.submitted_s = reader.Get<std::int64_t>();
    sluids.insert_or_assign(std::move(sluid), id);
  }
  if (!reader.ok() || !reader.at_end()) return corrupt;
  marks = read_marks;
  runs_ = std::move(runs);
  sluids_ = std::move(sluids);
  return {};
}

}  // namespace expanse::schedulers::slurm
