// squeue's output. However it is cut into chunks the same rows come out, a row that comes out is
// read the same again, and text that jobs' owners write comes out byte by byte.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "schedulers/slurm/commands/squeue.h"

using namespace expanse::schedulers::slurm;

namespace {

constexpr std::string_view kSeparator = "~AbCdEfGh";

std::vector<std::string> Rows(std::string_view output, std::size_t chunk) {
  std::vector<std::string> rows;
  QueueReader reader(std::string(kSeparator),
                     [&](const QueueRow& row) { rows.emplace_back(row.bytes); });
  for (; !output.empty(); output.remove_prefix(std::min(chunk, output.size()))) {
    reader.Feed(output.substr(0, chunk));
  }
  EXPANSE_CHECK(reader.rows() == rows.size());
  return rows;
}

// `text` as the name of a job whose row is otherwise sound.
void CheckName(std::string_view text) {
  if (text.find(kSeparator) != std::string_view::npos) return;
  std::string line;
  for (std::size_t i = 0; i < kQueueFields; ++i) {
    const auto field = static_cast<QueueField>(i);
    if (field == QueueField::kJobId) line += "7";
    if (field == QueueField::kName) line += text;
    if (field == QueueField::kState) line += "RUNNING";
    line += kSeparator;
  }
  const auto rows = Rows(line + "\n", 11);
  // A separator that begins in the name may end in the real one behind it.
  if ((std::string(text) + std::string(kSeparator)).find(kSeparator) != text.size()) return;
  EXPANSE_CHECK(rows.size() == 1);
  const auto job = ParseQueueRow(rows[0], "c");
  EXPANSE_CHECK(job && job->execution.native_state == "RUNNING");
  EXPANSE_CHECK(job->execution.name == (text == "(null)" ? "" : text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 16384) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto rows = Rows(text, 1U << 16);
  EXPANSE_CHECK(rows == Rows(text, 7));
  for (const std::string& row : rows) {
    const auto job = ParseQueueRow(row, "c");
    EXPANSE_CHECK(job && job->job_id != 0);
    if (const auto key = KeyOf(*job)) EXPANSE_CHECK(ParseIdentity(key->identity).has_value());
    EXPANSE_CHECK(job->execution.nodes.size() <= 200'000);
  }
  (void)ParseQueueRow(text, "c");
  CheckName(text);
  return 0;
}
