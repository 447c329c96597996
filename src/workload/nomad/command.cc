// What a task runs, as its driver reads the config block; the files it names.
#include <algorithm>
#include <utility>

#include "workload/nomad/jobspec.h"

namespace expanse::workload::nomad {
namespace {

using hcl::Expression;
using hcl::Value;

constexpr std::size_t kMaxWords = 2000;
constexpr std::size_t kMaxWordBytes = 256 << 10;  // of one command
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
    if (value.IsNull() || command.words.size() >= kMaxWords || bytes_ > kMaxWordBytes) return;
    if (value.type() == Value::Type::kList) {
      for (const Value& item : value.list()) AddValue(item, command);
      return;
    }
    const auto text = value.AsString();
    bytes_ += text ? text->size() : value.text().size();
    if (text) {
      AddWord(*text, !IsRuntimeText(*text), command);
    } else {
      AddWord(value.text(), false, command);
    }
  }

  Context& context_;
  Value members_;
  Section section_;
  std::size_t bytes_ = 0;
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
  part.commands.push_back(std::move(command));
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
