#include "intelligence/run_executor.h"

namespace expanse::intelligence {

std::unexpected<base::Error> RunExecutor::Overloaded() {
  return base::Fail(base::Code::kResourceExhausted, "run.overloaded",
                    "too many questions are being worked on; try again in a moment");
}

std::unexpected<base::Error> RunExecutor::Late() {
  return base::Fail(base::Code::kDeadlineExceeded, "run.timeout",
                    "the answer was not found in the time there was for it");
}

std::unexpected<base::Error> RunExecutor::Interrupted() {
  return base::Fail(base::Code::kUnavailable, "run.interrupted",
                    "the server stopped before the answer was found; ask again");
}

}  // namespace expanse::intelligence
