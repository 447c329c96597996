// Assignments lie on a file system that many hosts write to. What is taken of them is written the
// same way again, and is never root's.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/crypto.h"
#include "schedulers/slurm/files/assignment.h"

using namespace expanse;
using namespace expanse::schedulers::slurm;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view raw(reinterpret_cast<const char*>(data), size);
  (void)ParseAssignments(raw, "cn07");
  // With an end that fits, or the fuzzer would never get past it.
  std::string body = "expanse-assign 1\nhost cn07\n" + std::string(raw);
  if (!body.ends_with('\n')) body += '\n';
  std::size_t lines = 0;
  for (const char c : body) lines += c == '\n' ? 1 : 0;
  const auto parsed = ParseAssignments(
      body + fmt::format("end {} {:08x}\n", lines - 2, base::Crc32c(body)), "cn07");
  if (!parsed) return 0;
  for (const Assignment& job : *parsed)
    if (job.job_id == 0 || job.uid == 0) std::abort();
  const auto again = ParseAssignments(EncodeAssignments("cn07", *parsed), "cn07");
  if (!again || *again != *parsed) std::abort();
  return 0;
}
