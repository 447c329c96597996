#include "cli/analyse_render.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "cli/analyse_testing.h"
#include "cli/answer_rows.h"
#include "cli/cli_testing.h"

namespace expanse::cli {
namespace {

namespace v1 = intelligence::v1;

const std::string kTestData = std::string(EXPANSE_SOURCE_DIR) + "/testdata";

std::string Render(const v1::AnalyseResult& result, AnalyseStyle style = {}) {
  return RenderAnalyse({.target = "train.slurm",
                        .job_name = {},
                        .run_id = kExampleRun,
                        .status = v1::RUN_STATUS_SUCCEEDED,
                        .cached = false,
                        .error = {}},
                       &result, style);
}

// The value of the first row of this name.
std::string Row(const std::string& text, std::string_view name) {
  for (std::string_view line : base::Split(text, '\n')) {
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ' ') continue;
    return std::string(base::Trim(line.substr(name.size())));
  }
  return "(no row)";
}

TEST(AnalyseRender, IsTheReferencesExample) {
  ExpectGolden(kTestData, "analyse.txt", Render(ExampleResult()));
}

TEST(AnalyseRender, SaysWhatIsNotKnown) {
  v1::AnalyseResult result;
  result.set_target_kind("python");
  result.add_warnings("no recorded run is like this one");
  const std::string text = Render(result);
  ExpectGolden(kTestData, "analyse-unknown.txt", text);
  for (const char* row : {"walltime_s", "gpu_count", "cpu_cores", "host_ram_gb",
                          "host_ram_requested_gb", "completion_probability", "confidence"})
    EXPECT_EQ(Row(text, row), "unknown") << row;
}

TEST(AnalyseRender, JobWithoutGpusHasNoGpuRows) {
  v1::AnalyseResult result;
  result.set_target_kind("sbatch");
  EXPECT_EQ(Row(Render(result), "gpu_count"), "0");
  EXPECT_EQ(Row(Render(result), "gpu_type"), "(no row)");
  EXPECT_EQ(Row(Render(result), "host_ram_requested_gb"), "none");
  result.mutable_requested_resources()->add_unresolved("line 4: --gres: template");
  EXPECT_EQ(Row(Render(result), "gpu_count"), "unknown");
  EXPECT_EQ(Row(Render(result), "host_ram_requested_gb"), "unknown");
  EXPECT_EQ(Row(Render(result), "unresolved"), "line 4: --gres: template");
}

TEST(AnalyseRender, GpuRowsWithoutMeasurementsAreUnknown) {
  v1::AnalyseResult result;
  result.mutable_recommended_resources()->set_gpu_count(2);
  const std::string text = Render(result);
  EXPECT_EQ(Row(text, "gpu_count"), "2");
  for (const char* row : {"gpu_type", "gpu_memory_available_gb", "gpu_memory_peak_gb",
                          "gpu_utilisation_pct", "gpu_memory_floor_gb"})
    EXPECT_EQ(Row(text, row), "unknown") << row;
  result.mutable_recommended_resources()->set_gpu_utilisation_pct(0);
  result.mutable_recommended_resources()->set_gpu_utilisation_known(false);
  EXPECT_EQ(Row(Render(result), "gpu_utilisation_pct"), "unknown");
  result.mutable_recommended_resources()->set_gpu_utilisation_known(true);
  EXPECT_EQ(Row(Render(result), "gpu_utilisation_pct"), "0");
}

TEST(AnalyseRender, NamesRisksAndEveryKindOfRun) {
  v1::AnalyseResult result = ExampleResult();
  auto* risk = result.add_failure_risks();
  risk->set_class_("out_of_memory");
  risk->set_summary("2 of 6 runs needed more than the 8 GiB that are requested");
  risk->mutable_probability()->set_mean(0.36);
  risk->mutable_probability()->set_sigma(0.17);
  risk->mutable_probability()->set_p10(0.14);
  risk->mutable_probability()->set_p90(0.59);
  result.add_failure_risks()->set_class_("timeout");
  AddRun(&result, "4400", "out_of_memory", 0.91);
  AddRun(&result, "4399", "timeout", 1);
  AddRun(&result, "4398", "failure", 1);
  AddRun(&result, "4397", "infrastructure", 1);
  result.mutable_evidence(0)->set_source_type(common::v1::SOURCE_TYPE_HOST);
  result.mutable_evidence(1)->set_similarity(0.9);
  ExpectGolden(kTestData, "analyse-risks.txt", Render(result));
}

TEST(AnalyseRender, ManyRunsAreCutOnATerminalAlone) {
  v1::AnalyseResult result = ExampleResult();
  for (int i = 0; i < 20; ++i) AddRun(&result, std::to_string(5000 + i), "success", 0.98);
  EXPECT_NE(Render(result).find(", 5018, 5019; similarity 0.98)"), std::string::npos);
  EXPECT_EQ(Row(Render(result, {.table = {}, .most_runs = 5}), "successful_runs"),
            "24 (SLURM jobs 4401, 4402, 4403, 4404, 5000; 19 more; similarity 0.98)");
  result.mutable_completion_probability()->set_success_count(200);
  EXPECT_EQ(Row(Render(result, {.table = {}, .most_runs = 1}), "successful_runs"),
            "200 (SLURM job 4401; 199 more; similarity 0.98)");
}

TEST(AnalyseRender, NothingOfTheServerMovesTheCursor) {
  v1::AnalyseResult result = ExampleResult();
  result.set_job_name("a\x1b[2Jb\nc");
  result.add_warnings("bell \a");
  result.mutable_right_size()->set_source_file("x\r\x1b]0;t\a");
  const std::string text = Render(result);
  for (const char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= ' ');
  EXPECT_EQ(Row(text, "job_name"), "a\\x1b[2Jb\\nc");
}

TEST(AnalyseRender, RunsThatAreNotDoneOrFailedAreTheHeadingAlone) {
  EXPECT_EQ(RenderAnalyse({.target = "t",
                           .job_name = "j",
                           .run_id = "r",
                           .status = v1::RUN_STATUS_FAILED,
                           .cached = false,
                           .error = "it took too long"},
                          nullptr, {}),
            "EXPANSE ANALYSE\ntarget    t\njob_name  j\nrun       r\nstatus    run_status_failed\n"
            "error     it took too long\n");
}

TEST(AnalyseRender, GibibytesReadAsPeopleWriteThem) {
  EXPECT_EQ(ShowGib(16106127360), "15");
  EXPECT_EQ(ShowGib(85520809984), "79.6");
  EXPECT_EQ(ShowGib(33500000000), "31.2");
  EXPECT_EQ(ShowGib(std::uint64_t{3} << 29), "1.5");
  EXPECT_EQ(ShowGib(std::uint64_t{1} << 28), "0.25");
  EXPECT_EQ(ShowGib(std::uint64_t{64} << 20), "0.062");
  EXPECT_EQ(ShowGib(std::uint64_t{100} << 30), "100");
  EXPECT_EQ(ShowGib(0), "0");
  EXPECT_EQ(ShowGib(1024), "1e-06");
}

}  // namespace
}  // namespace expanse::cli
