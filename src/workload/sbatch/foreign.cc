#include "workload/sbatch/foreign.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/text.h"
#include "workload/sbatch/values.h"

namespace expanse::workload::sbatch {
namespace {

struct Spelling {
  std::string_view theirs;
  std::string_view ours;
};
constexpr std::array kPbsLetters = {
    Spelling{"N", "job-name"}, Spelling{"o", "output"}, Spelling{"e", "error"},
    Spelling{"J", "array"},    Spelling{"t", "array"},
};
constexpr std::array kPbsResources = {
    Spelling{"walltime", "time"},      Spelling{"mem", "mem"},       Spelling{"nodes", "nodes"},
    Spelling{"select", "nodes"},       Spelling{"ncpus", "mincpus"}, Spelling{"gpus", "gres"},
    Spelling{"naccelerators", "gres"},
};
constexpr std::array kLsfLetters = {
    Spelling{"n", "ntasks"},    Spelling{"W", "time"},  Spelling{"M", "mem-per-cpu"},
    Spelling{"o", "output"},    Spelling{"e", "error"}, Spelling{"J", "job-name"},
    Spelling{"x", "exclusive"},
};
// Letters of each scheduler that take no value.
constexpr std::string_view kPbsFlags = "hIVXz";
constexpr std::string_view kLsfFlags = "x";

constexpr std::size_t kMaxResources = 100;  // of one -l

template <typename Table>
std::string_view Find(const Table& table, std::string_view theirs) {
  for (const Spelling& spelling : table)
    if (spelling.theirs == theirs) return spelling.ours;
  return {};
}

// One option of a line: "-l walltime=1:00" or "-lwalltime=1:00".
struct Word {
  std::string letter;
  Piece value;
};

std::vector<Word> Options(const ForeignLine& line, std::string_view flags) {
  std::vector<Word> options;
  for (std::size_t i = 0; i < line.words.size(); ++i) {
    const Piece& word = line.words[i];
    if (word.text.size() < 2 || word.text.front() != '-') continue;
    Word option{.letter = word.text.substr(1, 1), .value = {}};
    if (!flags.contains(option.letter.front())) {
      if (word.text.size() > 2)
        option.value = word.From(2);
      else if (i + 1 < line.words.size())
        option.value = line.words[++i];
    }
    options.push_back(std::move(option));
  }
  return options;
}

class Reader {
 public:
  void Pbs(const ForeignLine& line) {
    for (const Word& option : Options(line, kPbsFlags)) {
      if (option.letter == "l")
        PbsResources(option.value);
      else
        Add(Find(kPbsLetters, option.letter), "#PBS -" + option.letter, option.value);
    }
  }

  void Lsf(const ForeignLine& line) {
    for (Word& option : Options(line, kLsfFlags)) {
      Piece& value = option.value;
      // "-n 2,4": at least, at most; sbatch takes the last. "-M" counts KiB.
      if (option.letter == "n") {
        const std::size_t comma = value.text.rfind(',');
        if (comma != std::string::npos) value = value.From(comma + 1);
      }
      if (option.letter == "M" && !value.at.empty()) {
        value.text += 'K';
        value.at.push_back(value.at.back());
      }
      Add(Find(kLsfLetters, option.letter), "#BSUB -" + option.letter, value);
    }
  }

  std::vector<Given> Take() { return std::move(given_); }

 private:
  // "nodes=2:ppn=4:gpus=1,walltime=1:00:00,mem=4gb", "select=2:ncpus=4:mpiprocs=2"
  void PbsResources(const Piece& list) {
    std::optional<std::uint32_t> nodes;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < kMaxResources && begin < list.text.size(); ++i) {
      // Times have colons of their own.
      const bool is_time = std::string_view(list.text).substr(begin).starts_with("walltime=");
      const std::size_t end =
          std::min(list.text.find_first_of(is_time ? "," : ",:", begin), list.text.size());
      const std::string_view item = std::string_view(list.text).substr(begin, end - begin);
      const std::size_t equals = item.find('=');
      if (equals != std::string_view::npos) {
        const std::string_view name = item.substr(0, equals);
        const Piece value = list.Part(begin + equals + 1, end);
        const auto count = ParseCount(value.text);
        if (name == "nodes" || name == "select") nodes = count;
        if (name == "ppn" && count)
          Add("ntasks", "#PBS -l ppn", value, nodes.value_or(1));
        else if (name == "mpiprocs" && count)
          Add("ntasks-per-node", "#PBS -l mpiprocs", value);
        else if (const auto ours = Find(kPbsResources, name); ours != "nodes" || count)
          Add(ours, "#PBS -l " + std::string(name), ours == "gres" ? AsGres(value) : value);
      }
      begin = end + 1;
    }
  }

  static Piece AsGres(Piece count) {
    if (count.at.empty()) return count;
    constexpr std::string_view kName = "gpu:";
    count.text.insert(0, kName);
    count.at.insert(count.at.begin(), kName.size(), count.at.front());
    return count;
  }

  void Add(std::string_view ours, std::string written, const Piece& value,
           std::uint32_t times = 1) {
    if (ours.empty()) return;
    Given given{.option = FindLong(ours).option, .written = std::move(written)};
    if (given.option->argument == Argument::kRequired && value.text.empty()) return;
    given.at = value.begin_offset();
    given.has_value = !value.text.empty();
    given.value = value;
    given.times = times;
    given_.push_back(std::move(given));
  }

  std::vector<Given> given_;
};

}  // namespace

Parsed<std::vector<Given>> ReadForeign(const std::vector<ForeignLine>& lines,
                                       const LineIndex& index, std::vector<Note>& notes) {
  // Where there are #BSUB lines sbatch does not look at #PBS lines.
  const bool lsf =
      std::ranges::any_of(lines, [](const ForeignLine& line) { return line.scheduler == "BSUB"; });
  Reader reader;
  bool noted = false;
  for (const ForeignLine& line : lines) {
    if ((line.scheduler == "BSUB") != lsf) continue;
    if (line.refusal) return std::unexpected(*line.refusal);
    if (line.words.empty()) continue;
    if (lsf)
      reader.Lsf(line);
    else
      reader.Pbs(line);
    if (std::exchange(noted, true)) continue;
    notes.push_back({index.PlaceOf(line.words.front().begin_offset(), 0).line, "foreign_directive",
                     "sbatch obeys #" + std::string(line.scheduler) +
                         " lines as far as it knows their options, even over #SBATCH lines; "
                         "--ignore-pbs ends that"});
  }
  return reader.Take();
}

}  // namespace expanse::workload::sbatch
