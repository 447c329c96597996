// A CommandRunner for tests: answers come from functions that the test gives, by program, and every
// command is remembered. Output goes through on_output in small pieces where a command wants that.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedulers/slurm/commands/runner.h"

namespace expanse::schedulers::slurm {

class FakeRunner final : public CommandRunner {
 public:
  struct Answer {
    std::string out;
    base::Status status;
    CommandCost cost{.wall = std::chrono::milliseconds(12), .cpu = std::chrono::milliseconds(2)};
  };
  using Responder = std::function<Answer(const std::vector<std::string>& arguments)>;

  void On(Program program, Responder responder) { responders_[program] = std::move(responder); }

  CommandOutcome Run(const Command& command, std::stop_token) override {
    commands.push_back(command);
    const auto found = responders_.find(command.program);
    if (found == responders_.end()) {
      return {.status = base::Fail(base::Code::kUnavailable, "slurm.unreachable", "no answer"),
              .out = {},
              .cost = {}};
    }
    Answer answer = found->second(command.arguments);
    CommandOutcome outcome{.status = std::move(answer.status), .out = {}, .cost = answer.cost};
    if (!command.on_output) {
      outcome.out = std::move(answer.out);
      return outcome;
    }
    constexpr std::size_t kPiece = 97;  // pieces end anywhere
    for (std::string_view left = answer.out; !left.empty();) {
      if (!command.on_output(left.substr(0, kPiece))) break;
      left.remove_prefix(std::min(kPiece, left.size()));
    }
    return outcome;
  }

  std::size_t CountOf(Program program) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        commands, [&](const Command& command) { return command.program == program; }));
  }

  std::vector<Command> commands;

 private:
  std::map<Program, Responder> responders_;
};

}  // namespace expanse::schedulers::slurm
