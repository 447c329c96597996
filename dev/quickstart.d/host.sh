# The second part of ./quickstart: this machine itself as a compute, workloads by `expanse run`.
# shellcheck shell=bash

host_compute() {
  if ! [ -f "$state/daemon.json" ]; then
    say "Registering this machine as a compute without a scheduler"
    register host "$(hostname)" "$state/daemon.json"
  fi
  if ! alive daemon; then
    launch daemon "$bin/expanse-daemon" --config "$state/daemon.json" --state-dir "$state/daemon-state" \
      --spool-dir "$state/spool"
  fi
  wait_for 30 "the daemon's first heartbeat" "$bin/expanse-daemon" healthcheck --state-dir "$state/daemon-state" --max-age 60s
}

host_workloads() {
  say "Running workloads with \`expanse run\` (about 10 s)"
  local work=$state/work expected=(train=3 no-data=1)
  mkdir -p "$work"
  cp dev/quickstart.d/work/* "$work/"
  local train=()
  for _ in 1 2 3; do
    (cd "$work" && expanse run --name train -- python3 train.py 100 8) &
    train+=($!)
  done
  (cd "$work" && expanse run --name no-data -- ./fail.sh) || true
  if [ "$(id -u)" = 0 ]; then
    (cd "$work" && expanse run --name out-of-memory --memory 200MiB -- python3 grow.py 400 5) || true
    expected+=(out-of-memory=1)
  else
    echo "(not root: the run with a memory limit is left out, since it needs a cgroup of its own)"
  fi
  wait "${train[@]}"
  wait_for 30 "the last records" pick "$(hostname)" ended "${expected[@]}"
  show executions --compute "$(hostname)"
}

# What the runs of a source file say about its next one; there is nothing to patch in it.
host_analyse() {
  analyse_in "$state/work" train.py
}

host_diagnose() {
  local failed=(no-data)
  [ "$(id -u)" != 0 ] || failed+=(out-of-memory)
  diagnose_failed "$(hostname)" "${failed[@]}"
}

host_down() { stop daemon; }
