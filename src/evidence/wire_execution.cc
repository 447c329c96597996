#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "evidence/wire.h"
#include "evidence/wire_fields.h"
#include "expanse/data/v1/execution.pb.h"

namespace expanse::evidence {
namespace {

namespace pb = data::v1;
using RawMap = google::protobuf::Map<std::string, std::string>;
using TextList = google::protobuf::RepeatedPtrField<std::string>;

// The free text of an execution, for both directions and for the limits.
struct TextField {
  std::string_view name;
  std::string Execution::* member;
  const std::string& (pb::Execution::*get)() const;
  std::string* (pb::Execution::*mutate)();
};
constexpr TextField kTexts[] = {
    {"native_id", &Execution::native_id, &pb::Execution::native_id,
     &pb::Execution::mutable_native_id},
    {"parent_native_id", &Execution::parent_native_id, &pb::Execution::parent_native_id,
     &pb::Execution::mutable_parent_native_id},
    {"name", &Execution::name, &pb::Execution::name, &pb::Execution::mutable_name},
    {"user", &Execution::user, &pb::Execution::user, &pb::Execution::mutable_user},
    {"account", &Execution::account, &pb::Execution::account, &pb::Execution::mutable_account},
    {"queue", &Execution::queue, &pb::Execution::queue, &pb::Execution::mutable_queue},
    {"qos", &Execution::qos, &pb::Execution::qos, &pb::Execution::mutable_qos},
    {"comment", &Execution::comment, &pb::Execution::comment, &pb::Execution::mutable_comment},
    {"working_directory", &Execution::working_directory, &pb::Execution::working_directory,
     &pb::Execution::mutable_working_directory},
    {"native_state", &Execution::native_state, &pb::Execution::native_state,
     &pb::Execution::mutable_native_state},
    {"native_reason", &Execution::native_reason, &pb::Execution::native_reason,
     &pb::Execution::mutable_native_reason},
    {"stdout_path", &Execution::stdout_path, &pb::Execution::stdout_path,
     &pb::Execution::mutable_stdout_path},
    {"stderr_path", &Execution::stderr_path, &pb::Execution::stderr_path,
     &pb::Execution::mutable_stderr_path},
    {"bundle_hash", &Execution::bundle_hash, &pb::Execution::bundle_hash,
     &pb::Execution::mutable_bundle_hash},
};

// Our enums have the numbers of the protobuf ones, so a cast translates.
static_assert(static_cast<int>(ExecutionStatus::kUnknown) ==
              static_cast<int>(pb::EXECUTION_STATUS_UNKNOWN));
static_assert(static_cast<int>(ExecutionStatus::kCancelled) ==
              static_cast<int>(pb::EXECUTION_STATUS_CANCELLED));
static_assert(static_cast<int>(Outcome::kUnknown) ==
              static_cast<int>(pb::EXECUTION_OUTCOME_UNKNOWN));
static_assert(static_cast<int>(Outcome::kOutOfMemory) ==
              static_cast<int>(pb::EXECUTION_OUTCOME_OUT_OF_MEMORY));
static_assert(static_cast<int>(SourceType::kHost) ==
              static_cast<int>(common::v1::SOURCE_TYPE_HOST));

// ---- to protobuf

void PutText(const std::string& text, std::string_view field, std::string* out, RawMap* raw) {
  if (base::IsValidUtf8(text)) {
    *out = text;
    return;
  }
  *out = base::ToValidUtf8(text);
  (*raw)[std::string(field)] = text;
}

void PutList(const std::vector<std::string>& texts, std::string_view field, TextList* out,
             RawMap* raw) {
  for (std::size_t i = 0; i < texts.size(); ++i)
    PutText(texts[i], fmt::format("{}[{}]", field, i), out->Add(), raw);
}

void PutLabels(const Execution& in, pb::Execution* out) {
  RawMap* raw = out->mutable_raw_bytes();
  // Keys that are good as they are come first, so that a replaced one never takes the place of one.
  for (const bool valid : {true, false}) {
    for (const auto& [key, value] : in.labels) {
      if (base::IsValidUtf8(key) != valid) continue;
      std::string shown = base::ToValidUtf8(key);
      // Two broken keys may look the same once replaced; U+FFFD more tells them apart.
      while (!valid && out->labels().contains(shown)) shown += "\uFFFD";
      if (!valid) (*raw)[fmt::format("label_key[{}]", shown)] = key;
      PutText(value, fmt::format("labels[{}]", shown), &(*out->mutable_labels())[shown], raw);
    }
  }
}

void PutResources(const Resources& in, std::string_view field, pb::Resources* out, RawMap* raw) {
  if (in.cpu_cores) out->set_cpu_cores(*in.cpu_cores);
  if (in.memory_bytes) out->set_memory_bytes(*in.memory_bytes);
  if (in.gpu_count) out->set_gpu_count(*in.gpu_count);
  PutText(in.gpu_type, fmt::format("{}.gpu_type", field), out->mutable_gpu_type(), raw);
  if (in.node_count) out->set_node_count(*in.node_count);
  if (in.task_count) out->set_task_count(*in.task_count);
  if (in.walltime_s) out->set_walltime_seconds(*in.walltime_s);
  PutText(in.tres, fmt::format("{}.tres", field), out->mutable_tres(), raw);
}

void PutUsage(const Usage& in, pb::Usage* out) {
  if (in.cpu_s) out->set_cpu_seconds(*in.cpu_s);
  if (in.cpu_user_s) out->set_cpu_user_seconds(*in.cpu_user_s);
  if (in.cpu_system_s) out->set_cpu_system_seconds(*in.cpu_system_s);
  if (in.memory_peak_bytes) out->set_memory_peak_bytes(*in.memory_peak_bytes);
  out->set_memory_peak_basis(base::ToValidUtf8(in.memory_peak_basis));
  if (in.io_read_bytes) out->set_io_read_bytes(*in.io_read_bytes);
  if (in.io_write_bytes) out->set_io_write_bytes(*in.io_write_bytes);
  if (in.oom_kills) out->set_oom_kills(*in.oom_kills);
}

// ---- from protobuf

class Reader {
 public:
  Reader(const pb::Execution& in, base::WallTime now, const WireLimits& limits)
      : in_(in), now_(now), limits_(limits) {}

  base::Result<Execution> Read() {
    EXPANSE_RETURN_IF_ERROR(CheckCounts());
    EXPANSE_RETURN_IF_ERROR(TakePlain());
    for (const TextField& field : kTexts) {
      EXPANSE_RETURN_IF_ERROR(TakeText((in_.*field.get)(), field.name, &(out_.*field.member)));
    }
    EXPANSE_RETURN_IF_ERROR(
        TakeList(in_.command(), "command", limits_.command_bytes, &out_.command));
    EXPANSE_RETURN_IF_ERROR(TakeList(in_.nodes(), "nodes", limits_.text, &out_.nodes));
    EXPANSE_RETURN_IF_ERROR(
        TakeList(in_.capture_notes(), "capture_notes", limits_.text, &out_.capture_notes));
    EXPANSE_RETURN_IF_ERROR(TakeLabels());
    EXPANSE_RETURN_IF_ERROR(TakeTimes());
    EXPANSE_RETURN_IF_ERROR(TakeResources(in_.requested(), "requested", &out_.requested));
    EXPANSE_RETURN_IF_ERROR(TakeResources(in_.allocated(), "allocated", &out_.allocated));
    EXPANSE_RETURN_IF_ERROR(TakeUsage());
    return std::move(out_);
  }

 private:
  base::Status CheckCounts() const {
    const auto check = [](std::size_t count, std::size_t limit,
                          std::string_view what) -> base::Status {
      if (count <= limit) return {};
      return wire::TooLarge(fmt::format("{} {}, at most {} are taken", count, what, limit));
    };
    EXPANSE_RETURN_IF_ERROR(
        check(in_.ByteSizeLong(), limits_.execution_bytes, "bytes in one execution"));
    EXPANSE_RETURN_IF_ERROR(check(static_cast<std::size_t>(in_.command_size()),
                                  limits_.command_items, "command items"));
    EXPANSE_RETURN_IF_ERROR(
        check(static_cast<std::size_t>(in_.nodes_size()), limits_.nodes, "nodes"));
    EXPANSE_RETURN_IF_ERROR(
        check(static_cast<std::size_t>(in_.capture_notes_size()), limits_.notes, "capture notes"));
    EXPANSE_RETURN_IF_ERROR(check(in_.labels().size(), limits_.labels, "labels"));
    std::size_t command = 0;
    for (int i = 0; i < in_.command_size(); ++i) {
      const std::string* raw = Raw(fmt::format("command[{}]", i));
      command += raw != nullptr ? raw->size() : in_.command(i).size();
    }
    return check(command, limits_.command_bytes, "bytes of command line");
  }

  base::Status TakePlain() {
    EXPANSE_RETURN_IF_ERROR(
        wire::CheckName(in_.execution_id(), "execution_id", limits_, /*may_be_empty=*/true));
    EXPANSE_RETURN_IF_ERROR(
        wire::CheckName(in_.compute_id(), "compute_id", limits_, /*may_be_empty=*/true));
    out_.execution_id = in_.execution_id();
    out_.compute_id = in_.compute_id();
    if (common::v1::SourceType_IsValid(in_.source_type()))
      out_.source_type = static_cast<SourceType>(in_.source_type());
    out_.restart_count = in_.restart_count();
    out_.status = pb::ExecutionStatus_IsValid(in_.status())
                      ? static_cast<ExecutionStatus>(in_.status())
                      : ExecutionStatus::kUnknown;
    out_.outcome = pb::ExecutionOutcome_IsValid(in_.outcome()) ? static_cast<Outcome>(in_.outcome())
                                                               : Outcome::kUnknown;
    if (in_.has_exit_code()) out_.exit_code = in_.exit_code();
    if (in_.has_signal()) out_.signal = in_.signal();
    return {};
  }

  base::Status TakeTimes() {
    const auto take = [&](bool has, const google::protobuf::Timestamp& in, std::string_view what,
                          std::optional<base::WallTime>* out) -> base::Status {
      if (!has) return {};
      EXPANSE_ASSIGN_OR_RETURN(*out, wire::TakeTime(in, now_, what));
      return {};
    };
    EXPANSE_RETURN_IF_ERROR(
        take(in_.has_submitted_at(), in_.submitted_at(), "submitted_at", &out_.submitted_at));
    EXPANSE_RETURN_IF_ERROR(
        take(in_.has_started_at(), in_.started_at(), "started_at", &out_.started_at));
    EXPANSE_RETURN_IF_ERROR(take(in_.has_ended_at(), in_.ended_at(), "ended_at", &out_.ended_at));
    return take(in_.has_updated_at(), in_.updated_at(), "updated_at", &out_.updated_at);
  }

  const std::string* Raw(const std::string& field) const {
    const auto found = in_.raw_bytes().find(field);
    return found == in_.raw_bytes().end() ? nullptr : &found->second;
  }

  base::Status TakeText(const std::string& text, std::string_view field, std::string* out,
                        std::size_t limit) const {
    EXPANSE_ASSIGN_OR_RETURN(*out, wire::TakeRaw(text, Raw(std::string(field)), field));
    if (out->size() <= limit) return {};
    return wire::TooLarge(
        fmt::format("{} has {} bytes, at most {} are taken", field, out->size(), limit));
  }
  base::Status TakeText(const std::string& text, std::string_view field, std::string* out) const {
    return TakeText(text, field, out, limits_.text);
  }

  base::Status TakeList(const TextList& in, std::string_view field, std::size_t limit,
                        std::vector<std::string>* out) {
    out->resize(static_cast<std::size_t>(in.size()));
    for (int i = 0; i < in.size(); ++i) {
      EXPANSE_RETURN_IF_ERROR(TakeText(in[i], fmt::format("{}[{}]", field, i),
                                       &(*out)[static_cast<std::size_t>(i)], limit));
    }
    return {};
  }

  base::Status TakeLabels() {
    for (const auto& [shown, text] : in_.labels()) {
      std::string key = shown;
      if (const std::string* raw = Raw(fmt::format("label_key[{}]", shown))) {
        // `shown` may end in more U+FFFD than the key gives: PutLabels tells equal looks apart so.
        std::string_view rest = shown;
        const std::string replaced = base::ToValidUtf8(*raw);
        bool same = rest.starts_with(replaced);
        if (same) rest.remove_prefix(replaced.size());
        while (rest.starts_with("\uFFFD")) rest.remove_prefix(3);
        if (!same || !rest.empty())
          return wire::Malformed("raw_bytes of a label's key contradict its text");
        key = *raw;
      }
      if (key.size() > limits_.text) return wire::TooLarge("a label's key is too long");
      std::string value;
      EXPANSE_RETURN_IF_ERROR(TakeText(text, fmt::format("labels[{}]", shown), &value));
      if (!out_.labels.emplace(std::move(key), std::move(value)).second)
        return wire::Malformed("a label comes twice");
    }
    return {};
  }

  static base::Status TakeAmount(bool has, double in, std::string_view what,
                                 std::optional<double>* out) {
    if (!has) return {};
    if (!std::isfinite(in) || in < 0)
      return wire::Malformed(fmt::format("{} is not an amount", what));
    *out = in;
    return {};
  }
  static base::Status TakeAmount(bool has, std::uint64_t in, std::string_view what,
                                 std::optional<std::uint64_t>* out) {
    if (!has) return {};
    if (!wire::FitsSigned(in)) return wire::Malformed(fmt::format("{} is above 2^63-1", what));
    *out = in;
    return {};
  }

  base::Status TakeResources(const pb::Resources& in, std::string_view field, Resources* out) {
    EXPANSE_RETURN_IF_ERROR(
        TakeAmount(in.has_cpu_cores(), in.cpu_cores(), "cpu_cores", &out->cpu_cores));
    EXPANSE_RETURN_IF_ERROR(
        TakeAmount(in.has_memory_bytes(), in.memory_bytes(), "memory_bytes", &out->memory_bytes));
    if (in.has_gpu_count()) out->gpu_count = in.gpu_count();
    if (in.has_node_count()) out->node_count = in.node_count();
    if (in.has_task_count()) out->task_count = in.task_count();
    if (in.has_walltime_seconds()) {
      if (in.walltime_seconds() < 0) return wire::Malformed("walltime_seconds is negative");
      out->walltime_s = in.walltime_seconds();
    }
    EXPANSE_RETURN_IF_ERROR(
        TakeText(in.gpu_type(), fmt::format("{}.gpu_type", field), &out->gpu_type));
    return TakeText(in.tres(), fmt::format("{}.tres", field), &out->tres);
  }

  base::Status TakeUsage() {
    const pb::Usage& in = in_.used();
    Usage& out = out_.used;
    EXPANSE_RETURN_IF_ERROR(
        TakeAmount(in.has_cpu_seconds(), in.cpu_seconds(), "cpu_seconds", &out.cpu_s));
    EXPANSE_RETURN_IF_ERROR(TakeAmount(in.has_cpu_user_seconds(), in.cpu_user_seconds(),
                                       "cpu_user_seconds", &out.cpu_user_s));
    EXPANSE_RETURN_IF_ERROR(TakeAmount(in.has_cpu_system_seconds(), in.cpu_system_seconds(),
                                       "cpu_system_seconds", &out.cpu_system_s));
    EXPANSE_RETURN_IF_ERROR(TakeAmount(in.has_memory_peak_bytes(), in.memory_peak_bytes(),
                                       "memory_peak_bytes", &out.memory_peak_bytes));
    EXPANSE_RETURN_IF_ERROR(TakeAmount(in.has_io_read_bytes(), in.io_read_bytes(), "io_read_bytes",
                                       &out.io_read_bytes));
    EXPANSE_RETURN_IF_ERROR(TakeAmount(in.has_io_write_bytes(), in.io_write_bytes(),
                                       "io_write_bytes", &out.io_write_bytes));
    EXPANSE_RETURN_IF_ERROR(
        TakeAmount(in.has_oom_kills(), in.oom_kills(), "oom_kills", &out.oom_kills));
    EXPANSE_RETURN_IF_ERROR(wire::CheckName(in.memory_peak_basis(), "memory_peak_basis", limits_,
                                            /*may_be_empty=*/true));
    out.memory_peak_basis = in.memory_peak_basis();
    return {};
  }

  const pb::Execution& in_;
  const base::WallTime now_;
  const WireLimits& limits_;
  Execution out_;
};

// ---- limits

// Not in the middle of a UTF-8 sequence.
bool Cut(std::string* text, std::size_t limit) {
  if (text->size() <= limit) return false;
  std::size_t end = limit;
  while (end > 0 && limit - end < 3 && (static_cast<unsigned char>((*text)[end]) & 0xC0) == 0x80)
    --end;
  text->resize(end);
  return true;
}

bool CutCommand(std::vector<std::string>* command, const WireLimits& limits) {
  bool cut = command->size() > limits.command_items;
  if (cut) command->resize(limits.command_items);
  std::size_t left = limits.command_bytes;
  for (std::size_t i = 0; i < command->size(); ++i) {
    if (Cut(&(*command)[i], left)) {
      command->resize(i + 1);
      return true;
    }
    left -= (*command)[i].size();
  }
  return cut;
}

template <typename Container>
bool CutItems(Container* items, std::size_t limit) {
  if (items->size() <= limit) return false;
  items->erase(std::next(items->begin(), static_cast<std::ptrdiff_t>(limit)), items->end());
  return true;
}

bool CutTexts(std::vector<std::string>* texts, std::size_t items, std::size_t length) {
  bool cut = CutItems(texts, items);
  for (std::string& text : *texts) cut = Cut(&text, length) || cut;
  return cut;
}

bool CutLabels(std::map<std::string, std::string>* labels, const WireLimits& limits) {
  bool cut = std::erase_if(*labels,
                           [&](const auto& label) { return label.first.size() > limits.text; }) > 0;
  for (auto& [key, value] : *labels) cut = Cut(&value, limits.text) || cut;
  return CutItems(labels, limits.labels) || cut;
}

}  // namespace

Execution FitLimits(Execution execution, const WireLimits& limits) {
  std::string cut;
  const auto note = [&](bool was_cut, std::string_view field) {
    if (was_cut) cut += fmt::format("{}{}", cut.empty() ? "" : ", ", field);
  };
  for (const TextField& field : kTexts)
    note(Cut(&(execution.*field.member), limits.text), field.name);
  note(CutCommand(&execution.command, limits), "command");
  note(CutTexts(&execution.nodes, limits.nodes, limits.text), "nodes");
  note(CutLabels(&execution.labels, limits), "labels");
  for (Resources* resources : {&execution.requested, &execution.allocated}) {
    note(Cut(&resources->tres, limits.text), "tres");
    note(Cut(&resources->gpu_type, limits.text), "gpu_type");
  }
  note(CutTexts(&execution.capture_notes, limits.notes, limits.text), "capture_notes");
  if (!cut.empty()) {
    if (execution.capture_notes.size() == limits.notes) execution.capture_notes.pop_back();
    execution.capture_notes.push_back("too long, cut: " + cut);
  }
  return execution;
}

void ToProto(const Execution& execution, pb::Execution* out) {
  out->Clear();
  RawMap* raw = out->mutable_raw_bytes();
  out->set_execution_id(base::ToValidUtf8(execution.execution_id));
  out->set_compute_id(base::ToValidUtf8(execution.compute_id));
  out->set_source_type(static_cast<common::v1::SourceType>(execution.source_type));
  out->set_restart_count(execution.restart_count);
  for (const TextField& field : kTexts)
    PutText(execution.*field.member, field.name, (out->*field.mutate)(), raw);
  PutList(execution.command, "command", out->mutable_command(), raw);
  PutList(execution.nodes, "nodes", out->mutable_nodes(), raw);
  PutList(execution.capture_notes, "capture_notes", out->mutable_capture_notes(), raw);
  PutLabels(execution, out);
  out->set_status(static_cast<pb::ExecutionStatus>(execution.status));
  out->set_outcome(static_cast<pb::ExecutionOutcome>(execution.outcome));
  if (execution.exit_code) out->set_exit_code(*execution.exit_code);
  if (execution.signal) out->set_signal(*execution.signal);
  if (execution.submitted_at) wire::PutTime(*execution.submitted_at, out->mutable_submitted_at());
  if (execution.started_at) wire::PutTime(*execution.started_at, out->mutable_started_at());
  if (execution.ended_at) wire::PutTime(*execution.ended_at, out->mutable_ended_at());
  if (execution.updated_at) wire::PutTime(*execution.updated_at, out->mutable_updated_at());
  if (execution.requested != Resources{})
    PutResources(execution.requested, "requested", out->mutable_requested(), raw);
  if (execution.allocated != Resources{})
    PutResources(execution.allocated, "allocated", out->mutable_allocated(), raw);
  if (execution.used != Usage{}) PutUsage(execution.used, out->mutable_used());
}

base::Result<Execution> FromProto(const pb::Execution& in, base::WallTime now,
                                  const WireLimits& limits) {
  return Reader(in, now, limits).Read();
}

}  // namespace expanse::evidence
