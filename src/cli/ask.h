// Questions to the person at the terminal. Off a terminal nothing is asked: the command fails with
// what to pass instead.
#pragma once

#include <string>
#include <string_view>

#include "cli/app.h"

namespace expanse::cli {

// True for y or yes. `yes_given` answers without asking; off a terminal and without it: usage
// error.
std::expected<bool, Failure> Confirm(App& app, std::string_view question, bool yes_given,
                                     std::string_view command);

// "expanse: warning: …" on stderr.
void Warn(App& app, std::string_view text);
// A line on stderr for people.
void Say(App& app, std::string_view text);

// Warns once when a secret is about to go unencrypted to another machine.
void WarnIfPlain(App& app, std::string_view url);

}  // namespace expanse::cli
