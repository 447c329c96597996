// Pieces of an execution's wire form that more than one message has: text, amounts, resources,
// usage.
#include <fmt/format.h>

#include <cmath>

#include "evidence/wire_fields.h"
#include "expanse/data/v1/execution.pb.h"

namespace expanse::evidence::wire {

namespace pb = data::v1;

void PutText(const std::string& text, std::string_view field, std::string* out, RawMap* raw) {
  if (base::IsValidUtf8(text)) {
    *out = text;
    return;
  }
  *out = base::ToValidUtf8(text);
  (*raw)[std::string(field)] = text;
}

base::Status TakeText(const std::string& text, const RawMap& raw, std::string_view field,
                      std::size_t limit, std::string* out) {
  const auto found = raw.find(std::string(field));
  EXPANSE_ASSIGN_OR_RETURN(*out,
                           TakeRaw(text, found == raw.end() ? nullptr : &found->second, field));
  if (out->size() <= limit) return {};
  return TooLarge(fmt::format("{} has {} bytes, at most {} are taken", field, out->size(), limit));
}

bool CutText(std::string* text, std::size_t limit) {
  if (text->size() <= limit) return false;
  std::size_t end = limit;
  while (end > 0 && limit - end < 3 && (static_cast<unsigned char>((*text)[end]) & 0xC0) == 0x80)
    --end;
  text->resize(end);
  return true;
}

base::Status TakeAmount(bool has, double in, std::string_view what, std::optional<double>* out) {
  if (!has) return {};
  if (!std::isfinite(in) || in < 0) return Malformed(fmt::format("{} is not an amount", what));
  *out = in;
  return {};
}

base::Status TakeAmount(bool has, std::uint64_t in, std::string_view what,
                        std::optional<std::uint64_t>* out) {
  if (!has) return {};
  if (!FitsSigned(in)) return Malformed(fmt::format("{} is above 2^63-1", what));
  *out = in;
  return {};
}

base::Status TakeAmount(bool has, std::int64_t in, std::string_view what,
                        std::optional<std::int64_t>* out) {
  if (!has) return {};
  if (in < 0) return Malformed(fmt::format("{} is negative", what));
  *out = in;
  return {};
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

base::Status TakeResources(const pb::Resources& in, const RawMap& raw, std::string_view field,
                           const WireLimits& limits, Resources* out) {
  EXPANSE_RETURN_IF_ERROR(
      TakeAmount(in.has_cpu_cores(), in.cpu_cores(), "cpu_cores", &out->cpu_cores));
  EXPANSE_RETURN_IF_ERROR(
      TakeAmount(in.has_memory_bytes(), in.memory_bytes(), "memory_bytes", &out->memory_bytes));
  if (in.has_gpu_count()) out->gpu_count = in.gpu_count();
  if (in.has_node_count()) out->node_count = in.node_count();
  if (in.has_task_count()) out->task_count = in.task_count();
  EXPANSE_RETURN_IF_ERROR(TakeAmount(in.has_walltime_seconds(), in.walltime_seconds(),
                                     "walltime_seconds", &out->walltime_s));
  EXPANSE_RETURN_IF_ERROR(
      TakeText(in.gpu_type(), raw, fmt::format("{}.gpu_type", field), limits.text, &out->gpu_type));
  return TakeText(in.tres(), raw, fmt::format("{}.tres", field), limits.text, &out->tres);
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

base::Status TakeUsage(const pb::Usage& in, const WireLimits& limits, Usage* out) {
  EXPANSE_RETURN_IF_ERROR(
      TakeAmount(in.has_cpu_seconds(), in.cpu_seconds(), "cpu_seconds", &out->cpu_s));
  EXPANSE_RETURN_IF_ERROR(TakeAmount(in.has_cpu_user_seconds(), in.cpu_user_seconds(),
                                     "cpu_user_seconds", &out->cpu_user_s));
  EXPANSE_RETURN_IF_ERROR(TakeAmount(in.has_cpu_system_seconds(), in.cpu_system_seconds(),
                                     "cpu_system_seconds", &out->cpu_system_s));
  EXPANSE_RETURN_IF_ERROR(TakeAmount(in.has_memory_peak_bytes(), in.memory_peak_bytes(),
                                     "memory_peak_bytes", &out->memory_peak_bytes));
  EXPANSE_RETURN_IF_ERROR(
      TakeAmount(in.has_io_read_bytes(), in.io_read_bytes(), "io_read_bytes", &out->io_read_bytes));
  EXPANSE_RETURN_IF_ERROR(TakeAmount(in.has_io_write_bytes(), in.io_write_bytes(), "io_write_bytes",
                                     &out->io_write_bytes));
  EXPANSE_RETURN_IF_ERROR(
      TakeAmount(in.has_oom_kills(), in.oom_kills(), "oom_kills", &out->oom_kills));
  EXPANSE_RETURN_IF_ERROR(CheckName(in.memory_peak_basis(), "memory_peak_basis", limits,
                                    /*may_be_empty=*/true));
  out->memory_peak_basis = in.memory_peak_basis();
  return {};
}

}  // namespace expanse::evidence::wire
