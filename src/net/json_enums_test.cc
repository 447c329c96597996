#include "net/json_enums.h"

#include <gtest/gtest.h>

#include "expanse/data/v1/ingest_service.pb.h"
#include "expanse/data/v1/query_service.pb.h"

namespace expanse::net {
namespace {

base::Status CheckList(std::string_view json) {
  return CheckEnumNames(json, *data::v1::ListExecutionsRequest::descriptor());
}

TEST(JsonEnums, AcceptsKnownNamesNumbersAndUnknownFields) {
  EXPECT_TRUE(CheckList(R"({"status": "EXECUTION_STATUS_FAILED", "outcome": 2})").has_value());
  EXPECT_TRUE(CheckList(R"({"pageSize": 3, "source_type": null, "added_later": {"status": "NEW"}})")
                  .has_value());
}

TEST(JsonEnums, RefusesANameThatIsNoValue) {
  const auto status = CheckList(R"({"status": "EXECUTION_STATUS_SIDEWAYS"})");
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, base::Code::kInvalidArgument);
  EXPECT_NE(status.error().message.find("status: \"EXECUTION_STATUS_SIDEWAYS\""),
            std::string::npos);
  EXPECT_FALSE(CheckList(R"({"sourceType": "slurm"})").has_value());
}

TEST(JsonEnums, LooksIntoRepeatedAndNestedMessages) {
  const auto status =
      CheckEnumNames(R"({"rows": [{"status": "HEALTH_STATUS_OK"}, {"status": "FINE"}]})",
                     *data::v1::ReportHealthRequest::descriptor());
  ASSERT_FALSE(status.has_value());
  EXPECT_NE(status.error().message.find("rows[1].status"), std::string::npos);
}

}  // namespace
}  // namespace expanse::net
