#!/bin/bash
export PLUMB_ROOT=ROOT
ROOT/.venv/bin/plumb launch variant.json --records records.jsonl
