#include "collect/cgroup/hierarchy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/files.h"
#include "base/text.h"
#include "collect/kernel_file.h"

namespace expanse::collect {
namespace {

constexpr std::array<std::string_view, 5> kMeasured = {"cpu", "cpuacct", "memory", "blkio", "pids"};

bool IsMeasured(std::string_view controller) {
  return std::find(kMeasured.begin(), kMeasured.end(), controller) != kMeasured.end();
}

// Blanks, newlines and backslashes of paths are octal in /proc/mounts: "\040".
std::string Unescape(std::string_view text) {
  const auto octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && octal(text[i + 1]) && octal(text[i + 2]) &&
        octal(text[i + 3])) {
      plain +=
          static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + text[i + 3] - '0');
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

}  // namespace

CgroupHierarchy ParseCgroupMounts(std::string_view mounts) {
  CgroupHierarchy hierarchy;
  std::string_view line;
  while (NextLine(mounts, line)) {
    NextWord(line);  // device
    const std::string_view point = NextWord(line);
    const std::string_view type = NextWord(line);
    const std::string_view options = NextWord(line);
    if (type == "cgroup2" && hierarchy.v2_mount.empty()) hierarchy.v2_mount = Unescape(point);
    if (type != "cgroup") continue;
    for (std::string_view option : base::Split(options, ',')) {
      if (IsMeasured(option)) hierarchy.v1_mounts.try_emplace(std::string(option), Unescape(point));
    }
  }
  if (!hierarchy.v1_mounts.empty()) {
    hierarchy.version = CgroupVersion::kV1;
  } else if (!hierarchy.v2_mount.empty()) {
    hierarchy.version = CgroupVersion::kV2;
  }
  return hierarchy;
}

base::Result<CgroupHierarchy> DetectHierarchy(const std::string& root) {
  EXPANSE_ASSIGN_OR_RETURN(const std::string mounts,
                           base::ReadFile(base::JoinPath(root, "proc/mounts")));
  return ParseCgroupMounts(mounts);
}

std::vector<CgroupMembership> ParseProcCgroup(std::string_view text) {
  constexpr std::string_view kDeleted = " (deleted)";
  std::vector<CgroupMembership> memberships;
  std::string_view line;
  while (NextLine(text, line)) {
    // The path may hold further colons.
    const auto first = line.find(':');
    if (first == std::string_view::npos) continue;
    const auto second = line.find(':', first + 1);
    if (second == std::string_view::npos || !base::ParseUnsignedDigits(line.substr(0, first)))
      continue;
    CgroupMembership membership;
    std::string_view path = line.substr(second + 1);
    if (!path.starts_with('/')) continue;
    if (path.ends_with(kDeleted)) {
      membership.deleted = true;
      path.remove_suffix(kDeleted.size());
    }
    membership.path = path;
    const std::string_view names = line.substr(first + 1, second - first - 1);
    if (!names.empty()) {
      for (std::string_view name : base::Split(names, ','))
        membership.controllers.emplace_back(name);
    }
    memberships.push_back(std::move(membership));
  }
  return memberships;
}

std::vector<std::string> CgroupDirectories(const CgroupHierarchy& hierarchy,
                                           const std::vector<CgroupMembership>& memberships) {
  std::vector<std::string> directories;
  const auto add = [&](std::string_view mount, const std::string& path) {
    std::string directory = base::JoinPath(mount, path);
    while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
    if (std::find(directories.begin(), directories.end(), directory) == directories.end()) {
      directories.push_back(std::move(directory));
    }
  };
  for (const CgroupMembership& membership : memberships) {
    // The root cgroup is the whole machine (or container): nobody's own.
    if (membership.deleted || membership.path == "/") continue;
    if (membership.controllers.empty()) {
      if (hierarchy.version == CgroupVersion::kV2) add(hierarchy.v2_mount, membership.path);
      continue;
    }
    for (const std::string& controller : membership.controllers) {
      const auto mount = hierarchy.v1_mounts.find(controller);
      if (mount != hierarchy.v1_mounts.end()) add(mount->second, membership.path);
    }
  }
  return directories;
}

base::Result<std::vector<std::string>> CgroupsOfPid(const std::string& root, pid_t pid) {
  EXPANSE_ASSIGN_OR_RETURN(const CgroupHierarchy hierarchy, DetectHierarchy(root));
  EXPANSE_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(base::JoinPath(
                                                       root, fmt::format("proc/{}/cgroup", pid))));
  return CgroupDirectories(hierarchy, ParseProcCgroup(text));
}

}  // namespace expanse::collect
