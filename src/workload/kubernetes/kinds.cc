#include "workload/kubernetes/kinds.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "workload/kubernetes/quantity.h"

namespace expanse::workload::kubernetes {
namespace {

std::string TextOf(const PodReader& reader, NodeId map, std::string_view key) {
  return ShortName(reader.document().Text(reader.document().Find(map, key)));
}

std::optional<double> Number(const PodReader& reader, NodeId map, std::string_view key) {
  return ParseQuantity(reader.document().Text(reader.document().Find(map, key)));
}

void Pod(PodReader& reader, Owner owner, NodeId pod) { reader.ReadTemplate(std::move(owner), pod); }

void PodTemplate(PodReader& reader, Owner owner, NodeId object) {
  reader.ReadTemplate(std::move(owner), reader.document().Find(object, "template"));
}

// Deployment, StatefulSet, ReplicaSet, ReplicationController, Rollout, Knative Service, DaemonSet
// (one pod a node: how many is not in the text).
void Replicated(PodReader& reader, Owner owner, NodeId object) {
  const NodeId spec = reader.document().Find(object, "spec");
  reader.Multiply(owner, spec, "replicas", "spec.replicas");
  reader.ReadTemplate(std::move(owner), reader.document().Find(spec, "template"));
}

// A JobSpec. Pods at the same time: parallelism, but no more than completions.
void JobSpec(PodReader& reader, Owner owner, NodeId spec) {
  const Document& document = reader.document();
  reader.AddDeadline(owner, spec, {"activeDeadlineSeconds"}, "spec.activeDeadlineSeconds", true);
  const double jobs = owner.replicas;
  const bool known = reader.Multiply(owner, spec, "parallelism", "spec.parallelism");
  const auto completions = Number(reader, spec, "completions");
  const auto parallelism = Number(reader, spec, "parallelism");
  if (known && completions && parallelism && *completions > 0 && *completions < *parallelism)
    owner.replicas = jobs * *completions;
  if (TextOf(reader, spec, "completionMode") == "Indexed" && completions && *completions < 4e9)
    owner.array_size = static_cast<std::uint32_t>(*completions);
  reader.ReadTemplate(std::move(owner), document.Find(spec, "template"));
}

void Job(PodReader& reader, Owner owner, NodeId object) {
  JobSpec(reader, std::move(owner), reader.document().Find(object, "spec"));
}

void CronJob(PodReader& reader, Owner owner, NodeId object) {
  const NodeId job = reader.document().Find(object, {"spec", "jobTemplate"});
  reader.AddAnnotations(owner, job);
  JobSpec(reader, std::move(owner), reader.document().Find(job, "spec"));
}

void ReplicatedJobs(PodReader& reader, const Owner& owner, NodeId spec) {
  const Document& document = reader.document();
  for (const Entry& entry : document.Items(document.Find(spec, "replicatedJobs"))) {
    Owner job = owner;
    job.group = TextOf(reader, entry.value, "name");
    reader.Multiply(job, entry.value, "replicas", "replicatedJobs.replicas");
    JobSpec(reader, std::move(job), document.Find(entry.value, {"template", "spec"}));
  }
}

void JobSet(PodReader& reader, Owner owner, NodeId object) {
  ReplicatedJobs(reader, owner, reader.document().Find(object, "spec"));
}

// Kubeflow's TrainingRuntime: a JobSet in a template.
void TrainingRuntime(PodReader& reader, Owner owner, NodeId object) {
  ReplicatedJobs(reader, owner, reader.document().Find(object, {"spec", "template", "spec"}));
}

void LeaderWorkerSet(PodReader& reader, Owner owner, NodeId object) {
  const Document& document = reader.document();
  const NodeId spec = document.Find(object, "spec");
  reader.Multiply(owner, spec, "replicas", "spec.replicas");
  const NodeId group = document.Find(spec, "leaderWorkerTemplate");
  const NodeId leader = document.Find(group, "leaderTemplate");
  if (leader != kNoNode) {
    Owner leading = owner;
    leading.group = "leader";
    reader.ReadTemplate(std::move(leading), leader);
  }
  owner.group = "worker";
  const double groups = owner.replicas;
  reader.Multiply(owner, group, "size", "leaderWorkerTemplate.size");
  if (leader != kNoNode) owner.replicas = std::max(0.0, owner.replicas - groups);
  reader.ReadTemplate(std::move(owner), document.Find(group, "workerTemplate"));
}

void RayClusterSpec(PodReader& reader, const Owner& owner, NodeId spec, NodeId entrypoint) {
  const Document& document = reader.document();
  Owner head = owner;
  head.group = "head";
  const std::size_t first = reader.part_count();
  reader.ReadTemplate(std::move(head), document.Find(spec, {"headGroupSpec", "template"}));
  reader.AttachEntrypoint(first, entrypoint);
  for (const Entry& entry : document.Items(document.Find(spec, "workerGroupSpecs"))) {
    Owner worker = owner;
    worker.group = TextOf(reader, entry.value, "groupName");
    reader.Multiply(worker, entry.value, "replicas", "workerGroupSpecs.replicas");
    reader.Multiply(worker, entry.value, "numOfHosts", "workerGroupSpecs.numOfHosts");
    reader.ReadTemplate(std::move(worker), document.Find(entry.value, "template"));
  }
}

void RayCluster(PodReader& reader, Owner owner, NodeId object) {
  RayClusterSpec(reader, owner, reader.document().Find(object, "spec"), kNoNode);
}

void RayJob(PodReader& reader, Owner owner, NodeId object) {
  const Document& document = reader.document();
  const NodeId spec = document.Find(object, "spec");
  reader.AddDeadline(owner, spec, {"activeDeadlineSeconds"}, "spec.activeDeadlineSeconds", true);
  RayClusterSpec(reader, owner, document.Find(spec, "rayClusterSpec"),
                 document.Find(spec, "entrypoint"));
  owner.group = "submitter";
  reader.ReadTemplate(std::move(owner), document.Find(spec, "submitterPodTemplate"));
}

void RayService(PodReader& reader, Owner owner, NodeId object) {
  const Document& document = reader.document();
  NodeId cluster = document.Find(object, {"spec", "rayClusterConfig"});
  RayClusterSpec(reader, owner, cluster, kNoNode);
}

// PyTorchJob, TFJob, MPIJob, XGBoostJob, PaddleJob, JAXJob of Kubeflow's training operator.
void ReplicaSpecs(PodReader& reader, Owner owner, NodeId object) {
  const Document& document = reader.document();
  const NodeId spec = document.Find(object, "spec");
  const bool old_place = document.Find(spec, "activeDeadlineSeconds") != kNoNode;
  if (old_place)
    reader.AddDeadline(owner, spec, {"activeDeadlineSeconds"}, "spec.activeDeadlineSeconds", false);
  reader.AddDeadline(owner, spec, {"runPolicy", "activeDeadlineSeconds"},
                     "spec.runPolicy.activeDeadlineSeconds", !old_place);
  std::optional<std::uint32_t> tasks;
  for (std::string_view key : {"nprocPerNode", "slotsPerWorker"}) {
    const auto processes = Number(reader, spec, key);
    if (processes && *processes < 4e9) tasks = static_cast<std::uint32_t>(*processes);
  }
  for (const Entry& entry : document.Members(spec)) {
    if (!document.Text(entry.key).ends_with("ReplicaSpecs")) continue;
    for (const Entry& role : document.Members(entry.value)) {
      Owner replica = owner;
      replica.group = ShortName(document.Text(role.key));
      if (replica.group != "Launcher") replica.tasks = tasks;
      reader.Multiply(replica, role.value, "replicas", replica.group + ".replicas");
      reader.ReadTemplate(std::move(replica), document.Find(role.value, "template"));
    }
  }
  // MPIJob v1alpha1 has one template.
  if (document.Find(spec, "template") == kNoNode) return;
  reader.Multiply(owner, spec, "replicas", "spec.replicas");
  reader.ReadTemplate(std::move(owner), document.Find(spec, "template"));
}

void TrainJob(PodReader& reader, Owner owner, NodeId object) {
  const Document& document = reader.document();
  const NodeId spec = document.Find(object, "spec");
  reader.AddDeadline(owner, spec, {"activeDeadlineSeconds"}, "spec.activeDeadlineSeconds", false);
  const NodeId trainer = document.Find(spec, "trainer");
  const auto processes = Number(reader, trainer, "numProcPerNode");
  if (processes && *processes < 4e9) owner.tasks = static_cast<std::uint32_t>(*processes);
  owner.group = "trainer";
  reader.Multiply(owner, trainer, "numNodes", "spec.trainer.numNodes");
  reader.ReadContainer(owner, trainer, {.resources = "resourcesPerNode"}, "trainer");
  reader.Note(document.At(object).begin, "training_runtime",
              "the rest of this job is in its training runtime, which is not in this object");
}

// Volcano's Job: tasks with a template each.
void VolcanoJob(PodReader& reader, Owner owner, NodeId object) {
  const Document& document = reader.document();
  for (const Entry& entry : document.Items(document.Find(object, {"spec", "tasks"}))) {
    Owner task = owner;
    task.group = TextOf(reader, entry.value, "name");
    reader.Multiply(task, entry.value, "replicas", "tasks.replicas");
    reader.ReadTemplate(std::move(task), document.Find(entry.value, "template"));
  }
}

void ArgoTemplate(PodReader& reader, Owner owner, NodeId node) {
  const Document& document = reader.document();
  owner.group = TextOf(reader, node, "name");
  reader.AddAnnotations(owner, node);
  reader.AddDeadline(owner, node, {"activeDeadlineSeconds"}, "template.activeDeadlineSeconds",
                     false);
  for (const Entry& entry : document.Items(document.Find(node, "initContainers")))
    reader.ReadContainer(owner, entry.value, {.is_init = true});
  for (std::string_view key : {"container", "script"})
    reader.ReadContainer(owner, document.Find(node, key));
  for (const Entry& entry : document.Items(document.Find(node, {"containerSet", "containers"})))
    reader.ReadContainer(owner, entry.value);
  for (const Entry& entry : document.Items(document.Find(node, "sidecars")))
    reader.ReadContainer(owner, entry.value);
}

void WorkflowSpec(PodReader& reader, Owner owner, NodeId spec) {
  const Document& document = reader.document();
  reader.AddDeadline(owner, spec, {"activeDeadlineSeconds"}, "spec.activeDeadlineSeconds", true);
  const NodeId reference = document.Find(spec, "workflowTemplateRef");
  if (reference != kNoNode)
    reader.Note(document.At(reference).begin, "template_reference",
                "templates of another object are used, which is not here");
  for (const Entry& entry : document.Items(document.Find(spec, "templates")))
    ArgoTemplate(reader, owner, entry.value);
}

void Workflow(PodReader& reader, Owner owner, NodeId object) {
  WorkflowSpec(reader, std::move(owner), reader.document().Find(object, "spec"));
}

void CronWorkflow(PodReader& reader, Owner owner, NodeId object) {
  WorkflowSpec(reader, std::move(owner), reader.document().Find(object, {"spec", "workflowSpec"}));
}

// A predictor, transformer or explainer: a PodSpec, or `model`, or a framework's key, each a
// container.
void KServeComponent(PodReader& reader, Owner owner, NodeId component) {
  const Document& document = reader.document();
  if (!document.Is(component, NodeKind::kMap)) return;
  reader.Multiply(owner, component, "minReplicas", owner.group + ".minReplicas");
  // Scaled to zero it asks for nothing; what counts is the pod that a call starts.
  if (owner.replicas == 0) owner.replicas = 1;
  reader.AddAnnotations(owner, component);
  constexpr std::array<std::string_view, 14> kFrameworks = {
      "model",       "tensorflow", "pytorch",  "sklearn", "xgboost", "onnx", "triton",
      "huggingface", "pmml",       "lightgbm", "paddle",  "mlflow",  "art",  "alibi"};
  for (std::string_view framework : kFrameworks)
    reader.ReadContainer(owner, document.Find(component, framework), {}, framework);
  const NodeId workers = document.Find(component, "workerSpec");
  reader.ReadPodSpec(owner, component);
  if (workers == kNoNode) return;
  owner.group += "/worker";
  reader.Multiply(owner, workers, "pipelineParallelSize", "workerSpec.pipelineParallelSize");
  reader.ReadPodSpec(std::move(owner), workers);
}

void InferenceService(PodReader& reader, Owner owner, NodeId object) {
  for (std::string_view name : {"predictor", "transformer", "explainer"}) {
    Owner component = owner;
    component.group = name;
    KServeComponent(reader, std::move(component), reader.document().Find(object, {"spec", name}));
  }
}

void LlmInferenceService(PodReader& reader, Owner owner, NodeId object) {
  const Document& document = reader.document();
  const NodeId spec = document.Find(object, "spec");
  for (const NodeId from : {spec, document.Find(spec, "prefill")}) {
    Owner component = owner;
    component.group = from == spec ? "" : "prefill";
    reader.Multiply(component, from, "replicas", "replicas");
    reader.ReadPodSpec(component, document.Find(from, "template"));
    component.group += component.group.empty() ? "worker" : "/worker";
    reader.ReadPodSpec(std::move(component), document.Find(from, "worker"));
  }
}

void ServingRuntime(PodReader& reader, Owner owner, NodeId object) {
  reader.ReadPodSpec(std::move(owner), reader.document().Find(object, "spec"));
}

// NVIDIA Dynamo: services with resources of their own and a container under extraPodSpec.
void DynamoGraph(PodReader& reader, Owner owner, NodeId object) {
  const Document& document = reader.document();
  for (const Entry& entry : document.Members(document.Find(object, {"spec", "services"}))) {
    Owner service = owner;
    service.group = ShortName(document.Text(entry.key));
    reader.Multiply(service, entry.value, "replicas", service.group + ".replicas");
    reader.Multiply(service, document.Find(entry.value, "multinode"), "nodeCount",
                    service.group + ".multinode.nodeCount");
    const NodeId pod = document.Find(entry.value, "extraPodSpec");
    const NodeId container = document.Find(pod, "mainContainer");
    reader.ReadContainer(service, container == kNoNode ? entry.value : container,
                         {.resources_in = entry.value, .gpu = "gpu"}, service.group);
    reader.ReadPodSpec(std::move(service), pod);
  }
}

using Handler = void (*)(PodReader&, Owner, NodeId);
struct Kind {
  std::string_view group;  // of apiVersion, without version
  std::string_view name;
  Handler read;
};

constexpr std::array kKinds = {
    Kind{"", "Pod", Pod},
    Kind{"", "PodTemplate", PodTemplate},
    Kind{"", "ReplicationController", Replicated},
    Kind{"apps", "Deployment", Replicated},
    Kind{"apps", "StatefulSet", Replicated},
    Kind{"apps", "DaemonSet", Replicated},
    Kind{"apps", "ReplicaSet", Replicated},
    Kind{"extensions", "Deployment", Replicated},
    Kind{"extensions", "DaemonSet", Replicated},
    Kind{"extensions", "ReplicaSet", Replicated},
    Kind{"argoproj.io", "Rollout", Replicated},
    Kind{"serving.knative.dev", "Service", Replicated},
    Kind{"serving.knative.dev", "Configuration", Replicated},
    Kind{"batch", "Job", Job},
    Kind{"batch", "CronJob", CronJob},
    Kind{"jobset.x-k8s.io", "JobSet", JobSet},
    Kind{"leaderworkerset.x-k8s.io", "LeaderWorkerSet", LeaderWorkerSet},
    Kind{"ray.io", "RayCluster", RayCluster},
    Kind{"ray.io", "RayJob", RayJob},
    Kind{"ray.io", "RayService", RayService},
    Kind{"kubeflow.org", "PyTorchJob", ReplicaSpecs},
    Kind{"kubeflow.org", "TFJob", ReplicaSpecs},
    Kind{"kubeflow.org", "MPIJob", ReplicaSpecs},
    Kind{"kubeflow.org", "XGBoostJob", ReplicaSpecs},
    Kind{"kubeflow.org", "PaddleJob", ReplicaSpecs},
    Kind{"kubeflow.org", "MXJob", ReplicaSpecs},
    Kind{"kubeflow.org", "JAXJob", ReplicaSpecs},
    Kind{"trainer.kubeflow.org", "TrainJob", TrainJob},
    Kind{"trainer.kubeflow.org", "TrainingRuntime", TrainingRuntime},
    Kind{"trainer.kubeflow.org", "ClusterTrainingRuntime", TrainingRuntime},
    Kind{"batch.volcano.sh", "Job", VolcanoJob},
    Kind{"argoproj.io", "Workflow", Workflow},
    Kind{"argoproj.io", "WorkflowTemplate", Workflow},
    Kind{"argoproj.io", "ClusterWorkflowTemplate", Workflow},
    Kind{"argoproj.io", "CronWorkflow", CronWorkflow},
    Kind{"serving.kserve.io", "InferenceService", InferenceService},
    Kind{"serving.kubeflow.org", "InferenceService", InferenceService},
    Kind{"serving.kserve.io", "LLMInferenceService", LlmInferenceService},
    Kind{"serving.kserve.io", "ServingRuntime", ServingRuntime},
    Kind{"serving.kserve.io", "ClusterServingRuntime", ServingRuntime},
    Kind{"nvidia.com", "DynamoGraphDeployment", DynamoGraph},
};

// Whether a map looks like a PodSpec: a list of containers with names or images.
bool IsPodSpec(const Document& document, NodeId map) {
  const std::vector<Entry>& containers = document.Items(document.Find(map, "containers"));
  return !containers.empty() &&
         std::all_of(containers.begin(), containers.end(), [&](const Entry& entry) {
           return document.Is(entry.value, NodeKind::kMap) &&
                  (document.Find(entry.value, "image") != kNoNode ||
                   document.Find(entry.value, "name") != kNoNode);
         });
}

class ShapeSearch {
 public:
  ShapeSearch(PodReader& reader, const Owner& owner)
      : reader_(reader), owner_(owner), seen_(reader.document().size(), false) {}

  bool Search(NodeId id, int depth) {
    constexpr int kMaxDepth = 64;
    const Document& document = reader_.document();
    id = document.Follow(id);
    if (id == kNoNode || depth > kMaxDepth || seen_[id]) return false;
    seen_[id] = true;
    const Node& node = document.At(id);
    if (node.kind == NodeKind::kMap && IsPodSpec(document, id)) {
      reader_.ReadPodSpec(owner_, id);
      return true;
    }
    bool found = false;
    for (const Entry& entry : node.entries) {
      const Owner around = owner_;
      if (entry.key != kNoNode && document.Is(entry.value, NodeKind::kMap) &&
          document.Find(entry.value, {"spec", "containers"}) != kNoNode) {
        reader_.AddAnnotations(owner_, entry.value);
        reader_.Multiply(owner_, id, "replicas", "replicas");
      }
      found |= Search(entry.value, depth + 1);
      owner_ = around;
    }
    return found;
  }

 private:
  PodReader& reader_;
  Owner owner_;
  std::vector<bool> seen_;
};

}  // namespace

bool ReadKnownKind(PodReader& reader, std::string_view api_version, std::string_view kind,
                   const Owner& owner, NodeId object) {
  const std::size_t slash = api_version.find('/');
  const std::string_view group =
      slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
  for (const Kind& known : kKinds) {
    if (known.name != kind || known.group != group) continue;
    known.read(reader, owner, object);
    return true;
  }
  return false;
}

bool ReadByShape(PodReader& reader, const Owner& owner, NodeId object) {
  return ShapeSearch(reader, owner).Search(object, 0);
}

}  // namespace expanse::workload::kubernetes
