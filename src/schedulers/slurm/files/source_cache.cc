#include "schedulers/slurm/files/source_cache.h"

#include <utility>

#include "base/crypto.h"
#include "base/text.h"

namespace expanse::schedulers::slurm {
namespace {

std::string HashOf(const SourceJob& job) {
  std::string all = std::to_string(job.uid);
  for (const std::string* part : {&job.working_directory, &job.command})
    all += '\0' + std::to_string(part->size()) + '\0' + *part;
  all += '\0';
  if (job.script) all += base::Sha256(*job.script);
  return base::Sha256(all);
}

collect::SourceRequest RequestOf(const SourceJob& job, const collect::SourceLimits& limits,
                                 const collect::FileOpener& open) {
  collect::SourceRequest request{.command = {},
                                 .program = {},
                                 .working_directory = job.working_directory,
                                 .extra = {},
                                 .limits = limits};
  for (std::string_view word : base::SplitSpaces(job.command)) request.command.emplace_back(word);
  if (job.script) {
    request.script = *job.script;
    if (!request.command.empty()) request.script_path = request.command.front();
  }
  request.open = open;
  return request;
}

std::size_t BytesOf(const evidence::SourceBundle& bundle) {
  std::size_t bytes = 0;
  for (const auto& file : bundle.files) bytes += file.path.size() + file.data.size() + 128;
  for (const auto& skip : bundle.skipped) bytes += skip.path.size() + skip.reason.size() + 64;
  return bytes;
}

}  // namespace

void SourceCache::DropOldest() {
  const auto oldest = entries_.find(order_.front());
  bytes_ -= oldest->second.bundle.bytes;
  entries_.erase(oldest);
  order_.pop_front();
}

CachedBundle SourceCache::Take(const SourceJob& job, const std::string& identity,
                               const collect::FileOpener& open, base::MonoTime now) {
  while (!order_.empty() && now - entries_.find(order_.front())->second.read_at > kMaxAge)
    DropOldest();
  std::string hash = HashOf(job);
  if (const auto known = entries_.find(hash); known != entries_.end()) {
    CachedBundle again = known->second.bundle;
    again.repeated = true;
    return again;
  }
  auto read = std::make_shared<evidence::SourceBundle>(
      collect::CollectSources(RequestOf(job, limits_, open)));
  CachedBundle taken{.bundle = read, .hash = {}, .bytes = BytesOf(*read), .first_of = identity};
  if (!read->files.empty()) taken.hash = evidence::BundleHash(*read);
  while (!order_.empty() && (order_.size() >= kMaxEntries || bytes_ + taken.bytes > kMaxBytes))
    DropOldest();
  bytes_ += taken.bytes;
  order_.push_back(hash);
  entries_.emplace(std::move(hash), Entry{taken, now});
  return taken;
}

}  // namespace expanse::schedulers::slurm
