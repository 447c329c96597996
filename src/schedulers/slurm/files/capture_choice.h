// What may be captured of a job's files: the switches of the compute and what the job asks for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace expanse::schedulers::slurm {

// Settings capture.logs, capture.sources, capture.exclude_accounts, capture.exclude_users.
struct CaptureSwitches {
  bool logs = true;
  bool sources = true;
  std::vector<std::string> exclude_accounts;
  std::vector<std::string> exclude_users;
};

struct CaptureChoice {
  bool logs = true;
  bool sources = true;
  // What is off and why, for people: "logs: off for this job". Empty: all is captured.
  std::vector<std::string> notes;
};

// The comment is the user's way to say no: a word "expanse=off", "expanse=nologs" or
// "expanse=nosources" in it, words being separated by white space, comma or semicolon. Nothing in a
// comment can turn on what the compute has turned off.
CaptureChoice ChooseCapture(const CaptureSwitches& switches, std::string_view user,
                            std::string_view account, std::string_view comment);

}  // namespace expanse::schedulers::slurm
