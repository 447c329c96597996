// What is done for one `analyse`, whether its asker waits or it is of the queue: read the target,
// look for its runs, compose the answer.
#pragma once

#include "base/time.h"
#include "intelligence/analyser.h"
#include "intelligence/history/history.h"

namespace expanse::intelligence {

// Holds references.
class AnalyseWork final : public Analyser {
 public:
  AnalyseWork(double target_chance, history::History& history, store::RunStore& runs,
              base::Clock& clock)
      : target_chance_(target_chance), history_(history), runs_(runs), clock_(clock) {}

  base::Result<std::string> JobName(const analyse::Question& question) override;
  base::Result<AnalyseOutcome> Do(const AnalyseTask& task) override;

 private:
  const double target_chance_;
  history::History& history_;
  store::RunStore& runs_;
  base::Clock& clock_;
};

}  // namespace expanse::intelligence
