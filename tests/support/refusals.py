"""Commands run in this process: what they print, and the one line of those that refuse."""

import pytest

from plumbline.commands import cli


@pytest.fixture
def output_of(capsys):
    """Run a command that ends with this status; what it prints on standard output."""

    def run(status, *words):
        assert cli.main(list(map(str, words))) == status
        return capsys.readouterr().out

    return run


@pytest.fixture
def refused(capsys):
    """Run a command that ends with this status; the one line that it prints on standard error."""

    def run(status, *words):
        capsys.readouterr()
        assert cli.main(list(map(str, words))) == status
        line = capsys.readouterr().err
        assert line.count("\n") == 1, line
        return line

    return run
