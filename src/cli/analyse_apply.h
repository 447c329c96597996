// Patch artefacts: fetched from the intelligence plane, checked, shown, and made in the user's
// file.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/app.h"
#include "cli/planes.h"
#include "expanse/intelligence/v1/analyse.pb.h"

namespace expanse::cli {

// A unified diff whose bytes are what its hash says. Fails as the call does, or with
// artefact.type, artefact.hash.
base::Result<intelligence::v1::Artifact> GetArtefact(Planes& planes, const std::string& id);

// Makes the change in `path` (empty: the artefact's own) and says so on stderr. A file that is not
// what was analysed any more is left alone: a conflict, with what to do.
std::expected<void, Failure> ApplyArtefact(App& app, const intelligence::v1::Artifact& artefact,
                                           const std::string& path);

// The diff on stdout; on a terminal nothing in it can move the cursor.
void ShowDiff(App& app, const intelligence::v1::Artifact& artefact);

}  // namespace expanse::cli
