#include "evidence/wire.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "base/text.h"
#include "expanse/data/v1/evidence.pb.h"
#include "expanse/data/v1/execution.pb.h"

namespace expanse::evidence {
namespace {

namespace pb = data::v1;
using std::chrono::microseconds;
using std::chrono::seconds;

const base::WallTime kNow{seconds(1'800'000'000)};
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const std::string kBroken = "caf\xe9|\"\n\xff";  // Latin-1, a pipe, a quote, a newline

Execution FullExecution() {
  Execution e;
  e.execution_id = "0193a8b2-0000-8000-8000-000000000001";
  e.compute_id = "0193a8b2-0000-7000-8000-000000000002";
  e.source_type = SourceType::kSlurm;
  e.native_id = "51234_7";
  e.parent_native_id = "51234";
  e.restart_count = 2;
  e.name = "sweep";
  e.user = "grace";
  e.account = "physics";
  e.queue = "short";
  e.qos = "normal";
  e.comment = "second try";
  e.working_directory = "/home/grace";
  e.command = {"python3", "-m", "sweep", ""};
  e.nodes = {"n01", "n02"};
  e.labels = {{"app", "sweep"}, {"", "empty key"}};
  e.lossy_text = true;
  e.status = ExecutionStatus::kFailed;
  e.outcome = Outcome::kOutOfMemory;
  e.native_state = "OUT_OF_MEMORY";
  e.native_reason = "None";
  e.exit_code = 137;
  e.signal = 9;
  e.submitted_at = kNow - seconds(100);
  e.started_at = kNow - seconds(90) + microseconds(1);
  e.ended_at = kNow - microseconds(1);
  e.eligible_at = kNow - seconds(95);
  e.expected_start_at = kNow + std::chrono::hours(24 * 40);
  e.suspended_s = 0;
  e.requested = {.cpu_cores = 1.5,
                 .memory_bytes = 1 << 30,
                 .gpu_count = 0,
                 .gpu_type = "l4",
                 .node_count = 2,
                 .task_count = 4,
                 .walltime_s = 3600,
                 .tres = "cpu=4,mem=1G"};
  e.allocated.cpu_cores = 2;
  e.used = {.cpu_s = 10.25,
            .cpu_user_s = 9,
            .cpu_system_s = 1.25,
            .memory_peak_bytes = 0,
            .memory_peak_basis = "cgroup_peak",
            .io_read_bytes = 1,
            .io_write_bytes = 2,
            .oom_kills = 1};
  e.steps = {{.id = "batch",
              .name = "batch",
              .status = ExecutionStatus::kFailed,
              .native_state = "OUT_OF_MEMORY",
              .exit_code = 0,
              .signal = 125,
              .started_at = kNow - seconds(90),
              .ended_at = kNow,
              .node_count = 1,
              .task_count = 1,
              .used = {.cpu_s = 1.5,
                       .cpu_user_s = 1,
                       .cpu_system_s = 0.5,
                       .memory_peak_bytes = 10,
                       .memory_peak_basis = "rss",
                       .io_read_bytes = 3,
                       .io_write_bytes = 0,
                       .oom_kills = {}},
              .memory_peak_task_bytes = 5,
              .tres_used = "cpu=00:00:01,mem=10"},
             {.id = "0"}};
  e.stdout_path = "/home/grace/out";
  e.stderr_path = "/home/grace/err";
  e.bundle_hash = "sha256:00";
  e.capture_notes = {"cgroup: no permission"};
  e.updated_at = kNow;
  return e;
}

Record WithPayload(Payload payload) {
  return {.sequence = 7, .observed_at = kNow - seconds(1), .payload = std::move(payload)};
}
ExecutionKey Key() { return {SourceType::kSlurm, "51234@1799999900+2"}; }
Record ExecutionRecord(Execution execution = FullExecution()) {
  return WithPayload(ExecutionObservation{Key(), std::move(execution)});
}

SampleBatch Samples() {
  SampleBatch batch;
  batch.key = Key();
  batch.times = {kNow - seconds(3), kNow - seconds(1), kNow - seconds(2)};
  batch.columns = {{.metric = "cpu",
                    .source = "cgroup",
                    .node = "n01",
                    .gpu_index = std::nullopt,
                    .gpu_uuid = "",
                    .attribution = "",
                    .unit = "cores",
                    .values = {0.5, -0.0, 1e300}},
                   {.metric = "gpu-util",
                    .source = "nvidia-smi",
                    .node = "n01",
                    .gpu_index = 0,
                    .gpu_uuid = "GPU-9",
                    .attribution = "exclusive",
                    .unit = "percent",
                    .values = {1, kNaN, 3}}};
  return batch;
}

LogTail Tail() {
  return {.key = Key(),
          .stream = "stderr",
          .data = std::string("a\0\xff", 3),
          .offset = 10,
          .total_bytes = 13,
          .first_error = "Traceback",
          .first_error_offset = 2,
          .redactions = 1};
}

SourceBundle Bundle() {
  SourceBundle bundle;
  bundle.key = Key();
  bundle.files = {{.path = "/home/grace/run\xe9.sh",
                   .role = "script",
                   .data = "#!/bin/sh\n",
                   .content_hash = std::string(64, 'a'),
                   .redactions = 2},
                  {.path = "sweep.py",
                   .role = "argument",
                   .data = "",
                   .content_hash = std::string(64, '0'),
                   .redactions = 0}};
  bundle.skipped = {{"weights\xfe.bin", "not text"}};
  return bundle;
}

template <typename T>
const T& PayloadOf(const base::Result<Record>& record) {
  return std::get<T>(record->payload);
}

TEST(Wire, BringsEveryFieldOfAnExecutionBack) {
  const auto back = Decode(Encode(ExecutionRecord()), kNow);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->sequence, 7U);
  EXPECT_EQ(back->observed_at, kNow - seconds(1));
  EXPECT_EQ(PayloadOf<ExecutionObservation>(back).key, Key());
  EXPECT_EQ(PayloadOf<ExecutionObservation>(back).execution, FullExecution());
}

TEST(Wire, KeepsUnknownApartFromZero) {
  Execution zero;
  zero.exit_code = 0;
  zero.used.oom_kills = 0;
  const auto back = Decode(Encode(ExecutionRecord(zero)), kNow);
  ASSERT_TRUE(back);
  EXPECT_EQ(PayloadOf<ExecutionObservation>(back).execution, zero);
  EXPECT_EQ(PayloadOf<ExecutionObservation>(back).execution.used.cpu_s, std::nullopt);
}

TEST(Wire, BringsTextThatIsNotUtf8BackByteExact) {
  Execution e = FullExecution();
  for (std::string* text :
       {&e.native_id, &e.parent_native_id, &e.name, &e.user, &e.account, &e.queue, &e.qos,
        &e.comment, &e.working_directory, &e.native_state, &e.native_reason, &e.stdout_path,
        &e.stderr_path, &e.requested.gpu_type, &e.requested.tres, &e.allocated.tres}) {
    *text = kBroken;
  }
  e.steps[0].name = kBroken;
  e.steps[1].tres_used = kBroken;
  e.command = {"ok", kBroken, "\xc3"};
  e.nodes = {kBroken};
  e.capture_notes = {kBroken, "fine"};
  e.labels = {{"plain", kBroken}, {kBroken, "value"}, {"odd]key", "\xff"}};
  pb::Execution message;
  ToProto(e, &message);
  EXPECT_TRUE(base::IsValidUtf8(message.name()));
  EXPECT_EQ(message.raw_bytes().at("command[1]"), kBroken);
  EXPECT_FALSE(message.raw_bytes().contains("command[0]"));
  pb::Execution parsed;
  ASSERT_TRUE(parsed.ParseFromString(message.SerializeAsString())) << "something is not UTF-8";
  const auto back = FromProto(parsed, kNow);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, e);
}

TEST(Wire, TellsLabelsApartThatLookTheSameOnceReplaced) {
  Execution e;
  e.labels = {
      {"k\xfe", "first"}, {"k\xff", "second"}, {"k\uFFFD", "third"}, {"k\uFFFD\uFFFD", "fourth"}};
  const auto back = Decode(Encode(ExecutionRecord(e)), kNow);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(PayloadOf<ExecutionObservation>(back).execution.labels, e.labels);
}

TEST(Wire, RefusesRawBytesThatContradictTheirText) {
  pb::Execution message;
  message.set_user("alice");
  (*message.mutable_raw_bytes())["user"] = "mallory";
  const auto back = FromProto(message, kNow);
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().reason, "evidence.malformed");
}

TEST(Wire, BringsSamplesBackWithGapsAndInAnyOrder) {
  const auto back = Decode(Encode(WithPayload(Samples())), kNow);
  ASSERT_TRUE(back) << back.error().message;
  const auto& batch = PayloadOf<SampleBatch>(back);
  EXPECT_EQ(batch.key, Key());
  EXPECT_EQ(batch.times, Samples().times);
  ASSERT_EQ(batch.columns.size(), 2U);
  EXPECT_EQ(batch.columns[0].values, Samples().columns[0].values);
  EXPECT_EQ(batch.columns[0].gpu_index, std::nullopt);
  EXPECT_EQ(batch.columns[1].gpu_index, 0U);
  EXPECT_EQ(batch.columns[1].gpu_uuid, "GPU-9");
  EXPECT_EQ(batch.columns[1].attribution, "exclusive");
  EXPECT_EQ(batch.columns[1].unit, "percent");
  EXPECT_TRUE(std::isnan(batch.columns[1].values[1]));
}

TEST(Wire, TakesInfinityForNoPoint) {
  SampleBatch batch = Samples();
  batch.columns[0].values = {kInfinity, -kInfinity, 1};
  const auto back = Decode(Encode(WithPayload(batch)), kNow);
  ASSERT_TRUE(back);
  EXPECT_TRUE(std::isnan(PayloadOf<SampleBatch>(back).columns[0].values[0]));
  EXPECT_TRUE(std::isnan(PayloadOf<SampleBatch>(back).columns[0].values[1]));
  EXPECT_EQ(PayloadOf<SampleBatch>(back).columns[0].values[2], 1);
}

TEST(Wire, BringsSamplesOfTheComputeItselfBackWithoutAKey) {
  SampleBatch batch = Samples();
  batch.key.reset();
  const auto back = Decode(Encode(WithPayload(batch)), kNow);
  ASSERT_TRUE(back);
  EXPECT_EQ(PayloadOf<SampleBatch>(back).key, std::nullopt);
}

TEST(Wire, BringsLogTailsBackByteExact) {
  const auto back = Decode(Encode(WithPayload(Tail())), kNow);
  ASSERT_TRUE(back) << back.error().message;
  const auto& tail = PayloadOf<LogTail>(back);
  EXPECT_EQ(tail.data, Tail().data);
  EXPECT_EQ(tail.offset, 10U);
  EXPECT_EQ(tail.total_bytes, 13U);
  EXPECT_EQ(tail.first_error, "Traceback");
  EXPECT_EQ(tail.first_error_offset, 2U);
  EXPECT_EQ(tail.redactions, 1U);
}

TEST(Wire, BringsBundlesBackWithPathsThatAreNotUtf8) {
  const auto back = Decode(Encode(WithPayload(Bundle())), kNow);
  ASSERT_TRUE(back) << back.error().message;
  const auto& bundle = PayloadOf<SourceBundle>(back);
  ASSERT_EQ(bundle.files.size(), 2U);
  EXPECT_EQ(bundle.files[0].path, "/home/grace/run\xe9.sh");
  EXPECT_EQ(bundle.files[0].data, "#!/bin/sh\n");
  EXPECT_EQ(bundle.files[0].redactions, 2U);
  EXPECT_EQ(bundle.files[1].role, "argument");
  ASSERT_EQ(bundle.skipped.size(), 1U);
  EXPECT_EQ(bundle.skipped[0].path, "weights\xfe.bin");
  EXPECT_EQ(BundleHash(bundle), BundleHash(Bundle()));
}

TEST(Wire, GivesEqualBytesForEqualRecords) {
  Execution e = FullExecution();
  for (int i = 0; i < 50; ++i) e.labels["label" + std::to_string(i)] = "\xff" + std::to_string(i);
  EXPECT_EQ(Encode(ExecutionRecord(e)), Encode(ExecutionRecord(e)));
  const auto back = Decode(Encode(ExecutionRecord(e)), kNow);
  ASSERT_TRUE(back);
  EXPECT_EQ(Encode(*back), Encode(ExecutionRecord(e)));
}

TEST(Wire, ReadsAStatusOfANewerVersionAsUnknown) {
  pb::Execution message;
  message.set_status(static_cast<pb::ExecutionStatus>(99));
  message.set_outcome(static_cast<pb::ExecutionOutcome>(99));
  const auto back = FromProto(message, kNow);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->status, ExecutionStatus::kUnknown);
  EXPECT_EQ(back->outcome, Outcome::kUnknown);
}

TEST(Wire, RefusesBytesThatAreNoRecord) {
  EXPECT_EQ(Decode("\xff\xff\xff", kNow).error().reason, "evidence.malformed");
  EXPECT_EQ(Decode("", kNow).error().reason, "evidence.malformed");
  const std::string bytes = Encode(WithPayload(Tail()));
  EXPECT_FALSE(Decode(bytes.substr(0, bytes.size() - 1), kNow));
}

// One change to a good record's message, and the reason with which it is refused.
struct Spoiled {
  const char* what;
  Record record;
  std::function<void(pb::EvidenceRecord*)> spoil;
  const char* reason;
};

std::vector<Spoiled> SpoiledRecords() {
  const Record run = ExecutionRecord();
  const Record samples = WithPayload(Samples());
  const Record tail = WithPayload(Tail());
  const Record bundle = WithPayload(Bundle());
  const std::string long_text(5000, 'x');
  using M = pb::EvidenceRecord;
  return {
      {"sequence 0", run, [](M* m) { m->set_sequence(0); }, "evidence.malformed"},
      {"sequence beyond int64", run, [](M* m) { m->set_sequence(1ULL << 63); },
       "evidence.malformed"},
      {"no time", run, [](M* m) { m->clear_observed_at(); }, "evidence.malformed"},
      {"no payload", run, [](M* m) { m->clear_payload(); }, "evidence.malformed"},
      {"before 1990", run, [](M* m) { m->mutable_observed_at()->set_seconds(86400); },
       "evidence.time"},
      {"year 1", run, [](M* m) { m->mutable_observed_at()->set_seconds(-62'135'596'800); },
       "evidence.time"},
      {"two days ahead", run, [](M* m) { m->mutable_observed_at()->set_seconds(1'800'172'801); },
       "evidence.time"},
      {"seconds overflow", run, [](M* m) { m->mutable_observed_at()->set_seconds(INT64_MAX); },
       "evidence.malformed"},
      {"negative nanos", run, [](M* m) { m->mutable_observed_at()->set_nanos(-1); },
       "evidence.malformed"},
      {"start ahead", run,
       [](M* m) {
         m->mutable_execution()->mutable_execution()->mutable_started_at()->set_seconds(
             1'900'000'000);
       },
       "evidence.time"},
      {"no key", run, [](M* m) { m->mutable_execution()->clear_key(); }, "evidence.malformed"},
      {"no identity", run, [](M* m) { m->mutable_execution()->mutable_key()->clear_identity(); },
       "evidence.malformed"},
      {"identity with NUL", run,
       [](M* m) { m->mutable_execution()->mutable_key()->set_identity(std::string("a\0b", 3)); },
       "evidence.malformed"},
      {"long identity", run,
       [=](M* m) { m->mutable_execution()->mutable_key()->set_identity(long_text); },
       "evidence.too_large"},
      {"no source", run, [](M* m) { m->mutable_execution()->mutable_key()->clear_source_type(); },
       "evidence.malformed"},
      {"unknown source", run,
       [](M* m) {
         m->mutable_execution()->mutable_key()->set_source_type(
             static_cast<common::v1::SourceType>(77));
       },
       "evidence.malformed"},
      {"long name", run,
       [=](M* m) { m->mutable_execution()->mutable_execution()->set_name(long_text); },
       "evidence.too_large"},
      {"many labels", run,
       [](M* m) {
         for (int i = 0; i < 200; ++i)
           (*m->mutable_execution()->mutable_execution()->mutable_labels())[std::to_string(i)] =
               "v";
       },
       "evidence.too_large"},
      {"many items", run,
       [](M* m) {
         for (int i = 0; i < 5000; ++i)
           m->mutable_execution()->mutable_execution()->add_command("x");
       },
       "evidence.too_large"},
      {"long command", run,
       [](M* m) {
         for (int i = 0; i < 200; ++i)
           m->mutable_execution()->mutable_execution()->add_command(std::string(1000, 'x'));
       },
       "evidence.too_large"},
      {"NaN cores", run,
       [](M* m) {
         m->mutable_execution()->mutable_execution()->mutable_requested()->set_cpu_cores(kNaN);
       },
       "evidence.malformed"},
      {"negative cpu", run,
       [](M* m) {
         m->mutable_execution()->mutable_execution()->mutable_used()->set_cpu_seconds(-1);
       },
       "evidence.malformed"},
      {"memory beyond int64", run,
       [](M* m) {
         m->mutable_execution()->mutable_execution()->mutable_used()->set_memory_peak_bytes(~0ULL);
       },
       "evidence.malformed"},
      {"negative limit", run,
       [](M* m) {
         m->mutable_execution()->mutable_execution()->mutable_requested()->set_walltime_seconds(-5);
       },
       "evidence.malformed"},
      {"step without an id", run,
       [](M* m) { m->mutable_execution()->mutable_execution()->mutable_steps(1)->clear_id(); },
       "evidence.malformed"},
      {"many steps", run,
       [](M* m) {
         for (int i = 0; i < 600; ++i)
           m->mutable_execution()->mutable_execution()->add_steps()->set_id("1");
       },
       "evidence.too_large"},
      {"long step", run,
       [=](M* m) {
         m->mutable_execution()->mutable_execution()->mutable_steps(0)->set_name(long_text);
       },
       "evidence.too_large"},
      {"step ahead", run,
       [](M* m) {
         m->mutable_execution()
             ->mutable_execution()
             ->mutable_steps(0)
             ->mutable_ended_at()
             ->set_seconds(1'900'000'000);
       },
       "evidence.time"},
      {"negative cpu of a step", run,
       [](M* m) {
         m->mutable_execution()
             ->mutable_execution()
             ->mutable_steps(0)
             ->mutable_used()
             ->set_cpu_seconds(-1);
       },
       "evidence.malformed"},
      {"forged step", run,
       [](M* m) {
         auto* execution = m->mutable_execution()->mutable_execution();
         (*execution->mutable_raw_bytes())["steps[0].id"] = "extern";
       },
       "evidence.malformed"},
      {"negative suspension", run,
       [](M* m) { m->mutable_execution()->mutable_execution()->set_suspended_seconds(-1); },
       "evidence.malformed"},
      {"short column", samples,
       [](M* m) { m->mutable_samples()->mutable_columns(1)->mutable_values()->RemoveLast(); },
       "evidence.malformed"},
      {"long column", samples,
       [](M* m) { m->mutable_samples()->mutable_columns(0)->add_values(1); }, "evidence.malformed"},
      {"no metric", samples, [](M* m) { m->mutable_samples()->mutable_columns(0)->clear_metric(); },
       "evidence.malformed"},
      {"no source of series", samples,
       [](M* m) { m->mutable_samples()->mutable_columns(0)->clear_source(); },
       "evidence.malformed"},
      {"metric with newline", samples,
       [](M* m) { m->mutable_samples()->mutable_columns(0)->set_metric("a\nb"); },
       "evidence.malformed"},
      {"sample ahead", samples,
       [](M* m) { m->mutable_samples()->set_times(1, 1'900'000'000'000'000); }, "evidence.time"},
      {"sample in 1970", samples, [](M* m) { m->mutable_samples()->set_times(0, 0); },
       "evidence.time"},
      {"negative sample time", samples, [](M* m) { m->mutable_samples()->set_times(0, INT64_MIN); },
       "evidence.malformed"},
      {"many points", samples,
       [](M* m) {
         for (int i = 0; i < 60'000; ++i) m->mutable_samples()->add_times(1'800'000'000'000'000);
       },
       "evidence.too_large"},
      {"many columns", samples,
       [](M* m) {
         for (int i = 0; i < 5000; ++i) m->mutable_samples()->add_columns();
       },
       "evidence.too_large"},
      {"unknown stream", tail, [](M* m) { m->mutable_log_tail()->set_stream("stdin"); },
       "evidence.malformed"},
      {"tail past its end", tail, [](M* m) { m->mutable_log_tail()->set_offset(14); },
       "evidence.malformed"},
      {"tail beyond int64", tail, [](M* m) { m->mutable_log_tail()->set_total_bytes(~0ULL); },
       "evidence.malformed"},
      {"large tail", tail,
       [](M* m) { m->mutable_log_tail()->set_data(std::string((1U << 20) + 1, 'x')); },
       "evidence.too_large"},
      {"many files", bundle,
       [](M* m) {
         for (int i = 0; i < 300; ++i) m->mutable_source_bundle()->add_files();
       },
       "evidence.too_large"},
      {"many skipped", bundle,
       [](M* m) {
         for (int i = 0; i < 300; ++i) m->mutable_source_bundle()->add_skipped();
       },
       "evidence.too_large"},
      {"large bundle", bundle,
       [](M* m) {
         m->mutable_source_bundle()->mutable_files(1)->set_data(std::string((8U << 20) + 1, 'x'));
       },
       "evidence.too_large"},
      {"no path", bundle, [](M* m) { m->mutable_source_bundle()->mutable_files(1)->clear_path(); },
       "evidence.malformed"},
      {"forged path", bundle,
       [](M* m) { m->mutable_source_bundle()->mutable_files(0)->set_path("/etc/passwd"); },
       "evidence.malformed"},
      {"hash in capitals", bundle,
       [](M* m) {
         m->mutable_source_bundle()->mutable_files(1)->set_content_hash(std::string(64, 'A'));
       },
       "evidence.malformed"},
      {"hash too short", bundle,
       [](M* m) { m->mutable_source_bundle()->mutable_files(1)->set_content_hash("00"); },
       "evidence.malformed"},
  };
}

TEST(Wire, RefusesWhatProducersMustNotSend) {
  for (const Spoiled& spoiled : SpoiledRecords()) {
    SCOPED_TRACE(spoiled.what);
    pb::EvidenceRecord message;
    ToProto(spoiled.record, &message);
    ASSERT_TRUE(FromProto(message, kNow)) << "good before";
    spoiled.spoil(&message);
    const auto back = FromProto(message, kNow);
    ASSERT_FALSE(back);
    EXPECT_EQ(back.error().reason, spoiled.reason) << back.error().message;
    EXPECT_EQ(back.error().code, base::Code::kInvalidArgument);
  }
}

TEST(Wire, TakesTimesUpToADayAheadAndAnyWhenAsked) {
  Record record = WithPayload(Tail());
  record.observed_at = kNow + std::chrono::hours(24);
  EXPECT_TRUE(Decode(Encode(record), kNow));
  record.observed_at += microseconds(1);
  EXPECT_FALSE(Decode(Encode(record), kNow));
  EXPECT_TRUE(Decode(Encode(record), base::WallTime::max()));
}

TEST(Wire, EncodesWhatIsTooLongSoThatItIsTaken) {
  Execution e = FullExecution();
  e.name = std::string(4095, 'n') + "\u00e9";  // the limit falls into the last letter
  e.command.assign(9000, "file.txt");
  e.nodes.assign(70'000, "n");
  e.capture_notes.assign(100, "note");
  for (int i = 0; i < 200; ++i) e.labels[std::to_string(i)] = std::string(5000, 'v');
  const auto back = Decode(Encode(ExecutionRecord(e)), kNow);
  ASSERT_TRUE(back) << back.error().message;
  const Execution& taken = PayloadOf<ExecutionObservation>(back).execution;
  EXPECT_EQ(taken.name, std::string(4095, 'n'));
  EXPECT_EQ(taken.command.size(), WireLimits{}.command_items);
  EXPECT_EQ(taken.nodes.size(), WireLimits{}.nodes);
  EXPECT_EQ(taken.labels.size(), WireLimits{}.labels);
  EXPECT_EQ(taken.capture_notes.back(),
            "too long, cut: name, command, nodes, labels, capture_notes");
}

TEST(Wire, LeavesWhatFitsAlone) { EXPECT_EQ(FitLimits(FullExecution()), FullExecution()); }

}  // namespace
}  // namespace expanse::evidence
