// Where facts of several files and commands come together: of what is said twice, the stronger
// place counts, and of equals the first.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "workload/source/source_facts.h"

namespace expanse::workload::source {

// A value that stands in a text: a number, a string, True, or a name such as torch.bfloat16.
struct Literal {
  enum class Kind : std::uint8_t { kNumber, kText, kBool, kSymbol };
  Kind kind = Kind::kNumber;
  double number = 0;  // kBool: 0 or 1
  std::string text;   // of kText and kSymbol
  bool operator==(const Literal&) const = default;
};
// "8" and "1e-4" are numbers, "true" and "False" bools, the rest is text.
Literal LiteralOf(std::string_view word);

// How strong a place is: a value that is passed to what uses it over a default, an argument of the
// command over both; that weights are quantized over the type in which they are computed with.
enum class Strength : std::uint8_t {
  kAssigned = 1,
  kDefault = 2,
  kPassed = 3,
  kCommand = 4,
  kQuantized = 5,
};

class FactCollector {
 public:
  // What files that are only imported say counts less than the same of those that are run.
  void set_imported(bool imported) { imported_ = imported; }

  void Offer(Number number, double value, const Evidence& evidence, Strength strength);
  void Offer(Choice choice, std::string_view value, const Evidence& evidence, Strength strength);
  void Offer(Flag flag, const Evidence& evidence);
  void AddFramework(std::string_view name, const Evidence& evidence);
  void AddModel(std::string_view name, const Evidence& evidence);
  void AddDataFile(std::string_view path, const Evidence& evidence);
  void AddApplication(Application application);

  // A value under one of the names that people give to settings: "per_device_train_batch_size",
  // "--bf16", "optim". Nothing happens for other names.
  void OfferNamed(std::string_view name, const Literal& value, const Evidence& evidence,
                  Strength strength);
  // That a setting with such a name is there, with a value that is not known.
  void OfferUnknown(std::string_view name, const Evidence& evidence, std::string_view written);

  SourceFacts Take();

 private:
  int Rank(Strength strength) const { return 2 * static_cast<int>(strength) + (imported_ ? 0 : 1); }
  void OfferPrecision(std::string_view name, const Literal& value, const Evidence& evidence,
                      Strength strength);
  void OfferSharding(std::string_view name, const Literal& value, const Evidence& evidence,
                     Strength strength);

  SourceFacts facts_;
  std::map<Number, int> number_ranks_;
  std::map<Choice, int> choice_ranks_;
  struct Unknown {
    Number number = Number::kBatchSize;
    std::string sentence;
  };
  std::vector<Unknown> unknown_;
  bool imported_ = false;
};

// "batch_size" of "--batch-size", "args.Batch_Size".
std::string SettingName(std::string_view name);
// The number that a setting of this name gives.
std::optional<Number> NumberNamed(std::string_view setting_name);
bool NamesModel(std::string_view setting_name);
// Whether OfferNamed does anything with a name: most names in a program are no settings.
bool IsSetting(std::string_view setting_name);
bool NamesData(std::string_view setting_name);

// "bfloat16" of torch.bfloat16, "bf16", "jnp.bfloat16"; empty for what is no type of numbers.
std::string NumberType(std::string_view text);
// "adamw_8bit" of "paged_adamw_8bit", "AdamW8bit", "torch.optim.AdamW"; empty for other names.
std::string OptimizerNamed(std::string_view text);

}  // namespace expanse::workload::source
