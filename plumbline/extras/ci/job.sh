#!/bin/bash
# What the jobs of both pipelines run: job.sh gate | nightly. In a checkout of this suite from its top; in
# the repository of an application (PLUMB_CI_APPLICATION names its plumb.yaml) from there, by a Plumbline that pip installed.
# Everything it needs comes in PLUMB_CI_… variables (plumbline/extras/ci/pipelines.py writes them), so that no value of a site is
# ever part of a command's text. What the job publishes is in plumb-ci/.
# Exit status of gate and nightly: 0 PASS, 1 FAIL, 2 INCONCLUSIVE, 3 INVALID, and that of a set-up that failed.
set -euo pipefail
own=${PLUMB_CI_APPLICATION:-}
[ -n "$own" ] || CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.."
out=plumb-ci
stack=${PLUMB_CI_STACK:-}
[ -z "$own" ] || stack=${stack#*:} # plumb setup takes module:NAME, a gate the name

stop() {
    echo "plumb ci: $*" >&2
    exit 3
}

# Options for the values that are set, in the array `options`.
add() {
    local option=$1 value=$2
    [ -z "$value" ] || options+=("$option=$value")
}

# A job that GitHub is to call green although a status of 2 is tolerated; GitLab knows allow_failure itself.
finish() {
    local status=$1
    if [ "$status" -eq 2 ] && [ "${PLUMB_CI_INCONCLUSIVE:-fail}" = warn ] && [ -n "${GITHUB_ACTIONS:-}" ]; then
        echo "::warning title=Plumbline::INCONCLUSIVE: see the job's summary"
        status=0
    fi
    exit "$status"
}

setup() {
    local options=()
    add --stack "${PLUMB_CI_STACK:-}"
    if [ -n "$own" ]; then
        PATH=$PWD/.plumbline/bin:$PATH
        plumb setup --no-ceilings "${options[@]}" || stop "plumb setup failed with status $?"
    else
        if [ "${PLUMB_CI_SETUP:-yes}" = yes ]; then
            make setup || stop "make setup failed with status $?"
        fi
        # shellcheck disable=SC1091  # the checkout's own file
        . ./activate || stop "the checkout cannot be activated"
    fi
    rm -rf "$out"
    mkdir -p "$out"
}

# The commit that the change is held against: what the target branch had when the change left it.
baseline() {
    local target=${PLUMB_CI_BASELINE:-} base
    if [ -z "$target" ] && [ -n "${CI_MERGE_REQUEST_DIFF_BASE_SHA:-}" ]; then
        target=$CI_MERGE_REQUEST_DIFF_BASE_SHA
    elif [ -z "$target" ] && [ -n "${GITHUB_BASE_REF:-}" ]; then
        base=$(git merge-base HEAD "refs/remotes/origin/$GITHUB_BASE_REF") || return 1
        target=$base
    fi
    [ -n "$target" ] || return 1
    printf '%s\n' "$target"
}

gate() {
    local status=0 base options=()
    setup
    base=$(baseline) || stop "nothing to hold the change against: set PLUMB_CI_BASELINE, or run on a merge request"
    add --baseline "$base"
    add --candidate "${PLUMB_CI_CANDIDATE:-$(git rev-parse HEAD)}"
    add --stack "$stack"
    add --application "$own"
    [ -z "${PLUMB_CI_TESTS:-}" ] || stop "PLUMB_CI_TESTS is called PLUMB_CI_TEST now: render the pipeline again by plumb ci"
    add --test "${PLUMB_CI_TEST:-}"
    add --site "${PLUMB_CI_SITE:-}"
    add --partition "${PLUMB_CI_PARTITION:-}"
    add --minutes "${PLUMB_CI_MINUTES:-}"
    add --cause-minutes "${PLUMB_CI_CAUSE_MINUTES:-}"
    plumb gate "${options[@]}" --work "$out/work" --output "$out/gate.json" --output "$out/gate.xml" \
        --output "$out/gate.md" --output "$out/gate.html" || status=$?
    # A gate that says it is well and leaves no verdicts has not run.
    for file in gate.json gate.xml gate.md; do
        [ -s "$out/$file" ] || [ "$status" -eq 3 ] || stop "plumb gate ended with $status and wrote no $out/$file"
    done
    [ ! -s "$out/gate.md" ] || [ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$out/gate.md" >>"$GITHUB_STEP_SUMMARY"
    finish "$status"
}

# All campaigns as pages. Records that cannot be read are named, and the rest is published.
publish() {
    local made=0
    plumb "${results[@]}" publish "$out/pages" || made=$?
    [ "$made" -le 1 ] || stop "plumb publish ended with $made"
}

nightly() {
    local status=0 alarm=0 options=() results=() confirm=()
    setup
    [ -z "${PLUMB_CI_RESULTS:-}" ] || results+=("--results=$PLUMB_CI_RESULTS")
    local measure=run
    if [ -n "$own" ]; then
        add --stack "$stack"
        add --application "$own"
        add --site "${PLUMB_CI_SITE:-}"
        add --partition "${PLUMB_CI_PARTITION:-}"
    else
        measure=campaign
        options+=(--profile "${PLUMB_CI_PROFILE:-quick}")
        [ -z "${PLUMB_CI_SITE:-}" ] || options+=(-- "--system=$PLUMB_CI_SITE${PLUMB_CI_PARTITION:+:$PLUMB_CI_PARTITION}")
    fi
    plumb "${results[@]}" "$measure" "${options[@]}" | tee "$out/campaign.txt" || status=1
    [ -z "${PLUMB_CI_CAUSE_MINUTES:-}" ] || confirm=(--confirm "--cause-minutes=$PLUMB_CI_CAUSE_MINUTES" ${own:+"--application=$own"})
    plumb "${results[@]}" history --json "${confirm[@]}" >"$out/history.jsonl" || alarm=$?
    [ -s "$out/history.jsonl" ] || [ "$alarm" -eq 3 ] || stop "plumb history ended with $alarm and wrote nothing"
    [ "${PLUMB_CI_PAGES:-no}" != yes ] || publish
    case $alarm in
    0) ;;
    1) # unless confirmed: to be looked at, no failure
        [ ${#confirm[@]} -eq 0 ] || finish 1
        echo "plumb ci: history has an alarm: $out/history.jsonl; plumb reproduce ID measures it again" >&2
        [ "$status" -ne 0 ] || status=2
        ;;
    2) [ "$status" -ne 0 ] || status=2 ;; # neither confirmed nor refuted
    *) status=3 ;;
    esac
    finish "$status"
}

# What a job builds and runs sees all that the job has.
[ -z "${PLUMB_COMMENT_TOKEN:-}" ] ||
    stop "PLUMB_COMMENT_TOKEN is in reach of the code that is measured: give it the environment scope plumb-comment, and render the pipeline again by plumb ci"
case ${1:-} in
gate | nightly) "$1" ;;
comment) stop "posting is a job of its own now: render the pipeline again by plumb ci" ;;
*) stop "usage: plumbline/extras/ci/job.sh gate | nightly" ;;
esac
