"""Sixty wrong inputs, and what the one answer to each must name.

An input is files (name -> text or bytes), the arguments of ``precisionnet`` in their folder, and words of the answer, in
the order in which they come: of several mistakes every one, a mistyped target first. All are refused before anything is
trained.
"""

from __future__ import annotations

from typing import NamedTuple

ROWS = 24


class Wrong(NamedTuple):
    what: str
    arguments: str
    words: tuple[str, ...]
    files: dict[str, str | bytes] = {}  # noqa: RUF012 - never changed


def csv(separator: str = ",", rows: int = ROWS, **columns: object) -> str:
    """A table of two numbers x and z and the target y; a column is a cell, a list of cells, or None to leave it out."""
    cells: dict[str, object] = {
        "x": [f"{(7 * i) % 11 + 0.5}" for i in range(rows)],
        "z": [f"{(5 * i) % 13 - 0.25}" for i in range(rows)],
        "y": [f"{(3 * i) % 17 + 0.125}" for i in range(rows)],
    }
    cells |= columns
    kept = {name: cell for name, cell in cells.items() if cell is not None}
    rest = [
        separator.join(str(cell[i]) if isinstance(cell, list) else str(cell) for cell in kept.values())
        for i in range(rows)
    ]
    return "\n".join([separator.join(kept), *rest]) + "\n"


def first(cell: object, rest: list[str] | None = None) -> list[str]:
    """A column of numbers whose first cell is another."""
    return [str(cell), *(rest or [f"{(2 * i) % 7 + 0.5}" for i in range(ROWS - 1)])]


IDS = [f"s{i:02d}" for i in range(ROWS)]
FIT = "fit t.csv --target y"
PLAIN = {"t.csv": csv()}

WRONG = [
    # Names.
    Wrong("a mistyped target", "fit t.csv --target yy", ("'yy'", "did you mean 'y'", "--target"), PLAIN),
    Wrong("a target in another case twice", "fit t.csv --target AGE", ("'AGE'", "--target"), {"t.csv": csv(age="1", Age="2")}),
    Wrong("a mistyped target and a wrong drop", "fit t.csv --target yy --drop q", ("did you mean 'y'", "'q'", "--drop"), PLAIN),
    Wrong("every name mistyped", f"{FIT}y --id idd --site sit --person per --drop dro", ("'yy'", "'idd'", "'per'", "'sit'", "'dro'"), PLAIN),
    Wrong("a mistyped target and units in cells", "fit t.csv --target yy", ("'yy'", "'a'", "12 kg"), {"t.csv": csv(a=first("12 kg"))}),
    Wrong("a mistyped target, a constant and infinity", "fit t.csv --target yy", ("'yy'", "'i'", "infinity", "'flat'"), {"t.csv": csv(flat="1", i=first("inf"))}),
    Wrong("a mistyped target and a mistyped way to test", "fit t.csv --target yy --hold-out w --drop q", ("'yy'", "'q'", "'w'", "--hold-out"), PLAIN),
    Wrong("a comparison with every name mistyped", "compare t.csv --target yy --hold-out w", ("'yy'", "'w'", "--hold-out"), PLAIN),
    Wrong("target and id are one", f"{FIT} --id y", ("'y'", "--target", "--id"), PLAIN),
    Wrong("target is dropped", f"{FIT} --drop y", ("'y'", "--target", "--drop"), PLAIN),
    Wrong("target is the person", f"{FIT} --person y", ("'y'", "--target", "--person"), PLAIN),
    Wrong("two wrong drops", f"{FIT} --drop p --drop q", ("'p'", "'q'"), PLAIN),
    Wrong("an id that is not there", f"{FIT} --id who", ("'who'", "--id"), PLAIN),
    # Cells.
    Wrong("units in a column of numbers", FIT, ("'a'", "'12 kg'", "row 1", "unit"), {"t.csv": csv(a=[f"{i} kg" for i in range(12, 12 + ROWS)])}),
    Wrong("one oops among numbers", FIT, ("'a'", "'oops'", "row 1", "--drop"), {"t.csv": csv(a=first("oops"))}),
    Wrong("two columns with a wrong cell", FIT, ("'a'", "'b' as well"), {"t.csv": csv(a=first("oops"), b=first("?"))}),
    Wrong("a date among numbers", FIT, ("'a'", "2024-03-02", "a date?"), {"t.csv": csv(a=first("2024-03-02"))}),
    Wrong("thousands", FIT, ("'a'", "thousands?"), {"t.csv": csv(a='"1,234"')}),
    Wrong("infinity", FIT, ("'a'", "infinity", "row 1"), {"t.csv": csv(a=first("inf"))}),
    Wrong("beyond all bounds", FIT, ("'a'", "beyond 1e+100"), {"t.csv": csv(a=first("1e200"))}),
    Wrong("infinity and an oops", FIT, ("'b'", "oops", "'a'", "infinity"), {"t.csv": csv(a=first("inf"), b=first("oops"))}),
    Wrong("gaps that are refused", f"{FIT} --missing error", ("'a'", "missing", "--missing indicator"), {"t.csv": csv(a=first(""))}),
    Wrong("labels with gaps that are refused", f"{FIT} --missing error", ("'c'", "missing"), {"t.csv": csv(c=first("", ["u", "v", "w"] * 7 + ["u", "v"]))}),
    # Columns.
    Wrong("a constant column", FIT, ("'flat'", "constant", "--drop flat"), {"t.csv": csv(flat="1")}),
    Wrong("a constant label", FIT, ("'site'", "constant"), {"t.csv": csv(site="Oslo")}),
    Wrong("six constant columns", FIT, ("Columns 'c0'", "are constant", "--drop c0 --drop c1 --drop c2 --drop c3 --drop c4 --drop c5"), {"t.csv": csv(**{f"c{i}": str(i) for i in range(6)})}),
    Wrong("nothing but constant columns", FIT, ("None of the 3 columns varies",), {"t.csv": csv(a="1", x="2", z="3")}),
    Wrong("a repeated column", FIT, ("'x2'", "repeats column 'x'"), {"t.csv": csv(x2=[f"{(7 * i) % 11 + 0.5}" for i in range(ROWS)])}),
    Wrong("empty, constant and repeated", FIT, ("'flat'", "'x2'"), {"t.csv": csv(e="", flat="1", x2=[f"{(7 * i) % 11 + 0.5}" for i in range(ROWS)])}),
    Wrong("no column beside the target", FIT, ("no feature column",), {"t.csv": csv(x=None, z=None)}),
    Wrong("one column beside the target", FIT, ("only one feature column",), {"t.csv": csv(z=None)}),
    Wrong("a column without a name", FIT, ("Column 1", "no name"), {"t.csv": csv().replace("x,", ",", 1)}),
    Wrong("two columns of one name", FIT, ("more than one column named 'x'",), {"t.csv": csv().replace("x,z", "x,x", 1)}),
    # Targets.
    Wrong("an empty target and a constant", FIT, ("'y'", "no value in any row", "'flat'"), {"t.csv": csv(y="", flat="1")}),
    Wrong("a target with units", FIT, ("'y'", "unit"), {"t.csv": csv(y=[f"{i} years" for i in range(ROWS)])}),
    Wrong("a target with an oops", FIT, ("'y'", "oops"), {"t.csv": csv(y=first("oops"))}),
    Wrong("a target of one value", FIT, ("'y'", "always"), {"t.csv": csv(y="3.5")}),
    Wrong("one class", FIT, ("'y'", "only one class"), {"t.csv": csv(y="old")}),
    Wrong("a class of one row", FIT, ("'b'", "fewer than 3 rows"), {"t.csv": csv(y=["b"] + ["a", "c"] * 11 + ["a"])}),
    Wrong("names as a target", FIT, ("'y'", "24 different values"), {"t.csv": csv(y=IDS)}),
    Wrong("text for regression", f"{FIT} --task regression", ("'y'", "not numbers", "--task classification"), {"t.csv": csv(y=["a", "b"] * 12)}),
    Wrong("a target beyond all bounds", FIT, ("'y'", "beyond"), {"t.csv": csv(y=first("1e200"))}),
    Wrong("an infinite target", FIT, ("'y'", "infinity"), {"t.csv": csv(y=first("inf"))}),
    # Rows and ids.
    Wrong("too few rows", FIT, ("5 rows", "at least 10"), {"t.csv": csv(rows=5)}),
    Wrong("too few rows and a constant", FIT, ("'flat'", "5 rows"), {"t.csv": csv(rows=5, flat="1")}),
    Wrong("only a header", FIT, ("no rows",), {"t.csv": "x,z,y\n"}),
    Wrong("no complete row", f"{FIT} --complete-rows", ("No row", "--complete-rows"), {"t.csv": csv(a=["", "1"] * (ROWS // 2), b=["2", ""] * (ROWS // 2))}),
    Wrong("ids that are missing", f"{FIT} --id who", ("no id", "'who'", "row 1"), {"t.csv": csv(who=first("", IDS[1:]))}),
    Wrong("one person", f"{FIT} --id who", ("one person",), {"t.csv": csv(who="me")}),
    Wrong("tables that share no id", "fit t.csv u.csv --target y --id who", ("No id of", "'s00'", "'p0'"), {"t.csv": csv(who=IDS), "u.csv": csv(x=None, z=None, y=None, w=[str(i % 5) for i in range(ROWS)], who=[f"p{i}" for i in range(ROWS)])}),
    Wrong("two tables without an id", "fit t.csv u.csv --target y", ("no id to join",), {"t.csv": csv(), "u.csv": csv(y=None)}),
    Wrong("a column in both tables", "fit t.csv u.csv --target y --id who", ("'x'", "stands in"), {"t.csv": csv(who=IDS), "u.csv": csv(y=None, z=None, who=IDS)}),
    # Files.
    Wrong("no such table", "fit nowhere.csv --target y", ("nowhere.csv", "does not exist")),
    Wrong("no such table and a wrong option", "fit nowhere.csv --target y --task guess", ("nowhere.csv", "--task")),
    Wrong("a row with too many cells", FIT, ("Row 2", "4 cells"), {"t.csv": csv().replace("\n", ",9\n", 3).replace("y,9", "y", 1).replace(",9\n", "\n", 1)}),
    Wrong("a quote that is never closed", FIT, ("quote",), {"t.csv": csv() + '1,2,"3\n4,5,6\n7,8,9\n'}),
    Wrong("binary under a csv's name", FIT, ("t.csv", "not text"), {"t.csv": b"\x00\x01\x02\x03"}),
    Wrong("no text", FIT, ("UTF-8",), {"t.csv": csv(site="Malm\u00f6\u0081").encode("latin-1")}),
    # Options.
    Wrong("four wrong options", f"{FIT} --task guess --folds 1 --l1-scale -1 --out ''", ("--l1-scale", "--task", "--folds", "--out"), PLAIN),
    Wrong("an unknown way with repeats", f"{FIT} --duplicates both", ("--duplicates", "'first'"), PLAIN),
    Wrong("a measure that is none", f"{FIT} --measures weight", ("--measures", "'thickness'"), PLAIN),
    Wrong("measures of a plain table", f"{FIT} --measures thickness", ("--measures", "t.csv"), PLAIN),
]  # fmt: skip
