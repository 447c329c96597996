// From what people have to ids: a compute's name, a scheduler's job id.
#pragma once

#include <string>
#include <string_view>

#include "cli/planes.h"
#include "cli/spec.h"
#include "expanse/common/v1/compute.pb.h"

namespace expanse::cli {

// A UUID as it is; else the id of the one compute with this name. Fails with not_found, or with
// already_exists when several have it (their ids are in the message).
base::Result<std::string> ResolveCompute(Planes& planes, const std::string& id_or_name);

// The name of the compute with this id; empty where that cannot be found out just now.
std::string NameOfCompute(Planes& planes, const std::string& compute_id);

// The compute called `id_or_name`; where that is empty, the one that is a cluster. Fails as
// ResolveCompute does, or with cli.cluster when there is none or there are several (their names are
// in the message).
base::Result<std::string> ResolveCluster(Planes& planes, const std::string& id_or_name);

struct ExecutionChoice {
  std::string
      id_or_native;  // a UUID, or the scheduler's own id ("41982", "41982_7", "41982.batch")
  common::v1::SourceType source_type = common::v1::SOURCE_TYPE_UNSPECIFIED;
  std::string compute_id;
};
// The execution's id; of several with the same native id the newest. A UUID is not looked up.
base::Result<std::string> ResolveExecution(Planes& planes, const ExecutionChoice& choice);

// "41982.batch" and "41982.0" name a step of job 41982; other texts stay as they are.
std::string WithoutStep(std::string_view native_id);

}  // namespace expanse::cli
