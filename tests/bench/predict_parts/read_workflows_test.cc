// Readers of workflow engines' traces, on small inputs of the kinds that they read.
#include <gtest/gtest.h>

#include "bench/predict_parts/trace.h"

namespace expanse::bench {
namespace {

using intelligence::predict::Ending;

constexpr double kMiB = 1024.0 * 1024;
constexpr double kGiB = 1024 * kMiB;

TEST(ReadNextflow, ReadsTextAndRawValues) {
  const auto text = ReadNextflow(
      "name\tstatus\texit\tsubmit\tduration\trealtime\tcpus\tpeak_rss\n"
      "ALIGN (a)\tCOMPLETED\t0\t1970-01-01 00:00:10.000\t2m\t1m 30s\t4\t2 GB\n"
      "ALIGN (b)\tFAILED\t137\t1970-01-01 00:00:10.000\t2m\t1m\t4\t-\n"
      "ALIGN (c)\tCACHED\t0\t1970-01-01 00:00:10.000\t2m\t1m\t4\t2 GB\n");
  ASSERT_TRUE(text);
  ASSERT_EQ(text->size(), 2U);
  EXPECT_EQ(text->at(0).group, "ALIGN");
  EXPECT_TRUE(text->at(0).same_source);
  EXPECT_EQ(text->at(0).runtime_s, 90);
  EXPECT_EQ(text->at(0).end_s, 130);
  EXPECT_EQ(text->at(0).memory_bytes, 2 * kGiB);
  EXPECT_EQ(text->at(1).ending, Ending::kOutOfMemory);
  const auto raw = ReadNextflow(
      "process,status,exit,submit,complete,realtime,cpus,peak_rss,memory,time\n"
      "CALL,COMPLETED,0,10000,40000,20000,2,1048576,2097152,60000\n");
  ASSERT_TRUE(raw);
  ASSERT_EQ(raw->size(), 1U);
  EXPECT_EQ(raw->at(0).submit_s, 10);
  EXPECT_EQ(raw->at(0).end_s, 40);
  EXPECT_EQ(raw->at(0).memory_bytes, kMiB);
  EXPECT_EQ(raw->at(0).requested_memory_bytes, 2 * kMiB);
  EXPECT_EQ(raw->at(0).requested_walltime_s, 60);
  EXPECT_FALSE(ReadNextflow("a,b\n1,2\n"));
}

TEST(ReadSnakemake, ReadsBenchmarkTables) {
  const auto runs =
      ReadSnakemake("rule\ts\tmax_rss\tthreads\nsort\t12.5\t100\t2\nsort\tNA\t1\t1\n");
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 1U);
  EXPECT_EQ(runs->at(0).group, "sort");
  EXPECT_EQ(runs->at(0).runtime_s, 12.5);
  EXPECT_EQ(runs->at(0).memory_bytes, 100 * kMiB);
  EXPECT_EQ(runs->at(0).cores, 2);
  EXPECT_FALSE(ReadSnakemake("s\tmax_rss\n1\t2\n"));
}

TEST(ReadSpark, ReadsConfigurations) {
  const auto runs = ReadSpark(
      "machine_type\tinstance_count\tslots\tdata_size_MB\tgross_runtime\nm4\t8\t32\t500\t77\n");
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 1U);
  EXPECT_EQ(runs->at(0).group, "m4 x 8");
  EXPECT_EQ(runs->at(0).cores, 32);
  EXPECT_EQ(runs->at(0).input_size, 500);
  EXPECT_EQ(runs->at(0).runtime_s, 77);
}

TEST(ReadWfInstance, TasksOfOneKindAreOneGroup) {
  const auto runs = ReadWfInstance(R"({"workflow": {
    "specification": {
      "files": [{"id": "f1", "sizeInBytes": 100}, {"id": "f2", "sizeInBytes": 11}],
      "tasks": [{"id": "t1", "name": "align_ID0000001", "inputFiles": ["f1", "f2", 5, "f3"]},
                {"id": "t2", "name": "align_00000002", "inputFiles": []}]},
    "execution": {"tasks": [
      {"id": "t1", "runtimeInSeconds": 9.5, "coreCount": 2, "memoryInBytes": 1000},
      {"id": "t2", "runtimeInSeconds": 3}, {"id": "merge_all", "runtimeInSeconds": 4},
      {"id": "t3", "runtimeInSeconds": -1}, {"id": "t4"}]}}})");
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 3U);
  EXPECT_EQ(runs->at(0).group, "align");
  EXPECT_EQ(runs->at(0).input_size, 111);
  EXPECT_EQ(runs->at(0).cores, 2);
  EXPECT_EQ(runs->at(0).memory_bytes, 1000);
  EXPECT_EQ(runs->at(1).group, "align");
  EXPECT_FALSE(runs->at(1).input_size);
  EXPECT_EQ(runs->at(2).group, "merge_all");
}

TEST(ReadWfInstance, OtherDocumentsAreNone) {
  EXPECT_FALSE(ReadWfInstance("{"));
  EXPECT_FALSE(ReadWfInstance("[]"));
  EXPECT_FALSE(ReadWfInstance("{\"workflow\": {\"specification\": {}}}"));
  EXPECT_FALSE(ReadWfInstance("{\"workflow\": {\"specification\": 1, \"execution\": {}}}"));
  const auto odd = ReadWfInstance(
      "{\"workflow\": {\"specification\": {\"tasks\": 3}, \"execution\": {\"tasks\": {}}}}");
  ASSERT_TRUE(odd);
  EXPECT_TRUE(odd->empty());
}

TEST(ReadMemorySeries, PeakAndTimesComeFromTheSeries) {
  const auto run = ReadMemorySeries(
      "#group,false\n#datatype,string\n,_time,_value\n"
      ",1970-01-01T00:00:10Z,5\n,1970-01-01T00:00:40Z,8\n,1970-01-01T00:00:20Z,7\n",
      "#group,false\n,_field,_value\n,files_input_total_size,123\n,max_cpus,4\n,max_mem,1024\n");
  ASSERT_TRUE(run);
  EXPECT_EQ(run->submit_s, 10);
  EXPECT_EQ(run->end_s, 40);
  EXPECT_EQ(run->runtime_s, 30);
  EXPECT_EQ(run->memory_bytes, 8 * kMiB);
  EXPECT_EQ(run->input_size, 123);
  EXPECT_EQ(run->cores, 4);
  EXPECT_EQ(run->requested_memory_bytes, 1024);
  EXPECT_FALSE(ReadMemorySeries("#only annotations", ""));
  EXPECT_FALSE(ReadMemorySeries(",_time,_value\n,1970-01-01T00:00:10Z,0\n", ""));
}

}  // namespace
}  // namespace expanse::bench
