#include "cli/session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace expanse::cli {
namespace {

constexpr std::size_t kMostBytes = 256U << 10;

std::string Directory(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

base::Status CheckOwnerAndMode(int fd, const std::string& path) {
  struct stat info{};
  if (fstat(fd, &info) != 0) return base::FailErrno(errno, path);
  if (info.st_uid != geteuid()) {
    return base::Fail(base::Code::kPermissionDenied, "session.permissions",
                      fmt::format("{} belongs to another user", path));
  }
  if ((info.st_mode & 077) != 0) {
    return base::Fail(base::Code::kPermissionDenied, "session.permissions",
                      fmt::format("{} can be read by others (mode {:04o}, must be 0600)", path,
                                  static_cast<unsigned>(info.st_mode & 07777)));
  }
  return {};
}

std::string Text(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

base::WallTime Time(const nlohmann::json& object, const char* key) {
  return base::ParseRfc3339(Text(object, key)).value_or(base::WallTime{});
}

}  // namespace

std::string EncodeSession(const Session& session) {
  nlohmann::ordered_json json;
  json["version"] = 1;
  json["control_plane_url"] = session.control_plane_url;
  json["data_plane_url"] = session.data_plane_url;
  json["intelligence_plane_url"] = session.intelligence_plane_url;
  json["console_url"] = session.console_url;
  json["refresh_token"] = session.refresh_token;
  json["refresh_expires_at"] = base::FormatRfc3339(session.refresh_expires_at);
  json["access_token"] = session.access_token;
  json["access_expires_at"] = base::FormatRfc3339(session.access_expires_at);
  json["user_name"] = session.user_name;
  json["organisation_id"] = session.organisation_id;
  json["organisation_name"] = session.organisation_name;
  json["submit_users"] = session.submit_users;
  // A server's name for somebody may hold bytes that are not UTF-8; they must not lose the session.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

base::Result<Session> DecodeSession(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || Text(json, "control_plane_url").empty() ||
      Text(json, "refresh_token").empty()) {
    return base::Fail(base::Code::kUnauthenticated, "session.malformed",
                      "the session file is damaged");
  }
  Session session;
  session.control_plane_url = Text(json, "control_plane_url");
  session.data_plane_url = Text(json, "data_plane_url");
  session.intelligence_plane_url = Text(json, "intelligence_plane_url");
  session.console_url = Text(json, "console_url");
  session.refresh_token = Text(json, "refresh_token");
  session.refresh_expires_at = Time(json, "refresh_expires_at");
  session.access_token = Text(json, "access_token");
  session.access_expires_at = Time(json, "access_expires_at");
  session.user_name = Text(json, "user_name");
  session.organisation_id = Text(json, "organisation_id");
  session.organisation_name = Text(json, "organisation_name");
  if (const auto users = json.find("submit_users"); users != json.end() && users->is_array()) {
    for (const auto& user : *users) {
      if (user.is_string()) session.submit_users.push_back(user.get<std::string>());
    }
  }
  return session;
}

base::Result<std::optional<Session>> SessionStore::Load() const {
  const base::UniqueFd fd(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return base::FailErrno(errno, "reading " + path_);
  }
  EXPANSE_RETURN_IF_ERROR(CheckOwnerAndMode(fd.get(), path_));
  EXPANSE_ASSIGN_OR_RETURN(const std::string text, base::ReadFd(fd.get(), kMostBytes));
  EXPANSE_ASSIGN_OR_RETURN(Session session, DecodeSession(text));
  return session;
}

base::Status SessionStore::Save(const Session& session) const {
  EXPANSE_RETURN_IF_ERROR(base::MakeDirectories(Directory(path_), 0700));
  return base::WriteFileAtomically(path_, EncodeSession(session), 0600);
}

base::Status SessionStore::Remove() const { return base::RemoveFile(path_); }

base::Result<SessionLock> SessionStore::Lock(base::Clock& clock,
                                             std::chrono::milliseconds deadline) const {
  EXPANSE_RETURN_IF_ERROR(base::MakeDirectories(Directory(path_), 0700));
  // A file of its own: the session file is replaced, and with it a lock on it would be.
  const std::string lock_path = path_ + ".lock";
  base::UniqueFd fd(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return base::FailErrno(errno, "opening " + lock_path);
  const base::MonoTime until = clock.Mono() + deadline;
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return base::FailErrno(errno, "locking " + lock_path);
    if (clock.Mono() >= until) {
      return base::Fail(base::Code::kDeadlineExceeded, "session.locked",
                        "another expanse command holds " + lock_path);
    }
    clock.WaitFor({}, std::chrono::milliseconds(10));
  }
  return SessionLock(std::move(fd));
}

}  // namespace expanse::cli
