// Executions as tables and fields. Text of users and schedulers is escaped.
#pragma once

#include <string>

#include "cli/app.h"
#include "cli/failure_classes.h"
#include "expanse/data/v1/query_service.pb.h"

namespace expanse::cli {

// `console` is the console's address; empty: no links.
std::string RenderExecutions(const App& app, const data::v1::ListExecutionsResponse& listed,
                             const FailureClasses& classes, const std::string& console);

// Everything that is known of one, with its steps.
std::string RenderExecution(const App& app, const data::v1::Execution& e,
                            const FailureClasses& classes, const std::string& console);

}  // namespace expanse::cli
