#include "schedulers/slurm/row_filter.h"

#include <bit>
#include <cstring>

namespace expanse::schedulers::slurm {
namespace {

// Odd constants with evenly spread bits: digits of pi and e.
constexpr std::uint64_t kA = 0x243f6a8885a308d3ULL;
constexpr std::uint64_t kB = 0xb7e151628aed2a6bULL;

std::uint64_t Fold(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t Load(const char* bytes, std::size_t count) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, count);
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
  return value;
}

}  // namespace

std::uint64_t HashBytes(std::uint64_t seed, std::string_view bytes) {
  const std::size_t size = bytes.size();
  std::uint64_t hash = Fold(seed ^ kA, kB ^ size);
  while (bytes.size() >= 16) {
    hash = Fold(Load(bytes.data(), 8) ^ kA ^ hash, Load(bytes.data() + 8, 8) ^ kB);
    bytes.remove_prefix(16);
  }
  const std::size_t first = bytes.size() < 8 ? bytes.size() : 8;
  hash = Fold(Load(bytes.data(), first) ^ kA ^ hash,
              Load(bytes.data() + first, bytes.size() - first) ^ kB);
  return Fold(hash ^ kB, kA);
}

bool RowFilter::IsNew(std::uint32_t job_id, std::uint64_t hash) {
  const auto [it, added] = rows_.try_emplace(job_id);
  it->second.listing = listing_;
  if (!added && it->second.hash == hash) return false;
  it->second.hash = hash;
  return true;
}

void RowFilter::NotTaken(std::uint32_t job_id) {
  if (const auto found = rows_.find(job_id); found != rows_.end()) found->second.hash = 0;
}

std::vector<std::uint32_t> RowFilter::EndListing() {
  std::vector<std::uint32_t> gone;
  std::erase_if(rows_, [&](const auto& entry) {
    if (entry.second.listing == listing_) return false;
    gone.push_back(entry.first);
    return true;
  });
  return gone;
}

}  // namespace expanse::schedulers::slurm
