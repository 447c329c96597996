// PlanNomadEdits: which values to write where, so that the tasks ask for what is wanted.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "workload/nomad/insert.h"
#include "workload/nomad/nomad.h"

namespace expanse::workload {
namespace {

using base::Code;
using base::Fail;
using base::Status;
using hcl::Expression;
using hcl::Kind;
using nomad::Jobspec;

constexpr double kMebibyte = 1 << 20;
constexpr double kLeastMemory = 10 * kMebibyte;  // what Nomad takes at least

std::unexpected<base::Error> NoPlace(std::string message) {
  return Fail(Code::kFailedPrecondition, "patch.no_place", std::move(message));
}
std::unexpected<base::Error> Unresolved(std::string message) {
  return Fail(Code::kFailedPrecondition, "patch.unresolved", std::move(message));
}
std::unexpected<base::Error> NotReached(std::string message) {
  return Fail(Code::kFailedPrecondition, "patch.not_reached", std::move(message));
}

// How often each variable and local of a file is used.
class Uses {
 public:
  explicit Uses(const hcl::Body& file) { Visit(file); }

  int Of(const std::string& root, const std::string& name) const {
    const auto found = uses_.find({root, name});
    return (found == uses_.end() ? 0 : found->second) + (unknown_.contains(root) ? 2 : 0);
  }

 private:
  void Visit(const hcl::Body& body) {
    for (const hcl::Attribute& attribute : body.attributes) Visit(attribute.value);
    for (const hcl::Block& block : body.blocks) Visit(block.body);
  }

  void Visit(const Expression& expression) {
    const bool member = expression.kind == Kind::kAttribute || expression.kind == Kind::kIndex;
    if (member && expression.children[0].kind == Kind::kVariable) {
      const std::string& root = expression.children[0].text;
      if (expression.kind == Kind::kAttribute) {
        ++uses_[{root, expression.text}];
        return;
      }
      if (expression.children[1].kind == Kind::kString) {
        ++uses_[{root, expression.children[1].text}];
        return;
      }
      unknown_.insert(root);
    } else if (expression.kind == Kind::kVariable) {
      unknown_.insert(expression.text);  // all of var or local at once
    }
    for (const Expression& child : expression.children) Visit(child);
  }

  std::map<std::pair<std::string, std::string>, int> uses_;
  std::set<std::string> unknown_;
};

// What a setting comes to, for the comparison of before and after.
using Fact = std::tuple<Quantity, Bound, bool, std::optional<double>>;

std::vector<std::vector<Fact>> Facts(const Submission& submission) {
  std::vector<std::vector<Fact>> facts;
  for (const Part& part : submission.parts) {
    facts.emplace_back();
    for (const Setting& setting : part.settings) {
      facts.back().emplace_back(setting.quantity, setting.bound, setting.effective, setting.value);
    }
  }
  return facts;
}

class Planner {
 public:
  Planner(std::string_view text, const Jobspec& jobspec)
      : text_(text), jobspec_(jobspec), facts_(Facts(jobspec.submission)) {}

  Status Add(const Wanted& wanted) {
    if (wanted.part >= jobspec_.tasks.size() || !(wanted.amount >= 0) || wanted.amount > 1e18) {
      return Fail(Code::kInvalidArgument, "patch.no_place", "no such part, or no such amount");
    }
    part_ = wanted.part;
    switch (wanted.quantity) {
      case Quantity::kMemory:
        return Memory(wanted.amount);
      case Quantity::kCpu:
        return Cores(std::ceil(wanted.amount));
      case Quantity::kGpu:
        return Gpus(std::ceil(wanted.amount));
      case Quantity::kGpuMemory:
        return GpuMemory(wanted.amount);
      case Quantity::kDisk:
        return Disk(wanted.amount);
      case Quantity::kWalltime:
        return NoPlace("Nomad has no walltime");
      case Quantity::kNodes:
      case Quantity::kTasks:
        return NoPlace(What() + ": Nomad counts allocations, not nodes or tasks");
    }
    return {};
  }

  const std::vector<Edit>& edits() const { return edits_; }

  // The edited text must ask for what was wanted, and for nothing else than before.
  Status Check(const ParseOptions& options) const {
    const auto edited = ApplyEdits(text_, edits_);
    if (!edited) return std::unexpected(edited.error());
    const auto again = nomad::ReadJobspec(*edited, options);
    if (!again) return NotReached("the edited jobspec does not parse: " + again.error().message);
    auto before = facts_;
    auto after = Facts(again->submission);
    if (before.size() != after.size()) return NotReached("the edited jobspec has other tasks");
    for (std::size_t i = 0; i < before.size(); ++i) {
      std::ranges::sort(before[i]);
      std::ranges::sort(after[i]);
      if (before[i] == after[i]) continue;
      const Part& part = jobspec_.submission.parts[i];
      return NotReached("the edited jobspec would not ask for that in task \"" + part.name + "\"");
    }
    return {};
  }

 private:
  const Part& part() const { return jobspec_.submission.parts[part_]; }
  const Jobspec::Task& task() const { return jobspec_.tasks[part_]; }
  std::string What() const { return "task \"" + part().name + "\""; }

  // The setting of a quantity that counts; its index, or nothing.
  std::optional<std::size_t> Find(Quantity quantity, Bound bound) const {
    for (std::size_t i = 0; i < part().settings.size(); ++i) {
      const Setting& setting = part().settings[i];
      const bool megahertz = quantity == Quantity::kCpu && setting.unit;
      if (setting.quantity == quantity && setting.bound == bound && setting.effective && !megahertz)
        return i;
    }
    return {};
  }

  Status Memory(double amount) {
    if (part().request.memory_bytes && static_cast<double>(*part().request.memory_bytes) == amount)
      return {};
    const double mebibytes = std::max(std::ceil(amount / kMebibyte), kLeastMemory / kMebibyte);
    const std::size_t before = edits_.size();
    if (const auto request = Find(Quantity::kMemory, Bound::kRequest)) {
      EXPANSE_RETURN_IF_ERROR(Set(*request, mebibytes, kMebibyte));
    } else {
      Insert(nomad::InsertMemory(text_, jobspec_, task()), mebibytes);
      facts_[part_].emplace_back(Quantity::kMemory, Bound::kRequest, true, mebibytes * kMebibyte);
    }
    const auto most = Find(Quantity::kMemory, Bound::kLimit);
    if (!most || edits_.size() == before) return {};
    const auto value = part().settings[*most].value;
    if (!value || *value >= mebibytes * kMebibyte) return {};
    return Set(*most, mebibytes, kMebibyte);
  }

  Status Cores(double cores) {
    const auto setting = Find(Quantity::kCpu, Bound::kRequest);
    if (!setting || part().settings[*setting].value == 0) {
      return NoPlace(What() + " counts its CPU in MHz, and how many a core has is not known");
    }
    return Set(*setting, std::max(cores, 1.0), 1);
  }

  Status Gpus(double count) {
    if (part().request.gpu_count == count) return {};
    if (task().devices.empty()) {
      return NoPlace(What() + " has no GPU device, and which one it could have is not known");
    }
    if (task().devices.size() > 1) return NoPlace(What() + " asks for several kinds of GPU");
    if (count < 1) {
      return NoPlace(What() + ": a device block asks for one GPU at least; remove it instead");
    }
    const auto setting = Find(Quantity::kGpu, Bound::kRequest);
    if (!setting) return NoPlace(What() + " has no GPU device");
    if (task().values[*setting] != nullptr) return Set(*setting, count, 1);
    Insert(nomad::InsertCount(text_, task().devices[0], jobspec_.api), count);
    std::get<3>(facts_[part_][*setting]) = count;
    return {};
  }

  Status GpuMemory(double amount) {
    constexpr double kGibibyte = 1 << 30;
    const auto setting = Find(Quantity::kGpuMemory, Bound::kRequest);
    if (!setting) return NoPlace(What() + " has no constraint on the memory of its GPU");
    const double gibibytes = std::ceil(amount / kGibibyte);
    if (part().settings[*setting].value == gibibytes * kGibibyte) return {};
    EXPANSE_ASSIGN_OR_RETURN(const Expression* literal, Literal(*setting));
    Replace(*literal, Whole(gibibytes) + " GiB");
    std::get<3>(facts_[part_][*setting]) = gibibytes * kGibibyte;
    return {};
  }

  Status Disk(double amount) {
    const auto setting = Find(Quantity::kDisk, Bound::kRequest);
    if (!setting) return NoPlace(What() + ": its group has no ephemeral_disk block");
    return Set(*setting, std::ceil(amount / kMebibyte), kMebibyte);
  }

  static std::string Whole(double number) {
    return std::to_string(static_cast<std::int64_t>(number));
  }

  Status Set(std::size_t setting, double number, double factor) {
    const Setting& written = part().settings[setting];
    if (written.value == number * factor) return {};
    EXPANSE_ASSIGN_OR_RETURN(const Expression* literal, Literal(setting));
    Replace(*literal, Whole(number));
    std::get<3>(facts_[part_][setting]) = number * factor;
    return {};
  }

  void Replace(const Expression& literal, std::string value) {
    const Place place = nomad::PlaceOfValue(*jobspec_.context, literal);
    Edit edit{place.begin, place.end, std::move(value)};
    if (std::ranges::find(edits_, edit) == edits_.end()) edits_.push_back(std::move(edit));
  }

  void Insert(std::vector<Edit> edits, double number) {
    for (Edit& edit : edits) {
      const std::size_t mark = edit.replacement.find(nomad::kValueMark);
      if (mark != std::string::npos) edit.replacement.replace(mark, 1, Whole(number));
      edits_.push_back(std::move(edit));
    }
  }

  // The literal that a setting's value comes from.
  base::Result<const Expression*> Literal(std::size_t setting) {
    const Setting& written = part().settings[setting];
    const std::string what = What() + ", " + written.name;
    if (!written.value) {
      return Unresolved(what + ": its value is not known (" + written.unresolved + ")");
    }
    const Expression* at = task().values[setting];
    // Through variables and locals: each a step further away.
    for (int steps = 0; at != nullptr && steps < 16; ++steps) {
      while (at->kind == Kind::kTemplate && at->children.size() == 1) at = &at->children[0];
      if (at->kind == Kind::kNumber || at->kind == Kind::kString) return at;
      const bool member = at->kind == Kind::kAttribute && at->children[0].kind == Kind::kVariable;
      const std::string root = member ? at->children[0].text : std::string();
      if (root != "var" && root != "local") {
        return Unresolved(what + ": an expression gives its value (" + written.written + ")");
      }
      const std::string name = root + "." + at->text;
      if (!uses_) uses_.emplace(*jobspec_.file);
      if (uses_->Of(root, at->text) > 1) {
        return Unresolved(what + ": " + name + " gives its value, and others use that too");
      }
      at = jobspec_.context->evaluator.Source(root, at->text);
      if (at == nullptr) return Unresolved(what + ": " + name + " is not given by this file");
    }
    return Unresolved(what + ": where its value comes from is not clear");
  }

  std::string_view text_;
  const Jobspec& jobspec_;
  std::vector<std::vector<Fact>> facts_;  // what the edited text has to come to
  std::vector<Edit> edits_;
  std::optional<Uses> uses_;
  std::size_t part_ = 0;
};

}  // namespace

base::Result<std::vector<Edit>> PlanNomadEdits(std::string_view text, const Submission& submission,
                                               const std::vector<Wanted>& wanted,
                                               const ParseOptions& options) {
  const auto jobspec = nomad::ReadJobspec(text, options);
  if (!jobspec) {
    return Fail(Code::kInvalidArgument, "patch.not_reached",
                "the jobspec does not parse: " + jobspec.error().message);
  }
  if (jobspec->submission.parts.size() != submission.parts.size()) {
    return Fail(Code::kInvalidArgument, "patch.not_reached",
                "the submission is not what this jobspec says");
  }
  Planner planner(text, *jobspec);
  for (const Wanted& one : wanted) EXPANSE_RETURN_IF_ERROR(planner.Add(one));
  if (planner.edits().empty()) return std::vector<Edit>();
  EXPANSE_RETURN_IF_ERROR(planner.Check(options));
  return planner.edits();
}

}  // namespace expanse::workload
