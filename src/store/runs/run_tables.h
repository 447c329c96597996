// The tables of the embedded run store. Internal to store/runs.
#pragma once

#include <span>

#include "store/sql/database.h"

namespace expanse::store::runs {

// run             a question, its state and its answer
// artifact        what was made for it; goes with it
// failure_label   the class of an execution's failure; outlives the run that found it
// failure_node    where the execution ran; goes with the label
// diagnosis_due   executions to diagnose unasked
// diagnosis_feed  how far the change feed was read for them: one row
std::span<const sql::Migration> RunMigrations();

}  // namespace expanse::store::runs
