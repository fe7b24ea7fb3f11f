"""The nodes of encoded columns: whose they are, and which of them are measurements. Light: no scikit-learn here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from precisionnet.preprocessing.table_columns import EncodedColumn
from precisionnet.types import BoolArray, IndexArray


def read_columns(said: Any) -> tuple[EncodedColumn, ...]:
    """Return the columns of what ``TableEncoder.to_document`` wrote; whatever it cannot have written is a ValueError.

    Parameters
    ----------
    said : dict
        The document.

    Returns
    -------
    tuple of EncodedColumn
        How each column of the table becomes nodes.

    Examples
    --------
    >>> import pandas as pd
    >>> from precisionnet.preprocessing import TableEncoder
    >>> encoder = TableEncoder().fit(pd.DataFrame({"dose": [1.0, 2.0, 3.0], "smoker": ["yes", "no", "no"]}))
    >>> [column.kind for column in read_columns(encoder.to_document())]
    ['number', 'boolean']
    """
    if not isinstance(said, dict) or set(said) != {"indicator_share", "columns"}:
        raise ValueError("the encoder has other fields")
    share, columns = said["indicator_share"], said["columns"]
    if type(share) not in (int, float) or not 0 <= share <= 1 or not isinstance(columns, list):
        raise ValueError("the encoder contradicts itself")
    read = tuple(EncodedColumn.from_document(column) for column in columns)
    if len({column.name for column in read}) < len(read):
        raise ValueError("a column of the encoder stands twice")
    return read


def node_columns(columns: Sequence[EncodedColumn]) -> tuple[list[str], IndexArray]:
    """Return the columns that have nodes, and of each node the position of its column among them.

    Parameters
    ----------
    columns : sequence of EncodedColumn
        Columns of a table.

    Returns
    -------
    names : list of str
        Columns with at least one node.
    of_node : ndarray of shape (n_nodes,)
        Positions in ``names``.

    Examples
    --------
    >>> import pandas as pd
    >>> from precisionnet.preprocessing import EncodedColumn
    >>> columns = [EncodedColumn.fit(pd.Series([1.0, None, 3.0], name="dose"))]
    >>> node_columns(columns)
    (['dose'], array([0, 0]))
    """
    used = [column for column in columns if column.node_names]
    return [column.name for column in used], np.repeat(np.arange(len(used)), [len(one.node_names) for one in used])


def signed_columns(columns: Sequence[EncodedColumn]) -> BoolArray:
    """Return which of the columns that have nodes have a direction: all but those of several levels without an order.

    Parameters
    ----------
    columns : sequence of EncodedColumn
        Columns of a table.

    Returns
    -------
    ndarray of bool
        One for each column with at least one node; the first node of such a column has its direction.

    Examples
    --------
    >>> import pandas as pd
    >>> from precisionnet.preprocessing import EncodedColumn
    >>> table = {"city": ["Lund", "Graz", "Bari"], "dose": [1.0, None, 3.0]}
    >>> signed_columns([EncodedColumn.fit(pd.Series(cells, name=name)) for name, cells in table.items()])
    array([False,  True])
    """
    used = [column for column in columns if column.node_names]
    return np.array([column.kind != "category" or len(column.node_names) == 1 for column in used], dtype=bool)


def measured_nodes(columns: Sequence[EncodedColumn]) -> IndexArray:
    """Return the nodes that are a measurement or a date, not a label, a place on a scale or a sign of a gap.

    Parameters
    ----------
    columns : sequence of EncodedColumn
        Columns of a table.

    Returns
    -------
    ndarray of int
        Their positions among all nodes.

    Examples
    --------
    >>> import pandas as pd
    >>> from precisionnet.preprocessing import EncodedColumn
    >>> table = {"sex": ["f", "m", "m"], "dose": [1.0, None, 3.0], "age": [30.0, 40.0, 50.0]}
    >>> columns = [EncodedColumn.fit(pd.Series(cells, name=name)) for name, cells in table.items()]
    >>> measured_nodes(columns)
    array([1, 3])
    """
    kinds = [(column.kind, place) for column in columns for place in range(len(column.node_names))]
    return np.flatnonzero([kind in ("number", "date") and place == 0 for kind, place in kinds])
