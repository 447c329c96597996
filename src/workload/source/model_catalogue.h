// How large models are, by the names that people load them under. Sizes in names ("7B", "8x22B",
// "350m") are read; well-known names without one are listed with the size that their publishers
// give.
#pragma once

#include <optional>
#include <string_view>

namespace expanse::workload::source {

// Parameters of "org/Name-7B", "/models/Llama-3.1-70B-Instruct", "bert-base-uncased", "resnet50".
std::optional<double> ModelParameters(std::string_view name);

// "int4" of "org/Name-7B-AWQ", "float8" of "…-FP8": how its weights are stored, where the name
// tells.
std::string_view ModelWeightType(std::string_view name);

// Has the form of a model's name or path: "org/name", or a name in the catalogue.
bool LooksLikeModel(std::string_view name);

}  // namespace expanse::workload::source
