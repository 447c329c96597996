#include "workload/sbatch/totals.h"

#include <algorithm>
#include <initializer_list>

namespace expanse::workload::sbatch {
namespace {

using Count = std::optional<std::uint64_t>;

Count Times(Count a, Count b) {
  std::uint64_t product = 0;
  if (!a || !b || __builtin_mul_overflow(*a, *b, &product)) return std::nullopt;
  return product;
}

Count DivideUp(Count a, Count b) {
  if (!a || !b || *b == 0) return std::nullopt;
  return *a / *b + (*a % *b != 0 ? 1 : 0);
}

// The greater; absent when either is.
Count Most(Count a, Count b) {
  if (!a || !b) return std::nullopt;
  return std::max(*a, *b);
}

template <typename T>
Count Value(const Amount<T>& amount) {
  return amount.value ? Count(*amount.value) : Count();
}

// 1 where nothing is written, absent where it is not known.
template <typename T>
Count OrOne(const Amount<T>& amount) {
  return amount.given ? Value(amount) : Count(1);
}

Count Nodes(const Asked& asked) {
  if (asked.nodes_min.given) {
    const Count nodes = Value(asked.nodes_min);
    // sbatch takes fewer nodes when there are fewer tasks.
    if (nodes && asked.tasks.value) return std::min<std::uint64_t>(*nodes, *asked.tasks.value);
    return asked.tasks.unknown() ? Count() : nodes;
  }
  if (asked.tasks.given && asked.tasks_per_node.given)
    return DivideUp(Value(asked.tasks), Value(asked.tasks_per_node));
  if (asked.gpus.given && asked.gpus_per_node.given && asked.gpus_per_node.value != 0)
    return DivideUp(Value(asked.gpus), Value(asked.gpus_per_node));
  return 1;
}

// Before tasks are known: what the options that need no tasks say.
Count GpusWithoutTasks(const Asked& asked, Count nodes) {
  if (asked.gpus.given && asked.gpus.value != 0U) return Value(asked.gpus);
  if (asked.gpus_per_node.given && asked.gpus_per_node.value != 0U)
    return Times(Value(asked.gpus_per_node), nodes);
  if (asked.gpus_per_socket.given)
    return Times(Times(Value(asked.gpus_per_socket), Value(asked.sockets)), nodes);
  return std::nullopt;
}

// None is what an option with 0 asks for too.
template <typename... T>
bool AnyOf(const T&... amounts) {
  return ((amounts.given && amounts.value != 0U) || ...);
}

bool AnyGpus(const Asked& asked) {
  return AnyOf(asked.gpus, asked.gpus_per_node, asked.gpus_per_socket);
}

Count Tasks(const Asked& asked, Count nodes) {
  // These count even where the number of tasks is written.
  if (asked.tasks_per_gpu.given && AnyGpus(asked))
    return Times(GpusWithoutTasks(asked, nodes), Value(asked.tasks_per_gpu));
  if (asked.tasks.given) return Value(asked.tasks);
  if (asked.tasks_per_node.given) return Times(nodes, Value(asked.tasks_per_node));
  if (asked.tasks_per_gpu.given) return Times(nodes, Value(asked.tasks_per_gpu));
  if (AnyOf(asked.gpus) && AnyOf(asked.gpus_per_task))
    return DivideUp(Value(asked.gpus), Value(asked.gpus_per_task));
  Count tasks = nodes;
  const bool fixed = asked.nodes_min.given && asked.nodes_min.value == asked.nodes_max.value;
  if (fixed || (asked.geometry && !asked.nodes_min.given))
    for (const Amount<std::uint32_t>* each : {&asked.sockets, &asked.cores, &asked.threads})
      tasks = Times(tasks, OrOne(*each));
  return tasks;
}

Count Gpus(const Asked& asked, Count nodes, Count tasks) {
  if (AnyOf(asked.gpus)) return Value(asked.gpus);
  if (AnyOf(asked.gpus_per_task)) return Times(Value(asked.gpus_per_task), tasks);
  if (AnyGpus(asked)) return GpusWithoutTasks(asked, nodes);
  if (asked.tasks_per_gpu.given) {
    const Count per_gpu = Value(asked.tasks_per_gpu);
    return tasks && per_gpu && *per_gpu > 0 ? Count(*tasks / *per_gpu) : std::nullopt;
  }
  const bool none = asked.gpus.given || asked.gpus_per_task.given || asked.gpus_per_node.given ||
                    asked.gpus_per_socket.given;
  return none ? Count(0) : std::nullopt;
}

Count Cpus(const Asked& asked, Count nodes, Count tasks, Count gpus) {
  const Count each = OrOne(asked.cpus_per_task);
  Count cpus = asked.overcommit ? nodes : Times(tasks, each);
  // Tasks that were written and do not fit the GPUs still have their CPUs.
  if (asked.tasks.given && asked.tasks_per_gpu.given && !asked.overcommit)
    cpus = Most(cpus, Times(Value(asked.tasks), each));
  if (asked.cpus_per_gpu.given) {
    // Without any GPU the option has no effect.
    const bool any = AnyGpus(asked) || AnyOf(asked.gpus_per_task) || asked.tasks_per_gpu.given;
    if (any) cpus = Most(cpus, Times(Value(asked.cpus_per_gpu), gpus));
  }
  if (asked.cpus_per_node.given) cpus = Most(cpus, Times(Value(asked.cpus_per_node), nodes));
  return cpus;
}

}  // namespace

Totals MakeTotals(const Asked& asked) {
  Totals totals;
  totals.nodes = Nodes(asked);
  totals.tasks = Tasks(asked, totals.nodes);
  totals.gpus = Gpus(asked, totals.nodes, totals.tasks);
  totals.cpus = Cpus(asked, totals.nodes, totals.tasks, totals.gpus);
  // 0 is all of a node, on however many.
  if (asked.memory_per_node.value == 0U)
    totals.memory = 0;
  else if (asked.memory_per_node.given)
    totals.memory = Times(Value(asked.memory_per_node), totals.nodes);
  else if (asked.memory_per_cpu.given)
    totals.memory = Times(Value(asked.memory_per_cpu), totals.cpus);
  else if (asked.memory_per_gpu.given)
    totals.memory = Times(Value(asked.memory_per_gpu), totals.gpus);
  return totals;
}

}  // namespace expanse::workload::sbatch
