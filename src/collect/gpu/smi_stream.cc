#include "collect/gpu/smi_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace expanse::collect {
namespace {

constexpr std::size_t kMostLines = 8192;  // waiting for one Poll; the oldest are dropped
constexpr std::size_t kLongestLine = 16U << 10;

}  // namespace

SmiStream::SmiStream(Options options)
    : options_(std::move(options)),
      backoff_(options_.backoff, std::hash<std::string>()(options_.query)) {}

void SmiStream::StartProcess(base::MonoTime now) {
  std::string fields;
  for (const std::string& field : options_.fields) fields += (fields.empty() ? "" : ",") + field;
  lines_ = std::make_shared<Lines>();
  parser_ = SmiCsvParser();
  complaint_ = {};
  header_seen_ = false;
  last_line_ = now;
  ++starts_;
  auto started = base::LineProcess::Start(
      {options_.program, fmt::format("--{}={}", options_.query, fields), "--format=csv,nounits",
       "-l", fmt::format("{}", options_.period.count())},
      options_.environment,
      [lines = lines_](std::string_view line) {
        std::scoped_lock lock(lines->mutex);
        if (lines->waiting.size() >= kMostLines) {
          lines->waiting.pop_front();
          ++lines->dropped;
        }
        lines->waiting.emplace_back(line);
      },
      kLongestLine);
  if (started) {
    process_ = std::move(*started);
  } else {
    NoteEnd(now, {SmiNotice::Kind::kMalformed, started.error().message});
  }
}

void SmiStream::NoteEnd(base::MonoTime now, SmiNotice notice) {
  header_seen_ = false;
  if (notice.kind == SmiNotice::Kind::kBadField && DropField(notice.detail)) {
    next_start_ = now;  // at once, without the field
    return;
  }
  trouble_ = std::move(notice);
  next_start_ = now + backoff_.Next();
}

bool SmiStream::DropField(const std::string& field) {
  return options_.fields.size() > 1 && std::erase(options_.fields, field) > 0;
}

void SmiStream::Retire() {
  if (process_ == nullptr) return;
  // Joins the one before, which has had at least a back-off's time to end.
  retiring_ = std::jthread([process = std::move(process_)]() mutable { process.reset(); });
}

std::vector<SmiLine> SmiStream::Poll(base::MonoTime now) {
  if (process_ == nullptr && now >= next_start_) StartProcess(now);
  std::vector<SmiLine> parsed;
  if (process_ == nullptr) return parsed;
  const bool running =
      process_->running();  // asked before the lines are taken: none comes after it
  std::deque<std::string> lines;
  {
    std::scoped_lock lock(lines_->mutex);
    lines.swap(lines_->waiting);
  }
  if (!lines.empty()) last_line_ = now;
  for (const std::string& line : lines) {
    SmiLine one = parser_.Take(line);
    if (const auto* notice = std::get_if<SmiNotice>(&one)) {
      if (notice->kind == SmiNotice::Kind::kHeader) {
        header_seen_ = true;
      } else {
        complaint_ = *notice;
      }
    } else if (!std::holds_alternative<std::monostate>(one)) {
      backoff_.Reset();
      trouble_ = {};
    }
    parsed.push_back(std::move(one));
  }
  if (!running) {
    SmiNotice end = complaint_;
    const std::string reason = process_->EndReason();
    if (end.kind == SmiNotice::Kind::kHeader || end.kind == SmiNotice::Kind::kMalformed)
      end = ClassifySmiText(reason);
    if (end.detail.empty()) end.detail = reason;
    process_.reset();
    NoteEnd(now, std::move(end));
    if (next_start_ <= now) StartProcess(now);
  } else if (options_.silence_allowed.count() > 0 && now - last_line_ > options_.silence_allowed) {
    Retire();
    NoteEnd(now, {SmiNotice::Kind::kDriverError, "nvidia-smi hangs"});
  }
  return parsed;
}

void SmiStream::Stop() {
  if (process_ != nullptr) process_->Stop(std::chrono::seconds(1));
  process_.reset();
  retiring_ = std::jthread();
  header_seen_ = false;
}

}  // namespace expanse::collect
