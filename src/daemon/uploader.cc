#include "daemon/uploader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace expanse::daemon {
namespace {

using namespace std::chrono_literals;

// A record that the plane refuses this often on its own, as invalid, is set aside.
constexpr int kLoneRefusals = 5;

// The plane says that the request itself is wrong: sending the same again cannot help.
bool IsAboutTheRequest(const base::Error& error) {
  return error.code == base::Code::kInvalidArgument || error.code == base::Code::kOutOfRange ||
         error.reason == "rpc.message_too_large" || error.reason == "compress.too_large" ||
         error.reason == "http.body_too_large";
}

}  // namespace

Uploader::Uploader(Outboxes& outboxes, Session& session, base::Clock& clock,
                   UploaderOptions options)
    : outboxes_(outboxes),
      session_(session),
      clock_(clock),
      options_(options),
      backoff_(options.backoff, options.seed),
      batch_records_(options.batch_records),
      last_success_(clock.Mono()) {}

base::Status Uploader::Deliver(Outbox& outbox, const OutboxBatch& batch,
                               std::chrono::milliseconds timeout) {
  data::v1::IngestRequest request;
  request.set_stream_id(batch.stream_id);
  std::uint64_t unreadable = 0;
  for (const Frame& frame : batch.frames) {
    auto* record = request.add_records();
    if (!record->ParseFromString(frame.payload)) {
      request.mutable_records()->RemoveLast();
      ++unreadable;
      continue;
    }
    record->set_sequence(frame.sequence);
  }
  if (unreadable > 0) {
    // The checksum held, so it was written like this: by another version, or by a fault of ours.
    outbox.CountRefused(unreadable);
    base::LogError("uploader.unreadable_records",
                   {{"stream", Name(outbox.stream_class())}, {"records", unreadable}});
  }
  const std::uint64_t last = batch.frames.back().sequence;
  if (request.records().empty()) return outbox.Acknowledge(batch, last);

  EXPANSE_ASSIGN_OR_RETURN(const auto response, session_.Ingest(request, timeout));
  if (response.rejected_size() > 0) {
    outbox.CountRefused(static_cast<std::uint64_t>(response.rejected_size()));
    if (rejected_log_.Allow()) {
      const auto& first = response.rejected(0);
      base::LogWarn("uploader.rejected", {{"stream", Name(outbox.stream_class())},
                                          {"records", response.rejected_size()},
                                          {"sequence", first.sequence()},
                                          {"reason", first.reason()},
                                          {"message", first.message()}});
    }
    std::scoped_lock lock(mutex_);
    rejected_ += static_cast<std::uint64_t>(response.rejected_size());
  }
  // Records at the end that could not be read have no part in the plane's watermark.
  const std::uint64_t sent = request.records(request.records_size() - 1).sequence();
  EXPANSE_RETURN_IF_ERROR(
      outbox.Acknowledge(batch, response.watermark() >= sent ? last : response.watermark()));
  if (response.watermark() < batch.frames.front().sequence) {
    return base::Fail(
        base::Code::kUnavailable, "uploader.no_progress",
        fmt::format("the data plane answered, but holds nothing of the batch (watermark {})",
                    response.watermark()));
  }
  if (batch.stream_id == outbox.stream_id() &&
      response.watermark() > outbox.figures().last_sequence) {
    base::LogError("uploader.stream_ahead",
                   {{"stream", Name(outbox.stream_class())},
                    {"watermark", response.watermark()},
                    {"why", "the state directory was restored from an older copy"},
                    {"next", "a new stream"}});
    return outbox.StartNewStream();
  }
  return {};
}

// A batch that is refused as such is sent in smaller pieces, until the one record that is at fault
// stands alone; after some tries that one is set aside, so that it cannot hold up the rest.
void Uploader::HandleRefusal(Outbox& outbox, const OutboxBatch& batch, const base::Error& error) {
  if (batch.frames.size() > 1) {
    batch_records_ = std::max<std::size_t>(1, batch.frames.size() / 2);
    lone_refusals_ = 0;
    return;
  }
  if (++lone_refusals_ < kLoneRefusals) return;
  lone_refusals_ = 0;
  auto done = outbox.SetAside(batch, error.message);
  if (done) done = outbox.Acknowledge(batch, batch.frames.back().sequence);
  if (!done) base::LogError("uploader.set_aside_failed", {{"message", done.error().message}});
}

void Uploader::Record(const base::Error* error, const OutboxBatch& batch) {
  std::scoped_lock lock(mutex_);
  if (error == nullptr) {
    ++batches_;
    records_ += batch.frames.size();
    failures_in_a_row_ = 0;
    last_success_ = clock_.Mono();
    return;
  }
  ++failures_;
  ++failures_in_a_row_;
  last_error_ = *error;
}

Uploader::Sent Uploader::SendFrom(Outbox& outbox, std::chrono::milliseconds timeout) {
  auto batch = outbox.ReadBatch(options_.batch_bytes, batch_records_);
  if (batch && batch->empty()) return Sent::kNothing;
  auto delivered =
      batch ? Deliver(outbox, *batch, timeout) : base::Status(std::unexpected(batch.error()));
  if (delivered) {
    Record(nullptr, *batch);
    backoff_.Reset();
    lone_refusals_ = 0;
    batch_records_ = std::min(options_.batch_records, batch_records_ * 2);
    return Sent::kDelivered;
  }
  const base::Error& error = delivered.error();
  Record(&error, batch ? *batch : OutboxBatch{});
  if (batch && IsAboutTheRequest(error)) HandleRefusal(outbox, *batch, error);
  if (error.reason != "session.revoked" && failure_log_.Allow()) {
    base::LogWarn("uploader.failed", {{"stream", Name(outbox.stream_class())},
                                      {"code", base::CodeName(error.code)},
                                      {"reason", error.reason},
                                      {"message", error.message}});
  }
  return Sent::kFailed;
}

std::chrono::milliseconds Uploader::Step() {
  for (Outbox* outbox : {&outboxes_.lifecycle(), &outboxes_.samples()}) {
    switch (SendFrom(*outbox, options_.timeout)) {
      case Sent::kNothing:
        continue;
      case Sent::kDelivered:
        return 0ms;
      case Sent::kFailed:
        // A refused credential is not asked about in a hurry; Session decides when to ask again.
        return session_.revoked() ? options_.backoff.most : backoff_.Next();
    }
  }
  return options_.idle;
}

void Uploader::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const auto wait = Step();
    if (wait > 0ms) (void)clock_.WaitFor(stop, wait);
  }
}

void Uploader::Drain(std::chrono::milliseconds budget) {
  const base::MonoTime end = clock_.Mono() + budget;
  for (Outbox* outbox : {&outboxes_.lifecycle(), &outboxes_.samples()}) {
    while (true) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - clock_.Mono());
      if (left <= 0ms) return;
      const Sent sent = SendFrom(*outbox, std::min(left, options_.timeout));
      if (sent == Sent::kFailed) return;
      if (sent == Sent::kNothing) break;
    }
  }
}

evidence::HealthRow Uploader::health(base::WallTime now) const {
  const bool revoked = session_.revoked();
  std::scoped_lock lock(mutex_);
  evidence::HealthRow row{.collector = "uploader",
                          .status = evidence::HealthStatus::kOk,
                          .reason = "",
                          .message = "",
                          .checked_at = now,
                          .figures = {{"batches", double(batches_)},
                                      {"records", double(records_)},
                                      {"rejected", double(rejected_)},
                                      {"failures", double(failures_)}}};
  if (revoked) {
    row.status = evidence::HealthStatus::kFailed;
    row.reason = "revoked";
    row.message = "the control plane refused the compute's credential; evidence is kept on disk";
  } else if (failures_in_a_row_ > 0) {
    row.status = evidence::HealthStatus::kDegraded;
    row.reason = last_error_.reason.empty() ? std::string(base::CodeName(last_error_.code))
                                            : last_error_.reason;
    row.message = last_error_.message;
    row.figures["seconds_since_success"] = base::ToSeconds(clock_.Mono() - last_success_);
  }
  return row;
}

}  // namespace expanse::daemon
