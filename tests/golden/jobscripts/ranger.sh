#!/bin/bash
#$ -N "rfm_osu_pair_HASH"
#$ -o rfm_job.out
#$ -e rfm_job.err
#$ -wd STAGE
#$ -l h_rt=0:6:0
#$ -w e -notify -r n -q development -pe 1way 32 -A TACCacct
trap : USR2
ROOT/.venv/bin/plumb --results ROOT/results --sites SITES --stacks STACKS --tools ROOT/build/tools --build ROOT/build launch STAGE/variant.json --records STAGE/records.jsonl --work STAGE
