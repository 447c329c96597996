// Kubernetes manifests (YAML or JSON; several documents, List objects): every container of every
// pod template becomes a Part, with the exact place of its requests and limits. Pure; time is
// linear in the text, memory bounded by a small multiple of it.
//
// Shapes: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/ and the CRDs of
// JobSet, LeaderWorkerSet, KubeRay, Kubeflow, Volcano, Argo, KServe and Knative. An object of an
// unknown kind counts where it holds something of the shape of a pod spec; a note says so.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "workload/patch/edit.h"
#include "workload/submission.h"

namespace expanse::workload {

// Refuses with "syntax", "templated" (placeholders that leave no YAML to read), "too_large" or
// "not_a_workload" (nothing but Services, ConfigMaps, …). Values that hold a placeholder
// (`{{ .Values.memory }}`, `${MEMORY}`) are unresolved.
Parsed<Submission> ParseKubernetes(std::string_view text);

// As PlanEdits of parse.h, of which this is Kubernetes' half: requests and limits of memory and
// GPUs, CPU requests (limits only where they would be below), activeDeadlineSeconds. Beside its
// reasons fails with "patch.shared" where the value stands behind a YAML anchor that other objects
// use too, and "patch.not_settable" for what a manifest cannot say.
base::Result<std::vector<Edit>> PlanKubernetesEdits(std::string_view text,
                                                    const Submission& submission,
                                                    const std::vector<Wanted>& wanted);

}  // namespace expanse::workload
