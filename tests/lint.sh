#!/bin/bash
# Formatting and static checks of every language in the checkout. All of them run; the status is 1 if one complained.
set -uo pipefail
CDPATH='' cd -- "$(dirname -- "$0")/.." || exit 1
export ANSIBLE_FORCE_COLOR=0 PYTHONDONTWRITEBYTECODE=1 NO_MKDOCS_2_WARNING=1
mapfile -t python < <(find plumbline tests reframe-tests site-configs playbooks custom-kernels spack-env docs -name '*.py' -not -path 'site-configs/local/*')
mapfile -t c < <(find custom-kernels tests docs -name '*.[ch]')
mapfile -t shell < <(
    echo activate
    grep -rlE '^#!.*\b(ba|da)?sh\b' .ci tests playbooks plumbline custom-kernels spack-env --exclude="*.j2" --exclude-dir={golden,__pycache__} 2>/dev/null
)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'kill $(jobs -p) 2>/dev/null; exit 130' INT TERM
names=()

# Starts a check beside the others. Its output is in a file of its own, its status and seconds in another.
check() {
    names+=("$1")
    local file=$folder/${#names[@]}
    shift
    {
        SECONDS=0
        if command -v "$1" >/dev/null; then
            trap 'kill $!; exit' TERM
            "$@" >"$file" 2>&1 &
            wait $!
        else
            echo "$1 is not installed" >"$file"
            (exit 127)
        fi
        echo "$? $SECONDS" >"$file.status"
    } &
}

# Takes two minutes of CPU: files that passed are not checked again.
ansible_lint() {
    local stamp=build/lint/ansible now
    now=$({ ansible-lint --version --nocolor && cat .ansible-lint .yamllint && find playbooks tests/bed -type f \
        -not -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum; } | sha256sum) || return
    [ "$now" != "$(cat $stamp 2>/dev/null)" ] || return 0
    ansible-lint -q --nocolor playbooks tests/bed &
    trap 'kill $!; exit' TERM
    wait $! && mkdir -p build/lint && echo "$now" >$stamp
}

check "ansible-lint" ansible_lint
check "mypy" mypy
check "ruff" ruff check --no-cache "${python[@]}"
check "ruff format" ruff format --no-cache --check "${python[@]}"
check "docs" mkdocs build --quiet
check "imports" lint-imports --no-cache --no-logo
[ ${#c[@]} -eq 0 ] || check "clang-format" clang-format --dry-run --Werror "${c[@]}"
check "shellcheck" shellcheck "${shell[@]}"
check "yamllint" yamllint --strict .
wait

failed=()
for number in "${!names[@]}"; do
    name=${names[number]} file=$folder/$((number + 1))
    read -r status seconds <"$file.status"
    case $status in
        0) said="ok    $(printf '%3d' "$seconds") s" ;;
        127)
            said="SKIPPED: $(cat "$file")"
            [ "$name" = shellcheck ] || failed+=("$name") # which has no wheel for aarch64
            ;;
        *)
            said="FAILED $(printf '%2d' "$seconds") s"$'\n'$(cat "$file")
            failed+=("$name")
            ;;
    esac
    printf '%-28s %s\n' "lint: $name" "$said"
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "lint: failed: ${failed[*]}" >&2
    exit 1
fi
