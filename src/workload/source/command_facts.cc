#include "workload/source/command_facts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "base/text.h"
#include "workload/source/applications.h"
#include "workload/source/launchers.h"

namespace expanse::workload::source {
namespace {

std::string_view TextAt(const std::vector<Word>& words, std::size_t at) {
  return at < words.size() ? std::string_view(words[at].text) : std::string_view();
}

void OfferOptions(const Options& options, const Evidence& evidence, FactCollector* facts) {
  for (const auto& [name, value] : options) {
    if (value.kind == Literal::Kind::kSymbol && value.text.empty()) {
      facts->OfferUnknown(name, evidence, "a variable");
    } else {
      facts->OfferNamed(name, value, evidence, Strength::kCommand);
    }
  }
}

// The server that a command starts; empty for other commands.
std::string_view ServerOf(const std::vector<Word>& words) {
  const std::string_view program = BaseName(TextAt(words, 0));
  if (program == "vllm" && TextAt(words, 1) == "serve") return "vllm";
  if (program == "text-generation-launcher") return "tgi";
  if (program == "llama-server" || program == "llama-cli") return "llama.cpp";
  if (program == "sglang" && TextAt(words, 1) == "serve") return "sglang";
  if (!IsPython(program)) return {};
  for (std::size_t i = 1; i + 1 < words.size() && i < 8; ++i) {
    if (words[i].text != "-m") continue;
    const std::string_view module = words[i + 1].text;
    if (module.starts_with("vllm.entrypoints")) return "vllm";
    if (module == "sglang.launch_server") return "sglang";
    return {};
  }
  return {};
}

void ReadServer(std::string_view server, const std::vector<Word>& words, const Evidence& evidence,
                FactCollector* facts) {
  facts->Offer(Choice::kServer, server, evidence, Strength::kCommand);
  facts->Offer(Flag::kInfers, evidence);
  facts->Offer(Flag::kUsesGpu, evidence);
  if (server == "vllm" && TextAt(words, 1) == "serve" && !TextAt(words, 2).starts_with('-')) {
    facts->AddModel(TextAt(words, 2), evidence);
  }
  using Alias = std::pair<std::string_view, Number>;
  constexpr auto kAliases =
      std::to_array<Alias>({{"tp", Number::kTensorParallel},
                            {"num_shard", Number::kTensorParallel},
                            {"pp", Number::kPipelineParallel},
                            {"max_total_tokens", Number::kSequenceLength},
                            {"c", Number::kSequenceLength},
                            {"max_running_requests", Number::kMaxSequences},
                            {"max_concurrent_requests", Number::kMaxSequences}});
  const Options options = OptionsOf(words);
  for (const auto& [name, number] : kAliases) {
    const auto found = options.find(name);
    if (found != options.end() && found->second.kind == Literal::Kind::kNumber) {
      facts->Offer(number, found->second.number, evidence, Strength::kCommand);
    }
  }
  if (const auto model = options.find("m"); model != options.end()) {
    facts->AddModel(model->second.text, evidence);
  }
  OfferOptions(options, evidence, facts);
}

std::vector<Word> WordsOf(std::string_view text) {
  std::vector<Word> words;
  for (const std::string_view word : base::SplitSpaces(text))
    words.push_back({.text = std::string(word)});
  return words;
}

void ReadLauncher(std::string_view launcher, const Evidence& evidence, FactCollector* facts) {
  const std::vector<Word> words = WordsOf(launcher);
  const std::string_view program = BaseName(TextAt(words, 0));
  const Options options = OptionsOf(words);
  const auto offer = [&](std::initializer_list<std::string_view> names, Number number) {
    for (const std::string_view name : names) {
      const auto found = options.find(name);
      if (found == options.end() || found->second.kind != Literal::Kind::kNumber) continue;
      facts->Offer(number, found->second.number, evidence, Strength::kCommand);
    }
  };
  const bool torch = program == "torchrun" || launcher.contains("torch.distributed");
  if (torch) {
    offer({"nproc_per_node", "nproc"}, Number::kDevices);
    offer({"nnodes"}, Number::kNodes);
    facts->Offer(Flag::kUsesGpu, evidence);
  } else if (program == "deepspeed" || launcher.contains("-m deepspeed")) {
    offer({"num_gpus"}, Number::kDevices);
    offer({"num_nodes"}, Number::kNodes);
    facts->AddFramework("deepspeed", evidence);
    facts->Offer(Flag::kUsesGpu, evidence);
  } else if (program == "accelerate" || launcher.contains("accelerate.commands")) {
    offer({"num_machines"}, Number::kNodes);
    // Of all machines together.
    const auto all = options.find("num_processes");
    const auto machines = options.find("num_machines");
    const double nodes = machines == options.end() ? 1 : std::max(1.0, machines->second.number);
    if (all != options.end() && all->second.kind == Literal::Kind::kNumber) {
      facts->Offer(Number::kDevices, std::ceil(all->second.number / nodes), evidence,
                   Strength::kCommand);
    }
    facts->AddFramework("accelerate", evidence);
    facts->Offer(Flag::kUsesGpu, evidence);
    for (const std::string_view name :
         {"mixed_precision", "zero_stage", "use_fsdp", "offload_optimizer_device"}) {
      const auto found = options.find(name);
      if (found != options.end())
        facts->OfferNamed(name, found->second, evidence, Strength::kCommand);
    }
  } else if (program == "mpirun" || program == "mpiexec" || program == "srun" ||
             program == "orterun" || program == "mpiexec.hydra" || program == "ibrun" ||
             program == "aprun" || program == "horovodrun") {
    offer({"np", "n", "ntasks"}, Number::kRanks);
  }
}

// "16g" of -Xmx16g, in bytes.
std::optional<double> HeapBytes(std::string_view size) {
  double unit = 1;
  switch (size.empty() ? '\0' : size.back() | 0x20) {
    case 'k':
      unit = 1024;
      break;
    case 'm':
      unit = 1024.0 * 1024;
      break;
    case 'g':
      unit = 1024.0 * 1024 * 1024;
      break;
    default:
      break;
  }
  if (unit > 1) size.remove_suffix(1);
  const auto number = base::ParseUnsignedDigits(size);
  if (!number) return std::nullopt;
  return static_cast<double>(*number) * unit;
}

// java -Xmx16g, and gatk --java-options "-Xmx16g -Xms4g".
void ReadHeap(const Command& command, FactCollector* facts) {
  for (const Word& word : command.words) {
    const std::size_t at = word.text.find("-Xmx");
    if (at == std::string::npos || !word.resolved) continue;
    std::string_view size = std::string_view(word.text).substr(at + 4);
    size = size.substr(0, size.find(' '));
    if (const auto bytes = HeapBytes(size)) {
      facts->Offer(Number::kHeapBytes, *bytes, EvidenceOf(command), Strength::kCommand);
    }
  }
}

// A learning rate or a number of epochs among the arguments.
bool SaysItTrains(const Options& options) {
  constexpr std::array<std::string_view, 8> kOptions = {
      "lr",         "learning_rate",   "epochs",    "num_epochs", "num_train_epochs",
      "train_data", "max_train_steps", "train_file"};
  return std::ranges::any_of(kOptions,
                             [&](std::string_view name) { return options.contains(name); });
}

void ReadApplication(const Command& command, FactCollector* facts) {
  const KnownApplication* known = FindApplication(command.words);
  if (known == nullptr) return;
  Application application{.name = std::string(known->name),
                          .program = std::string(BaseName(command.words[0].text)),
                          .arguments = {},
                          .evidence = EvidenceOf(command)};
  for (std::size_t i = 1; i < command.words.size() && i < 200; ++i) {
    application.arguments.push_back(command.words[i].text);
  }
  for (std::size_t i = 1; i < command.words.size(); ++i) {
    const std::string& word = command.words[i].text;
    const std::size_t equals = word.find('=');
    const bool option =
        std::ranges::find(known->thread_options, std::string_view(word).substr(0, equals)) !=
        known->thread_options.end();
    if (word.empty() || !option) continue;
    const std::string_view value = equals != std::string::npos
                                       ? std::string_view(word).substr(equals + 1)
                                       : TextAt(command.words, i + 1);
    const auto threads = base::ParseUnsignedDigits(value);
    if (threads) {
      facts->Offer(Number::kThreads, static_cast<double>(*threads), application.evidence,
                   Strength::kCommand);
    }
  }
  facts->AddApplication(std::move(application));
}

}  // namespace

Evidence EvidenceOf(const Command& command) {
  std::string text;
  for (const Word& word : command.words) {
    if (text.size() > 120) break;
    if (!text.empty()) text += ' ';
    text += word.text.substr(0, 120);
  }
  return {.file = {}, .line = command.place.line, .text = base::ToValidUtf8(text.substr(0, 120))};
}

// A word that follows an option is its value unless it is another option; negative numbers are
// values.
Options OptionsOf(const std::vector<Word>& words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i].text;
    const std::size_t equals = word.find('=');  // also Hydra's key=value without dashes
    const bool option = word.starts_with('-') && word.size() > 1 && !base::IsDigit(word[1]);
    if (!option && equals == std::string::npos) continue;
    std::string name = SettingName(std::string_view(word).substr(0, equals));
    if (name.empty()) continue;
    if (equals != std::string::npos) {
      if (words[i].resolved)
        options.insert_or_assign(std::move(name), LiteralOf(word.substr(equals + 1)));
      continue;
    }
    const std::string_view next = TextAt(words, i + 1);
    const bool has_value = i + 1 < words.size() &&
                           (!next.starts_with('-') || (next.size() > 1 && base::IsDigit(next[1])));
    Literal value = LiteralOf("true");
    if (has_value && words[i + 1].resolved) value = LiteralOf(next);
    if (has_value && !words[i + 1].resolved) value = {.kind = Literal::Kind::kSymbol, .text = {}};
    options.insert_or_assign(std::move(name), std::move(value));
  }
  return options;
}

std::optional<PythonTarget> PythonTargetOf(const Command& command) {
  const auto& words = command.words;
  PythonTarget target;
  if (words.empty()) return std::nullopt;
  const auto rest = [&](std::size_t begin) {
    const auto at = static_cast<std::ptrdiff_t>(std::min(begin, words.size()));
    target.arguments.assign(words.begin() + at, words.end());
  };
  if (words[0].text.ends_with(".py")) {
    target.script = words[0].text;
    rest(1);
    return target;
  }
  if (!IsPython(words[0].text)) return std::nullopt;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i].text;
    if (word == "-m") {
      target.module = TextAt(words, i + 1);
      rest(i + 2);
      return target;
    }
    if (word == "-c") {
      target.code = TextAt(words, i + 1);
      rest(i + 2);
      return target;
    }
    if (word == "-W" || word == "-X") {
      ++i;
    } else if (word == "-") {
      rest(i + 1);
      break;
    } else if (!word.starts_with('-')) {
      target.script = word;
      rest(i + 1);
      return target;
    }
  }
  target.code = command.input;
  return target;
}

void ReadCommandFacts(const Command& command, FactCollector* facts) {
  if (command.words.empty()) return;
  const Evidence evidence = EvidenceOf(command);
  for (const std::string& launcher : command.launcher) ReadLauncher(launcher, evidence, facts);
  if (const std::string_view server = ServerOf(command.words); !server.empty()) {
    ReadServer(server, command.words, evidence, facts);
    return;
  }
  if (const auto target = PythonTargetOf(command)) {
    const Options options = OptionsOf(target->arguments);
    OfferOptions(options, evidence, facts);
    if (SaysItTrains(options)) facts->Offer(Flag::kTrains, evidence);
  }
  ReadHeap(command, facts);
  ReadApplication(command, facts);
}

void ReadImageFacts(const Part& part, FactCollector* facts) {
  if (part.image.empty() || part.commands.size() > 1) return;
  std::string_view server;
  if (part.image.contains("vllm")) server = "vllm";
  if (part.image.contains("text-generation-inference")) server = "tgi";
  if (part.image.contains("sglang")) server = "sglang";
  if (server.empty()) return;
  static const std::vector<Word> kNone;
  const std::vector<Word>& words = part.commands.empty() ? kNone : part.commands[0].words;
  if (!words.empty() && !words[0].text.starts_with('-')) return;  // a command of its own
  ReadServer(server, words, {.file = {}, .line = 0, .text = "image " + part.image.substr(0, 100)},
             facts);
  for (const auto& [name, value] : part.environment) {
    if (name == "MODEL_ID" || name == "MODEL" || name == "MODEL_NAME") {
      facts->AddModel(value, {.file = {}, .line = 0, .text = name + "=" + value.substr(0, 100)});
    }
  }
}

}  // namespace expanse::workload::source
