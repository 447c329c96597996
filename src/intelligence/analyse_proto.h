// Questions and answers of `analyse` between the API's messages and the engine's structs: the one
// place where both are known. Requests are checked here; numbers are rounded here as the reference
// shows them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "intelligence/analyse/question.h"
#include "store/runs/run_store.h"

namespace expanse::intelligence::v1 {
class AnalyseRequest;
class AnalyseResult;
}  // namespace expanse::intelligence::v1

namespace expanse::intelligence {

// Bounds of a request besides workload::kMaxText for the target; the files' are those of captured
// source bundles.
inline constexpr int kMostFiles = 32;
inline constexpr std::size_t kMostFileBytes = std::size_t{1} << 20;  // of all together
inline constexpr std::size_t kLongestPath = 4096;
inline constexpr std::size_t kLongestName = 1024;
inline constexpr std::size_t kMostVariables = 256;
inline constexpr std::size_t kMostVariableBytes = std::size_t{256} << 10;

// Fails with invalid_argument: analyse.target, analyse.files, analyse.requested, analyse.variables,
// analyse.name, each saying which field and what is allowed.
base::Result<analyse::Question> QuestionOf(const v1::AnalyseRequest& request);

// The artefact of an answer's patch; absent where there is none. Its id is new.
std::optional<store::RunArtifactRow> ArtifactOf(const analyse::Answer& answer, base::WallTime now);

// `artifact`: what ArtifactOf gave. Text that is not UTF-8 gets U+FFFD.
v1::AnalyseResult ResultOf(const analyse::Answer& answer,
                           const std::optional<store::RunArtifactRow>& artifact);

// Equal for questions that have the same answer over the same history: over all that
// QuestionOf gives, `compute_id`, `history_version` and the version of the program.
std::string CacheKey(const analyse::Question& question, std::string_view compute_id,
                     std::string_view history_version);

}  // namespace expanse::intelligence
