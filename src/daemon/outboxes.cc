#include "daemon/outboxes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/bytes.h"
#include "evidence/wire.h"

namespace expanse::daemon {
namespace {

// Segments are the unit of dropping: small against the cap, so that little is lost at once.
std::uint64_t SegmentBytes(std::uint64_t max_bytes) {
  return std::clamp<std::uint64_t>(max_bytes / 32, 64U << 10, 8U << 20);
}

bool IsOutOfSpace(const base::Error& error) {
  return error.reason == "os.ENOSPC" || error.reason == "os.EDQUOT";
}

}  // namespace

base::Result<std::unique_ptr<Outboxes>> Outboxes::Open(const OutboxesOptions& options,
                                                       FileIo& files, base::Clock& clock) {
  EXPANSE_RETURN_IF_ERROR(base::MakeDirectories(options.directory, 0700));
  auto open = [&](StreamClass stream_class) {
    return Outbox::Open({.stream_class = stream_class,
                         .directory = base::JoinPath(options.directory, Name(stream_class)),
                         .segment_bytes = SegmentBytes(options.max_bytes)},
                        files, clock);
  };
  EXPANSE_ASSIGN_OR_RETURN(auto lifecycle, open(StreamClass::kLifecycle));
  EXPANSE_ASSIGN_OR_RETURN(auto samples, open(StreamClass::kSamples));
  return std::unique_ptr<Outboxes>(
      new Outboxes(options, std::move(lifecycle), std::move(samples), clock));
}

Outboxes::Outboxes(const OutboxesOptions& options, std::unique_ptr<Outbox> lifecycle,
                   std::unique_ptr<Outbox> samples, base::Clock& clock)
    : max_bytes_(options.max_bytes),
      lifecycle_(std::move(lifecycle)),
      samples_(std::move(samples)),
      clock_(clock) {}

// Drops samples until `bytes` more fit under the cap.
base::Status Outboxes::MakeRoom(std::uint64_t bytes, StreamClass for_class) {
  while (lifecycle_->figures().bytes + samples_->figures().bytes + bytes > max_bytes_) {
    EXPANSE_ASSIGN_OR_RETURN(const bool dropped, samples_->DropOldest());
    if (!dropped) {
      return base::Fail(
          base::Code::kResourceExhausted, "outbox.full",
          fmt::format("the outbox is at its limit of {}; raise outbox.max_bytes or restore "
                      "the connection to the data plane",
                      base::FormatBytes({max_bytes_})));
    }
    last_drop_ns_ = clock_.Mono().time_since_epoch().count() + 1;
    if (drop_log_.Allow()) {
      base::LogWarn("outbox.samples_dropped", {{"to_fit", Name(for_class)},
                                               {"dropped_records", samples_->figures().dropped}});
    }
  }
  return {};
}

base::Result<std::uint64_t> Outboxes::AppendLifecycle(std::string_view bytes) {
  EXPANSE_RETURN_IF_ERROR(MakeRoom(bytes.size() + kFrameHeaderSize, StreamClass::kLifecycle));
  auto ticket = lifecycle_->Append(bytes);
  // A disk that others filled: our own samples go first.
  while (!ticket && IsOutOfSpace(ticket.error())) {
    if (!samples_->DropOldest().value_or(false)) return ticket;
    last_drop_ns_ = clock_.Mono().time_since_epoch().count() + 1;
    ticket = lifecycle_->Append(bytes);
  }
  return ticket;
}

base::Result<std::uint64_t> Outboxes::AppendSamples(std::string_view bytes) {
  EXPANSE_RETURN_IF_ERROR(MakeRoom(bytes.size() + kFrameHeaderSize, StreamClass::kSamples));
  auto ticket = samples_->Append(bytes);
  if (!ticket && IsOutOfSpace(ticket.error()) && samples_->DropOldest().value_or(false)) {
    last_drop_ns_ = clock_.Mono().time_since_epoch().count() + 1;
    ticket = samples_->Append(bytes);
  }
  return ticket;
}

base::Result<Outboxes::Ticket> Outboxes::Append(evidence::Record& record) {
  const bool samples = std::holds_alternative<evidence::SampleBatch>(record.payload);
  record.sequence = 0;  // the frame's counts
  const std::string bytes = evidence::Encode(record);
  EXPANSE_ASSIGN_OR_RETURN(const std::uint64_t number,
                           samples ? AppendSamples(bytes) : AppendLifecycle(bytes));
  return Ticket{.samples = samples, .number = number};
}

base::Status Outboxes::Sync(const Ticket& ticket) {
  return (ticket.samples ? samples_ : lifecycle_)->Sync(ticket.number);
}

base::Status Outboxes::Emit(evidence::Payload payload, base::WallTime observed_at) {
  evidence::Record record{.observed_at = observed_at, .payload = std::move(payload)};
  EXPANSE_ASSIGN_OR_RETURN(const Ticket ticket, Append(record));
  return Sync(ticket);
}

schedulers::EmittedAll Outboxes::EmitAll(std::vector<evidence::Payload> payloads,
                                         base::WallTime observed_at) {
  std::vector<evidence::Record> records;
  records.reserve(payloads.size());
  for (evidence::Payload& payload : payloads)
    records.push_back({.observed_at = observed_at, .payload = std::move(payload)});
  return EmitRecords(records);
}

schedulers::EmittedAll Outboxes::EmitRecords(std::span<evidence::Record> records) {
  schedulers::EmittedAll done;
  std::vector<Ticket> tickets;
  tickets.reserve(records.size());
  for (evidence::Record& record : records) {
    auto ticket = Append(record);
    if (!ticket) {
      done.status = std::unexpected(std::move(ticket.error()));
      break;
    }
    tickets.push_back(*ticket);
  }
  // The last ticket of each stream makes all before it durable, or leaves them lost; a segment that
  // was full meanwhile may have failed by itself. So each is asked for: without I/O but for the
  // first ones.
  for (const bool samples : {false, true}) {
    const auto last = std::find_if(tickets.rbegin(), tickets.rend(),
                                   [&](const Ticket& ticket) { return ticket.samples == samples; });
    if (last != tickets.rend()) (void)Sync(*last);
  }
  for (const Ticket& ticket : tickets) {
    if (auto durable = Sync(ticket); !durable) {
      done.status = std::move(durable);
      break;
    }
    ++done.taken;
  }
  return done;
}

base::Status Outboxes::EmitSamples(evidence::SampleBatch batch, base::WallTime observed_at) {
  const std::string bytes =
      evidence::Encode({.sequence = 0, .observed_at = observed_at, .payload = std::move(batch)});
  auto ticket = AppendSamples(bytes);
  if (ticket) return {};
  samples_->CountDropped(1);
  last_drop_ns_ = clock_.Mono().time_since_epoch().count() + 1;
  return std::unexpected(std::move(ticket.error()));
}

base::Status Outboxes::Flush() {
  auto lifecycle = lifecycle_->Flush();
  EXPANSE_RETURN_IF_ERROR(samples_->Flush());
  return lifecycle;
}

evidence::HealthRow Outboxes::health(base::WallTime now) const {
  const OutboxFigures lifecycle = lifecycle_->figures();
  const OutboxFigures samples = samples_->figures();
  evidence::HealthRow row{
      .collector = "outbox",
      .status = evidence::HealthStatus::kOk,
      .reason = "",
      .message = "",
      .checked_at = now,
      .figures = {
          {"lifecycle_bytes", double(lifecycle.bytes)},
          {"samples_bytes", double(samples.bytes)},
          {"max_bytes", double(max_bytes_)},
          {"lifecycle_pending", double(lifecycle.last_sequence -
                                       std::min(lifecycle.acknowledged, lifecycle.last_sequence))},
          {"samples_dropped", double(samples.dropped)},
          {"damaged", double(lifecycle.damaged + samples.damaged)},
          {"refused", double(lifecycle.refused + samples.refused)},
          {"write_failures", double(lifecycle.write_failures + samples.write_failures)}}};
  const std::string& failure =
      lifecycle.last_failure.empty() ? samples.last_failure : lifecycle.last_failure;
  const std::int64_t dropped_at = last_drop_ns_;
  const auto since_drop = clock_.Mono().time_since_epoch() - base::Duration(dropped_at);
  if (!failure.empty()) {
    row.status = evidence::HealthStatus::kDegraded;
    row.reason = "write_failed";
    row.message = failure;
  } else if (dropped_at != 0 && since_drop < std::chrono::hours(1)) {
    row.status = evidence::HealthStatus::kDegraded;
    row.reason = "samples_dropped";
    row.message =
        fmt::format("{} batches of samples were dropped for want of space", samples.dropped);
  }
  return row;
}

}  // namespace expanse::daemon
