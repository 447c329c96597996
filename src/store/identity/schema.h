// The tables of the identity store.
#pragma once

#include <span>

#include "store/sql/database.h"

namespace expanse::store {

std::span<const sql::Migration> IdentitySchema();

}  // namespace expanse::store
