// New values in the spelling of old ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace expanse::workload::sbatch {

// A size of at least `bytes` as `like` is written ("128G", "16000", "4gb"): rounded up in its unit,
// or in a smaller one where that would add more than an eighth.
std::string SpellMemory(std::uint64_t bytes, std::string_view like);

// A time of at least `seconds` as `like` is written ("90", "1:30:00", "1-00:00:00"): the same
// fields with the same number of digits. More fields where the time has hours or minutes that
// `like` has no field for; "HH:MM:SS" where `like` is no time.
std::string SpellTime(std::int64_t seconds, std::string_view like);

}  // namespace expanse::workload::sbatch
