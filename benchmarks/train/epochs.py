"""Time of one epoch: every contestant in turn, again and again, so that all meet the same moods of the machine.

An epoch is Step 1, 20 steps of theta_task and 20 of Adam ("joint"), or the 20 of Adam alone on a graph that is kept
("weights"); and the validation error, without which nobody knows when to stop. Ours is timed with all that
``Trainer.advance`` does besides: it evaluates the objective and the training rows as well.

TAGConv on all pairs of nodes is slow, so a share of its 20 + 20 steps is timed and their time multiplied; Step 1 and
the validation error are timed whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from benchmarks.train import ours
from benchmarks.train.reference import Algorithm1, Network
from benchmarks.train.rows import OURS, Row
from benchmarks.train.tagconv import Layout, tag_network
from benchmarks.train.task import Shape, Task
from benchmarks.train.threads import threads

Timer = Callable[[], float]
"""Goes on by one epoch (or a share of one) and says how long one takes."""


@dataclass(frozen=True)
class Contestant:
    """Who, and how it is timed."""

    name: str
    timer: Timer
    note: str = ""


def seconds(call: Callable[[], object]) -> float:
    """Of one call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def epoch_timer(program: Algorithm1, *, joint: bool, steps: int | None = None) -> Timer:
    """Times ``steps`` of each kind (all by default) and reckons with the recipe's number."""
    steps = program.recipe.steps if steps is None else steps

    def timer() -> float:
        once = seconds(program.validation_mae)
        many = 0.0
        if joint:
            once += seconds(program.theta_steps)
            many += seconds(lambda: program.task_steps(steps))
        many += seconds(lambda: program.weight_steps(steps))
        return once + many * program.recipe.steps / steps

    return timer


def joint_contestants(task: Task, shape: Shape, tag_steps: int) -> list[Contestant]:
    """Ours first."""
    network, start = start_network(task, shape), torch.from_numpy(task.start.precision)

    def tag(layout: Layout) -> Timer:
        program = Algorithm1(tag_network(task.n_nodes, shape, network, layout), task, start)
        return epoch_timer(program, joint=True, steps=tag_steps)

    exact, printed = ours.training(task, shape, network), ours.training(task, shape, network, step1="paper")
    note = f"{tag_steps} of {task.recipe.steps} steps timed" if tag_steps < task.recipe.steps else ""
    return [
        Contestant(OURS, lambda: seconds(exact.advance)),
        Contestant(f"{OURS}, printed Step 1", lambda: seconds(printed.advance)),
        Contestant("reference", epoch_timer(Algorithm1(copy(network, task, shape), task, start), joint=True)),
        Contestant("TAGConv, signals on one graph", tag("signals"), note),
        Contestant("TAGConv, batch of graphs", tag("batch"), note),
    ]


def weights_contestants(task: Task, shape: Shape) -> list[Contestant]:
    """Ours first. The graph is theta as it starts, most of it zero."""
    network, start = start_network(task, shape), torch.from_numpy(task.start.precision).float()
    training = ours.training(task, shape, network, method="glasso")
    layouts: dict[str, Layout] = {"TAGConv, sparse matrix": "sparse matrix", "TAGConv, batch of graphs": "batch"}
    programs = {"reference": copy(network, task, shape)} | {
        name: tag_network(task.n_nodes, shape, network, layout, start) for name, layout in layouts.items()
    }
    return [Contestant(OURS, lambda: seconds(training.advance))] + [
        Contestant(name, epoch_timer(Algorithm1(made, task, start), joint=False)) for name, made in programs.items()
    ]


def start_network(task: Task, shape: Shape, seed: int = 0) -> Network:
    """Where all start."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Network(task.n_nodes, shape)


def copy(network: Network, task: Task, shape: Shape) -> Network:
    """The same weights in tensors of their own."""
    made = Network(task.n_nodes, shape)
    made.load_state_dict(network.state_dict())
    return made


def measure_epochs(
    what: str, task: Task, shape: Shape, contestants: Sequence[Contestant], numbers: Sequence[int], repeats: int
) -> Iterator[Row]:
    """A row a contestant and number of threads."""
    cases = [(contestant, number) for number in numbers for contestant in contestants]
    times: dict[tuple[str, int], list[float]] = {(contestant.name, number): [] for contestant, number in cases}
    for repeat in range(repeats + 1):  # the first one warms up
        for contestant, number in cases:
            with threads(number):
                took = contestant.timer()
            if repeat:
                times[contestant.name, number].append(took)
    for contestant, number in cases:
        taken, baseline = times[contestant.name, number], times[contestants[0].name, number]
        ratio = median(t / b for t, b in zip(taken, baseline, strict=True))
        yield Row(
            what,
            task.name,
            str(shape),
            number,
            contestant.name,
            seconds=median(taken),
            times_ours=ratio,
            fastest=min(taken),
            slowest=max(taken),
            repeats=repeats,
            note=contestant.note,
        )
