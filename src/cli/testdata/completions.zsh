#compdef expanse
# zsh completion for expanse; made by `expanse completions zsh`.

_expanse() {
  local state line
  local -a commands
  _arguments -C \
    '(-h --help)'{-h,--help}'[Show help]' \
    '1: :->command' '*:: :->rest'
  case $state in
    command)
      commands=(
        'login:Sign in with a personal key'
        'logout:End the session'
        'status:Show who is signed in, and where'
        'refresh:Renew the access token'
        'keys:Make, list and end personal keys'
        'compute:Register, install, list and revoke computes, see their queues and nodes'
        'executions:List what ran, newest first'
        'metrics:Export an execution'\''s metrics as a summary, CSV or JSON'
        'logs:Print the captured end of an execution'\''s output'
        'analyse:Recommend resources before a workload runs'
        'diagnose:Explain why an execution failed'
        'runbook:List, show and test what diagnose knows about failures'
        'run:Run a command here and capture it'
        'version:Print the version'
        'completions:Print a completion script for a shell'
        'man:Print or write the manual pages'
        'help:Tell about a command'
      )
      _describe command commands ;;
    rest)
      case $line[1] in
        login) _expanse_login ;;
        logout) _expanse_logout ;;
        status) _expanse_status ;;
        refresh) _expanse_refresh ;;
        keys) _expanse_keys ;;
        compute) _expanse_compute ;;
        executions) _expanse_executions ;;
        metrics) _expanse_metrics ;;
        logs) _expanse_logs ;;
        analyse | analyze) _expanse_analyse ;;
        diagnose) _expanse_diagnose ;;
        runbook) _expanse_runbook ;;
        run) _expanse_run ;;
        version) _expanse_version ;;
        completions) _expanse_completions ;;
        man) _expanse_man ;;
        help) _expanse_help ;;
      esac ;;
  esac
}

_expanse_login() {
  _arguments \
    '--api-key[Your personal key; - reads it from standard input]:KEY:' \
    '--sign-in-link[The one-time link that the server printed at its first start; - reads it from standard input]:LINK:' \
    '--control-plane[Control plane to sign in to]:URL:' \
    '--organisation-id[Organisation to work in]:ID:' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_logout() {
  _arguments \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_status() {
  _arguments \
    '--json[Print the API'\''s JSON]' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_refresh() {
  _arguments \
    '--organisation-id[Switch the session to this organisation]:ID:' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_keys() {
  local state line
  local -a commands
  _arguments -C \
    '(-h --help)'{-h,--help}'[Show help]' \
    '1: :->command' '*:: :->rest'
  case $state in
    command)
      commands=(
        'create:Make a personal key'
        'list:List your personal keys'
        'revoke:End a personal key'
      )
      _describe command commands ;;
    rest)
      case $line[1] in
        create) _expanse_keys_create ;;
        list) _expanse_keys_list ;;
        revoke) _expanse_keys_revoke ;;
      esac ;;
  esac
}

_expanse_keys_create() {
  _arguments \
    '--name[What the key is for]:NAME:' \
    '--json[Print the API'\''s JSON, secret included]' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_keys_list() {
  _arguments \
    '--json[Print the API'\''s JSON]' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_keys_revoke() {
  _arguments \
    '--yes[Do not ask]' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_compute() {
  local state line
  local -a commands
  _arguments -C \
    '(-h --help)'{-h,--help}'[Show help]' \
    '1: :->command' '*:: :->rest'
  case $state in
    command)
      commands=(
        'register:Register a compute and get its install command'
        'install:Make this machine a compute'
        'list:List computes'
        'show:Show one compute and its health'
        'queue:Show what waits on a cluster and why'
        'nodes:Show the nodes of a cluster'
        'revoke:Lock a compute out'
        'reissue:Get a new install token for a compute'
      )
      _describe command commands ;;
    rest)
      case $line[1] in
        register) _expanse_compute_register ;;
        install) _expanse_compute_install ;;
        list) _expanse_compute_list ;;
        show) _expanse_compute_show ;;
        queue) _expanse_compute_queue ;;
        nodes) _expanse_compute_nodes ;;
        revoke) _expanse_compute_revoke ;;
        reissue) _expanse_compute_reissue ;;
      esac ;;
  esac
}

_expanse_compute_register() {
  _arguments \
    '--type[What runs the workloads; asked for on a terminal]:TYPE:(slurm kubernetes nomad host)' \
    '--name[Name of the compute]:NAME:' \
    '--team-id[Team that the compute belongs to]:ID:' \
    '--json[Print the API'\''s JSON]' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_compute_install() {
  _arguments \
    '--control-plane[Control plane, as `compute register` printed it]:URL:' \
    '--data-plane[Data plane, as `compute register` printed it]:URL:' \
    '--type[What to install for; without it only the configuration is written]:TYPE:(slurm kubernetes nomad host)' \
    '--write-config-only[Only write the daemon'\''s configuration, whatever the type]' \
    '--config[Where to write the configuration]:FILE:_files' \
    '--reinstall[Keep the identity that is there\: no token is read, its credential is checked again]' \
    '--daemon-version[Daemon release to install; not used where only the configuration is written]:VERSION:' \
    '--daemon-binary[Daemon to install from a file; not used where only the configuration is written]:FILE:_files' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_compute_list() {
  _arguments \
    '--all[Revoked computes too]' \
    '--json[Print the API'\''s JSON]' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_compute_show() {
  _arguments \
    '--json[Print the API'\''s JSON]' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_compute_queue() {
  _arguments \
    '--limit[At most this many pending jobs]:N:' \
    '--user[Only what this user submitted]:USER:' \
    '--partition[Only this partition]:PARTITION:' \
    '--json[Print the API'\''s JSON]' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_compute_nodes() {
  _arguments \
    '--partition[Only this partition]:PARTITION:' \
    '--json[Print the API'\''s JSON]' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_compute_revoke() {
  _arguments \
    '--yes[Do not ask]' \
    '--json[Print the API'\''s JSON]' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_compute_reissue() {
  _arguments \
    '--json[Print the API'\''s JSON]' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_executions() {
  local state line
  local -a commands
  _arguments -C \
    '--limit[At most this many executions]:N:' \
    '--status[Only this status]:STATUS:(queued running succeeded failed cancelled unknown)' \
    '--outcome[Only this outcome]:OUTCOME:(success failure cancelled timeout out_of_memory unknown)' \
    '--user[Only what this user submitted]:USER:' \
    '--mine[Only what you submitted]' \
    '--compute[Only this compute, by id or name]:COMPUTE:' \
    '--json[Print the API'\''s JSON]' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '1: :->command' '*:: :->rest'
  case $state in
    command)
      commands=(
        'show:Show one execution in full'
      )
      _describe command commands ;;
    rest)
      case $line[1] in
        show) _expanse_executions_show ;;
      esac ;;
  esac
}

_expanse_executions_show() {
  _arguments \
    '--source-type[Take the argument as a job id of this scheduler]:TYPE:(slurm kubernetes nomad host)' \
    '--json[Print the API'\''s JSON]' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_metrics() {
  _arguments \
    '--csv[Long-format CSV, one row per point]' \
    '--json[The API'\''s JSON, one document per metric]' \
    '--interval[Width of aggregation buckets in whole seconds, such as 5s or 1m]:DURATION:' \
    '--agg[What a bucket'\''s value is]:AGG:(avg min max sum p95 last)' \
    '--since[Only the last 2h, 30m, …]:DURATION:' \
    '--from[Start of the window (RFC 3339)]:TIME:' \
    '--to[End of the window (RFC 3339)]:TIME:' \
    '--gpu[Only this GPU]:INDEX:' \
    '--allow-fallback[Take the compute'\''s own series where the execution has none; they may include other jobs]' \
    '--cupti[Only CUPTI PM sampling series]' \
    '--dcgm[Only DCGM series]' \
    '--all[Every metric of the source; with --cupti or --dcgm]' \
    '--job[The newest execution with this scheduler'\''s job id]:JOB_ID:' \
    '--source-type[Which scheduler --job is of]:TYPE:(slurm kubernetes nomad host)' \
    '--max-points[At most this many points per series]:N:' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_logs() {
  _arguments \
    '--stream[Only this stream]:STREAM:(stdout stderr combined)' \
    '--source-type[Take the argument as a job id of this scheduler]:TYPE:(slurm kubernetes nomad host)' \
    '--json[Print the API'\''s JSON]' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_analyse() {
  local state line
  local -a commands
  _arguments -C \
    '--compute[Where it will run, by id or name]:COMPUTE:' \
    '--cpu[Requested cores, such as 16, 0.5 or 500m, instead of the file'\''s]:CORES:' \
    '--memory[Requested memory, such as 16GiB, instead of the file'\''s]:SIZE:' \
    '--gpu[Requested GPUs, instead of the file'\''s]:N:' \
    '--walltime[Requested walltime, such as 90s, 2h or 1-02\:00\:00, instead of the file'\''s]:DURATION:' \
    '--workload[Which workload of a file that has several]:NAME:' \
    '*''--var[Value of a Nomad variable]:NAME=VALUE:' \
    '--json[Print the API'\''s JSON, one object a file]' \
    '--no-cache[Ask anew instead of taking the answer of an earlier run]' \
    '--no-patch[Numbers only\: no patch is made, OPTIMISATION reads none]' \
    '--yes[Apply the patch without asking; not with --json, --no-patch or --queue]' \
    '--queue[Do not wait for the answer; `expanse analyse show RUN_ID` has it later]' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '1: :->command' '*:: :->rest'
  case $state in
    command)
      commands=(
        'diff:Print a patch'
        'apply:Apply a patch to the file here'
        'list:List earlier analyses, newest first'
        'show:Show an earlier analysis again'
      )
      _describe command commands
      _files ;;
    rest)
      case $line[1] in
        diff) _expanse_analyse_diff ;;
        apply) _expanse_analyse_apply ;;
        list) _expanse_analyse_list ;;
        show) _expanse_analyse_show ;;
        *) _files ;;
      esac ;;
  esac
}

_expanse_analyse_diff() {
  _arguments \
    '--artefact[The patch, as OPTIMISATION names it (also --artifact)]:ID:' \
    '--json[Print the API'\''s JSON]' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_analyse_apply() {
  _arguments \
    '--artefact[The patch, as OPTIMISATION names it (also --artifact)]:ID:' \
    '--file[Where the file is now]:PATH:_files' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_analyse_list() {
  _arguments \
    '--limit[At most this many runs]:N:' \
    '--compute[Only of this compute, by id or name]:COMPUTE:' \
    '--all-users[Everybody'\''s of the organisation, if you may see them]' \
    '--json[Print the API'\''s JSON]' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_analyse_show() {
  _arguments \
    '--json[Print the API'\''s JSON]' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_diagnose() {
  _arguments \
    '--source-type[EXECUTION is a job id of this scheduler]:TYPE:(slurm kubernetes nomad host)' \
    '*''--source[Source file to take as evidence besides what was captured; secrets are taken out]:FILE:_files' \
    '--compute[Where it ran, by id or name]:COMPUTE:' \
    '--prompt[Print only the prompt for your coding agent]' \
    '--json[Print the API'\''s JSON]' \
    '--no-cache[Ask anew instead of taking the answer of an earlier run]' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_runbook() {
  local state line
  local -a commands
  _arguments -C \
    '(-h --help)'{-h,--help}'[Show help]' \
    '1: :->command' '*:: :->rest'
  case $state in
    command)
      commands=(
        'list:List the classes of failure that diagnose knows'
        'show:Print a runbook as it was written'
        'test:Check runbooks of your own, without a server'
      )
      _describe command commands ;;
    rest)
      case $line[1] in
        list) _expanse_runbook_list ;;
        show) _expanse_runbook_show ;;
        test) _expanse_runbook_test ;;
      esac ;;
  esac
}

_expanse_runbook_list() {
  _arguments \
    '--local[Those of this program, without asking the server]' \
    '--json[Print the API'\''s JSON]' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_runbook_show() {
  _arguments \
    '--local[Those of this program, without asking the server]' \
    '--json[Print the API'\''s JSON]' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_runbook_test() {
  _arguments \
    '*''--case[Cases to diagnose with them, JSON; each may name the class it should get]:FILE:_files' \
    '*''--log[Output of a failed run to diagnose with them]:FILE:_files' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_run() {
  _arguments \
    '--name[Name of the execution]:NAME:' \
    '--memory[Memory limit, such as 512M or 16GiB; needs a cgroup of its own]:SIZE:' \
    '--walltime[End the command after 90s, 2h or 1-02\:00\:00]:DURATION:' \
    '--no-capture[Keep no end of the output]' \
    '--no-sources[Keep no script and no files that it names]' \
    '*''--source[Keep this file with the sources]:FILE:_files' \
    '--comment[Kept with the execution]:TEXT:' \
    '--spool-dir[Where the daemon looks for records]:DIR:_files' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*::command:_normal'
}

_expanse_version() {
  _arguments \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_completions() {
  _arguments \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_man() {
  _arguments \
    '--directory[Write one page per command here instead of the first page to standard output]:DIR:_files' \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

_expanse_help() {
  _arguments \
    '(-h --help)'{-h,--help}'[Show help]' \
    '*:argument:_files'
}

if [ "$funcstack[1]" = _expanse ]; then _expanse "$@"; else compdef _expanse expanse; fi
