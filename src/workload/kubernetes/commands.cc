// Commands and literal environment of a container.
#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "workload/kubernetes/pod_reader.h"
#include "workload/source/launchers.h"
#include "workload/source/shell_commands.h"

namespace expanse::workload::kubernetes {
namespace {

bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
}

// The name in "$(NAME)" at the beginning of a text, or nothing.
std::string_view NameIn(std::string_view text) {
  if (!text.starts_with("$(")) return {};
  std::size_t end = 2;
  while (end < text.size() && IsNameCharacter(text[end])) ++end;
  return end < text.size() && text[end] == ')' ? text.substr(2, end - 2) : std::string_view();
}

// $(NAME) as the kubelet replaces it; `$$(NAME)` stands for "$(NAME)".
// https://kubernetes.io/docs/tasks/inject-data-application/define-command-argument-container/
Word Expand(std::string_view text, const std::map<std::string, std::string>& environment) {
  constexpr std::size_t kMaxWord = std::size_t{1} << 20;
  Word word;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t dollar = std::min(text.find('$', at), text.size());
    word.text.append(text.substr(at, dollar - at));
    at = dollar;
    const std::string_view rest = text.substr(at);
    const std::string_view name = NameIn(rest);
    if (name.empty()) {
      word.text.append(rest.substr(0, 1));
      at += rest.starts_with("$$") ? 2 : 1;
      continue;
    }
    const auto known = environment.find(std::string(name));
    if (known != environment.end() && word.text.size() < kMaxWord) {
      word.text.append(known->second);
    } else {
      // Names that the container does not have stay as they are; others are in maps or secrets.
      word.text.append(rest.substr(0, name.size() + 3));
      word.resolved = false;
    }
    at += name.size() + 3;
  }
  return word;
}

class CommandReader {
 public:
  CommandReader(const Document& document, Part& part) : document_(document), part_(part) {}

  void Environment(NodeId container) {
    for (const Entry& entry : document_.Items(document_.Find(container, "env"))) {
      const NodeId value = document_.Find(entry.value, "value");
      const std::string_view name = document_.Text(document_.Find(entry.value, "name"));
      if (name.empty() || !document_.Is(value, NodeKind::kScalar) ||
          document_.At(value).templated || bytes_ > kMaxBytes)
        continue;
      // Each may hold the one before twice.
      Word word = Expand(document_.Text(value), part_.environment);
      bytes_ += name.size() + word.text.size() + sizeof(Word);
      if (word.resolved) part_.environment[std::string(name)] = std::move(word.text);
    }
  }

  void Add(NodeId words) {
    if (document_.Is(words, NodeKind::kScalar)) {
      AddWord(words);
      return;
    }
    for (const Entry& entry : document_.Items(words)) AddWord(entry.value);
  }

  // Argo writes it to a file for the command, which shells and Python take as "-c" too.
  void Source(NodeId script) {
    if (!document_.Is(script, NodeKind::kScalar)) return;
    if (!words_.empty() && (source::IsShell(source::BaseName(words_.back().text)) ||
                            source::IsPython(source::BaseName(words_.back().text))))
      words_.push_back({.text = "-c"});
    AddWord(script);
  }

  void Finish() {
    if (words_.empty()) return;
    std::vector<Command> commands = source::CommandsOfArguments(
        std::move(words_), document_.PlaceAt(begin_, end_), part_.environment);
    std::move(commands.begin(), commands.end(), std::back_inserter(part_.commands));
  }

 private:
  static constexpr std::size_t kMaxBytes = std::size_t{4} << 20;

  void AddWord(NodeId id) {
    if (!document_.Is(id, NodeKind::kScalar) || bytes_ > kMaxBytes) return;
    const Node& node = document_.At(id);
    if (words_.empty()) begin_ = node.begin;
    begin_ = std::min(begin_, node.begin);
    end_ = std::max(end_, node.end);
    Word word = Expand(node.value, part_.environment);
    word.resolved = word.resolved && !node.templated;
    bytes_ += word.text.size() + sizeof(Word);
    words_.push_back(std::move(word));
  }

  const Document& document_;
  Part& part_;
  std::vector<Word> words_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

void ReadCommands(const Document& document, NodeId container, Part& part) {
  CommandReader reader(document, part);
  reader.Environment(container);
  reader.Add(document.Find(container, "command"));
  reader.Add(document.Find(container, "args"));
  reader.Source(document.Find(container, "source"));
  reader.Finish();
}

void ReadEntrypoint(const Document& document, NodeId entrypoint, Part& part) {
  if (!document.Is(entrypoint, NodeKind::kScalar)) return;
  const Node& node = document.At(entrypoint);
  source::ShellScript script = source::ReadShellScript(node.value, {.variables = part.environment});
  for (Command& command : script.commands) {
    command.place = document.PlaceAt(node.begin, node.end);
    for (Word& word : command.words) word.resolved = word.resolved && !node.templated;
    part.commands.push_back(std::move(command));
  }
}

}  // namespace expanse::workload::kubernetes
