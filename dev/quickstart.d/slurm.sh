# The Slurm part of ./quickstart: a cluster, its controller daemon with our hooks, history, real jobs.
# shellcheck shell=bash

# Of this checkout, so that two do not meet. Job users must reach it, and the checkout may be in /root; only
# root may make it, since root's hooks are in it.
slurm_base=/var/lib/expanse-quickstart-$(printf %s "$root" | cksum | cut -d' ' -f1)
slurm_run=/run/expanse-quickstart
slurm_home=$HOME/expanse-quickstart  # on a cluster that is there, whose nodes share the homes
slurm_conf=${SLURM_CONF:-/etc/slurm/slurm.conf}

# Whether this machine has a Slurm already.
slurm_own() { [ -f "$slurm_conf" ] && command -v squeue >/dev/null && timeout 10 scontrol ping >/dev/null 2>&1; }
slurm_hook() { "$bin/expanse-daemon" hooks "$1" --prefix "$slurm_base/prefix" --run-dir "$slurm_run" --sampler-bootstrap off; }

# What jobs are submitted as, and where they run.
slurm_submit() {
  if [ "$slurm_kind" = own ]; then
    (cd "$slurm_home" && sbatch --parsable "$@" | cut -d';' -f1 | tee -a "$state/jobs")
    return
  fi
  as_root runuser -u slurmlab -- env --chdir="$slurm_base/work" SLURM_CONF="$SLURM_CONF" sbatch --parsable "$@"
}
# Whether none of these jobs waits or runs any more; no when squeue does not answer.
slurm_over() {
  local active id
  active=$(squeue --noheader --states=PD,CF,R,S,CG --format=%F) || return 1
  for id in "$@"; do grep -qx "$id" <<<"$active" && return 1; done
  return 0
}

slurm_lab_up() {
  say "Starting a Slurm cluster of two nodes on this machine (dev/slurm-lab; about 20 s)"
  local kind
  for kind in prolog epilog task-prolog; do
    slurm_hook "$kind" | as_root tee "$slurm_base/prefix/hooks/$kind" >/dev/null
    as_root chmod 0755 "$slurm_base/prefix/hooks/$kind"
  done
  # Daemons and jobs of the cluster inherit the umask.
  (umask 022 && as_root dev/slurm-lab --state "$slurm_base/slurm" up --cluster quickstart --gpus 0 \
    --prolog "$slurm_base/prefix/hooks/prolog" --epilog "$slurm_base/prefix/hooks/epilog" \
    --task-prolog "$slurm_base/prefix/hooks/task-prolog")
}

# slurm_kind: "lab" or "own"; sets SLURM_CONF for the lab.
slurm_up() {
  as_root mkdir -p "$slurm_base/prefix/hooks" "$slurm_base/prefix/spool" "$slurm_base/work"
  as_root chmod 0755 "$slurm_base" "$slurm_base/prefix" "$slurm_base/prefix/hooks"
  if [ "$slurm_kind" = own ]; then
    say "Using the Slurm that this machine has ($slurm_conf); its configuration is left alone"
    mkdir -p "$slurm_home"
    cp dev/quickstart.d/work/* "$slurm_home/"
    return
  fi
  as_root cp dev/quickstart.d/work/* "$slurm_base/work/"
  as_root chmod -R a+rX "$slurm_base/work"
  as_root chmod 1777 "$slurm_base/work"
  slurm_lab_up
  export SLURM_CONF=$slurm_base/slurm/etc/slurm.conf
}

slurm_compute() {
  local config=$slurm_base/daemon.json
  if ! as_root test -f "$config"; then
    say "Registering the cluster as compute \`slurm\`"
    register slurm slurm "$config" as_root
  fi
}
slurm_daemon() {
  alive slurm-daemon && return
  say "Starting the cluster's daemon"
  launch_as_root slurm-daemon "$bin/expanse-daemon" --config "$slurm_base/daemon.json" \
    --state-dir "$slurm_base/state" --spool-dir "$slurm_base/host-spool" --prefix "$slurm_base/prefix" \
    --run-dir "$slurm_run" --slurm-queue-interval 5s --slurm-accounting-interval 10s --slurm-nodes-interval 10s \
    --heartbeat-interval 5s
  wait_for 30 "the daemon's first heartbeat" as_root "$bin/expanse-daemon" healthcheck \
    --state-dir "$slurm_base/state" --max-age 60s
}

slurm_history() {
  [ ! -e "$state/history" ] || return 0
  say "History: three runs of one script that end before the daemon is there"
  local job
  for _ in 1 2 3; do job=$(slurm_submit --dependency=singleton train.sh 4); done
  wait_for 120 "the end of job $job" slurm_over "$job"
  sleep 2  # slurmdbd writes in batches
  say "\$ expanse-daemon backfill --since 1d"
  touch "$state/history"
  if ! as_root "$bin/expanse-daemon" backfill --config "$slurm_base/daemon.json" --state-dir "$slurm_base/state" --since 1d; then
    echo "(so there is no history to show; what runs from now on is captured)"
    return 0
  fi
  wait_for 30 "the history" pick slurm ended train=3
  show executions --compute slurm
}

# Two that wait for something else than resources; they are cancelled in the end.
slurm_later_jobs() {
  slurm_submit --job-name=tomorrow --begin=tomorrow --time=5 --wrap true
  slurm_submit --job-name=on-hold --hold --time=5 --wrap true
}
slurm_queue_told() { [[ $(expanse compute queue slurm --user "$(slurm_user)" --json) == *'"name": "on-hold"'* ]]; }
slurm_user() { if [ "$slurm_kind" = own ]; then id -un; else echo slurmlab; fi; }

slurm_jobs() {
  say "Submitting jobs: two good runs, an array, one without enough memory, one over its time, one that fails"
  local later jobs=() expected=(over-time=1 train=2 sweep=4 out-of-memory=1 no-data=1)
  jobs+=("$(slurm_submit --job-name=over-time --time=1 --mem=64M --wrap 'echo waiting for data; sleep 600')")
  jobs+=("$(slurm_submit train.sh 20)" "$(slurm_submit train.sh 24)")
  jobs+=("$(slurm_submit --job-name=sweep --array=1-4%2 --mem=256M --time=5 sweep.sh)")
  jobs+=("$(slurm_submit --job-name=out-of-memory --mem=100M --time=5 --wrap 'exec python3 grow.py 400 20')")
  jobs+=("$(slurm_submit --job-name=no-data --mem=64M --time=5 fail.sh)")
  # Waits until the others are done; other people's jobs should not wait for it.
  if [ "$slurm_kind" != own ]; then
    jobs+=("$(slurm_submit --job-name=whole-cluster --nodes=2 --exclusive --time=5 --wrap 'srun hostname')")
    expected+=(whole-cluster=1)
  fi
  later=$(slurm_later_jobs)
  wait_for 60 "the queue's state" slurm_queue_told
  show compute queue slurm --user "$(slurm_user)"
  show compute nodes slurm
  echo
  echo "waiting for the jobs; the one over its time limit needs a good minute …"
  wait_for 300 "the end of the jobs" slurm_over "${jobs[@]}"
  # shellcheck disable=SC2086 # several ids
  as_root scancel $later
  wait_for 90 "the last records" pick slurm ended "${expected[@]}"
}

slurm_show() {
  show executions --compute slurm
  local failed trained
  failed=$(pick slurm newest no-data)
  trained=$(pick slurm newest train)
  show executions show "$failed"
  show logs "$failed"
  show metrics "$trained" cpu memory
}

# What the good runs of a script say about its next one: it asked for far too much memory. A copy asks for what it
# needs, and runs with that.
slurm_analyse() {
  local work=$slurm_base/work copy=$state/train-right-sized.sh job
  [ "$slurm_kind" != own ] || work=$slurm_home
  analyse_in "$work" train.sh
  [ -n "$artefact" ] || return 0
  cp "$work/train.sh" "$copy"
  show analyse diff --artefact "$artefact"
  show analyse apply --artefact "$artefact" --file "$copy"
  say "\$ sbatch $(basename "$copy")"
  if [ "$slurm_kind" = own ]; then cp "$copy" "$work/"; else as_root install -m 0755 "$copy" "$work/"; fi
  job=$(slurm_submit "$(basename "$copy")" 8)
  wait_for 120 "the end of job $job" slurm_over "$job"
  wait_for 60 "its record" slurm_told "$job"
  show executions show "$job" --source-type slurm
}
slurm_told() { expanse executions show "$1" --source-type slurm --json | grep -q '"ended_at"'; }

slurm_diagnose() { diagnose_failed slurm out-of-memory over-time no-data; }

slurm_hooks_hint() {
  [ "$slurm_kind" = own ] || return 0
  cat <<P

Your Slurm was only asked, not changed. Starts and ends are seen within seconds, and other nodes are sampled,
once its nodes run our hooks. On each node, or in a directory that all share:
  $bin/expanse-daemon hooks prolog      --prefix DIR > /etc/slurm/expanse-prolog
  $bin/expanse-daemon hooks epilog      --prefix DIR > /etc/slurm/expanse-epilog
and in slurm.conf: Prolog=/etc/slurm/expanse-prolog, Epilog=/etc/slurm/expanse-epilog (mode 0755), then
\`scontrol reconfigure\`. docs/daemon.md says more.
P
}

slurm_down() {
  stop slurm-daemon
  # Of a cluster that was there before; jobs that are over are no longer its business.
  [ ! -s "$state/jobs" ] || xargs scancel <"$state/jobs" 2>/dev/null || true
  [ -e "$slurm_base" ] || return 0
  [ ! -e "$slurm_base/slurm" ] || as_root dev/slurm-lab --state "$slurm_base/slurm" down
  as_root rm -rf "$slurm_base" "$slurm_run"
  rm -rf "$slurm_home"
}
