// Variables of a script while it is read: what is known of each at this point, given the branches
// and loops that may or may not have run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workload/source/shell_lexer.h"

namespace expanse::workload::source {

class ShellVariables {
 public:
  // A branch may or may not run; a subshell keeps its changes to itself.
  enum class Block : std::uint8_t { kPlain, kBranches, kSubshell };

  // Null where nothing is known, which includes everything that the script never set.
  const ShellValue* Find(std::string_view name) const;
  bool WasChanged(std::string_view name) const { return values_.contains(name); }
  void Set(std::string_view name, ShellValue value);
  void Append(std::string_view name, ShellValue value, bool array);
  void Forget(std::string_view name);  // from now on the value is unknown

  void Open(Block block);
  void NextBranch();  // else, ;;
  void Close();
  // Names that were changed since the innermost block was opened.
  std::vector<std::string> Changed() const;

 private:
  struct Change {
    std::string name;
    std::optional<ShellValue> before;
    bool had = false;      // there was an entry before
    bool differs = false;  // after some branch
  };
  struct Opened {
    Block block = Block::kPlain;
    std::vector<Change> changes;
    std::map<std::string, std::size_t, std::less<>> index;
  };

  void Remember(std::string_view name);
  void Restore(const Change& change);
  bool Differs(const Change& change) const;

  // An entry without value is known to be unknown.
  std::map<std::string, std::optional<ShellValue>, std::less<>> values_;
  std::vector<Opened> open_;
  std::size_t copied_ = 0;
};

}  // namespace expanse::workload::source
