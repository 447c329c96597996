// PlanKubernetesEdits: which values to write where, so that a manifest asks for what is wanted. One
// value after the other is changed and the text read again, so that every step works on what is
// really there; the steps become edits of the text that was given.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "workload/kubernetes/compose.h"
#include "workload/kubernetes/document.h"
#include "workload/kubernetes/kubernetes.h"
#include "workload/kubernetes/quantity.h"
#include "workload/kubernetes/read.h"

namespace expanse::workload {
namespace kubernetes {
namespace {

using base::Code;
using base::Fail;
using base::Status;

// What a unit rounds up may exceed what was wanted.
constexpr double kSlack = 0.01;

Status NotSettable(std::string message) {
  return Fail(Code::kFailedPrecondition, "patch.not_settable", std::move(message));
}

double Factor(const Setting& setting) {
  if (setting.unit == "MiB") return 0x1p20;
  if (setting.unit == "GiB") return 0x1p30;
  return 1;
}

std::optional<double> Asked(const Part& part, Quantity quantity) {
  const Request& request = part.request;
  switch (quantity) {
    case Quantity::kCpu:
      return request.cpu_cores;
    case Quantity::kMemory:
      return request.memory_bytes;
    case Quantity::kGpu:
      return request.gpu_count;
    case Quantity::kGpuMemory:
      return request.gpu_memory_bytes;
    case Quantity::kWalltime:
      return request.walltime_s;
    case Quantity::kDisk:
    case Quantity::kNodes:
    case Quantity::kTasks:
      return std::nullopt;
  }
  return std::nullopt;
}

// Amounts below what can be written are the same.
double Grain(Quantity quantity) { return quantity == Quantity::kCpu ? 0.001 : 1; }

bool Same(double a, double b, Quantity quantity) {
  return std::abs(a - b) < Grain(quantity) / 2 + 1e-12 * std::abs(b);
}

bool Reached(const Part& part, const Wanted& wanted) {
  const auto asked = Asked(part, wanted.quantity);
  if (!asked) return false;
  const double grain = Grain(wanted.quantity);
  return *asked > wanted.amount - grain / 2 - 1e-9 * wanted.amount &&
         *asked < wanted.amount * (1 + kSlack) + grain;
}

// The text as it is after some steps, and what it says.
struct Reading {
  Document document;
  Submission submission;

  static base::Result<Reading> Of(std::string_view text) {
    auto document = ReadDocument(text);
    if (!document) return Unreadable(document.error());
    Reading reading{.document = std::move(*document)};
    auto submission = ReadSubmission(reading.document);
    if (!submission) return Unreadable(submission.error());
    reading.submission = std::move(*submission);
    return reading;
  }

 private:
  static std::unexpected<base::Error> Unreadable(const Refusal& refusal) {
    return Fail(Code::kInvalidArgument, "patch.not_reached",
                fmt::format("line {}: {}", refusal.line, refusal.message));
  }
};

// The step to one wanted amount, as edits of the present text.
class Step {
 public:
  Step(const Reading& reading, const Wanted& wanted)
      : document_(reading.document),
        part_(reading.submission.parts[wanted.part]),
        wanted_(wanted) {}

  base::Result<std::vector<Edit>> Plan() {
    EXPANSE_RETURN_IF_ERROR(Check());
    if (const auto asked = Asked(part_, wanted_.quantity);
        asked && Same(*asked, wanted_.amount, wanted_.quantity))
      return edits_;
    EXPANSE_RETURN_IF_ERROR(wanted_.quantity == Quantity::kWalltime ? Walltime() : Resource());
    return std::move(edits_);
  }

 private:
  Status Check() const {
    switch (wanted_.quantity) {
      case Quantity::kCpu:
      case Quantity::kMemory:
      case Quantity::kGpu:
      case Quantity::kGpuMemory:
      case Quantity::kWalltime:
        break;
      case Quantity::kDisk:
      case Quantity::kNodes:
      case Quantity::kTasks:
        return NotSettable(
            fmt::format("{} of a container is not changed here", Name(wanted_.quantity)));
    }
    // Beyond 2^60 nothing is meant, and digits would be lost.
    if (!(wanted_.amount >= 0 && wanted_.amount < 0x1p60))
      return NotSettable(fmt::format("{} is no amount", wanted_.amount));
    if (wanted_.quantity == Quantity::kGpu && wanted_.amount != std::floor(wanted_.amount))
      return NotSettable("devices are counted in whole numbers");
    return {};
  }

  std::vector<const Setting*> Written(Bound bound) const {
    std::vector<const Setting*> found;
    for (const Setting& setting : part_.settings) {
      if (setting.quantity == wanted_.quantity && setting.bound == bound && setting.effective)
        found.push_back(&setting);
    }
    return found;
  }

  Status Resource() {
    const auto requests = Written(Bound::kRequest);
    const auto limits = Written(Bound::kLimit);
    if (requests.size() > 1 || limits.size() > 1)
      return NotSettable(
          fmt::format("the container asks for {} of several kinds", Name(wanted_.quantity)));
    const Setting* request = requests.empty() ? nullptr : requests.front();
    const Setting* limit = limits.empty() ? nullptr : limits.front();
    for (const Setting* setting : {request, limit}) {
      if (setting != nullptr && !setting->value) return Unresolved(*setting);
    }
    if (request == nullptr && limit == nullptr) return Insert();
    if (wanted_.quantity == Quantity::kCpu) return Cpu(request, limit);
    // A limit that was the request stays it; one above is moved only where it would be below. For
    // devices both are the same by rule.
    const bool follows = request == nullptr || wanted_.quantity == Quantity::kGpu ||
                         (limit != nullptr && *limit->value <= *request->value);
    if (request != nullptr) EXPANSE_RETURN_IF_ERROR(Replace(*request));
    if (limit != nullptr && (follows || *limit->value < wanted_.amount))
      EXPANSE_RETURN_IF_ERROR(Replace(*limit));
    return {};
  }

  // A CPU limit throttles: it is raised where the request needs it, and never lowered.
  Status Cpu(const Setting* request, const Setting* limit) {
    if (limit != nullptr && *limit->value < wanted_.amount)
      EXPANSE_RETURN_IF_ERROR(Replace(*limit));
    if (request != nullptr) return Replace(*request);
    // Without a request the limit is one, so raising it was enough.
    return edits_.empty() ? Insert() : Status();
  }

  // Of several deadlines (of the job, of its pods) the first counts: it and those that would come
  // before the new one are set.
  Status Walltime() {
    const auto written = Written(Bound::kRequest);
    if (written.empty()) return Insert();
    double least = HUGE_VAL;
    for (const Setting* setting : written) {
      if (!setting->value) return Unresolved(*setting);
      least = std::min(least, *setting->value);
    }
    for (const Setting* setting : written) {
      if (*setting->value == least || *setting->value < wanted_.amount)
        EXPANSE_RETURN_IF_ERROR(Replace(*setting));
    }
    return {};
  }

  Status Unresolved(const Setting& setting) const {
    return Fail(Code::kFailedPrecondition, "patch.unresolved",
                fmt::format("line {}: {} is not known: {}", setting.place.line, setting.name,
                            setting.unresolved));
  }

  std::string Spell(std::string_view like, double factor) const {
    const double amount = wanted_.amount / factor;
    if (wanted_.quantity == Quantity::kWalltime || wanted_.quantity == Quantity::kGpu ||
        factor != 1)
      return fmt::format("{:.0f}", std::ceil(amount - 1e-9));
    return FormatQuantity(amount, like);
  }

  Status Replace(const Setting& setting) {
    if (setting.value && Same(*setting.value, wanted_.amount, wanted_.quantity)) return {};
    const NodeId id = document_.ScalarAt(setting.place.begin, setting.place.end);
    if (id == kNoNode)
      return Fail(Code::kInternal, "patch.no_place", setting.name + " is not where it was");
    if (document_.Raw(id).shared)
      return Fail(Code::kFailedPrecondition, "patch.shared",
                  fmt::format("line {}: {} is used by others too, through its YAML anchor",
                              setting.place.line, setting.name));
    // "!!int 2" would not be 2.5.
    const Node& node = document_.Raw(id);
    const std::string_view properties =
        document_.text().substr(node.start, node.begin - node.start);
    if (properties.find('!') != std::string_view::npos &&
        properties.find("!!str") == std::string_view::npos)
      return NotSettable(
          fmt::format("line {}: {} has a YAML tag", setting.place.line, setting.name));
    edits_.push_back({.begin = setting.place.begin,
                      .end = setting.place.end,
                      .replacement = Spell(setting.written, Factor(setting))});
    return {};
  }

  // Units that people write, where the file has no example.
  std::string SpellNew() const {
    switch (wanted_.quantity) {
      case Quantity::kMemory:
        return FormatQuantity(wanted_.amount, "1Gi");
      case Quantity::kCpu:
        return FormatQuantity(wanted_.amount, "1");
      case Quantity::kGpu:
      case Quantity::kGpuMemory:
      case Quantity::kWalltime:
      case Quantity::kDisk:
      case Quantity::kNodes:
      case Quantity::kTasks:
        break;
    }
    return fmt::format("{:.0f}", std::ceil(wanted_.amount - 1e-9));
  }

  Status Insert() {
    for (const Insertion& insertion : part_.insertions) {
      if (insertion.quantity != wanted_.quantity) continue;
      edits_.push_back({.begin = insertion.offset,
                        .end = insertion.offset,
                        .replacement = insertion.before + SpellNew() + insertion.after});
      return {};
    }
    return Fail(Code::kFailedPrecondition, "patch.no_place",
                fmt::format("there is no place for {} of {} {}", Name(wanted_.quantity), part_.kind,
                            part_.name.empty() ? part_.workload : part_.name));
  }

  const Document& document_;
  const Part& part_;
  const Wanted& wanted_;
  std::vector<Edit> edits_;
};

// What no edit of resources may change.
bool SamePart(const Part& a, const Part& b) {
  return a.workload == b.workload && a.kind == b.kind && a.group == b.group && a.name == b.name &&
         a.image == b.image && a.replicas == b.replicas && a.commands.size() == b.commands.size();
}

Status Verify(const Submission& before, const Reading& after, const std::vector<Wanted>& wanted) {
  const auto fail = [](std::string message) {
    return Fail(Code::kFailedPrecondition, "patch.not_reached", std::move(message));
  };
  const std::vector<Part>& parts = after.submission.parts;
  if (parts.size() != before.parts.size() ||
      !std::equal(parts.begin(), parts.end(), before.parts.begin(), SamePart))
    return fail("the edited text would describe other containers");
  for (std::size_t part = 0; part < parts.size(); ++part) {
    for (Quantity quantity : {Quantity::kCpu, Quantity::kMemory, Quantity::kGpu}) {
      const bool meant = std::any_of(wanted.begin(), wanted.end(), [&](const Wanted& each) {
        return each.part == part && each.quantity == quantity;
      });
      if (!meant && Asked(parts[part], quantity) != Asked(before.parts[part], quantity))
        return fail(fmt::format("{} of {} would change too", Name(quantity), parts[part].name));
    }
  }
  for (const Wanted& each : wanted) {
    if (!Reached(parts[each.part], each))
      return fail(fmt::format("{} of {} would not be what is wanted", Name(each.quantity),
                              parts[each.part].name));
  }
  return {};
}

}  // namespace
}  // namespace kubernetes

base::Result<std::vector<Edit>> PlanKubernetesEdits(std::string_view text,
                                                    const Submission& submission,
                                                    const std::vector<Wanted>& wanted) {
  using kubernetes::Reading;
  kubernetes::EditSequence sequence(text);
  EXPANSE_ASSIGN_OR_RETURN(Reading reading, Reading::Of(text));
  for (const Wanted& each : wanted) {
    if (each.part >= submission.parts.size() || each.part >= reading.submission.parts.size())
      return base::Fail(base::Code::kInvalidArgument, "patch.no_place", "there is no such part");
    EXPANSE_ASSIGN_OR_RETURN(std::vector<Edit> edits, kubernetes::Step(reading, each).Plan());
    if (edits.empty()) continue;
    // From behind, so that earlier bytes stay where they are.
    std::sort(edits.begin(), edits.end(),
              [](const Edit& a, const Edit& b) { return a.begin > b.begin; });
    for (const Edit& edit : edits) sequence.Apply(edit);
    EXPANSE_ASSIGN_OR_RETURN(reading, Reading::Of(sequence.text()));
  }
  EXPANSE_RETURN_IF_ERROR(kubernetes::Verify(submission, reading, wanted));
  return sequence.Edits();
}

}  // namespace expanse::workload
