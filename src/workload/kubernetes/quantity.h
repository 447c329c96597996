// Kubernetes quantities: "500m", "16Gi", "1.5", "1e9".
// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace expanse::workload::kubernetes {

// The number in base units (cores, bytes, devices); nothing for what is no quantity or negative.
std::optional<double> ParseQuantity(std::string_view text);

// At least `amount`, spelled as `like` is: its suffix kept where the amount fits into it within
// half a per cent, a smaller one of its family else. Amounts are rounded up to what the unit can
// say. Exponents become plain digits.
std::string FormatQuantity(double amount, std::string_view like);

}  // namespace expanse::workload::kubernetes
