#include "cli/parse.h"

#include <fmt/format.h>

#include "base/text.h"

namespace expanse::cli {
namespace {

constexpr OptionSpec kCommon[] = {
    {.name = "help", .kind = ValueKind::kFlag, .help = "Show this help and leave (also -h)"},
};
constexpr OptionSpec kVersion = {
    .name = "version", .kind = ValueKind::kFlag, .help = "Print the version and leave"};

const OptionSpec* FindOption(const CommandSpec& command, std::string_view name, bool is_root) {
  for (const OptionSpec& option : command.options) {
    if (option.name == name || (!option.alias.empty() && option.alias == name)) return &option;
  }
  for (const OptionSpec& option : kCommon) {
    if (option.name == name) return &option;
  }
  return is_root && name == kVersion.name ? &kVersion : nullptr;
}

std::string QuoteForMessage(std::string_view text) {
  return fmt::format("'{}'", base::EscapeForDisplay(text.substr(0, 200)));
}

std::string Joined(std::span<const std::string_view> words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::vector<std::string> Strings(std::span<const std::string_view> words) {
  return {words.begin(), words.end()};
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates,
                       std::string_view otherwise) {
  if (auto nearest = base::NearestWord(word, candidates)) return *nearest;
  return std::string(otherwise);
}

// http:// or https://, then a host; what curl makes of the rest is for the call to say.
bool LooksLikeUrl(std::string_view text) {
  for (std::string_view scheme : {"http://", "https://"}) {
    if (!text.starts_with(scheme)) continue;
    const std::string_view rest = text.substr(scheme.size());
    if (rest.empty() || rest.front() == '/' || rest.front() == ':' || rest.front() == '?')
      return false;
    return rest.find_first_of(" \t\r\n\"'<>\\^`{|}") == std::string_view::npos;
  }
  return false;
}

// The number behind a value, or what is wrong with it.
std::expected<std::int64_t, std::string> CheckInt(const OptionSpec& option, std::string_view text) {
  const auto number = base::ParseInt<std::int64_t>(text);
  if (!number) return std::unexpected("not a whole number");
  if (*number < option.min || *number > option.max) {
    return std::unexpected(fmt::format("must be from {} to {}", option.min, option.max));
  }
  return *number;
}

std::expected<std::int64_t, std::string> CheckDuration(const OptionSpec& option,
                                                       std::string_view text) {
  const auto duration = base::ParseDuration(text);
  if (!duration) return std::unexpected("not a duration such as 90s, 15m or 1-02:00:00");
  if (duration->count() < option.min) {
    return std::unexpected("must be at least " +
                           base::FormatDuration(std::chrono::milliseconds(option.min)));
  }
  return duration->count();
}

std::expected<std::int64_t, std::string> CheckValue(const OptionSpec& option,
                                                    std::string_view text) {
  switch (option.kind) {
    case ValueKind::kFlag:
      if (text == "true" || text == "1" || text == "yes") return 1;
      if (text == "false" || text == "0" || text == "no") return 0;
      return std::unexpected("must be true or false");
    case ValueKind::kInt:
      return CheckInt(option, text);
    case ValueKind::kDuration:
      return CheckDuration(option, text);
    case ValueKind::kBytes: {
      const auto bytes = base::ParseBytes(text);
      if (!bytes || bytes->count > static_cast<std::uint64_t>(INT64_MAX)) {
        return std::unexpected("not a size such as 512M or 16GiB");
      }
      if (static_cast<std::int64_t>(bytes->count) < option.min) {
        return std::unexpected(fmt::format("must be at least {} B", option.min));
      }
      return static_cast<std::int64_t>(bytes->count);
    }
    case ValueKind::kTime: {
      const auto time = base::ParseRfc3339(text);
      if (!time) return std::unexpected("not a time such as 2026-11-30T09:00:00Z");
      return base::ToMicros(*time);
    }
    case ValueKind::kUrl:
      if (!LooksLikeUrl(text))
        return std::unexpected("not a URL such as https://expanse.example.org");
      return 0;
    case ValueKind::kChoice:
      for (std::string_view choice : option.choices) {
        if (choice == text) return 0;
      }
      return std::unexpected(fmt::format("must be one of {}", Joined(option.choices)));
    case ValueKind::kText:
    case ValueKind::kPath:
      if (text.empty()) return std::unexpected("must not be empty");
      return 0;
  }
  return 0;
}

}  // namespace

std::span<const OptionSpec> CommonOptions() { return kCommon; }

std::string PathName(const std::vector<const CommandSpec*>& path) {
  std::string name;
  for (const CommandSpec* command : path) {
    if (!name.empty()) name += ' ';
    name += command->name;
  }
  return name;
}

class Parser {
 public:
  Parser(const CommandSpec& root, const std::vector<std::string>& words,
         const base::Settings::Environment& environment)
      : words_(words), environment_(environment), invocation_{{&root}, Arguments(root)} {}

  ParseResult Run() {
    while (at_ < words_.size()) {
      const std::string& word = words_[at_++];
      std::expected<void, Failure> status;
      if (options_ended_ || word == "-" || !word.starts_with('-')) {
        status = TakeWord(word);
      } else if (word == "--") {
        options_ended_ = true;
      } else {
        status = TakeOption(word);
      }
      if (!status) return std::unexpected(std::move(status).error());
    }
    if (command().run == nullptr && !invocation_.version) invocation_.help = true;
    if (invocation_.help || invocation_.version) return std::move(invocation_);
    if (auto status = TakeEnvironment(); !status) return std::unexpected(std::move(status).error());
    if (auto status = CheckPositionals(); !status)
      return std::unexpected(std::move(status).error());
    return std::move(invocation_);
  }

 private:
  using Step = std::expected<void, Failure>;

  const CommandSpec& command() const { return *invocation_.path.back(); }
  std::string Name() const { return PathName(invocation_.path); }
  std::string HelpHint() const { return Name() + " --help"; }

  Step TakeWord(const std::string& word) {
    if (!options_ended_ && invocation_.arguments.positionals_.empty()) {
      for (const CommandSpec* child : command().children) {
        if (child->name != word && (child->alias.empty() || child->alias != word)) continue;
        invocation_.path.push_back(child);
        invocation_.arguments.command_ = child;
        for (const auto& [name, values] : invocation_.arguments.values_) {
          if (FindOption(*child, name, /*is_root=*/false) == nullptr)
            return UnknownOption("--" + name);
        }
        return {};
      }
    }
    if (command().positionals.empty()) return UnexpectedWord(word);
    invocation_.arguments.positionals_.push_back(word);
    if (command().stop_at_positional) options_ended_ = true;
    return {};
  }

  Step UnexpectedWord(const std::string& word) {
    if (command().children.empty()) {
      return FailUsage(fmt::format("{}: unexpected argument {}", Name(), QuoteForMessage(word)),
                       HelpHint());
    }
    std::vector<std::string> names;
    for (const CommandSpec* child : command().children) names.emplace_back(child->name);
    const auto nearest = base::NearestWord(word, names);
    return FailUsage(fmt::format("{}: no command {}{}", Name(), QuoteForMessage(word),
                                 nearest ? fmt::format(", did you mean '{}'?", *nearest) : ""),
                     nearest ? fmt::format("{} {}", Name(), *nearest) : HelpHint());
  }

  Step TakeOption(const std::string& word) {
    if (word == "-h") {
      invocation_.help = true;
      return {};
    }
    if (!word.starts_with("--")) return UnknownOption(word);
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    const OptionSpec* option = FindOption(command(), name, invocation_.path.size() == 1);
    if (option == nullptr) return UnknownOption("--" + name);
    if (option->name == "help" && equals == std::string::npos) {
      invocation_.help = true;
      return {};
    }
    if (option == &kVersion) {
      invocation_.version = true;
      return {};
    }
    if (equals != std::string::npos) return Store(*option, word.substr(equals + 1), "--" + name);
    if (option->kind == ValueKind::kFlag) return Store(*option, "true", "--" + name);
    if (at_ >= words_.size() || words_[at_].starts_with("--")) {
      return FailUsage(fmt::format("{}: --{} needs a value", Name(), name), HelpHint());
    }
    return Store(*option, words_[at_++], "--" + name);
  }

  Step UnknownOption(const std::string& word) {
    std::vector<std::string> names;
    for (const OptionSpec& option : command().options)
      names.push_back("--" + std::string(option.name));
    names.emplace_back("--help");
    if (invocation_.path.size() == 1) names.emplace_back("--version");
    const auto nearest = base::NearestWord(word, names);
    return FailUsage(fmt::format("{}: no option {}{}", Name(), QuoteForMessage(word),
                                 nearest ? fmt::format(", did you mean '{}'?", *nearest) : ""),
                     nearest ? fmt::format("{} {}", Name(), *nearest) : HelpHint());
  }

  Step Store(const OptionSpec& option, std::string text, const std::string& origin) {
    auto& values = invocation_.arguments.values_[std::string(option.name)];
    if (!values.empty() && !option.repeatable && option.kind != ValueKind::kFlag) {
      return FailUsage(fmt::format("{}: {} is given twice", Name(), origin), HelpHint());
    }
    const auto number = CheckValue(option, text);
    if (!number) {
      // A secret has no business in a message, however wrong it is.
      const bool secret = option.name.find("key") != std::string_view::npos ||
                          option.name.find("link") != std::string_view::npos;
      std::string hint = HelpHint();
      if (option.kind == ValueKind::kChoice) {
        hint = fmt::format("--{} {}", option.name,
                           DidYouMean(text, Strings(option.choices), option.choices.front()));
      }
      return FailUsage(
          fmt::format("{}: {}{}: {}", Name(), origin,
                      secret ? std::string() : " " + QuoteForMessage(text), number.error()),
          hint);
    }
    if (option.kind == ValueKind::kFlag) values.clear();  // the last one counts
    values.push_back({std::move(text), *number});
    return {};
  }

  Step TakeEnvironment() {
    for (const OptionSpec& option : command().options) {
      if (option.environment.empty()) continue;
      if (invocation_.arguments.values_.contains(option.name)) continue;
      const auto found = environment_.find(std::string(option.environment));
      if (found == environment_.end() || found->second.empty()) continue;
      if (auto status = Store(option, found->second, std::string(option.environment)); !status) {
        return status;
      }
    }
    return {};
  }

  Step CheckPositionals() {
    const auto& given = invocation_.arguments.positionals_;
    std::size_t required = 0;
    for (const PositionalSpec& positional : command().positionals) required += positional.required;
    if (given.size() < required) {
      return FailUsage(
          fmt::format("{}: {} is missing", Name(), command().positionals[given.size()].name),
          HelpHint());
    }
    const auto& all = command().positionals;
    if (given.size() > all.size() && (all.empty() || !all.back().repeated)) {
      return FailUsage(
          fmt::format("{}: unexpected argument {}", Name(), QuoteForMessage(given[all.size()])),
          HelpHint());
    }
    return {};
  }

  const std::vector<std::string>& words_;
  const base::Settings::Environment& environment_;
  Invocation invocation_;
  std::size_t at_ = 0;
  bool options_ended_ = false;
};

ParseResult Parse(const CommandSpec& root, const std::vector<std::string>& arguments,
                  const base::Settings::Environment& environment) {
  return Parser(root, arguments, environment).Run();
}

const std::vector<Arguments::Value>* Arguments::Find(std::string_view option) const {
  EXPANSE_CHECK(FindOption(*command_, option, false) != nullptr);
  const auto found = values_.find(option);
  return found == values_.end() || found->second.empty() ? nullptr : &found->second;
}

bool Arguments::Has(std::string_view option) const { return Find(option) != nullptr; }

bool Arguments::Flag(std::string_view option) const {
  const auto* values = Find(option);
  return values != nullptr && values->back().number != 0;
}

std::string Arguments::Text(std::string_view option, std::string_view absent) const {
  const auto* values = Find(option);
  return values == nullptr ? std::string(absent) : values->back().text;
}

std::vector<std::string> Arguments::Texts(std::string_view option) const {
  std::vector<std::string> texts;
  if (const auto* values = Find(option)) {
    for (const Value& value : *values) texts.push_back(value.text);
  }
  return texts;
}

std::int64_t Arguments::Int(std::string_view option, std::int64_t absent) const {
  const auto* values = Find(option);
  return values == nullptr ? absent : values->back().number;
}

std::chrono::milliseconds Arguments::Duration(std::string_view option) const {
  return std::chrono::milliseconds(Int(option, 0));
}

base::Bytes Arguments::Bytes(std::string_view option) const {
  return {static_cast<std::uint64_t>(Int(option, 0))};
}

base::WallTime Arguments::Time(std::string_view option) const {
  return base::FromMicros(Int(option, 0));
}

}  // namespace expanse::cli
