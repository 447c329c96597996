// The text between the fields that Slurm's programs print. Names, comments and paths may contain
// any bytes, so it is drawn anew for every run of a program: nobody who writes a job's name can
// know it.
#pragma once

#include <string>

namespace expanse::schedulers::slurm {

// A byte that is rare in what jobs are called, so that separators are found fast, and eight random
// characters. No blank, comma, percent sign, digit or sign at its start: the programs' formats give
// those a meaning.
inline constexpr char kSeparatorLead = '~';
std::string NewSeparator();

}  // namespace expanse::schedulers::slurm
