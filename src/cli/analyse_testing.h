// The reference's example of an analysis, for tests.
#pragma once

#include <string>

#include "expanse/intelligence/v1/analyse.pb.h"

namespace expanse::cli {

inline const std::string kExampleRun = "0191e7a0-1111-7000-8000-00000000aaaa";
inline const std::string kExampleArtefact = "0191e7a0-2222-7000-8000-00000000aaaa";

inline void AddRun(intelligence::v1::AnalyseResult* result, const std::string& native_id,
                   const std::string& ending, double similarity) {
  auto* run = result->add_evidence();
  run->set_execution_id("0191e7a0-0000-8000-8000-00000000" + native_id);
  run->set_native_id(native_id);
  run->set_source_type(common::v1::SOURCE_TYPE_SLURM);
  run->set_similarity(similarity);
  run->set_ending(ending);
}

inline intelligence::v1::AnalyseResult ExampleResult() {
  intelligence::v1::AnalyseResult result;
  result.set_job_name("train");
  result.set_target_kind("sbatch");
  auto* resources = result.mutable_recommended_resources();
  resources->set_walltime_seconds(9000);
  resources->set_gpu_model("NVIDIA H100 80GB HBM3");
  resources->set_gpu_count(1);
  resources->set_gpu_memory_available_bytes(85520809984);
  resources->set_gpu_memory_peak_bytes(33500000000);
  resources->set_gpu_utilisation_pct(91);
  resources->set_gpu_utilisation_known(true);
  resources->set_gpu_memory_floor_bytes(31997000000);
  resources->set_cpu_cores(16);
  resources->set_memory_bytes(16106127360);
  result.mutable_requested_resources()->set_memory_bytes(std::uint64_t{128} << 30);
  result.set_confidence(intelligence::v1::CONFIDENCE_LABEL_HIGH);
  result.set_confidence_score(0.83);
  result.set_confidence_score_fit(4);
  result.set_confidence_score_runs(4);
  auto* completion = result.mutable_completion_probability();
  completion->set_mean(0.9);
  completion->set_sigma(0.12);
  completion->set_p10(0.73);
  completion->set_p90(1);
  completion->set_success_count(4);
  completion->set_basis("exact_bundle");
  result.mutable_right_size()->set_class_("memory_lower+walltime_raise");
  result.mutable_right_size()->set_review_required(true);
  result.mutable_right_size()->set_source_file("train.slurm");
  for (int job = 4401; job <= 4404; ++job) AddRun(&result, std::to_string(job), "success", 0.98);
  return result;
}

}  // namespace expanse::cli
