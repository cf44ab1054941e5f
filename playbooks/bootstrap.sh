#!/bin/bash
# What has to be there before Ansible can do the rest: the virtual environment .venv with everything of a lock file.
# Usage: playbooks/bootstrap.sh LOCK     (PYTHON=python3.12 chooses another interpreter)
# Without network: PLUMB_ARCHIVE=FILE, made by plumb stack pack; PLUMB_ARCHIVE_SHA256=HEX is what its SHA-256 must be.
set -euo pipefail
archive=${PLUMB_ARCHIVE:+$(realpath -m -- "$PLUMB_ARCHIVE")}
CDPATH='' cd -- "$(dirname -- "$0")/.."
lock=$1
python=${PYTHON:-python3}

stop() {
    echo "plumb: $*" >&2
    exit 2
}

# Interpreter lines and compiler wrappers end at a blank, search paths at a colon.
case $PWD in *[[:space:]:]*) stop "the path of this checkout has a blank or a colon ($PWD): move it to one without" ;; esac

# Debian and Ubuntu keep Python and its venv module in separate packages; only the system's Python is installed.
install() {
    [ "$python" = python3 ] && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null || return 1
    echo "venv: installing $*"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o DPkg::Lock::Timeout=300 \
        --no-install-recommends "$@" >/dev/null
}

command -v "$python" >/dev/null || install python3 python3-venv ||
    stop "no '$python' on PATH: install Python 3.10 or newer, or say make PYTHON=/path/to/python3"
version=$("$python" -I -c 'import platform; print(platform.python_version())')
"$python" -I -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    stop "'$python' is Python $version, 3.10 or newer is needed: say make PYTHON=/path/to/python3"
"$python" -I -c 'import ensurepip, venv' 2>/dev/null || install python3-venv ||
    stop "'$python' cannot make virtual environments: as root, apt-get install python3-venv"

# Where an archive is unpacked, now or earlier, the folder with its packages is printed, and no registry is asked.
given=()
[ -z "$archive" ] || given=("$archive" ${PLUMB_ARCHIVE_SHA256+"$PLUMB_ARCHIVE_SHA256"})
clean=("$python" -I plumbline/base/surroundings.py) # modules and settings of another Python are not for this one
wheels=$("${clean[@]}" "$python" -m plumbline.stacks.archive "$lock" "${given[@]}")
source=()
if [ -n "$wheels" ]; then
    echo "venv: the packages are taken from $wheels"
    source=(--no-index --find-links "$wheels")
fi

if [ -x .venv/bin/python ] && ! .venv/bin/python -I -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    echo "venv: .venv is broken or of another Python, making it again"
    rm -rf .venv
fi
if [ ! -x .venv/bin/python ] || [ ! -x .venv/bin/pip ]; then
    echo "venv: making .venv with Python $version"
    "$python" -I -m venv .venv
fi

count=$(grep -c '==' "$lock")
echo "venv: installing $lock ($count pinned packages)"
if [ -t 1 ]; then # a terminal sees that it goes on
    (while sleep 5 && kill -0 $$ 2>/dev/null; do printf '\rvenv: %d s' "$SECONDS"; done) &
    ticker=$!
    trap 'kill "$ticker" 2>/dev/null || true; printf "\r\033[K"' EXIT
fi
"${clean[@]}" .venv/bin/python -I -m pip install --quiet --require-hashes --no-deps --only-binary :all: "${source[@]}" --requirement "$lock"

# Plumbline itself is on the path as it lies here: its wheel would need a compiler, which may not be there yet.
"${clean[@]}" .venv/bin/python -I -m pip uninstall --quiet --yes plumbline 2>/dev/null # an earlier version installed it
printf '%s\n' "$PWD" >"$(.venv/bin/python -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/plumbline.pth"
# A program that people start here takes no module of another Python, and in a copy of this checkout the copy's package;
# exec names the interpreter, because kernels cut long interpreter lines.
program() {
    cat >".venv/bin/$1.new" <<END
#!/bin/sh
'''exec' "$PWD/.venv/bin/python" -I "\$0" "\$@"
' '''
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent.parent))
from $2 import main

sys.exit(main())
END
    chmod 755 ".venv/bin/$1.new"
    mv ".venv/bin/$1.new" ".venv/bin/$1"
}
program plumb plumbline.commands.cli
program reframe reframe.frontend.cli
program ansible-playbook ansible.cli.playbook
