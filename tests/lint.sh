#!/bin/bash
# Formatting and static checks of every language in the checkout. All of them run; the status is 1 if one complained.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
export ANSIBLE_FORCE_COLOR=0 PYTHONDONTWRITEBYTECODE=1
mapfile -t python < <(find plumbline tests reframe-tests site-configs playbooks custom-kernels spack-env -name '*.py' -not -path 'site-configs/local/*')
mapfile -t c < <(find custom-kernels tests -name '*.[ch]')
mapfile -t shell < <(
    echo activate
    grep -rlE '^#!.*\b(ba|da)?sh\b' .ci tests playbooks plumbline custom-kernels spack-env --exclude="*.j2" --exclude-dir=golden 2>/dev/null
)
failed=()

check() {
    local name=$1 out started=$SECONDS
    shift
    if ! command -v "$1" >/dev/null; then
        printf '%-28s SKIPPED: %s is not installed\n' "lint: $name" "$1"
        return
    fi
    if out=$("$@" 2>&1); then
        printf '%-28s ok    %3d s\n' "lint: $name" $((SECONDS - started))
    else
        printf '%-28s FAILED %2d s\n%s\n' "lint: $name" $((SECONDS - started)) "$out"
        failed+=("$name")
    fi
}

check "ruff" ruff check --no-cache "${python[@]}"
check "ruff format" ruff format --no-cache --check "${python[@]}"
check "mypy" mypy
[ ${#c[@]} -eq 0 ] || check "clang-format" clang-format --dry-run --Werror "${c[@]}"
check "shellcheck" shellcheck "${shell[@]}"
check "yamllint" yamllint --strict .
check "ansible-lint" ansible-lint -q --nocolor playbooks tests/bed

if [ ${#failed[@]} -gt 0 ]; then
    echo "lint: failed: ${failed[*]}" >&2
    exit 1
fi
