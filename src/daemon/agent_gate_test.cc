#include "daemon/agent_gate.h"

#include <gtest/gtest.h>

#include "base/files.h"

namespace expanse::daemon {
namespace {

class AgentGateTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(base::MakeDirectories(options_.run_directory + "/agent", 0755));
    ASSERT_TRUE(base::MakeDirectories(options_.prefix + "/lib", 0755));
  }
  bool Is(const std::string& name) const {
    return base::Exists(options_.run_directory + "/agent/" + name);
  }
  base::TempDir temp_ = *base::TempDir::Create("gate");
  AgentGateOptions options_{.prefix = temp_.path() + "/srv",
                            .run_directory = temp_.path() + "/run"};
};

TEST_F(AgentGateTest, OpensAndClosesWithTheLibrary) {
  const std::string library = options_.prefix + "/lib/libexpanse-capture.so";
  EXPECT_TRUE(UpdateAgentGate(options_));
  EXPECT_FALSE(Is("ready"));
  ASSERT_TRUE(base::MakeDirectories(library, 0755));  // not a file
  EXPECT_TRUE(UpdateAgentGate(options_));
  EXPECT_FALSE(Is("ready"));
  ASSERT_TRUE(base::RemoveTree(library));
  ASSERT_TRUE(base::WriteFileAtomically(library, "x", 0755));
  EXPECT_TRUE(UpdateAgentGate(options_));
  EXPECT_TRUE(Is("ready"));
  EXPECT_FALSE(Is("disabled"));
  ASSERT_TRUE(base::RemoveFile(library));
  EXPECT_TRUE(UpdateAgentGate(options_));
  EXPECT_FALSE(Is("ready"));
}

TEST_F(AgentGateTest, CanBeSwitchedOffAndOnAgain) {
  options_.enabled = false;
  EXPECT_TRUE(UpdateAgentGate(options_));
  EXPECT_TRUE(Is("disabled"));
  options_.enabled = true;
  EXPECT_TRUE(UpdateAgentGate(options_));
  EXPECT_FALSE(Is("disabled"));
}

TEST_F(AgentGateTest, SaysWhenItCannotBeSet) {
  ASSERT_TRUE(base::RemoveTree(options_.run_directory));
  options_.enabled = false;
  EXPECT_FALSE(UpdateAgentGate(options_));
}

}  // namespace
}  // namespace expanse::daemon
