#include "daemon/spool/spool_drain.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/files.h"

namespace expanse::daemon::spool {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kStateFile = "spool.state";
constexpr std::size_t kMaxStateBytes = 64U << 20;
constexpr std::string_view kNodePrefix = "node:";
// Further ahead than the data plane takes, after correction.
constexpr auto kMaxAhead = 24h;
constexpr std::size_t kSmallestSlice = 32;
constexpr std::size_t kLargestSlice = 16'384;

bool IsTooFarAhead(const evidence::Record& record, base::WallTime now) {
  const base::WallTime latest = now + kMaxAhead;
  const auto* batch = std::get_if<evidence::SampleBatch>(&record.payload);
  return record.observed_at > latest ||
         (batch != nullptr && !batch->times.empty() && batch->times.back() > latest);
}

// When what a record tells of was so.
base::WallTime MomentOf(const evidence::Record& record) {
  const auto* batch = std::get_if<evidence::SampleBatch>(&record.payload);
  return batch != nullptr && !batch->times.empty() ? batch->times.front() : record.observed_at;
}

// A series of the host itself may leave the node open.
void NameNode(const std::string& host, evidence::Payload* payload) {
  auto* batch = std::get_if<evidence::SampleBatch>(payload);
  if (batch == nullptr) return;
  for (evidence::SeriesColumn& column : batch->columns) {
    if (column.node.empty()) column.node = host;
  }
}

}  // namespace

SpoolDrain::SpoolDrain(SpoolDrainOptions options, schedulers::KeyResolver& resolver,
                       Outboxes& outboxes, FileIo& files, base::Clock& clock)
    : options_(std::move(options)),
      resolver_(resolver),
      outboxes_(outboxes),
      files_(files),
      clock_(clock),
      worker_(std::make_shared<DrainWorker>(options_.worker, files, clock)),
      started_at_(clock.Mono()),
      saved_at_(started_at_) {
  LoadState();
  if (options_.own_thread)
    thread_.Start([worker = worker_](const std::stop_token& stop) { worker->Run(stop); });
}

SpoolDrain::~SpoolDrain() { (void)Stop(AbandonableThread::kPatience); }

void SpoolDrain::LoadState() {
  const std::string path = base::JoinPath(options_.state_dir, kStateFile);
  const auto bytes = base::ReadFile(path, kMaxStateBytes);
  if (!bytes && bytes.error().reason == "os.ENOENT") return;
  auto state =
      bytes ? DecodeDrainState(*bytes) : base::Result<DrainState>(std::unexpected(bytes.error()));
  if (state) {
    state_ = std::move(*state);
    return;
  }
  base::LogWarn("spool.state_set_aside", {{"message", state.error().message}});
  (void)files_.Rename(path, path + ".damaged");
}

base::Status SpoolDrain::SaveState(base::MonoTime now) {
  save_status_ = ReplaceFile(files_, options_.state_dir, kStateFile, EncodeDrainState(state_));
  if (save_status_) {
    state_dirty_ = false;
    saved_at_ = now;
  } else if (log_.Allow()) {
    base::LogError("spool.state_not_written", {{"message", save_status_.error().message}});
  }
  return save_status_;
}

SpoolDrain::Host& SpoolDrain::HostOf(const std::string& name) {
  const auto known = hosts_.find(name);
  if (known != hosts_.end()) return known->second;
  Host host;
  host.clock = HostClock(state_[name].correction);
  host.heard = started_at_;
  return hosts_.emplace(name, std::move(host)).first->second;
}

void SpoolDrain::Step(const collect::Tick& tick) {
  if (!options_.own_thread) worker_->Look();
  if (tick.mono >= next_parked_) {
    next_parked_ = tick.mono + 1s;
    AskForParked(tick);
  }
  const base::MonoTime until = clock_.Mono() + options_.step_budget;
  bool going = Send(until);
  while (going && clock_.Mono() < until) {
    std::vector<ReadSegment> segments = std::exchange(backlog_, {});
    if (segments.empty()) segments = worker_->Take(options_.batch_bytes);
    if (segments.empty()) break;
    going = Prepare(std::move(segments), tick, until) && Send(until);
  }
  const DrainWorkerFigures worker = worker_->figures();
  std::uint64_t quarantined = 0;
  for (const auto& [reason, count] : worker.quarantined) quarantined += count;
  if (quarantined != quarantined_) quarantined_at_ = tick.mono;
  quarantined_ = quarantined;
  // Segments that stay where they are must not be taken again after a restart.
  const bool due = tick.mono - saved_at_ >= options_.save_interval || worker.undeletable > 0;
  if (state_dirty_ && due) (void)SaveState(tick.mono);
}

bool SpoolDrain::Stop(std::chrono::milliseconds deadline) {
  if (state_dirty_) (void)SaveState(clock_.Mono());
  return thread_.Stop(deadline);
}

// Whether a segment is to be sorted now. Notes the host's clock; a correction counts from this
// segment on, and there is one at most per host and batch.
bool SpoolDrain::Admit(ReadSegment* segment, std::set<std::string>* corrected,
                       bool* state_changed) {
  Host& host = HostOf(segment->host);
  HostState& state = state_[segment->host];
  if (segment->again || segment->gone) return true;
  if (!segment->noted) {
    segment->noted = true;
    state.Saw(segment->name.stream_id);
    (void)host.clock.Note(segment->name.stream_id, segment->handed_over, segment->sighting);
    if (host.last.stream_id == segment->name.stream_id &&
        segment->name.sequence > host.last.sequence + 1)
      figures_.missing += segment->name.sequence - host.last.sequence - 1;
    host.last = segment->name;
  }
  if (host.clock.correction() == state.correction) return true;
  if (!corrected->insert(segment->host).second) return false;
  state.Correct(host.clock.correction(), segment->name);
  base::LogInfo("spool.clock_corrected",
                {{"host", segment->host}, {"ahead_s", base::ToSeconds(state.correction)}});
  *state_changed = true;
  return true;
}

// Sorts segments into batch_, one at least and as many as there is time for. False: not now, for
// the corrections are not on disk.
bool SpoolDrain::Prepare(std::vector<ReadSegment> segments, const collect::Tick& tick,
                         base::MonoTime until) {
  std::set<std::string> corrected;
  std::set<std::string> later;  // hosts whose further segments have to wait for the next batch
  bool state_changed = false;
  std::vector<ReadSegment> admitted;
  for (ReadSegment& segment : segments) {
    if (!later.contains(segment.host) && !Admit(&segment, &corrected, &state_changed))
      later.insert(segment.host);
    (later.contains(segment.host) ? backlog_ : admitted).push_back(std::move(segment));
  }
  if (state_changed || !save_status_) {
    if (!SaveState(tick.mono)) {
      admitted.insert(admitted.end(), std::make_move_iterator(backlog_.begin()),
                      std::make_move_iterator(backlog_.end()));
      backlog_ = std::move(admitted);
      return false;
    }
  }
  auto next = admitted.begin();
  do {
    if (next == admitted.end()) break;
    Sort(std::move(*next++), tick);
  } while (clock_.Mono() < until);
  backlog_.insert(backlog_.begin(), std::make_move_iterator(next),
                  std::make_move_iterator(admitted.end()));
  return true;
}

void SpoolDrain::Sort(ReadSegment segment, const collect::Tick& tick) {
  Host& host = HostOf(segment.host);
  Passing passing{.host = segment.host,
                  .name = segment.name,
                  .file = FormatSegmentName(segment.name),
                  .end = batch_.records.size(),
                  .waits_for = {},
                  .verdict = {}};
  std::set<std::string> waited_for;
  if (segment.again) {
    host.asked.erase(passing.file);
    if (const auto parked = host.parked.find(passing.file); parked != host.parked.end())
      waited_for = parked->second;
    for (const std::string& what : waited_for) host.unknown[what].files.erase(passing.file);
  } else if (host.heard != tick.mono) {
    host.heard = tick.mono;
    const bool reads_files = std::ranges::none_of(host.rows, [](const evidence::HealthRow& row) {
      return row.collector == "job_files" && row.reason == "no_permission";
    });
    resolver_.OnSampler(segment.host, tick.wall, reads_files);
  }
  if (segment.gone) {
    passing.verdict = "gone";
    batch_.passing.push_back(std::move(passing));
    return;
  }
  if (!segment.again &&
      (state_[segment.host].WasTaken(segment.name) || host.done.contains(passing.file))) {
    ++figures_.repeated;
    worker_->Delete(segment.host, segment.name);
    return;
  }
  if (segment.evidence.status) {
    host.rows = std::move(segment.evidence.status->rows);
    std::erase_if(host.rows, [](const evidence::HealthRow& row) {
      return row.status == evidence::HealthStatus::kOk ||
             row.status == evidence::HealthStatus::kDisabled;
    });
  }
  const auto correction = state_[segment.host].CorrectionOf(segment.name);
  for (evidence::Record& record : segment.evidence.records) {
    CorrectTimes(correction, &record);
    NameNode(segment.host, &record.payload);
    bool waited_for_node = false;
    if (segment.again) {
      // Of a segment that waited only what it waited for is left.
      const evidence::ExecutionKey* key = KeyOf(record.payload);
      const bool waited_for_job = key != nullptr && waited_for.contains(key->identity);
      for (std::string_view node : NodesOf(record.payload)) {
        waited_for_node =
            waited_for_node || waited_for.contains(std::string(kNodePrefix).append(node));
      }
      if (!waited_for_job && !waited_for_node) continue;
    }
    // What waited for its node has not been offered to the resolver yet.
    const bool offered = segment.again && !waited_for_node;
    if (FateOf(&record, offered, &host, tick, &passing) == Fate::kSend)
      batch_.records.push_back(std::move(record));
  }
  passing.end = batch_.records.size();
  if (!segment.again) ++figures_.segments;
  batch_.passing.push_back(std::move(passing));
}

SpoolDrain::Fate SpoolDrain::FateOf(evidence::Record* record, bool offered, Host* host,
                                    const collect::Tick& tick, Passing* passing) {
  if (IsTooFarAhead(*record, tick.wall)) {
    passing->verdict = "spool.clock";
    return Fate::kDrop;
  }
  const base::WallTime at = MomentOf(*record);
  for (std::string_view node : NodesOf(record->payload)) {
    if (node != passing->host && !resolver_.IsNodeOf(node, passing->host))
      return Hold(std::string(kNodePrefix).append(node), at, host, tick, passing);
  }
  evidence::ExecutionKey* key = KeyOf(record->payload);
  if (key == nullptr) return Fate::kSend;
  const auto* seen = std::get_if<evidence::ExecutionObservation>(&record->payload);
  if (seen != nullptr && !offered && resolver_.OnLifecycle(*seen, passing->host, at)) {
    batch_.told = true;
    return Fate::kTaken;
  }
  // Earlier records of the job go first; samples have an order of their own.
  const auto unknown = host->unknown.find(key->identity);
  const bool earlier_wait = unknown != host->unknown.end() && !unknown->second.files.empty() &&
                            *unknown->second.files.begin() < passing->file;
  const bool samples = std::holds_alternative<evidence::SampleBatch>(record->payload);
  auto resolved =
      earlier_wait && !samples ? std::nullopt : resolver_.Resolve(*key, at, passing->host);
  if (!resolved) return Hold(key->identity, at, host, tick, passing);
  if (unknown != host->unknown.end() && unknown->second.files.empty()) host->unknown.erase(unknown);
  *key = *std::move(resolved);
  return Fate::kSend;
}

SpoolDrain::Fate SpoolDrain::Hold(const std::string& what, base::WallTime at, Host* host,
                                  const collect::Tick& tick, Passing* passing) {
  // Whoever names ever new jobs must not fill the controller's memory.
  if (host->waits + passing->waits_for.size() >= options_.waits_per_host) {
    ++figures_.unknown;
    passing->verdict = "spool.unknown_job";
    return Fate::kDrop;
  }
  Unknown& unknown =
      host->unknown.try_emplace(what, Unknown{.since = tick.mono, .at = at}).first->second;
  unknown.last_seen = tick.mono;
  if (tick.mono - unknown.since < options_.unknown_wait) {
    unknown.files.insert(passing->file);
    passing->waits_for.insert(what);
    return Fate::kHold;
  }
  ++figures_.unknown;
  // One segment is enough for people to look at.
  if (!std::exchange(unknown.kept_one, true))
    passing->verdict = what.starts_with(kNodePrefix) ? "spool.forged_node" : "spool.unknown_job";
  return Fate::kDrop;
}

// A slice is to take an eighth to a half of the budget, so that a slow disk or a slow machine makes
// no step longer, and a fast one does not wait for the disk more often than it has to.
void SpoolDrain::Pace(base::Duration took, std::size_t records) {
  if (took > options_.step_budget / 2) slice_ = std::max(slice_ / 2, kSmallestSlice);
  if (took < options_.step_budget / 8 && records == slice_)
    slice_ = std::min(slice_ * 2, kLargestSlice);
}

// Puts batch_ into the outboxes. False: some of it is left for the next step.
bool SpoolDrain::Send(base::MonoTime until) {
  // What the resolver took of these segments: once they are gone, nobody else has it.
  if (batch_.told && !resolver_.FlushReports(outboxes_, clock_.Now())) return false;
  batch_.told = false;
  while (true) {
    const auto left = std::span(batch_.records).subspan(batch_.sent);
    const auto slice = left.first(std::min(slice_, left.size()));
    const base::MonoTime began = clock_.Mono();
    const auto done = outboxes_.EmitRecords(slice);
    const base::MonoTime ended = clock_.Mono();
    if (done.status) Pace(ended - began, slice.size());
    batch_.sent += done.taken;
    figures_.records += done.taken;
    while (!batch_.passing.empty() && batch_.passing.front().end <= batch_.sent) {
      Finish(batch_.passing.front());
      batch_.passing.pop_front();
    }
    emit_status_ = done.status;
    if (done.status) {
      if (batch_.sent == batch_.records.size()) break;
      if (ended >= until) return false;
      continue;
    }
    if (done.status.error().code != base::Code::kInvalidArgument) return false;
    ++batch_.sent;  // it will never be taken
    ++figures_.refused;
  }
  batch_ = {};
  return true;
}

void SpoolDrain::Finish(const Passing& passing) {
  Host& host = HostOf(passing.host);
  if (const auto before = host.parked.find(passing.file); before != host.parked.end())
    host.waits -= before->second.size();
  if (passing.verdict.empty() && !passing.waits_for.empty()) {
    host.waits += passing.waits_for.size();
    host.parked.insert_or_assign(passing.file, passing.waits_for);
    worker_->Park(passing.host, passing.name);
    return;
  }
  // Whoever waited for more than the verdict was about waits no longer.
  for (const std::string& what : passing.waits_for) host.unknown[what].files.erase(passing.file);
  host.parked.erase(passing.file);
  if (passing.verdict.empty()) {
    worker_->Delete(passing.host, passing.name);
  } else if (passing.verdict != "gone") {
    worker_->Quarantine(passing.host, passing.name, passing.verdict);
  }
  MarkDone(passing.host, &host, passing.name);
}

// The mark of a stream moves up to its first segment that still waits.
void SpoolDrain::MarkDone(const std::string& host_name, Host* host, const SegmentName& name) {
  host->done.insert(FormatSegmentName(name));
  const auto waiting = host->parked.lower_bound(name.stream_id);
  const bool waits = waiting != host->parked.end() && waiting->first.starts_with(name.stream_id);
  HostState& state = state_[host_name];
  for (auto it = host->done.lower_bound(name.stream_id);
       it != host->done.end() && it->starts_with(name.stream_id) &&
       (!waits || *it < waiting->first);
       it = host->done.erase(it)) {
    state.MarkTaken(*ParseSegmentName(*it));
    state_dirty_ = true;
  }
}

void SpoolDrain::AskForParked(const collect::Tick& tick) {
  figures_.waiting = 0;
  for (auto& [name, host] : hosts_) {
    figures_.waiting += host.parked.size();
    for (auto it = host.unknown.begin(); it != host.unknown.end();) {
      const std::string_view what = it->first;
      Unknown& unknown = it->second;
      bool ready = tick.mono - unknown.since >= options_.unknown_wait;
      if (!ready && !unknown.files.empty()) {
        ready = what.starts_with(kNodePrefix)
                    ? resolver_.IsNodeOf(what.substr(kNodePrefix.size()), name)
                    : resolver_
                          .Resolve({.source_type = evidence::SourceType::kSlurm,
                                    .identity = std::string(what)},
                                   unknown.at, name)
                          .has_value();
      }
      for (const std::string& file : unknown.files) {
        if (!ready || !host.parked.contains(file) || !host.asked.insert(file).second) continue;
        worker_->ReadAgain(name, *ParseSegmentName(file));
      }
      const bool over =
          unknown.files.empty() && tick.mono - unknown.last_seen >= options_.unknown_wait;
      it = over ? host.unknown.erase(it) : std::next(it);
    }
  }
}

}  // namespace expanse::daemon::spool
