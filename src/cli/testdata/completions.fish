# fish completion for expanse; made by `expanse completions fish`.
complete -c expanse -f
complete -c expanse -n '__fish_use_subcommand' -a login -d 'Sign in with a personal key'
complete -c expanse -n '__fish_use_subcommand' -a logout -d 'End the session'
complete -c expanse -n '__fish_use_subcommand' -a status -d 'Show who is signed in, and where'
complete -c expanse -n '__fish_use_subcommand' -a refresh -d 'Renew the access token'
complete -c expanse -n '__fish_use_subcommand' -a keys -d 'Make, list and end personal keys'
complete -c expanse -n '__fish_use_subcommand' -a compute -d 'Register, install, list and revoke computes, see their queues and nodes'
complete -c expanse -n '__fish_use_subcommand' -a executions -d 'List what ran, newest first'
complete -c expanse -n '__fish_use_subcommand' -a metrics -d 'Export an execution'\''s metrics as a summary, CSV or JSON'
complete -c expanse -n '__fish_use_subcommand' -a logs -d 'Print the captured end of an execution'\''s output'
complete -c expanse -n '__fish_use_subcommand' -a analyse -d 'Recommend resources before a workload runs'
complete -c expanse -n '__fish_use_subcommand' -a diagnose -d 'Explain why an execution failed'
complete -c expanse -n '__fish_use_subcommand' -a runbook -d 'List, show and test what diagnose knows about failures'
complete -c expanse -n '__fish_use_subcommand' -a run -d 'Run a command here and capture it'
complete -c expanse -n '__fish_use_subcommand' -a version -d 'Print the version'
complete -c expanse -n '__fish_use_subcommand' -a completions -d 'Print a completion script for a shell'
complete -c expanse -n '__fish_use_subcommand' -a man -d 'Print or write the manual pages'
complete -c expanse -n '__fish_use_subcommand' -a help -d 'Tell about a command'
complete -c expanse -n '__fish_seen_subcommand_from login' -l api-key -d 'Your personal key; - reads it from standard input' -x
complete -c expanse -n '__fish_seen_subcommand_from login' -l sign-in-link -d 'The one-time link that the server printed at its first start; - reads it from standard input' -x
complete -c expanse -n '__fish_seen_subcommand_from login' -l control-plane -d 'Control plane to sign in to' -x
complete -c expanse -n '__fish_seen_subcommand_from login' -l organisation-id -d 'Organisation to work in' -x
complete -c expanse -n '__fish_seen_subcommand_from status' -l json -d 'Print the API'\''s JSON'
complete -c expanse -n '__fish_seen_subcommand_from refresh' -l organisation-id -d 'Switch the session to this organisation' -x
complete -c expanse -n '__fish_seen_subcommand_from keys; and not __fish_seen_subcommand_from create list revoke' -a create -d 'Make a personal key'
complete -c expanse -n '__fish_seen_subcommand_from keys; and not __fish_seen_subcommand_from create list revoke' -a list -d 'List your personal keys'
complete -c expanse -n '__fish_seen_subcommand_from keys; and not __fish_seen_subcommand_from create list revoke' -a revoke -d 'End a personal key'
complete -c expanse -n '__fish_seen_subcommand_from keys; and __fish_seen_subcommand_from create' -l name -d 'What the key is for' -x
complete -c expanse -n '__fish_seen_subcommand_from keys; and __fish_seen_subcommand_from create' -l json -d 'Print the API'\''s JSON, secret included'
complete -c expanse -n '__fish_seen_subcommand_from keys; and __fish_seen_subcommand_from list' -l json -d 'Print the API'\''s JSON'
complete -c expanse -n '__fish_seen_subcommand_from keys; and __fish_seen_subcommand_from revoke' -l yes -d 'Do not ask'
complete -c expanse -n '__fish_seen_subcommand_from compute; and not __fish_seen_subcommand_from register install list show queue nodes revoke reissue' -a register -d 'Register a compute and get its install command'
complete -c expanse -n '__fish_seen_subcommand_from compute; and not __fish_seen_subcommand_from register install list show queue nodes revoke reissue' -a install -d 'Make this machine a compute'
complete -c expanse -n '__fish_seen_subcommand_from compute; and not __fish_seen_subcommand_from register install list show queue nodes revoke reissue' -a list -d 'List computes'
complete -c expanse -n '__fish_seen_subcommand_from compute; and not __fish_seen_subcommand_from register install list show queue nodes revoke reissue' -a show -d 'Show one compute and its health'
complete -c expanse -n '__fish_seen_subcommand_from compute; and not __fish_seen_subcommand_from register install list show queue nodes revoke reissue' -a queue -d 'Show what waits on a cluster and why'
complete -c expanse -n '__fish_seen_subcommand_from compute; and not __fish_seen_subcommand_from register install list show queue nodes revoke reissue' -a nodes -d 'Show the nodes of a cluster'
complete -c expanse -n '__fish_seen_subcommand_from compute; and not __fish_seen_subcommand_from register install list show queue nodes revoke reissue' -a revoke -d 'Lock a compute out'
complete -c expanse -n '__fish_seen_subcommand_from compute; and not __fish_seen_subcommand_from register install list show queue nodes revoke reissue' -a reissue -d 'Get a new install token for a compute'
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from register' -l type -d 'What runs the workloads; asked for on a terminal' -x -a 'slurm kubernetes nomad host'
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from register' -l name -d 'Name of the compute' -x
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from register' -l team-id -d 'Team that the compute belongs to' -x
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from register' -l json -d 'Print the API'\''s JSON'
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from install' -l control-plane -d 'Control plane, as `compute register` printed it' -x
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from install' -l data-plane -d 'Data plane, as `compute register` printed it' -x
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from install' -l type -d 'What to install for; without it only the configuration is written' -x -a 'slurm kubernetes nomad host'
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from install' -l write-config-only -d 'Only write the daemon'\''s configuration, whatever the type'
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from install' -l config -d 'Where to write the configuration' -r -F
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from install' -l reinstall -d 'Keep the identity that is there: no token is read, its credential is checked again'
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from install' -l daemon-version -d 'Daemon release to install; not used where only the configuration is written' -x
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from install' -l daemon-binary -d 'Daemon to install from a file; not used where only the configuration is written' -r -F
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from list' -l all -d 'Revoked computes too'
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from list' -l json -d 'Print the API'\''s JSON'
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from show' -l json -d 'Print the API'\''s JSON'
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from queue' -l limit -d 'At most this many pending jobs' -x
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from queue' -l user -d 'Only what this user submitted' -x
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from queue' -l partition -d 'Only this partition' -x
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from queue' -l json -d 'Print the API'\''s JSON'
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from nodes' -l partition -d 'Only this partition' -x
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from nodes' -l json -d 'Print the API'\''s JSON'
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from revoke' -l yes -d 'Do not ask'
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from revoke' -l json -d 'Print the API'\''s JSON'
complete -c expanse -n '__fish_seen_subcommand_from compute; and __fish_seen_subcommand_from reissue' -l json -d 'Print the API'\''s JSON'
complete -c expanse -n '__fish_seen_subcommand_from executions; and not __fish_seen_subcommand_from show' -a show -d 'Show one execution in full'
complete -c expanse -n '__fish_seen_subcommand_from executions; and not __fish_seen_subcommand_from show' -l limit -d 'At most this many executions' -x
complete -c expanse -n '__fish_seen_subcommand_from executions; and not __fish_seen_subcommand_from show' -l status -d 'Only this status' -x -a 'queued running succeeded failed cancelled unknown'
complete -c expanse -n '__fish_seen_subcommand_from executions; and not __fish_seen_subcommand_from show' -l outcome -d 'Only this outcome' -x -a 'success failure cancelled timeout out_of_memory unknown'
complete -c expanse -n '__fish_seen_subcommand_from executions; and not __fish_seen_subcommand_from show' -l user -d 'Only what this user submitted' -x
complete -c expanse -n '__fish_seen_subcommand_from executions; and not __fish_seen_subcommand_from show' -l mine -d 'Only what you submitted'
complete -c expanse -n '__fish_seen_subcommand_from executions; and not __fish_seen_subcommand_from show' -l compute -d 'Only this compute, by id or name' -x
complete -c expanse -n '__fish_seen_subcommand_from executions; and not __fish_seen_subcommand_from show' -l json -d 'Print the API'\''s JSON'
complete -c expanse -n '__fish_seen_subcommand_from executions; and __fish_seen_subcommand_from show' -l source-type -d 'Take the argument as a job id of this scheduler' -x -a 'slurm kubernetes nomad host'
complete -c expanse -n '__fish_seen_subcommand_from executions; and __fish_seen_subcommand_from show' -l json -d 'Print the API'\''s JSON'
complete -c expanse -n '__fish_seen_subcommand_from metrics' -l csv -d 'Long-format CSV, one row per point'
complete -c expanse -n '__fish_seen_subcommand_from metrics' -l json -d 'The API'\''s JSON, one document per metric'
complete -c expanse -n '__fish_seen_subcommand_from metrics' -l interval -d 'Width of aggregation buckets in whole seconds, such as 5s or 1m' -x
complete -c expanse -n '__fish_seen_subcommand_from metrics' -l agg -d 'What a bucket'\''s value is' -x -a 'avg min max sum p95 last'
complete -c expanse -n '__fish_seen_subcommand_from metrics' -l since -d 'Only the last 2h, 30m, …' -x
complete -c expanse -n '__fish_seen_subcommand_from metrics' -l from -d 'Start of the window (RFC 3339)' -x
complete -c expanse -n '__fish_seen_subcommand_from metrics' -l to -d 'End of the window (RFC 3339)' -x
complete -c expanse -n '__fish_seen_subcommand_from metrics' -l gpu -d 'Only this GPU' -x
complete -c expanse -n '__fish_seen_subcommand_from metrics' -l allow-fallback -d 'Take the compute'\''s own series where the execution has none; they may include other jobs'
complete -c expanse -n '__fish_seen_subcommand_from metrics' -l cupti -d 'Only CUPTI PM sampling series'
complete -c expanse -n '__fish_seen_subcommand_from metrics' -l dcgm -d 'Only DCGM series'
complete -c expanse -n '__fish_seen_subcommand_from metrics' -l all -d 'Every metric of the source; with --cupti or --dcgm'
complete -c expanse -n '__fish_seen_subcommand_from metrics' -l job -d 'The newest execution with this scheduler'\''s job id' -x
complete -c expanse -n '__fish_seen_subcommand_from metrics' -l source-type -d 'Which scheduler --job is of' -x -a 'slurm kubernetes nomad host'
complete -c expanse -n '__fish_seen_subcommand_from metrics' -l max-points -d 'At most this many points per series' -x
complete -c expanse -n '__fish_seen_subcommand_from logs' -l stream -d 'Only this stream' -x -a 'stdout stderr combined'
complete -c expanse -n '__fish_seen_subcommand_from logs' -l source-type -d 'Take the argument as a job id of this scheduler' -x -a 'slurm kubernetes nomad host'
complete -c expanse -n '__fish_seen_subcommand_from logs' -l json -d 'Print the API'\''s JSON'
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and not __fish_seen_subcommand_from diff apply list show' -a diff -d 'Print a patch'
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and not __fish_seen_subcommand_from diff apply list show' -a apply -d 'Apply a patch to the file here'
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and not __fish_seen_subcommand_from diff apply list show' -a list -d 'List earlier analyses, newest first'
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and not __fish_seen_subcommand_from diff apply list show' -a show -d 'Show an earlier analysis again'
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and not __fish_seen_subcommand_from diff apply list show' -l compute -d 'Where it will run, by id or name' -x
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and not __fish_seen_subcommand_from diff apply list show' -l cpu -d 'Requested cores, such as 16, 0.5 or 500m, instead of the file'\''s' -x
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and not __fish_seen_subcommand_from diff apply list show' -l memory -d 'Requested memory, such as 16GiB, instead of the file'\''s' -x
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and not __fish_seen_subcommand_from diff apply list show' -l gpu -d 'Requested GPUs, instead of the file'\''s' -x
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and not __fish_seen_subcommand_from diff apply list show' -l walltime -d 'Requested walltime, such as 90s, 2h or 1-02:00:00, instead of the file'\''s' -x
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and not __fish_seen_subcommand_from diff apply list show' -l workload -d 'Which workload of a file that has several' -x
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and not __fish_seen_subcommand_from diff apply list show' -l var -d 'Value of a Nomad variable' -x
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and not __fish_seen_subcommand_from diff apply list show' -l json -d 'Print the API'\''s JSON, one object a file'
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and not __fish_seen_subcommand_from diff apply list show' -l no-cache -d 'Ask anew instead of taking the answer of an earlier run'
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and not __fish_seen_subcommand_from diff apply list show' -l no-patch -d 'Numbers only: no patch is made, OPTIMISATION reads none'
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and not __fish_seen_subcommand_from diff apply list show' -l yes -d 'Apply the patch without asking; not with --json, --no-patch or --queue'
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and not __fish_seen_subcommand_from diff apply list show' -l queue -d 'Do not wait for the answer; `expanse analyse show RUN_ID` has it later'
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and not __fish_seen_subcommand_from diff apply list show' -F
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and __fish_seen_subcommand_from diff' -l artefact -d 'The patch, as OPTIMISATION names it (also --artifact)' -x
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and __fish_seen_subcommand_from diff' -l json -d 'Print the API'\''s JSON'
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and __fish_seen_subcommand_from apply' -l artefact -d 'The patch, as OPTIMISATION names it (also --artifact)' -x
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and __fish_seen_subcommand_from apply' -l file -d 'Where the file is now' -r -F
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and __fish_seen_subcommand_from list' -l limit -d 'At most this many runs' -x
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and __fish_seen_subcommand_from list' -l compute -d 'Only of this compute, by id or name' -x
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and __fish_seen_subcommand_from list' -l all-users -d 'Everybody'\''s of the organisation, if you may see them'
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and __fish_seen_subcommand_from list' -l json -d 'Print the API'\''s JSON'
complete -c expanse -n '__fish_seen_subcommand_from analyse analyze; and __fish_seen_subcommand_from show' -l json -d 'Print the API'\''s JSON'
complete -c expanse -n '__fish_seen_subcommand_from diagnose' -l source-type -d 'EXECUTION is a job id of this scheduler' -x -a 'slurm kubernetes nomad host'
complete -c expanse -n '__fish_seen_subcommand_from diagnose' -l source -d 'Source file to take as evidence besides what was captured; secrets are taken out' -r -F
complete -c expanse -n '__fish_seen_subcommand_from diagnose' -l compute -d 'Where it ran, by id or name' -x
complete -c expanse -n '__fish_seen_subcommand_from diagnose' -l prompt -d 'Print only the prompt for your coding agent'
complete -c expanse -n '__fish_seen_subcommand_from diagnose' -l json -d 'Print the API'\''s JSON'
complete -c expanse -n '__fish_seen_subcommand_from diagnose' -l no-cache -d 'Ask anew instead of taking the answer of an earlier run'
complete -c expanse -n '__fish_seen_subcommand_from runbook; and not __fish_seen_subcommand_from list show test' -a list -d 'List the classes of failure that diagnose knows'
complete -c expanse -n '__fish_seen_subcommand_from runbook; and not __fish_seen_subcommand_from list show test' -a show -d 'Print a runbook as it was written'
complete -c expanse -n '__fish_seen_subcommand_from runbook; and not __fish_seen_subcommand_from list show test' -a test -d 'Check runbooks of your own, without a server'
complete -c expanse -n '__fish_seen_subcommand_from runbook; and __fish_seen_subcommand_from list' -l local -d 'Those of this program, without asking the server'
complete -c expanse -n '__fish_seen_subcommand_from runbook; and __fish_seen_subcommand_from list' -l json -d 'Print the API'\''s JSON'
complete -c expanse -n '__fish_seen_subcommand_from runbook; and __fish_seen_subcommand_from show' -l local -d 'Those of this program, without asking the server'
complete -c expanse -n '__fish_seen_subcommand_from runbook; and __fish_seen_subcommand_from show' -l json -d 'Print the API'\''s JSON'
complete -c expanse -n '__fish_seen_subcommand_from runbook; and __fish_seen_subcommand_from test' -l case -d 'Cases to diagnose with them, JSON; each may name the class it should get' -r -F
complete -c expanse -n '__fish_seen_subcommand_from runbook; and __fish_seen_subcommand_from test' -l log -d 'Output of a failed run to diagnose with them' -r -F
complete -c expanse -n '__fish_seen_subcommand_from runbook; and __fish_seen_subcommand_from test' -F
complete -c expanse -n '__fish_seen_subcommand_from run' -l name -d 'Name of the execution' -x
complete -c expanse -n '__fish_seen_subcommand_from run' -l memory -d 'Memory limit, such as 512M or 16GiB; needs a cgroup of its own' -x
complete -c expanse -n '__fish_seen_subcommand_from run' -l walltime -d 'End the command after 90s, 2h or 1-02:00:00' -x
complete -c expanse -n '__fish_seen_subcommand_from run' -l no-capture -d 'Keep no end of the output'
complete -c expanse -n '__fish_seen_subcommand_from run' -l no-sources -d 'Keep no script and no files that it names'
complete -c expanse -n '__fish_seen_subcommand_from run' -l source -d 'Keep this file with the sources' -r -F
complete -c expanse -n '__fish_seen_subcommand_from run' -l comment -d 'Kept with the execution' -x
complete -c expanse -n '__fish_seen_subcommand_from run' -l spool-dir -d 'Where the daemon looks for records' -r -F
complete -c expanse -n '__fish_seen_subcommand_from run' -a '(__fish_complete_subcommand --fcs-skip=2)'
complete -c expanse -n '__fish_seen_subcommand_from man' -l directory -d 'Write one page per command here instead of the first page to standard output' -r -F
complete -c expanse -s h -l help -d 'Show help'
