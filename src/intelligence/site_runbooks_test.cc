#include "intelligence/site_runbooks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "base/files.h"
#include "intelligence/intelligence_testing.h"
#include "intelligence/runbook_service.h"

namespace expanse::intelligence {
namespace {

using testing::HasSubstr;

std::string One(const std::string& id, const std::string& pattern, const std::string& sample) {
  return "- id: " + id + "\n  title: Title of " + id + "\n  what: it failed.\n  signatures: ['" +
         pattern + "']\n  must_match: ['" + sample + "']\n";
}

class SiteRunbooksTest : public testing::Test {
 protected:
  void SetUp() override {
    auto dir = base::TempDir::Create("expanse-runbooks");
    ASSERT_TRUE(dir);
    dir_.emplace(std::move(*dir));
  }
  void Open(const std::string& directory) {
    auto opened = SiteRunbooks::Create(directory, std::chrono::seconds(5), clock_, metrics_);
    ASSERT_TRUE(opened) << opened.error().message;
    site_ = std::move(*opened);
  }
  std::string Path(const std::string& name) const { return base::JoinPath(dir_->path(), name); }
  void Write(const std::string& name, const std::string& text) {
    const auto written = base::WriteFileAtomically(Path(name), text, 0644);
    ASSERT_TRUE(written) << written.error().message;
  }
  bool Has(const std::string& id) { return site_->Current().set->Find(id) != nullptr; }
  std::string Error() { return site_->Current().site_error; }
  double Failures() {
    return metrics_.GetCounter("expanse_site_runbook_failures_total", "").value();
  }

  base::FakeClock clock_;
  base::MetricRegistry metrics_;
  std::optional<base::TempDir> dir_;
  std::unique_ptr<SiteRunbooks> site_;
};

TEST_F(SiteRunbooksTest, WithoutADirectoryThereAreThoseOfTheProgram) {
  Open("");
  EXPECT_TRUE(Has("host_out_of_memory"));
  EXPECT_EQ(site_->Current().version, "embedded");
  EXPECT_FALSE(site_->Reload());
  site_->Start();
  site_->Stop();
}

TEST_F(SiteRunbooksTest, ReadsChangesAndForgetsWhatIsGone) {
  Open(dir_->path());
  EXPECT_EQ(site_->Current().version, "embedded");
  Write("a.yaml", One("site_a", "LM-\\d+", "LM-7"));
  Write(".hidden.yaml", "no runbook");
  Write("notes.txt", "no runbook");
  EXPECT_TRUE(site_->Reload());
  EXPECT_TRUE(Has("site_a"));
  EXPECT_TRUE(Has("host_out_of_memory"));
  EXPECT_EQ(Error(), "");
  const std::string version = site_->Current().version;
  EXPECT_NE(version, "embedded");
  EXPECT_FALSE(site_->Reload());
  Write("a.yaml", One("site_b", "LM-\\d+", "LM-7"));
  EXPECT_TRUE(site_->Reload());
  EXPECT_FALSE(Has("site_a"));
  EXPECT_TRUE(Has("site_b"));
  EXPECT_NE(site_->Current().version, version);
  ASSERT_TRUE(base::RemoveFile(Path("a.yaml")));
  EXPECT_TRUE(site_->Reload());
  EXPECT_FALSE(Has("site_b"));
  EXPECT_EQ(site_->Current().version, "embedded");
}

TEST_F(SiteRunbooksTest, WhatIsBadLeavesTheLastGoodOnes) {
  Write("a.yaml", One("site_a", "LM-\\d+", "LM-7"));
  Open(dir_->path());
  const std::string version = site_->Current().version;
  for (const auto& [text, said] :
       {std::pair(std::string("- id: x\n  colour: red\n"), "b.yaml:2: unknown key 'colour'"),
        std::pair(One("site_b", "LM-(", "LM-7"), "b.yaml:"),
        std::pair(One("site_b", "LM-7", "nothing of it"), "no signature matches"),
        std::pair(std::string("- ["), "b.yaml:")}) {
    Write("b.yaml", text);
    EXPECT_TRUE(site_->Reload());
    EXPECT_THAT(Error(), HasSubstr(said));
    EXPECT_THAT(Error(), HasSubstr(Path("b.yaml")));
    EXPECT_TRUE(Has("site_a"));
    EXPECT_EQ(site_->Current().version, version);
    EXPECT_FALSE(site_->Reload()) << "said once";
  }
  EXPECT_EQ(Failures(), 4);
  RunbookService service(*site_);
  EXPECT_NE(service.ListRunbooks(UserCall(), {})->site_error(), "");
  Write("b.yaml", One("site_b", "LM-7", "LM-7"));
  EXPECT_TRUE(site_->Reload());
  EXPECT_EQ(Error(), "");
  EXPECT_TRUE(Has("site_b"));
}

TEST_F(SiteRunbooksTest, ReplacesOneOfTheProgramAndSaysWhereItIsFrom) {
  Write("a.yaml", One("port_in_use", "PORT TAKEN", "PORT TAKEN 80"));
  Open(dir_->path());
  ASSERT_EQ(Error(), "");
  RunbookService service(*site_);
  v1::GetRunbookRequest request;
  request.set_id("port_in_use");
  const auto shown = service.GetRunbook(UserCall(), request);
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->summary().origin(), Path("a.yaml"));
  EXPECT_EQ(shown->summary().title(), "Title of port_in_use");
  EXPECT_EQ(shown->yaml(), One("port_in_use", "PORT TAKEN", "PORT TAKEN 80"));
}

TEST_F(SiteRunbooksTest, ADirectoryThatCannotBeUsedIsSaid) {
  Open(Path("none"));
  EXPECT_TRUE(Has("host_out_of_memory"));
  EXPECT_THAT(Error(), HasSubstr("none"));
  EXPECT_FALSE(site_->Reload());
  ASSERT_EQ(::mkdir(Path("none").c_str(), 0755), 0);
  EXPECT_TRUE(site_->Reload());
  EXPECT_EQ(Error(), "");
}

TEST_F(SiteRunbooksTest, IsBoundedAndReadsPlainFilesOnly) {
  ASSERT_EQ(::mkfifo(Path("pipe.yaml").c_str(), 0644), 0);
  ASSERT_EQ(::symlink("/nowhere/at/all", Path("link.yaml").c_str()), 0);
  Open(dir_->path());
  EXPECT_EQ(Error(), "");
  const std::string large(SiteRunbooks::kMostBytes / 2, '#');
  for (const char* name : {"a.yaml", "b.yaml", "c.yaml"}) Write(name, large);
  EXPECT_TRUE(site_->Reload());
  EXPECT_THAT(Error(), HasSubstr("more than"));
}

TEST_F(SiteRunbooksTest, LooksByItselfWhenStarted) {
  Open(dir_->path());
  site_->Start();
  Write("a.yaml", One("site_a", "LM-7", "LM-7"));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!Has("site_a") && std::chrono::steady_clock::now() < deadline) {
    clock_.Advance(std::chrono::seconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(Has("site_a"));
  site_->Stop();
}

}  // namespace
}  // namespace expanse::intelligence
