// What a sampler on a compute node cannot know: which run of which job an id means. The sampler
// calls what it sees by node-local names, "job:<raw id>" or "sluid:<id>"; whoever knows the
// scheduler's table says which execution that is when the controller takes the sampler's records.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "evidence/execution.h"
#include "evidence/records.h"

namespace expanse::schedulers {

class EvidenceSink;

// Implemented by the observer of a scheduler with samplers. Not thread-safe: asked on the thread
// that calls Observe, thousands of times in a step, so answers come from memory.
class KeyResolver {
 public:
  virtual ~KeyResolver() = default;
  // The run that `local` meant at `at` (the controller's clock) on `host`. Ids are recycled and
  // requeued, so the time counts. Nothing: not known yet, or it never ran there: a machine may tell
  // of its own jobs only. Asked again about every second for some minutes.
  virtual std::optional<evidence::ExecutionKey> Resolve(const evidence::ExecutionKey& local,
                                                        base::WallTime at,
                                                        std::string_view host) = 0;
  // Whether the scheduler has a node `node` on the machine `host`: several slurmd may share one
  // host. A sampler may name no other node than its own host where this is not so.
  virtual bool IsNodeOf(std::string_view node, std::string_view host) const { return node == host; }
  // A sampler saw a job begin or end, or what it used; `seen.key` is node-local. Called once per
  // record, before its Resolve, so that a look-up at the scheduler can begin. True: it is taken;
  // whoever takes it sends on what is to be known of it, and the record itself goes nowhere. (Of a
  // job on several nodes no node knows the whole.)
  virtual bool OnLifecycle(const evidence::ExecutionObservation& seen, std::string_view host,
                           base::WallTime at) {
    (void)seen;
    (void)host;
    (void)at;
    return false;
  }
  // What became of the records that OnLifecycle took goes to `sink`. True when all of it is there:
  // only then may what they came from be deleted. Called once for many of them.
  virtual bool FlushReports(EvidenceSink& sink, base::WallTime at) {
    (void)sink;
    (void)at;
    return true;
  }
  // The sampler of `host` was heard: a segment of it came. `reads_files`: it has not said that it
  // may not read files of jobs.
  virtual void OnSampler(std::string_view host, base::WallTime at, bool reads_files) {
    (void)host;
    (void)at;
    (void)reads_files;
  }
  // Machines on which jobs have run for a while, spelled like their samplers' directories. For
  // health.
  virtual std::vector<std::string> BusyHosts() const { return {}; }
};

}  // namespace expanse::schedulers
