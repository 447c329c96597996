// Edits of manifests: what is written where, and that nothing else changes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "workload/kubernetes/compose.h"
#include "workload/kubernetes/kubernetes.h"

namespace expanse::workload {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

// The edited text, or the reason of the failure.
std::string Patch(std::string_view text, const std::vector<Wanted>& wanted) {
  const auto parsed = ParseKubernetes(text);
  if (!parsed) return parsed.error().message;
  const auto edits = PlanKubernetesEdits(text, *parsed, wanted);
  if (!edits) return edits.error().reason;
  return *ApplyEdits(text, *edits);
}

Wanted Memory(double amount, std::size_t part = 0) {
  return {.part = part, .quantity = Quantity::kMemory, .amount = amount};
}
Wanted Cpu(double amount, std::size_t part = 0) {
  return {.part = part, .quantity = Quantity::kCpu, .amount = amount};
}
Wanted Gpu(double amount) { return {.quantity = Quantity::kGpu, .amount = amount}; }
Wanted Walltime(double amount) { return {.quantity = Quantity::kWalltime, .amount = amount}; }

// A pod with one container in block style; `lines` are indented to the container's keys.
std::string Pod(std::string_view lines) {
  std::string text =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n";
  std::istringstream in{std::string(lines)};
  for (std::string line; std::getline(in, line);) text += "    " + line + "\n";
  return text;
}

// The same, patched: only the container's lines, without their indentation.
std::string Lines(std::string_view lines, const std::vector<Wanted>& wanted) {
  const std::string text = Patch(Pod(lines), wanted);
  const std::size_t begin = text.find("- name: c\n");
  if (begin == std::string::npos) return text;
  std::istringstream in(text.substr(begin + 10));
  std::string out;
  for (std::string line; std::getline(in, line);)
    out += line.substr(std::min<std::size_t>(4, line.size())) + "\n";
  return out;
}

TEST(KubernetesPlan, KeepsUnitQuotesAndComments) {
  EXPECT_EQ(Lines("resources:\n  requests:\n    memory: \"16Gi\" # much\n    cpu: 2000m\n",
                  {Memory(15 * kGiB), Cpu(1.5)}),
            "resources:\n  requests:\n    memory: \"15Gi\" # much\n    cpu: 1500m\n");
  EXPECT_EQ(Lines("resources: {requests: {memory: '4096Mi', cpu: 2}}", {Memory(kGiB), Cpu(0.5)}),
            "resources: {requests: {memory: '1024Mi', cpu: 0.5}}\n");
  EXPECT_EQ(Lines("resources: {limits: {memory: 4294967296}}", {Memory(kGiB)}),
            "resources: {limits: {memory: 1073741824}}\n");
  EXPECT_EQ(Lines("resources: {limits: {memory: !!str 4G}}", {Memory(3e9)}),
            "resources: {limits: {memory: !!str 3G}}\n");
}

TEST(KubernetesPlan, WhatIsAskedAlreadyStays) {
  const std::string text = Pod("resources: {requests: {memory: 1024Mi, cpu: 1000m}}");
  EXPECT_EQ(Patch(text, {Memory(kGiB), Cpu(1)}), text);
  EXPECT_EQ(Patch(text, {}), text);
  const auto edits = PlanKubernetesEdits(text, *ParseKubernetes(text), {Memory(kGiB)});
  EXPECT_TRUE(edits.has_value() && edits->empty());
}

TEST(KubernetesPlan, MemoryLimitsFollowOrStayAbove) {
  EXPECT_EQ(
      Lines("resources: {requests: {memory: 8Gi}, limits: {memory: 8Gi}}", {Memory(4 * kGiB)}),
      "resources: {requests: {memory: 4Gi}, limits: {memory: 4Gi}}\n");
  EXPECT_EQ(
      Lines("resources: {requests: {memory: 8Gi}, limits: {memory: 16Gi}}", {Memory(4 * kGiB)}),
      "resources: {requests: {memory: 4Gi}, limits: {memory: 16Gi}}\n");
  EXPECT_EQ(
      Lines("resources: {requests: {memory: 8Gi}, limits: {memory: 16Gi}}", {Memory(20 * kGiB)}),
      "resources: {requests: {memory: 20Gi}, limits: {memory: 20Gi}}\n");
  EXPECT_EQ(Lines("resources: {limits: {memory: 16Gi}}", {Memory(20 * kGiB)}),
            "resources: {limits: {memory: 20Gi}}\n");
}

TEST(KubernetesPlan, CpuLimitsAreRaisedOnlyWhereTheyWouldBeBelow) {
  EXPECT_EQ(Lines("resources: {requests: {cpu: 1}, limits: {cpu: 2}}", {Cpu(1.5)}),
            "resources: {requests: {cpu: 1.5}, limits: {cpu: 2}}\n");
  EXPECT_EQ(Lines("resources: {requests: {cpu: 1}, limits: {cpu: 2}}", {Cpu(4)}),
            "resources: {requests: {cpu: 4}, limits: {cpu: 4}}\n");
  EXPECT_EQ(Lines("resources: {limits: {cpu: 2}}", {Cpu(4)}), "resources: {limits: {cpu: 4}}\n");
  EXPECT_EQ(Lines("resources: {limits: {cpu: 2}}", {Cpu(1)}),
            "resources: {limits: {cpu: 2}, requests: {cpu: 1}}\n");
}

TEST(KubernetesPlan, GpusAreTheSameInRequestAndLimit) {
  EXPECT_EQ(Lines("resources: {requests: {nvidia.com/gpu: \"4\"}, limits: {nvidia.com/gpu: \"4\"}}",
                  {Gpu(2)}),
            "resources: {requests: {nvidia.com/gpu: \"2\"}, limits: {nvidia.com/gpu: \"2\"}}\n");
  EXPECT_EQ(Lines("resources: {limits: {nvidia.com/mig-1g.5gb: 1}}", {Gpu(3)}),
            "resources: {limits: {nvidia.com/mig-1g.5gb: 3}}\n");
  EXPECT_EQ(Lines("resources: {limits: {nvidia.com/gpu: 1, amd.com/gpu: 1}}", {Gpu(3)}),
            "patch.not_settable");
  EXPECT_EQ(Lines("resources: {limits: {nvidia.com/gpu: 1}}", {Gpu(1.5)}), "patch.not_settable");
  EXPECT_EQ(Lines("image: x", {Gpu(1)}),
            "image: x\nresources:\n  limits:\n    nvidia.com/gpu: 1\n");
  EXPECT_EQ(Lines("resources: {limits: {nvidia.com/gpumem: 3000}}",
                  {{.quantity = Quantity::kGpuMemory, .amount = 4000 * 1048576.0}}),
            "resources: {limits: {nvidia.com/gpumem: 4000}}\n");
}

TEST(KubernetesPlan, WritesWhatIsMissingInBlockStyle) {
  EXPECT_EQ(Lines("image: x # i\nargs: [a]", {Memory(3 * kGiB)}),
            "image: x # i\nresources:\n  requests:\n    memory: 3Gi\nargs: [a]\n");
  EXPECT_EQ(Lines("image: x\nargs: [a]", {Memory(3 * kGiB), Cpu(2)}),
            "image: x\nresources:\n  requests:\n    memory: 3Gi\n    cpu: 2\nargs: [a]\n");
  EXPECT_EQ(Lines("resources: # later\nargs: [a]", {Memory(kGiB), Cpu(2), Gpu(1)}),
            "resources: # later\n  requests:\n    memory: 1Gi\n    cpu: 2\n  limits:\n"
            "    nvidia.com/gpu: 1\nargs: [a]\n");
  EXPECT_EQ(Lines("resources:\n  requests:\n  limits:\n    cpu: 1", {Memory(kGiB)}),
            "resources:\n  requests:\n    memory: 1Gi\n  limits:\n    cpu: 1\n");
  EXPECT_EQ(
      Lines("resources:\n  limits:\n    cpu: 1 # c\n  # d\nargs: [a]", {Memory(kGiB)}),
      "resources:\n  limits:\n    cpu: 1 # c\n  requests:\n    memory: 1Gi\n  # d\nargs: [a]\n");
  EXPECT_EQ(Lines("image: |-\n  x\n\nargs: [a]", {Cpu(1)}),
            "image: |-\n  x\nresources:\n  requests:\n    cpu: 1\n\nargs: [a]\n");
}

TEST(KubernetesPlan, WritesWhatIsMissingInFlowStyle) {
  EXPECT_EQ(Lines("resources: {}", {Memory(kGiB), Cpu(1)}),
            "resources: {requests: {memory: 1Gi, cpu: 1}}\n");
  EXPECT_EQ(Lines("resources: {requests: { cpu: 1 } }", {Memory(kGiB)}),
            "resources: {requests: { cpu: 1, memory: 1Gi } }\n");
  EXPECT_EQ(Lines("resources: {requests: {cpu: 1, }}", {Memory(kGiB)}),
            "resources: {requests: {cpu: 1, memory: 1Gi, }}\n");
  EXPECT_EQ(Lines("resources:\n  requests: {\n    cpu: 1\n  }", {Memory(kGiB)}),
            "resources:\n  requests: {\n    cpu: 1,\n    memory: 1Gi\n  }\n");
}

TEST(KubernetesPlan, WritesAtTheEndOfATextWithoutALastNewline) {
  std::string text = Pod("image: x");
  text.pop_back();
  EXPECT_EQ(Patch(text, {Memory(kGiB), Cpu(1)}),
            text + "\n    resources:\n      requests:\n        memory: 1Gi\n        cpu: 1");
}

TEST(KubernetesPlan, WritesTheFilesLineEnds) {
  std::string text = Pod("image: x");
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2)
    text.insert(at, "\r");
  EXPECT_EQ(Patch(text, {Memory(kGiB)}),
            text + "    resources:\r\n      requests:\r\n        memory: 1Gi\r\n");
}

TEST(KubernetesPlan, Json) {
  const std::string open =
      "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"spec\": {\"containers\": [{\"name\": \"c\"";
  EXPECT_EQ(Patch(open + "}]}}", {Memory(kGiB), Cpu(0.5), Walltime(60)}),
            open +
                ", \"resources\": {\"requests\": {\"memory\": \"1Gi\", \"cpu\": \"0.5\"}}}], "
                "\"activeDeadlineSeconds\": 60}}");
  EXPECT_EQ(
      Patch(open + ",\n  \"resources\": {\"limits\": {\n    \"cpu\": 2,\n    \"memory\": \"2Gi\"\n"
                   "  }}}]}}",
            {Memory(kGiB), Cpu(4), Gpu(1)}),
      open +
          ",\n  \"resources\": {\"limits\": {\n    \"cpu\": 4,\n    \"memory\": \"1Gi\",\n"
          "    \"nvidia.com/gpu\": \"1\"\n  }}}]}}");
}

std::string Job(std::string_view spec) {
  return fmt::format(
      "apiVersion: batch/v1\nkind: Job\nspec:\n{}  template:\n    spec:\n      containers:\n"
      "      - name: c\n",
      spec);
}

TEST(KubernetesPlan, Walltime) {
  EXPECT_EQ(Patch(Job("  activeDeadlineSeconds: 600 # ten\n"), {Walltime(899.5)}),
            Job("  activeDeadlineSeconds: 900 # ten\n"));
  EXPECT_EQ(Patch(Job(""), {Walltime(900)}), Job("  activeDeadlineSeconds: 900\n"));
  EXPECT_EQ(Patch(Job("  # first\n  backoffLimit: 0\n"), {Walltime(900)}),
            Job("  # first\n  activeDeadlineSeconds: 900\n  backoffLimit: 0\n"));
  const std::string deployment =
      "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: [{name: c}]}}}";
  EXPECT_EQ(Patch(deployment, {Walltime(900)}), "patch.no_place");
}

TEST(KubernetesPlan, OfSeveralDeadlinesTheFirstCounts) {
  const std::string text =
      "apiVersion: batch/v1\nkind: Job\nspec:\n  activeDeadlineSeconds: 600\n  template:\n    "
      "spec:\n"
      "      activeDeadlineSeconds: 300\n      containers: [{name: c}]\n";
  const std::string lower = Patch(text, {Walltime(200)});
  EXPECT_THAT(lower, testing::HasSubstr("  activeDeadlineSeconds: 600\n"));
  EXPECT_THAT(lower, testing::HasSubstr("  activeDeadlineSeconds: 200\n"));
  const std::string higher = Patch(text, {Walltime(900)});
  EXPECT_THAT(higher, testing::Not(testing::HasSubstr("300")));
  EXPECT_THAT(higher, testing::Not(testing::HasSubstr("600")));
}

TEST(KubernetesPlan, OtherContainersStay) {
  const std::string text = Pod("resources: {limits: {memory: 1Gi}}") +
                           "  - name: d\n    resources: {limits: {memory: 1Gi}}\n";
  EXPECT_EQ(Patch(text, {Memory(2 * kGiB, 1)}),
            Pod("resources: {limits: {memory: 1Gi}}") +
                "  - name: d\n    resources: {limits: {memory: 2Gi}}\n");
  EXPECT_EQ(Patch(text, {Memory(kGiB, 2)}), "patch.no_place");
}

TEST(KubernetesPlan, RefusesWhatOthersShare) {
  const std::string text =
      Pod("resources: &r {limits: {memory: 1Gi}}") + "  - name: d\n    resources: *r\n";
  EXPECT_EQ(Patch(text, {Memory(2 * kGiB)}), "patch.shared");
  EXPECT_EQ(Patch(text, {Memory(2 * kGiB, 1)}), "patch.shared");
  EXPECT_EQ(Patch(text, {Cpu(1, 1)}), "patch.no_place");
  EXPECT_EQ(Patch(text, {Memory(kGiB)}), text);
  const std::string merged =
      Pod("x: &b {cpu: 1}\nresources:\n  requests:\n    <<: *b\n    memory: 1Gi");
  EXPECT_EQ(Patch(merged, {Cpu(2)}), "patch.shared");
  EXPECT_THAT(Patch(merged, {Memory(2 * kGiB)}), testing::HasSubstr("memory: 2Gi"));
}

TEST(KubernetesPlan, RefusesWhatIsNotKnown) {
  EXPECT_EQ(Lines("resources: {limits: {memory: \"{{ .x }}\"}}", {Memory(kGiB)}),
            "patch.unresolved");
  EXPECT_EQ(Lines("resources: {{ .x }}", {Memory(kGiB)}), "patch.unresolved");
  EXPECT_EQ(Lines("resources: {limits: {memory: 16GB}}", {Memory(kGiB)}), "patch.unresolved");
  EXPECT_EQ(Lines("image: x", {Memory(-1)}), "patch.not_settable");
  EXPECT_EQ(Lines("image: x", {Memory(1e30)}), "patch.not_settable");
  EXPECT_EQ(Lines("image: x", {{.quantity = Quantity::kNodes, .amount = 1}}), "patch.not_settable");
  EXPECT_EQ(Lines("resources: {requests: {cpu: !!int 2}}", {Cpu(2.5)}), "patch.not_settable");
  EXPECT_EQ(Lines("resources: [1]", {Memory(kGiB)}), "patch.no_place");
}

// Every container of the corpus, every quantity: an edit that does what it says, or a reason.
TEST(KubernetesPlan, TheCorpus) {
  const auto corpus = std::filesystem::path(EXPANSE_SOURCE_DIR) / "../../tests/corpus/kubernetes";
  int edited = 0;
  int refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    const auto parsed = ParseKubernetes(text);
    if (!parsed) continue;
    for (std::size_t part = 0; part < parsed->parts.size(); ++part) {
      for (Wanted wanted : {Memory(5 * kGiB, part), Cpu(2.5, part), Gpu(3), Walltime(1234)}) {
        wanted.part = part;
        const auto edits = PlanKubernetesEdits(text, *parsed, {wanted});
        if (!edits) {
          ++refused;
          EXPECT_THAT(edits.error().reason, testing::StartsWith("patch."));
          EXPECT_NE(edits.error().reason, "patch.not_reached")
              << entry.path() << edits.error().message;
          continue;
        }
        ++edited;
        const std::string after = *ApplyEdits(text, *edits);
        EXPECT_EQ(Patch(after, {wanted}), after) << entry.path();
      }
    }
  }
  EXPECT_GT(edited, 250);
  EXPECT_GT(refused, 20);
}

TEST(EditSequence, ComposesWhatTouches) {
  const std::string_view original = "0123456789";
  kubernetes::EditSequence sequence(original);
  sequence.Apply({.begin = 2, .end = 4, .replacement = "abc"});  // 01abc456789
  sequence.Apply({.begin = 8, .end = 9, .replacement = ""});     // 01abc45689
  sequence.Apply({.begin = 5, .end = 5, .replacement = "-"});    // 01abc-45689
  sequence.Apply({.begin = 3, .end = 4, .replacement = "BB"});   // 01aBBc-45689
  EXPECT_EQ(sequence.text(), "01aBBc-45689");
  EXPECT_EQ(*ApplyEdits(original, sequence.Edits()), sequence.text());
  EXPECT_EQ(sequence.Edits().size(), 2);
  sequence.Apply({.begin = 1, .end = 11, .replacement = "x"});  // across both
  EXPECT_EQ(sequence.text(), "0x9");
  EXPECT_EQ(*ApplyEdits(original, sequence.Edits()), "0x9");
  sequence.Apply({.begin = 0, .end = 3, .replacement = "0123456789"});
  EXPECT_TRUE(sequence.Edits().empty());
}

}  // namespace
}  // namespace expanse::workload
