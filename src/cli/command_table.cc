// The tree of commands, in the order in which help and the reference show them.
#include "cli/app.h"
#include "cli/commands.h"

namespace expanse::cli {
namespace {

constexpr const CommandSpec* kKeysChildren[] = {&kKeysCreateCommand, &kKeysListCommand,
                                                &kKeysRevokeCommand};
constinit const CommandSpec kKeys = {
    .name = "keys",
    .summary = "Make, list and end personal keys",
    .description = "Personal keys (exp_user_…) sign people in with `expanse login`.",
    .children = kKeysChildren};

constexpr const CommandSpec* kComputeChildren[] = {
    &kComputeRegisterCommand, &kComputeInstallCommand, &kComputeListCommand,
    &kComputeShowCommand,     &kComputeQueueCommand,   &kComputeNodesCommand,
    &kComputeRevokeCommand,   &kComputeReissueCommand};
constinit const CommandSpec kCompute = {
    .name = "compute",
    .summary = "Register, install, list and revoke computes, see their queues and nodes",
    .description = "A compute is whatever runs one expanse-daemon: a cluster or a single machine.",
    .children = kComputeChildren};

constexpr const CommandSpec* kRunbookChildren[] = {&kRunbookListCommand, &kRunbookShowCommand,
                                                   &kRunbookTestCommand};
constinit const CommandSpec kRunbook = {
    .name = "runbook",
    .summary = "List, show and test what diagnose knows about failures",
    .description =
        "A runbook is what a class of failure looks like and what there is to say about it. The "
        "program has its own; a site adds others in a directory of the server.",
    .children = kRunbookChildren};

constexpr const CommandSpec* kRootChildren[] = {
    &kLoginCommand, &kLogoutCommand,  &kStatusCommand,      &kRefreshCommand,
    &kKeys,         &kCompute,        &kExecutionsCommand,  &kMetricsCommand,
    &kLogsCommand,  &kAnalyseCommand, &kDiagnoseCommand,    &kRunbook,
    &kRunCommand,   &kVersionCommand, &kCompletionsCommand, &kManCommand,
    &kHelpCommand};
constexpr EnvironmentSpec kRootEnvironment[] = {
    {"EXPANSE_API_KEY", "Personal key for `expanse login`"},
    {"EXPANSE_API_URL", "Control plane, instead of the session's"},
    {"EXPANSE_SIGN_IN_LINK", "One-time link for `expanse login`"},
    {"EXPANSE_INSTALL_TOKEN", "Install token for `expanse compute install`"},
    {"EXPANSE_HOME", "Where the session is kept [default: ~/.expanse]"},
    {"EXPANSE_CONSOLE_URL", "Console for the links of `expanse executions`"},
    {"EXPANSE_SPOOL_DIR", "Where `expanse run` leaves its records"},
    {"SSL_CERT_FILE", "Certificates to trust, PEM"},
    {"HTTPS_PROXY, HTTP_PROXY, NO_PROXY", "Proxies, and the hosts that are reached without"},
    {"NO_COLOR", "No colour, whatever its value"},
};
constexpr ExampleSpec kRootExamples[] = {
    {"expanse login --control-plane https://expanse.example.org", "sign in"},
    {"expanse run -- python train.py", "run and capture a command"},
    {"expanse executions", "what ran"},
    {"expanse analyse train.slurm", "what a job will need, before it is submitted"},
    {"expanse diagnose 41982 --source-type slurm", "why a job failed"},
};
constinit const CommandSpec kRoot = {
    .name = "expanse",
    .summary = "The intelligence layer for your compute",
    .description =
        "Registers computes, captures what runs on them and answers questions about it. Results go "
        "to "
        "standard output; messages, warnings and questions to standard error.",
    .environment = kRootEnvironment,
    .examples = kRootExamples,
    .children = kRootChildren};

}  // namespace

const CommandSpec& RootCommand() { return kRoot; }

}  // namespace expanse::cli
