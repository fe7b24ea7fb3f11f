"""The contestants of the training benchmark compute the same thing, so their times can be compared."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks.train import ours
from benchmarks.train.reference import Algorithm1, Network, unit_norm
from benchmarks.train.rows import OURS, read
from benchmarks.train.task import Shape, Task, drawn_task
from benchmarks.train.touched import functions_entered

from precisionnet import PNNRegressor
from precisionnet.joint.trainer import Trainer
from precisionnet.nn import PolynomialFilter

SHAPES = [Shape(1, 4, 2, readout_width=5), Shape(2, 3, 3, readout_width=5)]
FLOAT32 = {"rtol": 2e-3, "atol": 2e-4}
"""Adam divides by the root of a running square, so where that is small rounding of the gradient shows."""


@pytest.fixture(scope="module")
def task() -> Task:
    return drawn_task(120, 8)


@pytest.fixture
def network(task, shape) -> Network:
    torch.manual_seed(0)
    return Network(task.n_nodes, shape)


def tag_network(*arguments: Any) -> Network:
    """Import PyTorch Geometric where it is needed: three seconds that every worker would take."""
    from benchmarks.train import tagconv

    return tagconv.tag_network(*arguments)


def start(task: Task) -> torch.Tensor:
    return torch.from_numpy(task.start.precision)


def parameters(network: Network, shape: Shape) -> list[torch.Tensor]:
    """In the order of the library's network: layer after layer, then the readout."""
    layers = zip(network.filters, network.norms, strict=True)
    return [t for f, norm in layers for t in (*f.parameters(), *norm.parameters())] + readout(network, shape)


def readout(network: Network, shape: Shape) -> list[torch.Tensor]:
    """Its first weights in the library's order."""
    first, *others = network.readout.parameters()
    return [ours.features_first(first, shape.n_filters), *others]


def trained_weights(run: Trainer) -> list[torch.Tensor]:
    """What is trained of the library's network, without the running moments."""
    return [value for name, value in run.kept.networks[0].items() if "running" not in name and "num_" not in name]


def one_epoch(program: Algorithm1) -> Algorithm1:
    program.theta_steps()
    program.task_steps(program.recipe.steps)
    program.weight_steps(program.recipe.steps)
    return program


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_an_epoch_of_the_reference_is_an_epoch_of_ours(task, shape, network):
    """With the printed Step 1 in both; the default Step 1 of ours solves the problem instead."""
    run = ours.training(task, shape, network, step1="paper")
    run.advance()
    kept = run.kept
    program = one_epoch(Algorithm1(network, task, start(task)))
    torch.testing.assert_close(program.theta, torch.from_numpy(kept.theta[0]).float(), **FLOAT32)
    torch.testing.assert_close(program.theta_task, torch.from_numpy(kept.theta_task[0]).float(), **FLOAT32)
    for theirs, mine in zip(parameters(network, shape), trained_weights(run), strict=True):
        torch.testing.assert_close(theirs.detach(), mine, **FLOAT32)
    assert not torch.allclose(program.theta_task, start(task).float(), **FLOAT32)


@pytest.mark.parametrize("layout", ["batch", "signals"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_an_epoch_with_tagconv_is_an_epoch_of_the_reference(task, shape, network, layout):
    tag = one_epoch(Algorithm1(tag_network(task.n_nodes, shape, network, layout), task, start(task)))
    program = one_epoch(Algorithm1(network, task, start(task)))
    torch.testing.assert_close(tag.theta_task, program.theta_task, **FLOAT32)
    for theirs, other in zip(network.readout.parameters(), tag.network.readout.parameters(), strict=True):
        torch.testing.assert_close(theirs, other, **FLOAT32)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_weights_alone_on_a_fixed_graph(task, shape, network):
    """Ours ("glasso"), the reference without Steps 1 and 2, and TAGConv on the edges of theta only."""
    run = ours.training(task, shape, network, method="glasso")
    run.advance()
    graph = start(task).float()
    assert (graph == 0).any()
    layouts = ("batch", "signals", "sparse matrix")
    tags = [tag_network(task.n_nodes, shape, network, layout, graph) for layout in layouts]
    x, shift = task.validation.x, unit_norm(graph)
    for tag in tags:
        torch.testing.assert_close(tag(x, shift), network(x, shift))
    for made in (network, *tags):
        program = Algorithm1(made, task, graph)
        program.weight_steps(task.recipe.steps)
        for theirs, mine in zip(readout(made, shape), trained_weights(run)[-4:], strict=True):
            torch.testing.assert_close(theirs.detach(), mine, **FLOAT32)
    for theirs, mine in zip(parameters(network, shape), trained_weights(run), strict=True):
        torch.testing.assert_close(theirs.detach(), mine, **FLOAT32)


@pytest.mark.parametrize("layout", ["batch", "signals"])
def test_the_filter_of_tagconv_is_ours(task, layout):
    """Values, and derivatives with respect to the shift."""
    torch.manual_seed(0)
    shape = Shape(1, 4, 3)
    network = Network(task.n_nodes, shape)
    mine = PolynomialFilter(1, 4, 3)
    with torch.no_grad():
        mine.weight.copy_(network.filters[0].weight)
    tag = tag_network(task.n_nodes, shape, network, layout).filters[0]
    x = task.train.x
    shifts = [unit_norm(start(task).float()).requires_grad_() for _ in range(2)]
    outputs = [mine(x, shifts[0]), tag(x, shifts[1])]
    torch.testing.assert_close(*outputs)
    gradients = [torch.autograd.grad(o.square().sum(), s)[0] for o, s in zip(outputs, shifts, strict=True)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-3)


@pytest.mark.slow
def test_quick_run_writes_rows_and_page(tmp_path):
    command = [sys.executable, "-m", "benchmarks.train.run", "--quick", "--out", str(tmp_path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=Path(__file__).parents[1], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = read(tmp_path / "train_bench.csv")
    assert {row.what for row in rows} == {"joint epoch", "weights epoch", "default fit", "to the target"}
    assert all(row.seconds > 0 for row in rows)
    assert all(row.times_ours == 1.0 for row in rows if row.contestant == OURS and row.status == "measured")
    page = (tmp_path / "train_bench.md").read_text(encoding="utf-8")
    assert "| asked, one thread | measured | met |" in page
    assert "| eight members: at most 3x one member's time" in page


@pytest.mark.slow
def test_fits_beside_an_earlier_checkout(tmp_path):
    """This checkout stands for the earlier one: both learn the same, and workers change no bit."""
    root, file = Path(__file__).parents[1], tmp_path / "rebuild.csv"
    command = [sys.executable, "-m", "benchmarks.train.before", "--before", str(root), "--quick", "--repeats", "1"]
    command += ["--only", "default fit, n_jobs=2", "--out", str(file)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with file.open(encoding="utf-8", newline="") as lines:
        (row,) = csv.DictReader(lines)
    assert float(row["ratio"]) > 0
    assert row["mae_before"] == row["mae_now"]
    assert row["identical"] == "yes"
    assert str(root) not in file.read_text(encoding="utf-8")


FILES, FUNCTIONS = 43, 264
"""Most that one default fit may go through: somebody who follows it has to read them all."""


@pytest.mark.filterwarnings("ignore::precisionnet.errors.PrecisionNetWarning")
def test_one_fit_can_be_followed(task):
    def fit() -> None:
        PNNRegressor(max_epochs=6, random_state=0).fit(task.raw_train.X, task.raw_train.y)

    touched = functions_entered(fit)
    assert len({file for file, _, _ in touched}) <= FILES
    assert len(touched) <= FUNCTIONS
    assert any(name == "MemberStack.epoch" for _, _, name in touched)  # it has watched


def test_the_decision_quotes_what_was_counted():
    """Counted on ABIDE's rows by ``benchmarks.train.touched``; run it again where the decision is to be brought up to date."""
    root = Path(__file__).parents[1]
    with (root / "results" / "fit_size.csv").open(encoding="utf-8", newline="") as lines:
        counts = {row["file"]: int(row["functions"]) for row in csv.DictReader(lines)}
    total = counts.pop("all")
    assert sum(counts.values()) == total
    text = " ".join((root / "docs" / "decisions" / "0010-middle-floor.md").read_text(encoding="utf-8").split())
    assert f"{total} in {len(counts)} files on ABIDE's rows" in text
    solver = [count for file, count in counts.items() if file.startswith("precision/")]
    assert f"The solver's share is {sum(solver)} in {len(solver)} files" in text
