#include "daemon/heartbeat.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/files.h"
#include "daemon/health_file.h"
#include "evidence/wire.h"

namespace expanse::daemon {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kFileEvery{30'000};

// What a plane may ask for; anything else is kept within.
std::chrono::milliseconds Bounded(const google::protobuf::Duration& asked,
                                  std::chrono::milliseconds fallback) {
  const auto wanted =
      std::chrono::seconds(asked.seconds()) + std::chrono::duration_cast<std::chrono::milliseconds>(
                                                  std::chrono::nanoseconds(asked.nanos()));
  if (wanted <= 0ms) return fallback;
  return std::clamp<std::chrono::milliseconds>(wanted, 1s, 10min);
}

}  // namespace

Heartbeats::Heartbeats(Session& session, base::Clock& clock, HeartbeatOptions options,
                       std::function<std::vector<evidence::HealthRow>()> rows,
                       std::function<void()> report)
    : session_(session),
      clock_(clock),
      options_(std::move(options)),
      rows_(std::move(rows)),
      report_(std::move(report)),
      started_at_(clock.Now()),
      boot_id_(BootId()),
      control_interval_(options_.interval),
      data_interval_(options_.interval) {}

base::Status Heartbeats::BeatControl() {
  control::v1::HeartbeatRequest request;
  request.set_daemon_version(options_.daemon_version);
  const std::int64_t micros = base::ToMicros(started_at_);
  request.mutable_started_at()->set_seconds(micros / 1'000'000);
  request.mutable_started_at()->set_nanos(static_cast<std::int32_t>(micros % 1'000'000 * 1000));
  EXPANSE_ASSIGN_OR_RETURN(const auto response, session_.Heartbeat(request, options_.timeout));
  control_interval_ = Bounded(response.interval(), options_.interval);
  return {};
}

base::Status Heartbeats::ReportToData(const std::vector<evidence::HealthRow>& rows) {
  data::v1::ReportHealthRequest request;
  evidence::ToProto(evidence::HealthReport{.daemon_version = options_.daemon_version,
                                           .node = options_.node,
                                           .started_at = started_at_,
                                           .rows = rows},
                    &request);
  EXPANSE_ASSIGN_OR_RETURN(const auto response, session_.ReportHealth(request, options_.timeout));
  data_interval_ = Bounded(response.interval(), options_.interval);
  return {};
}

// Logs when a plane goes away and when it is back, not every beat in between.
void Heartbeats::Note(const char* plane, const base::Status& status, std::string* error) {
  if (status && !error->empty()) base::LogInfo("heartbeat.back", {{"plane", plane}});
  if (!status && error->empty()) {
    base::LogWarn(
        "heartbeat.failed",
        {{"plane", plane}, {"reason", status.error().reason}, {"message", status.error().message}});
  }
  *error = status ? "" : status.error().message;
  if (!status && error->empty()) *error = base::CodeName(status.error().code);
}

void Heartbeats::WriteFile(const std::vector<evidence::HealthRow>& rows) {
  if (options_.health_path.empty()) return;
  const HealthSnapshot snapshot{.boot_id = boot_id_,
                                .mono = clock_.Mono(),
                                .written_at = clock_.Now(),
                                .pid = ::getpid(),
                                .daemon_version = options_.daemon_version,
                                .node = options_.node,
                                .compute_id = session_.compute_id(),
                                .control_error = control_error_,
                                .data_error = data_error_,
                                .rows = rows};
  // Readable by all: it holds no secret, and health checks may run as another user.
  auto written = base::WriteFileAtomically(options_.health_path, FormatHealth(snapshot), 0644);
  if (!written && file_log_.Allow())
    base::LogWarn("heartbeat.file", {{"message", written.error().message}});
}

std::chrono::milliseconds Heartbeats::Beat() {
  // Each plane hears from us whatever the other does.
  Note("control", BeatControl(), &control_error_);
  const std::vector<evidence::HealthRow> rows = rows_();
  Note("data", ReportToData(rows), &data_error_);
  WriteFile(rows);
  if (report_) report_();
  return std::min(control_interval_, data_interval_);
}

void Heartbeats::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    auto wait = Beat();
    // Planes may ask for rare beats; who reads the file on this machine expects them every minute.
    while (wait > kFileEvery && !stop.stop_requested()) {
      if (!clock_.WaitFor(stop, kFileEvery)) break;
      wait -= kFileEvery;
      WriteFile(rows_());
    }
    if (!stop.stop_requested()) (void)clock_.WaitFor(stop, wait);
  }
}

}  // namespace expanse::daemon
