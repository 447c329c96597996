#include "schedulers/slurm/outgoing.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace expanse::schedulers::slurm {
namespace {

// Takes what it may, in batches.
class LimitedSink final : public EvidenceSink {
 public:
  base::Status Emit(evidence::Payload payload, base::WallTime) override {
    const auto& key = std::get<evidence::ExecutionObservation>(payload).key.identity;
    if (key == poison)
      return base::Fail(base::Code::kInvalidArgument, "evidence.too_large", "too large");
    if (room == 0) return base::Fail(base::Code::kResourceExhausted, "outbox.full", "full");
    --room;
    taken.push_back(key);
    return {};
  }
  std::size_t room = 0;
  std::string poison = "none";
  std::vector<std::string> taken;
};

void Add(Outgoing& outgoing, int from, int to) {
  for (int i = from; i < to; ++i)
    outgoing.Add(evidence::ExecutionObservation{{evidence::SourceType::kSlurm, std::to_string(i)},
                                                evidence::Execution{}});
}

TEST(Outgoing, KeepsWhatIsRefusedAndItsOrder) {
  Outgoing outgoing;
  LimitedSink sink;
  Add(outgoing, 0, 1200);
  sink.room = 700;
  EXPECT_FALSE(outgoing.Flush(sink, {}));
  EXPECT_EQ(outgoing.size(), 500U);
  EXPECT_EQ(outgoing.error().reason, "outbox.full");
  Add(outgoing, 1200, 1300);
  sink.room = 5000;
  EXPECT_TRUE(outgoing.Flush(sink, {}));
  EXPECT_EQ(outgoing.error().reason, "");
  ASSERT_EQ(sink.taken.size(), 1300U);
  for (int i = 0; i < 1300; ++i) EXPECT_EQ(sink.taken[std::size_t(i)], std::to_string(i));
  EXPECT_EQ(outgoing.sent(), 1300U);
}

TEST(Outgoing, LeavesOutWhatCanNeverBeTaken) {
  Outgoing outgoing;
  LimitedSink sink;
  sink.room = 100;
  sink.poison = "3";
  Add(outgoing, 0, 6);
  EXPECT_TRUE(outgoing.Flush(sink, {}));
  EXPECT_EQ(sink.taken, (std::vector<std::string>{"0", "1", "2", "4", "5"}));
  EXPECT_EQ(outgoing.refused(), 1U);
}

}  // namespace
}  // namespace expanse::schedulers::slurm
