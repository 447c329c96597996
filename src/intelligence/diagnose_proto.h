// Questions and answers of `diagnose` between the API's messages and the engine's structs: the one
// place where both are known. Requests are checked here; numbers are rounded here as the reference
// shows them.
#pragma once

#include <vector>

#include "base/result.h"
#include "intelligence/diagnose/case.h"
#include "intelligence/diagnose/diagnosis.h"
#include "intelligence/diagnoser.h"

namespace expanse::intelligence::v1 {
class DiagnoseRequest;
class DiagnoseResult;
}  // namespace expanse::intelligence::v1

namespace expanse::intelligence {

// Fails with diagnose.target (neither id nor native id, or what is no UUID) or
// diagnose.source_type.
base::Result<ExecutionName> NameOf(const v1::DiagnoseRequest& request);
// Fails with diagnose.files: too many, too large, without a path.
base::Result<std::vector<diagnose::SourceText>> ExtraSourcesOf(const v1::DiagnoseRequest& request);

// Text that is not UTF-8 gets U+FFFD.
v1::DiagnoseResult ResultOf(const diagnose::Case& of, const diagnose::Diagnosis& diagnosis);

// Equal for equal evidence, by all that the diagnosis reads; `runbooks` names the version of these.
std::string CacheKey(const diagnose::Case& of, std::string_view runbooks);

}  // namespace expanse::intelligence
