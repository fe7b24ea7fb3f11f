"""Progress of fits and experiments: a bar with the time left on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from precisionnet.cli import console
from precisionnet.interrupts import Wish, ctrl_c_asks

if TYPE_CHECKING:
    from precisionnet.runner.run import Event

QUIET_SECONDS = 30.0
"""Without a terminal, at most one line is printed in so many seconds."""


class EpochBar:
    """The epochs of one or several fits, each at most ``max_epochs`` long, on one bar.

    Where there is only one fit, a Ctrl-C ends its training, and what was learned is kept; several it stops.
    """

    def __init__(self, progress: Progress, max_epochs: int, wish: Wish, only: bool) -> None:
        self._progress, self._max_epochs, self._wish, self._only = progress, max_epochs, wish, only
        self._task = progress.add_task("training", total=max_epochs, losses="")
        self.note = ""
        """The sentence on a training that Ctrl-C ended; empty if none was."""

    def count_fits(self, done: int, total: int) -> None:
        """Move the bar to the end of so many fits, which may have stopped before their last epoch."""
        if self._wish.came:  # whole fits cannot test a network that was ended early
            raise KeyboardInterrupt
        self._only = self._wish.heard = False
        self._progress.update(self._task, completed=done * self._max_epochs, total=total * self._max_epochs)

    def advance(self, row: dict[str, float]) -> bool:
        """Take the history's row of one epoch; return whether it is to be the last."""
        losses = f"train {row['train_loss']:.3f}"
        if row["validation_loss"] == row["validation_loss"]:
            losses += f"  validation {row['validation_loss']:.3f}"
        self._progress.update(self._task, advance=1, losses=losses)
        epoch = int(row["epoch"])
        self._wish.heard = self._only and epoch < self._max_epochs
        if not self._wish.came or epoch >= self._max_epochs:
            return False
        self.note = f"Ctrl-C ended the training after epoch {epoch} of {self._max_epochs}: a whole one may do better."
        return True

    def finish(self) -> None:
        """Fill the bar: early stopping is an end, too."""
        self._progress.update(self._task, total=self._progress.tasks[0].completed)


@contextmanager
def epochs(max_epochs: int, *, only: bool) -> Iterator[EpochBar]:
    """Yield the bar of a training, which may be the only one; without a terminal nothing is drawn until the end."""
    columns = (
        TextColumn("training"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[losses]}"),
        TimeRemainingColumn(),
    )
    answer = "The training ends soon, and what was learned is kept; Ctrl-C again stops without writing."
    with Progress(*columns, console=console.err) as progress, ctrl_c_asks(answer) as wish:
        bar = EpochBar(progress, max_epochs, wish, only)
        yield bar
        bar.finish()


@contextmanager
def fits(clock: Callable[[], float] = time.monotonic) -> Iterator[Callable[[Event], None]]:
    """Yield what is to be called with every event of the runner."""
    if not console.err.is_terminal:
        yield _Lines(clock)
        return
    columns = (TextColumn("fits"), BarColumn(bar_width=24), MofNCompleteColumn(), _TimeLeft(clock))
    with Progress(*columns, console=console.err, transient=True) as progress:
        yield _Bar(progress, clock)


@contextmanager
def counted_fits(clock: Callable[[], float] = time.monotonic) -> Iterator[Callable[[int, int], None]]:
    """Yield what is to be called with the number of fits that are done and of all, first before any is run."""
    from precisionnet.runner.run import Event

    with fits(clock) as on_event:
        begun: tuple[float, int] | None = None

        def on_fit(done: int, total: int) -> None:
            nonlocal begun
            if begun is None:
                begun = clock(), done
                on_event(Event("resumed" if done else "started", done, total))
                return
            started, before = begun
            left = (clock() - started) / max(done - before, 1) * (total - done)
            on_event(Event("finished", done, total, seconds_left=left))

        yield on_fit


def time_left(seconds: float) -> str:
    """'about 3 min left', as precise as a guess deserves."""
    if seconds < 10:
        return "a few seconds left"
    if seconds < 90:
        return f"about {round(seconds / 10) * 10:.0f} s left"
    if seconds < 90 * 60:
        return f"about {seconds / 60:.0f} min left"
    return f"about {seconds / 3600:.1f} h left"


class _Lines:
    """A plain line at the start, at the end, and in between when some time has passed."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._said = clock, clock()

    def __call__(self, event: Event) -> None:
        if event.kind == "resumed":
            console.note(_resumed(event.done, event.total))
            return
        over = event.kind == "finished" and event.done == event.total
        if event.kind != "finished" or (not over and self._clock() - self._said < QUIET_SECONDS):
            return
        self._said = self._clock()
        left = f", {time_left(event.seconds_left)}" if event.seconds_left is not None and not over else ""
        console.err.print(Text(f"{event.done} of {event.total} fits{left}"))


class _Bar:
    """A bar that shows the fits done and the time left."""

    def __init__(self, progress: Progress, clock: Callable[[], float]) -> None:
        self._progress, self._clock = progress, clock
        self._task: Any = progress.add_task("fits", total=None, deadline=None)

    def __call__(self, event: Event) -> None:
        if event.kind == "resumed":
            console.note(_resumed(event.done, event.total))
        left = event.seconds_left
        deadline = None if left is None or event.done == event.total else self._clock() + left
        self._progress.update(self._task, completed=event.done, total=event.total, deadline=deadline)


class _TimeLeft(ProgressColumn):
    """Counts down between events; nothing until there is something to guess from."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock

    def render(self, task: Task) -> Text:
        """Return the guess, or nothing."""
        deadline = task.fields.get("deadline")
        return Text("" if deadline is None else time_left(max(0.0, deadline - self._clock())))


def _resumed(done: int, total: int) -> str:
    """Say how many fits of an earlier run are there already."""
    if done >= total:
        return f"All {total} fits are already here; nothing is fitted again."
    return f"Going on from an earlier run: {done} of {total} fits are already here."
