#!/bin/bash
# Check COMMIT out of BUNDLE into ROOT; what the site has in its folder stays as it is.
# checkout.sh ROOT BUNDLE COMMIT SITE      Interrupted at any point, it is run again.
set -euo pipefail
root=$1 bundle=$2 commit=$3 site=site-configs/$4
aside=$root/.git/plumbline-site
stop() {
    echo "plumb: $*"
    exit 1
}
[ -e "$root/.git" ] || git init --quiet -- "$root"
CDPATH='' cd -- "$root"
echo "made by Plumbline's onboarding, which offboard.yml may remove" >.git/plumbline
git fetch --quiet "$bundle" '+refs/plumbline/*:refs/plumbline/*' || stop "the bundle cannot be read"
give_back() {
    [ -d "$aside" ] || return 0
    mkdir -p "$site"
    cp -a -- "$aside/." "$site/"
    rm -rf -- "$aside"
}
give_back
if git rev-parse --quiet --verify HEAD >/dev/null; then
    changed=$(git status --porcelain --untracked-files=no -- . ":(exclude)$site" | head -n 3 | paste -sd,)
    [ -z "$changed" ] || stop "$root has changes that are not committed ($changed): undo them there, or move them into the control machine's checkout"
fi
trap give_back EXIT
if [ -d "$site" ]; then
    rm -rf -- "$aside.new"
    cp -a -- "$site" "$aside.new"
    mv -- "$aside.new" "$aside"
    rm -rf -- "$site"
    [ -z "$(git ls-files -- "$site")" ] || git checkout --quiet HEAD -- "$site"
fi
git checkout --quiet --detach "$commit" || stop "$root cannot be brought to commit $commit (above)"
