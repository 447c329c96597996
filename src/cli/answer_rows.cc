#include "cli/answer_rows.h"

#include <fmt/format.h>

#include <cmath>

namespace expanse::cli {

namespace v1 = intelligence::v1;

std::string Short(double value, int decimals) {
  if (!std::isfinite(value)) return std::string(kUnknown);
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
  }
  return text;
}

std::string ShowGib(std::uint64_t bytes) {
  const double gib = static_cast<double>(bytes) / static_cast<double>(std::uint64_t{1} << 30);
  const std::string text = Short(gib, gib >= 10 ? 1 : gib >= 1 ? 2 : 3);
  return text == "0" && bytes > 0 ? fmt::format("{:.1g}", gib) : text;
}

std::string ShowProbability(const v1::Probability& p) {
  if (!p.has_mean()) return std::string(kUnknown);
  std::string text = fmt::format("mean={:.2f}", p.mean());
  if (p.has_sigma()) text += fmt::format(" sigma={:.2f}", p.sigma());
  if (p.has_p10()) text += fmt::format(" p10={:.2f}", p.p10());
  if (p.has_p90()) text += fmt::format(" p90={:.2f}", p.p90());
  return text;
}

Cell ShowConfidence(v1::ConfidenceLabel label) {
  if (label == v1::CONFIDENCE_LABEL_LOW) return {"low", Tint::kBad};
  if (label == v1::CONFIDENCE_LABEL_MEDIUM) return {"medium", Tint::kBusy};
  if (label == v1::CONFIDENCE_LABEL_HIGH) return {"high", Tint::kGood};
  return {std::string(kUnknown)};
}

}  // namespace expanse::cli
