// The tables of the embedded run store. Internal to store/runs.
#pragma once

#include <span>

#include "store/sql/database.h"

namespace expanse::store::runs {

// run       a question, its state and its answer
// artifact  what was made for it; goes with it
std::span<const sql::Migration> RunMigrations();

}  // namespace expanse::store::runs
