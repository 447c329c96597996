#include "intelligence/site_runbooks.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/crypto.h"
#include "base/files.h"
#include "base/log.h"
#include "base/text.h"

namespace expanse::intelligence {
namespace {

using base::Code;

bool IsRunbookFile(std::string_view name) {
  return !name.starts_with('.') && name.ends_with(".yaml");
}

std::unexpected<base::Error> TooMuch(const std::string& directory) {
  return base::Fail(Code::kResourceExhausted, "runbook.too_many",
                    fmt::format("{}: more than {} files or {} bytes", directory,
                                SiteRunbooks::kMostFiles, SiteRunbooks::kMostBytes));
}

std::size_t CountSiteOwn(const Runbooks& runbooks) {
  return static_cast<std::size_t>(
      std::ranges::count_if(runbooks.set->runbooks(),
                            [](const diagnose::Runbook& runbook) { return !runbook.embedded; }));
}

}  // namespace

SiteRunbooks::SiteRunbooks(std::string directory, std::chrono::milliseconds poll,
                           base::Clock& clock, base::MetricRegistry& metrics, Runbooks embedded)
    : directory_(std::move(directory)),
      poll_(poll),
      clock_(clock),
      failures_(metrics.GetCounter("expanse_site_runbook_failures_total",
                                   "Times that the site's runbooks had changed and could not be "
                                   "used.")),
      in_force_(metrics.GetGauge("expanse_site_runbooks", "The site's own runbooks in force.")),
      embedded_(std::move(embedded)),
      current_(embedded_) {}

base::Result<std::unique_ptr<SiteRunbooks>> SiteRunbooks::Create(std::string directory,
                                                                 std::chrono::milliseconds poll,
                                                                 base::Clock& clock,
                                                                 base::MetricRegistry& metrics) {
  EXPANSE_ASSIGN_OR_RETURN(const auto embedded, EmbeddedRunbooks::Create());
  std::unique_ptr<SiteRunbooks> runbooks(
      new SiteRunbooks(std::move(directory), poll, clock, metrics, embedded->Current()));
  runbooks->Reload();
  return runbooks;
}

Runbooks SiteRunbooks::Current() {
  const std::scoped_lock lock(mutex_);
  return current_;
}

void SiteRunbooks::Start() {
  if (directory_.empty() || thread_.joinable()) return;
  thread_ = std::jthread([this](const std::stop_token& stop) {
    while (clock_.WaitFor(stop, poll_)) Reload();
  });
}

void SiteRunbooks::Stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

bool SiteRunbooks::Reload() {
  if (directory_.empty()) return false;
  const auto files = Look();
  const std::string stamps = files ? files->stamps : "! " + files.error().message;
  if (seen_ == stamps) return false;
  seen_ = stamps;
  const auto read = files ? Read(*files) : std::unexpected(files.error());
  {
    const std::scoped_lock lock(mutex_);
    if (read) {
      current_ = *read;
    } else {
      current_.site_error = read.error().message;
    }
    in_force_.Set(static_cast<double>(CountSiteOwn(current_)));
  }
  if (read) {
    base::LogInfo("intelligence.runbooks",
                  {{"directory", directory_}, {"of_the_site", CountSiteOwn(*read)}});
  } else {
    failures_.Add();
    base::LogWarn("intelligence.runbooks",
                  {{"reason", read.error().reason}, {"error", read.error().message}});
  }
  return true;
}

base::Result<SiteRunbooks::Listing> SiteRunbooks::Look() const {
  EXPANSE_ASSIGN_OR_RETURN(const auto names, base::ListDirectory(directory_));
  Listing files;
  std::size_t bytes = 0;
  for (const std::string& name : names) {
    if (!IsRunbookFile(name)) continue;
    const std::string path = base::JoinPath(directory_, name);
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) {
      if (errno == ENOENT) continue;  // removed meanwhile, or a link to nowhere
      return base::FailErrno(errno, path);
    }
    if (!S_ISREG(status.st_mode)) continue;
    bytes += static_cast<std::size_t>(std::max<off_t>(status.st_size, 0));
    if (files.paths.size() == kMostFiles || bytes > kMostBytes) return TooMuch(directory_);
    files.paths.push_back(path);
    // The change time tells of permissions too.
    files.stamps += fmt::format("{}:{}:{}:{}.{}:{}.{}\n", path, status.st_ino, status.st_size,
                                status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                                status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
  }
  return files;
}

base::Result<Runbooks> SiteRunbooks::Read(const Listing& files) const {
  if (files.paths.empty()) return embedded_;
  std::vector<diagnose::Runbook> all = diagnose::RunbookSet::Embedded();
  std::string content;
  for (const std::string& path : files.paths) {
    EXPANSE_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kMostBytes));
    content += fmt::format("{}:{}:{}:", path, text.size(), text);
    EXPANSE_ASSIGN_OR_RETURN(auto runbooks, diagnose::ParseRunbooks(text, path));
    std::ranges::move(runbooks, std::back_inserter(all));
  }
  EXPANSE_ASSIGN_OR_RETURN(
      auto set, diagnose::RunbookSet::Create(std::move(all), diagnose::RunbookSet::EmbeddedDecoys(),
                                             /*replace=*/true));
  return Runbooks{
      .set = std::move(set), .version = "site-" + base::Sha256Hex(content), .site_error = {}};
}

}  // namespace expanse::intelligence
