#include "daemon/daemon_settings.h"

#include <unistd.h>

#include <array>

#include "base/crypto.h"
#include "base/files.h"

namespace expanse::daemon {
namespace {

using base::SettingKind;

std::string HostName() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

}  // namespace

std::vector<base::SettingSpec> DaemonSettings() {
  return {
      {.name = "state_dir",
       .kind = SettingKind::kPath,
       .default_value = "",
       .help = "Where the outbox and health.json live. Default: /var/lib/expanse for root, "
               "~/.expanse/state for others."},
      {.name = "spool_dir",
       .kind = SettingKind::kPath,
       .default_value = "",
       .help = "Where `expanse run` leaves its records. Default: /var/lib/expanse/spool/host if it "
               "exists, else "
               "~/.expanse/spool/host."},
      {.name = "node",
       .kind = SettingKind::kString,
       .default_value = "",
       .help = "Name of this machine in series and health. Default: the host name."},
      {.name = "root",
       .kind = SettingKind::kPath,
       .default_value = "/",
       .help = "Root of the host's file system, where it is mounted elsewhere (containers)."},
      {.name = "prefix",
       .kind = SettingKind::kPath,
       .default_value = "",
       .help = "Directory that the nodes of a Slurm cluster share: bin/, lib/ and spool/ of "
               "Expanse are in it."},
      {.name = "run_dir",
       .kind = SettingKind::kPath,
       .default_value = "/run/expanse",
       .help = "Where the hooks of a Slurm node leave their events; in the node's own memory."},
      {.name = "slurm.cluster",
       .kind = SettingKind::kString,
       .default_value = "",
       .help = "Name of the Slurm cluster in the identities of its jobs. Default: ClusterName, as "
               "slurmctld says."},
      {.name = "slurm.bin_dir",
       .kind = SettingKind::kPath,
       .default_value = "",
       .help = "Where squeue, sacct and scontrol are. Default: PATH, then the usual directories."},
      {.name = "slurm.conf",
       .kind = SettingKind::kPath,
       .default_value = "",
       .help =
           "SLURM_CONF of the programs that are asked. Default: the daemon's own, else theirs."},
      {.name = "slurm.queue_interval",
       .kind = SettingKind::kDuration,
       .default_value = "30s",
       .help = "How often to list all jobs with squeue; longer by itself where that is slow.",
       .min = 1,
       .max = 3600},
      {.name = "slurm.accounting_interval",
       .kind = SettingKind::kDuration,
       .default_value = "1m",
       .help = "How often to read from sacct what ended.",
       .min = 1,
       .max = 3600},
      {.name = "slurm.nodes_interval",
       .kind = SettingKind::kDuration,
       .default_value = "2m",
       .help = "How often to look at the states of nodes.",
       .min = 5,
       .max = 3600},
      {.name = "slurm.partitions_interval",
       .kind = SettingKind::kDuration,
       .default_value = "10m",
       .help = "How often to look at the limits of partitions.",
       .min = 5,
       .max = 86'400},
      {.name = "slurm.command_deadline",
       .kind = SettingKind::kDuration,
       .default_value = "1m",
       .help = "How long squeue may take before it is ended.",
       .min = 1,
       .max = 600},
      {.name = "slurm.lookup_percent",
       .kind = SettingKind::kInt,
       .default_value = "1",
       .help = "Share of the time that may pass inside Slurm for us before single jobs are looked "
               "up no more when they start or end, and wait for the next listing.",
       .min = 0,
       .max = 100},
      {.name = "slurm.host_runs",
       .kind = SettingKind::kBool,
       .default_value = "false",
       .help = "On a Slurm controller, take runs of `expanse run` too."},
      {.name = "spool.owners",
       .kind = SettingKind::kList,
       .default_value = "",
       .help = "Users besides root and the daemon's own whose segments in the shared spool are "
               "taken, comma-separated: the one that samplers run as, or nobody where the file "
               "server maps root to it."},
      {.name = "spool.unknown_wait",
       .kind = SettingKind::kDuration,
       .default_value = "10m",
       .help = "How long what a sampler reports of a job waits until the scheduler knows the job.",
       .min = 1,
       .max = 86'400},
      {.name = "spool.host_max_bytes",
       .kind = SettingKind::kBytes,
       .default_value = "512MiB",
       .help = "Space in the shared spool for one sampler's segments. Beyond it samples are "
               "dropped, oldest first.",
       .min = double(1U << 20),
       .max = double(1ULL << 40)},
      {.name = "outbox.max_bytes",
       .kind = SettingKind::kBytes,
       .default_value = "1GiB",
       .help = "Disk space for evidence that waits for the data plane. Beyond it samples are "
               "dropped, oldest first.",
       .min = double(1U << 20),
       .max = double(1ULL << 44)},
      {.name = "observe.interval",
       .kind = SettingKind::kDuration,
       .default_value = "1s",
       .help = "How often to look for workloads that began or ended; a Slurm controller looks at "
               "least four times a second.",
       .min = 0.1,
       .max = 60},
      {.name = "sample.interval",
       .kind = SettingKind::kDuration,
       .default_value = "10s",
       .help = "How often to sample the host, GPUs and workloads.",
       .min = 0.2,
       .max = 3600},
      {.name = "sample.young_interval",
       .kind = SettingKind::kDuration,
       .default_value = "1s",
       .help = "How often to sample a workload that has just begun.",
       .min = 0.2,
       .max = 3600},
      {.name = "sample.young_for",
       .kind = SettingKind::kDuration,
       .default_value = "1m",
       .help = "How long a workload counts as just begun; 0s turns the faster samples off.",
       .min = 0,
       .max = 3600},
      {.name = "sample.flush_interval",
       .kind = SettingKind::kDuration,
       .default_value = "10s",
       .help = "How long samples may be gathered before they go to the outbox.",
       .min = 0.2,
       .max = 3600},
      {.name = "collect.disable",
       .kind = SettingKind::kList,
       .default_value = "",
       .help = "Sources not to sample, comma-separated: host, cgroup, process, gpu."},
      {.name = "collect.nvidia_smi",
       .kind = SettingKind::kPath,
       .default_value = "",
       .help = "The nvidia-smi to read GPUs with. Default: looked for in the usual directories."},
      {.name = "capture.logs",
       .kind = SettingKind::kBool,
       .default_value = "true",
       .help = "Take the end of what jobs write to their output files."},
      {.name = "capture.sources",
       .kind = SettingKind::kBool,
       .default_value = "true",
       .help = "Take the scripts of jobs and the files that these name."},
      {.name = "capture.exclude_accounts",
       .kind = SettingKind::kList,
       .default_value = "",
       .help = "Accounts of whose jobs neither output nor sources are taken, comma-separated."},
      {.name = "capture.exclude_users",
       .kind = SettingKind::kList,
       .default_value = "",
       .help = "Users of whose jobs neither output nor sources are taken, comma-separated."},
      {.name = "upload.batch_bytes",
       .kind = SettingKind::kBytes,
       .default_value = "1MiB",
       .help = "Size of one upload before compression.",
       .min = 1024,
       .max = double(16U << 20)},
      {.name = "upload.batch_records",
       .kind = SettingKind::kInt,
       .default_value = "2000",
       .help = "Records in one upload.",
       .min = 1,
       .max = 100'000},
      {.name = "upload.timeout",
       .kind = SettingKind::kDuration,
       .default_value = "30s",
       .help = "How long one upload may take.",
       .min = 1,
       .max = 600},
      {.name = "heartbeat.interval",
       .kind = SettingKind::kDuration,
       .default_value = "30s",
       .help = "How often to tell the planes that the daemon is alive, until they ask for another "
               "interval.",
       .min = 1,
       .max = 600},
      {.name = "drain_timeout",
       .kind = SettingKind::kDuration,
       .default_value = "10s",
       .help = "How long to go on uploading after SIGTERM.",
       .min = 0,
       .max = 300},
      {.name = "log.level",
       .kind = SettingKind::kString,
       .default_value = "info",
       .help = "debug, info, warn, error or off."},
      {.name = "log.format",
       .kind = SettingKind::kString,
       .default_value = "text",
       .help = "text or json."},
  };
}

std::string StateDirectory(const base::Settings& settings,
                           const base::Settings::Environment& environment, bool is_root) {
  if (const std::string& set = settings.GetString("state_dir"); !set.empty()) return set;
  if (is_root) return "/var/lib/expanse";
  const auto home = environment.find("HOME");
  return base::JoinPath(home == environment.end() ? "/" : home->second, ".expanse/state");
}

DaemonOptions OptionsFrom(const base::Settings& settings, std::string_view version,
                          const base::Settings::Environment& environment, bool is_root) {
  DaemonOptions options;
  options.state_dir = StateDirectory(settings, environment, is_root);
  options.version = version;
  options.node = settings.GetString("node").empty() ? HostName() : settings.GetString("node");
  options.outbox_max_bytes = settings.GetBytes("outbox.max_bytes").count;
  if (const std::string& prefix = settings.GetString("prefix"); !prefix.empty()) {
    options.spool.worker.reader.spool = base::JoinPath(prefix, "spool");
    options.spool.worker.make_spool = true;
  }
  options.spool.unknown_wait =
      std::chrono::duration_cast<std::chrono::seconds>(settings.GetDuration("spool.unknown_wait"));
  options.capture.observe_interval = settings.GetDuration("observe.interval");
  options.capture.sampler.interval = settings.GetDuration("sample.interval");
  options.capture.sampler.young_interval = settings.GetDuration("sample.young_interval");
  options.capture.sampler.young_for = settings.GetDuration("sample.young_for");
  options.capture.sampler.flush_interval = settings.GetDuration("sample.flush_interval");
  options.uploader.batch_bytes = settings.GetBytes("upload.batch_bytes").count;
  options.uploader.batch_records =
      static_cast<std::size_t>(settings.GetInt("upload.batch_records"));
  options.uploader.timeout = settings.GetDuration("upload.timeout");
  // Daemons that lost the same server at the same moment must not come back in step.
  options.uploader.seed = base::Crc32c(base::RandomBytes(16));
  options.heartbeat.interval = settings.GetDuration("heartbeat.interval");
  return options;
}

}  // namespace expanse::daemon
