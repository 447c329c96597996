#include "cli/pending_reason.h"

#include <fmt/format.h>

#include <optional>

#include "base/text.h"

namespace expanse::cli {
namespace {

struct Known {
  std::string_view reason;
  std::string_view waits_for;
  std::string_view advice;
};

constexpr std::string_view kChange =
    "It will not start as it is: change it with scontrol update, or cancel and submit it again.";
constexpr std::string_view kAskAdmin = "Ask the administrators of the cluster.";
constexpr std::string_view kWait = "Wait; it needs nothing from you.";

constexpr Known kKnown[] = {
    {"None", "its first turn", "The scheduler has not looked at it yet."},
    {"Priority", "jobs of higher priority",
     "A shorter --time or fewer resources let it start in a gap before them."},
    {"Resources", "free nodes, CPUs, memory or GPUs",
     "It is among the next ones; asking for less lets it start sooner."},
    {"Dependency", "the jobs that it depends on", "It starts when they have ended as it asked."},
    {"DependencyNeverSatisfied", "a job that did not end as it asked",
     "Cancel it, or drop the dependency: scontrol update JobId=ID Dependency="},
    {"JobArrayTaskLimit", "other tasks of its array", "Raise the number behind % in --array."},
    {"BeginTime", "its start time",
     "It was submitted with --begin, or is held back after a requeue."},
    {"JobHeldUser", "its release by its user", "Release it: scontrol release ID"},
    {"JobHeldAdmin", "its release by an administrator", kAskAdmin},
    {"JobHoldMaxRequeue", "its release, requeued too often",
     "Find out why it fails (expanse executions show), then: scontrol release ID"},
    {"JobLaunchFailure", "another start: the last one failed",
     "Look at the reasons of its nodes (expanse compute nodes); where it is held, release it."},
    {"ReqNodeNotAvail", "nodes it asks for that are down or reserved",
     "Drop --nodelist, or shorten --time so that it ends before a reservation begins."},
    {"NodeDown", "a node that is down", kAskAdmin},
    {"Reservation", "its reservation to begin", kWait},
    {"ReservationDeleted", "a reservation that no longer exists", kChange},
    {"InvalidReservation", "a reservation that is not valid for it", kChange},
    {"PartitionDown", "its partition: it is down", "Another partition may take it."},
    {"PartitionInactive", "its partition: it starts no jobs", "Another partition may take it."},
    {"PartitionNodeLimit", "a change: wrong number of nodes for its partition", kChange},
    {"PartitionTimeLimit", "a change: its partition allows less time",
     "Shorten it: scontrol update JobId=ID TimeLimit=…"},
    {"PartitionConfig", "a change: its partition cannot take it", kChange},
    {"BadConstraints", "a change: no node has what it asks for", kChange},
    {"Licenses", "licenses that others use", kWait},
    {"BurstBufferResources", "room in the burst buffer", kWait},
    {"BurstBufferStageIn", "its data to be staged in", kWait},
    {"Prolog", "the prolog on its nodes", kWait},
    {"Cleaning", "its earlier run to be cleaned up", kWait},
    {"FrontEndDown", "a front end node", kAskAdmin},
    {"SystemFailure", "a repair of the scheduler", kAskAdmin},
    {"InvalidAccount", "a valid account", kChange},
    {"InvalidQOS", "a valid QOS", kChange},
    {"AccountNotAllowed", "an account that its partition allows", kChange},
    {"QOSNotAllowed", "a QOS that its partition allows", kChange},
    {"QOSUsageThreshold", "the usage of its QOS to fall", "Another QOS may take it."},
    {"AccountingPolicy", "a limit of its account or QOS", kAskAdmin},
    {"AssociationJobLimit", "a job of its account to end", kWait},
    {"AssociationResourceLimit", "a limit of resources of its account", kAskAdmin},
    {"AssociationTimeLimit", "a limit of time of its account", kAskAdmin},
    {"QOSJobLimit", "a job of its QOS to end", kWait},
    {"QOSResourceLimit", "a limit of resources of its QOS", kAskAdmin},
    {"QOSTimeLimit", "a limit of time of its QOS", kAskAdmin},
    {"DeadLine", "a change: it cannot end before its deadline", kChange},
    {"PowerNotAvail", "power for its nodes", kWait},
    {"PowerReserved", "power that a reservation holds", kWait},
};

// What a limit counts; longer words first, where one begins with another.
struct Amount {
  std::string_view word;  // lower case
  std::string_view means;
};
constexpr Amount kAmounts[] = {
    {"cpurunminutes", "CPU minutes of running jobs"},
    {"cpuminutes", "CPU minutes"},
    {"cpus", "CPUs"},
    {"cpu", "CPUs"},
    {"gresrunminutes", "GPU minutes of running jobs"},
    {"gresminutes", "GPU minutes"},
    {"gres", "GPUs or other GRES"},
    {"memoryrunminutes", "memory minutes of running jobs"},
    {"memoryminutes", "memory minutes"},
    {"memory", "memory"},
    {"memrunminutes", "memory minutes of running jobs"},
    {"memminutes", "memory minutes"},
    {"mem", "memory"},
    {"noderunminutes", "node minutes of running jobs"},
    {"nodeminutes", "node minutes"},
    {"nodes", "nodes"},
    {"node", "nodes"},
    {"submitjobs", "submitted jobs"},
    {"submitjob", "submitted jobs"},
    {"jobs", "running jobs"},
    {"job", "running jobs"},
    {"wallduration", "time"},
    {"wall", "time"},
    {"licenserunminutes", "license minutes of running jobs"},
    {"licenseminutes", "license minutes"},
    {"license", "licenses"},
    {"billingrunminutes", "billing minutes of running jobs"},
    {"billingminutes", "billing minutes"},
    {"billing", "billed units"},
    {"energyrunminutes", "energy of running jobs"},
    {"energyminutes", "energy over time"},
    {"energy", "energy"},
    {"bb", "burst buffer"},
};

bool Take(std::string_view* text, std::string_view prefix) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}

// [Assoc|QOS] (Grp|Max|Min) <amount> [PerUser|PerAccount|PerJob|PerNode] …
std::optional<PendingReason> ExplainLimit(std::string_view reason) {
  const std::string lower = base::ToLower(reason);
  std::string_view rest = lower;
  const bool of_account = Take(&rest, "assoc");
  // Max…PerAccount without a prefix is a limit of the QOS.
  const bool of_qos = !of_account && (Take(&rest, "qos") || rest.ends_with("peraccount"));
  if (!of_account && !of_qos) return std::nullopt;
  const std::string_view whose = of_account ? "account" : "QOS";
  const bool together = Take(&rest, "grp");
  const bool least = !together && Take(&rest, "min");
  if (!together && !least && !Take(&rest, "max")) return std::nullopt;
  std::string_view amount;
  for (const Amount& known : kAmounts) {
    if (!Take(&rest, known.word)) continue;
    amount = known.means;
    break;
  }
  if (amount.empty()) return std::nullopt;
  if (together) {
    return PendingReason{
        fmt::format("its {}'s limit of {}", whose, amount),
        fmt::format("All jobs of the {} together have reached it: wait for some to "
                    "end, or use another {}.",
                    whose, whose)};
  }
  if (least) {
    return PendingReason{fmt::format("a change: its {} asks for more {}", whose, amount),
                         std::string(kChange)};
  }
  if (rest.starts_with("perjob") || rest.starts_with("pernode")) {
    return PendingReason{fmt::format("a change: its {} allows less {}", whose, amount),
                         fmt::format("Ask for less, or use another {}.", whose)};
  }
  const std::string_view who = rest.starts_with("peraccount") ? "account" : "user";
  return PendingReason{
      fmt::format("its {}'s limit of {}", who, amount),
      fmt::format("A limit of its {}: wait for other jobs of the {} to end, or use another {}.",
                  whose, who, whose)};
}

}  // namespace

PendingReason ExplainPending(std::string_view reason) {
  // What stands behind a comma is detail, such as the names of nodes.
  const std::string_view word = base::Trim(reason.substr(0, reason.find(',')));
  for (const Known& known : kKnown) {
    if (known.reason == word) return {std::string(known.waits_for), std::string(known.advice)};
  }
  // A sentence rather than a word, from the scheduler's own description of the last try.
  if (word.starts_with("Nodes required for job are DOWN")) {
    return {"nodes that are down, drained or reserved",
            "Wait, or ask for other nodes (expanse compute nodes)."};
  }
  if (auto limit = ExplainLimit(word)) return std::move(*limit);
  return {std::string(reason), ""};
}

}  // namespace expanse::cli
