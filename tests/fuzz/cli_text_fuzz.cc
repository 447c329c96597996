// What the command line reads from outside: the session file, a compute's identity file, a sign-in
// link, its own arguments. No crash; what is taken is written and read back the same; what is shown
// is safe on a terminal.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/parse.h"
#include "cli/session.h"
#include "cli/sign_in_link.h"
#include "cli/table.h"
#include "net/compute_identity.h"

using namespace expanse;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto session = cli::DecodeSession(text)) {
    const auto again = cli::DecodeSession(cli::EncodeSession(*session));
    EXPANSE_CHECK(again.has_value());
    EXPANSE_CHECK(again->refresh_token == session->refresh_token);
  }
  if (const auto identity = net::DecodeComputeIdentity(text)) {
    EXPANSE_CHECK(net::DecodeComputeIdentity(net::EncodeComputeIdentity(*identity)) == *identity);
  }
  if (const auto link = cli::ParseSignInLink(text)) {
    EXPANSE_CHECK(!link->token.empty() && text.find(link->token) != std::string_view::npos);
  }
  std::vector<std::string> words;
  for (std::string_view word : base::Split(text, '\n')) words.emplace_back(word);
  const auto parsed = cli::Parse(cli::RootCommand(), words, {});
  if (!parsed) {
    EXPANSE_CHECK(parsed.error().error.code == base::Code::kInvalidArgument);
    EXPANSE_CHECK(parsed.error().error.message.find('\x1b') == std::string::npos);
  }
  cli::Table table({{.header = "A", .least = 3}, {.header = "B"}});
  table.Add({std::string(text.substr(0, 512)), "b"});
  const std::string shown = table.Render({.width = 20});
  EXPANSE_CHECK(base::IsValidUtf8(shown) && shown.find('\x1b') == std::string::npos);
  return 0;
}
