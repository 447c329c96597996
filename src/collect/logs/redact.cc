#include "collect/logs/redact.h"

#include <re2/re2.h>

#include <algorithm>
#include <memory>

#include "base/result.h"
#include "base/text.h"
#include "collect/logs/secret_rules.h"

namespace expanse::collect {
namespace {

// After this many rounds the text is taken as it is; two are the rule (see Redact).
constexpr int kMaxRounds = 16;

struct CompiledRule {
  const SecretRule* rule = nullptr;
  std::vector<std::string_view> needles;
  std::unique_ptr<re2::RE2> pattern;
};

std::vector<CompiledRule> CompileRules() {
  re2::RE2::Options options;
  options.set_encoding(re2::RE2::Options::EncodingLatin1);  // bytes, so that any input is matched
  options.set_log_errors(false);
  options.set_max_mem(16 << 20);
  std::vector<CompiledRule> compiled;
  for (const SecretRule& rule : SecretRules()) {
    auto pattern = std::make_unique<re2::RE2>(
        re2::StringPiece(rule.pattern.data(), rule.pattern.size()), options);
    EXPANSE_CHECK(pattern->ok());
    compiled.push_back({&rule, base::Split(rule.needles, '|'), std::move(pattern)});
  }
  return compiled;
}

const std::vector<CompiledRule>& Rules() {
  static const std::vector<CompiledRule> rules = CompileRules();
  return rules;
}

bool IsPlaceholder(std::string_view value) {
  if (value.starts_with('$') || value.starts_with('%')) return true;  // a reference, not a value
  if (value.find_first_not_of("*.xX") == std::string_view::npos) return true;  // masked already
  static constexpr std::string_view kWords[] = {
      "none",  "null",     "nil",       "true", "false", "yes",      "no",
      "unset", "required", "undefined", "set",  "empty", "redacted", "<redacted>"};
  const std::string lower = base::ToLower(value);
  return std::find(std::begin(kWords), std::end(kWords), lower) != std::end(kWords);
}

bool LooksRandom(std::string_view value) {
  bool digit = false;
  bool upper = false;
  bool lower = false;
  bool letter = false;
  for (char c : value) {
    digit |= c >= '0' && c <= '9';
    upper |= c >= 'A' && c <= 'Z';
    lower |= c >= 'a' && c <= 'z';
  }
  letter = upper || lower;
  if (value.size() >= 20) return digit || (upper && lower);
  return digit && letter;
}

bool Passes(SecretCheck check, std::string_view value) {
  if (value == kRedactionMark) return false;
  switch (check) {
    case SecretCheck::kNone:
      return true;
    case SecretCheck::kValue:
      return !IsPlaceholder(value);
    case SecretCheck::kRandom:
      return !IsPlaceholder(value) && LooksRandom(value);
  }
  return true;
}

void FindByRule(const CompiledRule& rule, std::string_view text, std::vector<SecretSpan>& spans) {
  const re2::StringPiece input(text.data(), text.size());
  std::size_t at = 0;
  re2::StringPiece groups[2];
  while (at < text.size() &&
         rule.pattern->Match(input, at, text.size(), re2::RE2::UNANCHORED, groups, 2)) {
    const auto begin = static_cast<std::size_t>(groups[1].data() - text.data());
    const std::string_view value(groups[1].data(), groups[1].size());
    const std::size_t end = begin + value.size();
    if (Passes(rule.rule->check, value)) {
      spans.push_back({begin, end});
      at = std::max(end, at + 1);
    } else {
      // What is no secret for this rule may begin one: "token=password=…".
      at = std::max(begin, at + 1);
    }
  }
}

std::vector<SecretSpan> MergeSpans(std::vector<SecretSpan> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const SecretSpan& a, const SecretSpan& b) { return a.begin < b.begin; });
  std::vector<SecretSpan> merged;
  for (const SecretSpan& span : spans) {
    if (!merged.empty() && span.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, span.end);
    } else {
      merged.push_back(span);
    }
  }
  return merged;
}

std::string Replace(std::string_view text, const std::vector<SecretSpan>& spans) {
  std::string out;
  out.reserve(text.size());
  std::size_t at = 0;
  for (const SecretSpan& span : spans) {
    out += text.substr(at, span.begin - at);
    out += kRedactionMark;
    at = span.end;
  }
  out += text.substr(at);
  return out;
}

// What a byte of a text, from which `marks` took secrets, was in the original. `end`: a position
// within a mark is the end of what it replaced, not the beginning.
std::size_t OriginalOf(const std::vector<RedactedSpan>& marks, std::size_t at, bool end) {
  const auto after = std::partition_point(
      marks.begin(), marks.end(),
      [&](const RedactedSpan& mark) { return end ? mark.at < at : mark.at <= at; });
  if (after == marks.begin()) return at;
  const RedactedSpan& mark = *(after - 1);
  const std::size_t within = at - mark.at;
  if (within < kRedactionMark.size()) return end ? mark.original.end : mark.original.begin;
  return mark.original.end + (within - kRedactionMark.size());
}

// The marks of a text after `spans` of it were replaced too: those within a span are part of it.
std::vector<RedactedSpan> AddMarks(const std::vector<RedactedSpan>& marks,
                                   const std::vector<SecretSpan>& spans) {
  std::vector<RedactedSpan> all;
  std::size_t gone = 0;   // bytes that were replaced so far …
  std::size_t given = 0;  // … and bytes of marks that came for them
  auto mark = marks.begin();
  const auto keep_until = [&](std::size_t at) {
    for (; mark != marks.end() && mark->at < at; ++mark) {
      if (mark->at + kRedactionMark.size() > at) continue;  // reaches into the span
      all.push_back({mark->original, mark->at - gone + given});
    }
  };
  for (const SecretSpan& span : spans) {
    keep_until(span.begin);
    all.push_back(
        {{OriginalOf(marks, span.begin, /*end=*/false), OriginalOf(marks, span.end, /*end=*/true)},
         span.begin - gone + given});
    gone += span.end - span.begin;
    given += kRedactionMark.size();
    while (mark != marks.end() && mark->at < span.end) ++mark;
  }
  keep_until(std::string::npos);
  return all;
}

}  // namespace

std::vector<SecretSpan> FindSecrets(std::string_view text) {
  std::vector<SecretSpan> spans;
  const std::string lower = base::ToLower(text);
  for (const CompiledRule& rule : Rules()) {
    const bool possible = std::any_of(rule.needles.begin(), rule.needles.end(), [&](auto needle) {
      return lower.find(needle) != std::string::npos;
    });
    if (possible) FindByRule(rule, text, spans);
  }
  return MergeSpans(std::move(spans));
}

RedactedText Redact(std::string_view text) {
  RedactedText result{std::string(text), 0};
  // A replacement can bring text together that reads as a secret now: again until nothing is found.
  // Each round leaves fewer bytes that are not marks, so this ends.
  for (int round = 0; round < kMaxRounds; ++round) {
    const std::vector<SecretSpan> spans = FindSecrets(result.text);
    if (spans.empty()) break;
    result.redactions += static_cast<std::uint32_t>(spans.size());
    result.text = Replace(result.text, spans);
  }
  return result;
}

PlacedRedaction RedactWithPlaces(std::string_view text) {
  PlacedRedaction result{std::string(text), {}};
  for (int round = 0; round < kMaxRounds; ++round) {
    const std::vector<SecretSpan> spans = FindSecrets(result.text);
    if (spans.empty()) break;
    result.spans = AddMarks(result.spans, spans);
    result.text = Replace(result.text, spans);
  }
  return result;
}

std::vector<std::string> RedactArguments(const std::vector<std::string>& arguments,
                                         std::uint32_t* redactions) {
  std::vector<std::string> out;
  out.reserve(arguments.size());
  bool secret_follows = false;
  std::uint32_t count = 0;
  for (const std::string& argument : arguments) {
    const bool is_flag = argument.starts_with('-') && argument.find('=') == std::string::npos;
    if (secret_follows && !argument.empty() && !is_flag && !IsPlaceholder(argument)) {
      out.emplace_back(kRedactionMark);
      ++count;
    } else {
      RedactedText redacted = Redact(argument);
      count += redacted.redactions;
      out.push_back(std::move(redacted.text));
    }
    secret_follows = is_flag && IsSecretName(argument);
  }
  if (redactions != nullptr) *redactions += count;
  return out;
}

}  // namespace expanse::collect
