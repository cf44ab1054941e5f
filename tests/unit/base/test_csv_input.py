"""Tables that people give as CSV: what the three readers of them share."""

import pytest

from plumbline.base import csv_input
from plumbline.base.errors import PlumbError


def test_rows_come_with_their_lines_and_empty_ones_do_not(tmp_path):
    file = tmp_path / "f.csv"
    file.write_bytes(b'\xef\xbb\xbf\na , b\n\n1,"x\ny"\n2,z\n')
    rows = csv_input.rows(file, "values")
    assert csv_input.header(rows) == ["a", "b"]
    assert list(rows) == [(5, ["1", "x\ny"]), (6, ["2", "z"])]


def test_an_empty_file_has_no_columns(tmp_path):
    file = tmp_path / "f.csv"
    file.write_text("")
    assert csv_input.header(csv_input.rows(file, "values")) == []


def test_too_much_is_refused_before_it_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_input, "MOST_BYTES", 1 << 20)
    file = tmp_path / "f.csv"
    with file.open("wb") as stream:
        stream.truncate((1 << 20) + 1)
    with pytest.raises(PlumbError, match=r"^more than 1 MiB \(\S*f\.csv\): divide it$"):
        list(csv_input.rows(file, "pairs"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"^cannot read the pairs: No such file or directory \(\S*f\.csv\): give a CSV file$"),
        (b"a,b\n\xff,1\n", r"^not a text file in UTF-8 \(\S*f\.csv\): give a CSV file$"),
        (b'"a,b\n', r"^not CSV: .* \(\S*f\.csv:1\): fix the line$"),
        (b'a,b\n1,2\n"3,4\n5,6\n', r"^not CSV: .* \(\S*f\.csv:3\): fix the line$"),
    ],
)
def test_what_is_no_table_is_one_error_with_file_and_line(tmp_path, content, message):
    file = tmp_path / "f.csv"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(PlumbError, match=message):
        list(csv_input.rows(file, "pairs"))
