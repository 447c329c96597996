#include "schedulers/slurm/commands/squeue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/text.h"

namespace expanse::schedulers::slurm {
namespace {

struct FieldName {
  QueueField field;
  std::string_view name;  // squeue(1), --Format
};

constexpr std::array<FieldName, kQueueFields> kFieldNames = {{
    {QueueField::kJobId, "JobID"},
    {QueueField::kJobArrayId, "JobArrayID"},
    {QueueField::kState, "State"},
    {QueueField::kSubmitTime, "SubmitTime"},
    {QueueField::kEligibleTime, "EligibleTime"},
    {QueueField::kTimeLimit, "TimeLimit"},
    {QueueField::kUserId, "UserID"},
    {QueueField::kUserName, "UserName"},
    {QueueField::kAccount, "Account"},
    {QueueField::kPartition, "Partition"},
    {QueueField::kQos, "QOS"},
    {QueueField::kNumNodes, "NumNodes"},
    {QueueField::kNumCpus, "NumCPUs"},
    {QueueField::kNumTasks, "NumTasks"},
    {QueueField::kCpusPerTask, "cpus-per-task"},
    {QueueField::kMinMemory, "MinMemory"},
    {QueueField::kTresAlloc, "tres-alloc"},
    {QueueField::kTresPerJob, "tres-per-job"},
    {QueueField::kTresPerNode, "tres-per-node"},
    {QueueField::kTresPerTask, "tres-per-task"},
    {QueueField::kNodeList, "NodeList"},
    {QueueField::kBatchHost, "BatchHost"},
    {QueueField::kBatchFlag, "BatchFlag"},
    {QueueField::kRestartCount, "RestartCnt"},
    {QueueField::kExitCode, "exit_code"},
    {QueueField::kDerivedExitCode, "DerivedEC"},
    {QueueField::kReservation, "Reservation"},
    {QueueField::kFeatures, "Feature"},
    {QueueField::kDependency, "Dependency"},
    {QueueField::kLicenses, "Licenses"},
    {QueueField::kName, "Name"},
    {QueueField::kComment, "Comment"},
    {QueueField::kWorkDir, "WorkDir"},
    {QueueField::kCommand, "Command"},
    {QueueField::kStdout, "STDOUT"},
    {QueueField::kStderr, "STDERR"},
    {QueueField::kSluid, "Sluid"},
    {QueueField::kReason, "Reason"},
    {QueueField::kPriority, "PriorityLong"},
    {QueueField::kStartTime, "StartTime"},
    {QueueField::kEndTime, "EndTime"},
}};

constexpr bool InOrder() {
  for (std::size_t i = 0; i < kQueueFields; ++i) {
    if (static_cast<std::size_t>(kFieldNames[i].field) != i) return false;
  }
  return true;
}
static_assert(InOrder());

constexpr Version kFirstWithSluid = {26, 5, 0};
// squeue prints nothing for a field that it does not know, but complains about it in each run.
bool Knows(std::optional<Version> version, QueueField field) {
  return field != QueueField::kSluid || !version || *version >= kFirstWithSluid;
}

// Fields of a row: four bytes of length, then the bytes.
void PutField(std::string_view field, char*& at) {
  const auto length = static_cast<std::uint32_t>(field.size());
  std::memcpy(at, &length, sizeof(length));
  std::memcpy(at + sizeof(length), field.data(), field.size());
  at += sizeof(length) + field.size();
}

}  // namespace

std::vector<std::string> QueueArguments(std::string_view separator, std::optional<Version> version,
                                        std::span<const std::uint32_t> job_ids) {
  std::string format;
  for (std::size_t i = 0; i < kQueueFields; ++i) {
    if (!Knows(version, kFieldNames[i].field)) {
      format += separator;  // behind the field before: an empty one
      continue;
    }
    if (i > 0) format += ',';
    format += fmt::format("{}:{}", kFieldNames[i].name, separator);  // no width: no cut, no blanks
  }
  std::vector<std::string> arguments = {"--noheader",   "--local",
                                        "--all",        "--noconvert",
                                        "--states=all", fmt::format("--Format={}", format)};
  if (!job_ids.empty()) {
    arguments.push_back(fmt::format("--jobs={}", fmt::join(job_ids, ",")));
  }
  return arguments;
}

QueueReader::QueueReader(std::string separator, std::function<void(const QueueRow&)> on_row)
    : separator_(std::move(separator)), row_end_(separator_ + '\n'), on_row_(std::move(on_row)) {
  ends_.reserve(kQueueFields);
}

void QueueReader::Feed(std::string_view chunk) {
  buffer_.append(chunk);
  row_start_ = 0;
  while (skipping_ ? Skip() : TakeRow()) {
  }
  buffer_.erase(0, row_start_);
  scanned_ -= row_start_;
}

// Finds separators until the row at hand is complete. False: more is to come.
bool QueueReader::TakeRow() {
  while (ends_.size() < kQueueFields) {
    const std::size_t found = FindSeparator();
    if (found == std::string::npos) {
      if (buffer_.size() - row_start_ <= kMaxRow) return false;
      return Drop();
    }
    ends_.push_back(found - row_start_);
    scanned_ = found + separator_.size();
  }
  if (scanned_ == buffer_.size()) return false;
  if (buffer_[scanned_] != '\n') return Drop();
  EmitRow();
  row_start_ = ++scanned_;
  ends_.clear();
  return true;
}

std::size_t QueueReader::FindSeparator() {
  const std::string_view view(buffer_);
  while (true) {
    const std::size_t found = view.find(separator_.front(), scanned_);
    if (found == std::string_view::npos) {
      scanned_ = view.size();
      return found;
    }
    if (view.size() - found < separator_.size()) {
      scanned_ = found;  // perhaps the rest of it comes with the next chunk
      return std::string_view::npos;
    }
    if (view.compare(found, separator_.size(), separator_) == 0) return found;
    scanned_ = found + 1;
  }
}

void QueueReader::EmitRow() {
  row_.resize(ends_.back() + kQueueFields * sizeof(std::uint32_t));
  char* at = row_.data();
  std::size_t start = 0;
  std::size_t stable = 0;
  std::string_view job_id;
  const std::string_view text = std::string_view(buffer_).substr(row_start_);
  for (std::size_t i = 0; i < kQueueFields; ++i) {
    if (i == static_cast<std::size_t>(kFirstVolatile)) {
      stable = static_cast<std::size_t>(at - row_.data());
    }
    const std::string_view field = text.substr(start, ends_[i] - start);
    if (i == 0) job_id = field;
    PutField(field, at);
    start = ends_[i] + separator_.size();
  }
  const auto id = base::ParseInt<std::uint32_t>(job_id);
  if (!id || *id == 0) {
    ++malformed_;
    return;
  }
  ++rows_;
  const std::string_view bytes(row_.data(), static_cast<std::size_t>(at - row_.data()));
  on_row_({.job_id = *id, .bytes = bytes, .stable = bytes.substr(0, stable)});
}

// Gives up the row at hand.
bool QueueReader::Drop() {
  ++malformed_;
  skipping_ = true;
  // The row's end may begin with the separator that was found last.
  row_start_ = std::max(row_start_, scanned_ - std::min(scanned_, separator_.size()));
  ends_.clear();
  return true;
}

// Looks for the end of a row that is given up. False: it is still to come.
bool QueueReader::Skip() {
  const std::size_t found = buffer_.find(row_end_, row_start_);
  if (found == std::string::npos) {
    if (buffer_.size() - row_start_ >= row_end_.size()) {
      row_start_ = buffer_.size() - row_end_.size() + 1;
    }
    scanned_ = row_start_;
    return false;
  }
  row_start_ = scanned_ = found + row_end_.size();
  skipping_ = false;
  return true;
}

}  // namespace expanse::schedulers::slurm
