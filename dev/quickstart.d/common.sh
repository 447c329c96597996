# What the parts of ./quickstart share; it sets root, state and bin before it sources this.
# shellcheck shell=bash

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }
die() { echo "quickstart: $*" >&2; exit 1; }
# Runs a command and shows it first, as somebody would type it.
show() {
  say "\$ expanse $*"
  expanse "$@"
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo --preserve-env=EXPANSE_INSTALL_TOKEN,EXPANSE_HOME,SLURM_CONF "$@"; fi
}
can_be_root() { [ "$(id -u)" = 0 ] || command -v sudo >/dev/null; }

# --- processes: a pid file each, stopped with SIGTERM, then SIGKILL after ten seconds
alive() { [ -s "$state/$1.pid" ] && [ -d "/proc/$(cat "$state/$1.pid")" ]; }
launch() {  # launch NAME COMMAND...
  local name=$1
  shift
  setsid "$@" >>"$state/$name.log" 2>&1 </dev/null &
  echo $! >"$state/$name.pid"
}
launch_as_root() {  # the pid is that of the program, not of sudo
  local name=$1
  shift
  : >"$state/$name.pid"
  as_root setsid --fork sh -c 'echo $$ >"$1"; log=$2; shift 2; exec "$@" >>"$log" 2>&1 </dev/null' \
    sh "$state/$name.pid" "$state/$name.log" "$@"
}
stop() {
  alive "$1" || { rm -f "$state/$1.pid"; return 0; }
  local pid kill=kill
  pid=$(cat "$state/$1.pid")
  kill -0 "$pid" 2>/dev/null || kill="as_root kill"
  $kill "$pid" 2>/dev/null || true
  for _ in $(seq 100); do [ -d "/proc/$pid" ] || break; sleep 0.1; done
  [ ! -d "/proc/$pid" ] || $kill -9 "$pid" 2>/dev/null || true
  rm -f "$state/$1.pid"
}
wait_for() {  # wait_for SECONDS WHAT COMMAND...
  local seconds=$1 what=$2
  shift 2
  local until=$((SECONDS + seconds))
  while [ $SECONDS -lt $until ]; do "$@" >/dev/null 2>&1 && return 0; sleep 0.3; done
  tail -5 "$state"/*.log >&2 || true
  die "$what did not come within ${seconds}s; logs are in $state"
}
free_port() {  # free_port FIRST: the first port from there on that nobody listens on
  local port=$1
  while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
  echo "$port"
}
http_ok() { curl -fsS --max-time 2 --noproxy '*' "$1"; }

# --- the platform's answers
expanse() { "$state/expanse" "$@"; }
# pick COMPUTE WHAT...: from its executions, see pick.py
pick() {
  local compute=$1
  shift
  expanse executions --json --limit 1000 --compute "$compute" | python3 "$root/dev/quickstart.d/pick.py" "$@"
}
# analyse_in DIRECTORY FILE: what earlier runs say about it, once they are indexed; sets artefact.
analyse_in() {
  wait_for 60 "an analysis of $2" analyse_cites "$1" "$2" 3
  (cd "$1" && show analyse "$2") </dev/null
  artefact=$(cd "$1" && expanse analyse "$2" --json | python3 "$root/dev/quickstart.d/pick.py" artefact)
}
analyse_cites() { (cd "$1" && expanse analyse "$2" --json --no-cache) | python3 "$root/dev/quickstart.d/pick.py" cites "$3"; }
# diagnose_failed COMPUTE NAME...: why the newest run of each name failed, and the list that knows it from then on.
diagnose_failed() {
  local compute=$1 name
  shift
  for name in "$@"; do
    say "Why did \`$name\` fail?"
    show diagnose "$(pick "$compute" newest "$name")" </dev/null
  done
  show executions --compute "$compute" --status failed
}
register() {  # register TYPE NAME FILE [RUNNER]: a compute and its identity file
  local token
  token=$(expanse compute register --type "$1" --name "$2" --json | python3 "$root/dev/quickstart.d/pick.py" token)
  EXPANSE_INSTALL_TOKEN=$token ${4:-} "$state/expanse" compute install --type "$1" --write-config-only \
    --control-plane "$control_url" --data-plane "$data_url" --config "$3"
}
