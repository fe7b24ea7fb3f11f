"""Print docs/parameters.md: every model parameter, from the one table that the code uses."""

from precisionnet.parameters import PARAMETERS

HEAD = """# Parameters

Made by `make docs` from `src/precisionnet/parameters.py`, which the estimators and the command line use, too. On the
command line write `--n-layers 2` for `n_layers=2`, `--no-standardize` for `standardize=False`.

| name | default | paper | meaning |
|---|---|---|---|"""

print(HEAD)
for parameter in PARAMETERS:
    meaning = parameter.help + (f" One of {', '.join(parameter.choices)}." if parameter.choices else "")
    print(f"| `{parameter.name}` | `{parameter.default!r}` | {parameter.symbol} | {meaning} |")
print(
    "| `random_state` | `None` | | Seed of the validation split and the network's first weights; an integer gives "
    "bit-identical fits on one machine (`--seed` on the command line). |"
)
