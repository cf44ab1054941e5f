"""The role plumb_health: its scripts with fakes of Grid Engine and OpenPBS. Hosts with Slurm are on the test bed."""

import os
import subprocess
from pathlib import Path

import pytest
from processes import ended

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
#: qmgr as far as the script uses it: a hook is two files of the folder; OpenPBS has a hook of its own from the start
QMGR = r"""#!/bin/bash
cd {folder} || exit 1
[ ! -e down ] || { echo "qmgr: cannot connect to server" >&2; exit 3; }
case $2 in
"list hook") echo "Hook pbs_cgroups"; [ ! -e hook ] || echo "Hook plumb_check" ;;
"list hook plumb_check") echo "Hook plumb_check"; sed 's/^/    /' hook ;;
"create hook plumb_check") : >hook ;;
"delete hook plumb_check") rm hook ;;
"set hook plumb_check "*) echo "${2#set hook plumb_check }" >>hook ;;
"export hook plumb_check "*) cat body ;;
"import hook plumb_check "*) cp "${2##* }" body ;;
*) exit 1 ;;
esac
"""


class TestOpenPbs:
    """The hook is made once, and removed; a server that does not answer is no success."""

    @pytest.fixture(autouse=True)
    def server(self, tmp_path: Path) -> None:
        program = tmp_path / "bin" / "qmgr"
        program.parent.mkdir()
        program.write_text(QMGR.replace("{folder}", str(tmp_path)))
        program.chmod(0o755)
        (tmp_path / "pbs.conf").write_text(f"PBS_EXEC={tmp_path}\n")

    def call(self, folder: Path, state: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", str(ROLE / "files/pbs.sh"), state, "plumb_check"]
        command += ["event = exechost_periodic", "freq = 300", "alarm = 55"]
        own = {**os.environ, "PBS_CONF_FILE": str(folder / "pbs.conf")}
        return ended(command, input="body\n", timeout=60, env=own)

    def test_it_is_made_once_and_removed(self, tmp_path):
        assert "changed" in self.call(tmp_path, "present").stdout
        assert (tmp_path / "hook").read_text().splitlines() == ["event = exechost_periodic", "freq = 300", "alarm = 55"]
        assert (tmp_path / "body").read_text() == "body\n"
        assert self.call(tmp_path, "present").stdout == ""
        assert self.call(tmp_path, "absent").stdout == "changed\n"
        assert not (tmp_path / "hook").exists()
        assert self.call(tmp_path, "absent").stdout == ""

    @pytest.mark.parametrize("state", ["present", "absent"])
    def test_a_server_that_does_not_answer(self, state, tmp_path):
        (tmp_path / "down").touch()
        done = self.call(tmp_path, state)
        assert (done.returncode, done.stdout) == (3, "")
        assert "cannot connect" in done.stderr


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
        return ended(script, timeout=60, env=own)

    def test_without_a_report_no_queue_is_closed(self, tmp_path):
        (tmp_path / "silent").touch()
        done = self.started("present")
        assert done.returncode == 1
        assert "the load sensor of n1 reports nothing: no queue got the threshold" in done.stderr
        assert (tmp_path / "thresholds").read_text() == "np_load_avg=1.75\n"

    def test_it_is_added_once_and_taken_away(self, tmp_path):
        assert "changed" in self.call("present")
        assert (tmp_path / "conf.n1").read_text() == "load_sensor /usr/local/lib/plumbline/sensor\n"
        assert (tmp_path / "thresholds").read_text() == "np_load_avg=1.75,plumb_bad=1\n"
        assert "plumb_bad plumb_bad INT >= NO NO 0 0" in (tmp_path / "complexes").read_text()
        assert self.call("present") == ""
        assert "changed" in self.call("absent")
        assert not (tmp_path / "conf.n1").exists()
        assert (tmp_path / "thresholds").read_text() == "np_load_avg=1.75\n"
        assert self.call("absent") == ""

    def test_other_sensors_and_settings_stay(self, tmp_path):
        before = "mailer /bin/mail\nload_sensor /opt/gpu.sh,/opt/license.sh\n"
        (tmp_path / "conf.n1").write_text(before)
        (tmp_path / "known").touch()
        self.call("present")
        both = "load_sensor /opt/gpu.sh,/opt/license.sh,/usr/local/lib/plumbline/sensor\n"
        assert (tmp_path / "conf.n1").read_text() == f"mailer /bin/mail\n{both}"
        self.call("absent")
        assert (tmp_path / "conf.n1").read_text() == before
