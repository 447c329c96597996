// Programs that stand in for squeue, sacct and scontrol of a large cluster, for slurm_load_bench:
// the bench runs itself under their names. What they print follows from the clock alone: every slot
// of the cluster runs one job after the other, and every place in the queue holds one after the
// other, so that jobs come and go steadily. Ended jobs stay listed for five minutes, and priorities
// of all that waits change every five minutes, as with Slurm's defaults.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "base/time.h"
#include "schedulers/slurm/commands/sacct_query.h"
#include "schedulers/slurm/commands/squeue_testing.h"

namespace expanse::bench {

struct ClusterSize {
  std::uint64_t running = 10'000;
  std::uint64_t pending = 100'000;
  std::int64_t run_s = 7'200;    // mean of a job's run time
  std::int64_t wait_s = 72'000;  // mean of what a job waits
  std::uint64_t nodes = 2'000;
  std::int64_t priority_period_s = 300;

  std::string Encode() const {
    return fmt::format("{} {} {} {} {} {}", running, pending, run_s, wait_s, nodes,
                       priority_period_s);
  }
  static ClusterSize Decode(std::string_view text) {
    ClusterSize size;
    const auto words = base::SplitSpaces(text);
    if (words.size() != 6) return size;
    size.running = base::ParseInt<std::uint64_t>(words[0]).value_or(0);
    size.pending = base::ParseInt<std::uint64_t>(words[1]).value_or(0);
    size.run_s = base::ParseInt<std::int64_t>(words[2]).value_or(1);
    size.wait_s = base::ParseInt<std::int64_t>(words[3]).value_or(1);
    size.nodes = base::ParseInt<std::uint64_t>(words[4]).value_or(1);
    size.priority_period_s = base::ParseInt<std::int64_t>(words[5]).value_or(1);
    return size;
  }
};

class StandIn {
 public:
  StandIn(ClusterSize size, std::int64_t now) : size_(size), now_(now) {}

  int Squeue(const std::vector<std::string>& arguments) {
    separator_ = schedulers::slurm::QueueSeparatorOf(arguments);
    const std::string wanted = Value(arguments, "--jobs=");
    for (std::uint64_t slot = 0; slot < size_.running; ++slot) PrintSlot(slot, wanted);
    for (std::uint64_t place = 0; place < size_.pending; ++place) PrintPlace(place, wanted);
    Flush();
    return 0;
  }

  int Sacct(const std::vector<std::string>& arguments) {
    using namespace schedulers::slurm;
    const SacctFormat format = SacctFormat::Full();
    if (std::ranges::find(arguments, "--helpformat") != arguments.end()) {
      std::string fields = format.Argument();
      std::ranges::replace(fields, ',', ' ');
      out_ = fields + "\n";
      Flush();
      return 0;
    }
    separator_ = Value(arguments, "--delimiter=");
    const std::int64_t from = Time(Value(arguments, "--starttime="));
    const std::int64_t to = Time(Value(arguments, "--endtime="));
    const auto ids = base::Split(Value(arguments, "--jobs="), ',');
    for (std::uint64_t slot = 0; slot < size_.running; ++slot) {
      for (Span job = Before(SpanOf(slot, size_.run_s, now_)); job.end >= from; job = Before(job)) {
        if (job.end <= to || !ids.front().empty()) PrintRecord(format, slot, job);
      }
    }
    Flush();
    return 0;
  }

  int Scontrol(const std::vector<std::string>& arguments) {
    const std::string what = arguments.size() > 1 ? arguments[1] : "";
    if (what == "config") {
      out_ =
          "AccountingStorageType   = accounting_storage/slurmdbd\nClusterName             = bench\n"
          "MinJobAge               = 300 sec\nSLURM_VERSION           = 23.11.4\n"
          "StateSaveLocation       = /nonexistent\n";
    } else if (what == "node") {
      for (std::uint64_t node = 0; node < size_.nodes; ++node) {
        out_ += fmt::format(
            "NodeName=n{0:05} Arch=x86_64 CoresPerSocket=32 \n   CPUAlloc=48 CPUEfctv=128 "
            "CPUTot=128 CPULoad=40.1\n   AvailableFeatures=rome,ib\n   ActiveFeatures=rome,ib\n   "
            "Gres=gpu:a100:4(S:0-1)\n   GresDrain=N/A\n   GresUsed=gpu:a100:2(IDX:0-1)\n   "
            "NodeAddr=n{0:05} NodeHostName=n{0:05} Version=23.11.4\n   RealMemory=515000 "
            "AllocMem=196608 FreeMem=301234 Sockets=2 Boards=1\n   State=MIXED ThreadsPerCore=2 "
            "TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A\n   Partitions=p{1} \n   "
            "CfgTRES=cpu=128,mem=515000M,billing=128,gres/gpu=4\n   "
            "AllocTRES=cpu=48,mem=192G,gres/gpu=2\n\n",
            node, node % 8);
      }
    } else if (what == "partition") {
      for (int i = 0; i < 8; ++i) {
        out_ += fmt::format(
            "PartitionName=p{}\n   MaxTime=2-00:00:00\n   State=UP TotalCPUs=32000 "
            "TotalNodes={}\n\n",
            i, size_.nodes / 8);
      }
    } else {
      return 1;
    }
    Flush();
    return 0;
  }

 private:
  // One job of a slot: the n-th there.
  struct Span {
    std::uint64_t slot = 0;
    std::int64_t mean = 0;
    std::uint64_t n = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  static std::uint64_t Mix(std::uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
  }
  // Slots have their own period, from half the mean to one and a half times that.
  static Span SpanOf(std::uint64_t slot, std::int64_t mean, std::int64_t now) {
    const std::int64_t period =
        mean / 2 + static_cast<std::int64_t>(Mix(slot) % static_cast<std::uint64_t>(mean));
    const auto phase =
        static_cast<std::int64_t>(Mix(slot + 1) % static_cast<std::uint64_t>(period));
    const std::int64_t n = (now + phase) / period;
    return {.slot = slot,
            .mean = mean,
            .n = static_cast<std::uint64_t>(n),
            .begin = n * period - phase,
            .end = (n + 1) * period - phase};
  }
  static Span Before(const Span& span) { return SpanOf(span.slot, span.mean, span.begin - 1); }
  static std::uint64_t IdOf(std::uint64_t slot, const Span& span, std::uint64_t base) {
    return base + slot * 97 + span.n % 97;
  }

  static std::string Value(const std::vector<std::string>& arguments, std::string_view option) {
    for (const std::string& argument : arguments) {
      if (argument.starts_with(option)) return argument.substr(option.size());
    }
    return {};
  }
  static std::int64_t Time(const std::string& text) {
    const auto time = base::ParseRfc3339(text + "Z");
    return time ? std::chrono::floor<std::chrono::seconds>(*time).time_since_epoch().count() : 0;
  }

  void PrintSlot(std::uint64_t slot, std::string_view wanted) {
    const Span job = SpanOf(slot, size_.run_s, now_);
    const Span last = Before(job);
    const std::uint64_t kBase = 1'000'000;
    PrintRow(slot, IdOf(slot, job, kBase), "RUNNING", job, wanted);
    if (now_ - last.end < 300) PrintRow(slot, IdOf(slot, last, kBase), "COMPLETED", last, wanted);
  }
  void PrintPlace(std::uint64_t place, std::string_view wanted) {
    const Span job = SpanOf(place + 7'000'000, size_.wait_s, now_);
    const Span last = Before(job);
    const std::uint64_t kBase = 10'000'000;
    PrintRow(place, IdOf(place, job, kBase), "PENDING", job, wanted);
    if (now_ - last.end < 300) PrintRow(place, IdOf(place, last, kBase), "CANCELLED", last, wanted);
  }

  void Cell(std::string_view text) {
    out_ += text;
    out_ += separator_;
  }
  template <typename... Args>
  void Cell(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += separator_;
  }

  // In QueueField's order.
  void PrintRow(std::uint64_t slot, std::uint64_t id, std::string_view state, const Span& job,
                std::string_view wanted) {
    if (!wanted.empty() && !("," + std::string(wanted) + ",").contains(fmt::format(",{},", id)))
      return;
    const bool waits = state == "PENDING" || state == "CANCELLED";
    Cell("{}", id);
    Cell("{}", id);
    Cell(state);
    Cell("{}", job.begin - 30);
    Cell("{}", job.begin - 30);
    Cell("1-00:00:00");
    Cell("{}", 20'000 + slot % 800);
    Cell("user{:04}", slot % 800);
    Cell("account{:03}", slot % 120);
    Cell("p{}", slot % 8);
    Cell("normal");
    Cell("1");
    Cell("32");
    Cell("4");
    Cell("8");
    Cell("4000M");
    Cell("cpu=32,mem=125G,node=1,billing=32,gres/gpu=1,gres/gpu:a100=1");
    Cell("N/A");
    Cell("gres:gpu:a100:1");
    Cell("N/A");
    if (waits) {
      Cell("");
      Cell("n/a");
    } else {
      Cell("n{:05}", slot % size_.nodes);
      Cell("n{:05}", slot % size_.nodes);
    }
    Cell("1");
    Cell("0");
    Cell("0");
    Cell("0");
    Cell("(null)");
    Cell("(null)");
    Cell("(null)");
    Cell("(null)");
    Cell("train-model-{}-of-a-sweep", id % 1000);
    Cell("(null)");
    Cell("/home/groups/lab{:03}/user{:04}/projects/run-{}", slot % 120, slot % 800, id % 1000);
    Cell("/home/groups/lab{:03}/user{:04}/projects/train.sh", slot % 120, slot % 800);
    Cell("/home/groups/lab{:03}/user{:04}/logs/slurm-{}.out", slot % 120, slot % 800, id);
    Cell("/home/groups/lab{:03}/user{:04}/logs/slurm-{}.out", slot % 120, slot % 800, id);
    Cell("");
    Cell(state == "PENDING" ? (slot % 3 == 0 ? "QOSMaxGRESPerUser" : "Priority") : "None");
    if (state == "PENDING") {
      Cell("{}",
           100'000 + (now_ / size_.priority_period_s + static_cast<std::int64_t>(slot)) % 50'000);
    } else {
      Cell("{}", 100'000 + slot % 50'000);
    }
    if (waits) {
      Cell("N/A");
    } else {
      Cell("{}", job.begin);
    }
    if (state == "PENDING") {
      Cell("N/A");
    } else {
      Cell("{}", state == "RUNNING" ? job.begin + 86'400 : job.end);
    }
    out_ += '\n';
    if (out_.size() > (1U << 20)) Flush();
  }

  void PrintRecord(const schedulers::slurm::SacctFormat& format, std::uint64_t slot,
                   const Span& job) {
    using enum schedulers::slurm::SacctField;
    const std::uint64_t id = IdOf(slot, job, 1'000'000);
    for (const std::string_view step : {"", ".batch", ".extern"}) {
      for (const schedulers::slurm::SacctField field : format.columns()) {
        if (field != format.columns().front()) out_ += separator_;
        const bool is_job = step.empty();
        if (field == kJobId || field == kJobIdRaw) out_ += fmt::format("{}{}", id, step);
        if (field == kDbIndex) out_ += fmt::format("{}", id * 2);
        if (field == kCluster) out_ += "bench";
        if (field == kState) out_ += "COMPLETED";
        if (field == kExitCode) out_ += "0:0";
        if (field == kSubmit) out_ += fmt::format("{}", is_job ? job.begin - 30 : job.begin);
        if (field == kStart) out_ += fmt::format("{}", job.begin);
        if (field == kEnd) out_ += fmt::format("{}", job.end);
        if (field == kElapsedRaw) out_ += fmt::format("{}", job.end - job.begin);
        if (field == kNodeList) out_ += fmt::format("n{:05}", slot % size_.nodes);
        if (field == kNodeCount) out_ += "1";
        if (field == kUser && is_job) out_ += fmt::format("user{:04}", slot % 800);
        if (field == kUid && is_job) out_ += fmt::format("{}", 20'000 + slot % 800);
        if (field == kJobName) out_ += is_job ? "train-model" : step.substr(1);
        if (field == kAllocTres) out_ += "billing=32,cpu=32,gres/gpu=1,mem=125G,node=1";
        if (field == kTotalCpu) out_ += "1-02:03:04.500";
        if (field == kTaskCount && !is_job) out_ += "1";
        if (field == kMaxRss && step == ".batch") out_ += "81234567K";
      }
      out_ += '\n';
    }
    if (out_.size() > (1U << 20)) Flush();
  }

  void Flush() {
    std::fwrite(out_.data(), 1, out_.size(), stdout);
    std::fflush(stdout);
    out_.clear();
  }

  const ClusterSize size_;
  const std::int64_t now_;
  std::string separator_;
  std::string out_;
};

// When this program runs under one of Slurm's names: its exit code.
inline std::optional<int> RunStandIn(int argc, char** argv) {
  const std::string_view path = argv[0];
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (name != "squeue" && name != "sacct" && name != "scontrol") return std::nullopt;
  const auto size = base::ReadFile(std::string(path.substr(0, path.rfind('/'))) + "/size");
  StandIn stand_in(ClusterSize::Decode(size.value_or("")), std::time(nullptr));
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (name == "squeue") return stand_in.Squeue(arguments);
  return name == "sacct" ? stand_in.Sacct(arguments) : stand_in.Scontrol(arguments);
}

}  // namespace expanse::bench
