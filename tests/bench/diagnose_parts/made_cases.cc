#include "bench/diagnose_parts/made_cases.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace expanse::bench {
namespace {

using intelligence::diagnose::Case;

std::string TrainingLine(std::size_t i) {
  return fmt::format(
      "2026-03-01T10:{:02}:{:02}.{:03} [rank{}] step {} loss {:.4f} lr {:.2e} word{} error_rate "
      "{}\n",
      i / 3600 % 60, i / 60 % 60, i % 1000, i % 64, i, 1.0 / static_cast<double>(i + 1), 1e-4,
      i * 7919 % 997, i % 13);
}

Case Failed(std::string log) {
  Case of;
  of.execution.status = evidence::ExecutionStatus::kFailed;
  of.execution.source_type = evidence::SourceType::kSlurm;
  of.execution.native_state = "FAILED";
  of.execution.exit_code = 1;
  of.logs.push_back({.stream = "stderr", .data = std::move(log)});
  return of;
}

}  // namespace

Case LongCase(std::size_t lines) {
  std::string log;
  for (std::size_t i = 0; i < lines; ++i) {
    log += TrainingLine(i);
    if (i == lines / 2)
      log += "[rank17]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB\n";
  }
  return Failed(std::move(log));
}

Case DistinctCase(std::size_t lines) {
  std::string log;
  std::uint64_t x = 88172645463325252U;
  for (std::size_t i = 0; i < lines; ++i) {
    for (int word = 0; word < 10; ++word) {
      for (int k = 0; k < 6; ++k) {
        x ^= x << 13U;
        x ^= x >> 7U;
        x ^= x << 17U;
        log += static_cast<char>('a' + x % 26);
      }
      log += ' ';
    }
    log += '\n';
  }
  log += "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB\n";
  return Failed(std::move(log));
}

Case OrdinaryCase() {
  std::string log;
  for (std::size_t i = 0; i < 1000; ++i) log += TrainingLine(i);
  log += "Traceback (most recent call last):\n";
  for (int frame = 0; frame < 12; ++frame)
    log +=
        fmt::format("  File \"/home/ann/model/layer{}.py\", line {}, in forward\n", frame, frame);
  log += "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB\n";
  Case of = Failed(std::move(log));
  std::string out;
  for (int i = 0; i < 1000; ++i) out += fmt::format("epoch {} of 40: {} samples a second\n", i, i);
  of.logs.push_back({.stream = "stdout", .data = std::move(out)});
  of.sources.push_back({.path = "train.sh",
                        .role = "script",
                        .data =
                            "#!/bin/bash\n#SBATCH --mem=64G\n#SBATCH --gres=gpu:1\n"
                            "#SBATCH --time=04:00:00\nmodule load cuda\nsrun python train.py\n"});
  for (const char* path : {"train.py", "model.py"}) {
    std::string source;
    for (int i = 0; i < 400; ++i)
      source += fmt::format("x{} = layer(x{}, width={})\n", i + 1, i, i);
    of.sources.push_back({.path = path, .role = "import", .data = std::move(source)});
  }
  of.snapshot.runtime_s = 2531;
  of.snapshot.walltime_s = 14'400;
  of.snapshot.host_ram_observed_peak_bytes = 24e9;
  of.snapshot.host_ram_requested_bytes = 64e9;
  of.snapshot.gpu_memory_available_bytes = 80e9;
  of.snapshot.gpu_memory_observed_bytes = 79e9;
  for (int i = 0; i < 40; ++i) {
    auto& run = of.similar.emplace_back().run;
    run.execution_id = fmt::format("run{}", i);
    run.ending = intelligence::predict::Ending::kSuccess;
    run.memory_peak_bytes = 20e9;
  }
  return of;
}

}  // namespace expanse::bench
