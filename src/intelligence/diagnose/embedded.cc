#include <yaml-cpp/yaml.h>

#include <cstdio>

#include "intelligence/diagnose/embedded_runbooks.h"
#include "intelligence/diagnose/runbook_set.h"

namespace expanse::intelligence::diagnose {
namespace {

constexpr std::string_view kDecoys = "decoys.yaml";

// What is compiled in was tested with the program: a fault in it is ours.
template <typename T>
T MustParse(base::Result<T> parsed) {
  if (!parsed) std::fprintf(stderr, "%s\n", parsed.error().message.c_str());
  EXPANSE_CHECK(parsed.has_value());
  return std::move(*parsed);
}

std::vector<Runbook> ReadEmbedded() {
  std::vector<Runbook> all;
  for (const EmbeddedFile& file : EmbeddedFiles()) {
    if (file.name == kDecoys) continue;
    for (Runbook& runbook : MustParse(ParseRunbooks(file.text, file.name))) {
      runbook.embedded = true;
      all.push_back(std::move(runbook));
    }
  }
  return all;
}

std::vector<Decoy> ReadDecoys() {
  for (const EmbeddedFile& file : EmbeddedFiles()) {
    if (file.name == kDecoys) return MustParse(ParseDecoys(file.text, file.name));
  }
  return {};
}

}  // namespace

const std::vector<Runbook>& RunbookSet::Embedded() {
  static const std::vector<Runbook> runbooks = ReadEmbedded();
  return runbooks;
}

const std::vector<Decoy>& RunbookSet::EmbeddedDecoys() {
  static const std::vector<Decoy> decoys = ReadDecoys();
  return decoys;
}

base::Result<std::vector<Decoy>> ParseDecoys(std::string_view yaml, std::string_view file) {
  std::vector<Decoy> decoys;
  try {
    const YAML::Node root = YAML::Load(std::string(yaml));
    if (!root.IsSequence())
      return base::Fail(base::Code::kInvalidArgument, "runbook.syntax",
                        std::string(file) + ": expected a list of decoys");
    for (const YAML::Node& node : root) {
      Decoy decoy;
      if (!node.IsMap() || !node["re"] || !node["why"])
        return base::Fail(base::Code::kInvalidArgument, "runbook.field",
                          std::string(file) + ":" + std::to_string(node.Mark().line + 1) +
                              ": a decoy is {re, why, weakens}");
      decoy.pattern = node["re"].Scalar();
      decoy.why = node["why"].Scalar();
      decoy.weakens = node["weakens"] && node["weakens"].as<bool>();
      decoys.push_back(std::move(decoy));
    }
  } catch (const YAML::Exception& error) {
    return base::Fail(
        base::Code::kInvalidArgument, "runbook.syntax",
        std::string(file) + ":" + std::to_string(error.mark.line + 1) + ": " + error.msg);
  }
  return decoys;
}

}  // namespace expanse::intelligence::diagnose
