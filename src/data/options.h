// What an operator can set about the data plane.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "base/settings.h"
#include "evidence/wire.h"

namespace expanse::data {

struct DataOptions {
  // One ingest request; beyond: invalid_argument, which a daemon answers with smaller batches.
  std::size_t max_batch_records = 10'000;
  std::size_t max_batch_bytes = 32U << 20;
  // Rates per compute, with a burst of ten seconds' worth; beyond: resource_exhausted, which a
  // daemon answers by waiting. 0: no bound.
  double records_per_second = 2'000;
  double samples_per_second = 200'000;
  // Install tokens that are looked at per second, of all callers together.
  double exchanges_per_second = 20;
  evidence::WireLimits wire;

  std::size_t max_response_points = 500'000;   // of all series of one metric query
  std::size_t max_response_bytes = 16U << 20;  // of one page of executions; at least one is given
  std::chrono::milliseconds health_interval{30'000};  // told to daemons

  // How long each kind of evidence is kept; 0: for ever.
  std::chrono::milliseconds keep_executions = std::chrono::hours(24 * 400);
  std::chrono::milliseconds keep_samples = std::chrono::hours(24 * 90);
  // Blobs that no record names go after this long: a record may still be on its way.
  std::chrono::milliseconds keep_loose_blobs = std::chrono::hours(24);
  std::chrono::milliseconds retention_interval = std::chrono::hours(1);
};

std::vector<base::SettingSpec> DataSettings();
DataOptions DataOptionsFrom(const base::Settings& settings);

}  // namespace expanse::data
