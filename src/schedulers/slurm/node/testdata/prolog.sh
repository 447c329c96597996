#!/bin/sh
# Tells Expanse that a job begins on this node. Made by `expanse-daemon hooks prolog`, version 1.2.3.
# It must neither delay nor fail a job: it always succeeds, waits for nothing and touches nothing but
# this node's own memory. What is wrong with it is seen in the health of the compute, not here.
trap 'exit 0' EXIT
trap '' PIPE XFSZ
kind=prolog slots=8192 version='1.2.3' owner='slurm'
run='/run/expanse' prefix='/srv/expanse'
exec </dev/null >/dev/null 2>&1
export PATH=/usr/bin:/bin:/usr/sbin:/sbin
umask 022
set -C
hooks=$run/hooks

case $SLURM_JOB_ID in '' | 0* | *[!0-9]*) exit ;; esac
make() {
  mkdir -m "$1" "$2" && [ -n "$owner" ] && chown -h "$owner" "$2"
}
[ -d "$hooks" ] || {
  mkdir -p -m 755 "$run"
  make 700 "$hooks"
}

node=$SLURMD_NODENAME
case $node in *[!A-Za-z0-9._-]*) node=other ;; esac
nodes=${SLURM_JOB_NODELIST:-$SLURM_NODELIST}
[ ${#nodes} -le 16384 ] || nodes=
printf '%s\0' 'expanse-hook 1' "$kind" \
  "SLURM_JOB_ID=$SLURM_JOB_ID" "SLURM_JOB_SLUID=$SLURM_JOB_SLUID" \
  "SLURM_JOB_UID=$SLURM_JOB_UID" "SLURM_JOB_USER=$SLURM_JOB_USER" \
  "SLURM_CLUSTER_NAME=$SLURM_CLUSTER_NAME" "SLURMD_NODENAME=$SLURMD_NODENAME" \
  "SLURM_JOB_PARTITION=$SLURM_JOB_PARTITION" "SLURM_JOB_NODELIST=$nodes" \
  "SLURM_ARRAY_JOB_ID=$SLURM_ARRAY_JOB_ID" "SLURM_ARRAY_TASK_ID=$SLURM_ARRAY_TASK_ID" \
  "SLURM_HET_JOB_ID=$SLURM_HET_JOB_ID" "SLURM_HET_JOB_OFFSET=$SLURM_HET_JOB_OFFSET" \
  "SLURM_JOB_RESTART_COUNT=${SLURM_JOB_RESTART_COUNT:-$SLURM_RESTART_COUNT}" \
  "SLURM_JOB_EXIT_CODE2=$SLURM_JOB_EXIT_CODE2" "SLURM_JOB_EXIT_CODE=$SLURM_JOB_EXIT_CODE" \
  "SLURM_JOB_START_TIME=$SLURM_JOB_START_TIME" "SLURM_JOB_GPUS=$SLURM_JOB_GPUS" \
  "CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES" end \
  >"$hooks/$kind.$((SLURM_JOB_ID % slots)).$node"
[ -d "$run/agent" ] || make 755 "$run/agent"

sampler_is_alive() {
  [ -f "$hooks/sampler" ] || return
  read -r pid running role <"$hooks/sampler"
  [ "$running" = "$version" ] || [ "$role" = controller ] || return
  case $pid in '' | *[!0-9]*) return 1 ;; esac
  read -r name <"/proc/$pid/comm" && [ "$name" = expanse-daemon ]
}
sampler_is_starting() {
  [ -f "$run/starting" ] || return
  read -r pid began starting <"$run/starting"
  [ "$starting" = "$version" ] || return
  case $pid in '' | *[!0-9]*) return 1 ;; esac
  read -r stat <"/proc/$pid/stat" || return
  set -- ${stat##*) }
  [ $# -ge 20 ] && shift 19 && [ "$1" = "$began" ]
}
sampler_is_alive || sampler_is_starting ||
  setsid sh -c 'cd / || exit
    version=$1 && shift
    env -i PATH="$PATH" "$@" &
    pid=$! && read -r stat <"/proc/$pid/stat" && set -- ${stat##*) } && shift 19 &&
      echo "$pid $1 $version" >"$0"' "$run/starting" "$version" "$prefix/bin/expanse-daemon" \
    sampler --prefix "$prefix" --run-dir "$run" ${owner:+--user "$owner"}
