// Job, groups and tasks.
#include "workload/nomad/jobspec.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "workload/nomad/insert.h"
#include "workload/nomad/json.h"

namespace expanse::workload::nomad {
namespace {

using hcl::Block;
using hcl::Expression;
using hcl::Value;

class Reader {
 public:
  explicit Reader(Jobspec& jobspec) : jobspec_(jobspec), context_(*jobspec.context) {}

  std::optional<Refusal> Read() {
    const Block* const job = FindJob();
    if (job == nullptr) return refusal_;
    const Section section = JobSection(*job);
    // Nomad knows a job by its id, which is the label where nothing else is said. Of an id that is
    // still to be filled in, the label says more.
    job_name_ = GetName(context_, section, "id");
    const std::string label = section.label.substr(0, 1024);
    if (job_name_.empty() || (IsRuntimeText(job_name_) && !label.empty())) job_name_ = label;
    kind_ = GetName(context_, section, "type");
    if (kind_.empty()) kind_ = "service";
    name_space_ = GetName(context_, section, "namespace");
    job_meta_ = Members(context_, section, "meta");
    NoteJob(section);
    jobspec_.submission.format = Format::kNomad;
    jobspec_.submission.name = job_name_;
    ForEachSection(context_, section, "group", [&](const Section& group) {
      ReadGroup(group);
      return !refusal_;
    });
    // A task without a group is a group of its own name.
    ForEachSection(context_, section, "task", [&](const Section& task) {
      ReadTask(task, {.name = task.label.substr(0, 1024)});
      return !refusal_;
    });
    if (!refusal_ && jobspec_.submission.parts.empty()) {
      Refuse(job->begin, "not_a_workload", "job \"" + job_name_ + "\" has no task");
    }
    std::ranges::stable_sort(context_.notes, {}, &Note::line);
    jobspec_.submission.notes = context_.notes;
    return refusal_;
  }

 private:
  void Refuse(std::size_t offset, std::string reason, std::string message) {
    if (refusal_) return;
    const Place place = context_.lines.PlaceOf(offset, offset);
    refusal_ = Refusal{place.line, place.column, std::move(reason), std::move(message)};
  }

  const Block* FindJob() {
    const Block* job = nullptr;
    for (const Block& block : jobspec_.file->blocks) {
      if (block.type != "job") continue;
      if (job != nullptr) {
        Refuse(block.begin, "duplicate_block", "more than one job in a file");
        return nullptr;
      }
      job = &block;
    }
    if (job == nullptr) Refuse(0, "not_a_workload", "no job block");
    return job;
  }

  static Section JobSection(const Block& job) {
    Section section{.body = &job.body, .begin = job.begin};
    if (!job.labels.empty()) section.label = job.labels[0].text;
    return section;
  }

  void NoteJob(const Section& job) {
    ForEachSection(context_, job, "periodic", [&](const Section& periodic) {
      std::string cron = GetName(context_, periodic, "cron");
      const Value many = Get(context_, periodic, "crons");
      if (cron.empty() && !many.list().empty()) cron = many.list()[0].AsString().value_or("");
      context_.AddNote(periodic.begin, "periodic", "started by its schedule: " + cron);
      return true;
    });
    ForEachSection(context_, job, "parameterized", [&](const Section& parameterized) {
      context_.AddNote(parameterized.begin, "parameterized",
                       "each dispatch makes a job of its own; what it passes is not known");
      return true;
    });
    if (kind_ == "system" || kind_ == "sysbatch") {
      context_.AddNote(job.begin, "system", "one allocation on every node that is eligible");
    }
  }

  struct Group {
    std::string name;
    double count = 1;
    Value meta = {};
    const Section* disk = nullptr;  // the group whose disk is still to be read
  };

  void ReadGroup(const Section& section) {
    Group group{.name = section.label.substr(0, 1024),
                .count = Count(section),
                .meta = Members(context_, section, "meta"),
                .disk = &section};
    bool any = false;
    ForEachSection(context_, section, "task", [&](const Section& task) {
      ReadTask(task, group);
      any = true;
      group.disk = nullptr;
      return !refusal_;
    });
    ReadProxies(section, group);
    if (!any && !refusal_) {
      context_.AddNote(section.begin, "no_task",
                       "group \"" + group.name + "\" has no task of its own");
    }
  }

  // The proxies that Nomad adds for Consul Connect, where the jobspec says what they may use.
  void ReadProxies(const Section& section, const Group& group) {
    ForEachSection(context_, section, "service", [&](const Section& service) {
      ForEachSection(context_, service, "connect", [&](const Section& connect) {
        return ForEachSection(context_, connect, "sidecar_task", [&](const Section& proxy) {
          Section task = proxy;
          task.label = "connect-proxy-" + GetName(context_, service, "name");
          const bool asks =
              !ForEachSection(context_, proxy, "resources", [](const Section&) { return false; });
          if (asks) ReadTask(task, group);
          return !refusal_;
        });
      });
      return !refusal_;
    });
  }

  // What Nomad takes where `count` is not written: the least of a scaling policy, else 1.
  double Count(const Section& group) {
    const Expression* written = group.Find("count");
    Section in = group;
    ForEachSection(context_, group, "scaling", [&](const Section& scaling) {
      context_.AddNote(scaling.begin, "scaling", "an autoscaler may change how many run");
      if (written == nullptr) {
        written = scaling.Find("min");
        in = scaling;
      }
      return true;
    });
    if (written == nullptr) return 1;
    Setting count;
    SetAmount(context_.evaluator.Evaluate(*written, in.scope), 1, count);
    if (count.value) return *count.value;
    context_.AddNote(written->begin, "unresolved", "count is not known: " + count.unresolved);
    return 1;
  }

  void ReadTask(const Section& task, const Group& group) {
    if (jobspec_.submission.parts.size() >= kMaxParts) {
      Refuse(task.begin, "too_large", "more than 1000 tasks");
      return;
    }
    Part part;
    part.workload = job_name_;
    part.kind = kind_;
    part.name_space = name_space_;
    part.group = group.name;
    part.name = task.label.substr(0, 1024);
    part.replicas = group.count;
    Annotate(job_meta_, part);
    Annotate(group.meta, part);
    Annotate(Members(context_, task, "meta"), part);
    Jobspec::Task places;
    places.section = task;
    if (!CheckResources(task)) return;
    ReadLifecycle(task, part);
    if (group.disk != nullptr) ReadDisk(*group.disk, part, places);
    ReadResources(context_, task, part, places);
    const Value environment = Members(context_, task, "env");
    for (const auto& [name, value] : environment.object()) {
      const auto text = value.AsString();
      if (!text || !context_.Take(name.size() + text->size()) || IsRuntimeText(*text)) continue;
      part.environment[name] = *text;
    }
    ReadCommand(context_, task, part, task.begin);
    ReadFiles(context_, task, jobspec_.submission.files);
    SortSettings(part, places);
    AddInsertions(places, part);
    // The names that dynamic blocks bound are gone after reading.
    places.section.scope = places.resources.scope = nullptr;
    for (Section& device : places.devices) device.scope = nullptr;
    jobspec_.submission.parts.push_back(std::move(part));
    jobspec_.tasks.push_back(std::move(places));
  }

  bool CheckResources(const Section& task) {
    const Block* first = nullptr;
    for (const Block& block : task.body->blocks) {
      if (block.type != "resources") continue;
      if (first != nullptr) {
        Refuse(block.begin, "duplicate_block",
               "task \"" + task.label + "\" has more than one resources block");
        return false;
      }
      first = &block;
    }
    return true;
  }

  // Of the allocation: it stands with the group's first task.
  void ReadDisk(const Section& group, Part& part, Jobspec::Task& places) {
    ForEachSection(context_, group, "ephemeral_disk", [&](const Section& disk) {
      if (const Expression* size = disk.Find("size")) {
        AddSetting(context_, disk, *size, {.quantity = Quantity::kDisk, .per = Per::kJob}, 1 << 20,
                   part, places)
            .name = "ephemeral_disk.size";
      }
      return true;
    });
  }

  void ReadLifecycle(const Section& task, Part& part) {
    ForEachSection(context_, task, "lifecycle", [&](const Section& lifecycle) {
      const std::string hook = GetName(context_, lifecycle, "hook");
      const bool sidecar = Get(context_, lifecycle, "sidecar").AsBool().value_or(false);
      part.is_init = hook == "prestart" && !sidecar;
      context_.AddNote(
          lifecycle.begin, "lifecycle",
          "task \"" + part.name + "\" runs at " + hook + (sidecar ? ", beside the main task" : ""));
      return true;
    });
  }

  void Annotate(const Value& meta, Part& part) {
    for (const auto& [key, member] : meta.object()) {
      const auto text = member.AsString();
      if (!text || !context_.Take(key.size() + text->size()) || IsRuntimeText(*text)) continue;
      part.annotations[key] = *text;
    }
  }

  // Where memory can be written with one insertion.
  void AddInsertions(const Jobspec::Task& places, Part& part) {
    const auto memory = std::ranges::find_if(part.settings, [](const Setting& setting) {
      return setting.quantity == Quantity::kMemory && setting.bound == Bound::kRequest;
    });
    if (memory != part.settings.end() || places.section.repeated) return;
    const auto edits = InsertMemory(context_.text, jobspec_, places);
    if (edits.size() != 1 || edits[0].begin != edits[0].end) return;
    const std::string& text = edits[0].replacement;
    const std::size_t mark = text.find(kValueMark);
    part.insertions.push_back({.quantity = Quantity::kMemory,
                               .offset = edits[0].begin,
                               .before = text.substr(0, mark),
                               .after = text.substr(mark + 1)});
  }

  static void SortSettings(Part& part, Jobspec::Task& places) {
    std::vector<std::size_t> order(part.settings.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {},
                             [&](std::size_t i) { return part.settings[i].place.begin; });
    std::vector<Setting> settings;
    std::vector<const Expression*> values;
    for (const std::size_t i : order) {
      settings.push_back(std::move(part.settings[i]));
      values.push_back(places.values[i]);
    }
    part.settings = std::move(settings);
    places.values = std::move(values);
  }

  Jobspec& jobspec_;
  Context& context_;
  std::string job_name_;
  std::string kind_;
  std::string name_space_;
  Value job_meta_;
  std::optional<Refusal> refusal_;
};

}  // namespace

Parsed<Jobspec> ReadJobspec(std::string_view text, const ParseOptions& options) {
  if (text.size() > kMaxText) {
    return std::unexpected(Refusal{0, 0, "too_large", "the jobspec is larger than 4 MiB"});
  }
  Jobspec jobspec;
  auto body =
      hcl::LooksLikeJson(text) ? hcl::ParseJsonBody(text, jobspec.api) : hcl::ParseBody(text);
  if (!body) return std::unexpected(std::move(body).error());
  jobspec.file = std::make_unique<const hcl::Body>(*std::move(body));
  jobspec.context = std::make_unique<Context>(text, *jobspec.file, options.variables);
  if (auto refusal = Reader(jobspec).Read()) return std::unexpected(*std::move(refusal));
  return jobspec;
}

}  // namespace expanse::workload::nomad
