#!/bin/bash
#$ -N "rfm_osu_pair_HASH"
#$ -o rfm_job.out
#$ -e rfm_job.err
#$ -wd STAGE
#$ -l h_rt=0:4:0
#$ -r n
#$ -q development
#$ -pe 1way 32
#$ -A TACCacct
export PLUMB_ROOT=ROOT
ROOT/.venv/bin/plumb launch variant.json --records records.jsonl
