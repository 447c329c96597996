// What identity costs: CPU time to sign and to verify an access token, and the rate of heartbeats
// that a control plane's store takes (each is one durable transaction).
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>

#include "base/crypto.h"
#include "base/files.h"
#include "bench/bench_report.h"
#include "control/permissions.h"
#include "net/token.h"
#include "net/token_cache.h"
#include "store/identity/sqlite_identity_store.h"

namespace {

using namespace expanse;
using std::chrono::steady_clock;

double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// CPU microseconds of one call.
double CpuMicros(int count, const std::function<bool()>& call) {
  const double before = CpuSeconds();
  for (int i = 0; i < count; ++i) EXPANSE_CHECK(call());
  return (CpuSeconds() - before) * 1e6 / count;
}

void BenchTokens(const std::string& directory, int count, bench::Report& report) {
  base::SystemClock clock;
  net::KeyRingOptions options;
  options.directory = base::JoinPath(directory, "keys");
  const auto ring = net::KeyRing::Open(options, clock).value();
  const net::TokenSigner signer({}, *ring, clock);
  const net::TokenVerifier verifier{net::TokenPolicy()};
  net::Caller caller;
  caller.kind = net::CallerKind::kUser;
  caller.subject = base::NewUuid(clock.Now());
  caller.organisation_id = base::NewUuid(clock.Now());
  caller.session_id = base::NewUuid(clock.Now());
  caller.permissions = control::AllPermissions();
  const std::string token = signer.Sign(caller, std::chrono::seconds(600)).value().token;
  const auto keys = ring->Public();
  report.Add("token size", static_cast<double>(token.size()), "bytes");
  report.Add(
      "sign",
      CpuMicros(count, [&] { return signer.Sign(caller, std::chrono::seconds(600)).has_value(); }),
      "CPU us");
  report.Add(
      "verify",
      CpuMicros(count, [&] { return verifier.Verify(token, *keys, clock.Now()).has_value(); }),
      "CPU us");
  net::CachingVerifier cached{net::TokenPolicy()};
  report.Add("verify again",
             CpuMicros(count, [&] { return cached.Verify(token, keys, clock.Now()).has_value(); }),
             "CPU us");
}

void BenchHeartbeats(const std::string& directory, int computes, int rounds,
                     bench::Report& report) {
  base::SystemClock clock;
  const auto store =
      store::SqliteIdentityStore::Open(base::JoinPath(directory, "identity.db")).value();
  const base::WallTime now = clock.Now();
  store::AuditEntry audit{.at = now};
  EXPANSE_CHECK(store
                    ->CreateOrganisation({"o", "Bench", now}, control::PresetRoles("o", now),
                                         {"u", "Owner", "", {}, now}, /*only_first=*/true, audit)
                    .has_value());
  for (int i = 0; i < computes; ++i) {
    const std::string id = std::to_string(i);
    store::Compute compute;
    compute.id = id;
    compute.organisation_id = "o";
    compute.name = id;
    compute.type = evidence::SourceType::kHost;
    const std::string hash = base::Sha256Hex(id);
    EXPANSE_CHECK(store->RegisterCompute(compute, {id, hash, now + std::chrono::hours(1)}, audit)
                      .has_value());
    EXPANSE_CHECK(store->ExchangeInstallToken({hash, evidence::SourceType::kHost, id, hash}, audit)
                      .has_value());
  }
  const auto start = steady_clock::now();
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < computes; ++i) {
      const std::string id = std::to_string(i);
      EXPANSE_CHECK(store->NoteHeartbeat({id, id, "0.1.0"}, audit).has_value());
    }
  }
  const double seconds = std::chrono::duration<double>(steady_clock::now() - start).count();
  report.Add("heartbeats", computes * rounds / seconds, "1/s");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Cost of access tokens and heartbeats"};
  int tokens = 2000;
  int computes = 200;
  int rounds = 5;
  app.add_option("--tokens", tokens, "tokens to sign and to verify")
      ->check(CLI::Range(1, 10'000'000));
  app.add_option("--computes", computes, "computes that send heartbeats")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--rounds", rounds, "heartbeats of each")->check(CLI::Range(1, 100'000));
  CLI11_PARSE(app, argc, argv);
  const auto directory = base::TempDir::Create();
  if (!directory) return 1;
  bench::Report report("control");
  BenchTokens(directory->path(), tokens, report);
  BenchHeartbeats(directory->path(), computes, rounds, report);
  report.Print();
  return 0;
}
