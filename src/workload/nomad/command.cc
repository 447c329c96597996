// What a task runs, as its driver reads the config block; the files it names.
#include <algorithm>
#include <utility>

#include "workload/nomad/jobspec.h"
#include "workload/source/launchers.h"
#include "workload/source/shell_commands.h"

namespace expanse::workload::nomad {
namespace {

using hcl::Expression;
using hcl::Value;

constexpr std::size_t kMaxWords = 2000;
constexpr std::size_t kMaxScript = 256 << 10;
constexpr std::size_t kMaxFiles = 1000;

// The config block, or the object that an attribute gives.
class Config {
 public:
  Config(Context& context, const Section& task)
      : context_(context), members_(Members(context, task, "config")) {
    ForEachSection(context, task, "config", [&](const Section& section) {
      if (section_.body == nullptr) section_ = section;
      return true;
    });
  }

  Value Get(const std::string& name) const {
    const auto found = members_.object().find(name);
    return found == members_.object().end() ? Value() : found->second;
  }

  // Adds the words of an attribute: one, or those of a list.
  void AddWords(const std::string& name, Command& command) {
    AddValue(Get(name), command);
    if (section_.body == nullptr) return;
    const Expression* const expression = section_.Find(name);
    if (expression != nullptr && command.place.line == 0) {
      command.place = PlaceOfValue(context_, *expression);
    }
  }

  static void AddWord(std::string text, bool resolved, Command& command) {
    command.words.push_back({std::move(text), resolved});
  }

 private:
  void AddValue(const Value& value, Command& command) {
    if (value.IsNull() || value.type() == Value::Type::kObject) return;
    if (command.words.size() >= kMaxWords) return;
    if (value.type() == Value::Type::kList) {
      for (const Value& item : value.list()) AddValue(item, command);
      return;
    }
    const auto text = value.AsString();
    if (!context_.Take(text ? text->size() : value.text().size())) return;
    if (text) {
      AddWord(*text, !IsRuntimeText(*text), command);
    } else {
      AddWord(value.text(), false, command);
    }
  }

  Context& context_;
  Value members_;
  Section section_;
};

void AddJava(Config& config, Command& command) {
  Config::AddWord("java", true, command);
  config.AddWords("jvm_options", command);
  if (!config.Get("class_path").IsNull()) {
    Config::AddWord("-cp", true, command);
    config.AddWords("class_path", command);
  }
  if (!config.Get("jar_path").IsNull()) {
    Config::AddWord("-jar", true, command);
    config.AddWords("jar_path", command);
  }
  config.AddWords("class", command);
  config.AddWords("args", command);
}

// A file of the task's directory by the name that all ways to write it share: /local/x,
// ${NOMAD_TASK_DIR}/x and local/x are one.
std::string TaskFile(std::string_view path) {
  constexpr std::string_view kDirectory = "${NOMAD_TASK_DIR}/";
  if (path.starts_with(kDirectory)) return "local/" + std::string(path.substr(kDirectory.size()));
  while (path.starts_with("./")) path.remove_prefix(2);
  if (path.starts_with('/')) path.remove_prefix(1);
  return std::string(path);
}

// The script that a command line runs, where it names one: `run.sh` or `bash run.sh`.
std::string ScriptOf(const Command& command) {
  for (const Word& word : command.words) {
    if (source::IsShell(source::BaseName(word.text)) || word.text.starts_with('-')) continue;
    return TaskFile(word.text);
  }
  return {};
}

// What a script runs that a template of the task writes.
void ReadRendered(Context& context, const Section& task, const std::string& script, Part& part) {
  ForEachSection(context, task, "template", [&](const Section& rendered) {
    const Expression* const data = rendered.Find("data");
    if (data == nullptr || TaskFile(GetName(context, rendered, "destination")) != script)
      return true;
    const auto text = context.evaluator.Evaluate(*data, rendered.scope).AsString();
    if (!text || text->size() > kMaxScript || !context.Take(text->size())) return true;
    if (text->starts_with("#!") && !text->substr(0, text->find('\n')).contains("sh")) return true;
    auto commands = source::ReadShellScript(*text, {.variables = part.environment}).commands;
    for (Command& command : commands) {
      // A line of the template's own.
      if (command.words.empty() || command.words[0].text.starts_with("{{")) continue;
      command.place = PlaceOfValue(context, *data);
      for (Word& word : command.words) word.resolved = word.resolved && !IsRuntimeText(word.text);
      part.commands.push_back(std::move(command));
    }
    return true;
  });
}

}  // namespace

void ReadCommand(Context& context, const Section& task, Part& part, std::size_t begin) {
  Config config(context, task);
  const Value image = config.Get("image");
  part.image = image.AsString().value_or(image.text()).substr(0, 1024);
  Command command;
  if (GetName(context, task, "driver") == "java") {
    AddJava(config, command);
  } else {
    config.AddWords("entrypoint", command);
    config.AddWords("command", command);
    config.AddWords("args", command);
  }
  if (command.words.empty()) return;
  if (command.place.line == 0) command.place = context.lines.PlaceOf(begin, begin);
  const std::string script = ScriptOf(command);
  part.commands =
      source::CommandsOfArguments(std::move(command.words), command.place, part.environment);
  if (!script.empty()) ReadRendered(context, task, script, part);
}

void ReadFiles(Context& context, const Section& task, std::vector<std::string>& files) {
  const auto add = [&](const Section& section, std::string_view name) {
    const auto text = Get(context, section, name).AsString();
    if (!text || text->empty() || text->size() > 4096 || files.size() >= kMaxFiles) return;
    if (std::ranges::find(files, *text) == files.end()) files.push_back(*text);
  };
  ForEachSection(context, task, "artifact", [&](const Section& artifact) {
    add(artifact, "source");
    return true;
  });
  ForEachSection(context, task, "template", [&](const Section& rendered) {
    add(rendered, "source");
    add(rendered, "destination");
    return true;
  });
}

}  // namespace expanse::workload::nomad
