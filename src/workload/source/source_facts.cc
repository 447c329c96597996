#include "workload/source/source_facts.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/text.h"
#include "workload/source/command_facts.h"
#include "workload/source/fact_collector.h"
#include "workload/source/python_facts.h"

namespace expanse::workload {
namespace {

using source::FactCollector;
using source::PythonTarget;

constexpr std::size_t kMaxRead = std::size_t{1} << 20;  // bytes of all files that are run
constexpr std::size_t kMaxImported = std::size_t{256}
                                     << 10;         // beyond which imported ones are left out
constexpr auto kMaxTime = std::chrono::seconds(1);  // for all of them together
constexpr std::size_t kMaxFiles = 64;
constexpr std::size_t kMaxCommands = 2000;

std::string_view Plain(std::string_view path) {
  while (path.starts_with("./")) path.remove_prefix(2);
  return path;
}

// "dir/train.py" is named by "train.py", "./dir/train.py" and "/home/x/dir/train.py".
bool SamePath(std::string_view path, std::string_view named) {
  path = Plain(path);
  named = Plain(named);
  if (path == named) return true;
  const auto ends_with = [](std::string_view longer, std::string_view shorter) {
    return !shorter.empty() && longer.size() > shorter.size() && longer.ends_with(shorter) &&
           longer[longer.size() - shorter.size() - 1] == '/';
  };
  return ends_with(path, named) || ends_with(named, path);
}

class FactReader {
 public:
  explicit FactReader(const std::vector<SourceText>& files) : files_(files) {}

  SourceFacts Read(const Part& part) {
    source::ReadImageFacts(part, &facts_);
    for (const auto& [name, value] : part.environment) {
      const source::Literal literal = source::LiteralOf(value);
      if (name.ends_with("_NUM_THREADS") && literal.kind == source::Literal::Kind::kNumber) {
        facts_.Offer(Number::kThreads, literal.number, {.text = name + "=" + value.substr(0, 20)},
                     source::Strength::kPassed);
      }
    }
    for (const Command& command : part.commands) {  // scripts that the script itself writes
      if (!command.output.empty() && !command.input.empty()) written_.push_back(&command);
    }
    std::size_t commands = 0;
    for (const Command& command : part.commands) {
      if (++commands > kMaxCommands) break;
      source::ReadCommandFacts(command, &facts_);
      if (const auto target = source::PythonTargetOf(command)) Run(*target);
      for (const Word& word : command.words) ReadNamedFile(word.text);
    }
    facts_.set_imported(true);
    for (const SourceText& file : files_) {
      if (file.path.ends_with(".py") && read_ + file.text.size() <= kMaxImported) {
        Python(file.path, file.text, {});
      }
    }
    return facts_.Take();
  }

 private:
  void Run(const PythonTarget& target) {
    if (!target.code.empty()) {
      Python("", target.code, target.arguments);
      return;
    }
    std::string wanted = target.script;
    if (!target.module.empty()) {
      wanted = target.module;
      std::ranges::replace(wanted, '.', '/');
      wanted += ".py";
    }
    if (wanted.empty()) return;
    for (const Command* command : written_) {
      if (!SamePath(command->output, wanted)) continue;
      Python(command->output, command->input, target.arguments);
      return;
    }
    const SourceText* file = Find(wanted);
    if (file == nullptr && !target.module.empty()) {
      wanted.insert(wanted.size() - 3, "/__main__");
      file = Find(wanted);
    }
    if (file != nullptr) Python(file->path, file->text, target.arguments);
  }

  const SourceText* Find(std::string_view path) const {
    const auto found = std::ranges::find_if(
        files_, [&](const SourceText& file) { return SamePath(file.path, path); });
    return found == files_.end() ? nullptr : &*found;
  }

  // Notebooks and configurations among the words of a command.
  void ReadNamedFile(std::string_view word) {
    const std::size_t equals = word.find('=');
    if (word.starts_with('-') && equals != std::string_view::npos) word.remove_prefix(equals + 1);
    const bool notebook = word.ends_with(".ipynb");
    const bool settings =
        word.ends_with(".json") || word.ends_with(".yaml") || word.ends_with(".yml");
    if (!notebook && !settings) return;
    const SourceText* file = Find(word);
    if (file == nullptr || !seen_.insert(file->path).second) return;
    if (notebook) {
      const auto python = source::PythonOfNotebook(file->text);
      if (python && Spend(python->size())) ReadPython(file->path, *python, {});
    } else if (Spend(file->text.size())) {
      Settings(*file);
    }
  }

  // "key: value" and "\"key\": value" of YAML and JSON, one a line. What needs more than a line is
  // left out: these are hints, not the configuration.
  void Settings(const SourceText& file) {
    std::uint32_t number = 0;
    for (const std::string_view line : base::Split(file.text, '\n')) {
      ++number;
      const std::size_t colon = line.find(':');
      if (colon == std::string_view::npos || line.size() > 300) continue;
      const auto unquoted = [](std::string_view text) {
        text = base::Trim(text);
        while (text.ends_with(',') || text.ends_with('"') || text.ends_with('\''))
          text.remove_suffix(1);
        while (text.starts_with('"') || text.starts_with('\'') || text.starts_with("- "))
          text.remove_prefix(1);
        return base::Trim(text);
      };
      const std::string_view name = unquoted(line.substr(0, colon));
      const std::string_view value = unquoted(line.substr(colon + 1));
      if (name.empty() || value.empty() || name.size() > 60) continue;
      facts_.OfferNamed(name, source::LiteralOf(value),
                        {.file = file.path, .line = number, .text = std::string(base::Trim(line))},
                        source::Strength::kPassed);
    }
  }

  bool Spend(std::size_t bytes) {
    if (read_files_ >= kMaxFiles || bytes > kMaxRead - read_) return false;
    ++read_files_;
    read_ += bytes;
    return true;
  }

  void Python(std::string_view path, std::string_view text, const std::vector<Word>& arguments) {
    if (!path.empty() && !seen_.insert(std::string(path)).second) return;
    if (Spend(text.size())) ReadPython(path, text, arguments);
  }

  void ReadPython(std::string_view path, std::string_view text,
                  const std::vector<Word>& arguments) {
    // Of one too large or too slow to parse, what its command says is all there is.
    const auto left = std::chrono::duration_cast<std::chrono::microseconds>(
        deadline_ - std::chrono::steady_clock::now());
    (void)source::ReadPythonFacts(path, text, arguments, left, &facts_);
  }

  const std::vector<SourceText>& files_;
  FactCollector facts_;
  std::vector<const Command*> written_;
  std::set<std::string, std::less<>> seen_;
  std::size_t read_ = 0;
  const std::chrono::steady_clock::time_point deadline_ =
      std::chrono::steady_clock::now() + kMaxTime;
  std::size_t read_files_ = 0;
};

}  // namespace

std::string_view Name(Number number) {
  switch (number) {
    case Number::kBatchSize:
      return "batch size";
    case Number::kAccumulation:
      return "gradient accumulation";
    case Number::kSequenceLength:
      return "sequence length";
    case Number::kEpochs:
      return "epochs";
    case Number::kSteps:
      return "steps";
    case Number::kLoaderWorkers:
      return "data loader workers";
    case Number::kDevices:
      return "devices";
    case Number::kNodes:
      return "nodes";
    case Number::kTensorParallel:
      return "tensor parallel size";
    case Number::kPipelineParallel:
      return "pipeline parallel size";
    case Number::kProcesses:
      return "processes";
    case Number::kThreads:
      return "threads";
    case Number::kRanks:
      return "ranks";
    case Number::kLoraRank:
      return "LoRA rank";
    case Number::kMaxSequences:
      return "concurrent sequences";
    case Number::kMemoryUtilization:
      return "share of GPU memory";
    case Number::kHeapBytes:
      return "Java heap";
    case Number::kLiteralParameters:
      return "parameters of literal layers";
  }
  return "";
}

std::string_view Name(Choice choice) {
  switch (choice) {
    case Choice::kWeightType:
      return "type of weights";
    case Choice::kMixedPrecision:
      return "mixed precision";
    case Choice::kOptimizer:
      return "optimizer";
    case Choice::kSharding:
      return "sharding";
    case Choice::kServer:
      return "server";
  }
  return "";
}

std::string_view Name(Flag flag) {
  switch (flag) {
    case Flag::kTrains:
      return "training";
    case Flag::kInfers:
      return "inference";
    case Flag::kUsesGpu:
      return "GPU";
    case Flag::kLora:
      return "LoRA";
    case Flag::kCheckpointing:
      return "activation checkpointing";
    case Flag::kOffloads:
      return "offloading";
    case Flag::kDataParallel:
      return "data parallel";
    case Flag::kSpreads:
      return "spread over devices";
    case Flag::kMomentum:
      return "momentum";
  }
  return "";
}

bool SourceFacts::empty() const {
  return frameworks.empty() && models.empty() && numbers.empty() && choices.empty() &&
         flags.empty() && data_files.empty() && applications.empty();
}

bool SourceFacts::Uses(std::string_view framework) const {
  return std::ranges::find(frameworks, framework, &Fact<std::string>::value) != frameworks.end();
}

bool SourceFacts::Is(Flag flag) const { return flags.contains(flag); }

std::optional<double> SourceFacts::Get(Number number) const {
  const auto found = numbers.find(number);
  if (found == numbers.end()) return std::nullopt;
  return found->second.value;
}

std::string SourceFacts::Get(Choice choice) const {
  const auto found = choices.find(choice);
  return found == choices.end() ? std::string() : found->second.value;
}

SourceFacts ReadSourceFacts(const Part& part, const std::vector<SourceText>& files) {
  return FactReader(files).Read(part);
}

}  // namespace expanse::workload
