"""A table that is declared once, in each of its forms."""

from dataclasses import replace
from typing import NamedTuple

import pytest

from plumbline.show.columns import Column, Table, words
from plumbline.show.pages.blocks import block, link


class Node(NamedTuple):
    name: str
    power: float | None
    note: str = ""


TABLE = Table[Node](
    "Nodes",
    [
        Column("node", lambda node: link(node.name, entry=3), "test", head=True),
        Column("power", lambda node: node.power, "number", "W", key=lambda node: node.power or -1, spare=2),
        Column("state", lambda node: block("badge", "fine" if node.power else ""), forms="text page", spare=1),
        Column("note", lambda node: node.note, page=lambda node: block("folded", node.note)),
    ],
)
NODES = [Node("n1", 210.5), Node("n2", None, "off | since May")]


def test_a_text_has_units_dashes_and_numbers_on_the_right():
    assert TABLE.text(NODES).splitlines() == [
        "node      power W  state    note",
        "------  ---------  -------  ---------------",
        "n1          210.5  fine",
        "n2              –           off | since May",
    ]


def test_markdown_has_the_columns_of_its_form():
    assert TABLE.markdown(NODES).splitlines() == [
        "| node | power W | note |",
        "|---|--:|---|",
        "| n1 | 210.5 |  |",
        r"| n2 | – | off \| since May |",
    ]


def test_a_page_has_pieces_and_keys():
    shown = TABLE.block(NODES, first=1)
    assert (shown["caption"], shown["first"]) == ("Nodes", 1)
    assert shown["columns"][:2] == [
        {"title": "node", "kind": "test", "head": True},
        {"title": "power", "kind": "number", "unit": "W"},
    ]
    assert shown["rows"][1][3] == block("folded", "off | since May")
    assert shown["rows"][0][0] == link("n1", entry=3)
    assert TABLE.keys(NODES[1]) == ["n2", -1, "", "off | since May"]


@pytest.mark.parametrize("form", ["text", "md", "page"])
def test_a_column_in_which_no_row_has_anything_is_left_out(form):
    rows = [Node("n1", None), Node("n2", None)]
    assert "power" not in [column.title for column in TABLE.of(form, rows)[0].columns]
    assert "note" in [column.title for column in TABLE.of(form, [])[0].columns]


def test_a_narrow_terminal_leaves_out_the_least_first(monkeypatch):
    monkeypatch.setattr("plumbline.base.terminal.width", lambda: 18)
    *_, last = TABLE.text([NODES[0]]).splitlines()
    assert last == "left out, the terminal is too narrow: state"


def test_one_more_column_is_one_more_line():
    more = Table("Nodes", [*TABLE.columns, Column[Node]("length", lambda node: len(node.name), "number")])
    assert more.text(NODES).splitlines()[0].endswith("length")
    assert more.markdown(NODES).splitlines()[0].endswith("| length |")
    assert more.block(NODES)["rows"][0][-1] == 2


def test_words_of_pieces():
    assert words([block("strong", "a", False, None), "b", ["c", 1]]) == "a b c 1"
    assert (words(None), words(""), words(0.5)) == ("–", "", "0.5")


def test_a_whole_table_keeps_columns_in_which_no_row_has_anything():
    empty = [Node("n1", None)]
    titles = [column["title"] for column in TABLE.block(empty)["columns"]]
    assert "power" not in titles
    assert [column["title"] for column in replace(TABLE, whole=True).block(empty)["columns"]] == [
        column.title for column in TABLE.columns
    ]
