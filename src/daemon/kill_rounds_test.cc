// A daemon's outboxes and uploader in a child process that is killed at random moments, against a
// data plane that stays alive in this one. What the child was told is durable arrives exactly once.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "base/files.h"
#include "base/text.h"
#include "daemon/daemon_testing.h"
#include "daemon/uploader.h"

namespace expanse::daemon {
namespace {

using namespace std::chrono_literals;

// --- messages over a socket pair: length, then bytes

bool SendMessage(int fd, const std::string& bytes) {
  std::string message(4, '\0');
  const auto size = static_cast<std::uint32_t>(bytes.size());
  std::memcpy(message.data(), &size, 4);
  message += bytes;
  std::size_t done = 0;
  while (done < message.size()) {
    const ssize_t put = ::send(fd, message.data() + done, message.size() - done, MSG_NOSIGNAL);
    if (put <= 0) return false;
    done += static_cast<std::size_t>(put);
  }
  return true;
}

bool ReceiveExactly(int fd, char* to, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::recv(fd, to, size, 0);
    if (got <= 0) return false;
    to += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool ReceiveMessage(int fd, std::string* bytes) {
  std::uint32_t size = 0;
  if (!ReceiveExactly(fd, reinterpret_cast<char*>(&size), 4)) return false;
  bytes->resize(size);
  return ReceiveExactly(fd, bytes->data(), size);
}

// --- the child

class RemotePlanes final : public Planes {
 public:
  explicit RemotePlanes(int fd) : fd_(fd) {}
  base::Result<control::v1::MintComputeTokenResponse> MintComputeToken(
      const control::v1::MintComputeTokenRequest&, std::chrono::milliseconds) override {
    control::v1::MintComputeTokenResponse response;
    response.mutable_access()->set_token("t");
    return response;
  }
  base::Result<control::v1::HeartbeatResponse> Heartbeat(const std::string&,
                                                         const control::v1::HeartbeatRequest&,
                                                         std::chrono::milliseconds) override {
    return control::v1::HeartbeatResponse();
  }
  base::Result<data::v1::IngestResponse> Ingest(const std::string&,
                                                const data::v1::IngestRequest& request,
                                                std::chrono::milliseconds) override {
    std::string bytes;
    data::v1::IngestResponse response;
    if (!SendMessage(fd_, request.SerializeAsString()) || !ReceiveMessage(fd_, &bytes) ||
        !response.ParseFromString(bytes)) {
      return base::Fail(base::Code::kUnavailable, "client.unreachable", "gone");
    }
    return response;
  }
  base::Result<data::v1::ReportHealthResponse> ReportHealth(const std::string&,
                                                            const data::v1::ReportHealthRequest&,
                                                            std::chrono::milliseconds) override {
    return data::v1::ReportHealthResponse();
  }
  base::Result<data::v1::ReportClusterStateResponse> ReportClusterState(
      const std::string&, const data::v1::ReportClusterStateRequest&,
      std::chrono::milliseconds) override {
    return data::v1::ReportClusterStateResponse();
  }

 private:
  int fd_;
};

// Emits records without end and tells `promises` each one that was taken.
[[noreturn]] void Child(const std::string& directory, int round, int server, int promises,
                        bool drain) {
  base::ConfigureLog(base::LogLevel::kOff, base::LogFormat::kText);
  base::SystemClock clock;
  SystemFileIo files;
  auto outboxes = Outboxes::Open({.directory = directory, .max_bytes = 64U << 20}, files, clock);
  if (!outboxes) ::_exit(3);
  RemotePlanes planes(server);
  Session session(planes, {.compute_id = "c"}, clock,
                  [] { return base::Result<net::ComputeIdentity>(net::ComputeIdentity{}); });
  Uploader uploader(**outboxes, session, clock,
                    {.batch_bytes = 4096, .idle = 1ms, .backoff = {.first = 1ms, .most = 2ms}});
  if (drain) {
    uploader.Drain(60s);
    ::_exit(0);
  }
  std::jthread upload([&](std::stop_token stop) { uploader.Run(stop); });
  for (int i = 0;; ++i) {
    const std::string name = fmt::format("{}-{}", round, i);
    const bool sample = i % 3 == 0;
    const bool taken =
        sample ? (*outboxes)->EmitSamples(SamplesOf(name, 20, clock.Now()), clock.Now()).has_value()
               : (*outboxes)->Emit(ExecutionNamed(name), clock.Now()).has_value();
    if (taken && ::write(promises, &i, sizeof i) != sizeof i) ::_exit(4);
    if (i % 10 == 0 && !(*outboxes)->Flush()) ::_exit(5);
  }
}

// --- the parent

class DataPlane {
 public:
  // Serves one child until it is gone.
  void Serve(int fd) {
    std::string bytes;
    data::v1::IngestRequest request;
    while (ReceiveMessage(fd, &bytes)) {
      ASSERT_TRUE(request.ParseFromString(bytes));
      std::uint64_t& watermark = watermarks_[request.stream_id()];
      for (const auto& record : request.records()) {
        if (record.sequence() <= watermark) {
          ++skipped;
          continue;
        }
        watermark = record.sequence();
        ++applied[record.has_samples() ? record.samples().key().identity()
                                       : record.execution().execution().name()];
      }
      data::v1::IngestResponse response;
      response.set_watermark(watermark);
      if (!SendMessage(fd, response.SerializeAsString())) return;
    }
  }
  std::map<std::string, int> applied;
  int skipped = 0;

 private:
  std::map<std::string, std::uint64_t> watermarks_;
};

int Rounds() {
  const char* set = std::getenv("EXPANSE_KILL_ROUNDS");
  return base::ParseInt<int>(set == nullptr ? "" : set).value_or(25);
}

TEST(KillRounds, WhatWasPromisedArrivesExactlyOnce) {
  const auto temp = base::TempDir::Create();
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  SCOPED_TRACE(fmt::format("seed {}", seed));
  DataPlane plane;
  std::set<std::string> promised;
  const int rounds = Rounds();
  for (int round = 0; round <= rounds; ++round) {
    const bool last = round == rounds;
    int server[2];
    int promises[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, server), 0);
    ASSERT_EQ(::pipe(promises), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(server[0]);
      ::close(promises[0]);
      Child(temp->path() + "/outbox", round, server[1], promises[1], last);
    }
    ::close(server[1]);
    ::close(promises[1]);
    std::jthread serve([&] { plane.Serve(server[0]); });
    std::jthread listen([&] {
      int number = 0;
      while (::read(promises[0], &number, sizeof number) == sizeof number)
        promised.insert(fmt::format("{}-{}", round, number));
    });
    if (!last) {
      // Long enough to get going, at any moment after that.
      ::poll(nullptr, 0, std::uniform_int_distribution<int>(5, 60)(random));
      ::kill(child, SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(last ? WIFEXITED(status) && WEXITSTATUS(status) == 0 : WIFSIGNALED(status))
        << status;
    serve.join();
    listen.join();
    ::close(server[0]);
    ::close(promises[0]);
  }
  ASSERT_GT(promised.size(), std::size_t(rounds));
  for (const std::string& name : promised)
    EXPECT_TRUE(plane.applied.contains(name)) << name << " is lost";
  for (const auto& [name, count] : plane.applied) EXPECT_EQ(count, 1) << name;
  RecordProperty("promised", static_cast<int>(promised.size()));
  RecordProperty("skipped_as_known", plane.skipped);
}

}  // namespace
}  // namespace expanse::daemon
