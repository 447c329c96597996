// For the tests of parsers: a submission as text, for golden files; the files of a corpus.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "workload/submission.h"

namespace expanse::workload {

std::string Render(const Parsed<Submission>& parsed);

std::string Read(const std::filesystem::path& path);

// The inputs of a folder in order: all but the golden files (.txt).
std::vector<std::filesystem::path> CorpusFiles(const std::filesystem::path& folder);

// Compares with the golden file beside the input (its name and ".txt"), or writes it where
// EXPANSE_UPDATE_GOLDEN is set.
void ExpectGolden(const std::filesystem::path& input, const Parsed<Submission>& parsed);

// The bytes at every setting's place are what is said to be written there.
void ExpectPlaces(const std::filesystem::path& input, const Submission& submission);

}  // namespace expanse::workload
