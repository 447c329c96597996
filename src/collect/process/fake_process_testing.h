// Processes in a FakeTree.
#pragma once

#include <fmt/format.h>

#include <string>

#include "collect/fake_tree_testing.h"

namespace expanse::collect {

struct FakeProcess {
  int pid = 0;
  int parent = 1;
  std::string name = "work";
  unsigned long user = 0;  // ticks
  unsigned long system = 0;
  unsigned long children = 0;
  unsigned long start = 100;
  unsigned long rss_pages = 0;
  unsigned long anon_kb = 0;
  unsigned long shmem_kb = 0;
  char state = 'S';
};

inline void WriteProcess(FakeTree& tree, const FakeProcess& p) {
  tree.Write(fmt::format("proc/{}/stat", p.pid),
             fmt::format("{} ({}) {} {} {} {} 0 -1 4194304 5 0 0 0 {} {} {} 0 20 0 2 0 {} 1000000 "
                         "{} 18446744073709551615\n",
                         p.pid, p.name, p.state, p.parent, p.pid, p.pid, p.user, p.system,
                         p.children, p.start, p.rss_pages));
  tree.Write(fmt::format("proc/{}/status", p.pid),
             fmt::format("Name:\t{}\nVmRSS:\t0 kB\nRssAnon:\t{} kB\nRssFile:\t50 kB\nRssShmem:\t{} "
                         "kB\nThreads:\t2\n",
                         p.name, p.anon_kb, p.shmem_kb));
}

}  // namespace expanse::collect
