// Facts of one Python text, from its syntax tree.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "workload/source/fact_collector.h"
#include "workload/submission.h"

namespace expanse::workload::source {

// `arguments` are those of the command that runs the file; they stand for what argparse, click,
// absl or dataclass parsers would make of them. Fails as syntax::Tree::Parse does, which may take
// `time`.
base::Status ReadPythonFacts(std::string_view path, std::string_view text,
                             const std::vector<Word>& arguments, std::chrono::microseconds time,
                             FactCollector* facts);

// The code cells of a Jupyter notebook as one Python text; "%" and "!" lines are left out. Fails
// with notebook.syntax.
base::Result<std::string> PythonOfNotebook(std::string_view json);

}  // namespace expanse::workload::source
