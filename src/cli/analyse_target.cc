#include "cli/analyse_target.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "cli/patch_apply.h"
#include "cli/rewrite_file.h"
#include "collect/sources/source_bundle.h"
#include "workload/parse.h"

namespace expanse::cli {
namespace {

constexpr std::string_view kStandardInput = "-";

base::Result<std::string> WorkingDirectory() {
  std::array<char, 4096> buffer{};
  if (::getcwd(buffer.data(), buffer.size()) == nullptr)
    return base::FailErrno(errno, "the working directory");
  return std::string(buffer.data());
}

std::unexpected<base::Error> Refuse(std::string_view reason, std::string message) {
  return base::Fail(base::Code::kInvalidArgument, fmt::format("target.{}", reason),
                    std::move(message));
}

base::Result<std::string> ReadBytes(const std::string& path, const InputReader& input) {
  if (path == kStandardInput) return input(workload::kMaxText);
  EXPANSE_ASSIGN_OR_RETURN(ReadFileState read, ReadForRewrite(path, workload::kMaxText));
  return std::move(read.text);
}

base::Result<std::string> ReadText(const std::string& path, const InputReader& input) {
  auto text = ReadBytes(path, input);
  if (!text && text.error().reason == "files.too_large") {
    return Refuse("too_large",
                  fmt::format("{} is larger than {} MiB", path, workload::kMaxText >> 20));
  }
  if (text && text->empty()) return Refuse("empty", path + " is empty");
  return text;
}

// As the daemon and `expanse run` would have taken it, had it run from here.
collect::SourceRequest RequestFor(workload::Format format, const std::string& full_path,
                                  const std::string& text, const std::string& directory) {
  collect::SourceRequest request{
      .command = {}, .program = {}, .working_directory = directory, .extra = {}, .limits = {}};
  if (format == workload::Format::kSbatch) {
    request.command = {full_path};
    request.script = text;
    request.script_path = full_path;
  } else if (format == workload::Format::kSource) {
    request.command = {"sh", full_path};  // a script, and what it names
  }
  return request;
}

// What relative names in the file are relative to: where the user is, or where a job says it runs.
std::string DirectoryOf(workload::Format format, const std::string& here, const std::string& path,
                        const std::string& text) {
  if (format != workload::Format::kSbatch) return here;
  const auto script = workload::Parse(path, text);
  if (!script || script->directory.empty()) return here;
  const std::string& directory = script->directory;
  return directory.front() == '/' ? directory : base::JoinPath(here, directory);
}

struct Where {
  std::string here;       // the working directory
  std::string directory;  // that of relative names in the file
};

base::Status AddFiles(const std::string& full_path, const Where& where, const std::string& text,
                      AnalyseTarget* target) {
  const evidence::SourceBundle bundle =
      collect::CollectSources(RequestFor(target->format, full_path, text, where.directory));
  for (const auto& skipped : bundle.skipped) {
    if (skipped.path == full_path && skipped.reason == "secret_name") {
      return Refuse("secret_name",
                    target->file.path + " has the name of a file of secrets: it is not sent");
    }
  }
  const std::string below = where.here.ends_with('/') ? where.here : where.here + "/";
  for (const auto& file : bundle.files) {
    if (file.path == full_path) continue;
    const bool is_below = file.path.starts_with(below);
    target->files.push_back({.path = is_below ? file.path.substr(below.size()) : file.path,
                             .data = file.data,
                             .role = file.role});
  }
  return {};
}

}  // namespace

base::Result<AnalyseTarget> ReadTarget(const std::string& path, const InputReader& input) {
  EXPANSE_ASSIGN_OR_RETURN(const std::string text, ReadText(path, input));
  const auto format = workload::DetectFormat(path == kStandardInput ? "" : path, text);
  if (!format) {
    const workload::Refusal& refusal = format.error();
    const std::string where = refusal.line > 0 ? fmt::format(":{}", refusal.line) : "";
    return Refuse(refusal.reason, fmt::format("{}{}: {}", path, where, refusal.message));
  }
  AnalyseTarget target{.file = {.path = path, .data = RedactedForServer(text), .role = "script"},
                       .files = {},
                       .format = *format};
  const bool names_files = *format == workload::Format::kSbatch ||
                           (*format == workload::Format::kSource && path != kStandardInput);
  if (names_files) {
    EXPANSE_ASSIGN_OR_RETURN(const std::string here, WorkingDirectory());
    const std::string directory = DirectoryOf(*format, here, path, text);
    const std::string name = path == kStandardInput ? "batch_script" : path;
    const std::string full = name.front() == '/' ? name : base::JoinPath(here, name);
    EXPANSE_RETURN_IF_ERROR(AddFiles(full, {.here = here, .directory = directory}, text, &target));
  }
  return target;
}

}  // namespace expanse::cli
