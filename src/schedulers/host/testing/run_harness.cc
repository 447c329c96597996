// `expanse run` without the rest of the command line: run_harness [--memory SIZE] [--walltime T]
// [--grace T] [--no-capture] [--no-sources] [--comment TEXT] [--spool DIR] -- COMMAND…
#include <cstdio>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/time.h"
#include "schedulers/host/run.h"

int main(int argc, char** argv) {
  expanse::schedulers::host::RunOptions options;
  int i = 1;
  for (; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--no-capture") {
      options.capture_output = false;
    } else if (flag == "--no-sources") {
      options.capture_sources = false;
    } else if (i + 1 < argc) {
      const std::string value = argv[++i];
      if (flag == "--memory") options.memory_limit = expanse::base::ParseBytes(value).value();
      if (flag == "--walltime") options.walltime = expanse::base::ParseDuration(value).value();
      if (flag == "--grace") options.grace = expanse::base::ParseDuration(value).value();
      if (flag == "--comment") options.comment = value;
      if (flag == "--spool") options.spool_directory = value;
    }
  }
  for (++i; i < argc; ++i) options.command.emplace_back(argv[i]);
  const auto code = expanse::schedulers::host::RunCommand(options);
  if (code) return *code;
  std::fprintf(stderr, "refused: %s\n", code.error().reason.c_str());
  return 1;
}
