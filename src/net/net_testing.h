// Helpers for tests that talk to servers: a raw TCP peer, certificates, an authenticator with fixed
// tokens.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "net/caller.h"

namespace expanse::net {

// A peer that sends exactly the bytes it is told to. Not thread-safe.
class RawPeer {
 public:
  // Connects to 127.0.0.1; aborts the test program when that fails.
  explicit RawPeer(std::uint16_t port);
  void Send(std::string_view bytes);
  // Header and body of the next response (by Content-Length); what has arrived when the peer closes
  // or 5 s have passed.
  std::string ReadResponse();
  // Everything until the peer closes; true if it did within `patience`.
  bool ReadToEnd(std::string* out, std::chrono::milliseconds patience = std::chrono::seconds(5));

 private:
  bool Receive(std::chrono::steady_clock::time_point until);
  base::UniqueFd socket_;
  std::string buffer_;
  bool closed_ = false;
};

// A server that does as scripted: each connection gets the answers of `script` in order, one per
// request
// ("" closes without an answer), then is closed. Counts the requests that it read.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::vector<std::string> script);
  ~ScriptedServer();
  std::uint16_t port() const { return port_; }
  int requests() const { return requests_; }

 private:
  void Serve(int connection);
  const std::vector<std::string> script_;
  base::UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::atomic<int> requests_{0};
  std::jthread thread_;
};

int StatusOf(std::string_view response);

// A self-signed certificate for localhost and 127.0.0.1: `certificate` and `key` (mode 0600) in a
// directory of their own.
struct TestCertificate {
  base::TempDir directory;
  std::string certificate;
  std::string key;
};
TestCertificate MakeTestCertificate();

// Knows the tokens it was given. Thread-safe.
class FakeAuthenticator final : public Authenticator {
 public:
  void Add(std::string token, Caller caller);
  base::Result<Caller> Authenticate(std::string_view bearer_token) override;

 private:
  std::mutex mutex_;  // guards callers_
  std::map<std::string, Caller, std::less<>> callers_;
};

}  // namespace expanse::net
