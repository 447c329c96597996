#include "workload/sbatch/component.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "workload/sbatch/amounts.h"
#include "workload/sbatch/values.h"

namespace expanse::workload::sbatch {
namespace {

constexpr std::size_t kMaxPairs = 64 << 10;  // bytes of --comment and --export that are read

// Two spellings of one option have one key.
int KeyOf(const Option& option) {
  if (option.id != OptionId::kOther) return static_cast<int>(option.id);
  const Option* first = option.letter == 0 ? &option : FindShort(option.letter);
  return 1000 + static_cast<int>(first - AllOptions().data());
}

class Reader {
 public:
  Reader(const std::vector<Given>& given, const std::vector<const Given*>& carried,
         const LineIndex& lines, std::string_view text)
      : given_(given), carried_(carried), lines_(lines), amounts_(lines, text) {}

  Parsed<ComponentReading> Read() {
    if (auto checked = CheckExclusions(); !checked) return std::unexpected(checked.error());
    std::unordered_map<int, const Given*> last;
    for (const Given& given : given_)
      if (given.option != nullptr) last[KeyOf(*given.option)] = &given;
    for (const Given* given : carried_) {
      if (last.contains(KeyOf(*given->option))) continue;
      if (auto read = ReadOption(*given, /*written=*/false, /*effective=*/true); !read)
        return std::unexpected(read.error());
    }
    for (const Given& given : given_) {
      if (given.option == nullptr) continue;
      const bool effective = last[KeyOf(*given.option)] == &given;
      if (auto read = ReadOption(given, /*written=*/true, effective); !read)
        return std::unexpected(read.error());
    }
    return Finish();
  }

 private:
  std::unexpected<Refusal> Refuse(const Given& given, std::string reason, std::string message) {
    const std::size_t at = given.has_value ? given.value.begin_offset() : given.at;
    const Place place = lines_.PlaceOf(at, at);
    return std::unexpected(
        Refusal{place.line, place.column, std::move(reason), std::move(message)});
  }

  Parsed<bool> CheckExclusions() {
    const Given* memory = nullptr;
    std::set<OptionId> seen;
    struct Pair {
      OptionId a, b;
      std::string_view message;
    };
    static constexpr std::array kPairs = {
        Pair{OptionId::kCpusPerTask, OptionId::kCpusPerGpu,
             "--cpus-per-task and --cpus-per-gpu exclude each other"},
        Pair{OptionId::kNtasksPerNode, OptionId::kNtasksPerGpu,
             "--ntasks-per-node and --ntasks-per-gpu exclude each other"},
        Pair{OptionId::kGpusPerTask, OptionId::kNtasksPerGpu,
             "--gpus-per-task and --ntasks-per-gpu exclude each other"},
    };
    const auto check = [&](const Given& given) -> Parsed<bool> {
      const OptionId id = given.option->id;
      if (CountsMemory(id)) {
        if (memory != nullptr && memory->option->id != id)
          return Refuse(given, "exclusive_options",
                        "--mem, --mem-per-cpu and --mem-per-gpu exclude each other");
        memory = &given;
      }
      seen.insert(id);
      for (const auto& [a, b, message] : kPairs)
        if ((id == a && seen.contains(b)) || (id == b && seen.contains(a)))
          return Refuse(given, "exclusive_options", std::string(message));
      return true;
    };
    for (const Given* given : carried_)
      if (auto checked = check(*given); !checked) return checked;
    for (const Given& given : given_)
      if (given.option != nullptr)
        if (auto checked = check(given); !checked) return checked;
    return true;
  }

  Parsed<bool> ReadOption(const Given& given, bool written, bool effective) {
    if (effective && !given.option->reset) reading_.carried.push_back(&given);
    auto is_amount = amounts_.Read(given, written, effective);
    if (!is_amount || *is_amount || !effective) return is_amount;
    if (given.option->id == OptionId::kArray) return ReadArray(given);
    ReadOther(given);
    return true;
  }

  Parsed<bool> ReadArray(const Given& given) {
    const std::string& value = given.value.text;
    reading_.part.array_size = ParseArraySize(value);
    if (!reading_.part.array_size && !LooksTemplated(value))
      return Refuse(given, "invalid_value",
                    "\"" + value + "\" is no list of array indexes (" + given.written + ")");
    return true;
  }

  // Options without a quantity of their own.
  void ReadOther(const Given& given) {
    struct Handler {
      OptionId id;
      void (*read)(Reader&, const Given&);
    };
    static constexpr std::array kHandlers = {
        Handler{OptionId::kJobName,
                [](Reader& r, const Given& g) { r.reading_.part.workload = g.value.text; }},
        Handler{OptionId::kComment, [](Reader& r, const Given& g) { r.ReadComment(g.value.text); }},
        Handler{OptionId::kOutput,
                [](Reader& r, const Given& g) { r.reading_.outputs.push_back(g.value.text); }},
        Handler{OptionId::kError,
                [](Reader& r, const Given& g) { r.reading_.outputs.push_back(g.value.text); }},
        Handler{OptionId::kInput,
                [](Reader& r, const Given& g) { r.reading_.input = g.value.text; }},
        Handler{OptionId::kChdir,
                [](Reader& r, const Given& g) { r.reading_.directory = g.value.text; }},
        Handler{OptionId::kExport, [](Reader& r, const Given& g) { r.ReadExport(g.value.text); }},
        Handler{OptionId::kExclusive,
                [](Reader& r, const Given& g) {
                  r.exclusive_ = !g.has_value || g.value.text == "exclusive";
                }},
        Handler{OptionId::kOvercommit, [](Reader& r, const Given&) { r.overcommit_ = true; }},
        Handler{OptionId::kSocketsPerNode,
                [](Reader& r, const Given& g) { r.ReadGeometry(g.value.text, {&Asked::sockets}); }},
        Handler{OptionId::kCoresPerSocket,
                [](Reader& r, const Given& g) { r.ReadGeometry(g.value.text, {&Asked::cores}); }},
        Handler{OptionId::kThreadsPerCore,
                [](Reader& r, const Given& g) { r.ReadGeometry(g.value.text, {&Asked::threads}); }},
        Handler{OptionId::kExtraNodeInfo,
                [](Reader& r, const Given& g) {
                  r.geometry_.geometry = true;
                  r.ReadGeometry(g.value.text, {&Asked::sockets, &Asked::cores, &Asked::threads});
                }},
    };
    const auto* handler = std::ranges::find(kHandlers, given.option->id, &Handler::id);
    if (handler != kHandlers.end()) handler->read(*this, given);
  }

  // "2", "2:4:1", "*:4": fields of sockets, cores and threads; the least of a range.
  void ReadGeometry(std::string_view value,
                    std::initializer_list<Amount<std::uint32_t> Asked::*> fields) {
    const auto pieces = base::Split(value, ':');
    std::size_t i = 0;
    for (const auto field : fields) {
      if (i == pieces.size()) return;
      const std::string_view piece = pieces[i++];
      if (piece == "*") continue;
      geometry_.*field = {.given = true, .value = ParseCount(piece.substr(0, piece.find('-')))};
    }
  }

  // "key=value;key2=value2": pairs that people label jobs with.
  void ReadComment(std::string_view value) {
    for (const std::string_view pair : base::Split(value.substr(0, kMaxPairs), ';')) {
      const std::size_t equals = pair.find('=');
      const std::string_view key = base::Trim(pair.substr(0, equals));
      if (equals == std::string_view::npos || key.empty()) continue;
      reading_.part.annotations[std::string(key)] = base::Trim(pair.substr(equals + 1));
    }
  }

  // "ALL,OMP_NUM_THREADS=4,MODE": pairs with a literal value.
  void ReadExport(std::string_view value) {
    for (const std::string_view pair : base::Split(value.substr(0, kMaxPairs), ',')) {
      const std::size_t equals = pair.find('=');
      if (equals == std::string_view::npos || equals == 0) continue;
      if (LooksTemplated(pair.substr(equals + 1))) continue;
      reading_.part.environment[std::string(pair.substr(0, equals))] = pair.substr(equals + 1);
    }
  }

  ComponentReading Finish() {
    Amounts amounts = amounts_.Take();
    reading_.asked = amounts.asked;
    reading_.asked.sockets = geometry_.sockets;
    reading_.asked.cores = geometry_.cores;
    reading_.asked.threads = geometry_.threads;
    reading_.asked.geometry = geometry_.geometry;
    reading_.asked.exclusive = exclusive_;
    reading_.asked.overcommit = overcommit_;
    reading_.part.request.gpu_type = std::move(amounts.gpu_types);
    reading_.part.settings = std::move(amounts.settings);
    std::ranges::stable_sort(reading_.part.settings, {},
                             [](const Setting& setting) { return setting.place.begin; });
    return std::move(reading_);
  }

  const std::vector<Given>& given_;
  const std::vector<const Given*>& carried_;
  const LineIndex& lines_;
  AmountReader amounts_;
  ComponentReading reading_;
  Asked geometry_;  // sockets, cores and threads alone
  bool exclusive_ = false;
  bool overcommit_ = false;
};

}  // namespace

Parsed<ComponentReading> ReadComponent(const std::vector<Given>& given,
                                       const std::vector<const Given*>& carried,
                                       const LineIndex& lines, std::string_view text) {
  return Reader(given, carried, lines, text).Read();
}

}  // namespace expanse::workload::sbatch
