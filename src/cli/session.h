// The signed-in session on disk: ~/.expanse/session.json, 0600, replaced atomically. A refresh
// token works once and a second use ends the session, so whoever renews holds the lock: two
// commands at the same time must not spend the same token.
//
// Format: one JSON object, `version` 1; unknown keys are ignored.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "base/time.h"

namespace expanse::cli {

struct Session {
  std::string control_plane_url;
  std::string data_plane_url;  // as discovered; the three below too
  std::string intelligence_plane_url;
  std::string console_url;

  std::string refresh_token;
  base::WallTime refresh_expires_at{};
  std::string access_token;
  base::WallTime access_expires_at{};

  std::string user_name;
  std::string organisation_id;
  std::string organisation_name;
  std::vector<std::string> submit_users;
  bool operator==(const Session&) const = default;
};

std::string EncodeSession(const Session& session);
// Fails with session.malformed.
base::Result<Session> DecodeSession(std::string_view json);

// Holds the lock until destroyed.
class SessionLock {
 public:
  explicit SessionLock(base::UniqueFd fd) : fd_(std::move(fd)) {}

 private:
  base::UniqueFd fd_;
};

// Thread-safe: holds no state but the path.
class SessionStore {
 public:
  explicit SessionStore(std::string path) : path_(std::move(path)) {}

  // Nothing when there is no file. Fails with session.permissions when others can read the file or
  // it belongs to somebody else, session.malformed when it is damaged.
  base::Result<std::optional<Session>> Load() const;
  base::Status Save(const Session& session) const;
  base::Status Remove() const;
  // Blocks until other commands are done, at most `deadline`; then fails with session.locked
  // (deadline_exceeded). Released by the kernel when a holder dies.
  base::Result<SessionLock> Lock(base::Clock& clock, std::chrono::milliseconds deadline) const;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace expanse::cli
