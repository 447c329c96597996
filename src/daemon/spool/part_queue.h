// Closed segments on the node that wait to be copied to the shared spool. The sampler's thread puts
// them in, the shipper's takes them out; files on the node's own disk or memory, bounded.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "daemon/file_io.h"
#include "daemon/spool/segment_format.h"

namespace expanse::daemon::spool {

// One closed segment without its trailer.
struct Part {
  SegmentName name;
  std::string path;
  std::uint64_t size = 0;
  SegmentEncoder encoder;  // to go on after `size`
};

// The file of a part in the queue's directory; the class of a segment is known only at its end.
std::string PartPath(const std::string& directory, const SegmentName& name);

struct PartFigures {
  std::uint64_t waiting = 0;
  std::uint64_t waiting_bytes = 0;
  std::uint64_t shipped = 0;
  std::uint64_t dropped_samples = 0;  // segments
  std::uint64_t dropped_events = 0;
  std::uint64_t damaged = 0;  // leftovers that could not be read
};

// Thread-safe; the mutex is not held over I/O.
class PartQueue {
 public:
  // Takes over what a sampler that died left in `directory`, oldest first.
  static base::Result<std::unique_ptr<PartQueue>> Open(const std::string& directory,
                                                       std::uint64_t max_bytes, FileIo& files);

  void Add(Part part);
  // The oldest one, which is not dropped until Done or Release. One taker at a time.
  std::optional<Part> Take();
  void Done(bool dropped_by_spool = false);  // deletes the node's copy
  void Release();                            // it stays the oldest
  // Waits for a part, at most `most`.
  void WaitForPart(const std::stop_token& stop, base::Duration most);

  // Drops segments of samples, then ones with events, oldest first, until `bytes` more fit. False
  // when they never will.
  bool MakeRoom(std::uint64_t bytes);
  // Drops one, for a file system that others filled. False: there is none that may go.
  bool DropOne();

  PartFigures figures() const;

 private:
  PartQueue(std::uint64_t max_bytes, FileIo& files) : max_bytes_(max_bytes), files_(files) {}
  base::Status Recover(const std::string& directory);

  const std::uint64_t max_bytes_;
  FileIo& files_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable_any added_;
  std::deque<Part> parts_;
  bool taken_ = false;  // the first one
  PartFigures figures_;
};

}  // namespace expanse::daemon::spool
