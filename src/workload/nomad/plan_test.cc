#include <gtest/gtest.h>

#include <string>

#include "workload/nomad/nomad.h"

namespace expanse::workload {
namespace {

constexpr double kMiB = 1 << 20;

// The edited text; or the reason why there is none.
std::string Patched(std::string_view text, std::vector<Wanted> wanted,
                    const ParseOptions& options = {}) {
  const auto submission = ParseNomad(text, options);
  if (!submission) return "does not parse: " + submission.error().message;
  const auto edits = PlanNomadEdits(text, *submission, wanted, options);
  if (!edits) return edits.error().reason;
  return *ApplyEdits(text, *edits);
}

std::string Memory(std::string_view text, double mebibytes, const ParseOptions& options = {}) {
  return Patched(text, {{.amount = mebibytes * kMiB}}, options);
}

TEST(NomadPlan, ReplacesTheNumberAlone) {
  EXPECT_EQ(
      Memory("job \"a\" {\n task \"b\" {\n  resources {\n   memory = 900 # MB\n  }\n }\n}\n", 256),
      "job \"a\" {\n task \"b\" {\n  resources {\n   memory = 256 # MB\n  }\n }\n}\n");
  // In quotes it stays in quotes.
  EXPECT_EQ(Memory("job \"a\" {\n task \"b\" {\n  resources { memory = \"900\" }\n }\n}\n", 256.5),
            "job \"a\" {\n task \"b\" {\n  resources { memory = \"257\" }\n }\n}\n");
}

TEST(NomadPlan, WritesNothingForWhatIsAskedAlready) {
  const std::string_view text = "job \"a\" {\n task \"b\" {\n  resources { memory = 256 }\n }\n}\n";
  const auto edits = PlanNomadEdits(text, *ParseNomad(text), {{.amount = 256 * kMiB}});
  ASSERT_TRUE(edits);
  EXPECT_TRUE(edits->empty());
  // Not even where Nomad would not take it, or the patcher could not write it.
  const std::string odd =
      "job \"a\" {\n task \"b\" {\n  resources {\n   memory = 2 * 2\n   device \"a/gpu\" {}\n   "
      "device "
      "\"b/gpu\" {}\n  }\n }\n}\n";
  EXPECT_EQ(Patched(odd, {{.amount = 4 * kMiB}, {.quantity = Quantity::kGpu, .amount = 2}}), odd);
}

TEST(NomadPlan, KeepsMemoryMaxAboveMemory) {
  const std::string_view text =
      "job \"a\" {\n task \"b\" {\n  resources {\n   memory     = 100\n   memory_max = 200\n  }\n "
      "}\n}\n";
  EXPECT_EQ(Memory(text, 150),
            "job \"a\" {\n task \"b\" {\n  resources {\n   memory     = 150\n   memory_max = 200\n "
            " }\n }\n}\n");
  EXPECT_EQ(Memory(text, 300),
            "job \"a\" {\n task \"b\" {\n  resources {\n   memory     = 300\n   memory_max = 300\n "
            " }\n }\n}\n");
}

TEST(NomadPlan, InsertsInTheColumnsOfTheBlock) {
  EXPECT_EQ(
      Memory("job \"a\" {\n\ttask \"b\" {\n\t\tresources {\n\t\t\tcpu    = 500\n\t\t}\n\t}\n}\n",
             64),
      "job \"a\" {\n\ttask \"b\" {\n\t\tresources {\n\t\t\tcpu    = 500\n\t\t\tmemory = "
      "64\n\t\t}\n\t}\n}\n");
  EXPECT_EQ(Memory("job \"a\" {\n  task \"b\" {\n    resources { cores = 2 }\n  }\n}\n", 64),
            "job \"a\" {\n  task \"b\" {\n    resources {\n      cores = 2\n      memory = 64\n    "
            "}\n  }\n}\n");
  EXPECT_EQ(Memory("job \"a\" {\n  task \"b\" {\n    resources {}\n  }\n}\n", 64),
            "job \"a\" {\n  task \"b\" {\n    resources {\n      memory = 64\n    }\n  }\n}\n");
  EXPECT_EQ(Memory("job \"a\" {\r\n  task \"b\" {\r\n    driver = \"exec\"\r\n  }\r\n}\r\n", 64),
            "job \"a\" {\r\n  task \"b\" {\r\n    driver = \"exec\"\r\n    resources {\r\n      "
            "memory = 64\r\n"
            "    }\r\n  }\r\n}\r\n");
  EXPECT_EQ(Memory("job \"a\" {\n  task \"b\" {}\n}\n", 64),
            "job \"a\" {\n  task \"b\" {\n    resources {\n      memory = 64\n    }\n  }\n}\n");
  // HCL1: an object, and a brace that does not stand alone.
  EXPECT_EQ(
      Memory("job \"a\" {\n task \"b\" {\n  resources = { cpu = 5 }\n }\n}\n", 64),
      "job \"a\" {\n task \"b\" {\n  resources = {\n    cpu = 5,\n    memory = 64\n  }\n }\n}\n");
  EXPECT_EQ(Memory("job \"a\" {\n task \"b\" {\n  resources {\n   cpu = 5 }\n }\n}\n", 64),
            "job \"a\" {\n task \"b\" {\n  resources {\n   cpu = 5 \n   memory = 64\n  }\n }\n}\n");
}

TEST(NomadPlan, TheInsertionOfAPartGivesTheSame) {
  const std::string text = "job \"a\" {\n  task \"b\" {\n    driver = \"exec\"\n  }\n}\n";
  const auto submission = ParseNomad(text);
  ASSERT_TRUE(submission);
  ASSERT_EQ(submission->parts[0].insertions.size(), 1u);
  const Insertion& insertion = submission->parts[0].insertions[0];
  std::string edited = text;
  edited.insert(insertion.offset, insertion.before + "64" + insertion.after);
  EXPECT_EQ(edited, Memory(text, 64));
}

TEST(NomadPlan, InsertsIntoJson) {
  EXPECT_EQ(
      Memory(R"({"Job": {"ID": "a", "TaskGroups": [{"Tasks": [{"Name": "t"}]}]}})", 64),
      R"({"Job": {"ID": "a", "TaskGroups": [{"Tasks": [{"Resources": {"MemoryMB": 64},"Name": "t"}]}]}})");
  EXPECT_EQ(Memory("{\"Job\": {\"ID\": \"a\", \"TaskGroups\": [{\"Tasks\": [{\"Resources\": {\n  "
                   "\"CPU\": 5\n}}]}]}}",
                   64),
            "{\"Job\": {\"ID\": \"a\", \"TaskGroups\": [{\"Tasks\": [{\"Resources\": {\n  "
            "\"MemoryMB\": 64,\n  \"CPU\": 5\n}}]}]}}");
  EXPECT_EQ(Memory(R"({"job": {"a": {"group": {"g": {"task": {"t": {"resources": {}}}}}}}})", 64),
            R"({"job": {"a": {"group": {"g": {"task": {"t": {"resources": {"memory": 64}}}}}}}})");
}

TEST(NomadPlan, NullResourcesOfTheApiAreReplaced) {
  EXPECT_EQ(
      Memory(R"({"Job": {"ID": "a", "TaskGroups": [{"Tasks": [{"Resources": null}]}]}})", 64),
      R"({"Job": {"ID": "a", "TaskGroups": [{"Tasks": [{"Resources": {"MemoryMB": 64}}]}]}})");
  EXPECT_EQ(
      Memory(
          R"({"Job": {"ID": "a", "TaskGroups": [{"Tasks": [{"Resources": {"MemoryMB": null}}]}]}})",
          64),
      R"({"Job": {"ID": "a", "TaskGroups": [{"Tasks": [{"Resources": {"MemoryMB": 64}}]}]}})");
}

constexpr std::string_view kVariables = R"hcl(
variable "mem" {
  default = 500
}
locals {
  disk = "700"
}
job "a" {
  group "g" {
    ephemeral_disk { size = local.disk }
    task "b" {
      resources { memory = var.mem }
    }
  }
}
)hcl";

TEST(NomadPlan, ChangesTheDefaultThatNothingElseUses) {
  std::string expected(kVariables);
  expected.replace(expected.find("500"), 3, "200");
  EXPECT_EQ(Memory(kVariables, 200), expected);
  std::string disk(kVariables);
  disk.replace(disk.find("700"), 3, "300");
  EXPECT_EQ(Patched(kVariables, {{.quantity = Quantity::kDisk, .amount = 300 * kMiB}}), disk);
}

TEST(NomadPlan, RefusesWhereTheValueIsNotItsOwn) {
  // Given from outside.
  EXPECT_EQ(Memory(kVariables, 200, {.variables = {{"mem", "800"}}}), "patch.unresolved");
  // Used twice.
  std::string twice(kVariables);
  twice.insert(twice.find("locals"), "locals {\n x = var.mem\n}\n");
  EXPECT_EQ(Memory(twice, 200), "patch.unresolved");
  // All of var is used.
  std::string all(kVariables);
  all.insert(all.find("locals"), "locals {\n x = var[local.disk]\n}\n");
  EXPECT_EQ(Memory(all, 200), "patch.unresolved");
  // An expression, a template, a value without a default, one of the client.
  for (const char* value :
       {"2 * 100", "[[ .mem ]]", "var.nothing", "\"${meta.mem}\"", "max(1, 2)"}) {
    const std::string text =
        "job \"a\" {\n task \"b\" {\n  resources { memory = " + std::string(value) + " }\n }\n}\n";
    EXPECT_EQ(Memory(text, 210), "patch.unresolved") << value;
  }
}

TEST(NomadPlan, ALiteralOfAVariableInAStringIsFound) {
  std::string text(kVariables);
  text.replace(text.find("= var.mem"), 9, "= \"${var.mem}\"");
  std::string expected = text;
  expected.replace(expected.find("500"), 3, "200");
  EXPECT_EQ(Memory(text, 200), expected);
}

TEST(NomadPlan, OneOfSeveralMadeOfTheSameTextIsNotReached) {
  EXPECT_EQ(Memory(R"hcl(
job "a" {
  dynamic "group" {
    for_each = [1, 2]
    content {
      task "b" {
        resources { memory = 100 }
      }
    }
  }
}
)hcl",
                   200),
            "patch.not_reached");
}

TEST(NomadPlan, CoresYesMegahertzNo) {
  const std::vector<Wanted> wanted = {{.quantity = Quantity::kCpu, .amount = 2.2}};
  EXPECT_EQ(Patched("job \"a\" {\n task \"b\" {\n  resources { cores = 8 }\n }\n}\n", wanted),
            "job \"a\" {\n task \"b\" {\n  resources { cores = 3 }\n }\n}\n");
  EXPECT_EQ(Patched("job \"a\" {\n task \"b\" {\n  resources { cpu = 8 }\n }\n}\n", wanted),
            "patch.no_place");
  EXPECT_EQ(Patched("job \"a\" {\n task \"b\" {}\n}\n", wanted), "patch.no_place");
}

std::string WithDevice(const std::string& inside) {
  return "job \"a\" {\n  task \"b\" {\n    resources {\n      device \"nvidia/gpu\" {" + inside +
         "}\n    }\n  }\n}\n";
}

TEST(NomadPlan, CountsOfDevices) {
  const auto gpus = [](const std::string& text, double count) {
    return Patched(text, {{.quantity = Quantity::kGpu, .amount = count}});
  };
  EXPECT_EQ(gpus(WithDevice(" count = 4 "), 2), WithDevice(" count = 2 "));
  EXPECT_EQ(gpus(WithDevice(""), 2), WithDevice("\n        count = 2\n      "));
  EXPECT_EQ(gpus(WithDevice(""), 1), WithDevice(""));
  EXPECT_EQ(gpus(WithDevice(" count = 4 "), 0), "patch.no_place");
  EXPECT_EQ(gpus("job \"a\" {\n task \"b\" {}\n}\n", 1), "patch.no_place");
}

TEST(NomadPlan, MemoryOfDevices) {
  const std::string constraint =
      "\n        constraint {\n          attribute = \"${device.attr.memory}\"\n          operator "
      " = \">=\"\n          value     = \"40 GiB\"\n        }\n      ";
  std::string expected = WithDevice(constraint);
  expected.replace(expected.find("40 GiB"), 6, "17 GiB");
  EXPECT_EQ(Patched(WithDevice(constraint),
                    {{.quantity = Quantity::kGpuMemory, .amount = 16.5 * 1024 * kMiB}}),
            expected);
}

TEST(NomadPlan, WhatNomadDoesNotCount) {
  const std::string text = "job \"a\" {\n task \"b\" {}\n}\n";
  for (const Quantity quantity : {Quantity::kWalltime, Quantity::kNodes, Quantity::kTasks,
                                  Quantity::kDisk, Quantity::kGpuMemory}) {
    EXPECT_EQ(Patched(text, {{.quantity = quantity, .amount = 1}}), "patch.no_place");
  }
  EXPECT_EQ(Patched(text, {{.part = 1, .amount = 1}}), "patch.no_place");
}

TEST(NomadPlan, SeveralTasksAtOnce) {
  const std::string_view text =
      "job \"a\" {\n task \"b\" {\n  resources { memory = 1000 }\n }\n task \"c\" {\n }\n}\n";
  EXPECT_EQ(Patched(text, {{.part = 1, .amount = 64 * kMiB}, {.part = 0, .amount = 32 * kMiB}}),
            "job \"a\" {\n task \"b\" {\n  resources { memory = 32 }\n }\n task \"c\" {\n   "
            "resources {\n     memory = 64\n   }\n }\n}\n");
}

TEST(NomadPlan, VariablesOfHclInJson) {
  const std::string_view text =
      R"({"variable": {"m": {"default": 700}}, "job": {"a": {"task": {"t": {"resources": {"memory": "${var.m}"}}}}}})";
  EXPECT_EQ(
      Memory(text, 64),
      R"({"variable": {"m": {"default": 64}}, "job": {"a": {"task": {"t": {"resources": {"memory": "${var.m}"}}}}}})");
}

}  // namespace
}  // namespace expanse::workload
