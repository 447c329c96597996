#include "workload/sbatch/arguments.h"

#include <utility>

namespace expanse::workload::sbatch {
namespace {

class Reader {
 public:
  Reader(const Component& component, const LineIndex& lines, std::vector<Note>& notes)
      : words_(component.words), lines_(lines), notes_(notes) {}

  Parsed<std::vector<Given>> Read() {
    while (next_ < words_.size()) {
      const Piece& word = words_[next_++];
      Parsed<bool> read = true;
      if (word.text == "--") {
        if (next_ < words_.size()) read = NoOption(words_[next_++]);
      } else if (word.text.starts_with("--")) {
        read = Long(word);
      } else if (word.text.size() > 1 && word.text.front() == '-') {
        read = Short(word);
      } else {
        read = NoOption(word);
      }
      if (!read) return std::unexpected(read.error());
    }
    return std::move(given_);
  }

 private:
  std::unexpected<Refusal> Refuse(const Piece& word, std::string reason, std::string message) {
    const Place place = lines_.PlaceOf(word.begin_offset(), word.end);
    return std::unexpected(
        Refusal{place.line, place.column, std::move(reason), std::move(message)});
  }

  void Add(const Piece& word, std::string reason, std::string message) {
    notes_.push_back({lines_.PlaceOf(word.begin_offset(), word.end).line, std::move(reason),
                      std::move(message)});
  }

  Parsed<bool> NoOption(const Piece& word) {
    if (LooksTemplated(word.text)) {
      Add(word, "template", "what \"" + word.text + "\" becomes is not known");
      return true;
    }
    return Refuse(word, "invalid_directive",
                  "\"" + word.text + "\" is no option; sbatch takes no such directive");
  }

  Parsed<bool> Long(const Piece& word) {
    const std::size_t equals = word.text.find('=');
    const std::string name = word.text.substr(0, equals);
    const LongMatch match = FindLong(std::string_view(name).substr(2));
    if (!match.candidates.empty()) return Ambiguous(word, name, match);
    Given given{.option = match.option, .written = name, .at = word.begin_offset()};
    if (equals != std::string::npos) {
      given.has_value = true;
      given.value = word.From(equals + 1);
    }
    if (given.option == nullptr) return Unknown(word, std::move(given));
    if (given.option->argument == Argument::kNone && given.has_value)
      return Refuse(word, "unexpected_value", name + " takes no value");
    if (given.option->argument == Argument::kRequired && !given.has_value)
      return TakeNext(word, std::move(given));
    given_.push_back(std::move(given));
    return true;
  }

  Parsed<bool> Ambiguous(const Piece& word, const std::string& name, const LongMatch& match) {
    std::string all;
    for (const std::string_view candidate : match.candidates)
      all.append(all.empty() ? "--" : ", --").append(candidate);
    return Refuse(word, "ambiguous_option", name + " could be any of " + all);
  }

  // A site's plugin may have added it. What follows on its line is its value, if it is no option.
  Parsed<bool> Unknown(const Piece& word, Given given) {
    if (LooksTemplated(given.written)) {
      Add(word, "template", "what \"" + word.text + "\" becomes is not known");
      return true;
    }
    Add(word, "unknown_option",
        given.written + " is no option of sbatch; a plugin of the cluster may know it");
    if (!given.has_value && next_ < words_.size() && !words_[next_].text.starts_with('-') &&
        LineOf(words_[next_]) == LineOf(word)) {
      given.has_value = true;
      given.value = words_[next_++];
    }
    given_.push_back(std::move(given));
    return true;
  }

  Parsed<bool> Short(const Piece& word) {
    for (std::size_t i = 1; i < word.text.size(); ++i) {
      const char letter = word.text[i];
      const Option* option = FindShort(letter);
      Given given{.option = option,
                  .written = std::string("-") + letter,
                  .at = i == 1 ? word.begin_offset() : word.at[i]};
      if (option == nullptr) {
        if (LooksTemplated(word.text)) return NoOption(word);
        return Refuse(word, "invalid_directive",
                      "-" + std::string(1, letter) + " is no option of sbatch");
      }
      if (option->argument == Argument::kNone) {
        given_.push_back(std::move(given));
        continue;
      }
      if (i + 1 < word.text.size()) {
        given.has_value = true;
        given.value = word.From(i + 1);
      } else if (option->argument == Argument::kRequired) {
        return TakeNext(word, std::move(given));
      }
      given_.push_back(std::move(given));
      return true;
    }
    return true;
  }

  Parsed<bool> TakeNext(const Piece& word, Given given) {
    if (next_ == words_.size())
      return Refuse(word, "missing_value", given.written + " needs a value");
    given.has_value = true;
    given.value = words_[next_++];
    given_.push_back(std::move(given));
    return true;
  }

  std::uint32_t LineOf(const Piece& word) const {
    return lines_.PlaceOf(word.begin_offset(), word.end).line;
  }

  const std::vector<Piece>& words_;
  const LineIndex& lines_;
  std::vector<Note>& notes_;
  std::vector<Given> given_;
  std::size_t next_ = 0;
};

}  // namespace

Parsed<std::vector<Given>> ReadArguments(const Component& component, const LineIndex& lines,
                                         std::vector<Note>& notes) {
  return Reader(component, lines, notes).Read();
}

}  // namespace expanse::workload::sbatch
