"""One name, one thing."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import precisionnet

PACKAGE = Path(precisionnet.__file__).parent


def test_no_two_classes_of_modules_have_the_same_name():
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")]
    names = Counter(node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    assert len(names) > 100
    assert [name for name, times in names.items() if times > 1] == []
