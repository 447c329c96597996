// Labels of confidence between the API and the engines.
#pragma once

#include "expanse/intelligence/v1/analyse.pb.h"
#include "intelligence/predict/run.h"

namespace expanse::intelligence {

inline v1::ConfidenceLabel LabelOf(predict::Confidence confidence) {
  switch (confidence) {
    case predict::Confidence::kLow:
      return v1::CONFIDENCE_LABEL_LOW;
    case predict::Confidence::kMedium:
      return v1::CONFIDENCE_LABEL_MEDIUM;
    case predict::Confidence::kHigh:
      return v1::CONFIDENCE_LABEL_HIGH;
  }
  return v1::CONFIDENCE_LABEL_UNSPECIFIED;
}

// The least where there is none.
inline predict::Confidence ConfidenceOf(v1::ConfidenceLabel label) {
  for (const auto confidence : {predict::Confidence::kHigh, predict::Confidence::kMedium})
    if (label == LabelOf(confidence)) return confidence;
  return predict::Confidence::kLow;
}

}  // namespace expanse::intelligence
