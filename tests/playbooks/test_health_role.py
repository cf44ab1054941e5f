"""The role plumb_health: its scripts with a fake of Grid Engine. Hosts with Slurm are on the test bed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROLE = Path(__file__).resolve().parents[2] / "playbooks/roles/plumb_health"
#: qconf as far as the script uses it: configurations, complexes and a queue are files of the folder
QCONF = r"""#!/bin/bash
cd {folder} || exit 1
case $1 in
-sconf) [ -f "conf.$2" ] && { echo "#$2:"; cat "conf.$2"; } || { echo "configuration $2 not defined" >&2; exit 1; } ;;
-Aconf | -Mconf) cp "$2" "conf.$(basename "$2")"; echo "$1" >>calls ;;
-dconf) rm "conf.$2"; echo "$1" >>calls ;;
-sc) cat complexes ;;
-Mc) cp "$2" complexes; echo "$1" >>calls ;;
-sq) echo "qname $2"; echo "load_thresholds $(cat thresholds)" ;;
-aattr) echo "$(cat thresholds),$4" >thresholds; echo "$1" >>calls ;;
-dattr) sed -i "s/,$4//" thresholds; echo "$1" >>calls ;;
*) exit 1 ;;
esac
"""
#: as the daemon does it, a configuration that is new to it is read when the global one is written
QHOST = r"""#!/bin/bash
cd {folder}
[ ! -e silent ] && [ -f conf.n1 ] || exit 0
[ -e known ] || [ conf.global -nt conf.n1 ] || exit 0
echo "  hl:plumb_bad=0.000000"
"""


class TestGridEngine:
    """Load sensor and thresholds; what the site has stays."""

    @pytest.fixture(autouse=True)
    def grid(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        programs = tmp_path / "bin"
        programs.mkdir()
        (programs / "qconf").write_text(QCONF.replace("{folder}", str(tmp_path)))
        (programs / "qconf").chmod(0o755)
        (programs / "qhost").write_text(QHOST.replace("{folder}", str(tmp_path)))
        (programs / "qhost").chmod(0o755)
        (tmp_path / "conf.global").write_text("execd_params NONE\n")
        (tmp_path / "complexes").write_text("#name shortcut type\narch a RESTRING == YES NO NONE 0\n")
        (tmp_path / "thresholds").write_text("np_load_avg=1.75\n")
        monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")

    def call(self, state: str) -> str:
        done = self.started(state)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def started(self, state: str) -> subprocess.CompletedProcess[str]:
        script = ["bash", str(ROLE / "files/sge.sh"), state, "n1", "all.q"]
        own = {**os.environ, "PLUMB_SENSOR_WAIT": "2"}
        return subprocess.run(script, capture_output=True, text=True, check=False, timeout=60, env=own)

    def test_without_a_report_no_queue_is_closed(self, tmp_path: Path) -> None:
        (tmp_path / "silent").touch()
        done = self.started("present")
        assert done.returncode == 1
        assert "the load sensor of n1 reports nothing: no queue got the threshold" in done.stderr
        assert (tmp_path / "thresholds").read_text() == "np_load_avg=1.75\n"

    def test_it_is_added_once_and_taken_away(self, tmp_path: Path) -> None:
        assert "changed" in self.call("present")
        assert (tmp_path / "conf.n1").read_text() == "load_sensor /usr/local/lib/plumbline/sensor\n"
        assert (tmp_path / "thresholds").read_text() == "np_load_avg=1.75,plumb_bad=1\n"
        assert "plumb_bad plumb_bad INT >= NO NO 0 0" in (tmp_path / "complexes").read_text()
        assert self.call("present") == ""
        assert "changed" in self.call("absent")
        assert not (tmp_path / "conf.n1").exists()
        assert (tmp_path / "thresholds").read_text() == "np_load_avg=1.75\n"
        assert self.call("absent") == ""

    def test_other_sensors_and_settings_stay(self, tmp_path: Path) -> None:
        before = "mailer /bin/mail\nload_sensor /opt/gpu.sh,/opt/license.sh\n"
        (tmp_path / "conf.n1").write_text(before)
        (tmp_path / "known").touch()
        self.call("present")
        both = "load_sensor /opt/gpu.sh,/opt/license.sh,/usr/local/lib/plumbline/sensor\n"
        assert (tmp_path / "conf.n1").read_text() == f"mailer /bin/mail\n{both}"
        self.call("absent")
        assert (tmp_path / "conf.n1").read_text() == before
