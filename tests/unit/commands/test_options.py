"""An option is spelled once and means the same in all commands; what has ended names what is written now."""

import argparse
import functools
import importlib
from collections import defaultdict

import pytest

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.base.verdicts import GIT_ENDS
from plumbline.commands import cli, completion, options
from plumbline.commands.table import COMMANDS, ENDED

#: what the options of the table in docs/records.md and CHANGELOG.md take, wherever they are
TABLE = {
    "--site": "SITE", "--partition": "NAME", "--test": "PATTERN", "--stack": "NAME", "--campaign": "ID",
    "--since": "TIME", "--until": "TIME", "--output": "FILE", "--nodes": "N", "--facts": "FOLDER", "--members": "FILE",
    "--tolerance": "X", "--must-detect": "X", "--minutes": "M", "--time-limit": "S",
}  # fmt: skip
WHICH_TESTS = ("bisect", "list", "compare", "history", "calibrate", "export", "outliers", "gate", "ci", "campaign")
#: commands that print data that exist as objects
AS_JSON = (
    *("list", "show", "diff", "doctor", "compare", "calibrate", "lint", "history", "outliers", "knobs", "topology"),
    *("profile", "tune", "gate", "bisect", "note", "screen", "accept"),
)


@functools.cache
def arguments():
    """The arguments of all commands and of what is below them."""
    found = []
    for command in COMMANDS:
        (table,) = (one for one in cli._parser([command])._actions if isinstance(one, argparse._SubParsersAction))
        found += [(command, action) for action in completion._actions(table.choices[command])]
    return tuple(found)


def of(command):
    return {option for name, action in arguments() if name == command for option in action.option_strings}


def declared():
    """All commands and actions."""
    for name, entry in COMMANDS.items():
        item = getattr(importlib.import_module(entry.module), f"run_{name}")
        if isinstance(item, options.Actions):
            yield from ((f"{name} {action}", command) for action, command in item.actions.items())
        else:
            yield name, item


def test_a_rule_names_arguments_that_there_are():
    for name, command in declared():
        parser = argparse.ArgumentParser()
        command.add_to(parser)
        known = {action.dest for action in parser._actions}
        for rule in command.rules:
            assert {*rule.having, *rule.others, *rule.needed, *rule.unless} <= known, (name, rule)


RULES = [
    options.only_with("plot_it", "table", "{} draws a table", "add --table"),
    options.goes_without("number", "table plot_it", "{} stands alone", "leave it out"),
    options.needs("table", "no table", "name one", having="plot_it", unless="number"),
    *options.one_of("table", "number", none="neither", several="both", cure="give one"),
]


@pytest.mark.parametrize(("words", "line"), [
    (["--table", "a"], None),
    (["--table", "a", "--plot-it"], None),
    (["--number", "0"], None),
    (["--number", "7", "--plot-it"], "--plot-it draws a table (it): add --table"),
    (["--number", "0", "--table", "a"], "--number stands alone (it): leave it out"),
    (["--plot-it"], "--plot-it draws a table (it): add --table"),
    ([], "neither (it): give one"),
    (["--number", "5"], "neither (it): give one"),
])  # fmt: skip
def test_rules_of_combinations(words, line):
    """A default counts as absent, 0 does not."""
    number = options.option("--number", "", type=int, default=5)
    command = options.command(number, options.option("--table", ""), options.flag("--plot-it", ""), rules=RULES)
    command = command(lambda _: 0)
    parser = argparse.ArgumentParser("it")
    command.add_to(parser)
    args = parser.parse_args(words)
    if line is None:
        assert args.run(args) == 0
        return
    with pytest.raises(PlumbError) as raised:
        args.run(args)
    assert str(raised.value) == line


@pytest.mark.parametrize("words", [["list", "--rank"], ["stack", "install", "--dry"], ["gate", "--for-git"]])
def test_options_are_not_abbreviated(words, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == (GIT_ENDS if words[0] == "gate" else 2)  # git would call a commit bad for less
    assert f"unrecognized arguments: {words[-1]}" in capsys.readouterr().err


def test_an_option_has_one_meaning_everywhere():
    meanings = defaultdict(set)
    for _, action in arguments():
        for option in action.option_strings:
            choices = None if action.choices is None else tuple(action.choices)
            meanings[option].add((action.type, action.metavar, choices, action.nargs))
    assert {option: found for option, found in meanings.items() if len(found) > 1} == {}
    assert {option: options.VALUES[option][0] for option in options.VALUES} == {
        option: action.metavar
        for _, action in arguments()
        for option in action.option_strings
        if option in options.VALUES
    }


def test_no_option_of_a_command_is_one_that_every_command_has():
    folders = {f"--{name}" for name in paths.FOLDERS}
    assert not folders & {option for _, action in arguments() for option in action.option_strings}


def test_every_argument_has_help():
    bare = {(name, action.dest) for name, action in arguments() if not action.help and action.dest != "action"}
    assert bare == set()


@pytest.mark.parametrize("option", TABLE)
def test_the_table(option):
    found = {action.metavar for _, action in arguments() if option in action.option_strings}
    assert found == {TABLE[option]}


def test_what_chooses_is_where_something_is_chosen():
    assert [name for name in WHICH_TESTS if "--test" not in of(name)] == []
    records = {f"--{name}" for name in options.RECORDS}
    for command in ("list", "compare", "history", "outliers", "export", "calibrate"):
        assert records <= of(command)


@pytest.mark.parametrize("command", AS_JSON)
def test_json_is_a_flag(command):
    assert "--json" in of(command)


@pytest.mark.parametrize(("command", "option"), [(name, option) for name, own in ENDED.items() for option in own])
def test_an_option_that_has_ended_names_the_present_one(command, option, capsys):
    assert option == "--stacks" or option not in of(command.split()[0])
    assert cli.main([*command.split(), option, "x"]) == COMMANDS[command.split()[0]].errors.get("", 2)
    assert capsys.readouterr().err.endswith(f" is now {ENDED[command][option]}\n")


@pytest.mark.parametrize("words", [["list", "--results", "IN"], ["--results", "IN", "list"], ["list", "--results=IN"]])
def test_a_folder_is_named_before_or_after_the_command(words, tmp_path, capsys):
    assert cli.main([word.replace("IN", str(tmp_path)) for word in words]) == 0
    assert f"no records yet ({tmp_path})" in capsys.readouterr().out


def test_what_a_program_gets_is_left_alone():
    words = ["profile", "--stacks", "a", "--", "prog", "--results", "b", "--tests"]
    folders, others = cli._take_folders(words, 2)
    assert (str(folders.stacks_folder), folders.results_folder) == ("a", None)
    assert others == ["profile", "--", "prog", "--results", "b", "--tests"]
    cli._refuse_ended(words)


@pytest.mark.parametrize(("words", "what"), [
    (["list", "--site", "a:b"], "'a:b' is two names: --site a --partition b"),
    (["list", "--test", "("], "'(' is not a regular expression"),
    (["list", "--test", "a{99999999999}"], "'a{99999999999}' is not a regular expression: the repetition"),
    (["tune", "s", "--minutes", "nan"], "'nan' is not a number above 0"),
    (["tune", "s", "--nodes", "1.5"], "'1.5' is not a whole number from 1 to 1000000"),
])  # fmt: skip
def test_a_wrong_value_is_one_line(words, what, capsys):
    with pytest.raises(SystemExit):
        cli.main(words)
    assert what in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(("text", "value"), [("2%", 0.02), ("0.02", 0.02), ("60%", 0.6), ("0", 0.0)])
@pytest.mark.parametrize("name", ["--tolerance", "--must-detect"])
def test_a_margin_is_in_percent_or_a_fraction(name, text, value):
    read = options.VALUES[name][1]
    assert read(text) == pytest.approx(value)
    for wrong in ("1", "0.5", "5", "nan", "inf", "inf%", "x", "%", "", "-1", "-1%", "-inf"):
        with pytest.raises(argparse.ArgumentTypeError, match="is neither in percent nor a fraction"):
            read(wrong)
