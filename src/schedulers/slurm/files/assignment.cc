#include "schedulers/slurm/files/assignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/crypto.h"
#include "base/text.h"

namespace expanse::schedulers::slurm {
namespace {

constexpr std::string_view kMagic = "expanse-assign 1";
constexpr std::size_t kMaxText = 8192;  // of one path or command

// Blanks, control characters, "%", "=" and all that is not ASCII as %XX.
std::string Escape(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kMaxText)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7F && c != '%' && c != '=') {
      out += c;
    } else {
      out += fmt::format("%{:02X}", byte);
    }
  }
  return out;
}

std::optional<std::string> Unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned value = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != 2 || error != std::errc() || end != digits.data() + 2) return std::nullopt;
    out += static_cast<char>(value);
    i += 2;
  }
  if (out.size() > kMaxText || out.find('\0') != std::string::npos) return std::nullopt;
  return out;
}

void AppendText(std::string& line, std::string_view name, std::string_view value) {
  if (!value.empty()) line += fmt::format(" {}={}", name, Escape(value));
}

std::string LineOf(const Assignment& job) {
  std::string line = fmt::format("job {} uid={}", job.job_id, job.uid);
  std::string flags;
  const auto flag = [&flags](bool set, std::string_view name) {
    if (set) flags += (flags.empty() ? "" : ",") + std::string(name);
  };
  flag(job.logs, "logs");
  flag(job.sources, "sources");
  flag(job.ended, "ended");
  AppendText(line, "flags", flags);
  if (job.started) {
    line += fmt::format(" started={}", base::ToMicros(*job.started) / 1'000'000);
  }
  AppendText(line, "stdout", job.stdout_path);
  AppendText(line, "stderr", job.stderr_path);
  AppendText(line, "directory", job.working_directory);
  AppendText(line, "command", job.command);
  AppendText(line, "script", job.script_sha256);
  return line + '\n';
}

std::string EndLine(std::string_view body, std::size_t count) {
  return fmt::format("end {} {:08x}\n", count, base::Crc32c(body));
}

bool SetText(std::string* field, std::string_view value) {
  auto text = Unescape(value);
  if (!text) return false;
  *field = *std::move(text);
  return true;
}

// False: not a value that this field can have.
bool SetField(Assignment& job, std::string_view name, std::string_view value) {
  if (name == "uid") {
    const auto uid = base::ParseInt<std::uint32_t>(value);
    job.uid = uid.value_or(0);
    return uid.has_value();
  }
  if (name == "started") {
    const auto seconds = base::ParseInt<std::int64_t>(value);
    constexpr std::int64_t kMost = 100'000'000'000;  // the year 5138
    if (!seconds || *seconds < 0 || *seconds > kMost) return false;
    job.started = base::WallTime(std::chrono::seconds(*seconds));
    return true;
  }
  if (name == "flags") {
    const auto flags = base::Split(value, ',');
    const auto has = [&flags](std::string_view flag) {
      return std::find(flags.begin(), flags.end(), flag) != flags.end();
    };
    job.logs = has("logs");
    job.sources = has("sources");
    job.ended = has("ended");
    return true;
  }
  if (name == "stdout") return SetText(&job.stdout_path, value);
  if (name == "stderr") return SetText(&job.stderr_path, value);
  if (name == "directory") return SetText(&job.working_directory, value);
  if (name == "command") return SetText(&job.command, value);
  if (name == "script") return SetText(&job.script_sha256, value);
  return true;  // of a newer version
}

std::optional<Assignment> ParseJob(std::string_view line) {
  const auto words = base::SplitSpaces(line);
  if (words.size() < 3 || words[0] != "job") return std::nullopt;
  const auto id = base::ParseInt<std::uint32_t>(words[1]);
  if (!id || *id == 0) return std::nullopt;
  Assignment job{.job_id = *id, .logs = false, .sources = false};
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    if (!SetField(job, words[i].substr(0, equals), words[i].substr(equals + 1)))
      return std::nullopt;
  }
  if (job.uid == 0) return std::nullopt;
  return job;
}

std::unexpected<base::Error> Malformed(std::string_view what) {
  return base::Fail(base::Code::kInvalidArgument, "assign.malformed",
                    fmt::format("an assignment's {} is not as it should be", what));
}

}  // namespace

std::string EncodeAssignments(std::string_view host, const std::vector<Assignment>& assignments) {
  std::string body = fmt::format("{}\nhost {}\n", kMagic, Escape(host));
  const std::size_t count = std::min(assignments.size(), kMaxAssignments);
  for (std::size_t i = 0; i < count; ++i) body += LineOf(assignments[i]);
  return body + EndLine(body, count);
}

base::Result<std::vector<Assignment>> ParseAssignments(std::string_view bytes,
                                                       std::string_view host) {
  const auto torn = [] {
    return base::Fail(base::Code::kDataLoss, "assign.torn", "the assignment is not whole");
  };
  if (bytes.size() > kMaxAssignmentBytes) return Malformed("size");
  if (!bytes.starts_with(std::string(kMagic) + '\n')) {
    const bool other = bytes.starts_with("expanse-assign ") && bytes.find('\n') != bytes.npos;
    if (!other) return torn();
    return base::Fail(base::Code::kUnimplemented, "assign.version",
                      "the assignment is of a version that this one does not read");
  }
  if (!bytes.ends_with('\n')) return torn();
  const std::size_t last = bytes.rfind('\n', bytes.size() - 2);
  if (last == std::string_view::npos) return torn();
  const std::string_view body = bytes.substr(0, last + 1);
  auto lines = base::Split(body.substr(0, body.size() - 1), '\n');
  if (lines.size() < 2 || bytes.substr(last + 1) != EndLine(body, lines.size() - 2)) return torn();
  if (lines[1] != "host " + Escape(host)) {
    return base::Fail(base::Code::kInvalidArgument, "assign.host",
                      "the assignment is for another host");
  }
  if (lines.size() - 2 > kMaxAssignments) return Malformed("number of jobs");
  std::vector<Assignment> jobs;
  jobs.reserve(lines.size() - 2);
  for (std::size_t i = 2; i < lines.size(); ++i) {
    auto job = ParseJob(lines[i]);
    if (!job) return Malformed("job");
    jobs.push_back(*std::move(job));
  }
  return jobs;
}

}  // namespace expanse::schedulers::slurm
