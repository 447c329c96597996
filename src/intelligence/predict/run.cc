#include "intelligence/predict/run.h"

namespace expanse::intelligence::predict {

std::string_view Name(Resource resource) {
  switch (resource) {
    case Resource::kCpu:
      return "cpu";
    case Resource::kMemory:
      return "memory";
    case Resource::kGpu:
      return "gpu";
    case Resource::kWalltime:
      return "walltime";
  }
  return "";
}

std::string_view Name(Ending ending) {
  switch (ending) {
    case Ending::kSuccess:
      return "success";
    case Ending::kFailure:
      return "failure";
    case Ending::kOutOfMemory:
      return "out_of_memory";
    case Ending::kTimeout:
      return "timeout";
    case Ending::kCancelled:
      return "cancelled";
    case Ending::kInfrastructure:
      return "infrastructure";
    case Ending::kUnknown:
      return "unknown";
  }
  return "";
}

std::string_view Name(Basis basis) {
  switch (basis) {
    case Basis::kNone:
      return "none";
    case Basis::kExactBundle:
      return "exact_bundle";
    case Basis::kSimilarBundle:
      return "similar_bundle";
    case Basis::kSameName:
      return "same_name";
  }
  return "";
}

bool OfSameSource(Basis basis) {
  return basis == Basis::kExactBundle || basis == Basis::kSimilarBundle;
}

}  // namespace expanse::intelligence::predict
