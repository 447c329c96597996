// What the tests of the data plane share: callers, records, requests, stores of every backend, and
// a control plane of paper.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/time.h"
#include "data/control_client.h"
#include "evidence/records.h"
#include "expanse/data/v1/ingest_service.pb.h"
#include "net/caller.h"
#include "store/blobs/blob_store.h"
#include "store/records/evidence_store.h"
#include "store/series/series_store.h"

namespace expanse::data {

inline const std::string kStream = "0193a8b2-1111-7000-8000-000000000001";
inline const std::string kOtherStream = "0193a8b2-1111-7000-8000-000000000002";

// Backends that the tests run on.
enum class Backend : std::uint8_t { kMemory, kEmbedded };
std::vector<Backend> AllBackends();
std::string BackendName(Backend backend);

struct TestStores {
  std::optional<base::TempDir> directory;  // of backends on disk; goes after the stores
  std::unique_ptr<store::EvidenceStore> records;
  std::unique_ptr<store::SeriesStore> series;
  std::unique_ptr<store::BlobStore> blobs;
};
TestStores MakeStores(Backend backend, base::Clock& clock);

net::CallContext ComputeCall(std::string_view compute_id = "compute-a",
                             std::string_view organisation_id = "org-1");
net::CallContext UserCall(std::string_view organisation_id = "org-1");

evidence::ExecutionKey HostKey(std::string_view identity);
std::string IdOf(std::string_view identity, std::string_view compute_id = "compute-a");

evidence::Record RunRecord(std::uint64_t sequence, base::WallTime at, std::string_view identity,
                           const std::function<void(evidence::Execution*)>& change = {});
// One point of "cpu" of the execution; empty identity: of the compute itself.
evidence::Record SampleRecord(std::uint64_t sequence, base::WallTime at, std::string_view identity,
                              double value, std::string_view metric = "cpu");
evidence::Record TailRecord(std::uint64_t sequence, base::WallTime at, std::string_view identity,
                            std::string data);
evidence::Record BundleRecord(std::uint64_t sequence, base::WallTime at, std::string_view identity,
                              std::string data);

v1::IngestRequest RequestOf(const std::vector<evidence::Record>& records,
                            std::string_view stream = kStream);

// Answers with `next` and remembers what it was asked.
class FakeControlClient final : public ControlClient {
 public:
  base::Result<InstalledCompute> BurnInstallToken(std::string_view token,
                                                  evidence::SourceType type) override {
    last_token = token;
    last_type = type;
    ++calls;
    return next;
  }
  base::Result<InstalledCompute> next =
      InstalledCompute{"compute-new", "lab", "org-1", evidence::SourceType::kHost, "exp_compute_x"};
  std::string last_token;
  evidence::SourceType last_type = evidence::SourceType::kUnspecified;
  int calls = 0;
};

}  // namespace expanse::data
