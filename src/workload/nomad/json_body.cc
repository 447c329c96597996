// JSON of both kinds as the body of an HCL file.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"
#include "workload/nomad/json.h"

namespace expanse::workload::hcl {
namespace {

// How a name of the API is called in a jobspec. kFree: an object whose names are the user's.
enum class As : std::uint8_t { kAttribute, kBlock, kBlocks, kFree };
enum class In : std::uint8_t {
  kJob,
  kGroup,
  kTask,
  kResources,
  kDevice,
  kConstraint,
  kDisk,
  kLifecycle,
  kScaling,
  kPeriodic,
  kParameterized,
  kTemplate,
  kArtifact,
  kNuma,
};
struct ApiName {
  In in;
  std::string_view name;  // lower case: the API does not mind the case
  std::string_view hcl;
  As as = As::kAttribute;
  In child = In::kJob;
};

// api/jobs.go, api/tasks.go and api/resources.go of Nomad, as its API documentation shows them.
constexpr ApiName kApiNames[] = {
    {In::kJob, "id", "id"},
    {In::kJob, "name", "name"},
    {In::kJob, "type", "type"},
    {In::kJob, "namespace", "namespace"},
    {In::kJob, "meta", "meta", As::kFree},
    {In::kJob, "periodic", "periodic", As::kBlock, In::kPeriodic},
    {In::kJob, "parameterizedjob", "parameterized", As::kBlock, In::kParameterized},
    {In::kJob, "taskgroups", "group", As::kBlocks, In::kGroup},
    {In::kPeriodic, "spec", "cron"},
    {In::kPeriodic, "specs", "crons"},
    {In::kPeriodic, "enabled", "enabled"},
    {In::kParameterized, "payload", "payload"},
    {In::kGroup, "count", "count"},
    {In::kGroup, "meta", "meta", As::kFree},
    {In::kGroup, "tasks", "task", As::kBlocks, In::kTask},
    {In::kGroup, "scaling", "scaling", As::kBlock, In::kScaling},
    {In::kGroup, "ephemeraldisk", "ephemeral_disk", As::kBlock, In::kDisk},
    {In::kScaling, "min", "min"},
    {In::kScaling, "max", "max"},
    {In::kDisk, "sizemb", "size"},
    {In::kTask, "driver", "driver"},
    {In::kTask, "config", "config", As::kFree},
    {In::kTask, "env", "env", As::kFree},
    {In::kTask, "meta", "meta", As::kFree},
    {In::kTask, "resources", "resources", As::kBlock, In::kResources},
    {In::kTask, "lifecycle", "lifecycle", As::kBlock, In::kLifecycle},
    {In::kTask, "templates", "template", As::kBlocks, In::kTemplate},
    {In::kTask, "artifacts", "artifact", As::kBlocks, In::kArtifact},
    {In::kLifecycle, "hook", "hook"},
    {In::kLifecycle, "sidecar", "sidecar"},
    {In::kTemplate, "destpath", "destination"},
    {In::kTemplate, "sourcepath", "source"},
    {In::kArtifact, "gettersource", "source"},
    {In::kArtifact, "relativedest", "destination"},
    {In::kResources, "cpu", "cpu"},
    {In::kResources, "cores", "cores"},
    {In::kResources, "memorymb", "memory"},
    {In::kResources, "memorymaxmb", "memory_max"},
    {In::kResources, "devices", "device", As::kBlocks, In::kDevice},
    {In::kResources, "numa", "numa", As::kBlock, In::kNuma},
    {In::kNuma, "affinity", "affinity"},
    {In::kDevice, "count", "count"},
    {In::kDevice, "constraints", "constraint", As::kBlocks, In::kConstraint},
    {In::kConstraint, "ltarget", "attribute"},
    {In::kConstraint, "operand", "operator"},
    {In::kConstraint, "rtarget", "value"},
};

const Expression* Member(const Expression& object, std::string_view lower) {
  if (object.kind != Kind::kObject) return nullptr;
  for (std::size_t i = 0; i + 1 < object.children.size(); i += 2) {
    if (base::ToLower(object.children[i].text) == lower) return &object.children[i + 1];
  }
  return nullptr;
}

Body EmptyBody(const Expression& object) {
  Body body;
  body.style = Style::kJson;
  body.open = object.begin + 1;
  body.close = object.end - 1;
  return body;
}

void AddAttribute(Body& body, std::string_view name, const Expression& key, Expression value) {
  body.attributes.push_back({std::string(name), key.begin + 1, key.end - 1, std::move(value)});
}

Body FreeBody(const Expression& object) {
  Body body = EmptyBody(object);
  for (std::size_t i = 0; i + 1 < object.children.size(); i += 2) {
    const Expression& key = object.children[i];
    AddAttribute(body, key.text, key, object.children[i + 1]);
  }
  return body;
}

Body ApiBody(const Expression& object, In in);

void AddApiBlock(Body& body, const ApiName& name, const Expression& key, const Expression& value) {
  if (value.kind != Kind::kObject) return;
  Block block;
  block.type = name.hcl;
  block.begin = key.begin;
  if (const Expression* label = Member(value, "name"); label && label->kind == Kind::kString) {
    block.labels.push_back({label->text, label->begin + 1, label->end - 1});
  }
  block.body = name.as == As::kFree ? FreeBody(value) : ApiBody(value, name.child);
  body.blocks.push_back(std::move(block));
}

Body ApiBody(const Expression& object, In in) {
  Body body = EmptyBody(object);
  for (std::size_t i = 0; i + 1 < object.children.size(); i += 2) {
    const Expression& key = object.children[i];
    const Expression& value = object.children[i + 1];
    const std::string lower = base::ToLower(key.text);
    const auto* const name = std::ranges::find_if(
        kApiNames, [&](const ApiName& entry) { return entry.in == in && entry.name == lower; });
    if (name == std::end(kApiNames)) continue;
    if (name->as == As::kAttribute || value.kind == Kind::kNull) {
      AddAttribute(body, name->hcl, key, value);
    } else if (name->as == As::kBlocks && value.kind == Kind::kTuple) {
      for (const Expression& item : value.children) AddApiBlock(body, *name, key, item);
    } else {
      AddApiBlock(body, *name, key, value);
    }
  }
  return body;
}

// The blocks that HCL's JSON writes as objects, and how many levels of names each has.
struct JsonBlock {
  std::string_view type;
  int labels;
  bool free = false;
};
constexpr JsonBlock kJsonBlocks[] = {
    {"job", 1},          {"group", 1},        {"task", 1},           {"resources", 0},
    {"device", 1},       {"config", 0, true}, {"env", 0, true},      {"meta", 0, true},
    {"constraint", 0},   {"lifecycle", 0},    {"ephemeral_disk", 0}, {"template", 0},
    {"artifact", 0},     {"periodic", 0},     {"parameterized", 0},  {"variable", 1},
    {"locals", 0, true}, {"numa", 0},         {"scaling", 0},        {"content", 0},
    {"dynamic", 1},
};

// HCL's JSON: strings are templates.
class JsonBodyMaker {
 public:
  Parsed<Body> Make(const Expression& object) {
    Body body = ObjectBody(object, /*free=*/false);
    if (refusal_) return std::unexpected(*refusal_);
    return body;
  }

 private:
  Body ObjectBody(const Expression& object, bool free) {
    Body body = EmptyBody(object);
    for (std::size_t i = 0; i + 1 < object.children.size(); i += 2) {
      const Expression& key = object.children[i];
      const Expression& value = object.children[i + 1];
      if (key.text == "//") continue;
      const auto* const block = std::ranges::find(kJsonBlocks, key.text, &JsonBlock::type);
      const bool nested = value.kind == Kind::kObject || value.kind == Kind::kTuple;
      if (free || block == std::end(kJsonBlocks) || !nested) {
        AddAttribute(body, key.text, key, Templates(value));
      } else {
        AddBlocks(body, *block, key, value, {});
      }
    }
    return body;
  }

  void AddBlocks(Body& body, const JsonBlock& type, const Expression& key, const Expression& value,
                 std::vector<Label> labels) {
    if (value.kind == Kind::kTuple) {
      for (const Expression& item : value.children) AddBlocks(body, type, key, item, labels);
      return;
    }
    if (value.kind != Kind::kObject) return;
    if (labels.size() < static_cast<std::size_t>(type.labels)) {
      for (std::size_t i = 0; i + 1 < value.children.size(); i += 2) {
        const Expression& name = value.children[i];
        std::vector<Label> more = labels;
        more.push_back({name.text, name.begin + 1, name.end - 1});
        AddBlocks(body, type, key, value.children[i + 1], std::move(more));
      }
      return;
    }
    Block block;
    block.type = type.type;
    block.begin = key.begin;
    block.labels = std::move(labels);
    block.body = ObjectBody(value, type.free);
    body.blocks.push_back(std::move(block));
  }

  Expression Templates(Expression value) {
    if (value.kind == Kind::kString) {
      if (value.text.find("${") == value.text.npos && value.text.find("%{") == value.text.npos) {
        return value;
      }
      auto parsed = ParseTemplateText(value.text, value.begin, value.end);
      if (parsed) return *std::move(parsed);
      if (!refusal_) refusal_ = parsed.error();
      return value;
    }
    for (Expression& child : value.children) child = Templates(std::move(child));
    return value;
  }

  std::optional<Refusal> refusal_;
};

}  // namespace

Parsed<Body> ParseJsonBody(std::string_view text, bool& api) {
  api = false;
  auto root = ParseJson(text);
  if (!root) return std::unexpected(std::move(root).error());
  const Expression* job = Member(*root, "job");
  if (job == nullptr || (Member(*job, "taskgroups") == nullptr && Member(*job, "id") == nullptr)) {
    if (Member(*root, "taskgroups") != nullptr) {
      job = &*root;
    } else if (job != nullptr) {
      return JsonBodyMaker().Make(*root);
    } else {
      return std::unexpected(Refusal{0, 0, "not_a_workload", "JSON without a job of Nomad's"});
    }
  }
  api = true;
  Body body = EmptyBody(*root);
  Block block;
  block.type = "job";
  block.begin = job->begin;
  const Expression* label = Member(*job, "id");
  if (label == nullptr) label = Member(*job, "name");
  if (label != nullptr && label->kind == Kind::kString) {
    block.labels.push_back({label->text, label->begin + 1, label->end - 1});
  }
  block.body = ApiBody(*job, In::kJob);
  body.blocks.push_back(std::move(block));
  return body;
}

}  // namespace expanse::workload::hcl
