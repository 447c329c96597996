# bash completion for expanse; made by `expanse completions bash`.
_expanse() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
  local path='expanse' words='' passes='' word i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="${COMP_WORDS[i]}"
    case "$path" in
      'expanse run') passes=1 ;;
    esac
    if [ -n "$passes" ] && [ "$word" = -- ]; then
      COMPREPLY=($(compgen -c -f -- "$current")); return
    fi
    case "$path $word" in
      'expanse login') path='expanse login' ;;
      'expanse logout') path='expanse logout' ;;
      'expanse status') path='expanse status' ;;
      'expanse refresh') path='expanse refresh' ;;
      'expanse keys') path='expanse keys' ;;
      'expanse compute') path='expanse compute' ;;
      'expanse executions') path='expanse executions' ;;
      'expanse metrics') path='expanse metrics' ;;
      'expanse logs') path='expanse logs' ;;
      'expanse analyse' | 'expanse analyze') path='expanse analyse' ;;
      'expanse diagnose') path='expanse diagnose' ;;
      'expanse runbook') path='expanse runbook' ;;
      'expanse run') path='expanse run' ;;
      'expanse version') path='expanse version' ;;
      'expanse completions') path='expanse completions' ;;
      'expanse man') path='expanse man' ;;
      'expanse help') path='expanse help' ;;
      'expanse keys create') path='expanse keys create' ;;
      'expanse keys list') path='expanse keys list' ;;
      'expanse keys revoke') path='expanse keys revoke' ;;
      'expanse compute register') path='expanse compute register' ;;
      'expanse compute install') path='expanse compute install' ;;
      'expanse compute list') path='expanse compute list' ;;
      'expanse compute show') path='expanse compute show' ;;
      'expanse compute queue') path='expanse compute queue' ;;
      'expanse compute nodes') path='expanse compute nodes' ;;
      'expanse compute revoke') path='expanse compute revoke' ;;
      'expanse compute reissue') path='expanse compute reissue' ;;
      'expanse executions show') path='expanse executions show' ;;
      'expanse analyse diff') path='expanse analyse diff' ;;
      'expanse analyse apply') path='expanse analyse apply' ;;
      'expanse analyse list') path='expanse analyse list' ;;
      'expanse analyse show') path='expanse analyse show' ;;
      'expanse runbook list') path='expanse runbook list' ;;
      'expanse runbook show') path='expanse runbook show' ;;
      'expanse runbook test') path='expanse runbook test' ;;
    esac
  done
  case "$path $previous" in
    'expanse login --api-key') return ;;
    'expanse login --sign-in-link') return ;;
    'expanse login --control-plane') return ;;
    'expanse login --organisation-id') return ;;
    'expanse refresh --organisation-id') return ;;
    'expanse keys create --name') return ;;
    'expanse compute register --type') COMPREPLY=($(compgen -W 'slurm kubernetes nomad host' -- "$current")); return ;;
    'expanse compute register --name') return ;;
    'expanse compute register --team-id') return ;;
    'expanse compute install --control-plane') return ;;
    'expanse compute install --data-plane') return ;;
    'expanse compute install --type') COMPREPLY=($(compgen -W 'slurm kubernetes nomad host' -- "$current")); return ;;
    'expanse compute install --config') COMPREPLY=($(compgen -f -- "$current")); return ;;
    'expanse compute install --daemon-version') return ;;
    'expanse compute install --daemon-binary') COMPREPLY=($(compgen -f -- "$current")); return ;;
    'expanse compute queue --limit') return ;;
    'expanse compute queue --user') return ;;
    'expanse compute queue --partition') return ;;
    'expanse compute nodes --partition') return ;;
    'expanse executions --limit') return ;;
    'expanse executions --status') COMPREPLY=($(compgen -W 'queued running succeeded failed cancelled unknown' -- "$current")); return ;;
    'expanse executions --outcome') COMPREPLY=($(compgen -W 'success failure cancelled timeout out_of_memory unknown' -- "$current")); return ;;
    'expanse executions --user') return ;;
    'expanse executions --compute') return ;;
    'expanse executions show --source-type') COMPREPLY=($(compgen -W 'slurm kubernetes nomad host' -- "$current")); return ;;
    'expanse metrics --interval') return ;;
    'expanse metrics --agg') COMPREPLY=($(compgen -W 'avg min max sum p95 last' -- "$current")); return ;;
    'expanse metrics --since') return ;;
    'expanse metrics --from') return ;;
    'expanse metrics --to') return ;;
    'expanse metrics --gpu') return ;;
    'expanse metrics --job') return ;;
    'expanse metrics --source-type') COMPREPLY=($(compgen -W 'slurm kubernetes nomad host' -- "$current")); return ;;
    'expanse metrics --max-points') return ;;
    'expanse logs --stream') COMPREPLY=($(compgen -W 'stdout stderr combined' -- "$current")); return ;;
    'expanse logs --source-type') COMPREPLY=($(compgen -W 'slurm kubernetes nomad host' -- "$current")); return ;;
    'expanse analyse --compute') return ;;
    'expanse analyse --cpu') return ;;
    'expanse analyse --memory') return ;;
    'expanse analyse --gpu') return ;;
    'expanse analyse --walltime') return ;;
    'expanse analyse --workload') return ;;
    'expanse analyse --var') return ;;
    'expanse analyse diff --artefact') return ;;
    'expanse analyse apply --artefact') return ;;
    'expanse analyse apply --file') COMPREPLY=($(compgen -f -- "$current")); return ;;
    'expanse analyse list --limit') return ;;
    'expanse analyse list --compute') return ;;
    'expanse diagnose --source-type') COMPREPLY=($(compgen -W 'slurm kubernetes nomad host' -- "$current")); return ;;
    'expanse diagnose --source') COMPREPLY=($(compgen -f -- "$current")); return ;;
    'expanse diagnose --compute') return ;;
    'expanse runbook test --case') COMPREPLY=($(compgen -f -- "$current")); return ;;
    'expanse runbook test --log') COMPREPLY=($(compgen -f -- "$current")); return ;;
    'expanse run --name') return ;;
    'expanse run --memory') return ;;
    'expanse run --walltime') return ;;
    'expanse run --source') COMPREPLY=($(compgen -f -- "$current")); return ;;
    'expanse run --comment') return ;;
    'expanse run --spool-dir') COMPREPLY=($(compgen -f -- "$current")); return ;;
    'expanse man --directory') COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  case "$path" in
    'expanse') words='login logout status refresh keys compute executions metrics logs analyse diagnose runbook run version completions man help --help --version' ;;
    'expanse login') words='--api-key --sign-in-link --control-plane --organisation-id --help' ;;
    'expanse logout') words='--help' ;;
    'expanse status') words='--json --help' ;;
    'expanse refresh') words='--organisation-id --help' ;;
    'expanse keys') words='create list revoke --help' ;;
    'expanse keys create') words='--name --json --help' ;;
    'expanse keys list') words='--json --help' ;;
    'expanse keys revoke') words='--yes --help' ;;
    'expanse compute') words='register install list show queue nodes revoke reissue --help' ;;
    'expanse compute register') words='--type --name --team-id --json --help' ;;
    'expanse compute install') words='--control-plane --data-plane --type --write-config-only --config --reinstall --daemon-version --daemon-binary --help' ;;
    'expanse compute list') words='--all --json --help' ;;
    'expanse compute show') words='--json --help' ;;
    'expanse compute queue') words='--limit --user --partition --json --help' ;;
    'expanse compute nodes') words='--partition --json --help' ;;
    'expanse compute revoke') words='--yes --json --help' ;;
    'expanse compute reissue') words='--json --help' ;;
    'expanse executions') words='show --limit --status --outcome --user --mine --compute --json --help' ;;
    'expanse executions show') words='--source-type --json --help' ;;
    'expanse metrics') words='--csv --json --interval --agg --since --from --to --gpu --allow-fallback --cupti --dcgm --all --job --source-type --max-points --help' ;;
    'expanse logs') words='--stream --source-type --json --help' ;;
    'expanse analyse') words='diff apply list show --compute --cpu --memory --gpu --walltime --workload --var --json --no-cache --no-patch --yes --queue --help' ;;
    'expanse analyse diff') words='--artefact --json --help' ;;
    'expanse analyse apply') words='--artefact --file --help' ;;
    'expanse analyse list') words='--limit --compute --all-users --json --help' ;;
    'expanse analyse show') words='--json --help' ;;
    'expanse diagnose') words='--source-type --source --compute --prompt --json --no-cache --help' ;;
    'expanse runbook') words='list show test --help' ;;
    'expanse runbook list') words='--local --json --help' ;;
    'expanse runbook show') words='--local --json --help' ;;
    'expanse runbook test') words='--case --log --help' ;;
    'expanse run') words='--name --memory --walltime --no-capture --no-sources --source --comment --spool-dir --help' ;;
    'expanse version') words='--help' ;;
    'expanse completions') words='--help' ;;
    'expanse man') words='--directory --help' ;;
    'expanse help') words='--help' ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _expanse expanse
