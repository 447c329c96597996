#include "schedulers/slurm/backfill_state.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/log.h"

namespace expanse::schedulers::slurm {
namespace {

constexpr std::size_t kMostSpans = 10'000;
constexpr std::int64_t kMostSeconds = 253'402'300'800;  // year 10000

std::int64_t Seconds(base::WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
}

bool IsTime(const nlohmann::json& value) {
  return value.is_number_integer() && value.get<std::int64_t>() >= 0 &&
         value.get<std::int64_t>() <= kMostSeconds;
}

// False if it is not such a file, or of another cluster.
bool ReadInto(CoveredTime& covered, const std::string& text, std::string_view cluster) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("version", nlohmann::json()) != 1 ||
      json.value("cluster", nlohmann::json()) != cluster) {
    return false;
  }
  const auto done = json.find("done");
  if (done == json.end() || !done->is_array() || done->size() > kMostSpans) return false;
  for (const auto& span : *done) {
    if (!span.is_array() || span.size() != 2 || !IsTime(span[0]) || !IsTime(span[1])) return false;
    covered.Add({base::WallTime(std::chrono::seconds(span[0].get<std::int64_t>())),
                 base::WallTime(std::chrono::seconds(span[1].get<std::int64_t>()))});
  }
  return true;
}

}  // namespace

void CoveredTime::Add(TimeSpan span) {
  if (span.from >= span.to) return;
  std::vector<TimeSpan> apart;
  for (const TimeSpan& known : spans_) {
    if (known.to < span.from || known.from > span.to) {
      apart.push_back(known);
    } else {
      span = {std::min(span.from, known.from), std::max(span.to, known.to)};
    }
  }
  apart.insert(std::ranges::upper_bound(apart, span.from, {}, &TimeSpan::from), span);
  spans_ = std::move(apart);
}

std::vector<TimeSpan> CoveredTime::GapsIn(TimeSpan span) const {
  std::vector<TimeSpan> gaps;
  for (const TimeSpan& known : spans_) {
    if (known.to <= span.from) continue;
    if (known.from >= span.to) break;
    if (known.from > span.from) gaps.push_back({span.from, known.from});
    span.from = std::max(span.from, known.to);
  }
  if (span.from < span.to) gaps.push_back(span);
  return gaps;
}

base::Result<CoveredTime> LoadCoveredTime(const std::string& path, std::string_view cluster) {
  if (!base::Exists(path)) return CoveredTime{};
  EXPANSE_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path));
  CoveredTime covered;
  if (ReadInto(covered, text, cluster)) return covered;
  base::LogWarn("backfill.state_ignored",
                {{"path", path}, {"why", "damaged, or of another cluster"}});
  return CoveredTime{};
}

base::Status SaveCoveredTime(const std::string& path, std::string_view cluster,
                             const CoveredTime& covered) {
  auto done = nlohmann::json::array();
  for (const TimeSpan& span : covered.spans())
    done.push_back({Seconds(span.from), Seconds(span.to)});
  const nlohmann::json json = {{"version", 1}, {"cluster", cluster}, {"done", std::move(done)}};
  const std::string text =
      json.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
  return base::WriteFileAtomically(path, text + "\n", 0600);
}

}  // namespace expanse::schedulers::slurm
