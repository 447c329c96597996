#include "workload/source/shell_variables.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace expanse::workload::source {
namespace {

constexpr std::size_t kMaxValue = 16 << 10;
constexpr std::size_t kMaxCopied = 32 << 20;  // by all of a script: then nothing more is known

std::size_t SizeOf(const ShellValue& value) {
  std::size_t size = 0;
  for (const Word& word : value.words) size += word.text.size() + 16;
  return size;
}

}  // namespace

const ShellValue* ShellVariables::Find(std::string_view name) const {
  const auto found = values_.find(name);
  return found != values_.end() && found->second ? &*found->second : nullptr;
}

void ShellVariables::Set(std::string_view name, ShellValue value) {
  Remember(name);
  const std::size_t size = SizeOf(value);
  copied_ += size;
  std::optional<ShellValue> kept;
  if (size <= kMaxValue && copied_ <= kMaxCopied) kept = std::move(value);
  values_.insert_or_assign(std::string(name), std::move(kept));
}

void ShellVariables::Append(std::string_view name, ShellValue value, bool array) {
  const ShellValue* before = Find(name);
  if (before == nullptr) {  // unknown, and stays so; or unset, which another program may have set
    Forget(name);
    return;
  }
  ShellValue joined = *before;
  if (array || joined.words.empty()) {
    std::ranges::move(value.words, std::back_inserter(joined.words));
  } else if (!value.words.empty()) {
    joined.words.front().text += value.words.front().text;
    joined.words.front().resolved = joined.words.front().resolved && value.words.front().resolved;
  }
  Set(name, std::move(joined));
}

void ShellVariables::Forget(std::string_view name) {
  Remember(name);
  values_.insert_or_assign(std::string(name), std::nullopt);
}

void ShellVariables::Open(Block block) {
  open_.push_back({.block = block, .changes = {}, .index = {}});
}

void ShellVariables::Remember(std::string_view name) {
  if (open_.empty()) return;
  Opened& opened = open_.back();
  if (opened.index.contains(name)) return;
  opened.index.emplace(name, opened.changes.size());
  const auto found = values_.find(name);
  Change change{.name = std::string(name), .before = {}, .had = found != values_.end()};
  if (change.had && found->second) {
    copied_ += SizeOf(*found->second);
    if (copied_ <= kMaxCopied) change.before = found->second;
  }
  opened.changes.push_back(std::move(change));
}

void ShellVariables::Restore(const Change& change) {
  if (change.had) {
    values_.insert_or_assign(change.name, change.before);
  } else {
    values_.erase(change.name);
  }
}

bool ShellVariables::Differs(const Change& change) const {
  const auto found = values_.find(change.name);
  if (found == values_.end()) return change.had;
  return !change.had || found->second != change.before;
}

void ShellVariables::NextBranch() {
  if (open_.empty()) return;
  for (Change& change : open_.back().changes) {
    change.differs = change.differs || Differs(change);
    Restore(change);
  }
}

void ShellVariables::Close() {
  if (open_.empty()) return;
  const Opened closed = std::move(open_.back());
  open_.pop_back();
  for (const Change& change : closed.changes) {
    const bool differs = change.differs || Differs(change);
    std::optional<ShellValue> last;
    if (const ShellValue* value = Find(change.name)) last = *value;
    Restore(change);
    if (!differs || closed.block == Block::kSubshell) continue;
    // Told to the enclosing block as its own change.
    if (closed.block == Block::kBranches || !last) {
      Forget(change.name);
    } else {
      Set(change.name, *std::move(last));
    }
  }
}

std::vector<std::string> ShellVariables::Changed() const {
  std::vector<std::string> names;
  if (open_.empty()) return names;
  for (const Change& change : open_.back().changes) names.push_back(change.name);
  return names;
}

}  // namespace expanse::workload::source
