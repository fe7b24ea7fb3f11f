"""Print docs/parameters.md: every model parameter, from the one table that the code uses."""

from precisionnet.parameters import PARAMETERS

HEAD = """# Parameters

Made by `make docs` from `src/precisionnet/parameter_table.py`, which the estimators and the command line use, too. On
the command line write `--n-layers 2` for `n_layers=2`, `--no-standardize` for `standardize=False`.

There are two recipes: `recipe="standard"`, found by measurement, and `recipe="paper"`, Algorithm 1 with the paper's
values, and the reading of `docs/notation.md` where the paper leaves a convention open (its Step 1 is solved to the end;
`step1="paper"` is the printed listing). Where they differ, both values are here, and the parameter is `None` until you
set it: what you set holds in either recipe. `model.settings` has every value that a fit runs with.

| name | standard | paper | symbol | meaning |
|---|---|---|---|---|"""

print(HEAD)
for parameter in PARAMETERS:
    meaning = parameter.help + (f" One of {', '.join(parameter.choices)}." if parameter.choices else "")
    paper = f"`{parameter.paper!r}`" if parameter.by_recipe else ""
    print(f"| `{parameter.name}` | `{parameter.default!r}` | {paper} | {parameter.symbol} | {meaning} |")
print(
    "| `random_state` | `None` | | | Seed of the rows set aside or left out, of first weights, of the order "
    "of rows and of noise; an integer gives bit-identical fits on one machine (`--seed` on the command line). |"
)
