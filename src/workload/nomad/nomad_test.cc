#include "workload/nomad/nomad.h"

#include <gtest/gtest.h>

#include <string>

namespace expanse::workload {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

Submission MustParse(std::string_view text, const ParseOptions& options = {}) {
  auto submission = ParseNomad(text, options);
  if (!submission) {
    ADD_FAILURE() << submission.error().line << ": " << submission.error().message;
    return {};
  }
  for (const Part& part : submission->parts) {
    for (const Setting& setting : part.settings) {
      EXPECT_EQ(text.substr(setting.place.begin, setting.place.end - setting.place.begin),
                setting.written);
      EXPECT_NE(setting.value.has_value(), !setting.unresolved.empty()) << setting.name;
    }
  }
  return *std::move(submission);
}

Refusal MustRefuse(std::string_view text) {
  auto submission = ParseNomad(text);
  if (submission) {
    ADD_FAILURE() << "parsed: " << text;
    return {};
  }
  return submission.error();
}

const Setting& Named(const Part& part, std::string_view name) {
  for (const Setting& setting : part.settings) {
    if (setting.name == name) return setting;
  }
  ADD_FAILURE() << "no setting " << name;
  static const Setting kNone;
  return kNone;
}

bool HasNote(const Submission& submission, std::string_view reason) {
  for (const Note& note : submission.notes) {
    if (note.reason == reason) return true;
  }
  return false;
}

std::string Joined(const Command& command) {
  std::string out;
  for (const Word& word : command.words) {
    if (!out.empty()) out += ' ';
    out += (word.resolved ? "" : "?") + word.text;
  }
  return out;
}

constexpr std::string_view kTraining = R"hcl(
job "train" {
  namespace = "ml"
  type      = "batch"
  meta { team = "vision" }

  group "workers" {
    count = 4
    ephemeral_disk { size = 2000 }
    task "fetch" {
      lifecycle { hook = "prestart" }
      driver = "exec"
      config {
        command = "/usr/bin/fetch"
        args    = ["--from", "${NOMAD_META_source}"]
      }
      resources { memory = "64" }
    }
    task "fit" {
      driver = "docker"
      config {
        image      = "registry.example/fit:3"
        entrypoint = ["/usr/bin/python3"]
        command    = "fit.py"
        args       = ["--epochs", 10]
      }
      env {
        OMP_NUM_THREADS = 8
        PORT            = "${NOMAD_PORT_http}"
      }
      meta = { owner = "ada" }
      resources {
        cores      = 8
        memory     = 16384
        memory_max = 24576
        device "nvidia/gpu" {
          count = 2
          constraint {
            attribute = "${device.attr.memory}"
            operator  = ">="
            value     = "40 GiB"
          }
        }
      }
    }
  }
}
)hcl";

TEST(Nomad, ReadsTasksAndWhatTheyAskFor) {
  const Submission submission = MustParse(kTraining);
  EXPECT_EQ(submission.format, Format::kNomad);
  EXPECT_EQ(submission.name, "train");
  ASSERT_EQ(submission.parts.size(), 2u);
  const Part& fetch = submission.parts[0];
  EXPECT_TRUE(fetch.is_init);
  EXPECT_EQ(fetch.request.memory_bytes, 64 * kMiB);
  EXPECT_EQ(Named(fetch, "ephemeral_disk.size").value, 2000.0 * kMiB);
  ASSERT_EQ(fetch.commands.size(), 1u);
  EXPECT_EQ(Joined(fetch.commands[0]), "/usr/bin/fetch --from ?${NOMAD_META_source}");
  EXPECT_EQ(fetch.commands[0].place.line, 14u);

  const Part& fit = submission.parts[1];
  EXPECT_EQ(fit.workload, "train");
  EXPECT_EQ(fit.kind, "batch");
  EXPECT_EQ(fit.name_space, "ml");
  EXPECT_EQ(fit.group, "workers");
  EXPECT_EQ(fit.name, "fit");
  EXPECT_EQ(fit.image, "registry.example/fit:3");
  EXPECT_FALSE(fit.is_init);
  EXPECT_EQ(fit.replicas, 4);
  EXPECT_EQ(fit.request.cpu_cores, 8.0);
  EXPECT_EQ(fit.request.memory_bytes, 16384 * kMiB);
  EXPECT_EQ(fit.request.gpu_count, 2.0);
  EXPECT_EQ(fit.request.gpu_type, "nvidia/gpu");
  EXPECT_EQ(fit.request.gpu_memory_bytes, 40960 * kMiB);
  EXPECT_EQ(Named(fit, "memory_max").bound, Bound::kLimit);
  EXPECT_EQ(Named(fit, "memory").place.line, 34u);
  EXPECT_EQ(Named(fit, "memory").place.column, 22u);
  EXPECT_EQ(Joined(fit.commands[0]), "/usr/bin/python3 fit.py --epochs 10");
  EXPECT_EQ(fit.environment, (std::map<std::string, std::string>{{"OMP_NUM_THREADS", "8"}}));
  EXPECT_EQ(fit.annotations,
            (std::map<std::string, std::string>{{"team", "vision"}, {"owner", "ada"}}));
}

TEST(Nomad, CpuInMegahertzIsNoNumberOfCores) {
  const Submission submission =
      MustParse("job \"a\" {\n task \"b\" {\n resources {\n cpu = 500\n}\n}\n}\n");
  ASSERT_EQ(submission.parts.size(), 1u);
  const Setting& cpu = Named(submission.parts[0], "cpu");
  EXPECT_EQ(cpu.value, 500);
  EXPECT_EQ(cpu.unit, "MHz");
  EXPECT_FALSE(submission.parts[0].request.cpu_cores);
  // A task without a group is a group of its own.
  EXPECT_EQ(submission.parts[0].group, "b");
  EXPECT_TRUE(HasNote(submission, "default"));
  EXPECT_FALSE(submission.parts[0].request.memory_bytes);
}

TEST(Nomad, EvaluatesVariablesAndLocals) {
  const std::string_view text = R"hcl(
variable "size" {
  type    = number
  default = 512
}
variable "unset" {}
locals {
  twice = var.size * 2
}
job "a" {
  group "g" {
    count = min(3, local.twice)
    task "b" {
      resources {
        cpu    = var.unset
        memory = local.twice
      }
    }
  }
}
)hcl";
  const Submission submission = MustParse(text);
  EXPECT_EQ(submission.parts.at(0).replicas, 3);
  EXPECT_EQ(submission.parts[0].request.memory_bytes, 1024 * kMiB);
  EXPECT_EQ(Named(submission.parts[0], "memory").written, "local.twice");
  EXPECT_EQ(Named(submission.parts[0], "cpu").unresolved, "var.unset has no value");
  const Submission given = MustParse(text, {.variables = {{"size", "700"}, {"unset", "90"}}});
  EXPECT_EQ(given.parts.at(0).request.memory_bytes, 1400 * kMiB);
  EXPECT_EQ(Named(given.parts[0], "cpu").value, 90);
}

TEST(Nomad, DynamicBlocksAreMadeForEachElement) {
  const Submission submission = MustParse(R"hcl(
job "a" {
  dynamic "group" {
    for_each = { small = 1, large = 2 }
    iterator = it
    labels   = ["g-${it.key}"]
    content {
      count = it.value
      task "t" {
        resources { memory = 100 * it.value }
      }
    }
  }
}
)hcl");
  ASSERT_EQ(submission.parts.size(), 2u);
  EXPECT_EQ(submission.parts[0].group, "g-large");
  EXPECT_EQ(submission.parts[0].replicas, 2);
  EXPECT_EQ(submission.parts[0].request.memory_bytes, 200 * kMiB);
  EXPECT_EQ(submission.parts[1].group, "g-small");
  EXPECT_EQ(submission.parts[1].request.memory_bytes, 100 * kMiB);
}

TEST(Nomad, DynamicBlockOfUnknownLengthIsReadOnce) {
  const Submission submission = MustParse(R"hcl(
variable "names" {}
job "a" {
  dynamic "group" {
    for_each = var.names
    content {
      task "t" {
        resources { memory = group.value }
      }
    }
  }
}
)hcl");
  ASSERT_EQ(submission.parts.size(), 1u);
  EXPECT_FALSE(submission.parts[0].request.memory_bytes);
  EXPECT_TRUE(HasNote(submission, "dynamic"));
}

TEST(Nomad, OldSpellingIsRead) {
  const Submission submission = MustParse(R"hcl(
"job" "a" {
  group "g" {
    task "t" {
      config {
        "args" = ["-x"]
        port_map { http = 80 }
      }
      env = { "A" = "1", B = "2" }
      resources = {
        cpu = "250"
        memory = "300"
        network { mbits = 10 }
      }
    }
  }
}
)hcl");
  ASSERT_EQ(submission.parts.size(), 1u);
  EXPECT_EQ(submission.parts[0].request.memory_bytes, 300 * kMiB);
  EXPECT_EQ(submission.parts[0].environment.size(), 2u);
  EXPECT_EQ(Joined(submission.parts[0].commands.at(0)), "-x");
}

TEST(Nomad, TemplatesOfOtherLanguagesAreUnresolved) {
  const Submission submission = MustParse(R"hcl(
job [[ template "name" . ]] {
  group "[[ env "GROUP" ]]" {
    count = {{ count }}
    task "t" {
      config {
        image = "x:[[ .tag ]]"
        args  = ["{{ mode }}", "[[:alpha:]]"]
      }
      resources {
        cpu    = [[ .cpu ]]
        memory = ${RAM}
        cores  = <%= cores %>
      }
    }
  }
}
)hcl");
  ASSERT_EQ(submission.parts.size(), 1u);
  const Part& part = submission.parts[0];
  EXPECT_EQ(Named(part, "cpu").unresolved, "template");
  EXPECT_EQ(Named(part, "cpu").written, "[[ .cpu ]]");
  EXPECT_EQ(Named(part, "memory").written, "${RAM}");
  EXPECT_EQ(Named(part, "cores").written, "<%= cores %>");
  EXPECT_EQ(Joined(part.commands.at(0)), "?{{ mode }} [[:alpha:]]");
  EXPECT_TRUE(HasNote(submission, "unresolved"));
}

TEST(Nomad, StructureMadeByTemplatesIsRefused) {
  const Refusal refusal =
      MustRefuse("job \"a\" {\n  [[ if .x ]]\n  group \"g\" {}\n  [[ end ]]\n}");
  EXPECT_EQ(refusal.reason, "templated");
  EXPECT_EQ(refusal.line, 2u);
  EXPECT_EQ(MustRefuse("{% if x %}\njob \"a\" {}\n").reason, "templated");
  EXPECT_EQ(MustRefuse("job \"a\" {\n  count = 1 [[ .x ]]\n}\n").reason, "templated");
}

TEST(Nomad, RuntimeValuesAreUnresolved) {
  const Submission submission = MustParse(
      "job \"a\" {\n task \"b\" {\n resources {\n memory = \"${meta.size}\"\n cpu = node.cpu\n}}}");
  EXPECT_EQ(Named(submission.parts.at(0), "memory").unresolved, "runtime value ${meta.size}");
  EXPECT_EQ(Named(submission.parts[0], "memory").written, "${meta.size}");
  EXPECT_EQ(Named(submission.parts[0], "cpu").unresolved, "runtime value ${node.cpu}");
}

TEST(Nomad, AmountsThatNomadDoesNotTake) {
  const Submission submission = MustParse(
      "job \"a\" {\n task \"b\" {\n resources {\n memory = 1.5\n cpu = -1\n memory_max = "
      "\"2GB\"\n}}}");
  EXPECT_EQ(Named(submission.parts.at(0), "memory").unresolved, "not a whole number");
  EXPECT_EQ(Named(submission.parts[0], "cpu").unresolved, "not a whole number");
  EXPECT_EQ(Named(submission.parts[0], "memory_max").unresolved, "not a number");
}

TEST(Nomad, DevicesOutsideOfResourcesDoNotCount) {
  const Submission submission = MustParse(R"hcl(
job "a" {
  task "b" {
    device "nvidia/gpu" { count = 2 }
    resources {
      device "intel/fpga/x" {}
      device "nvidia/gpu/Tesla T4" {}
    }
  }
}
)hcl");
  const Part& part = submission.parts.at(0);
  EXPECT_EQ(part.request.gpu_count, 1.0);
  EXPECT_EQ(part.request.gpu_type, "Tesla T4");
  ASSERT_EQ(part.settings.size(), 2u);
  EXPECT_FALSE(part.settings[0].effective);
  EXPECT_EQ(part.settings[1].written, "nvidia/gpu/Tesla T4");
  EXPECT_TRUE(HasNote(submission, "device_not_read"));
  EXPECT_TRUE(HasNote(submission, "device"));
}

TEST(Nomad, MemoryOfDevicesHasAUnit) {
  const auto read = [](std::string_view value) {
    const Submission submission = MustParse(
        "job \"a\" {\n task \"b\" {\n resources {\n device \"gpu\" {\n constraint {\n attribute = "
        "\"${device.attr.memory}\"\n operator = \">=\"\n value = \"" +
        std::string(value) + "\"\n}\n}\n}\n}\n}\n");
    return Named(submission.parts.at(0), "device.attr.memory").value.value_or(-1);
  };
  EXPECT_EQ(read("16 GiB"), 16.0 * (1 << 30));
  EXPECT_EQ(read("1.5GiB"), 1.5 * (1 << 30));
  EXPECT_EQ(read("500 MB"), 5e8);
  EXPECT_EQ(read("2048 MiB"), 2048.0 * kMiB);
  for (const char* value : {"16", "x GiB", "-1 GiB", "1e30 TiB", "nan GiB", "${meta.m}", ""}) {
    EXPECT_EQ(read(value), -1) << value;
  }
}

TEST(Nomad, GroupCountComesFromScaling) {
  const Submission submission = MustParse(
      "job \"a\" {\n group \"g\" {\n scaling {\n min = 2\n max = 9\n}\n task \"t\" {}\n}\n}\n");
  EXPECT_EQ(submission.parts.at(0).replicas, 2);
  EXPECT_TRUE(HasNote(submission, "scaling"));
}

TEST(Nomad, JavaTasksRunJava) {
  const Submission submission = MustParse(R"hcl(
job "a" {
  task "b" {
    driver = "java"
    config {
      jar_path    = "local/app.jar"
      jvm_options = ["-Xmx512m"]
      args        = ["serve"]
    }
    artifact { source = "https://example.org/app.jar" }
    template {
      data        = <<-EOF
        {{ range service "db" }}x{{ end }}
      EOF
      destination = "local/app.conf"
    }
  }
}
)hcl");
  EXPECT_EQ(Joined(submission.parts.at(0).commands.at(0)),
            "java -Xmx512m -jar local/app.jar serve");
  EXPECT_EQ(submission.files,
            (std::vector<std::string>{"https://example.org/app.jar", "local/app.conf"}));
}

TEST(Nomad, TheIdNamesTheJob) {
  const auto named = [](const std::string& attributes) {
    return MustParse("job \"label\" {\n" + attributes + "\n task \"t\" {}\n}\n").name;
  };
  EXPECT_EQ(named(""), "label");
  EXPECT_EQ(named("name = \"shown\""), "label");
  EXPECT_EQ(named("id = \"known\""), "known");
  EXPECT_EQ(named("id = \"${UUID}\""), "label");
}

TEST(Nomad, NotesHowTheJobIsStarted) {
  const Submission periodic = MustParse(
      "job \"a\" {\n type = \"sysbatch\"\n periodic {\n cron = \"@daily\"\n}\n task \"t\" {}\n}");
  EXPECT_TRUE(HasNote(periodic, "periodic"));
  EXPECT_TRUE(HasNote(periodic, "system"));
  EXPECT_EQ(periodic.parts.at(0).kind, "sysbatch");
  EXPECT_TRUE(
      HasNote(MustParse("job \"a\" {\n parameterized {}\n task \"t\" {}\n}"), "parameterized"));
}

TEST(Nomad, ReadsTheJsonOfTheApi) {
  const std::string_view text = R"json({"Job": {"ID": "a", "Name": "a", "Type": "batch",
  "Namespace": "ml", "Meta": {"team": "x"}, "Periodic": null,
  "TaskGroups": [{"Name": "g", "Count": 2, "EphemeralDisk": {"SizeMB": 300}, "Tasks": [
    {"Name": "t", "Driver": "docker", "Config": {"image": "i:1", "args": ["a", "${NOMAD_TASK_DIR}"]},
     "Env": {"A": "1"}, "Lifecycle": {"Hook": "prestart", "Sidecar": false},
     "Resources": {"CPU": 0, "Cores": 4, "MemoryMB": 1000, "MemoryMaxMB": 0, "NUMA": null,
       "Devices": [{"Name": "nvidia/gpu", "Count": 2, "Constraints": [
         {"LTarget": "${device.model}", "Operand": "=", "RTarget": "Tesla V100"}]}]},
     "Templates": [{"DestPath": "local/x"}], "Artifacts": [{"GetterSource": "https://e.org/y"}]}]}]}})json";
  const Submission submission = MustParse(text);
  ASSERT_EQ(submission.parts.size(), 1u);
  const Part& part = submission.parts[0];
  EXPECT_EQ(part.kind, "batch");
  EXPECT_EQ(part.name_space, "ml");
  EXPECT_EQ(part.group, "g");
  EXPECT_EQ(part.replicas, 2);
  EXPECT_TRUE(part.is_init);
  EXPECT_EQ(part.image, "i:1");
  EXPECT_EQ(part.request.cpu_cores, 4.0);
  EXPECT_EQ(part.request.memory_bytes, 1000 * kMiB);
  EXPECT_EQ(part.request.gpu_count, 2.0);
  EXPECT_EQ(part.request.gpu_type, "Tesla V100");
  EXPECT_FALSE(Named(part, "MemoryMaxMB").effective);
  EXPECT_EQ(Named(part, "MemoryMB").written, "1000");
  EXPECT_EQ(part.annotations.at("team"), "x");
  EXPECT_EQ(submission.files, (std::vector<std::string>{"https://e.org/y", "local/x"}));
}

TEST(Nomad, ReadsHclInJson) {
  const Submission submission = MustParse(R"json({
  "variable": {"mem": {"type": "number", "default": 256}},
  "job": {"a": {"type": "batch", "group": {"g": [{"count": 2, "task": {"t": {
    "driver": "exec", "config": {"command": "/bin/x"},
    "resources": {"memory": "${var.mem}", "device": {"nvidia/gpu": {"count": 1}}}}}}]}}}})json");
  ASSERT_EQ(submission.parts.size(), 1u);
  EXPECT_EQ(submission.parts[0].request.memory_bytes, 256 * kMiB);
  EXPECT_EQ(submission.parts[0].request.gpu_count, 1.0);
  EXPECT_EQ(submission.parts[0].replicas, 2);
}

TEST(Nomad, RefusesWithLineAndReason) {
  EXPECT_EQ(MustRefuse("").reason, "not_a_workload");
  EXPECT_EQ(MustRefuse("id = \"x\"\ntype = \"csi\"\n").reason, "not_a_workload");
  EXPECT_EQ(MustRefuse("job \"a\" {}\n").reason, "not_a_workload");
  EXPECT_EQ(MustRefuse("{\"kind\": \"Pod\"}").reason, "not_a_workload");
  EXPECT_EQ(MustRefuse("job \"a\" {\n task \"t\" {}\n}\njob \"b\" {}\n").reason, "duplicate_block");
  const Refusal twice =
      MustRefuse("job \"a\" {\n task \"t\" {\n resources {}\n resources {}\n}\n}\n");
  EXPECT_EQ(twice.reason, "duplicate_block");
  EXPECT_EQ(twice.line, 4u);
  const Refusal open = MustRefuse("job \"a\" {\n task \"t\" {\n");
  EXPECT_EQ(open.reason, "syntax");
  EXPECT_EQ(MustRefuse("{\"Job\": {").reason, "syntax");
  EXPECT_EQ(MustRefuse(std::string(kMaxText + 1, ' ')).reason, "too_large");
  EXPECT_EQ(MustRefuse("a = " + std::string(100000, '[')).reason, "too_deep");
  EXPECT_EQ(MustRefuse("a = " + std::string(100000, '(')).reason, "too_deep");
  EXPECT_EQ(MustRefuse("a = " + std::string(100000, '-')).reason, "too_deep");
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "a {\n";
  EXPECT_EQ(MustRefuse(deep).reason, "too_deep");
}

// One literal that many tasks use is not copied for all of them.
TEST(Nomad, ManyTasksOfOneLargeTextAreBounded) {
  const std::string text = "locals {\n  big = \"" + std::string(1 << 20, 'x') + R"hcl("
}
job "a" {
  dynamic "group" {
    for_each = range(900)
    content {
      task "t" {
        config {
          command = "x"
          args    = [local.big]
        }
        env { A = local.big }
        meta { B = local.big }
      }
    }
  }
}
)hcl";
  const Submission submission = MustParse(text);
  EXPECT_EQ(submission.parts.size(), 900u);
  std::size_t bytes = 0;
  for (const Part& part : submission.parts) {
    for (const auto& [name, value] : part.environment) bytes += value.size();
    for (const auto& [name, value] : part.annotations) bytes += value.size();
    for (const Command& command : part.commands) {
      for (const Word& word : command.words) bytes += word.text.size();
    }
  }
  EXPECT_LE(bytes, std::size_t{17} << 20);
  EXPECT_TRUE(HasNote(submission, "too_large"));
  EXPECT_EQ(
      MustRefuse("job \"a\" {\n dynamic \"group\" {\n for_each = range(1024)\n content {\n task "
                 "\"t\" {}\n}\n}\n}\n")
          .reason,
      "too_large");
}

}  // namespace
}  // namespace expanse::workload
