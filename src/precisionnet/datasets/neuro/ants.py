"""ANTs thickness: Kirby's scan and rescan, which the label table does not tell apart.

The Kirby (MMRR) rows of the public label tables are two scans each of 21 people, one scan missing, without a person id.
The two scans of a person share sex and age; so all scans of equal sex and age are taken for one person, which never
tears a pair apart (and puts a few strangers together, which costs nothing).
"""

from __future__ import annotations

from precisionnet.datasets.table_files import as_text
from precisionnet.datasets.roles import find
from precisionnet.datasets.joining import PERSON, Part

KIRBY = "kirby"


def pair_kirby(part: Part) -> Part:
    """Say who the Kirby rows are of, where there are any."""
    names = [find(name, part.facts.columns) for name in ("SITE", "SEX", "AGE")]
    if None in names or part.ids is None:
        return part
    site, sex, age = (as_text(part.facts[name]) for name in names if name is not None)
    is_kirby = site.str.lower() == KIRBY
    if not is_kirby.any():
        return part
    person = part.facts[PERSON] if PERSON in part.facts.columns else part.ids
    person = person.where(~is_kirby, "kirby-sex" + sex.astype(str) + "-age" + age.astype(str))
    note = (
        f"{int(is_kirby.sum())} Kirby rows are scan and rescan without a person id: rows of equal sex and age count as "
        "one person."
    )
    return part.with_facts(**{PERSON: person}).noting(note)
