// The table behind Redact(): one row per way in which a secret is written down. Kept apart so that
// a new provider's format is one line here and one line in redact_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace expanse::collect {

// What the captured text must look like besides, because RE2 has no look-around.
enum class SecretCheck : std::uint8_t {
  kNone,
  kValue,   // not a placeholder such as None, true, ${NAME}, ****
  kRandom,  // kValue, and digits or both cases in it: "next_token=the" is no secret
};

struct SecretRule {
  std::string_view name;
  // Lower-case literals; the pattern is tried only if the lower-cased text has one of them.
  // Separated by '|'.
  std::string_view needles;
  // RE2 syntax over bytes. Group 1 is the secret; what is around it is kept.
  std::string_view pattern;
  SecretCheck check = SecretCheck::kNone;
};

std::span<const SecretRule> SecretRules();

// True if a flag or setting called `name` holds a password, token or key: "--hf-token", "API_KEY".
// False for what only sounds like it: "max_tokens", "token_count", "tokenizer".
bool IsSecretName(std::string_view name);

}  // namespace expanse::collect
