"""Messages of the library name parameters; on the command line they name its options."""

from __future__ import annotations

import re

import pandas as pd
import pytest
import typer

from precisionnet.cli.app import app
from precisionnet.cli.messages import as_options, graph_sentence
from precisionnet.datasets.batches import iter_batches
from precisionnet.errors import InputError

COMMANDS = typer.main.get_command(app).commands


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("leave it out with drop=['x'], or correct it.", "leave it out with --drop x, or correct it."),
        ("leave them out with drop=['a b', \"it's\"].", "leave them out with --drop 'a b' --drop 'it'\"'\"'s'."),
        ("drop=['a', 'b' and 4 more]", "--drop a --drop b and 4 more"),
        ("change hold_out= or bring more rows", "change --hold-out or bring more rows"),
        ("lower folds=99.", "lower --folds 99."),
        ("name it with id=, or with person=...", "name it with --id, or with --person"),
        ("use task='classification', or", "use --task classification, or"),
        ("pass complete_rows=True, or missing='median'.", "pass --complete-rows, or --missing median."),
        ("set scale_shift=False", "set --no-scale-shift"),
        ("with another random_state=", "with another --seed"),
        ("batch_size=7 has no effect with recipe='paper'", "--batch-size 7 has no effect with --recipe paper"),
        ("--batch-size=7 has no effect with --recipe='paper'", "--batch-size 7 has no effect with --recipe paper"),
        ("lower learning_rate=1e-05", "lower --learning-rate 1e-05"),
        ("set spectral_bound=-1", "set --spectral-bound -1"),
    ],
)
def test_parameters_become_options(message, told):
    assert as_options(message, COMMANDS["fit"]) == told


@pytest.mark.parametrize(
    "message",
    [
        "Column 'drop=[1]' is constant.",
        "Column \"it's id=3\" is constant; the column's name is a='b'.",
        "Column 'it\\'s id=' is constant.",
        "unknown=3 and x.id=3 and id==3 stay",
        "complete_rows=False has no option",
        "use --drop 'x' or --id",
    ],
)
def test_names_of_columns_and_unknown_parameters_stay(message):
    assert as_options(message, COMMANDS["fit"]) == message


def test_a_command_translates_only_its_own_options():
    message = "Pass id='a', missing='median', coverage=0.9 or n_jobs=2."
    assert as_options(message, None) == message
    assert as_options(message, COMMANDS["predict"]) == "Pass --id a, missing='median', --interval 0.9 or n_jobs=2."
    assert as_options(message, COMMANDS["compare"]) == "Pass --id a, missing='median', coverage=0.9 or --jobs 2."
    check = COMMANDS["datasets"].commands["check"]
    assert as_options("drop=['a'] or missing=", check) == "--drop a or --missing"


def test_a_message_that_the_library_raises(tmp_path):
    path = tmp_path / "t.csv"
    pd.DataFrame({"a b": ["x"] * 5, "c": range(5)}).to_csv(path, index=False)
    with pytest.raises(InputError) as raised:
        list(iter_batches(path))
    assert "drop=['a b']" in str(raised.value)
    assert "--drop 'a b'" in as_options(str(raised.value), COMMANDS["fit"])


def test_a_parameter_without_effect(precisionnet, table):
    done = precisionnet("fit", table, "--target", "age", "--id", "who", "--recipe", "paper", "--batch-size", 7)
    assert done.code == 2
    assert re.search(r"--batch-size.* --recipe paper", done.sentence)
    assert "---" not in done.sentence
    assert "=" not in done.sentence


def test_errors_notes_and_warnings_are_translated(precisionnet, monkeypatch, table):
    def read_dataset(*_, **__):
        raise InputError("Column 'id=1' is bad: leave it out with drop=['id=1'].")

    monkeypatch.setattr("precisionnet.cli.tables.read_dataset", read_dataset)
    done = precisionnet("fit", table, "--target", "age")
    assert (done.code, done.out) == (2, "")
    assert done.sentence.strip() == "Error: Column 'id=1' is bad: leave it out with --drop id=1."
    done = precisionnet("datasets", "check", table)
    assert "--drop id=1" in done.sentence


@pytest.mark.parametrize(
    "arguments", [["--\x1b[31m"], ["fit", "t.csv", "--\x1b[31m"], ["show", "a", "\x1b[31mb"], ["\x1b"]]
)
def test_arguments_that_typer_refuses_are_printable(precisionnet, arguments):
    done = precisionnet(*arguments)
    assert done.code == 2
    assert not re.search("[\x00-\x09\x0b-\x1f]", done.out + done.err)


@pytest.mark.parametrize(
    ("n_edges", "n_columns", "said"),
    [
        (0, 6, "0 of 15 possible edges. No column depends"),
        (15, 9, "15 of 36 possible edges: 58% of all pairs have none."),
        (15, 6, "15 of 15 possible edges. Every pair is connected"),
        (3, 5000, "3 of 12,497,500 possible edges: over 99.99% of all pairs have none."),
        (0, 1, "0 of 0 possible edges."),
    ],
)
def test_edges_are_said_beside_the_pairs_that_have_none(n_edges, n_columns, said):
    assert said in graph_sentence(n_edges, n_columns, "joint")
