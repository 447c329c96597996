#include "intelligence/diagnose/runbook.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "base/text.h"
#include "intelligence/diagnose/facts.h"

namespace expanse::intelligence::diagnose {
namespace {

using base::Result;
using base::Status;

class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  std::unexpected<base::Error> Bad(const YAML::Node& at, const std::string& what) const {
    const std::size_t line = LineOf(at);
    const std::string where = line == 0 ? file_ : file_ + ":" + std::to_string(line);
    return base::Fail(base::Code::kInvalidArgument, "runbook.field", where + ": " + what);
  }

  // From 1; 0: unknown.
  static std::size_t LineOf(const YAML::Node& node) {
    const YAML::Mark mark = node.Mark();
    return mark.is_null() || mark.line < 0 ? 0 : static_cast<std::size_t>(mark.line) + 1;
  }

  Status Text(const YAML::Node& node, std::string* to) const {
    if (!node.IsScalar()) return Bad(node, "expected text");
    *to = node.Scalar();
    while (!to->empty() && to->back() == '\n') to->pop_back();
    return {};
  }

  Status Texts(const YAML::Node& node, std::vector<std::string>* to) const {
    if (node.IsScalar()) {
      to->emplace_back();
      return Text(node, &to->back());
    }
    if (!node.IsSequence()) return Bad(node, "expected a list");
    for (const YAML::Node& each : node) {
      to->emplace_back();
      EXPANSE_RETURN_IF_ERROR(Text(each, &to->back()));
    }
    return {};
  }

  // The same, with the line of each.
  Status Samples(const YAML::Node& node, std::vector<std::string>* to,
                 std::vector<std::size_t>* lines) const {
    EXPANSE_RETURN_IF_ERROR(Texts(node, to));
    if (node.IsScalar()) return lines->push_back(LineOf(node)), Status{};
    for (const YAML::Node& each : node) lines->push_back(LineOf(each));
    return {};
  }

  Status Number(const YAML::Node& node, std::optional<double>* to) const {
    std::string text;
    EXPANSE_RETURN_IF_ERROR(Text(node, &text));
    *to = base::ParseDouble(text);
    if (!*to) return Bad(node, "expected a number, not '" + text + "'");
    return {};
  }

  Status StrengthOf(const YAML::Node& node, Strength* to) const {
    std::string word;
    EXPANSE_RETURN_IF_ERROR(Text(node, &word));
    if (word == "weak") return *to = Strength::kWeak, Status{};
    if (word == "fair") return *to = Strength::kFair, Status{};
    if (word == "strong") return *to = Strength::kStrong, Status{};
    if (word == "decisive") return *to = Strength::kDecisive, Status{};
    return Bad(node, "strength is weak, fair, strong or decisive, not '" + word + "'");
  }

  // A signature is its pattern, or {re: …, strength: …}.
  Status SignatureOf(const YAML::Node& node, Signature* to) const {
    to->line = LineOf(node);
    if (node.IsScalar()) return Text(node, &to->pattern);
    if (!node.IsMap()) return Bad(node, "a signature is a pattern or {re, strength}");
    for (const auto& entry : node) {
      const std::string key = entry.first.Scalar();
      if (key == "re") {
        EXPANSE_RETURN_IF_ERROR(Text(entry.second, &to->pattern));
      } else if (key == "strength") {
        EXPANSE_RETURN_IF_ERROR(StrengthOf(entry.second, &to->strength));
      } else {
        return Bad(entry.first, "unknown key '" + key + "' of a signature");
      }
    }
    if (to->pattern.empty()) return Bad(node, "a signature needs a pattern");
    return {};
  }

  Status ConditionOf(const YAML::Node& node, Condition* to) const {
    if (!node.IsMap()) return Bad(node, "a condition is {fact, is | at_least | at_most, strength}");
    for (const auto& entry : node) {
      const std::string key = entry.first.Scalar();
      if (key == "fact") {
        EXPANSE_RETURN_IF_ERROR(Text(entry.second, &to->fact));
      } else if (key == "is") {
        EXPANSE_RETURN_IF_ERROR(Texts(entry.second, &to->words));
      } else if (key == "at_least") {
        EXPANSE_RETURN_IF_ERROR(Number(entry.second, &to->at_least));
      } else if (key == "at_most") {
        EXPANSE_RETURN_IF_ERROR(Number(entry.second, &to->at_most));
      } else if (key == "strength") {
        EXPANSE_RETURN_IF_ERROR(StrengthOf(entry.second, &to->strength));
      } else {
        return Bad(entry.first, "unknown key '" + key + "' of a condition");
      }
    }
    const auto& names = Facts::Names();
    if (std::find(names.begin(), names.end(), to->fact) == names.end())
      return Bad(node, "there is no fact '" + to->fact + "'");
    if (to->words.empty() && !to->at_least && !to->at_most)
      return Bad(node, "a condition needs is, at_least or at_most");
    return {};
  }

  template <typename T, typename Read>
  Status ListOf(const YAML::Node& node, std::vector<T>* to, Read read) const {
    if (!node.IsSequence()) return Bad(node, "expected a list");
    for (const YAML::Node& each : node) {
      T value;
      EXPANSE_RETURN_IF_ERROR(read(each, &value));
      to->push_back(std::move(value));
    }
    return {};
  }
  Status Signatures(const YAML::Node& node, std::vector<Signature>* to) const {
    return ListOf(node, to,
                  [this](const YAML::Node& n, Signature* s) { return SignatureOf(n, s); });
  }
  Status Conditions(const YAML::Node& node, std::vector<Condition>* to) const {
    return ListOf(node, to,
                  [this](const YAML::Node& n, Condition* c) { return ConditionOf(n, c); });
  }

  Status Truth(const YAML::Node& node, bool* to) const {
    std::string word;
    EXPANSE_RETURN_IF_ERROR(Text(node, &word));
    if (word != "true" && word != "false") return Bad(node, "expected true or false");
    *to = word == "true";
    return {};
  }

  Status KindOf(const YAML::Node& node, Kind* to) const {
    std::string word;
    EXPANSE_RETURN_IF_ERROR(Text(node, &word));
    for (const Kind kind : {Kind::kCause, Kind::kSymptom, Kind::kOutcome})
      if (word == Name(kind)) return *to = kind, Status{};
    return Bad(node, "kind is cause, symptom or outcome, not '" + word + "'");
  }
  Status RequestOf(const YAML::Node& node, std::optional<workload::Quantity>* to) const {
    using workload::Quantity;
    std::string word;
    EXPANSE_RETURN_IF_ERROR(Text(node, &word));
    for (const Quantity quantity :
         {Quantity::kMemory, Quantity::kWalltime, Quantity::kGpu, Quantity::kCpu, Quantity::kTasks})
      if (word == Name(quantity)) return *to = quantity, Status{};
    return Bad(node, "request is memory, walltime, gpu, cpu or tasks, not '" + word + "'");
  }
  Status OwnerOf(const YAML::Node& node, Owner* to) const {
    std::string word;
    EXPANSE_RETURN_IF_ERROR(Text(node, &word));
    for (const Owner owner :
         {Owner::kUser, Owner::kInfrastructure, Owner::kEither, Owner::kPolicy, Owner::kNobody})
      if (word == Name(owner)) return *to = owner, Status{};
    return Bad(node, "owner is user, infrastructure, either, policy or nobody, not '" + word + "'");
  }

  Status Field(const std::string& key, const YAML::Node& value, Runbook* to) const {
    if (key == "id") return Text(value, &to->id);
    if (key == "family") return Text(value, &to->family);
    if (key == "kind") return KindOf(value, &to->kind);
    if (key == "owner") return OwnerOf(value, &to->owner);
    if (key == "title") return Text(value, &to->title);
    if (key == "signatures") return Signatures(value, &to->signatures);
    if (key == "when") return Conditions(value, &to->when);
    if (key == "unless") return Conditions(value, &to->unless);
    if (key == "only") return Conditions(value, &to->only);
    if (key == "explains") return Texts(value, &to->explains);
    if (key == "confused_with") return Texts(value, &to->confused_with);
    if (key == "what") return Text(value, &to->what);
    if (key == "why") return Text(value, &to->why);
    if (key == "not_this") return Text(value, &to->not_this);
    if (key == "unknown") return Texts(value, &to->unknown);
    if (key == "collect") return Texts(value, &to->collect);
    if (key == "advice") return Text(value, &to->advice);
    if (key == "retry") return Text(value, &to->retry);
    if (key == "verify") return Text(value, &to->verify);
    if (key == "must_match") return Samples(value, &to->must_match, &to->must_match_at);
    if (key == "must_not_match") return Samples(value, &to->must_not_match, &to->must_not_match_at);
    if (key == "in_success") return Truth(value, &to->in_success);
    if (key == "request") return RequestOf(value, &to->request);
    if (key == "in_waiting") return Truth(value, &to->in_waiting);
    if (key == "may_be_high") return Truth(value, &to->may_be_high);
    if (key == "priority") {
      std::optional<double> number;
      EXPANSE_RETURN_IF_ERROR(Number(value, &number));
      to->priority = static_cast<int>(std::clamp(*number, -100.0, 100.0));
      return {};
    }
    return Bad(value, "unknown key '" + key + "'");
  }

  Result<Runbook> Read(const YAML::Node& node) const {
    if (!node.IsMap()) return Bad(node, "a runbook is a mapping");
    Runbook runbook;
    runbook.file = file_;
    runbook.line = LineOf(node);
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) return Bad(entry.first, "expected a key");
      EXPANSE_RETURN_IF_ERROR(Field(entry.first.Scalar(), entry.second, &runbook));
    }
    if (runbook.id.empty()) return Bad(node, "a runbook needs an id");
    const bool word = std::all_of(runbook.id.begin(), runbook.id.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || base::IsDigit(c) || c == '_';
    });
    if (!word || runbook.id.size() > 64)
      return Bad(node, "an id is at most 64 of a-z, 0-9 and _, not '" + runbook.id + "'");
    if (runbook.title.empty() || runbook.what.empty())
      return Bad(node, runbook.id + " needs title and what");
    if (runbook.signatures.empty() && runbook.when.empty())
      return Bad(node, runbook.id + " can match nothing: it needs signatures or when");
    if (!runbook.signatures.empty() && runbook.must_match.empty())
      return Bad(node, runbook.id + " needs must_match: a line for its signatures");
    return runbook;
  }

 private:
  std::string file_;
};

// Lines of a file, each with its end.
std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

// Gives each runbook the lines that it was read from; where a list is written in brackets or refers
// to itself, all of the file.
void KeepText(std::string_view yaml, const YAML::Node& root, std::vector<Runbook>* runbooks) {
  const std::vector<std::string_view> lines = LinesOf(yaml);
  std::vector<std::size_t> starts;
  for (const Runbook& runbook : *runbooks) {
    std::size_t line = std::min(runbook.line, lines.size());
    while (line > 1 && !base::Trim(lines[line - 1]).starts_with('-')) --line;
    starts.push_back(line - 1);
  }
  starts.push_back(lines.size());
  const bool whole = root.Style() == YAML::EmitterStyle::Flow ||
                     std::adjacent_find(starts.begin(), starts.end(),
                                        [](auto a, auto b) { return a >= b; }) != starts.end();
  for (std::size_t i = 0; i < runbooks->size(); ++i) {
    std::size_t end = whole ? lines.size() : starts[i + 1];
    const std::size_t begin = whole ? 0 : starts[i];
    // What stands before the next item belongs to that.
    const auto beside = [&](std::string_view line) {
      return base::Trim(line).empty() || line.starts_with('#');
    };
    while (!whole && end > begin + 1 && beside(lines[end - 1])) --end;
    for (std::size_t line = begin; line < end; ++line) (*runbooks)[i].text += lines[line];
  }
}

// yaml-cpp descends by recursion.
bool TooDeep(std::string_view yaml) {
  int depth = 0;
  for (const char c : yaml) {
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (depth > 64) return true;
  }
  std::size_t at = 0;
  while (at < yaml.size()) {
    const std::size_t end = std::min(yaml.find('\n', at), yaml.size());
    const std::size_t indent = yaml.substr(at, end - at).find_first_not_of(" -?");
    if (indent != std::string_view::npos && indent > 200) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

std::string_view Name(Kind kind) {
  switch (kind) {
    case Kind::kCause:
      return "cause";
    case Kind::kSymptom:
      return "symptom";
    case Kind::kOutcome:
      return "outcome";
  }
  return "";
}

std::string_view Name(Owner owner) {
  switch (owner) {
    case Owner::kUser:
      return "user";
    case Owner::kInfrastructure:
      return "infrastructure";
    case Owner::kEither:
      return "either";
    case Owner::kPolicy:
      return "policy";
    case Owner::kNobody:
      return "nobody";
  }
  return "";
}

Result<std::vector<Runbook>> ParseRunbooks(std::string_view yaml, std::string_view file) {
  constexpr std::size_t kMaxFile = std::size_t{1} << 20;
  if (yaml.size() > kMaxFile || TooDeep(yaml))
    return base::Fail(base::Code::kInvalidArgument, "runbook.syntax",
                      std::string(file) + ": too large or too deeply nested for runbooks");
  const Reader reader(file);
  std::vector<Runbook> runbooks;
  try {
    const YAML::Node root = YAML::Load(std::string(yaml));
    if (!root.IsSequence()) return reader.Bad(root, "expected a list of runbooks");
    for (const YAML::Node& node : root) {
      EXPANSE_ASSIGN_OR_RETURN(Runbook runbook, reader.Read(node));
      runbooks.push_back(std::move(runbook));
    }
    KeepText(yaml, root, &runbooks);
  } catch (const YAML::Exception& error) {
    return base::Fail(
        base::Code::kInvalidArgument, "runbook.syntax",
        std::string(file) + ":" + std::to_string(error.mark.line + 1) + ": " + error.msg);
  }
  return runbooks;
}

}  // namespace expanse::intelligence::diagnose
