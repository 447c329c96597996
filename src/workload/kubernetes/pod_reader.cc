#include "workload/kubernetes/pod_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "workload/kubernetes/quantity.h"
#include "workload/kubernetes/resources.h"

namespace expanse::workload::kubernetes {
namespace {

// Of a quantity: what the scheduler reserves, or nothing when not asked for or not known.
std::optional<double> Reserved(const Part& part, Quantity quantity) {
  for (Bound bound : {Bound::kRequest, Bound::kLimit}) {
    double sum = 0;
    bool found = false;
    for (const Setting& setting : part.settings) {
      if (setting.quantity != quantity || setting.bound != bound || !setting.effective) continue;
      if (!setting.value) return std::nullopt;
      found = true;
      sum += *setting.value;
    }
    if (found) return sum;
  }
  return std::nullopt;
}

// Of several deadlines the first to come.
std::optional<std::int64_t> Deadline(const Part& part) {
  std::optional<double> least;
  for (const Setting& setting : part.settings) {
    if (setting.quantity != Quantity::kWalltime) continue;
    if (!setting.value) return std::nullopt;
    least = std::min(least.value_or(*setting.value), *setting.value);
  }
  if (!least || *least > 9e15) return std::nullopt;
  return static_cast<std::int64_t>(*least);
}

std::optional<std::uint64_t> ToBytes(std::optional<double> bytes) {
  if (!bytes || *bytes > 9e18) return std::nullopt;
  return static_cast<std::uint64_t>(std::ceil(*bytes));
}

}  // namespace

std::string ShortName(std::string_view text) {
  constexpr std::size_t kMaxName = 1024;
  return std::string(text.substr(0, kMaxName));
}

void Sum(Part& part) {
  std::stable_sort(
      part.settings.begin(), part.settings.end(),
      [](const Setting& a, const Setting& b) { return a.place.begin < b.place.begin; });
  Request& request = part.request;
  request.cpu_cores = Reserved(part, Quantity::kCpu);
  request.memory_bytes = ToBytes(Reserved(part, Quantity::kMemory));
  request.gpu_count = Reserved(part, Quantity::kGpu);
  request.gpu_memory_bytes = ToBytes(Reserved(part, Quantity::kGpuMemory));
  request.walltime_s = Deadline(part);
  for (const Setting& setting : part.settings) {
    if (setting.quantity == Quantity::kGpu && request.gpu_type.empty())
      request.gpu_type = setting.gpu_type;
  }
}

void PodReader::Note(std::size_t offset, std::string_view reason, std::string message) {
  constexpr std::size_t kMaxNotes = 200;
  const std::uint32_t line = document_.LineAt(offset);
  // Aliases lead to the same place again and again.
  const bool known = std::any_of(
      submission_.notes.begin(), submission_.notes.end(), [&](const workload::Note& note) {
        return note.line == line && note.reason == reason && note.message == message;
      });
  if (known || submission_.notes.size() >= kMaxNotes) return;
  submission_.notes.push_back(
      {.line = line, .reason = std::string(reason), .message = std::move(message)});
}

void PodReader::AddAnnotations(Owner& owner, NodeId object) {
  const NodeId metadata = document_.Find(object, "metadata");
  if (metadata == kNoNode || exhausted()) return;
  Annotations annotations = *owner.annotations;
  for (const auto& [key, value] : annotations) spent_ += key.size() + value.size();
  for (std::string_view kind : {"labels", "annotations"}) {
    for (const Entry& entry : document_.Members(document_.Find(metadata, kind))) {
      if (!document_.Is(entry.value, NodeKind::kScalar) || document_.At(entry.value).templated)
        continue;
      const std::string_view text = document_.Text(entry.value);
      spent_ += text.size() + 1;
      if (exhausted()) return;
      annotations.insert_or_assign(ShortName(document_.Text(entry.key)), std::string(text));
    }
  }
  owner.annotations = std::make_shared<const Annotations>(std::move(annotations));
}

std::optional<Setting> PodReader::ReadSetting(NodeId value, Quantity quantity, double factor,
                                              std::string name) const {
  if (value == kNoNode || document_.Is(value, NodeKind::kNull)) return std::nullopt;
  const Node& node = document_.At(value);
  Setting setting{.quantity = quantity, .per = Per::kContainer, .name = std::move(name)};
  // What is too long for a quantity may be there many times, by aliases.
  constexpr std::size_t kMaxWritten = 1024;
  const bool fits = node.kind == NodeKind::kScalar && node.end - node.begin <= kMaxWritten;
  setting.place = document_.PlaceAt(node.begin, fits ? node.end : node.begin);
  setting.written = document_.text().substr(node.begin, fits ? node.end - node.begin : 0);
  if (node.kind != NodeKind::kScalar) {
    setting.unresolved = "not a single value";
  } else if (node.templated || node.value.find("${") != std::string::npos ||
             node.value.find("$(") != std::string::npos) {
    setting.unresolved = "template";
  } else if (const auto amount = ParseQuantity(node.value)) {
    setting.value = *amount * factor;
  } else {
    setting.unresolved = "not a quantity";
  }
  return setting;
}

bool PodReader::Multiply(Owner& owner, NodeId map, std::string_view key, std::string_view name) {
  auto setting = ReadSetting(document_.Find(map, key), Quantity::kTasks, 1, std::string(name));
  if (!setting) return true;
  setting->per = Per::kJob;
  const bool known = setting->value.has_value();
  if (known) owner.replicas *= *setting->value;
  if (!known)
    Note(setting->place.begin, "unresolved_replicas",
         fmt::format("{} is not known, counted as 1", name));
  owner.settings.push_back(std::move(*setting));
  return known;
}

void PodReader::AddDeadline(Owner& owner, NodeId map, std::vector<std::string_view> path,
                            std::string_view name, bool insertable) {
  NodeId value = map;
  for (std::string_view key : path) value = document_.Find(value, key);
  if (auto setting = ReadSetting(value, Quantity::kWalltime, 1, std::string(name))) {
    setting->per = Per::kJob;
    owner.settings.push_back(std::move(*setting));
  } else if (insertable) {
    auto insertion = FindInsertion(document_, map, {.path = std::move(path)}, Quantity::kWalltime,
                                   Bound::kRequest);
    if (insertion) owner.insertions.push_back(std::move(*insertion));
  }
}

void PodReader::ReadTemplate(Owner owner, NodeId pod) {
  AddAnnotations(owner, pod);
  ReadPodSpec(std::move(owner), document_.Find(pod, "spec"));
}

void PodReader::ReadPodSpec(Owner owner, NodeId spec) {
  if (!document_.Is(spec, NodeKind::kMap) || exhausted()) return;
  const bool is_pod = owner.kind == "Pod";
  AddDeadline(owner, spec, {"activeDeadlineSeconds"}, "spec.activeDeadlineSeconds", is_pod);
  const NodeId claims = document_.Find(spec, "resourceClaims");
  if (!document_.Items(claims).empty())
    Note(document_.At(claims).begin, "resource_claims",
         "devices are asked for by resource claims, which are not in this object");
  for (const Entry& entry : document_.Items(document_.Find(spec, "initContainers"))) {
    // One that stays beside the others is a sidecar, not a step before them.
    const bool stays = document_.Text(document_.Find(entry.value, "restartPolicy")) == "Always";
    ReadContainer(owner, entry.value, {.is_init = !stays});
  }
  const std::size_t first = submission_.parts.size();
  for (const Entry& entry : document_.Items(document_.Find(spec, "containers")))
    ReadContainer(owner, entry.value);
  PodResources(first, spec);
}

void PodReader::ReadContainer(const Owner& owner, NodeId container, const ContainerShape& shape,
                              std::string_view name) {
  if (!document_.Is(container, NodeKind::kMap)) return;
  const Node& node = document_.At(container);
  spent_ += 1024 + (node.end - node.begin);
  if (exhausted()) return;
  Part part{.workload = owner.workload,
            .kind = owner.kind,
            .name_space = owner.name_space,
            .group = owner.group,
            .name = ShortName(document_.Text(document_.Find(container, "name"))),
            .image = ShortName(document_.Text(document_.Find(container, "image"))),
            .is_init = shape.is_init,
            .replicas = owner.replicas,
            .array_size = owner.array_size,
            .settings = owner.settings,
            .annotations = *owner.annotations,
            .insertions = owner.insertions};
  if (part.name.empty()) part.name = name;
  part.request.tasks = owner.tasks;
  ReadResources(part, shape.resources_in == kNoNode ? container : shape.resources_in, shape);
  ReadCommands(document_, container, part);
  for (const Command& command : part.commands) {
    for (const Word& word : command.words) spent_ += word.text.size();
  }
  for (const Setting& setting : part.settings) spent_ += sizeof(Setting) + setting.name.size();
  for (const auto& [key, value] : part.environment) spent_ += key.size() + value.size();
  for (const auto& [key, value] : part.annotations) spent_ += key.size() + value.size();
  Sum(part);
  submission_.parts.push_back(std::move(part));
}

void PodReader::AttachEntrypoint(std::size_t first, NodeId entrypoint) {
  for (std::size_t i = first; i < submission_.parts.size(); ++i) {
    if (submission_.parts[i].is_init) continue;
    ReadEntrypoint(document_, entrypoint, submission_.parts[i]);
    return;
  }
}

void PodReader::AddOpaque(Part& part, NodeId value, std::string_view name, Bound bound) {
  for (Quantity quantity : {Quantity::kCpu, Quantity::kMemory, Quantity::kGpu}) {
    auto setting = ReadSetting(value, quantity, 1, std::string(name));
    if (!setting) return;
    setting->value.reset();
    setting->bound = bound;
    if (setting->unresolved.empty()) setting->unresolved = "not a map";
    part.settings.push_back(std::move(*setting));
  }
}

void PodReader::ReadResources(Part& part, NodeId container, const ContainerShape& shape) {
  const NodeId resources = document_.Find(container, shape.resources);
  if (document_.Is(resources, NodeKind::kScalar))
    return AddOpaque(part, resources, shape.resources, Bound::kRequest);
  const std::string name(shape.resources);
  ReadBound(part, resources, name + ".requests", Bound::kRequest);
  ReadBound(part, resources, name + ".limits", Bound::kLimit);
  const NodeId claims = document_.Find(resources, "claims");
  if (!document_.Items(claims).empty())
    Note(document_.At(claims).begin, "resource_claims",
         "container " + base::EscapeForDisplay(part.name) + " gets devices by a resource claim");
  AddInsertions(part, container, shape);
}

void PodReader::ReadBound(Part& part, NodeId resources, std::string_view prefix, Bound bound) {
  const NodeId map = document_.Find(resources, prefix.substr(prefix.rfind('.') + 1));
  if (document_.Is(map, NodeKind::kScalar)) return AddOpaque(part, map, prefix, bound);
  constexpr std::size_t kMaxKey = 320;  // a domain and a name
  for (const Entry& entry : document_.Members(map)) {
    const std::string_view name = document_.Text(entry.key).substr(0, kMaxKey);
    if (document_.At(entry.key).templated) {
      Note(document_.At(entry.key).begin, "template",
           "the name of a resource is left to a template");
      continue;
    }
    const auto resource = FindResource(name);
    if (!resource) {
      if (bound == Bound::kLimit || document_.Find(resources, {"limits", name}) == kNoNode)
        Note(document_.At(entry.key).begin, "other_resource",
             fmt::format("{} is no CPU, memory, GPU or disk", base::EscapeForDisplay(name)));
      continue;
    }
    auto setting = ReadSetting(entry.value, resource->quantity, resource->factor,
                               fmt::format("{}.{}", prefix, name));
    if (!setting) continue;
    setting->bound = bound;
    if (document_.At(entry.value).shared)
      Note(setting->place.begin, "shared_value",
           fmt::format("{} is used by others too, through its YAML anchor",
                       base::EscapeForDisplay(name)));
    if (resource->quantity == Quantity::kGpu || resource->quantity == Quantity::kGpuMemory)
      setting->gpu_type = name;
    if (!resource->unit.empty()) setting->unit = std::string(resource->unit);
    part.settings.push_back(std::move(*setting));
  }
}

void PodReader::AddInsertions(Part& part, NodeId container, const ContainerShape& shape) {
  const auto has = [&part](Quantity quantity, Bound bound) {
    return std::any_of(part.settings.begin(), part.settings.end(), [&](const Setting& setting) {
      return setting.quantity == quantity && setting.bound == bound;
    });
  };
  struct Missing {
    Quantity quantity;
    Bound bound;
    std::string_view name;
  };
  const std::array kMissing = {Missing{Quantity::kCpu, Bound::kRequest, "cpu"},
                               Missing{Quantity::kMemory, Bound::kRequest, "memory"},
                               Missing{Quantity::kGpu, Bound::kLimit, shape.gpu}};
  for (const Missing& missing : kMissing) {
    if (has(missing.quantity, missing.bound)) continue;
    // A device asked for as a request without its limit is an error of its own.
    if (missing.quantity == Quantity::kGpu && has(Quantity::kGpu, Bound::kRequest)) continue;
    auto insertion = FindInsertion(
        document_, container,
        {.path = {shape.resources, missing.bound == Bound::kRequest ? "requests" : "limits",
                  missing.name},
         .quoted = true,
         .behind = {"image", "name"}},
        missing.quantity, missing.bound);
    if (insertion) part.insertions.push_back(std::move(*insertion));
  }
}

// Resources of the pod as a whole (Kubernetes 1.34): those of its only container, where that asks
// for none itself.
void PodReader::PodResources(std::size_t first_part, NodeId spec) {
  const NodeId resources = document_.Find(spec, "resources");
  if (!document_.Is(resources, NodeKind::kMap) || first_part >= submission_.parts.size()) return;
  Part pod;
  ReadBound(pod, resources, "spec.resources.requests", Bound::kRequest);
  ReadBound(pod, resources, "spec.resources.limits", Bound::kLimit);
  if (pod.settings.empty()) return;
  Part& part = submission_.parts[first_part];
  const bool only = submission_.parts.size() == first_part + 1;
  if (!only)
    Note(document_.At(resources).begin, "pod_resources",
         "the pod asks for resources as a whole; its containers share them");
  for (Setting& setting : pod.settings) {
    setting.per = Per::kTask;
    const bool own =
        std::any_of(part.settings.begin(), part.settings.end(),
                    [&](const Setting& other) { return other.quantity == setting.quantity; });
    setting.effective = only && !own;
  }
  part.settings.insert(part.settings.end(), pod.settings.begin(), pod.settings.end());
  Sum(part);
}

}  // namespace expanse::workload::kubernetes
