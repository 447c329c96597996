// What `expanse run` tells the daemon: one event, as the bytes of one spool file. The format is in
// docs/formats/host-spool.md. An event is data: nothing in it is a path that a reader opens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "evidence/records.h"

namespace expanse::schedulers::host {

// In the order in which they happen; the digit is part of a file's name, so names sort that way.
enum class SpoolKind : std::uint8_t { kStart = 1, kSources = 2, kTail = 3, kEnd = 4 };

// A process that cannot be confused with a later one of the same pid.
struct ProcessStamp {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;  // field 22 of /proc/PID/stat
  bool operator==(const ProcessStamp&) const = default;
};

struct SpoolEvent {
  SpoolKind kind = SpoolKind::kStart;
  std::string run_id;   // a UUID; also in the file's name
  ProcessStamp root;    // the command; pid 0 where it does not matter (kSources, kTail)
  ProcessStamp runner;  // the `expanse run` that will write the end
  std::vector<std::string> cgroups;
  // kStart: the execution. kSources: the bundle. kTail: log tails. kEnd: all that is known of the
  // execution, and its last log tails. Keys in them are not looked at.
  std::vector<evidence::Record> records;
};

// Upper bound of an encoded event; DecodeSpoolEvent refuses more.
inline constexpr std::size_t kMaxSpoolEvent = 4U << 20;

std::string EncodeSpoolEvent(const SpoolEvent& event);

// Never trusts `bytes`. Fails with spool.torn (length or checksum), spool.version (written by a
// newer version) or spool.malformed (anything else, times far off `now` included).
base::Result<SpoolEvent> DecodeSpoolEvent(std::string_view bytes, base::WallTime now);

}  // namespace expanse::schedulers::host
