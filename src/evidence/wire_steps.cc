// The steps of an execution and their protobuf form.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "evidence/wire_fields.h"
#include "expanse/data/v1/execution.pb.h"

namespace expanse::evidence::wire {
namespace {

namespace pb = data::v1;

// The text of a step, for both directions and for the limits. Short ones, since there may be
// hundreds.
struct TextField {
  std::string_view name;
  std::string Step::* member;
  const std::string& (pb::ExecutionStep::*get)() const;
  std::string* (pb::ExecutionStep::*mutate)();
};
constexpr std::array<TextField, 4> kTexts = {{
    {"id", &Step::id, &pb::ExecutionStep::id, &pb::ExecutionStep::mutable_id},
    {"name", &Step::name, &pb::ExecutionStep::name, &pb::ExecutionStep::mutable_name},
    {"native_state", &Step::native_state, &pb::ExecutionStep::native_state,
     &pb::ExecutionStep::mutable_native_state},
    {"tres_used", &Step::tres_used, &pb::ExecutionStep::tres_used,
     &pb::ExecutionStep::mutable_tres_used},
}};

std::string FieldOf(std::size_t step, std::string_view field) {
  return fmt::format("steps[{}].{}", step, field);
}

base::Result<Step> TakeStep(const pb::ExecutionStep& in, std::size_t index, const RawMap& raw,
                            base::WallTime now, const WireLimits& limits) {
  Step out;
  for (const TextField& field : kTexts) {
    EXPANSE_RETURN_IF_ERROR(TakeText((in.*field.get)(), raw, FieldOf(index, field.name),
                                     limits.step_text, &(out.*field.member)));
  }
  if (out.id.empty()) return Malformed("a step has no id");
  out.status = pb::ExecutionStatus_IsValid(in.status()) ? static_cast<ExecutionStatus>(in.status())
                                                        : ExecutionStatus::kUnknown;
  if (in.has_exit_code()) out.exit_code = in.exit_code();
  if (in.has_signal()) out.signal = in.signal();
  if (in.has_started_at()) {
    EXPANSE_ASSIGN_OR_RETURN(out.started_at,
                             TakeTime(in.started_at(), now, FieldOf(index, "started_at")));
  }
  if (in.has_ended_at()) {
    EXPANSE_ASSIGN_OR_RETURN(out.ended_at,
                             TakeTime(in.ended_at(), now, FieldOf(index, "ended_at")));
  }
  if (in.has_node_count()) out.node_count = in.node_count();
  if (in.has_task_count()) out.task_count = in.task_count();
  EXPANSE_RETURN_IF_ERROR(TakeUsage(in.used(), limits, &out.used));
  EXPANSE_RETURN_IF_ERROR(TakeAmount(in.has_memory_peak_task_bytes(), in.memory_peak_task_bytes(),
                                     "memory_peak_task_bytes", &out.memory_peak_task_bytes));
  return out;
}

}  // namespace

void PutSteps(const std::vector<Step>& steps, pb::Execution* out) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    pb::ExecutionStep* to = out->add_steps();
    for (const TextField& field : kTexts) {
      PutText(step.*field.member, FieldOf(i, field.name), (to->*field.mutate)(),
              out->mutable_raw_bytes());
    }
    to->set_status(static_cast<pb::ExecutionStatus>(step.status));
    if (step.exit_code) to->set_exit_code(*step.exit_code);
    if (step.signal) to->set_signal(*step.signal);
    if (step.started_at) PutTime(*step.started_at, to->mutable_started_at());
    if (step.ended_at) PutTime(*step.ended_at, to->mutable_ended_at());
    if (step.node_count) to->set_node_count(*step.node_count);
    if (step.task_count) to->set_task_count(*step.task_count);
    if (step.used != Usage{}) PutUsage(step.used, to->mutable_used());
    if (step.memory_peak_task_bytes) to->set_memory_peak_task_bytes(*step.memory_peak_task_bytes);
  }
}

base::Status TakeSteps(const pb::Execution& in, base::WallTime now, const WireLimits& limits,
                       std::vector<Step>* out) {
  if (static_cast<std::size_t>(in.steps_size()) > limits.steps) {
    return TooLarge(fmt::format("{} steps, at most {} are taken", in.steps_size(), limits.steps));
  }
  out->reserve(static_cast<std::size_t>(in.steps_size()));
  for (const pb::ExecutionStep& step : in.steps()) {
    EXPANSE_ASSIGN_OR_RETURN(Step taken, TakeStep(step, out->size(), in.raw_bytes(), now, limits));
    out->push_back(std::move(taken));
  }
  return {};
}

bool CutSteps(Execution* execution, const WireLimits& limits) {
  bool cut = false;
  BoundSteps(&execution->steps, limits.steps, &execution->capture_notes);
  for (Step& step : execution->steps) {
    for (const TextField& field : kTexts)
      cut = CutText(&(step.*field.member), limits.step_text) || cut;
  }
  return cut;
}

}  // namespace expanse::evidence::wire
