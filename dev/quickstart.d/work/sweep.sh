#!/bin/sh
# One task of a parameter sweep, as a job array runs it.
echo "task $SLURM_ARRAY_TASK_ID of job $SLURM_ARRAY_JOB_ID"
exec python3 train.py $((40 * SLURM_ARRAY_TASK_ID)) 6
