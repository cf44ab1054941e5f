#!/bin/bash
# What takes longer than a change can wait for, part by part: the tests marked long in each folder, then the error rates
# in full and a million records. A part that passed on the same commit, without changes, is not run again, so that an
# interrupted night is resumed by the same command. `tests/nightly.sh PART …` runs some parts. The status is 1 if one
# failed.
set -uo pipefail
CDPATH='' cd -- "$(dirname -- "$0")/.." || exit 1
python=.venv/bin/python
stamps=build/nightly
parts=(unit kernels e2e vm playbooks bed attacks rates mutants scale)
[ $# -eq 0 ] || parts=("$@")
commit=$(git rev-parse HEAD)
[ -z "$(git status --porcelain)" ] || commit=
mkdir -p "$stamps"

# All parts but four are tests, by the name of their folder.
run() {
    case $1 in
        rates | scale) make "$1" ;;
        mutants) "$python" tests/mutants.py ;;
        attacks) make attacks INPUTS=1000 ;;
        *)
            "$python" -m pytest -n "$(nproc)" -m long "tests/$1"
            local status=$?
            # 5: no test in this folder is marked
            [ $status -eq 5 ] || return $status
            ;;
    esac
}

failed=()
for part in "${parts[@]}"; do
    if [[ $part != @(attacks|rates|mutants|scale) && ! -d tests/$part ]]; then
        echo "nightly: no part '$part'" >&2
        exit 2
    fi
    if [ -n "$commit" ] && [ "$commit" = "$(cat "$stamps/$part" 2>/dev/null)" ]; then
        echo "nightly: $part: passed on this commit before"
        continue
    fi
    SECONDS=0
    if run "$part"; then
        [ -z "$commit" ] || echo "$commit" >"$stamps/$part"
        state=passed
    else
        failed+=("$part")
        state=FAILED
    fi
    echo "nightly: $part: $state after $((SECONDS / 60)) min $((SECONDS % 60)) s"
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "nightly: failed: ${failed[*]}" >&2
    exit 1
fi
