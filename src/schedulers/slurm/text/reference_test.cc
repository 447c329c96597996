// Captures of real clusters, read where they lie and never copied: nothing in them may be foreign
// to the parsers of this folder. Skipped where they are not.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "schedulers/slurm/text/hostlist.h"
#include "schedulers/slurm/text/job_id.h"
#include "schedulers/slurm/text/state.h"
#include "schedulers/slurm/text/tres.h"
#include "schedulers/slurm/text/values.h"

namespace expanse::schedulers::slurm {
namespace {

std::string ReferenceDirectory() {
  const char* given = std::getenv("EXPANSE_REFERENCE_DIR");
  const std::string root =
      given != nullptr ? given : EXPANSE_SOURCE_DIR "/../../../../shared/reference";
  return root + "/fixtures";
}

struct Capture {
  std::string name;
  std::string text;
};

std::vector<Capture> Captures(const std::string& folder) {
  const std::string directory = ReferenceDirectory() + "/" + folder;
  std::vector<Capture> captures;
  const auto names = base::ListDirectory(directory);
  if (!names) return captures;
  for (const std::string& name : *names) {
    auto text = base::ReadFile(directory + "/" + name);
    if (text) captures.push_back({.name = name, .text = std::move(*text)});
  }
  return captures;
}

// What parsers are asked about each value of a key; false is a failure.
using Check = std::function<bool(std::string_view)>;

bool IsHostlist(std::string_view text) { return ExpandHostlist(text).has_value(); }

bool IsTime(std::string_view text) {
  return ParseTimestamp(text).has_value() || IsAbsent(text) || text == "0";
}

bool IsLimit(std::string_view text) { return ParseTimeLimit(text) || IsAbsent(text); }

bool IsJobState(std::string_view text) {
  return ParseJobState(text).status != evidence::ExecutionStatus::kUnspecified;
}

bool IsMemory(std::string_view text) { return ParseMemory(text, kMebibyte).has_value(); }

// Each entry that executions have a field for was understood.
bool IsTres(std::string_view text) {
  const Tres tres = ParseTres(text);
  for (std::string_view entry : base::Split(text, ',')) {
    if (entry.starts_with("cpu=") && !tres.cpus) return false;
    if (entry.starts_with("mem=") && !tres.memory_bytes) return false;
    if (entry.starts_with("node=") && !tres.nodes) return false;
    if (entry.starts_with("billing=") && !tres.billing) return false;
    if ((entry.starts_with("gres/gpu=") || entry.starts_with("gres/gpu:")) && !tres.gpus) {
      return false;
    }
  }
  return true;
}

bool IsGres(std::string_view text) {
  if (IsAbsent(text)) return true;
  const auto list = ParseGres(text);
  std::size_t entries = 1;
  int depth = 0;
  for (char c : text) {
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == ',' && depth == 0) ++entries;
  }
  // A GPU that was counted has a number of devices that fits the numbers listed.
  for (const Gres& gres : list) {
    if (!gres.indices.empty() && gres.name == "gpu" && gres.indices.size() != gres.count) {
      return false;
    }
  }
  return list.size() == entries;
}

bool IsNodeState(std::string_view text) {
  static const std::set<std::string> kBases = {"IDLE", "MIXED", "ALLOCATED", "DOWN", "FUTURE"};
  return kBases.contains(ParseNodeState(text).base);
}

const std::map<std::string_view, Check>& TextChecks() {
  static const std::map<std::string_view, Check> checks = {
      {"NodeList", IsHostlist},
      {"ReqNodeList", IsHostlist},
      {"ExcNodeList", IsHostlist},
      {"Nodes", IsHostlist},
      {"SubmitTime", IsTime},
      {"StartTime", IsTime},
      {"EndTime", IsTime},
      {"EligibleTime", IsTime},
      {"Deadline", IsTime},
      {"TimeLimit", IsLimit},
      {"RunTime", IsLimit},
      {"TimeMin", IsLimit},
      {"MaxTime", IsLimit},
      {"DefaultTime", IsLimit},
      {"JobState", IsJobState},
      {"MinMemoryCPU", IsMemory},
      {"MinMemoryNode", IsMemory},
      {"TRES", IsTres},
      {"AllocTRES", IsTres},
      {"CfgTRES", IsTres},
      {"TresPerNode", IsGres},
      {"Gres", IsGres},
      {"GresUsed", IsGres},
      {"ExitCode", [](auto text) { return ParseExitCode(text).has_value(); }},
      {"ArrayTaskId", [](auto text) { return ParseArrayTasks(text).has_value(); }},
  };
  return checks;
}

const std::map<std::string_view, Check>& JsonChecks() {
  static const std::map<std::string_view, Check> checks = {
      {"nodes", IsHostlist},
      {"tres", IsTres},
      {"tres_used", IsTres},
      {"tres_alloc_str", IsTres},
      {"tres_req_str", IsTres},
      {"gres", IsGres},
      {"gres_used", IsGres},
      {"tres_per_node", IsGres},
      {"job_state", IsJobState},
      {"array_task_string",
       [](auto text) { return text.empty() || ParseArrayTasks(text).has_value(); }},
  };
  return checks;
}

// Values that are wrong on purpose, times relative to a day that nobody knows, quotes of a language
// in which a capture was kept.
bool IsMadeUp(const Capture& capture, std::string_view value) {
  return value == "a" || capture.name.find("relative_time") != std::string::npos ||
         value.starts_with('"');
}

// Words of the form Key=value at the beginnings of lines or behind blanks: scontrol's.
int CheckTextValues(const Capture& capture, const std::map<std::string_view, Check>& checks) {
  int checked = 0;
  for (std::string_view word : base::SplitSpaces(capture.text)) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    const auto check = checks.find(word.substr(0, equals));
    if (check == checks.end() || IsMadeUp(capture, word.substr(equals + 1))) continue;
    ++checked;
    EXPECT_TRUE(check->second(word.substr(equals + 1))) << capture.name << ": " << word;
  }
  return checked;
}

// "key": "value" anywhere.
int CheckJsonValues(const Capture& capture, const std::map<std::string_view, Check>& checks) {
  const std::string_view text = capture.text;
  int checked = 0;
  for (const auto& [key, check] : checks) {
    const std::string quoted = "\"" + std::string(key) + "\"";
    for (std::size_t at = text.find(quoted); at != std::string_view::npos;
         at = text.find(quoted, at + 1)) {
      std::string_view rest = text.substr(at + quoted.size());
      rest = rest.substr(std::min(rest.size(), rest.find_first_not_of(": ")));
      if (!rest.starts_with('"')) continue;
      const std::string_view value = rest.substr(1, rest.find('"', 1) - 1);
      if (value == key) continue;  // a schema's example
      ++checked;
      EXPECT_TRUE(check(value)) << capture.name << ": " << key << "=" << value;
    }
  }
  return checked;
}

TEST(SlurmReference, ScontrolsValuesAreUnderstood) {
  const auto captures = Captures("slurm-text");
  if (captures.empty()) GTEST_SKIP() << "no reference inputs at " << ReferenceDirectory();
  int checked = 0;
  for (const Capture& capture : captures) {
    if (capture.name.find("readme") != std::string::npos) continue;
    checked += CheckTextValues(capture, TextChecks());
  }
  EXPECT_GT(checked, 400);
}

TEST(SlurmReference, NodeStatesAreUnderstood) {
  const auto captures = Captures("slurm-text");
  if (captures.empty()) GTEST_SKIP() << "no reference inputs at " << ReferenceDirectory();
  int checked = 0;
  for (const Capture& capture : captures) {
    if (capture.text.find("NodeName=") == std::string::npos) continue;
    checked += CheckTextValues(capture, {{"State", IsNodeState}});
  }
  EXPECT_GT(checked, 20);
}

TEST(SlurmReference, ValuesInJsonAreUnderstood) {
  const auto captures = Captures("slurm-json");
  if (captures.empty()) GTEST_SKIP() << "no reference inputs at " << ReferenceDirectory();
  int checked = 0;
  for (const Capture& capture : captures) checked += CheckJsonValues(capture, JsonChecks());
  EXPECT_GT(checked, 2000);
}

// A column of squeue's or sinfo's output as other programs ask for it.
struct Column {
  std::string_view file;  // part of its name
  char separator;         // ' ': runs of white space
  std::size_t index;
  Check check;
};

TEST(SlurmReference, ColumnsOfSqueueAndSinfoAreUnderstood) {
  const auto captures = Captures("slurm-text");
  if (captures.empty()) GTEST_SKIP() << "no reference inputs at " << ReferenceDirectory();
  const Check is_id = [](auto text) { return ParseJobId(base::Trim(text)).has_value(); };
  const Check is_tres = [](auto text) { return IsTres(base::Trim(text)); };
  const std::vector<Column> columns = {
      {"__squeue_jobs", '|', 0, is_id},
      {"__squeue_jobs.txt", '|', 4, IsJobState},
      {"__squeue_jobs.txt", '|', 7, is_tres},
      {"_view.txt", '|', 2, IsJobState},
      {"_view.txt", '|', 5, is_tres},
      {"queue_all_states", '|', 1, IsJobState},
      {"treydock+prometheus-slurm-exporter__test_data__squeue", '|', 1, IsJobState},
      {"treydock+prometheus-slurm-exporter__test_data__squeue", '|', 4, IsTime},
      {"vpenso+prometheus-slurm-exporter__test_data__squeue", ',', 1, IsJobState},
      {"node_detail_gres", ' ', 6, IsGres},
      {"node_detail_gres", ' ', 7, IsGres},
      {"node_detail_gres", ' ', 4, IsNodeState},
      {"gpus_snapshot_long_gres", ' ', 1, IsGres},
  };
  std::map<std::size_t, int> checked;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    for (const Capture& capture : captures) {
      if (capture.name.find(column.file) == std::string::npos) continue;
      for (std::string_view line : base::Split(capture.text, '\n')) {
        const auto cells =
            column.separator == ' ' ? base::SplitSpaces(line) : base::Split(line, column.separator);
        if (line.empty() || cells.size() <= column.index) continue;
        ++checked[i];
        EXPECT_TRUE(column.check(cells[column.index]))
            << capture.name << " column " << column.index << ": " << cells[column.index];
      }
    }
    EXPECT_GT(checked[i], 0) << column.file;
  }
}

}  // namespace
}  // namespace expanse::schedulers::slurm
