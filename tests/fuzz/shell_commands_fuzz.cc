// Scripts are users' files, often broken and full of templates. Whatever the bytes, commands stand
// where their places say, have a first word, and are not more than the script can have said.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "workload/line_index.h"
#include "workload/source/shell_commands.h"

using namespace expanse::workload;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t begin = std::min<std::size_t>(data[0] % 16U, text.size());
  const source::ShellScript script = source::ReadShellScript(text, {.begin = begin});
  const LineIndex lines(text);
  std::size_t bytes = 0;
  for (const Command& command : script.commands) {
    if (command.words.empty()) std::abort();
    const Place& place = command.place;
    if (place.begin < begin || place.end > text.size() || place.begin > place.end) std::abort();
    if (place != lines.PlaceOf(place.begin, place.end)) std::abort();
    for (const Word& word : command.words) bytes += word.text.size();
  }
  // What expansions may add, and what functions may repeat.
  if (bytes > (std::size_t{4} << 20) + 40 * text.size()) std::abort();
  return 0;
}
