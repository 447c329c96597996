#include "workload/source/source_facts.h"

#include <gtest/gtest.h>

#include <string>

#include "workload/source/python_facts.h"
#include "workload/source/shell_commands.h"
#include "workload/source/source.h"

namespace expanse::workload {
namespace {

std::string Format(double value) {
  std::string text = std::to_string(value);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// "torch transformers | org/Name-7B=7000000000 | batch size=8 | optimizer=adamw | training LoRA".
std::string Show(const SourceFacts& facts) {
  std::string shown;
  for (const auto& framework : facts.frameworks) shown += framework.value + " ";
  shown += "|";
  for (const Model& model : facts.models) {
    shown += " " + model.name + "=" + (model.parameters ? Format(*model.parameters) : "?");
  }
  shown += " |";
  for (const auto& [number, fact] : facts.numbers) {
    shown += " " + std::string(Name(number)) + "=" + Format(fact.value);
  }
  shown += " |";
  for (const auto& [choice, fact] : facts.choices) {
    shown += " " + std::string(Name(choice)) + "=" + fact.value;
  }
  shown += " |";
  for (const auto& [flag, fact] : facts.flags) shown += " " + std::string(Name(flag));
  return shown;
}

SourceFacts OfPython(std::string_view text) {
  const auto submission = ParseSource("train.py", text);
  return ReadSourceFacts(submission->parts[0], {{.path = "train.py", .text = text}});
}

SourceFacts OfShell(std::string_view script, const std::vector<SourceText>& files = {}) {
  Part part;
  const source::ShellScript read = source::ReadShellScript(script);
  part.commands = read.commands;
  part.environment = read.environment;
  return ReadSourceFacts(part, files);
}

TEST(SourceFacts, AFineTuneWithLiterals) {
  const SourceFacts facts = OfPython(
      "import torch\nfrom transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
      "MODEL = 'org/Name-7B'\n"
      "model = AutoModelForCausalLM.from_pretrained(MODEL, torch_dtype=torch.bfloat16)\n"
      "args = TrainingArguments(output_dir='o', per_device_train_batch_size=4, "
      "num_train_epochs=3,\n"
      "    gradient_accumulation_steps=8, bf16=True, optim='adamw_torch', "
      "gradient_checkpointing=True)\n"
      "Trainer(model, args).train()\n");
  EXPECT_EQ(Show(facts),
            "torch transformers | org/Name-7B=7000000000 | batch size=4 gradient accumulation=8 "
            "epochs=3 | type of weights=bfloat16 mixed precision=bf16 optimizer=adamw | training "
            "activation checkpointing");
  EXPECT_EQ(facts.models[0].evidence,
            (Evidence{.file = "train.py", .line = 3, .text = "MODEL = 'org/Name-7B'"}));
}

TEST(SourceFacts, ArgumentsAndTheirDefaults) {
  const std::string text =
      "import argparse, torch\n"
      "p = argparse.ArgumentParser()\n"
      "p.add_argument('--model', default='org/Small-1B')\n"
      "p.add_argument('-b', '--batch-size', type=int, default=2 ** 4)\n"
      "p.add_argument('--epochs', type=int)\n"
      "p.add_argument('--workers', type=int, default=4)\n"
      "args = p.parse_args()\n"
      "loader = DataLoader(d, batch_size=args.batch_size, num_workers=args.workers)\n"
      "opt = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)\n";
  EXPECT_EQ(
      Show(OfPython(text)),
      "torch | org/Small-1B=1000000000 | batch size=16 data loader workers=4 | optimizer=sgd | "
      "training momentum");
  const SourceFacts given =
      OfShell("B=64\npython train.py -b $B --model /m/Big-13b --epochs=5 --workers $N\n",
              {{.path = "dir/train.py", .text = text}});
  EXPECT_EQ(given.Get(Number::kBatchSize), 64);
  EXPECT_EQ(given.Get(Number::kEpochs), 5);
  EXPECT_EQ(given.Get(Number::kLoaderWorkers), std::nullopt) << "given, and not known";
  ASSERT_EQ(given.models.size(), 1U);
  EXPECT_EQ(given.models[0].parameters, 13e9);
  EXPECT_EQ(given.numbers.at(Number::kEpochs).evidence,
            (Evidence{.line = 2,
                      .text = "python train.py -b 64 --model /m/Big-13b --epochs=5 --workers $N"}));
  ASSERT_EQ(given.unresolved.size(), 1U);
  EXPECT_EQ(given.unresolved[0],
            "line 2: data loader workers is a variable, whose value the text does not give");
}

TEST(SourceFacts, OnlyWhatStandsThere) {
  const SourceFacts facts = OfPython(
      "import sys\nbatch_size = int(sys.argv[1])\nDataLoader(d, batch_size=batch_size, "
      "num_workers=compute())\n"
      "for epochs in (1, 2): pass\nseq_len = 5\nseq_len = 6\nf(max_length=seq_len)\nname = "
      "f'org/x-{n}B'\n"
      "load.from_pretrained(name)\n");
  EXPECT_EQ(facts.Get(Number::kBatchSize), std::nullopt);
  EXPECT_EQ(facts.Get(Number::kLoaderWorkers), std::nullopt);
  EXPECT_EQ(facts.Get(Number::kEpochs), std::nullopt);
  EXPECT_TRUE(facts.models.empty());
  ASSERT_EQ(facts.unresolved.size(), 2U);
  EXPECT_EQ(facts.unresolved[0],
            "train.py:3: batch size is batch_size, whose value the text does not give");
}

TEST(SourceFacts, DataclassesAndConfigurations) {
  EXPECT_EQ(
      Show(OfPython("@dataclass\nclass C:\n  batch_size: int = 32\n  max_seq_len: int = "
                    "field(default=512)\n"
                    "config = {'num_workers': 8, \"epochs\": 2}\nf(config['num_workers'])\n")),
      "| | batch size=32 sequence length=512 epochs=2 data loader workers=8 | |");
  const SourceFacts facts = OfShell(
      "accelerate launch --config_file fsdp.yaml --num_processes 8 --mixed_precision bf16 t.py "
      "--deepspeed ds.json\n",
      {{.path = "ds.json",
        .text = "{\n \"zero_optimization\": {\n  \"stage\": 3,\n"
                "  \"x\": \"auto\"\n },\n \"train_micro_batch_size_per_gpu\": 2\n}"},
       {.path = "t.py",
        .text = "import torch\nfrom peft import LoraConfig\nc = LoraConfig(r=16)\n"}});
  EXPECT_EQ(Show(facts),
            "accelerate torch peft | | batch size=2 devices=8 LoRA rank=16 | mixed precision=bf16 "
            "sharding=zero3 | GPU LoRA");
}

TEST(SourceFacts, ProcessesAndThreads) {
  EXPECT_EQ(OfPython("from multiprocessing import Pool\nwith Pool(processes=12) as p: pass\n")
                .Get(Number::kProcesses),
            12);
  EXPECT_EQ(OfPython("with Pool(6) as p: pass\n").Get(Number::kProcesses), 6);
  EXPECT_EQ(OfPython("p = mp.Pool()\n").Get(Number::kProcesses), -1);
  EXPECT_EQ(OfPython("RandomForestClassifier(n_jobs=-1)\n").Get(Number::kProcesses), -1);
  EXPECT_EQ(OfPython("import os\nos.environ['OMP_NUM_THREADS'] = '4'\n").Get(Number::kThreads), 4);
  EXPECT_EQ(OfShell("export OMP_NUM_THREADS=8\nmpirun -np 16 ./solver\n").Get(Number::kThreads), 8);
  EXPECT_EQ(OfShell("mpirun -np 16 ./solver\n").Get(Number::kRanks), 16);
  EXPECT_EQ(OfShell("java -Xmx4g -jar x.jar\n").Get(Number::kHeapBytes), 4.0 * (1 << 30));
}

TEST(SourceFacts, ANameThatNothingUsesIsNoNumberOfDevicesOrCores) {
  const SourceFacts unused = OfPython("cores = 64\np.add_argument('--gpus', default=8)\n");
  EXPECT_EQ(unused.Get(Number::kProcesses), std::nullopt);
  EXPECT_EQ(unused.Get(Number::kDevices), std::nullopt);
  const SourceFacts used = OfPython(
      "cores = 64\np.add_argument('--gpus', default=8)\na = p.parse_args()\n"
      "Pool(cores)\nTrainer(devices=a.gpus)\n");
  EXPECT_EQ(used.Get(Number::kProcesses), 64);
  EXPECT_EQ(used.Get(Number::kDevices), 8);
}

TEST(SourceFacts, Servers) {
  EXPECT_EQ(Show(OfShell("vllm serve org/Name-70B --tensor-parallel-size 4 --max-model-len=8192 "
                         "--dtype bfloat16\n")),
            "| org/Name-70B=70000000000 | sequence length=8192 tensor parallel size=4 | "
            "type of weights=bfloat16 server=vllm | inference GPU");
  EXPECT_EQ(Show(OfShell("python3 -m sglang.launch_server --model-path org/N-8B --tp 2\n")),
            "| org/N-8B=8000000000 | tensor parallel size=2 | server=sglang | inference GPU");
  Part part;
  part.image = "vllm/vllm-openai:v0.8";
  part.commands = source::CommandsOfArguments({{.text = "--model"}, {.text = "org/N-8B"}}, {});
  EXPECT_EQ(Show(ReadSourceFacts(part, {})),
            "| org/N-8B=8000000000 | | server=vllm | inference GPU");
}

TEST(SourceFacts, Applications) {
  const SourceFacts facts =
      OfShell("STAR --runThreadN 16 --genomeDir g\nsrun -n 8 gmx_mpi mdrun -ntomp 4\n./own\n");
  ASSERT_EQ(facts.applications.size(), 2U);
  EXPECT_EQ(facts.applications[0].name, "star");
  EXPECT_EQ(facts.applications[1].name, "gromacs");
  EXPECT_EQ(facts.applications[1].program, "gmx_mpi");
  EXPECT_EQ(facts.Get(Number::kThreads), 16);
  EXPECT_EQ(facts.Get(Number::kRanks), 8);
}

TEST(SourceFacts, ScriptsWithinScriptsAndNotebooks) {
  EXPECT_TRUE(OfShell("python - <<EOF\nimport jax\nEOF\n").Uses("jax"));
  EXPECT_TRUE(OfShell("python -c 'import pandas as pd'\n").Uses("pandas"));
  EXPECT_TRUE(OfShell("cat > t.py <<'EOF'\nimport torch\nEOF\npython t.py\n").Uses("torch"));
  const std::string notebook =
      "{\"cells\": [{\"cell_type\": \"markdown\", \"source\": \"import no\"}, {\"cell_type\": "
      "\"code\", \"source\": [\"%pip install x\\n\", \"import xgboost\\n\", \"m = "
      "XGBClassifier(n_jobs=4)\"]}]}";
  const SourceFacts facts =
      OfShell("jupyter nbconvert --execute n.ipynb\n", {{.path = "n.ipynb", .text = notebook}});
  EXPECT_EQ(Show(facts), "xgboost | | processes=4 | |");
  EXPECT_FALSE(source::PythonOfNotebook("[1]"));
  EXPECT_FALSE(source::PythonOfNotebook("{"));
}

TEST(SourceFacts, LayersWithLiteralSizes) {
  EXPECT_EQ(OfPython("from torch import nn\na = nn.Linear(1000, 100)\nb = nn.Conv2d(3, 64, 3)\n"
                     "c = nn.Embedding(500, 8)\nd = nn.Linear(n, 4)\n")
                .Get(Number::kLiteralParameters),
            1000 * 100 + 100 + 3 * 64 * 9 + 64 + 500 * 8);
}

TEST(SourceFacts, ImportedModulesCountLess) {
  const SourceFacts facts =
      OfShell("python main.py\n", {{.path = "lib.py", .text = "batch_size = 1\nepochs = 9\n"},
                                   {.path = "main.py", .text = "batch_size = 2\n"}});
  EXPECT_EQ(facts.Get(Number::kBatchSize), 2);
  EXPECT_EQ(facts.Get(Number::kEpochs), 9);
}

TEST(SourceFacts, NothingIsNothing) {
  EXPECT_TRUE(OfPython("").empty());
  EXPECT_TRUE(OfPython("print('hello')\n").empty());
  EXPECT_TRUE(OfShell("./solver in.dat\n").empty());
}

}  // namespace
}  // namespace expanse::workload
