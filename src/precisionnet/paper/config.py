"""What an experiment is, as a small TOML file.

A file says only what differs from the defaults; its table ``[quick]`` overrides any of it for a run of minutes. Every
value is checked before anything runs: a mistake is one sentence with the file's name.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from precisionnet.arguments import check_choice, check_count, check_number, check_switch
from precisionnet.errors import InputError, did_you_mean, shown
from precisionnet.experiments.config_data import checked_data, refuse_unknown
from precisionnet.parameters import BY_NAME

KindName = Literal["cohort", "synthetic", "theorem"]
SearchName = Literal["grid", "optuna", "none"]
KINDS: tuple[KindName, ...] = get_args(KindName)

PAPER_GRID: dict[str, list[Any]] = {
    "recipe": ["paper"],
    "n_layers": [1, 2, 3],
    "n_filters": [8, 16],
    "order": [1, 2, 3],
    "l1_scale": [1.0, 10.0, 20.0],
}
"""The values of the networks' parameters that the paper chose from, on validation rows."""

# Small, because every choice is eight networks to train; what else a recipe holds was measured once and for all.
STANDARD_GRID: dict[str, list[Any]] = {"recipe": ["standard"], "n_layers": [1, 2]}
"""What networks of the standard recipe choose from."""

GRIDS = {"paper": PAPER_GRID, "standard": STANDARD_GRID}
"""By recipe."""

FRACTIONS = (0.6, 0.2, 0.2)
"""Training, validation and test, as in the paper."""
CONFIGS = Path(__file__).parent / "paper" / "configs"
_NOT_TUNED = ("method", "validation_fraction", "missing")
"""Parameters of a network that the protocol decides about."""


@dataclass(frozen=True)
class Tuning:
    """How parameters are chosen on the validation rows."""

    search: SearchName = "grid"
    """grid (every combination), optuna (a budget of ``trials``) or none (every method at its defaults)."""
    trials: int = 20
    race: bool = True
    """Give candidates up early that fall behind the others on the validation rows."""

    def __post_init__(self) -> None:
        check_choice("search", self.search, get_args(SearchName))
        check_count("trials", self.trials, 1)
        check_switch("race", self.race)

    @property
    def tuned(self) -> bool:
        """Whether there is anything to choose."""
        return self.search != "none"


@dataclass(frozen=True)
class Config:
    """A checked experiment; equal experiments are equal here, whether written as 1 or as 1.0."""

    name: str
    kind: KindName
    methods: tuple[str, ...] = ()
    repeats: int = 5
    seed: int = 0
    fractions: tuple[float, float, float] = FRACTIONS
    """Training, validation and test rows."""
    tuning: Tuning = field(default_factory=Tuning)
    networks: Mapping[str, list[Any]] = field(default_factory=dict)
    """Values to choose from by parameter of the networks; what is not given is the recipe's, by default the paper's."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """What the kind of experiment needs to know; see ``config_data``."""
    expected: Mapping[str, str] = field(default_factory=dict)
    """What to expect of the "full" and the "quick" run, and how long they take: words for the reader."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InputError(f"name must be a few words, got {shown(self.name)}.")
        check_choice("kind", self.kind, KINDS)
        check_count("repeats", self.repeats, 1)
        check_count("seed", self.seed, 0)
        check_number("seed", self.seed, high=2**32)
        if not isinstance(self.tuning, Tuning):
            raise InputError(f"tuning must be a table of search, trials and race, got {shown(self.tuning)}.")
        set_ = object.__setattr__  # frozen for everybody else
        set_(self, "methods", _methods(self.methods, self.kind))
        set_(self, "fractions", _fractions(self.fractions))
        set_(self, "networks", checked_networks(self.networks, tuned=self.tuning.tuned))
        set_(self, "data", checked_data(self.kind, self.data))
        set_(self, "expected", _expected(self.expected))

    def hashed(self) -> dict[str, Any]:
        """Everything that can change a number, as JSON values."""
        values = asdict(self)
        del values["expected"]
        return values | {"methods": list(self.methods), "fractions": list(self.fractions)}


def load_config(path: str | Path, quick: bool = False) -> Config:
    """Read and check a file."""
    document = _read(path)
    try:
        overrides = document.pop("quick", {})
        _table("quick", overrides)
        refuse_unknown("quick.", overrides, _KEYS)
        merged = _merged(document, overrides) if quick else document
        refuse_unknown("", merged, _KEYS)
        for needed in ("name", "kind"):
            if needed not in merged:
                raise InputError(f"the key {needed!r} is missing; add it at the top.")
        tuning = _table("tuning", merged.get("tuning", {}))
        refuse_unknown("tuning.", tuning, [part.name for part in fields(Tuning)])
        return Config(**merged | {"tuning": Tuning(**tuning)})
    except InputError as error:
        raise InputError(f"Config {str(path)!r}: {error}") from error


def builtin(name: str) -> Path:
    """The file of an experiment that comes with the package."""
    path = CONFIGS / f"{name}.toml"
    known = sorted(path.stem for path in CONFIGS.glob("*.toml"))
    if name not in known:
        raise InputError(
            f"There is no experiment {shown(name)}{did_you_mean(name, known)}: choose one of {', '.join(known)} "
            "or pass the path of a .toml file."
        )
    return path


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
    """Tables are joined key by key, everything else is replaced."""
    merged = dict(document)
    for key, value in overrides.items():
        both_tables = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merged(merged[key], value) if both_tables else value
    return merged


def _table(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{name} must be a table, written below a line [{name}], got {shown(value)}.")
    return dict(value)


def _methods(methods: Any, kind: KindName) -> tuple[str, ...]:
    # The registry builds on scikit-learn's models; whoever needs only Tuning does without.
    from precisionnet.experiments.methods.registry import check_methods

    if not isinstance(methods, list | tuple) or not all(isinstance(name, str) for name in methods):
        raise InputError(f"methods must be a list of names, got {shown(methods)}.")
    if not methods and kind == "theorem":
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
