#include "intelligence/predict/source_estimate.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "intelligence/predict/model_memory.h"
#include "workload/source/shell_commands.h"
#include "workload/source/source.h"

namespace expanse::intelligence::predict {
namespace {

using workload::Part;
using workload::SourceText;

constexpr double kGiB = 1024.0 * 1024 * 1024;

struct Range {
  double low = 0;
  double high = 0;  // 0: nothing may be said
};

struct Case {
  std::string_view name;
  std::string_view command;  // of a shell script
  std::string_view python;   // train.py, if any
  Range gpu_memory_gib;      // on each device
  Range memory_gib;
  Range cores;
  Range gpus;
  double requested_gpus = 0;
};

const std::vector<Case>& Cases() {
  static const std::string_view kFull =
      "import torch\nfrom transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
      "m = AutoModelForCausalLM.from_pretrained('org/Name-7B')\n"
      "a = TrainingArguments('o', per_device_train_batch_size=1, bf16=True, max_seq_length=2048, "
      "optim='adamw_torch')\n"
      "Trainer(m, a).train()\n";
  static const std::string_view kHalf =
      "import torch\nfrom transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
      "m = AutoModelForCausalLM.from_pretrained('org/Name-7B', torch_dtype=torch.bfloat16)\n"
      "a = TrainingArguments('o', per_device_train_batch_size=1, bf16=True, "
      "gradient_checkpointing=True)\n"
      "Trainer(m, a).train()\n";
  static const std::string_view kLora =
      "import torch\nfrom peft import LoraConfig\nfrom transformers import AutoModelForCausalLM, "
      "Trainer\n"
      "m = AutoModelForCausalLM.from_pretrained('org/Name-7B', torch_dtype=torch.bfloat16)\n"
      "c = LoraConfig(r=16)\nb = dict(batch_size=1)\nbatch_size = 1\nmax_length = 1024\n"
      "a = TrainingArguments('o', gradient_checkpointing=True)\n";
  static const std::string_view kQlora =
      "import torch\nfrom peft import LoraConfig\nimport bitsandbytes\n"
      "m = AutoModelForCausalLM.from_pretrained('org/Name-7B', load_in_4bit=True)\n"
      "c = LoraConfig(r=8)\nbatch_size = 1\nmax_length = 1024\n"
      "a = TrainingArguments('o', gradient_checkpointing=True)\n";
  static const std::string_view kResnet =
      "import torch, torchvision\nfrom torchvision import models\n"
      "p.add_argument('--batch-size', type=int, default=256)\n"
      "m = models.resnet50().cuda()\nl = DataLoader(d, batch_size=args.batch_size, num_workers=8)\n"
      "o = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)\nloss.backward()\n";
  static const std::string_view kBert =
      "from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments\n"
      "m = AutoModelForSequenceClassification.from_pretrained('bert-base-uncased')\n"
      "a = TrainingArguments('o', per_device_train_batch_size=16, fp16=True)\nmax_length = 128\n";
  static const std::string_view kGenerate =
      "import torch\nfrom transformers import AutoModelForCausalLM\n"
      "m = AutoModelForCausalLM.from_pretrained('org/Name-13B', "
      "torch_dtype=torch.float16).to('cuda')\n"
      "m.generate(x)\n";
  static const std::string_view kSpread =
      "m = AutoModelForCausalLM.from_pretrained('org/Name-70B', torch_dtype=torch.bfloat16, "
      "device_map='auto')\n"
      "m.generate(x)\n";
  static const std::string_view kSmallNet =
      "import torch\nfrom torch import nn\na = nn.Linear(784, 512)\nb = nn.Linear(512, 10)\n"
      "o = torch.optim.Adam(n.parameters())\nn.to('cuda')\nloss.backward()\n";
  static const std::vector<Case> kCases = {
      {"7B, mixed precision, Adam: 16 bytes each",
       "python train.py",
       kFull,
       {110, 135},
       {28, 36},
       {1, 1},
       {1, 1}},
      {"7B in 16 bits throughout: 8 bytes each",
       "python train.py",
       kHalf,
       {52, 75},
       {15, 20},
       {1, 1},
       {1, 1}},
      {"7B over 8 devices with ZeRO-3",
       "deepspeed --num_gpus 8 train.py --deepspeed zero3.json",
       kFull,
       {17, 30},
       {50, 70},
       {8, 8},
       {8, 8}},
      {"7B over 4 devices with FSDP",
       "torchrun --nproc_per_node 4 train.py --fsdp full_shard",
       kFull,
       {30, 45},
       {30, 60},
       {4, 4},
       {4, 4}},
      {"7B, copies on 2 devices",
       "torchrun --nproc_per_node=2 train.py",
       kFull,
       {110, 135},
       {55, 70},
       {2, 2},
       {2, 2}},
      {"7B, ZeRO-3 offloaded to the host",
       "deepspeed --num_gpus 4 train.py --zero_stage 3 --cpu_offload",
       kFull,
       {8, 25},
       {120, 170},
       {4, 4},
       {4, 4}},
      {"7B with LoRA in 16 bits", "python train.py", kLora, {14, 24}, {15, 20}, {1, 1}, {1, 1}},
      {"7B with LoRA in 4 bits", "python train.py", kQlora, {5, 13}, {6, 12}, {1, 1}, {1, 1}},
      {"ResNet-50, 256 pictures in 32 bits",
       "python train.py",
       kResnet,
       {20, 32},
       {11, 14},
       {9, 9},
       {1, 1}},
      {"ResNet-50, 32 pictures by the command line",
       "python train.py --batch-size 32",
       kResnet,
       {3, 6},
       {11, 14},
       {9, 9},
       {1, 1}},
      {"BERT base", "python train.py", kBert, {2.5, 8}, {4, 6}, {1, 1}, {1, 1}},
      {"13B generates in 16 bits",
       "python train.py",
       kGenerate,
       {26, 32},
       {26, 32},
       {1, 1},
       {1, 1}},
      {"70B over 4 devices by device_map",
       "python train.py",
       kSpread,
       {34, 42},
       {130, 140},
       {1, 1},
       {1, 1},
       4},
      {"a net of two layers", "python train.py", kSmallNet, {1, 1.2}, {4, 5}, {1, 1}, {1, 1}},
      {"8B served by vLLM",
       "vllm serve org/Name-8B --max-model-len 8192",
       "",
       {17, 21},
       {18, 24},
       {3, 3},
       {1, 1}},
      {"70B served over 4 devices",
       "vllm serve org/Name-70B -tp 4 --max-model-len 8192",
       "",
       {36, 44},
       {140, 160},
       {6, 6},
       {4, 4}},
      {"70B served in 4 bits",
       "vllm serve org/Name-70B --quantization awq --max-model-len 4096",
       "",
       {39, 48},
       {38, 48},
       {3, 3},
       {1, 1}},
      {"8B by SGLang",
       "python -m sglang.launch_server --model-path org/Name-8B --tp 2",
       "",
       {9, 12},
       {20, 28},
       {4, 4},
       {2, 2}},
      {"ranks and threads",
       "export OMP_NUM_THREADS=4\nmpirun -np 16 ./solver in",
       "",
       {},
       {},
       {64, 64},
       {}},
      {"GROMACS takes what it is given",
       "srun -n 8 gmx_mpi mdrun -ntomp 4 -maxh 24",
       "",
       {},
       {},
       {32, 32},
       {}},
      {"STAR on a human genome",
       "STAR --runThreadN 12 --genomeDir g",
       "",
       {},
       {32, 32},
       {12, 12},
       {}},
      {"bwa", "bwa mem -t 8 ref.fa a.fq | samtools sort -@ 8 -o o.bam", "", {}, {7, 8}, {8, 8}, {}},
      {"Trinity is told its memory",
       "Trinity --CPU 16 --max_memory 50G --left a",
       "",
       {},
       {52, 53},
       {16, 16},
       {}},
      {"a Java heap", "java -Xmx16g -jar tool.jar", "", {}, {19, 21}, {}, {}},
      {"a pool of processes",
       "python train.py",
       "from multiprocessing import Pool\nimport pandas as pd\nd = "
       "pd.read_csv('a.csv')\nPool(24)\n",
       {},
       {},
       {24, 24},
       {}},
      {"as many as there are",
       "python train.py",
       "from joblib import Parallel\nParallel(n_jobs=-1)(x)\n",
       {},
       {},
       {},
       {}},
      {"random forest",
       "python train.py",
       "from sklearn.ensemble import RandomForestClassifier\nRandomForestClassifier(n_jobs=8)\n",
       {},
       {},
       {8, 8},
       {}},
      {"a model of unknown size",
       "python train.py",
       "import torch\nm = AutoModel.from_pretrained('lab/thing').cuda()\nloss.backward()\n",
       {},
       {4, 5},
       {1, 1},
       {1, 1}},
      {"a program of one's own", "./solver input.dat", "", {}, {}, {}, {}},
      {"nothing", "echo hello", "", {}, {}, {}, {}},
      {"embeddings on processors",
       "python train.py",
       "from sentence_transformers import SentenceTransformer\nm = "
       "SentenceTransformer('all-MiniLM-L6-v2')\n",
       {},
       {2, 3},
       {},
       {}},
  };
  return kCases;
}

SourceEstimate Of(std::string_view command, std::string_view python, double requested_gpus,
                  std::string gpu_type = {}) {
  Part part;
  const auto script = workload::source::ReadShellScript(command);
  part.commands = script.commands;
  part.environment = script.environment;
  part.request.gpu_type = std::move(gpu_type);
  std::vector<SourceText> files;
  if (!python.empty()) files.push_back({.path = "train.py", .text = python});
  Amounts requested;
  if (requested_gpus > 0) requested.gpu_count = requested_gpus;
  return EstimateFromSource(workload::ReadSourceFacts(part, files), part, requested);
}

void Check(const Range& range, const Estimate& estimate, double unit, std::string_view what) {
  if (range.high == 0) {
    EXPECT_FALSE(estimate.amount) << what << ": " << *estimate.amount / unit << ", "
                                  << estimate.reason;
    return;
  }
  ASSERT_TRUE(estimate.amount) << what;
  EXPECT_GE(*estimate.amount / unit, range.low) << what << ": " << estimate.reason;
  EXPECT_LE(*estimate.amount / unit, range.high) << what << ": " << estimate.reason;
  EXPECT_FALSE(estimate.reason.empty()) << what;
}

TEST(SourceEstimate, NumbersThatAPersonWouldGive) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(one.name);
    const SourceEstimate estimate = Of(one.command, one.python, one.requested_gpus);
    Check(one.gpu_memory_gib, estimate.gpu_memory, kGiB, "GPU memory");
    Check(one.memory_gib, estimate.memory, kGiB, "memory");
    Check(one.cores, estimate.cpu, 1, "cores");
    Check(one.gpus, estimate.gpu, 1, "GPUs");
    EXPECT_FALSE(estimate.missing.empty()) << "no source tells everything";
  }
}

TEST(SourceEstimate, ReasonsNameTheFormulaAndThePlace) {
  const SourceEstimate estimate = Of("python train.py", Cases()[0].python, 0);
  EXPECT_EQ(
      estimate.gpu_memory.reason,
      "org/Name-7B has 7.0 B parameters (train.py:3): 16 bytes each for weights, gradients and the "
      "states of adamw (ZeRO, arXiv 1910.02054), 104 GiB on a device; 10.2 GiB of activations for "
      "1 x 2048 tokens (arXiv 2205.05198)");
  EXPECT_EQ(Of("srun -n 8 gmx_mpi mdrun -maxh 24", "", 0).walltime.amount, 86400);
}

TEST(SourceEstimate, WhatIsMissingIsSaid) {
  EXPECT_EQ(Of("echo hello", "", 0).missing,
            (std::vector<std::string>{
                "nothing in the source tells what it will need: the request is kept as it is"}));
  const SourceEstimate table =
      Of("python train.py", "import pandas as pd\nd = pd.read_csv('a.csv')\n", 0);
  EXPECT_EQ(
      table.missing,
      (std::vector<std::string>{
          "the size of a.csv is not known: a table takes several times its file's size in memory",
          "nothing in the source tells how long it takes"}));
}

TEST(SourceEstimate, WarnsOfDevicesThatCannotHoldIt) {
  const SourceEstimate small = Of("python train.py", Cases()[0].python, 1, "v100");
  ASSERT_EQ(small.warnings.size(), 1U);
  EXPECT_TRUE(small.warnings[0].ends_with(
      "of GPU memory are needed on a device, and v100 has at most 32.0 GiB"))
      << small.warnings[0];
  const SourceEstimate few = Of("torchrun --nproc_per_node 8 train.py", Cases()[8].python, 4);
  ASSERT_EQ(few.warnings.size(), 1U);
  EXPECT_EQ(few.warnings[0], "it starts on 8 devices and asks for 4");
  EXPECT_TRUE(Of("python train.py", Cases()[8].python, 1, "a100").warnings.empty());
}

TEST(SourceEstimate, RaisesAndNeverLowers) {
  const SourceEstimate estimate = Of("vllm serve org/Name-8B --max-model-len 8192", "", 1);
  Amounts requested{.cpu_cores = 16, .memory_bytes = 4 * kGiB, .gpu_count = 1, .walltime_s = 3600};
  Recommendation recommendation = Recommend({}, Basis::kNone, requested, {});
  ApplySourceEstimate(estimate, &recommendation);
  EXPECT_EQ(recommendation.cpu.amount, 16);
  EXPECT_EQ(recommendation.memory.amount, 19 * kGiB);
  EXPECT_EQ(recommendation.memory.change, Change::kRaise);
  EXPECT_EQ(recommendation.gpu.amount, 1);
  EXPECT_EQ(recommendation.walltime.amount, 3600);
  EXPECT_EQ(recommendation.right_size, "memory_raise");
  EXPECT_EQ(recommendation.confidence, Confidence::kLow);
  EXPECT_EQ(recommendation.gpu_memory_floor_bytes, estimate.gpu_memory.amount);
  EXPECT_TRUE(recommendation.rationale.contains("gpu memory: about")) << recommendation.rationale;

  Recommendation unasked = Recommend({}, Basis::kNone, {}, {});
  ApplySourceEstimate(estimate, &unasked);
  EXPECT_EQ(unasked.memory.amount, 19 * kGiB);
  EXPECT_EQ(unasked.gpu.amount, 1);
  EXPECT_EQ(unasked.right_size, "none") << "nothing was asked for";
  EXPECT_FALSE(unasked.walltime.amount);
}

TEST(SourceEstimate, OnePodOfAGroupIsAskedForItsShare) {
  Part part;
  part.kind = "LeaderWorkerSet";
  part.group = "leader";
  part.commands = workload::source::ReadShellScript("vllm serve org/Name-70B -tp 8 -pp 2").commands;
  const SourceEstimate estimate =
      EstimateFromSource(workload::ReadSourceFacts(part, {}), part, {.gpu_count = 8});
  EXPECT_EQ(estimate.gpu.amount, 8);
  EXPECT_TRUE(estimate.warnings.empty());
  EXPECT_NEAR(*estimate.memory.amount / kGiB, 8 * 4 + 65, 2);
}

TEST(SourceEstimate, WithoutAFactAGpuRequestIsNoEvidence) {
  Part part;
  part.commands = workload::source::ReadShellScript("namd3 +p8 run.conf").commands;
  const SourceEstimate estimate =
      EstimateFromSource(workload::ReadSourceFacts(part, {}), part, {.gpu_count = 1});
  EXPECT_FALSE(estimate.memory.amount) << estimate.memory.reason;
  EXPECT_FALSE(estimate.gpu_memory.amount);
}

TEST(SourceEstimate, AJobWithoutGpusStaysOne) {
  Part part;
  part.settings.push_back({.quantity = workload::Quantity::kMemory});
  part.commands = workload::source::ReadShellScript("python train.py").commands;
  const auto facts =
      workload::ReadSourceFacts(part, {{.path = "train.py", .text = Cases()[8].python}});
  const SourceEstimate estimate = EstimateFromSource(facts, part, {.memory_bytes = 8 * kGiB});
  EXPECT_FALSE(estimate.gpu.amount);
  ASSERT_EQ(estimate.warnings.size(), 1U);
  EXPECT_EQ(estimate.warnings[0],
            "the source computes on a GPU where there is one (train.py:4), and none is asked for");
}

TEST(ModelMemory, ShapesNearThoseOfRealModels) {
  // Llama-2-7B: 32 layers of 4096; Llama-2-70B: 80 of 8192; GPT-2: 12 of 768.
  EXPECT_NEAR(ShapeOf(6.7e9).hidden, 4096, 300);
  EXPECT_NEAR(ShapeOf(6.7e9).layers, 32, 3);
  EXPECT_NEAR(ShapeOf(69e9).hidden, 8192, 900);
  EXPECT_NEAR(ShapeOf(124e6).hidden, 768, 400);
  // Llama-3-8B holds 128 KiB a token, Llama-2-70B 320 KiB.
  EXPECT_NEAR(KvCacheBytes(8e9, 1) / 1024, 128, 30);
  EXPECT_NEAR(KvCacheBytes(70e9, 1) / 1024, 320, 60);
}

TEST(ModelMemory, BytesPerParameter) {
  const auto bytes = [](TrainingSetup setup) {
    setup.parameters = 1e9;
    return TrainingMemory(setup).bytes_per_parameter;
  };
  EXPECT_EQ(bytes({.weight_bytes = 4, .optimizer = "adamw"}), 16);
  EXPECT_EQ(bytes({.weight_bytes = 4, .mixed_precision = true, .optimizer = "adamw"}), 16);
  EXPECT_EQ(bytes({.weight_bytes = 2, .optimizer = "adamw", .sharding = "zero2"}), 16);
  EXPECT_EQ(bytes({.weight_bytes = 2, .optimizer = "adamw"}), 8);
  EXPECT_EQ(bytes({.weight_bytes = 4, .optimizer = "adamw_8bit"}), 10);
  EXPECT_EQ(bytes({.weight_bytes = 4, .optimizer = "adafactor"}), 8);
  EXPECT_EQ(bytes({.weight_bytes = 4, .optimizer = "sgd"}), 8);
  EXPECT_EQ(bytes({.weight_bytes = 4, .optimizer = "sgd", .momentum = true}), 12);
}

TEST(ModelMemory, ShardingDividesWhatItsStageDivides) {
  const auto states = [](std::string sharding) {
    return TrainingMemory({.parameters = 1e9,
                           .weight_bytes = 2,
                           .optimizer = "adamw",
                           .sharding = std::move(sharding),
                           .devices = 4})
               .states /
           1e9;
  };
  // Figure 1 of the ZeRO paper: 2 + 2 + 12/N, 2 + 14/N, 16/N.
  EXPECT_DOUBLE_EQ(states("zero1"), 7);
  EXPECT_DOUBLE_EQ(states("zero2"), 5.5);
  EXPECT_DOUBLE_EQ(states("zero3"), 4);
}

TEST(ModelMemory, Devices) {
  EXPECT_EQ(LargestDeviceMemory("NVIDIA H100 80GB HBM3"), 96 * kGiB);
  EXPECT_EQ(LargestDeviceMemory("a100"), 80 * kGiB);
  EXPECT_EQ(LargestDeviceMemory("nvidia_a100_3g.20gb"), 80 * kGiB);
  EXPECT_EQ(LargestDeviceMemory("Tesla V100-SXM2"), 32 * kGiB);
  EXPECT_EQ(LargestDeviceMemory("rtx4090"), 24 * kGiB);
  EXPECT_FALSE(LargestDeviceMemory("a1000"));
  EXPECT_FALSE(LargestDeviceMemory("nvidia.com/gpu"));
  EXPECT_FALSE(LargestDeviceMemory(""));
}

}  // namespace
}  // namespace expanse::intelligence::predict
