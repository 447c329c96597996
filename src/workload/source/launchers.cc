#include "workload/source/launchers.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"

namespace expanse::workload::source {
namespace {

// How one launcher's command line is read. Options are without their dashes; what is not listed
// takes no value of its own ("--name=value" never needs a list).
struct Spec {
  std::string_view name;           // "srun"; "conda run": with its subcommand
  std::string_view value_options;  // words that follow these belong to the launcher
  int operands = 0;            // words behind the options that belong to it: an image, a duration
  bool starts_python = false;  // the program is a Python script, or -m MODULE
  std::string_view pair_options = {};  // take two words
};

constexpr std::string_view kSrun =
    "A B c C d D e G i J m M n N o p q r S t T w W x account acctg-freq bb bbf begin chdir "
    "cluster-constraint clusters comment constraint container container-image container-mounts "
    "container-name container-workdir core-spec cores-per-socket cpu-bind cpu_bind cpu-freq "
    "cpus-per-gpu cpus-per-task deadline delay-boot dependency distribution epilog error exclude "
    "export extra-node-info gid gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task "
    "gres gres-flags het-group hint input job-name jobid licenses mail-type mail-user mem mem-bind "
    "mem-per-cpu mem-per-gpu mincpus mpi network nodefile nodelist nodes ntasks ntasks-per-core "
    "ntasks-per-gpu ntasks-per-node ntasks-per-socket open-mode output partition power priority "
    "profile prolog propagate qos relative reservation sockets-per-node task-epilog task-prolog "
    "thread-spec threads threads-per-core time time-min tmp tres-bind tres-per-task uid wait wckey";
constexpr std::string_view kMpi =
    "n np c N npernode npersocket ppn perhost host H hosts hostfile machinefile f x mca-file "
    "bind-to map-by rank-by wdir wd prefix path iface bootstrap launcher rmk genvlist envlist "
    "output-filename tune am display timeout cpu-set cpu-list hostlist rf rankfile configfile";
constexpr std::string_view kTorch =
    "nnodes nproc_per_node nproc-per-node nproc rdzv_backend rdzv-backend rdzv_endpoint "
    "rdzv-endpoint rdzv_id rdzv-id rdzv_conf rdzv-conf max_restarts max-restarts monitor_interval "
    "monitor-interval start_method start-method role log_dir log-dir r redirects t tee node_rank "
    "node-rank master_addr master-addr master_port master-port local_addr local-addr "
    "local-ranks-filter logs-specs numa-binding";
constexpr std::string_view kDeepspeed =
    "H hostfile i include e exclude num_nodes num_gpus min_elastic_nodes max_elastic_nodes "
    "master_port master_addr launcher launcher_args node_rank ssh_port save_pid autotuning "
    "bind_core_list venv_script";
constexpr std::string_view kAccelerate =
    "config_file num_processes num_machines machine_rank main_process_ip main_process_port "
    "mixed_precision dynamo_backend dynamo_mode num_cpu_threads_per_process gpu_ids rdzv_backend "
    "rdzv_conf max_restarts monitor_interval tpu_name role log_dir tee fsdp_offload_params "
    "fsdp_min_num_params fsdp_sharding_strategy fsdp_auto_wrap_policy fsdp_version "
    "fsdp_transformer_layer_cls_to_wrap fsdp_backward_prefetch fsdp_state_dict_type "
    "fsdp_use_orig_params fsdp_cpu_ram_efficient_loading fsdp_sync_module_states "
    "fsdp_activation_checkpointing deepspeed_config_file zero_stage offload_optimizer_device "
    "offload_param_device gradient_accumulation_steps gradient_clipping zero3_init_flag "
    "deepspeed_hostfile deepspeed_multinode_launcher same_network";
constexpr std::string_view kSingularity =
    "B bind mount H home W workdir pwd cwd env env-file overlay o scratch S app network "
    "network-args security add-caps drop-caps dns hostname fusemount pem-path cpus memory";
constexpr std::string_view kDocker =
    "v volume e env env-file w workdir name gpus shm-size p publish network net user u entrypoint "
    "memory m cpus ipc ulimit mount runtime h hostname l label restart device cpuset-cpus pid "
    "userns security-opt cap-add tmpfs add-host platform";

// Longer names first where one begins with another.
constexpr auto kSpecs = std::to_array<Spec>({
    {"srun", kSrun},
    {"mpirun", kMpi, 0, false, "mca gmca genv env omca pmca"},
    {"mpiexec", kMpi, 0, false, "mca gmca genv env omca pmca"},
    {"mpiexec.hydra", kMpi, 0, false, "genv env"},
    {"mpirun_rsh", kMpi},
    {"orterun", kMpi, 0, false, "mca gmca"},
    {"prterun", kMpi, 0, false, "mca prtemca pmixmca"},
    {"aprun", "n N d S m L cc j e a q D ss r B b"},
    {"ibrun", "n o"},
    {"jsrun",
     "n nrs a tasks_per_rs c cpu_per_rs g gpu_per_rs r rs_per_host l b bind d p np E env h e o"},
    {"flux run", "n N c g t ntasks nodes cores-per-task gpus-per-task o setopt env output error"},
    {"horovodrun",
     "np H hosts hostfile p ssh-port ssh-identity-file timeline-filename min-np max-np"},
    {"torchrun", kTorch, 0, true},
    {"deepspeed", kDeepspeed, 0, true},
    {"accelerate launch", kAccelerate, 0, true},
    {"composer", "n nproc world_size base_rank node_rank master_addr master_port", 0, true},
    {"coverage run", "source omit include rcfile", 0, true},
    {"kernprof", "o outfile s setup", 0, true},
    {"singularity exec", kSingularity, 1},
    {"singularity run", kSingularity, 1},
    {"apptainer exec", kSingularity, 1},
    {"apptainer run", kSingularity, 1},
    {"shifter", "i image V volume v e env m module entrypoint workdir"},
    {"podman-hpc run", kDocker, 1},
    {"ch-run", "b bind c cd set-env", 1},
    {"docker run", kDocker, 1},
    {"docker exec", kDocker, 1},
    {"podman run", kDocker, 1},
    {"podman exec", kDocker, 1},
    {"conda run", "n name p prefix cwd"},
    {"mamba run", "n name p prefix cwd"},
    {"micromamba run", "n name p prefix cwd r root-prefix"},
    {"uv run", "p python with directory project extra group env-file index with-requirements"},
    {"poetry run", ""},
    {"pixi run", "e environment manifest-path"},
    {"pipenv run", ""},
    {"rye run", ""},
    {"ray job submit",
     "address working-dir runtime-env runtime-env-json entrypoint-num-cpus "
     "entrypoint-num-gpus submission-id entrypoint-memory"},
    {"nsys profile",
     "o output t trace s sample b backtrace w show-output c capture-range d duration "
     "y delay gpu-metrics-device gpu-metrics-devices stats export cpuctxsw force-overwrite f"},
    {"ncu",
     "o export k kernel-name c launch-count s launch-skip set section metrics target-processes"},
    {"py-spy record", "o output r rate d duration f format"},
    {"perf stat", "e event o output r"},
    {"perf record", "e event o output F c g"},
    {"time", "f format o output"},
    {"nohup", ""},
    {"setsid", ""},
    {"exec", "a"},
    {"command", ""},
    {"sudo", "u user g group"},
    {"nice", "n adjustment"},
    {"ionice", "c class n classdata"},
    {"stdbuf", "i o e input output error"},
    {"timeout", "s signal k kill-after", 1},
    {"env", "u unset C chdir S"},
    {"numactl", "C physcpubind N cpunodebind m membind i interleave p preferred w"},
    {"taskset", "p", 1},
    {"hwloc-bind", "cpubind membind mempolicy", 1},
    {"xvfb-run", "n server-num s server-args e error-file"},
    {"catchsegv", ""},
    {"unbuffer", ""},
    {"strace", "o e p s"},
    {"valgrind", ""},
    {"heaptrack", "o output"},
    {"remora", ""},
    {"tini", ""},
    {"dumb-init", ""},
});

bool HasWord(std::string_view words, std::string_view word) {
  std::size_t at = 0;
  while (!word.empty() && (at = words.find(word, at)) != std::string_view::npos) {
    const std::size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) {
      return true;
    }
    at = end;
  }
  return false;
}

std::string_view TextAt(const std::vector<Word>& words, std::size_t at) {
  return at < words.size() ? std::string_view(words[at].text) : std::string_view();
}

// How many words the name of `spec` takes of the front of `words`; 0 where they are another's.
std::size_t NameWords(const Spec& spec, const std::vector<Word>& words) {
  const std::vector<std::string_view> names = base::Split(spec.name, ' ');
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string_view text = TextAt(words, i);
    if ((i == 0 ? BaseName(text) : text) != names[i]) return 0;
  }
  return names.size();
}

// How many words an option takes, itself included.
std::size_t OptionWords(const Spec& spec, std::string_view option) {
  const std::string_view name =
      option.substr(std::min(option.find_first_not_of('-'), option.size()));
  if (name.contains('=')) return 1;
  if (HasWord(spec.pair_options, name)) return 3;
  // --num-processes and --num_processes are the same to those that are written in Python.
  std::string underscored(name);
  std::ranges::replace(underscored, '-', '_');
  return HasWord(spec.value_options, name) || HasWord(spec.value_options, underscored) ? 2 : 1;
}

bool IsAssignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  return equals != 0 && equals != std::string_view::npos &&
         std::ranges::all_of(word.substr(0, equals), [](char c) {
           return base::IsDigit(c) || c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
         });
}

// Where the program begins behind a launcher whose name takes `at` words; words.size() where there
// is none.
std::size_t ProgramBegin(const Spec& spec, const std::vector<Word>& words, std::size_t at) {
  int operands = spec.operands;
  while (at < words.size()) {
    const std::string_view word = TextAt(words, at);
    if (word == "--") {
      ++at;
      break;
    }
    if (spec.starts_python && (word == "-m" || word == "--module")) break;
    if (word.size() > 1 && word.starts_with('-')) {
      at += OptionWords(spec, word);
    } else if (spec.name == "env" && IsAssignment(word)) {
      ++at;
    } else if (operands > 0) {
      --operands;
      ++at;
    } else {
      break;
    }
  }
  return std::min(at + static_cast<std::size_t>(std::max(operands, 0)), words.size());
}

std::string Join(const std::vector<Word>& words, std::size_t count) {
  std::string joined;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) joined += ' ';
    joined += words[i].text;
  }
  return joined;
}

void TakeOff(Command* command, std::size_t count, bool python) {
  command->launcher.push_back(Join(command->words, count));
  command->words.erase(command->words.begin(),
                       command->words.begin() + static_cast<std::ptrdiff_t>(count));
  if (python && !IsPython(command->words.front().text)) {
    command->words.insert(command->words.begin(), Word{.text = "python"});
  }
}

// python -m MODULE, where the module starts another script.
bool StripPythonModule(Command* command) {
  const auto& words = command->words;
  if (!IsPython(TextAt(words, 0))) return false;
  std::size_t at = 1;
  while (at < words.size() && TextAt(words, at) != "-m" && TextAt(words, at).starts_with('-')) ++at;
  if (TextAt(words, at) != "-m" || at + 1 >= words.size()) return false;
  const std::string_view module = TextAt(words, at + 1);
  Spec spec{.name = module, .value_options = {}, .operands = 0, .starts_python = true};
  if (module == "torch.distributed.launch" || module == "torch.distributed.run") {
    spec.value_options = kTorch;
  } else if (module == "accelerate.commands.launch") {
    spec.value_options = kAccelerate;
  } else if (module == "deepspeed.launcher.runner" || module == "deepspeed") {
    spec.value_options = kDeepspeed;
  } else if (module == "cProfile" || module == "memory_profiler" || module == "scalene") {
    spec.value_options = "o s";
  } else if (module != "pdb" && module != "trace" && module != "torch.utils.bottleneck") {
    return false;
  }
  const std::size_t begin = ProgramBegin(spec, words, at + 2);
  if (begin >= words.size()) return false;
  TakeOff(command, begin, /*python=*/true);
  return true;
}

bool StripOne(Command* command) {
  if (command->words.empty()) return false;
  if (StripPythonModule(command)) return true;
  for (const Spec& spec : kSpecs) {
    const std::size_t name = NameWords(spec, command->words);
    if (name == 0) continue;
    const std::size_t begin = ProgramBegin(spec, command->words, name);
    if (begin >= command->words.size()) return false;
    TakeOff(command, begin, spec.starts_python);
    return true;
  }
  return false;
}

}  // namespace

std::string_view BaseName(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool IsPython(std::string_view word) {
  std::string_view name = BaseName(word);
  if (name.starts_with("python")) {
    name.remove_prefix(6);
  } else if (name.starts_with("pypy")) {
    name.remove_prefix(4);
  } else {
    return false;
  }
  return std::ranges::all_of(name, [](char c) { return base::IsDigit(c) || c == '.'; });
}

bool IsShell(std::string_view word) {
  constexpr std::array<std::string_view, 5> kShells = {"sh", "bash", "zsh", "dash", "ksh"};
  return std::ranges::find(kShells, BaseName(word)) != kShells.end();
}

std::size_t ShellScriptWord(const Command& command) {
  if (command.words.empty() || !IsShell(command.words[0].text)) return 0;
  for (std::size_t i = 1; i < command.words.size(); ++i) {
    const std::string_view word = command.words[i].text;
    if (!word.starts_with('-') || word.size() < 2) return 0;
    // -c alone or among others: -lc, -exc, -cl. The script is the first word that is no option.
    if (!word.starts_with("--") && word.contains('c')) {
      std::size_t script = i + 1;
      while (script < command.words.size() && command.words[script].text.starts_with('-') &&
             command.words[script].text.size() <= 4) {
        ++script;
      }
      return script < command.words.size() ? script : 0;
    }
    if (word == "-o" || word == "-O") ++i;
  }
  return 0;
}

void StripLaunchers(Command* command) {
  constexpr int kMaxLaunchers = 12;
  for (int i = 0; i < kMaxLaunchers && StripOne(command); ++i) {
  }
}

}  // namespace expanse::workload::source
