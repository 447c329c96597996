#include "schedulers/host/spool_event.h"

#include <fmt/format.h>

#include <optional>

#include "base/crypto.h"
#include "evidence/wire.h"

namespace expanse::schedulers::host {
namespace {

constexpr std::string_view kMagic = "EXSP";
constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kHeader = 16;
constexpr std::size_t kMaxRecords = 8;
constexpr std::size_t kMaxCgroups = 16;
constexpr std::size_t kMaxPath = 4096;

enum class Tag : std::uint16_t { kRunId = 1, kRoot = 2, kRunner = 3, kCgroup = 4, kRecord = 5 };

template <typename T>
void PutLittle(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out += static_cast<char>((static_cast<std::uint64_t>(value) >> (8 * i)) & 0xFF);
  }
}

template <typename T>
T GetLittle(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return static_cast<T>(value);
}

void PutField(std::string& out, Tag tag, std::string_view value) {
  PutLittle(out, static_cast<std::uint16_t>(tag));
  PutLittle(out, static_cast<std::uint32_t>(value.size()));
  out += value;
}

void PutStamp(std::string& out, Tag tag, const ProcessStamp& stamp) {
  if (stamp.pid == 0) return;
  std::string value;
  PutLittle(value, stamp.pid);
  PutLittle(value, stamp.start_ticks);
  PutField(out, tag, value);
}

std::optional<ProcessStamp> GetStamp(std::string_view value) {
  if (value.size() != 12) return std::nullopt;
  ProcessStamp stamp{GetLittle<std::int32_t>(value), GetLittle<std::uint64_t>(value.substr(4))};
  if (stamp.pid <= 0) return std::nullopt;
  return stamp;
}

std::unexpected<base::Error> Malformed(std::string_view what) {
  return base::Fail(base::Code::kInvalidArgument, "spool.malformed",
                    fmt::format("spool event: {}", what));
}
std::unexpected<base::Error> Torn(std::string_view what) {
  return base::Fail(base::Code::kDataLoss, "spool.torn", fmt::format("spool event: {}", what));
}

// What a kind of event may carry.
bool Fits(SpoolKind kind, const evidence::Payload& payload) {
  const bool execution = std::holds_alternative<evidence::ExecutionObservation>(payload);
  const bool tail = std::holds_alternative<evidence::LogTail>(payload);
  switch (kind) {
    case SpoolKind::kStart:
      return execution;
    case SpoolKind::kSources:
      return std::holds_alternative<evidence::SourceBundle>(payload);
    case SpoolKind::kTail:
      return tail;
    case SpoolKind::kEnd:
      return execution || tail;
  }
  return false;
}

base::Status TakeField(Tag tag, std::string_view value, base::WallTime now, SpoolEvent& event) {
  switch (tag) {
    case Tag::kRunId:
      if (!base::IsUuid(value)) return Malformed("the run id is not a UUID");
      event.run_id = value;
      return {};
    case Tag::kRoot:
    case Tag::kRunner: {
      const auto stamp = GetStamp(value);
      if (!stamp) return Malformed("a process stamp is not one");
      (tag == Tag::kRoot ? event.root : event.runner) = *stamp;
      return {};
    }
    case Tag::kCgroup:
      if (event.cgroups.size() >= kMaxCgroups || value.size() > kMaxPath ||
          !value.starts_with('/')) {
        return Malformed("a cgroup is not an absolute path, or there are too many");
      }
      event.cgroups.emplace_back(value);
      return {};
    case Tag::kRecord: {
      if (event.records.size() >= kMaxRecords) return Malformed("too many records");
      EXPANSE_ASSIGN_OR_RETURN(evidence::Record record, evidence::Decode(value, now));
      if (!Fits(event.kind, record.payload)) return Malformed("a record of another kind of event");
      event.records.push_back(std::move(record));
      return {};
    }
  }
  return {};  // a field of a newer version
}

}  // namespace

std::string EncodeSpoolEvent(const SpoolEvent& event) {
  std::string body;
  PutField(body, Tag::kRunId, event.run_id);
  PutStamp(body, Tag::kRoot, event.root);
  PutStamp(body, Tag::kRunner, event.runner);
  for (const std::string& cgroup : event.cgroups) PutField(body, Tag::kCgroup, cgroup);
  for (const evidence::Record& record : event.records)
    PutField(body, Tag::kRecord, evidence::Encode(record));
  std::string out(kMagic);
  out += static_cast<char>(kVersion);
  out += static_cast<char>(event.kind);
  PutLittle(out, std::uint16_t{0});
  PutLittle(out, static_cast<std::uint32_t>(body.size()));
  PutLittle(out, base::Crc32c(body));
  return out + body;
}

base::Result<SpoolEvent> DecodeSpoolEvent(std::string_view bytes, base::WallTime now) {
  if (bytes.size() < kHeader || bytes.size() > kMaxSpoolEvent) return Torn("its length is wrong");
  if (!bytes.starts_with(kMagic)) return Malformed("it does not begin as one");
  if (static_cast<std::uint8_t>(bytes[4]) != kVersion) {
    return base::Fail(base::Code::kFailedPrecondition, "spool.version",
                      "spool event: written by another version; upgrade the daemon");
  }
  const auto kind = static_cast<std::uint8_t>(bytes[5]);
  if (kind < 1 || kind > 4) return Malformed("its kind is unknown");
  std::string_view body = bytes.substr(kHeader);
  if (GetLittle<std::uint32_t>(bytes.substr(8)) != body.size()) return Torn("its length is wrong");
  if (GetLittle<std::uint32_t>(bytes.substr(12)) != base::Crc32c(body))
    return Torn("its checksum is wrong");

  SpoolEvent event;
  event.kind = static_cast<SpoolKind>(kind);
  while (!body.empty()) {
    if (body.size() < 6) return Malformed("a field is cut off");
    const auto tag = static_cast<Tag>(GetLittle<std::uint16_t>(body));
    const std::size_t size = GetLittle<std::uint32_t>(body.substr(2));
    body.remove_prefix(6);
    if (size > body.size()) return Malformed("a field is cut off");
    auto taken = TakeField(tag, body.substr(0, size), now, event);
    if (!taken) {
      base::Error error = std::move(taken.error()).With("spool event");
      error.reason = "spool.malformed";
      return std::unexpected(std::move(error));
    }
    body.remove_prefix(size);
  }
  if (event.run_id.empty()) return Malformed("it has no run id");
  if (event.kind == SpoolKind::kStart && event.root.pid == 0)
    return Malformed("it names no process");
  return event;
}

}  // namespace expanse::schedulers::host
