#include "schedulers/slurm/text/version.h"

#include "base/text.h"

namespace expanse::schedulers::slurm {

std::optional<Version> ParseVersion(std::string_view text) {
  text = base::Trim(text);
  if (const std::size_t blank = text.rfind(' '); blank != std::string_view::npos) {
    text.remove_prefix(blank + 1);
  }
  text = text.substr(0, text.find('-'));
  Version version;
  int* const parts[] = {&version.year, &version.month, &version.micro};
  std::size_t count = 0;
  for (std::string_view part : base::Split(text, '.')) {
    const auto number = base::ParseUnsignedDigits(part);
    if (count == std::size(parts) || !number || *number > 9999) return std::nullopt;
    *parts[count++] = static_cast<int>(*number);
  }
  if (count < 2) return std::nullopt;
  return version;
}

}  // namespace expanse::schedulers::slurm
