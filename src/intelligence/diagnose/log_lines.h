// A log as lines worth matching: split, stripped of what is not the message, equal ones collapsed.
// Linear in the text, memory bounded whatever it holds (a gigabyte without a newline, millions of
// lines that differ, terminal escapes, NULs). Views into the text that was given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace expanse::intelligence::diagnose {

struct LogLine {
  std::string_view raw;     // the exact bytes of the line, without its newline
  std::string message;      // without escapes, stamps and rank prefixes; at most kMaxMessage bytes
  std::size_t number = 0;   // line within the text, from 1
  std::size_t last = 0;     // number of the last line with an equal message
  std::uint32_t count = 1;  // lines with an equal message
  std::optional<std::uint32_t> rank;
  std::string node;   // as a prefix named it
  std::string stamp;  // the time stamp as printed; empty: none
};

inline constexpr std::size_t kMaxMessage = 4096;

// The text that is read of a longer log: from its beginning a quarter, the rest from its end.
inline constexpr std::size_t kMaxLogText = std::size_t{32} << 20;

struct Reduced {
  std::vector<LogLine> lines;   // distinct messages, in order of first appearance
  std::size_t total_lines = 0;  // of the text
  std::size_t dropped = 0;      // distinct messages beyond `most`; those at the end are kept
};

// Of a line that is longer than kMaxMessage the beginning and the end are matched. What a carriage
// return has overwritten on a terminal (progress bars) is dropped but for the last state. Messages
// that differ in numbers only are one template: kept are the first kPerTemplate of each and the
// last; `count` adds up.
Reduced ReduceLog(std::string_view text, std::size_t most = 20'000);

// The message within one line: without ANSI escapes, leading time stamps, log levels' decoration
// and the prefixes of launchers ("[rank3]:", "[1,3]<stderr>:", srun -l's "3: ", "node01: "), which
// go to `line`.
void StripLine(std::string_view raw, LogLine* line);

// The same without copies: views into `space`, which is overwritten.
struct Stripped {
  std::string_view message;
  std::optional<std::uint32_t> rank;
  std::string_view node;
  std::string_view stamp;
};
Stripped Strip(std::string_view raw, std::string* space);

}  // namespace expanse::intelligence::diagnose
