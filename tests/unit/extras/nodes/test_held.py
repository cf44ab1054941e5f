"""What holds the memory of a node, on made-up files of a kernel."""

import pytest

from plumbline.commands import cli
from plumbline.extras.nodes import check

MEMINFO = "MemTotal: 10000000 kB\nMemAvailable: 4000000 kB\nSUnreclaim: 1000 kB\nHugePages_Total: 512\n"
MEMINFO += "HugePages_Free: 500\nHugepagesize: 2048 kB\n"


@pytest.fixture
def root(tmp_path):
    for place, text in {
        "proc/meminfo": MEMINFO,
        "proc/mounts": "tmpfs /dev/shm tmpfs rw 0 0\n/dev/sda /tmp ext4 rw 0 0\n",
        "proc/7/stat": f"7 (a b) S {' '.join(['1'] * 30)}",
        "proc/7/status": "Name:\ta b\nRssAnon:\t 2000000 kB\n",
        "dev/shm/sub/left\x1b[31m": "x",
        "tmp/on-disk": "x",
    }.items():
        file = tmp_path / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def test_what_holds_memory_is_named(root, capsys, monkeypatch):
    monkeypatch.setattr(check, "LEAST", 1)
    assert check.held(10_000_000 // 1024, 0, 0.05, root) == 1
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[2:4] == ["1.9 GiB process 7 a b", "1 GiB huge pages 12 of 512 in use (vm.nr_hugepages)"]
    assert any(" file " in line and "dev/shm/sub/left [31m of user" in line for line in lines)
    assert not any("on-disk" in line for line in lines)
    assert lines[-1] == "memory: bad: 3.8 GiB of 9.5 GiB free, at least 9.1 GiB are expected: 5 % less than all"


def test_a_node_that_has_its_memory_is_fine(root, capsys):
    assert check.held(4_000_000 // 1024, 0, 0.05, root) == 0
    assert "memory: fine: 3.8 GiB" in capsys.readouterr().out


@pytest.mark.parametrize(("idle", "status"), [(4_100_000, 0), (4_300_000, 1)])
def test_it_is_compared_with_idle_nodes_of_the_class(root, capsys, idle, status):
    """Whose kernels, daemons and huge pages keep more than any tolerance here."""
    assert check.held(10_000_000 // 1024, idle // 1024, 0.05, root) == status
    assert capsys.readouterr().out.endswith("are expected: 5 % less than idle nodes of its class\n")


def test_the_class_says_how_much_a_node_has(tmp_path, capsys):
    (tmp_path / "node.class").write_text("plumb-class 1\nidle 1000000000\nfact memory.mib 1\nend\n")
    assert cli.main(["check", "--held", "--class", str(tmp_path / "node.class")]) == 1
    assert "of 1 MiB free" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "message"), [
    (["--held", "--form", "json"], "--held measures nothing and prints text"),
    (["--held", "--last"], "--held measures nothing and prints text"),
    (["--tolerance", "0.1"], "--tolerance goes with --held"),
    (["--held", "--class", "nosuch.class"], "no such file"),
    (["--plan", "--class", "/dev/null"], "no such file"),
])  # fmt: skip
def test_what_it_would_not_heed_is_refused(words, message, capsys):
    assert cli.main(["check", *words]) == 2
    assert message in capsys.readouterr().err
