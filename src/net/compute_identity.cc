#include "net/compute_identity.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"

namespace expanse::net {
namespace {

constexpr std::size_t kMostBytes = 64U << 10;
constexpr int kVersion = 1;

std::unexpected<base::Error> Malformed(std::string_view what) {
  return base::Fail(base::Code::kInvalidArgument, "identity.malformed",
                    fmt::format("not a compute's identity: {}", what));
}

base::Status CheckAccess(int fd, const std::string& path) {
  struct stat info{};
  if (fstat(fd, &info) != 0) return base::FailErrno(errno, path);
  if (!S_ISREG(info.st_mode)) return Malformed(path + " is not a file");
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return base::Fail(base::Code::kPermissionDenied, "identity.permissions",
                      fmt::format("{} belongs to uid {}, not to the user that reads it (uid {}); "
                                  "run: chown {} {}",
                                  path, info.st_uid, geteuid(), geteuid(), path));
  }
  if ((info.st_mode & 077) != 0) {
    return base::Fail(base::Code::kPermissionDenied, "identity.permissions",
                      fmt::format("{} holds a credential and must have mode 0600, not {:04o}; "
                                  "run: chmod 600 {}",
                                  path, static_cast<unsigned>(info.st_mode & 07777), path));
  }
  return {};
}

}  // namespace

std::string EncodeComputeIdentity(const ComputeIdentity& identity) {
  nlohmann::ordered_json json;
  json["version"] = kVersion;
  json["compute_id"] = identity.compute_id;
  json["compute_name"] = identity.compute_name;
  json["organisation_id"] = identity.organisation_id;
  json["type"] = identity.type;
  json["credential"] = identity.credential;
  json["control_plane_url"] = identity.control_plane_url;
  json["data_plane_url"] = identity.data_plane_url;
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

base::Result<ComputeIdentity> DecodeComputeIdentity(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Malformed("no JSON object");
  const auto version = json.find("version");
  if (version == json.end() || !version->is_number_integer()) return Malformed("no version");
  if (*version != kVersion) {
    return base::Fail(base::Code::kFailedPrecondition, "identity.version",
                      "the identity file was written by another version of expanse");
  }
  ComputeIdentity identity;
  struct Key {
    const char* name;
    std::string ComputeIdentity::* field;
    bool required;
  };
  static constexpr Key kKeys[] = {
      {"compute_id", &ComputeIdentity::compute_id, true},
      {"compute_name", &ComputeIdentity::compute_name, false},
      {"organisation_id", &ComputeIdentity::organisation_id, false},
      {"type", &ComputeIdentity::type, true},
      {"credential", &ComputeIdentity::credential, true},
      {"control_plane_url", &ComputeIdentity::control_plane_url, true},
      {"data_plane_url", &ComputeIdentity::data_plane_url, true},
  };
  for (const Key& key : kKeys) {
    const auto found = json.find(key.name);
    if (found == json.end() && !key.required) continue;
    if (found == json.end()) return Malformed(fmt::format("{} is missing", key.name));
    if (!found->is_string()) return Malformed(fmt::format("{} is not text", key.name));
    identity.*key.field = found->get<std::string>();
    if (key.required && (identity.*key.field).empty())
      return Malformed(fmt::format("{} is empty", key.name));
  }
  return identity;
}

base::Result<ComputeIdentity> ReadComputeIdentity(const std::string& path) {
  const base::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return base::Fail(base::Code::kNotFound, "identity.missing",
                        fmt::format("no such file: {}; run `expanse compute install` first", path));
    }
    return base::FailErrno(errno, "reading " + path);
  }
  EXPANSE_RETURN_IF_ERROR(CheckAccess(fd.get(), path));
  EXPANSE_ASSIGN_OR_RETURN(const std::string text, base::ReadFd(fd.get(), kMostBytes));
  auto identity = DecodeComputeIdentity(text);
  if (!identity) return std::unexpected(std::move(identity).error().With(path));
  return identity;
}

base::Status WriteComputeIdentity(const std::string& path, const ComputeIdentity& identity) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  if (!directory.empty()) EXPANSE_RETURN_IF_ERROR(base::MakeDirectories(directory, 0700));
  return base::WriteFileAtomically(path, EncodeComputeIdentity(identity), 0600);
}

std::string DefaultComputeIdentityPath(std::string_view home) {
  return base::JoinPath(home, ".expanse/config.json");
}

std::string ComputeIdentityPath(std::string_view flag,
                                const std::map<std::string, std::string>& environment,
                                bool is_root) {
  if (!flag.empty()) return std::string(flag);
  if (const auto set = environment.find("EXPANSE_DAEMON_CONFIG");
      set != environment.end() && !set->second.empty()) {
    return set->second;
  }
  const auto home = environment.find("HOME");
  const std::string own =
      DefaultComputeIdentityPath(home == environment.end() ? "/" : home->second);
  // Root's daemon is the machine's; what root installed by hand for a single host is found too.
  constexpr const char* kMachine = "/etc/expanse/config.json";
  if (is_root && (base::Exists(kMachine) || !base::Exists(own))) return kMachine;
  return own;
}

}  // namespace expanse::net
