"""What an experiment is, as a small TOML file.

A file says only what differs from the defaults; its table ``[quick]`` overrides any of it for a run of minutes. Every
value is checked before anything runs: a mistake is one sentence with the file's name.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from precisionnet.arguments import check_choice, check_count, check_number
from precisionnet.datasets.graphs import GRAPHS
from precisionnet.datasets.synthetic import PARAMETERS as DRAWN
from precisionnet.errors import InputError, did_you_mean, shown
from precisionnet.evaluation.methods import check_methods, checked_networks, refuse_unknown
from precisionnet.evaluation.protocol import FRACTIONS
from precisionnet.evaluation.tuning import Tuning
from precisionnet.paper.readings import with_reading
from precisionnet.parameters import BY_NAME, Parameter

KindName = Literal["cohort", "synthetic", "theorem", "convergence", "stability"]
KINDS: tuple[KindName, ...] = get_args(KindName)
READ_TWICE = ("cohort", "synthetic")
"""Kinds that train networks to compare them: each is run in both readings of the paper."""
COHORTS = ("abide", "ants", "adni")
CONFIGS = Path(__file__).parent / "configs"
ORDER = ("synthetic", "abide", "ants", "adni", "theorem")
"""Those of the paper come first; the others follow by name."""


@dataclass(frozen=True)
class Config:
    """A checked experiment; equal experiments are equal here, whether written as 1 or as 1.0.

    Parameters
    ----------
    name : str
        Name of the experiment.
    kind : {"cohort", "synthetic", "theorem", "convergence", "stability"}
        What is measured: methods on a brain cohort or on drawn rows, Theorem 1, how training converges, or how far few
        rows move predictions.
    methods : tuple of str, default=()
        The methods that are compared.
    repeats : int, default=5
        Number of splits or draws.
    seed : int, default=0
        Seed of splits, draws and fits.
    fractions : tuple of float, default=(0.6, 0.2, 0.2)
        Shares of training, validation and test rows.
    tuning : Tuning, default=Tuning()
        How parameters are chosen.
    networks : mapping of str to list, default={}
        Values to choose from by parameter of the networks. What is not given is the recipe's, by default the paper's.
    data : mapping, default={}
        What the kind of experiment needs: the cohort, or how rows are drawn.
    expected : mapping of str to str, default={}
        What to expect of the "full" and the "quick" run, and how long they take.

    Examples
    --------
    >>> from precisionnet.paper import Config
    >>> Config("mine", "cohort", methods=("ridge", "joint"), data={"cohort": "abide"}).methods
    ('joint', 'ridge')
    """

    name: str
    kind: KindName
    methods: tuple[str, ...] = ()
    repeats: int = 5
    seed: int = 0
    fractions: tuple[float, float, float] = FRACTIONS
    tuning: Tuning = field(default_factory=Tuning)
    networks: Mapping[str, list[Any]] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    expected: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InputError(f"name must be a few words, got {shown(self.name)}.")
        check_choice("kind", self.kind, KINDS)
        check_count("repeats", self.repeats, 1)
        check_count("seed", self.seed, 0)
        check_number("seed", self.seed, high=2**32)
        if not isinstance(self.tuning, Tuning):
            raise InputError(f"tuning must be a table of search, trials and race, got {shown(self.tuning)}.")
        set_ = object.__setattr__  # the class is frozen
        _refuse_without_effect(self)
        set_(self, "methods", _methods(self.methods, self.kind))
        set_(self, "fractions", _fractions(self.fractions))
        set_(self, "networks", checked_networks(self.networks, tuned=self.tuning.tuned))
        set_(self, "data", checked_data(self.kind, self.data))
        set_(self, "expected", _expected(self.expected))

    @property
    def read_twice(self) -> bool:
        """Whether the experiment is run in both readings of the paper."""
        return self.kind in READ_TWICE

    def hashed(self) -> dict[str, Any]:
        """Return everything that can change a number, as JSON values.

        Returns
        -------
        dict
            The values without ``expected``.
        """
        values = asdict(self)
        del values["expected"]
        return values | {"methods": list(self.methods), "fractions": list(self.fractions)}


def load_config(path: str | Path, quick: bool = False, reading: str | None = None) -> Config:
    """Read and check the file of an experiment.

    Parameters
    ----------
    path : str or Path
        A TOML file.
    quick : bool, default=False
        Whether the table ``[quick]`` overrides the rest.
    reading : {"paper", "flattened"}, default=None
        In which of the two readings networks are trained; by default as the file says, which is the paper's reading
        where it says nothing.

    Returns
    -------
    Config
        The checked experiment.

    Examples
    --------
    >>> from precisionnet.paper import builtin, load_config
    >>> load_config(builtin("abide")).repeats
    5
    """
    document = _read(path)
    try:
        overrides = document.pop("quick", {})
        _table("quick", overrides)
        refuse_unknown("quick.", overrides, _KEYS)
        merged = _merged(document, overrides) if quick else document
        refuse_unknown("", merged, _KEYS)
        if reading is not None:
            merged = merged | {"networks": with_reading(_table("networks", merged.get("networks", {})), reading)}
        for needed in ("name", "kind"):
            if needed not in merged:
                raise InputError(f"the key {needed!r} is missing; add it at the top.")
        tuning = _table("tuning", merged.get("tuning", {}))
        refuse_unknown("tuning.", tuning, [part.name for part in fields(Tuning)])
        return Config(**merged | {"tuning": Tuning(**tuning)})
    except InputError as error:
        raise InputError(f"Config {str(path)!r}: {error}") from error


def builtin(name: str) -> Path:
    """Return the file of an experiment that comes with the package.

    Parameters
    ----------
    name : str
        Such as "abide", "adni", "ants", "convergence", "stability", "synthetic" or "theorem"; see ``experiments``.

    Returns
    -------
    Path
        The TOML file.

    Examples
    --------
    >>> from precisionnet.paper import builtin
    >>> builtin("theorem").name
    'theorem.toml'
    """
    path, known = CONFIGS / f"{name}.toml", experiments()
    if name not in known:
        raise InputError(
            f"There is no experiment {shown(name)}{did_you_mean(name, known)}: choose one of {', '.join(known)}, "
            "or pass the path of a .toml file."
        )
    return path


def experiments() -> list[str]:
    """List the experiments that come with the package, in the order in which all of them are run.

    Returns
    -------
    list of str
        Their names.

    Examples
    --------
    >>> from precisionnet.paper import experiments
    >>> experiments()[0]
    'synthetic'
    """
    found = sorted(path.stem for path in CONFIGS.glob("*.toml"))
    return [*(name for name in ORDER if name in found), *(name for name in found if name not in ORDER)]


_KEYS = [part.name for part in fields(Config)]


def _read(path: str | Path) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"Config {str(path)!r} is not TOML: {error}; correct that line.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"Config {str(path)!r} is not UTF-8 text: save it as such.") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"Config {str(path)!r} cannot be read ({reason}): pass the path of a .toml file.") from error


def _merged(document: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """Join tables key by key; replace everything else."""
    merged = dict(document)
    for key, value in overrides.items():
        both_tables = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merged(merged[key], value) if both_tables else value
    return merged


def _table(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{name} must be a table, written below a line [{name}], got {shown(value)}.")
    return dict(value)


def _refuse_without_effect(config: Config) -> None:
    """Refuse what the kind of experiment does not look at: a value that is given has to change something."""
    unread = {
        "theorem": ("methods", "networks", "tuning", "fractions"),
        "convergence": ("methods", "networks", "tuning"),
        "stability": ("fractions",),
    }
    defaults = {"methods": (), "networks": {}, "tuning": Tuning(), "fractions": FRACTIONS}
    for name in unread.get(config.kind, ()):
        value, default = getattr(config, name), defaults[name]
        if (tuple(value) if isinstance(value, list) else value) != default:
            raise InputError(f"{name} has no effect on an experiment of the kind {config.kind}: leave it out.")


def _methods(methods: Any, kind: KindName) -> tuple[str, ...]:
    if not isinstance(methods, list | tuple) or not all(isinstance(name, str) for name in methods):
        raise InputError(f"methods must be a list of names, got {shown(methods)}.")
    if not methods and kind in ("theorem", "convergence"):
        return ()
    return check_methods(methods, "regression")


def _fractions(fractions: Any) -> tuple[float, float, float]:
    fine = isinstance(fractions, list | tuple) and len(fractions) == 3
    if fine:
        for share in fractions:
            check_number("fractions", share, high=1.0, low_allowed=False)
    if not fine or abs(sum(fractions) - 1.0) > 1e-9:
        raise InputError(
            f"fractions must be the shares of training, validation and test rows and add up to 1, got "
            f"{shown(fractions)}: for example [0.6, 0.2, 0.2]."
        )
    train, validation, test = map(float, fractions)
    return train, validation, test


def _expected(expected: Mapping[str, str]) -> dict[str, str]:
    texts = _table("expected", expected)
    refuse_unknown("expected.", texts, ("full", "quick"))
    for name, text in texts.items():
        if not isinstance(text, str):
            raise InputError(f"expected.{name} must be text, got {shown(text)}.")
    return texts


_REQUIRED = object()
_SPARSITY = Parameter(
    "sparsity", None, "Share of the true precision's entries that are not zero.", high=1, closed="right"
)
_POSITIVE = Parameter("", None, "A number above zero.", closed="neither")
_ROWS = Parameter("", None, "Rows, as many as a fit needs at least.", int, low=4)


@dataclass(frozen=True)
class Entry:
    """One key of ``[data]``: what a value must be, and whether there is a list of them."""

    parameter: Parameter
    many: bool = False
    default: Any = _REQUIRED

    def checked(self, name: str, value: Any) -> Any:
        """Return the checked value, numbers as float where they need not be whole."""
        if not self.many:
            return self._one(name, value)
        if not isinstance(value, list | tuple) or not value:
            raise InputError(f"{name} must be a list of values, got {shown(value)}.")
        values = [self._one(name, item) for item in value]
        if len(set(values)) < len(values):
            raise InputError(f"{name} names a value twice: {shown(list(value))}; leave one of them out.")
        return values

    def _one(self, name: str, value: Any) -> Any:
        complaint = self.parameter.complaint(value)
        if complaint:
            raise InputError(f"{name} {complaint}.")
        return float(value) if self.parameter.kind is float else value


def _choice(*choices: str) -> Parameter:
    return Parameter("", None, "", str, choices=choices)


_BASE = {
    "n_features": Entry(DRAWN["n_features"]),
    "n_samples": Entry(DRAWN["n_samples"]),
    "sparsity": Entry(_SPARSITY),
}

ENTRIES: dict[str, dict[str, Entry]] = {
    "cohort": {"cohort": Entry(_choice(*COHORTS))},
    "synthetic": {
        "n_features": Entry(DRAWN["n_features"]),
        "n_samples": Entry(DRAWN["n_samples"]),
        "sparsity": Entry(_SPARSITY, many=True),
        "tuned_at": Entry(_SPARSITY),
        "snr": Entry(DRAWN["snr"], default=DRAWN["snr"].default),
        "graph": Entry(_choice(*GRAPHS), default="random"),
        "condition_number": Entry(DRAWN["condition_number"], default=DRAWN["condition_number"].default),
    },
    "theorem": {
        "n_samples": Entry(DRAWN["n_samples"], many=True),
        "n_features": Entry(DRAWN["n_features"], many=True),
        "sparsity": Entry(_SPARSITY, many=True),
        "l1_scale": Entry(_POSITIVE, default=BY_NAME["l1_scale"].of("paper")),
        "coupling": Entry(_POSITIVE, default=BY_NAME["coupling"].of("paper")),
        "distances": Entry(Parameter("", None, "Nuclear distance of an anchor from the truth."), many=True),
    },
    "convergence": {
        "tables": Entry(_choice("abide", "ants", "synthetic", "smooth"), many=True),
        "n_epochs": Entry(Parameter("n_epochs", None, "Epochs of training.", int, low=1, high=10**6, closed="both")),
        "l1_scale": Entry(_POSITIVE, default=BY_NAME["l1_scale"].of("paper")),
    },
    "stability": {
        "n_features": Entry(DRAWN["n_features"]),
        "sparsity": Entry(_SPARSITY),
        "n_fit": Entry(_ROWS),
        "n_samples": Entry(_ROWS, many=True),
        "cohort": Entry(Parameter("", None, "", str, choices=COHORTS, optional=True), default=None),
        "cohort_samples": Entry(_ROWS, many=True, default=(100, 200, 400)),
    },
}


def checked_data(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Check the table ``[data]`` and fill in its defaults."""
    if not isinstance(data, Mapping):
        raise InputError(f"data must be a table, written below a line [data], got {shown(data)}.")
    if kind != "theorem":
        checked = _checked("data.", data, ENTRIES[kind])
    else:
        base = data.get("base", {})
        if not isinstance(base, Mapping):
            raise InputError(f"data.base must be a table, written below a line [data.base], got {shown(base)}.")
        refuse_unknown("data.", data, ["base", *ENTRIES[kind]])
        rest = {name: value for name, value in data.items() if name != "base"}
        checked = {"base": _checked("data.base.", base, _BASE), **_checked("data.", rest, ENTRIES[kind])}
    if kind == "synthetic" and checked["tuned_at"] not in checked["sparsity"]:
        raise InputError(
            f"data.tuned_at is {checked['tuned_at']:g}, which is not in data.sparsity: add it there or choose one of "
            f"{', '.join(f'{level:g}' for level in checked['sparsity'])}."
        )
    return checked


def _checked(where: str, given: Mapping[str, Any], entries: Mapping[str, Entry]) -> dict[str, Any]:
    refuse_unknown(where, given, entries)
    checked = {}
    for name, entry in entries.items():
        if name not in given and entry.default is _REQUIRED:
            raise InputError(f"the key {where + name!r} is missing; add it.")
        checked[name] = entry.checked(where + name, given.get(name, entry.default))
    return checked
