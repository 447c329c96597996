// What a task asks for: its resources and devices.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "workload/nomad/jobspec.h"

namespace expanse::workload::nomad {
namespace {

using hcl::Expression;
using hcl::Value;

constexpr double kMebibyte = 1 << 20;
constexpr std::size_t kMaxWritten = 4096;

// "gpu", "nvidia/gpu", "nvidia/gpu/Tesla V100": is it a GPU, and which.
bool IsGpu(std::string_view device, std::string& model) {
  const auto pieces = base::Split(device, '/');
  const std::string_view type = pieces.size() == 1 ? pieces[0] : pieces[1];
  if (pieces.size() >= 3) model = device.substr(pieces[0].size() + pieces[1].size() + 2);
  return base::ToLower(type).find("gpu") != std::string::npos;
}

Setting MakeSetting(Quantity quantity, Bound bound = Bound::kRequest) {
  Setting setting;
  setting.quantity = quantity;
  setting.per = Per::kContainer;
  setting.bound = bound;
  return setting;
}

class ResourcesReader {
 public:
  ResourcesReader(Context& context, const Section& task, Part& part, Jobspec::Task& places)
      : context_(context), task_(task), part_(part), places_(places) {}

  void Read() {
    ForEachSection(context_, task_, "resources", [&](const Section& resources) {
      if (places_.resources.body != nullptr) return false;  // one block, whatever its spelling
      places_.resources = resources;
      ReadAmounts(resources);
      ForEachSection(context_, resources, "device", [&](const Section& device) {
        ReadDevice(device, /*effective=*/true);
        return true;
      });
      ForEachSection(context_, resources, "numa", [&](const Section& numa) {
        context_.AddNote(numa.begin, "numa",
                         "NUMA affinity " + GetName(context_, numa, "affinity"));
        return true;
      });
      return true;
    });
    ForEachSection(context_, task_, "device", [&](const Section& device) {
      context_.AddNote(device.begin, "device_not_read",
                       "a device block outside of resources: Nomad does not take it");
      ReadDevice(device, /*effective=*/false);
      return true;
    });
    NoteDefaults();
  }

 private:
  void ReadAmounts(const Section& resources) {
    if (const Expression* cpu = resources.Find("cpu")) {
      Setting& setting =
          AddSetting(context_, resources, *cpu, MakeSetting(Quantity::kCpu), 1, part_, places_);
      setting.unit = "MHz";
      has_cpu_ = true;
    }
    if (const Expression* cores = resources.Find("cores")) {
      const Setting& setting =
          AddSetting(context_, resources, *cores, MakeSetting(Quantity::kCpu), 1, part_, places_);
      // The API writes a zero where none are reserved.
      if (setting.value != 0) {
        part_.request.cpu_cores = setting.value;
        if (has_cpu_ && resources.body->style == hcl::Style::kHcl) {
          context_.AddNote(cores->begin, "conflict", "Nomad takes cpu or cores, not both");
        }
        has_cpu_ = true;
      }
    }
    if (const Expression* memory = resources.Find("memory")) {
      const Setting& setting = AddSetting(
          context_, resources, *memory, MakeSetting(Quantity::kMemory), kMebibyte, part_, places_);
      if (setting.value) part_.request.memory_bytes = static_cast<std::uint64_t>(*setting.value);
      has_memory_ = true;
    }
    if (const Expression* most = resources.Find("memory_max")) {
      Setting& setting =
          AddSetting(context_, resources, *most, MakeSetting(Quantity::kMemory, Bound::kLimit),
                     kMebibyte, part_, places_);
      const double memory = static_cast<double>(part_.request.memory_bytes.value_or(0));
      if (setting.value == 0) {
        setting.effective = false;  // the API's way to say none
      } else if (setting.value && *setting.value < memory) {
        context_.AddNote(most->begin, "conflict", "memory_max is below memory");
      }
    }
  }

  void ReadDevice(const Section& device, bool effective) {
    std::string model;
    if (!IsGpu(device.label, model)) {
      context_.AddNote(device.begin, "device",
                       "device \"" + device.label.substr(0, 200) + "\" is no GPU: not counted");
      return;
    }
    ReadConstraints(device, model, effective);
    Setting setting = MakeSetting(Quantity::kGpu);
    setting.gpu_type = (model.empty() ? device.label : model).substr(0, 1024);
    setting.effective = effective;
    const Expression* const count = device.Find("count");
    std::optional<double> devices = 1;  // what Nomad takes where no count is written
    if (count != nullptr) {
      Setting& added = AddSetting(context_, device, *count, setting, 1, part_, places_);
      added.name = "device.count";
      devices = added.value;
    } else {
      setting.name = "device";
      setting.place = context_.lines.PlaceOf(device.label_begin, device.label_end);
      setting.written = context_.text.substr(
          device.label_begin, std::min(device.label_end - device.label_begin, kMaxWritten));
      setting.value = 1;
      places_.values.push_back(nullptr);
      part_.settings.push_back(setting);
    }
    if (!effective) return;
    places_.devices.push_back(device);
    if (part_.request.gpu_type.empty()) part_.request.gpu_type = setting.gpu_type;
    if (devices && !unknown_gpus_) {
      part_.request.gpu_count = part_.request.gpu_count.value_or(0) + *devices;
    } else {
      unknown_gpus_ = true;
      part_.request.gpu_count.reset();
    }
  }

  // Of a device: which model, how much memory.
  void ReadConstraints(const Section& device, std::string& model, bool effective) {
    ForEachSection(context_, device, "constraint", [&](const Section& constraint) {
      const std::string attribute = GetName(context_, constraint, "attribute");
      const std::string operation = GetName(context_, constraint, "operator");
      const Expression* const wanted = constraint.Find("value");
      if (wanted == nullptr) return true;
      const bool equal =
          operation.empty() || operation == "=" || operation == "==" || operation == "is";
      if (attribute == "${device.model}" && equal) {
        const Value value = context_.evaluator.Evaluate(*wanted, constraint.scope);
        const auto text = value.AsString();
        if (text && !IsRuntimeText(*text)) model = text->substr(0, 1024);
      }
      if (attribute == "${device.attr.memory}" &&
          (equal || operation == ">=" || operation == ">")) {
        ReadGpuMemory(constraint, *wanted, effective);
      }
      return true;
    });
  }

  void ReadGpuMemory(const Section& constraint, const Expression& wanted, bool effective) {
    Setting setting = MakeSetting(Quantity::kGpuMemory);
    setting.per = Per::kGpu;
    setting.effective = effective;
    setting.name = "device.attr.memory";
    setting.place = PlaceOfValue(context_, wanted);
    setting.written = context_.text.substr(
        setting.place.begin, std::min(setting.place.end - setting.place.begin, kMaxWritten));
    const Value value = context_.evaluator.Evaluate(wanted, constraint.scope);
    const auto text = value.AsString();
    if (const auto bytes = text ? ParseUnitSize(*text) : std::nullopt) {
      setting.value = *bytes;
      if (effective) part_.request.gpu_memory_bytes = static_cast<std::uint64_t>(*bytes);
    } else {
      setting.unresolved = value.known() ? "not a size with a unit" : value.reason();
    }
    places_.values.push_back(&wanted);
    part_.settings.push_back(std::move(setting));
  }

  void NoteDefaults() {
    std::string missing;
    if (!has_cpu_) missing = "cpu (100 MHz)";
    if (!has_memory_) missing += std::string(missing.empty() ? "" : " and ") + "memory (300 MB)";
    if (missing.empty()) return;
    context_.AddNote(task_.begin, "default",
                     "task \"" + part_.name + "\" takes Nomad's default of " + missing);
  }

  Context& context_;
  const Section& task_;
  Part& part_;
  Jobspec::Task& places_;
  bool has_cpu_ = false;
  bool has_memory_ = false;
  bool unknown_gpus_ = false;
};

}  // namespace

void SetAmount(const Value& value, double factor, Setting& setting) {
  const auto number = value.AsNumber();
  if (!value.known()) {
    setting.unresolved = value.reason();
  } else if (!number) {
    const std::string text = value.AsString().value_or("");
    setting.unresolved = hcl::HasForeignTemplate(text)          ? "template"
                         : text.find("${") != std::string::npos ? "runtime value " + text
                                                                : "not a number";
  } else if (*number < 0 || *number != std::floor(*number)) {
    setting.unresolved = "not a whole number";
  } else if (*number > 1e12) {
    setting.unresolved = "out of range";
  } else {
    setting.value = *number * factor;
  }
}

Setting& AddSetting(Context& context, const Section& in, const Expression& value, Setting setting,
                    double factor, Part& part, Jobspec::Task& places) {
  const auto attribute = std::ranges::find_if(
      in.body->attributes, [&](const hcl::Attribute& a) { return &a.value == &value; });
  if (attribute != in.body->attributes.end()) {
    const std::string_view name =
        context.text.substr(attribute->begin, attribute->name_end - attribute->begin);
    setting.name = name.size() >= 2 && name[0] == '"' ? name.substr(1, name.size() - 2) : name;
  }
  setting.place = PlaceOfValue(context, value);
  setting.written = context.text.substr(
      setting.place.begin, std::min(setting.place.end - setting.place.begin, kMaxWritten));
  SetAmount(context.evaluator.Evaluate(value, in.scope), factor, setting);
  places.values.push_back(&value);
  part.settings.push_back(std::move(setting));
  return part.settings.back();
}

std::optional<double> ParseUnitSize(std::string_view text) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0},
      {"kB", 1e3},     {"KB", 1e3},        {"MB", 1e6},           {"GB", 1e9},
      {"TB", 1e12},    {"B", 1.0},
  };
  text = base::Trim(text);
  for (const auto& [unit, factor] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const auto number = base::ParseDouble(base::Trim(text.substr(0, text.size() - unit.size())));
    if (!number || !(*number >= 0) || *number * factor > 1e18) return std::nullopt;
    return *number * factor;
  }
  return std::nullopt;
}

void ReadResources(Context& context, const Section& task, Part& part, Jobspec::Task& places) {
  ResourcesReader(context, task, part, places).Read();
}

}  // namespace expanse::workload::nomad
