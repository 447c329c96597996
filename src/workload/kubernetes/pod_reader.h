// Pod templates of one document into parts of a submission.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workload/kubernetes/document.h"
#include "workload/kubernetes/insertion.h"
#include "workload/submission.h"

namespace expanse::workload::kubernetes {

// The beginning of a name; what Kubernetes calls a name is shorter.
std::string ShortName(std::string_view text);

using Annotations = std::map<std::string, std::string>;

// What a pod template belongs to; copied and refined on the way down to it.
struct Owner {
  std::string workload;
  std::string kind;
  std::string name_space;
  std::string group;
  double replicas = 1;
  std::optional<std::uint32_t> array_size;
  std::optional<std::uint32_t> tasks;  // processes in a pod
  std::shared_ptr<const Annotations> annotations = std::make_shared<Annotations>();
  std::vector<Setting> settings;      // replicas, deadlines
  std::vector<Insertion> insertions;  // for a deadline
};

struct ContainerShape {
  bool is_init = false;
  std::string_view resources = "resources";  // the key of requests and limits
  NodeId resources_in = kNoNode;             // the map that has it, if not the container
  std::string_view gpu = "nvidia.com/gpu";   // what a device is called where none is asked for
};

class PodReader {
 public:
  PodReader(const Document& document, Submission& submission)
      : document_(document), submission_(submission) {}

  const Document& document() const { return document_; }

  // A map with metadata and spec: a Pod, or what stands under `template`.
  void ReadTemplate(Owner owner, NodeId pod);
  // A PodSpec, which other kinds extend (Argo's templates, KServe's predictors).
  void ReadPodSpec(Owner owner, NodeId spec);
  // A container; `name` where it has none of its own. Nothing happens for what is no map.
  void ReadContainer(const Owner& owner, NodeId container, const ContainerShape& shape = {},
                     std::string_view name = {});
  // A command line that runs in the first main container of those read since part `first`.
  void AttachEntrypoint(std::size_t first, NodeId entrypoint);
  std::size_t part_count() const { return submission_.parts.size(); }

  // Labels and annotations of an object's metadata.
  void AddAnnotations(Owner& owner, NodeId object);
  // An integer that says how many there are at the same time; multiplied into owner.replicas.
  // False when it is there but unresolved.
  bool Multiply(Owner& owner, NodeId map, std::string_view key, std::string_view name);
  // activeDeadlineSeconds below `map` at `path`, and where it could be written if `insertable`.
  void AddDeadline(Owner& owner, NodeId map, std::vector<std::string_view> path,
                   std::string_view name, bool insertable);
  // A value as a setting; nothing for what is not there.
  std::optional<Setting> ReadSetting(NodeId value, Quantity quantity, double factor,
                                     std::string name) const;

  void Note(std::size_t offset, std::string_view reason, std::string message);
  // Too many parts or too much text: aliases multiply what a file says.
  bool exhausted() const { return spent_ > kMaxSpent || document_.exhausted(); }

 private:
  static constexpr std::size_t kMaxSpent = std::size_t{32} << 20;

  void ReadResources(Part& part, NodeId container, const ContainerShape& shape);
  void ReadBound(Part& part, NodeId resources, std::string_view prefix, Bound bound);
  void AddInsertions(Part& part, NodeId container, const ContainerShape& shape);
  // One setting for each quantity that a template or a slip leaves open.
  void AddOpaque(Part& part, NodeId value, std::string_view name, Bound bound);
  void PodResources(std::size_t first_part, NodeId spec);
  void NoteClaims(NodeId container);

  const Document& document_;
  Submission& submission_;
  std::size_t spent_ = 0;
};

// The totals of a part from its settings: a request, or the limit where there is none.
void Sum(Part& part);

// `command`, `args` (or a script's `source`) and literal `env` of a container.
void ReadCommands(const Document& document, NodeId container, Part& part);
// A shell line as a command of the part.
void ReadEntrypoint(const Document& document, NodeId entrypoint, Part& part);

}  // namespace expanse::workload::kubernetes
