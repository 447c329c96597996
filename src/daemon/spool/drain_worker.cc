#include "daemon/spool/drain_worker.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace expanse::daemon::spool {
namespace {

using namespace std::chrono_literals;

constexpr auto kServerSkewEvery = 60s;
constexpr auto kStuckAgainAfter = 60s;
// Some file systems show a name before all of its content.
constexpr int kTornLooks = 3;

bool IsVerdict(const base::Error& error) {
  return error.reason.starts_with("spool.") || error.reason.starts_with("evidence.") ||
         error.reason == "files.too_large";
}

// "spool.too_large" -> "too_large", for file names and figures.
std::string_view WordOf(std::string_view reason) { return reason.substr(reason.rfind('.') + 1); }

}  // namespace

DrainWorker::DrainWorker(DrainWorkerOptions options, FileIo& files, base::Clock& clock)
    : options_(std::move(options)), clock_(clock), reader_(options_.reader, files) {}

// --- for the capture thread

std::vector<ReadSegment> DrainWorker::Take(std::size_t max_bytes) {
  std::vector<ReadSegment> taken;
  std::size_t bytes = 0;
  std::scoped_lock lock(mutex_);
  while (!ready_.empty() && bytes < max_bytes) {
    bytes += ready_.front().bytes;
    taken.push_back(std::move(ready_.front()));
    ready_.pop_front();
  }
  ready_bytes_ -= bytes;
  if (!taken.empty() && ready_bytes_ < options_.ready_bytes / 2) {
    wanted_ = true;
    wake_.notify_all();
  }
  return taken;
}

void DrainWorker::Ask(Request request) {
  std::scoped_lock lock(mutex_);
  requests_.push_back(std::move(request));
}

void DrainWorker::Delete(const std::string& host, const SegmentName& name) {
  Ask({.kind = Request::Kind::kDelete, .host = host, .name = name, .reason = {}});
}
void DrainWorker::Quarantine(const std::string& host, const SegmentName& name,
                             std::string_view reason) {
  Ask({.kind = Request::Kind::kQuarantine,
       .host = host,
       .name = name,
       .reason = std::string(reason)});
}
void DrainWorker::Park(const std::string& host, const SegmentName& name) {
  Ask({.kind = Request::Kind::kPark, .host = host, .name = name, .reason = {}});
}
void DrainWorker::ReadAgain(const std::string& host, const SegmentName& name) {
  Ask({.kind = Request::Kind::kReadAgain, .host = host, .name = name, .reason = {}});
}

DrainWorkerFigures DrainWorker::figures() const {
  std::scoped_lock lock(mutex_);
  return figures_;
}

// --- the worker's thread

void DrainWorker::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    Look();
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, stop, options_.look_interval, [this] { return wanted_; });
    wanted_ = false;
  }
  DoRequests();  // what the last step was done with
}

void DrainWorker::Look() {
  const base::MonoTime began = clock_.Mono();
  {
    std::scoped_lock lock(mutex_);
    figures_.inside_since = began;
  }
  read_status_ = {};
  base::Status looked = LookAt();
  if (looked) looked = read_status_;
  std::uint64_t backlog = 0;
  for (const auto& [name, host] : hosts_) backlog += host.listed;
  std::scoped_lock lock(mutex_);
  figures_.inside_since.reset();
  figures_.look_seconds = base::ToSeconds(clock_.Mono() - began);
  figures_.reason = looked ? "" : looked.error().reason;
  figures_.message = looked ? "" : looked.error().message;
  figures_.hosts = hosts_.size();
  figures_.backlog = backlog + ready_.size();
}

base::Status DrainWorker::LookAt() {
  ++look_;
  looking_at_ = clock_.Now();
  if (!reader_.is_open() || reader_.IsStale()) {
    looked_at_ = {};
    // Never later: a spool that vanished has to come back, not be made anew below its mount point.
    const std::string& spool = options_.reader.spool;
    // Samplers may have another user; our umask is not meant for them.
    if (look_ == 1 && options_.make_spool && ::mkdir(spool.c_str(), 0755) == 0)
      (void)::chmod(spool.c_str(), 0755);
    EXPANSE_RETURN_IF_ERROR(reader_.Open());
    sees_at_once_ = reader_.SeesAtOnce();
    next_server_skew_ = {};
  }
  DoRequests();
  if (!sees_at_once_ && clock_.Mono() >= next_server_skew_) {
    server_skew_ = reader_.ServerSkew(clock_.Now());
    next_server_skew_ = clock_.Mono() + kServerSkewEvery;
  }
  EXPANSE_RETURN_IF_ERROR(LookAtHosts());
  looked_at_ = looking_at_;
  ReadAhead();
  return {};
}

void DrainWorker::DoRequests() {
  std::vector<Request> requests;
  {
    std::scoped_lock lock(mutex_);
    requests = std::exchange(requests_, {});
  }
  if (!reader_.is_open()) return;
  for (const Request& request : requests) Do(request);
  if (clock_.Mono() < next_stuck_) return;
  next_stuck_ = clock_.Mono() + kStuckAgainAfter;
  for (auto& [name, host] : hosts_) {
    std::vector<std::string> stuck;
    for (const auto& [file, known] : host.files) {
      if (known.where == Where::kStuck) stuck.push_back(file);
    }
    for (const std::string& file : stuck) {
      if (!reader_.Remove(name, *ParseSegmentName(file))) continue;
      host.files.erase(file);
      std::scoped_lock lock(mutex_);
      --figures_.undeletable;
      ++figures_.deleted;
    }
  }
}

void DrainWorker::Move(Host* host, File* file, Where where) {
  if (file->where == Where::kListed) --host->listed;
  if (file->where == Where::kParked) --host->parked;
  file->where = where;
  if (where == Where::kListed) ++host->listed;
  if (where == Where::kParked) ++host->parked;
}

void DrainWorker::Do(const Request& request) {
  const auto host = hosts_.find(request.host);
  const auto file = host == hosts_.end() ? std::map<std::string, File>::iterator()
                                         : host->second.files.find(FormatSegmentName(request.name));
  if (host == hosts_.end() || file == host->second.files.end()) {
    if (request.kind == Request::Kind::kReadAgain) TellGone(request.host, request.name);
    return;
  }
  switch (request.kind) {
    case Request::Kind::kDelete: {
      Move(&host->second, &file->second, Where::kStuck);
      const bool removed = reader_.Remove(request.host, request.name).has_value();
      if (removed) host->second.files.erase(file);
      std::scoped_lock lock(mutex_);
      ++(removed ? figures_.deleted : figures_.undeletable);
      break;
    }
    case Request::Kind::kQuarantine:
      SetAside(request.host, request.name, request.reason);
      break;
    case Request::Kind::kPark:
      Move(&host->second, &file->second, Where::kParked);
      break;
    case Request::Kind::kReadAgain:
      file->second.again = true;
      Move(&host->second, &file->second, Where::kListed);
      break;
  }
}

void DrainWorker::TellGone(const std::string& host, const SegmentName& name) {
  ReadSegment gone;
  gone.host = host;
  gone.name = name;
  gone.again = true;
  gone.gone = true;
  std::scoped_lock lock(mutex_);
  ready_.push_back(std::move(gone));
}

void DrainWorker::SetAside(const std::string& host, const SegmentName& name,
                           std::string_view reason) {
  const std::string word(WordOf(reason));
  const auto done = reader_.Quarantine(host, name, word);
  Host& known = hosts_.find(host)->second;
  const auto file = known.files.find(FormatSegmentName(name));
  // What can be neither moved nor deleted (a directory) is not looked at again.
  Move(&known, &file->second, Where::kStuck);
  if (done) known.files.erase(file);
  if (quarantine_log_.Allow()) {
    base::LogWarn("spool.quarantined",
                  {{"host", host}, {"segment", FormatSegmentName(name)}, {"reason", word}});
  }
  std::scoped_lock lock(mutex_);
  ++figures_.quarantined[word];
  figures_.quarantined_last = host + ": " + word;
  if (!done) ++figures_.undeletable;
}

base::Status DrainWorker::LookAtHosts() {
  EXPANSE_ASSIGN_OR_RETURN(const Hosts found, reader_.ListHosts());
  for (const HostEntry& entry : found.hosts) {
    auto known = hosts_.find(entry.name);
    if (known == hosts_.end()) {
      if (hosts_.size() >= options_.max_hosts) continue;
      known = hosts_.emplace(entry.name, Host{}).first;
      // It was not there at the look before, so all in it came since then.
      known->second.looked_at = looked_at_;
      known->second.more = looked_at_ == base::WallTime{};
    }
    known->second.seen_at_look = look_;
    ListHost(entry.name, entry, &known->second);
  }
  std::erase_if(hosts_, [this](const auto& host) { return host.second.seen_at_look != look_; });
  std::scoped_lock lock(mutex_);
  figures_.strange = found.strange;
  figures_.untrusted = found.untrusted;
  return {};
}

void DrainWorker::ListHost(const std::string& name, const HostEntry& entry, Host* host) {
  if (entry.changed_ns != host->changed_ns) {
    host->changed_ns = entry.changed_ns;
    host->looks_since_change = 0;
  }
  const bool knew_all = !host->more && host->looked_at != base::WallTime{};
  const bool refill = host->more && host->listed == 0;
  if (host->looks_since_change >= options_.listings_per_change && !refill) {
    if (!host->more) host->looked_at = looking_at_;
    return;
  }
  std::vector<std::string> known;
  known.reserve(host->files.size());
  for (const auto& [file, state] : host->files) known.push_back(file);
  const std::size_t room =
      options_.listed_per_host - std::min(host->listed, options_.listed_per_host);
  if (room == 0) return;
  const auto listing = reader_.List(name, room, known);
  if (!listing) {
    std::scoped_lock lock(mutex_);
    ++figures_.read_failures;
    return;
  }
  ++host->looks_since_change;
  const bool came_just_now = knew_all && !listing->more;
  for (const SegmentName& segment : listing->segments) {
    File file;
    if (came_just_now) {
      file.sighting = Sighting{.handed_over = {},
                               .seen = looking_at_,
                               .looked_before = host->looked_at,
                               .prompt = sees_at_once_,
                               .file_time = {}};
    }
    host->files.emplace(FormatSegmentName(segment), std::move(file));
    ++host->listed;
  }
  host->more = listing->more;
  host->looked_at = listing->more ? base::WallTime{} : looking_at_;
}

bool DrainWorker::HasRoom() const {
  std::scoped_lock lock(mutex_);
  return ready_bytes_ < options_.ready_bytes;
}

// One segment of each host in turn, so that none has to wait for another's backlog.
void DrainWorker::ReadAhead() {
  std::vector<std::string> turns;
  for (const auto& [name, host] : hosts_) {
    if (host.listed > 0) turns.push_back(name);
  }
  const auto first = std::ranges::lower_bound(turns, next_host_);
  std::ranges::rotate(turns, first);
  while (!turns.empty()) {
    std::vector<std::string> again;
    for (const std::string& name : turns) {
      if (!HasRoom()) {
        next_host_ = name;
        return;
      }
      if (ReadOne(name, &hosts_.find(name)->second)) again.push_back(name);
    }
    turns = std::move(again);
  }
}

bool DrainWorker::ReadOne(const std::string& name, Host* host) {
  const auto next = std::ranges::find_if(
      host->files, [](const auto& file) { return file.second.where == Where::kListed; });
  if (next == host->files.end() || host->parked >= options_.parked_per_host) return false;
  const SegmentName segment_name = *ParseSegmentName(next->first);
  File& file = next->second;
  auto read = reader_.Read(name, segment_name);
  auto taken = [&]() -> base::Result<ReadSegment> {
    if (!read) return std::unexpected(std::move(read.error()));
    EXPANSE_ASSIGN_OR_RETURN(Segment segment, DecodeSegment(read->bytes));
    if (segment.header.stream_id != segment_name.stream_id ||
        segment.header.sequence != segment_name.sequence ||
        segment_name.events == segment.events.empty()) {
      return base::Fail(base::Code::kPermissionDenied, "spool.forged",
                        "its name is another segment's");
    }
    ReadSegment ready{.host = name,
                      .name = segment_name,
                      .handed_over = segment.handed_over,
                      .sighting = std::exchange(file.sighting, std::nullopt),
                      .evidence = {},
                      .bytes = read->bytes.size(),
                      .again = file.again};
    if (ready.sighting) {
      ready.sighting->handed_over = ready.handed_over;
      if (server_skew_) ready.sighting->file_time = read->modified - *server_skew_;
    }
    EXPANSE_ASSIGN_OR_RETURN(ready.evidence, TakeEvidence(std::move(segment), name));
    return ready;
  }();
  if (taken) {
    Move(host, &file, Where::kTaken);
    std::scoped_lock lock(mutex_);
    ready_bytes_ += taken->bytes;
    ready_.push_back(std::move(*taken));
    return true;
  }
  const base::Error& error = taken.error();
  if (file.again && (error.reason == "os.ENOENT" || IsVerdict(error))) {
    TellGone(name, segment_name);
  }
  if (error.reason == "os.ENOENT") {  // its writer made room
    Move(host, &file, Where::kStuck);
    host->files.erase(next);
    return true;
  }
  if (error.reason == "spool.torn" && ++file.torn_looks < kTornLooks) return false;
  if (IsVerdict(error)) {
    SetAside(name, segment_name, error.reason);
    return true;
  }
  // The file system's trouble: the same segment again at the next look, for order's sake.
  if (read_status_) read_status_ = std::unexpected(error);
  std::scoped_lock lock(mutex_);
  ++figures_.read_failures;
  return false;
}

}  // namespace expanse::daemon::spool
