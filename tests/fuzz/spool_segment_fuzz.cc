// Segments of the samplers' spool, their names and the drain's state on any bytes: no crash,
// nothing unpacked beyond its bound, and what is taken is whole.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/crypto.h"
#include "base/result.h"
#include "daemon/spool/drain_state.h"
#include "daemon/spool/segment_evidence.h"
#include "daemon/spool/segment_format.h"

namespace {

using namespace expanse;
using namespace expanse::daemon::spool;

void CheckTaken(const Segment& segment) {
  std::size_t bytes = 0;
  for (const auto* records : {&segment.samples, &segment.events}) {
    for (const std::string& record : *records) {
      EXPANSE_CHECK(!record.empty() && record.size() <= kMaxRecord);
      bytes += record.size();
    }
  }
  EXPANSE_CHECK(bytes <= kMaxSegmentRecords);
  const std::string host = segment.header.host;
  const auto evidence = TakeEvidence(segment, host);
  if (!evidence) return;
  for (const evidence::Record& record : evidence->records) {
    const evidence::ExecutionKey* key = KeyOf(record.payload);
    EXPANSE_CHECK(key == nullptr || IsLocalKey(*key));
  }
  EXPANSE_CHECK(!TakeEvidence(segment, host + "x"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto segment = DecodeSegment(bytes)) CheckTaken(*segment);

  // What a writer left can be closed, and is a segment then.
  if (const auto prefix = ReadPrefix(bytes)) {
    EXPANSE_CHECK(prefix->size <= size);
    std::string closed(bytes.substr(0, prefix->size));
    prefix->encoder.AppendTrailer({}, &closed);
    const auto segment = DecodeSegment(closed);
    if (segment) {
      EXPANSE_CHECK(segment->samples.size() + segment->events.size() == prefix->records);
      EXPANSE_CHECK(segment->events.empty() != prefix->events);
    } else {  // the checksums hold, but a payload is not what its figures say
      EXPANSE_CHECK(segment.error().reason != "spool.torn");
    }
  }

  // The same bytes as records of a segment that is well made.
  if (size > 1 && size <= kMaxRecord) {
    SegmentEncoder encoder;
    std::string made = SegmentEncoder::Begin(
        {.stream_id = "0190a2b4-0000-7000-8000-00000000abcd", .sequence = 1, .host = "node1"},
        &encoder);
    const bool events = (data[0] & 1) != 0;
    encoder.AppendBlock(events ? BlockKind::kEvents : BlockKind::kSamples,
                        {std::string(bytes.substr(1)), std::string(bytes)}, &made);
    encoder.AppendBlock(BlockKind::kStatus, {std::string(bytes)}, &made);
    encoder.AppendTrailer({}, &made);
    const auto segment = DecodeSegment(made);
    EXPANSE_CHECK(segment.has_value());
    EXPANSE_CHECK((events ? segment->events : segment->samples).back() == bytes);
    CheckTaken(*segment);
  }

  if (const auto name = ParseSegmentName(bytes)) EXPANSE_CHECK(FormatSegmentName(*name) == bytes);
  if (IsHostName(bytes)) EXPANSE_CHECK(bytes.find('/') == std::string_view::npos);
  if (const auto state = DecodeDrainState(bytes))
    EXPANSE_CHECK(DecodeDrainState(EncodeDrainState(*state)) == *state);
  return 0;
}
