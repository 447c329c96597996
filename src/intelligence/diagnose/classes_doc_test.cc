// The table of classes in docs/diagnosis.md is what the runbooks say.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/files.h"
#include "intelligence/diagnose/runbook_set.h"

namespace expanse::intelligence::diagnose {
namespace {

constexpr std::string_view kMarker = "<!-- generated:";

std::string ClassesMarkdown() {
  std::string text;
  std::string family;
  for (const Runbook& runbook : RunbookSet::Embedded()) {
    if (runbook.family != family) {
      family = runbook.family;
      text += fmt::format(
          "\n### {}\n\n| class | kind | owner | means |\n| --- | --- | --- | --- |\n", family);
    }
    text += fmt::format("| `{}` | {} | {} | {} |\n", runbook.id, Name(runbook.kind),
                        Name(runbook.owner), runbook.title);
  }
  return text;
}

TEST(ClassesDocumentation, IsCurrent) {
  const std::string path = EXPANSE_SOURCE_DIR "/../../docs/diagnosis.md";
  const auto read = base::ReadFile(path);
  ASSERT_TRUE(read) << read.error().message;
  const std::size_t marker = read->find(kMarker);
  ASSERT_NE(marker, std::string::npos);
  const std::size_t end = read->find('\n', marker) + 1;
  if (std::getenv("EXPANSE_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(base::WriteFileAtomically(path, read->substr(0, end) + ClassesMarkdown(), 0644));
    return;
  }
  EXPECT_EQ(read->substr(end), ClassesMarkdown())
      << "run this program with EXPANSE_UPDATE_GOLDEN=1";
}

}  // namespace
}  // namespace expanse::intelligence::diagnose
