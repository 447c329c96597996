// The text that `scontrol show` prints: records of Key=value, several to a line, or one line a
// record (--oneliner). Values are not quoted; free text (the reason of a node) may hold spaces and
// even what looks like another key. So only keys of a given list begin a value, and of a key that
// is there twice the first counts.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace expanse::schedulers::slurm {

// Views into the text that it was made from.
class ScontrolRecord {
 public:
  // `keys` are the keys that begin a value; others are part of the value before them.
  ScontrolRecord(std::string_view text, std::span<const std::string_view> keys);

  // Of the first occurrence of `key`; absent where the record does not have it, and for the words
  // that mean nothing: "(null)", "N/A", "n/s".
  std::optional<std::string_view> Get(std::string_view key) const;
  // The same, empty where absent.
  std::string_view Text(std::string_view key) const {
    return Get(key).value_or(std::string_view());
  }

 private:
  void AddLine(std::string_view line, std::span<const std::string_view> keys);
  std::vector<std::pair<std::string_view, std::string_view>> values_;
};

// The records of `text`: each begins with a line that starts with `head` ("NodeName="). At most
// `most` of them; what comes before the first is left out.
std::vector<std::string_view> SplitRecords(std::string_view text, std::string_view head,
                                           std::size_t most);

}  // namespace expanse::schedulers::slurm
