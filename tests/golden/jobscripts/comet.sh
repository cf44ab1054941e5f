#!/bin/bash
#SBATCH --job-name="rfm_osu_pair_HASH"
#SBATCH --ntasks=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=1
#SBATCH --output=rfm_job.out
#SBATCH --error=rfm_job.err
#SBATCH --time=0:6:0
#SBATCH --exclusive
#SBATCH --no-requeue
ROOT/.venv/bin/plumb --results ROOT/results --sites SITES --stacks STACKS --tools ROOT/build/tools --build ROOT/build launch STAGE/variant.json --records STAGE/records.jsonl --work STAGE
