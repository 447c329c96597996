// What sacct prints comes from a database that users write into. However the output is cut into
// pieces, the runs read from it are the same, and each is a record that the data plane takes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/wire.h"
#include "schedulers/slurm/commands/sacct.h"

using namespace expanse;
using namespace expanse::schedulers::slurm;

namespace {

// Short, so that inputs are.
constexpr std::string_view kSeparator = "\x1f|";

// All columns, or those without which nothing is reached.
SacctFormat FormatOf(std::uint8_t choice) {
  if (choice % 2 == 0) return SacctFormat::Full();
  return *SacctFormat::FromHelp(
      "JobID DBIndex State ExitCode Submit Start End AllocTRES NodeList NTasks MaxRSS "
      "TRESUsageInTot SubmitLine JobIDRaw");
}

std::vector<std::string> Read(const SacctFormat& format, std::string_view text, std::size_t piece) {
  std::vector<std::string> records;
  SacctReader reader(
      format, std::string(kSeparator), {.cluster = "c", .max_steps = 8}, [&](Job run) {
        const auto key = KeyOf(run);
        if (!key) std::abort();
        records.push_back(evidence::Encode(
            {.sequence = 1,
             .observed_at = base::WallTime(std::chrono::seconds(1'800'000'000)),
             .payload = evidence::ExecutionObservation{*key, std::move(run.execution)}}));
      });
  while (!text.empty()) {
    reader.Feed(text.substr(0, piece));
    text.remove_prefix(std::min(piece, text.size()));
  }
  reader.Finish(/*whole=*/true);
  return records;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const SacctFormat format = FormatOf(data[0]);
  const std::size_t piece = data[1] % 64U + 1;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto whole = Read(format, text, text.size() + 1);
  if (Read(format, text, piece) != whole) std::abort();
  for (const std::string& record : whole) {
    if (const auto decoded = evidence::Decode(record, base::WallTime::max()); !decoded) {
      std::fprintf(stderr, "refused: %s\n", decoded.error().message.c_str());
      std::abort();
    }
  }
  return 0;
}
