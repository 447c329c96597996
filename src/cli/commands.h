// Every command's declaration, in the order of the reference. A new command is declared and defined
// in its commands_*.cc, named here and added to the tree in command_table.cc.
#pragma once

#include "cli/spec.h"

namespace expanse::cli {

extern const CommandSpec kLoginCommand;
extern const CommandSpec kLogoutCommand;
extern const CommandSpec kStatusCommand;
extern const CommandSpec kRefreshCommand;

extern const CommandSpec kKeysCreateCommand;
extern const CommandSpec kKeysListCommand;
extern const CommandSpec kKeysRevokeCommand;

extern const CommandSpec kComputeRegisterCommand;
extern const CommandSpec kComputeInstallCommand;
extern const CommandSpec kComputeListCommand;
extern const CommandSpec kComputeShowCommand;
extern const CommandSpec kComputeQueueCommand;
extern const CommandSpec kComputeNodesCommand;
extern const CommandSpec kComputeRevokeCommand;
extern const CommandSpec kComputeReissueCommand;

extern const CommandSpec kExecutionsCommand;
extern const CommandSpec kExecutionsShowCommand;
extern const CommandSpec kLogsCommand;
extern const CommandSpec kMetricsCommand;

extern const CommandSpec kAnalyseCommand;
extern const CommandSpec kAnalyseDiffCommand;
extern const CommandSpec kAnalyseApplyCommand;
extern const CommandSpec kAnalyseListCommand;
extern const CommandSpec kAnalyseShowCommand;

extern const CommandSpec kDiagnoseCommand;
extern const CommandSpec kRunbookListCommand;
extern const CommandSpec kRunbookShowCommand;
extern const CommandSpec kRunbookTestCommand;

extern const CommandSpec kRunCommand;

extern const CommandSpec kVersionCommand;
extern const CommandSpec kCompletionsCommand;
extern const CommandSpec kManCommand;
extern const CommandSpec kHelpCommand;

// Choices that several commands share.
inline constexpr std::string_view kSourceTypes[] = {"slurm", "kubernetes", "nomad", "host"};

}  // namespace expanse::cli
