// The step between a document and its submission, for the patcher, which needs both.
#pragma once

#include "workload/kubernetes/document.h"
#include "workload/submission.h"

namespace expanse::workload::kubernetes {

Parsed<Submission> ReadSubmission(const Document& document);

}  // namespace expanse::workload::kubernetes
