#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>

#include "evidence/wire.h"
#include "expanse/data/v1/ingest_service.pb.h"

namespace expanse::evidence {
namespace {

namespace pb = data::v1;
using std::chrono::seconds;

const base::WallTime kNow{seconds(1'800'000'000)};
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

HealthReport Report() {
  HealthReport report;
  report.daemon_version = "0.1.0";
  report.node = "n01";
  report.started_at = kNow - seconds(60);
  report.rows = {{.collector = "cgroup",
                  .status = HealthStatus::kDegraded,
                  .reason = "no_permission",
                  .message = "cannot read memory.peak\nsampled instead",
                  .checked_at = kNow,
                  .figures = {{"lag_s", 1.5}}}};
  return report;
}

TEST(WireHealth, BringsAReportBack) {
  pb::ReportHealthRequest message;
  ToProto(Report(), &message);
  const auto back = FromProto(message, kNow);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->daemon_version, "0.1.0");
  EXPECT_EQ(back->node, "n01");
  EXPECT_EQ(back->started_at, kNow - seconds(60));
  ASSERT_EQ(back->rows.size(), 1U);
  EXPECT_EQ(back->rows[0].collector, "cgroup");
  EXPECT_EQ(back->rows[0].status, HealthStatus::kDegraded);
  EXPECT_EQ(back->rows[0].reason, "no_permission");
  EXPECT_EQ(back->rows[0].message, Report().rows[0].message);
  EXPECT_EQ(back->rows[0].checked_at, kNow);
  EXPECT_EQ(back->rows[0].figures, Report().rows[0].figures);
}

TEST(WireHealth, LeavesOutFiguresThatAreNotFinite) {
  HealthReport report = Report();
  report.rows[0].figures = {{"nan", kNaN}, {"inf", kInfinity}, {"ok", 1}};
  pb::ReportHealthRequest message;
  ToProto(report, &message);
  EXPECT_EQ(message.rows(0).figures().size(), 1U);
  (*message.mutable_rows(0)->mutable_figures())["nan"] = kNaN;
  const auto back = FromProto(message, kNow);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->rows[0].figures, (std::map<std::string, double>{{"ok", 1}}));
}

TEST(WireHealth, RefusesTooMuch) {
  pb::ReportHealthRequest message;
  ToProto(Report(), &message);
  for (int i = 0; i < 300; ++i) *message.add_rows() = message.rows(0);
  EXPECT_EQ(FromProto(message, kNow).error().reason, "evidence.too_large");
  ToProto(Report(), &message);
  message.mutable_rows(0)->set_message(std::string(5000, 'x'));
  EXPECT_EQ(FromProto(message, kNow).error().reason, "evidence.too_large");
  ToProto(Report(), &message);
  for (int i = 0; i < 100; ++i)
    (*message.mutable_rows(0)->mutable_figures())[std::to_string(i)] = 1;
  EXPECT_EQ(FromProto(message, kNow).error().reason, "evidence.too_large");
  ToProto(Report(), &message);
  message.clear_node();
  EXPECT_EQ(FromProto(message, kNow).error().reason, "evidence.malformed");
}

}  // namespace
}  // namespace expanse::evidence
