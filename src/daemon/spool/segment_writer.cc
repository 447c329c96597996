#include "daemon/spool/segment_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <variant>

#include "base/crypto.h"
#include "base/log.h"
#include "evidence/wire.h"
#include "expanse/data/v1/ingest_service.pb.h"

namespace expanse::daemon::spool {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kFlushSamplesAt = 1U << 20;
constexpr std::uint32_t kMaxRecordsPerSegment = 50'000;
constexpr auto kHungAfter = 30s;
constexpr auto kTellDropsFor = 1h;

// The queue holds what becomes evidence: nobody else may put anything there.
base::Status CheckPrivate(const std::string& directory) {
  struct stat info{};
  if (::lstat(directory.c_str(), &info) != 0) return base::FailErrno(errno, directory);
  if (S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() && (info.st_mode & 0022) == 0) return {};
  return base::Fail(base::Code::kPermissionDenied, "spool.queue_untrusted",
                    fmt::format("{}: others could put files there; it has to be a directory of the "
                                "sampler's user that nobody else may write to",
                                directory));
}

base::Result<base::UniqueFd> LockQueue(const std::string& directory) {
  const std::string path = base::JoinPath(directory, "lock");
  base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return base::FailErrno(errno, "open " + path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno != EWOULDBLOCK) return base::FailErrno(errno, "lock " + path);
  return base::Fail(base::Code::kFailedPrecondition, "spool.locked",
                    fmt::format("another sampler uses {}", directory));
}

bool IsOutOfSpace(const base::Error& error) {
  return error.reason == "os.ENOSPC" || error.reason == "os.EDQUOT";
}

}  // namespace

base::Result<std::unique_ptr<SegmentWriter>> SegmentWriter::Create(SegmentWriterOptions options,
                                                                   FileIo& files,
                                                                   base::Clock& clock) {
  if (!IsHostName(options.host)) {
    return base::Fail(base::Code::kInvalidArgument, "spool.host_name",
                      "a host's name has letters, digits, '-', '_' and '.' only");
  }
  EXPANSE_RETURN_IF_ERROR(base::MakeDirectories(options.queue_directory, 0700));
  EXPANSE_RETURN_IF_ERROR(CheckPrivate(options.queue_directory));
  EXPANSE_ASSIGN_OR_RETURN(base::UniqueFd lock, LockQueue(options.queue_directory));
  EXPANSE_ASSIGN_OR_RETURN(
      auto queue, PartQueue::Open(options.queue_directory, options.queue_max_bytes, files));
  return std::unique_ptr<SegmentWriter>(
      new SegmentWriter(std::move(options), std::move(lock), std::move(queue), files, clock));
}

SegmentWriter::SegmentWriter(SegmentWriterOptions options, base::UniqueFd lock,
                             std::unique_ptr<PartQueue> queue, FileIo& files, base::Clock& clock)
    : options_(std::move(options)),
      lock_(std::move(lock)),
      queue_(std::move(queue)),
      files_(files),
      clock_(clock),
      shipper_(std::make_shared<Shipper>(ShipperOptions{.spool = options_.spool,
                                                        .host = options_.host,
                                                        .max_bytes = options_.spool_max_bytes},
                                         queue_, files, clock)),
      stream_id_(base::NewUuid(clock.Now())),
      started_at_(clock.Now()),
      last_close_(clock.Mono()) {
  if (options_.own_thread) {
    thread_.Start([shipper = shipper_](const std::stop_token& stop) { shipper->Run(stop); });
  }
}

SegmentWriter::~SegmentWriter() { (void)Stop(AbandonableThread::kPatience); }

base::Status SegmentWriter::OpenSegment() {
  if (open_) return {};
  const SegmentName name{.stream_id = stream_id_, .sequence = next_sequence_, .events = false};
  Open open{.name = name, .path = PartPath(options_.queue_directory, name)};
  EXPANSE_ASSIGN_OR_RETURN(open.fd, files_.Create(open.path));
  const std::string header =
      SegmentEncoder::Begin({.stream_id = stream_id_,
                             .sequence = next_sequence_,
                             .begun = {.wall = clock_.Now(), .mono = clock_.Mono()},
                             .host = options_.host},
                            &open.encoder);
  if (auto written = files_.Write(open.fd.get(), header, 0); !written) {
    (void)files_.Remove(open.path);
    return written;
  }
  open.size = header.size();
  open_ = std::move(open);
  ++next_sequence_;
  next_record_ = 1;
  return {};
}

base::Status SegmentWriter::WriteAt(const std::string& bytes) {
  auto written = files_.Write(open_->fd.get(), bytes, static_cast<std::int64_t>(open_->size));
  // Half a block at the end is cut off by whoever reads it; here the next write goes over it.
  while (!written && IsOutOfSpace(written.error()) && queue_->DropOne())
    written = files_.Write(open_->fd.get(), bytes, static_cast<std::int64_t>(open_->size));
  return written;
}

base::Status SegmentWriter::WriteBlock(BlockKind kind, const std::vector<std::string>& records,
                                       std::size_t bytes) {
  auto done = OpenSegment();
  if (done) {
    SegmentEncoder encoder = open_->encoder;
    std::string block;
    encoder.AppendBlock(kind, records, &block);
    if (!queue_->MakeRoom(open_->size + block.size())) {
      done = base::Fail(base::Code::kResourceExhausted, "spool.full",
                        "the sampler's queue on the node is full");
    } else if (done = WriteAt(block); done) {
      open_->encoder = encoder;
      open_->size += block.size();
      open_->unpacked += bytes;
      if (kind == BlockKind::kEvents) {
        open_->name.events = true;
        if (!open_->first_event) open_->first_event = clock_.Mono();
      }
    }
  }
  last_failure_ = done ? "" : done.error().message;
  if (!done) return std::unexpected(std::move(done.error()).With("sampler's queue"));
  if (open_->unpacked >= options_.segment_bytes ||
      open_->encoder.records() >= kMaxRecordsPerSegment)
    Close();
  return {};
}

base::Result<std::string> SegmentWriter::EncodeRecord(evidence::Payload payload,
                                                      base::WallTime observed_at) {
  std::string bytes = evidence::Encode(
      {.sequence = next_record_++, .observed_at = observed_at, .payload = std::move(payload)});
  if (bytes.size() <= kMaxRecord) return bytes;
  return base::Fail(
      base::Code::kInvalidArgument, "spool.record_too_large",
      fmt::format("a record of {} bytes is above the limit of {}", bytes.size(), kMaxRecord));
}

base::Status SegmentWriter::Emit(evidence::Payload payload, base::WallTime observed_at) {
  std::vector<evidence::Payload> one;
  one.push_back(std::move(payload));
  return EmitAll(std::move(one), observed_at).status;
}

schedulers::EmittedAll SegmentWriter::EmitAll(std::vector<evidence::Payload> payloads,
                                              base::WallTime observed_at) {
  schedulers::EmittedAll done;
  std::size_t next = 0;
  while (done.status && next < payloads.size()) {
    // As many of one kind as make a block.
    const bool samples = std::holds_alternative<evidence::SampleBatch>(payloads[next]);
    std::vector<std::string> records;
    std::size_t bytes = 0;
    base::Status encoded;
    while (next < payloads.size() && bytes < options_.segment_bytes &&
           std::holds_alternative<evidence::SampleBatch>(payloads[next]) == samples) {
      auto record = EncodeRecord(std::move(payloads[next]), observed_at);
      if (!record) {
        encoded = std::unexpected(std::move(record.error()));
        break;
      }
      ++next;
      bytes += record->size();
      records.push_back(std::move(*record));
    }
    if (!records.empty()) {
      done.status = WriteBlock(samples ? BlockKind::kSamples : BlockKind::kEvents, records, bytes);
      if (done.status) done.taken += records.size();
    }
    if (done.status) done.status = std::move(encoded);
  }
  return done;
}

base::Status SegmentWriter::EmitSamples(evidence::SampleBatch batch, base::WallTime observed_at) {
  auto record = EncodeRecord(std::move(batch), observed_at);
  if (!record) {
    ++lost_batches_;
    return std::unexpected(std::move(record.error()));
  }
  samples_bytes_ += record->size();
  samples_.push_back(std::move(*record));
  return samples_bytes_ >= kFlushSamplesAt ? FlushSamples() : base::Status();
}

base::Status SegmentWriter::FlushSamples() {
  if (samples_.empty()) return {};
  auto written = WriteBlock(BlockKind::kSamples, samples_, samples_bytes_);
  if (!written) lost_batches_ += samples_.size();
  samples_.clear();
  samples_bytes_ = 0;
  return written;
}

bool SegmentWriter::IsDue(base::MonoTime now) const {
  if (!open_ || open_->encoder.records() == 0) return false;
  if (open_->first_event) return now - *open_->first_event >= options_.event_age;
  return now - last_close_ >= options_.sample_age;
}

void SegmentWriter::Close() {
  // Best effort: a segment without status is a segment.
  if (!status_.empty()) {
    SegmentEncoder encoder = open_->encoder;
    std::string block;
    encoder.AppendBlock(BlockKind::kStatus, {status_}, &block);
    if (WriteAt(block)) {
      open_->encoder = encoder;
      open_->size += block.size();
    }
  }
  if (!files_.Truncate(open_->path, static_cast<std::int64_t>(open_->size))) {
    base::LogWarn("spool.part_not_cut", {{"file", open_->path}});
  }
  queue_->Add({.name = std::move(open_->name),
               .path = std::move(open_->path),
               .size = open_->size,
               .encoder = open_->encoder});
  open_.reset();
  last_close_ = clock_.Mono();
}

void SegmentWriter::Step(const collect::Tick& tick) {
  (void)FlushSamples();
  if (!status_.empty() && tick.mono - last_close_ >= options_.status_age && !open_) {
    if (OpenSegment()) Close();
  } else if (IsDue(tick.mono)) {
    Close();
  }
  if (!options_.own_thread) {
    while (shipper_->ShipOne()) {
    }
  }
  NoteDrops(tick.mono);
}

void SegmentWriter::NoteDrops(base::MonoTime now) {
  const PartFigures queue = queue_->figures();
  const ShipperFigures shipper = shipper_->figures();
  const std::uint64_t dropped = queue.dropped_samples + queue.dropped_events +
                                shipper.dropped_samples + shipper.dropped_events;
  if (dropped != dropped_) dropped_at_ = now;
  dropped_ = dropped;
}

void SegmentWriter::SetStatus(std::vector<evidence::HealthRow> rows) {
  rows.push_back(health({.wall = clock_.Now(), .mono = clock_.Mono()}));
  data::v1::ReportHealthRequest message;
  evidence::ToProto(evidence::HealthReport{.daemon_version = options_.version,
                                           .node = options_.host,
                                           .started_at = started_at_,
                                           .rows = std::move(rows)},
                    &message);
  status_ = message.SerializeAsString();
}

bool SegmentWriter::Stop(std::chrono::milliseconds deadline) {
  (void)FlushSamples();
  if (open_ && open_->encoder.records() > 0) Close();
  if (open_) {
    (void)files_.Remove(open_->path);
    open_.reset();
  }
  if (!options_.own_thread) {
    while (shipper_->ShipOne()) {
    }
  }
  return thread_.Stop(deadline);
}

evidence::HealthRow SegmentWriter::health(const collect::Tick& now) const {
  const PartFigures queue = queue_->figures();
  const ShipperFigures shipper = shipper_->figures();
  const std::uint64_t dropped_events = queue.dropped_events + shipper.dropped_events;
  const std::uint64_t dropped_samples = queue.dropped_samples + shipper.dropped_samples;
  evidence::HealthRow row{.collector = "spool_writer",
                          .status = evidence::HealthStatus::kOk,
                          .reason = "",
                          .message = "",
                          .checked_at = now.wall,
                          .figures = {{"waiting", double(queue.waiting)},
                                      {"waiting_bytes", double(queue.waiting_bytes)},
                                      {"shipped", double(queue.shipped)},
                                      {"failures", double(shipper.failures)},
                                      {"dropped_segments", double(dropped_samples)},
                                      {"dropped_event_segments", double(dropped_events)},
                                      {"damaged", double(queue.damaged)},
                                      {"batches_lost", double(lost_batches_)}}};
  auto degrade = [&row](std::string_view reason, std::string message) {
    if (row.status != evidence::HealthStatus::kOk) return;
    row.status = evidence::HealthStatus::kDegraded;
    row.reason = reason;
    row.message = std::move(message);
  };
  if (shipper.inside_since && now.mono - *shipper.inside_since > kHungAfter) {
    degrade("spool.hung", fmt::format("{} has not answered for {:.0f} s", options_.spool,
                                      base::ToSeconds(now.mono - *shipper.inside_since)));
  }
  if (!shipper.reason.empty()) degrade(shipper.reason, shipper.message);
  if (!last_failure_.empty()) degrade("spool.queue_failed", last_failure_);
  if (dropped_at_ && now.mono - *dropped_at_ < kTellDropsFor) {
    degrade("spool.dropped",
            fmt::format("{} segments were dropped for want of space, {} of them with events",
                        dropped_events + dropped_samples, dropped_events));
  }
  return row;
}

}  // namespace expanse::daemon::spool
