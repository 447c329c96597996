#include "schedulers/slurm/text/tres.h"

#include <gtest/gtest.h>

namespace expanse::schedulers::slurm {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kGiB = 1024 * kMiB;

TEST(Tres, ReadsWhatExecutionsNeed) {
  const Tres tres =
      ParseTres("cpu=4,mem=16G,node=2,billing=4.5,gres/gpu=4,gres/gpu:a100=4,license/fem@lic=2");
  EXPECT_EQ(tres.cpus, 4);
  EXPECT_EQ(tres.memory_bytes, 16 * kGiB);
  EXPECT_EQ(tres.nodes, 2);
  EXPECT_EQ(tres.billing, 4.5);
  EXPECT_EQ(tres.gpus, 4);
  EXPECT_EQ(tres.gpu_type, "a100");
}

struct GpuCase {
  std::string_view text;
  std::optional<std::uint32_t> count;
  std::string_view type;
};

// The inputs over which published parsers disagree, and their truth (hpc-monitoring.md 4.2).
TEST(Tres, CountsGpusOnce) {
  const std::vector<GpuCase> cases = {
      {"cpu=8,gres/gpu:rtx2080ti=4,gres/gpu=4,node=1", 4, "rtx2080ti"},
      {"cpu=1,gres/gpu:nvidia_geforce_rtx_2080_ti=1", 1, "nvidia_geforce_rtx_2080_ti"},
      {"gres/gpu:a100=2,gres/gpu:v100=2,gres/gpu=4", 4, "a100,v100"},
      {"gres/gpu=1,gres/gpu:a100=1", 1, "a100"},
      {"cpu=64,mem=8G,node=1,billing=64", std::nullopt, ""},
      {"gres/gpu:a100=2,gres/gpu:v100=3", 5, "a100,v100"},
      {"gres/gpu=0", 0, ""},
      {"gres/gpumem=80G,gres/gpuutil=5,gres/shard=4", std::nullopt, ""},
      {"(null)", std::nullopt, ""},
      {"", std::nullopt, ""},
  };
  for (const GpuCase& one : cases) {
    const Tres tres = ParseTres(one.text);
    EXPECT_EQ(tres.gpus, one.count) << one.text;
    EXPECT_EQ(tres.gpu_type, one.type) << one.text;
  }
}

TEST(Tres, ReadsAmountsOfAllVersions) {
  EXPECT_EQ(ParseTres("mem=62.50G").memory_bytes, 64000 * kMiB);
  EXPECT_EQ(ParseTres("mem=16000").memory_bytes, 16000 * kMiB);
  EXPECT_EQ(ParseTres("mem=1.5T").memory_bytes, 1536 * kGiB);
  EXPECT_EQ(ParseTres("cpu=4K").cpus, 4096);
  EXPECT_EQ(ParseTres("1=4,2=2048,4=1,5=7").memory_bytes, 2 * kGiB);
  EXPECT_EQ(ParseTres("1=4,2=2048,4=1,5=7").cpus, 4);
}

TEST(Tres, LeavesOutWhatItDoesNotUnderstand) {
  EXPECT_EQ(ParseTres("cpu=,mem=x,node,=4,gres/gpu=many,,billing=-1"), Tres{});
}

TEST(Tres, BecomesResources) {
  const evidence::Resources resources = ResourcesFromTres("cpu=2,mem=4G,node=1,gres/gpu:h100=2");
  EXPECT_EQ(resources.cpu_cores, 2);
  EXPECT_EQ(resources.memory_bytes, 4 * kGiB);
  EXPECT_EQ(resources.node_count, 1);
  EXPECT_EQ(resources.gpu_count, 2);
  EXPECT_EQ(resources.gpu_type, "h100");
  EXPECT_EQ(resources.tres, "cpu=2,mem=4G,node=1,gres/gpu:h100=2");
  EXPECT_EQ(ResourcesFromTres("(null)"), evidence::Resources{});
}

TEST(Gres, ReadsEverySpelling) {
  EXPECT_EQ(ParseGres("gpu:NVlink_A100_40GB:2(IDX:0,3)"),
            (std::vector<Gres>{{"gpu", "NVlink_A100_40GB", 2, {0, 3}}}));
  EXPECT_EQ(ParseGres("gpu:2(S:0-1)"), (std::vector<Gres>{{"gpu", "", 2, {}}}));
  EXPECT_EQ(ParseGres("gpu:a100:4,shard:8"),
            (std::vector<Gres>{{"gpu", "a100", 4, {}}, {"shard", "", 8, {}}}));
  EXPECT_EQ(ParseGres("gres:gpu:2"), (std::vector<Gres>{{"gpu", "", 2, {}}}));
  EXPECT_EQ(ParseGres("gres/gpu:a100=2"), (std::vector<Gres>{{"gpu", "a100", 2, {}}}));
  EXPECT_EQ(ParseGres("gres/gpu=3"), (std::vector<Gres>{{"gpu", "", 3, {}}}));
  EXPECT_EQ(ParseGres("gpu"), (std::vector<Gres>{{"gpu", "", 1, {}}}));
  EXPECT_EQ(ParseGres("gpu:tesla"), (std::vector<Gres>{{"gpu", "tesla", 1, {}}}));
  EXPECT_EQ(ParseGres("gpu:1080:4"), (std::vector<Gres>{{"gpu", "1080", 4, {}}}));
  EXPECT_EQ(ParseGres("gpu:1080ti:4(IDX:0-2,5)"),
            (std::vector<Gres>{{"gpu", "1080ti", 4, {0, 1, 2, 5}}}));
  EXPECT_EQ(ParseGres("gpu:h100:0(IDX:N/A)"), (std::vector<Gres>{{"gpu", "h100", 0, {}}}));
  EXPECT_EQ(ParseGres("bandwidth:lustre:no_consume:4K"),
            (std::vector<Gres>{{"bandwidth", "lustre", 4096, {}}}));
  EXPECT_EQ(ParseGres("gpu:a:2(S:0,2),gpu:b:1(S:1)"),
            (std::vector<Gres>{{"gpu", "a", 2, {}}, {"gpu", "b", 1, {}}}));
}

TEST(Gres, IsEmptyForTheWordsForNothing) {
  for (std::string_view text : {"", "(null)", "N/A", "none", ",", "(", "123", "2:gpu"}) {
    EXPECT_TRUE(ParseGres(text).empty()) << text;
  }
}

TEST(Gres, IndicesAreBounded) {
  const auto list = ParseGres("gpu:2(IDX:0-4294967295)");
  ASSERT_EQ(list.size(), 1);
  EXPECT_TRUE(list[0].indices.empty());
}

TEST(Gres, AddsUpGpus) {
  EXPECT_EQ(GpusOf(ParseGres("gpu:a100:4,gpu:v100:2,shard:8")), (GpuCount{6, "a100,v100"}));
  EXPECT_EQ(GpusOf(ParseGres("shard:8")), (GpuCount{std::nullopt, ""}));
  EXPECT_EQ(GpusOf(ParseGres("gpu:a100:0")), (GpuCount{0, ""}));
  // A cluster that tracks no GPUs as TRES: only the node's GresUsed tells.
  EXPECT_EQ(GpusOf(ParseGres("gpu:h100:5")), (GpuCount{5, "h100"}));
}

TEST(TresUsage, ReadsSacctsFields) {
  const TresUsage usage = ParseTresUsage(
      "cpu=00:01:02,energy=7,fs/disk=2048,gres/gpumem=1024M,gres/gpuutil=396,mem=12K,pages=3,"
      "vmem=1.50G");
  EXPECT_EQ(usage.cpu_s, 62);
  EXPECT_EQ(usage.energy_j, 7);
  EXPECT_EQ(usage.disk_bytes, 2048);
  EXPECT_EQ(usage.gpu_memory_bytes, kGiB);
  EXPECT_EQ(usage.gpu_utilisation_pct, 396);
  EXPECT_EQ(usage.memory_bytes, 12 * 1024);
  EXPECT_EQ(usage.pages, 3);
  EXPECT_EQ(usage.virtual_memory_bytes, 1536 * kMiB);
}

TEST(TresUsage, MissingIsUnknown) {
  EXPECT_EQ(ParseTresUsage(""), TresUsage{});
  EXPECT_EQ(ParseTresUsage("cpu=INVALID,mem=,energy=N/A"), TresUsage{});
  EXPECT_EQ(ParseTresUsage("mem=0").memory_bytes, 0);
}

}  // namespace
}  // namespace expanse::schedulers::slurm
