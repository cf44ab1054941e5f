#!/bin/bash
ROOT/.venv/bin/plumb --results ROOT/results --sites SITES --stacks STACKS --tools ROOT/build/tools --build ROOT/build launch STAGE/variant.json --records STAGE/records.jsonl --work STAGE
