// Where the pod templates of each kind of object are.
#pragma once

#include <string_view>

#include "workload/kubernetes/pod_reader.h"

namespace expanse::workload::kubernetes {

// Reads the pod templates of an object. False when its kind is not one of those known here.
bool ReadKnownKind(PodReader& reader, std::string_view api_version, std::string_view kind,
                   const Owner& owner, NodeId object);

// Reads whatever has the shape of a pod template in an object of any kind; true when there was one.
bool ReadByShape(PodReader& reader, const Owner& owner, NodeId object);

}  // namespace expanse::workload::kubernetes
