#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "evidence/wire.h"
#include "evidence/wire_fields.h"
#include "expanse/data/v1/execution.pb.h"

namespace expanse::evidence {
namespace {

namespace pb = data::v1;
using wire::PutText;
using wire::RawMap;
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
    out_.lossy_text = in_.lossy_text();
    EXPANSE_RETURN_IF_ERROR(TakeTimes());
    EXPANSE_RETURN_IF_ERROR(wire::TakeResources(in_.requested(), in_.raw_bytes(), "requested",
                                                limits_, &out_.requested));
    EXPANSE_RETURN_IF_ERROR(wire::TakeResources(in_.allocated(), in_.raw_bytes(), "allocated",
                                                limits_, &out_.allocated));
    EXPANSE_RETURN_IF_ERROR(wire::TakeUsage(in_.used(), limits_, &out_.used));
    EXPANSE_RETURN_IF_ERROR(wire::TakeAmount(in_.has_suspended_seconds(), in_.suspended_seconds(),
                                             "suspended_seconds", &out_.suspended_s));
    EXPANSE_RETURN_IF_ERROR(wire::TakeSteps(in_, now_, limits_, &out_.steps));
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
    const auto take_until = [](base::WallTime now, bool has, const google::protobuf::Timestamp& in,
                               std::string_view what,
                               std::optional<base::WallTime>* out) -> base::Status {
      if (!has) return {};
      EXPANSE_ASSIGN_OR_RETURN(*out, wire::TakeTime(in, now, what));
      return {};
    };
    const auto take = std::bind_front(take_until, now_);
    // A job may be put off, or expected, for any time ahead.
    const auto take_any = std::bind_front(take_until, base::WallTime::max());
    EXPANSE_RETURN_IF_ERROR(
        take_any(in_.has_eligible_at(), in_.eligible_at(), "eligible_at", &out_.eligible_at));
    EXPANSE_RETURN_IF_ERROR(take_any(in_.has_expected_start_at(), in_.expected_start_at(),
                                     "expected_start_at", &out_.expected_start_at));
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

  base::Status TakeText(const std::string& text, std::string_view field, std::string* out) const {
    return wire::TakeText(text, in_.raw_bytes(), field, limits_.text, out);
  }

  base::Status TakeList(const TextList& in, std::string_view field, std::size_t limit,
                        std::vector<std::string>* out) {
    out->resize(static_cast<std::size_t>(in.size()));
    for (int i = 0; i < in.size(); ++i) {
      EXPANSE_RETURN_IF_ERROR(wire::TakeText(in[i], in_.raw_bytes(),
                                             fmt::format("{}[{}]", field, i), limit,
                                             &(*out)[static_cast<std::size_t>(i)]));
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

  const pb::Execution& in_;
  const base::WallTime now_;
  const WireLimits& limits_;
  Execution out_;
};

// ---- limits

bool CutCommand(std::vector<std::string>* command, const WireLimits& limits) {
  bool cut = command->size() > limits.command_items;
  if (cut) command->resize(limits.command_items);
  std::size_t left = limits.command_bytes;
  for (std::size_t i = 0; i < command->size(); ++i) {
    if (wire::CutText(&(*command)[i], left)) {
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
  for (std::string& text : *texts) cut = wire::CutText(&text, length) || cut;
  return cut;
}

// A short host list may stand for many long names. Names that are not UTF-8 go twice, one byte as
// three and once exactly.
bool CutNodes(std::vector<std::string>* nodes, const WireLimits& limits) {
  bool cut = CutTexts(nodes, limits.nodes, limits.text);
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    const std::string& node = (*nodes)[i];
    bytes += base::IsValidUtf8(node) ? node.size() + 4 : node.size() * 4 + 32;
    if (bytes > limits.nodes_bytes) {
      nodes->resize(i);
      return true;
    }
  }
  return cut;
}

bool CutLabels(std::map<std::string, std::string>* labels, const WireLimits& limits) {
  bool cut = std::erase_if(*labels,
                           [&](const auto& label) { return label.first.size() > limits.text; }) > 0;
  for (auto& [key, value] : *labels) cut = wire::CutText(&value, limits.text) || cut;
  return CutItems(labels, limits.labels) || cut;
}

}  // namespace

Execution FitLimits(Execution execution, const WireLimits& limits) {
  std::string cut;
  const auto note = [&](bool was_cut, std::string_view field) {
    if (was_cut) cut += fmt::format("{}{}", cut.empty() ? "" : ", ", field);
  };
  for (const TextField& field : kTexts)
    note(wire::CutText(&(execution.*field.member), limits.text), field.name);
  note(CutCommand(&execution.command, limits), "command");
  note(CutNodes(&execution.nodes, limits), "nodes");
  note(CutLabels(&execution.labels, limits), "labels");
  for (Resources* resources : {&execution.requested, &execution.allocated}) {
    note(wire::CutText(&resources->tres, limits.text), "tres");
    note(wire::CutText(&resources->gpu_type, limits.text), "gpu_type");
  }
  note(wire::CutSteps(&execution, limits), "steps");
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
  out->set_lossy_text(execution.lossy_text);
  out->set_status(static_cast<pb::ExecutionStatus>(execution.status));
  out->set_outcome(static_cast<pb::ExecutionOutcome>(execution.outcome));
  if (execution.exit_code) out->set_exit_code(*execution.exit_code);
  if (execution.signal) out->set_signal(*execution.signal);
  if (execution.submitted_at) wire::PutTime(*execution.submitted_at, out->mutable_submitted_at());
  if (execution.started_at) wire::PutTime(*execution.started_at, out->mutable_started_at());
  if (execution.ended_at) wire::PutTime(*execution.ended_at, out->mutable_ended_at());
  if (execution.eligible_at) wire::PutTime(*execution.eligible_at, out->mutable_eligible_at());
  if (execution.expected_start_at)
    wire::PutTime(*execution.expected_start_at, out->mutable_expected_start_at());
  if (execution.suspended_s) out->set_suspended_seconds(*execution.suspended_s);
  if (execution.updated_at) wire::PutTime(*execution.updated_at, out->mutable_updated_at());
  if (execution.requested != Resources{})
    wire::PutResources(execution.requested, "requested", out->mutable_requested(), raw);
  if (execution.allocated != Resources{})
    wire::PutResources(execution.allocated, "allocated", out->mutable_allocated(), raw);
  if (execution.used != Usage{}) wire::PutUsage(execution.used, out->mutable_used());
  wire::PutSteps(execution.steps, out);
}

base::Result<Execution> FromProto(const pb::Execution& in, base::WallTime now,
                                  const WireLimits& limits) {
  return Reader(in, now, limits).Read();
}

}  // namespace expanse::evidence
