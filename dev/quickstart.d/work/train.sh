#!/bin/sh
#SBATCH --job-name=train --ntasks=1 --cpus-per-task=1 --mem=1500M --time=5
exec srun python3 train.py 120 "${1:-10}"
