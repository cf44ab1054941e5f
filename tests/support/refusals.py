"""Commands that refuse: an exit status, and one line on standard error."""

import pytest

from plumbline.commands import cli


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
