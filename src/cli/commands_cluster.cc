// compute queue, compute nodes: the newest snapshot of a cluster.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/bytes.h"
#include "base/text.h"
#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/lookup.h"
#include "cli/parse.h"
#include "cli/pending_reason.h"
#include "cli/planes.h"
#include "cli/render.h"
#include "expanse/data/v1/query_service.pb.h"

namespace expanse::cli {
namespace {

constexpr auto kStaleAfter = std::chrono::minutes(5);

constexpr PositionalSpec kCluster[] = {
    {.name = "COMPUTE",
     .help = "Id or name of the compute; not needed where one of yours is a cluster",
     .required = false}};
constexpr OptionSpec kPartition = {.name = "partition",
                                   .kind = ValueKind::kText,
                                   .value_name = "PARTITION",
                                   .help = "Only this partition"};
constexpr OptionSpec kJson = {
    .name = "json", .kind = ValueKind::kFlag, .help = "Print the API's JSON"};
constexpr OptionSpec kQueueOptions[] = {
    {.name = "limit",
     .kind = ValueKind::kInt,
     .value_name = "N",
     .help = "At most this many pending jobs",
     .default_text = "25",
     .min = 0,
     .max = 1000},
    {.name = "user",
     .kind = ValueKind::kText,
     .value_name = "USER",
     .help = "Only what this user submitted"},
    kPartition,
    kJson,
};
constexpr ExampleSpec kQueueExamples[] = {
    {"expanse compute queue", "what waits on your cluster and why"},
    {"expanse compute queue slurm --user ada --partition gpu", "one user's jobs in one partition"},
};
constexpr OptionSpec kNodesOptions[] = {kPartition, kJson};
constexpr ExampleSpec kNodesExamples[] = {
    {"expanse compute nodes", "the nodes of your cluster and what is allocated on them"},
    {"expanse compute nodes slurm --partition gpu", "those of one partition"},
};

bool IsOneOf(std::string_view wanted, std::string_view comma_list) {
  for (const std::string_view name : base::Split(comma_list, ',')) {
    if (name == wanted) return true;
  }
  return false;
}

template <typename Items, typename Keep>
void KeepOnly(Items* items, const Keep& keep) {
  items->erase(
      std::remove_if(items->begin(), items->end(), [&](const auto& item) { return !keep(item); }),
      items->end());
}

// What stays of the snapshot where only one partition, or only one user's jobs, are asked for.
void KeepPartition(std::string_view name, data::v1::ClusterState* state) {
  KeepOnly(state->mutable_partitions(), [&](const auto& p) { return p.name() == name; });
  KeepOnly(state->mutable_pending(),
           [&](const auto& job) { return IsOneOf(name, job.partition()); });
  KeepOnly(state->mutable_nodes(), [&](const auto& node) {
    return std::find(node.partitions().begin(), node.partitions().end(), name) !=
           node.partitions().end();
  });
}
void KeepUser(std::string_view name, data::v1::ClusterState* state) {
  KeepOnly(state->mutable_pending(), [&](const auto& job) { return job.user() == name; });
}

std::expected<data::v1::GetClusterStateResponse, Failure> Fetch(App& app,
                                                                const Arguments& arguments,
                                                                const char* command) {
  auto planes = Planes::Open(app);
  if (!planes) return std::unexpected(std::move(planes).error().With(command));
  const std::string named = arguments.positionals().empty() ? "" : arguments.positionals().front();
  auto id = ResolveCluster(*planes, named);
  if (!id) {
    const bool choose = id.error().reason == "cli.cluster";
    return std::unexpected(
        Failure(std::move(id).error().With(command),
                choose ? fmt::format("expanse {} COMPUTE (expanse compute list)", command) : ""));
  }
  data::v1::GetClusterStateRequest request;
  request.set_compute_id(*id);
  auto response = planes->Data<data::v1::GetClusterStateResponse>(
      "expanse.data.v1.QueryService.GetClusterState", request);
  if (!response) return std::unexpected(std::move(response).error().With(command));
  if (!response->has_state()) {
    return FailWith(base::Code::kNotFound, "cli.cluster_state",
                    fmt::format("{}: the compute has not told the state of a cluster yet", command),
                    fmt::format("expanse compute show {}", *id));
  }
  return std::move(*response);
}

// Says how old a part of the snapshot is where that matters.
void WarnIfStale(App& app, std::string_view what, bool present,
                 const google::protobuf::Timestamp& at) {
  if (!present) return;
  const base::WallTime seen = FromTimestamp(at);
  const base::WallTime now = app.clock.Now();
  if (now - seen > kStaleAfter)
    Warn(app, fmt::format("{} last looked at {}", what, RelativeTime(now, seen)));
}

template <typename Show>
std::string Part(bool has_used, std::uint64_t used, bool has_total, std::uint64_t total,
                 const Show& show) {
  if (!has_total) return {};
  return fmt::format("{}/{}", has_used ? show(used) : "?", show(total));
}

std::string Number(std::uint64_t n) { return std::to_string(n); }
std::string Size(std::uint64_t bytes) { return base::FormatBytes({bytes}); }

template <typename Message>  // ClusterPartition or ClusterNode
std::string Cpus(const Message& of) {
  return Part(of.has_cpus_allocated(), of.cpus_allocated(), of.has_cpus_total(), of.cpus_total(),
              Number);
}
template <typename Message>
std::string Memory(const Message& of) {
  return Part(of.has_memory_allocated_bytes(), of.memory_allocated_bytes(),
              of.has_memory_total_bytes(), of.memory_total_bytes(), Size);
}
template <typename Message>
std::string Gpus(const Message& of) {
  std::string text;
  for (const auto& gpu : of.gpus()) {
    const std::string part =
        Part(gpu.has_allocated(), gpu.allocated(), gpu.has_total(), gpu.total(), Number);
    if (part.empty()) continue;
    text += fmt::format("{}{}{}{}", text.empty() ? "" : ", ", gpu.type(),
                        gpu.type().empty() ? "" : " ", part);
  }
  return text;
}

std::string PartitionTable(const App& app, const data::v1::ClusterState& state) {
  Table table({{.header = "PARTITION", .least = 8},
               {.header = "STATE"},
               {.header = "NODES", .align = Align::kRight},
               {.header = "CPUS", .align = Align::kRight},
               {.header = "FREE", .align = Align::kRight},
               {.header = "MEMORY", .align = Align::kRight, .optional = true},
               {.header = "GPUS"},
               {.header = "TIME LIMIT"},
               {.header = "RUNNING", .align = Align::kRight},
               {.header = "PENDING", .align = Align::kRight}});
  for (const auto& partition : state.partitions()) {
    const auto count = [](bool has, std::uint64_t n) { return has ? Number(n) : std::string(); };
    const bool up = partition.state() == "UP";
    table.Add({partition.name() + (partition.is_default() ? "*" : ""),
               Cell(base::ToLower(partition.state()), up ? Tint::kGood : Tint::kBad),
               count(partition.has_nodes_total(), partition.nodes_total()), Cpus(partition),
               count(partition.has_cpus_idle(), partition.cpus_idle()), Memory(partition),
               Gpus(partition),
               partition.has_max_time_seconds()
                   ? base::FormatDuration(std::chrono::seconds(partition.max_time_seconds()))
                   : "",
               count(partition.has_running_jobs(), partition.running_jobs()),
               count(partition.has_pending_jobs(), partition.pending_jobs())});
  }
  return table.Render(StyleOf(app));
}

std::string PendingTable(const App& app, const data::v1::ClusterState& state, int limit) {
  Table table({{.header = "JOB ID", .least = 8},
               {.header = "NAME", .least = 8, .optional = true},
               {.header = "USER", .least = 6},
               {.header = "PARTITION", .least = 8},
               {.header = "WAITS FOR", .least = 16},
               {.header = "SINCE"},
               {.header = "EXPECTED START"}});
  for (int i = 0; i < std::min(limit, state.pending_size()); ++i) {
    const auto& job = state.pending(i);
    table.Add({job.native_id(), job.name(), job.user(), job.partition(),
               ExplainPending(job.reason()).waits_for,
               ShowTime(app, job.has_submitted_at(), job.submitted_at()),
               ShowTime(app, job.has_expected_start_at(), job.expected_start_at())});
  }
  return table.Render(StyleOf(app));
}

// Of all pending jobs, or of those that are left where only some were asked for.
std::string ReasonTable(const App& app, const data::v1::ClusterState& state, bool all) {
  std::vector<std::pair<std::string, std::uint32_t>> reasons;
  if (all) {
    reasons.assign(state.pending_by_reason().begin(), state.pending_by_reason().end());
  } else {
    std::map<std::string, std::uint32_t> counts;
    for (const auto& job : state.pending()) ++counts[job.reason()];
    reasons.assign(counts.begin(), counts.end());
  }
  if (reasons.empty()) return {};
  std::sort(reasons.begin(), reasons.end(), [](const auto& a, const auto& b) {
    return std::tie(b.second, a.first) < std::tie(a.second, b.first);
  });
  Table table({{.header = "REASON", .least = 10},
               {.header = "JOBS", .align = Align::kRight},
               {.header = "WHAT HELPS", .least = 24}});
  for (const auto& [reason, jobs] : reasons)
    table.Add({reason, std::to_string(jobs), ExplainPending(reason).advice});
  return "\n" + table.Render(StyleOf(app));
}

CommandResult Queue(App& app, const Arguments& arguments) {
  EXPANSE_ASSIGN_OR_RETURN(auto response, Fetch(app, arguments, "compute queue"));
  data::v1::ClusterState& state = *response.mutable_state();
  if (arguments.Has("partition"))
    KeepPartition(base::ToValidUtf8(arguments.Text("partition")), &state);
  if (arguments.Has("user")) KeepUser(base::ToValidUtf8(arguments.Text("user")), &state);
  if (arguments.Flag("json")) return PrintJson(app, response);
  const bool all = !arguments.Has("user") && !arguments.Has("partition");
  const int limit = static_cast<int>(arguments.Int("limit", 25));
  app.terminal.Out(PartitionTable(app, state));
  app.terminal.Out("\n" + PendingTable(app, state, limit));
  app.terminal.Out(ReasonTable(app, state, all));
  if (response.pending_withheld())
    Say(app, "Pending jobs are shown to those who may read executions; you see their number.");
  const auto pending = static_cast<std::uint64_t>(state.pending_size());
  const std::uint64_t known = all && state.has_pending_jobs() ? state.pending_jobs() : pending;
  const std::uint64_t shown = std::min<std::uint64_t>(pending, static_cast<std::uint64_t>(limit));
  if (known > shown)
    Say(app, fmt::format("{} of {} pending jobs; --limit N shows more.", shown, known));
  WarnIfStale(app, "the queue was", state.has_observed_at(), state.observed_at());
  return 0;
}

// As administrators know it: "mixed+drain".
std::string NodeState(const data::v1::ClusterNode& node) {
  std::string text = base::ToLower(node.state());
  for (const std::string& flag : node.flags()) text += "+" + base::ToLower(flag);
  return text;
}

Tint NodeTint(const data::v1::ClusterNode& node) {
  constexpr std::string_view kBad[] = {"DOWN",    "DRAIN",          "ERROR",  "FAIL",
                                       "FAILING", "NOT_RESPONDING", "FUTURE", "UNKNOWN"};
  const auto is_bad = [&](std::string_view word) {
    return std::find(std::begin(kBad), std::end(kBad), word) != std::end(kBad);
  };
  if (is_bad(node.state()) || std::any_of(node.flags().begin(), node.flags().end(), is_bad))
    return Tint::kBad;
  return node.state() == "IDLE" ? Tint::kGood : Tint::kBusy;
}

CommandResult Nodes(App& app, const Arguments& arguments) {
  EXPANSE_ASSIGN_OR_RETURN(auto response, Fetch(app, arguments, "compute nodes"));
  data::v1::ClusterState& state = *response.mutable_state();
  if (arguments.Has("partition"))
    KeepPartition(base::ToValidUtf8(arguments.Text("partition")), &state);
  if (arguments.Flag("json")) return PrintJson(app, response);
  Table table({{.header = "NODE", .least = 8},
               {.header = "STATE"},
               {.header = "CPUS", .align = Align::kRight},
               {.header = "MEMORY", .align = Align::kRight},
               {.header = "GPUS"},
               {.header = "PARTITIONS", .least = 8, .optional = true},
               {.header = "REASON", .least = 12}});
  for (const auto& node : state.nodes()) {
    table.Add({node.name(), Cell(NodeState(node), NodeTint(node)), Cpus(node), Memory(node),
               Gpus(node), fmt::format("{}", fmt::join(node.partitions(), ",")), node.reason()});
  }
  app.terminal.Out(table.Render(StyleOf(app)));
  WarnIfStale(app, "the nodes were", state.has_nodes_observed_at(), state.nodes_observed_at());
  return 0;
}

}  // namespace

constinit const CommandSpec kComputeQueueCommand = {
    .name = "queue",
    .summary = "Show what waits on a cluster and why",
    .description =
        "Shows the partitions of a cluster with what is allocated and free (allocated/total), the "
        "pending jobs of the highest priority with what they wait for, and what helps against "
        "each reason. It is the daemon's last look, not evidence: nothing of it is kept.",
    .options = kQueueOptions,
    .positionals = kCluster,
    .examples = kQueueExamples,
    .run = Queue};

constinit const CommandSpec kComputeNodesCommand = {
    .name = "nodes",
    .summary = "Show the nodes of a cluster",
    .description =
        "Shows the nodes of a cluster with their state, what is allocated on them "
        "(allocated/total) and why they take no jobs, as its scheduler says.",
    .options = kNodesOptions,
    .positionals = kCluster,
    .examples = kNodesExamples,
    .run = Nodes};

}  // namespace expanse::cli
