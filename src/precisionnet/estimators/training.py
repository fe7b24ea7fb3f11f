"""From training data to a fitted model: the problem, its networks and members, the training, and what is kept."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd
import torch
from torch import nn

from precisionnet.errors import InputError, PrecisionNetWarning
from precisionnet.estimators.combination import finished
from precisionnet.estimators.explanation import TaskEffects, task_effects
from precisionnet.estimators.fitted import ALL_ROWS, Fitted, OutOfFold, training_device
from precisionnet.estimators.networks import NetworkFactory, linear_solutions, new_network, solved_network
from precisionnet.estimators.preparation import TrainingData, kinds_of, learned_target
from precisionnet.estimators.rows import FEWEST_FOLDS, Table, left_out_rows
from precisionnet.estimators.targets import NumberTarget, learns_logarithm
from precisionnet.joint.algorithm1 import Algorithm1, Schedule
from precisionnet.joint.member_stack import Member, Plan
from precisionnet.joint.monotone import Monotone
from precisionnet.joint.problem import GlassoCache, GraphTerms, JointProblem, Start, TensorRows, start_of
from precisionnet.joint.sparse_support import sparse_start
from precisionnet.joint.standard import StandardRecipe, trial_losses
from precisionnet.joint.trainer import Callback, HistoryRow, Snapshot, Trainer
from precisionnet.kinds import BETTER_BY, EVERY, KERNEL, LASSO, TRIAL, TRIAL_FOLDS, TRIED_FROM
from precisionnet.nn.network import Tensors
from precisionnet.nn.readout import QuantileLink
from precisionnet.parameters import LEARNED, Settings
from precisionnet.precision.rows import PenaltyTooSmall, rounded_up
from precisionnet.sparse_matrices import with_means
from precisionnet.threads import limited_threads, threads_for
from precisionnet.types import IndexArray


def train(
    data: TrainingData,
    settings: Settings,
    *,
    network: NetworkFactory | None = None,
    callbacks: Sequence[Callback] = (),
    n_jobs: int | None = None,
    resume: Fitted | None = None,
) -> Fitted:
    """Learn the precision matrix and the networks.

    ``resume`` is a model of the same shape whose networks and matrices training goes on from.
    """
    run = TrainingRun(data, settings, network=network, callbacks=callbacks, n_jobs=n_jobs, resume=resume, paused=False)
    with limited_threads(run.n_threads):
        while not run.trainer.done:
            run.trainer.advance()
        return run.finish()


class TrainingRun:
    """Training that goes on epoch by epoch, so that a search may pause it or give it up.

    ``cache`` is shared by runs on the same rows, so that they solve each graphical lasso once; ``keep`` says whether
    the best epoch or the last one is returned. ``carried`` are weights of a model of other columns, one state
    dictionary per member: they stay as they are, and only matrices are learned. ``solved`` are kinds and networks that
    are solved already, each kind's in the order of the folds; without it they are solved here. Where a run is not
    ``paused`` between epochs and has no callbacks, workers train to the end at once.
    """

    def __init__(
        self,
        data: TrainingData,
        settings: Settings,
        *,
        network: NetworkFactory | None = None,
        callbacks: Sequence[Callback] = (),
        n_jobs: int | None = None,
        resume: Fitted | None = None,
        cache: GlassoCache | None = None,
        keep: Literal["best", "last"] = "best",
        others: Sequence[TrainingData] = (),
        carried: Sequence[Tensors] = (),
        solved: Sequence[tuple[str, nn.Module]] | None = None,
        paused: bool = True,
    ) -> None:
        self._solved = solved
        self._settings, self._network, self._carried, self._n_jobs = settings, network, carried, n_jobs
        if others:
            _refuse_other_rows((data, *others), settings, resume)
        self._sizes = data.training.X.shape[1], data.target.n_outputs
        self._dtype, self._device = getattr(torch, settings.dtype), training_device(settings.device)
        self.n_threads = 1
        """Threads that training computes with: by the problem's shape alone."""
        if settings.recipe == "paper":  # full batches; the standard recipe's are small however large the table is
            self.n_threads = threads_for(data.training.X.size * settings.widest)
        self._seed = int(data.rng.randint(2**31 - 1))
        self._unseen = True
        """Whether networks have never seen the rows that they leave out."""
        self._weights_before: dict[str, float] = {}
        """Those of the kinds in the model that training goes on from, where networks have seen all rows."""
        self._kinds = kinds_of(data, settings)
        known = None if resume is None else snapshot_of(resume, settings, data, network)
        self._roster = settings.members(settings.n_folds(len(data.training)), self._kinds)
        """Kind and fold of the networks that are trained."""
        if resume is not None and known is not None:
            self._unseen = data.whole is not None or resume.rows_hash == data.training.hash()
            trained = settings.members(len(resume.folds), self._kinds)
            self._roster = [one for one in trained if one[0].name in resume.member_kinds]
            self._weights_before = {} if self._unseen and data.whole is None else resume.kind_totals
            if data.whole is not None:  # new rows decide nothing about the kinds
                self._kinds = tuple(kind for kind in EVERY if kind.name in resume.member_kinds)
        else:
            resume = None
        self._folds = self._deal_folds(data, resume) if settings.recipe == "standard" else ()
        before = None if resume is None else resume.target
        with limited_threads(self.n_threads):
            self._data = data = replace(data, target=learned_target(data, self._folds, settings, before))
            self._targets = (data, *others)
            problem = self._problem()
            self._graph = problem.graph
            start = self._start(problem.graph, cache)
            validation = None if data.validation is None else self._tensors([data.validation])
            self.policy: Algorithm1 | StandardRecipe
            """What an epoch does, with the problem and its state."""
            if settings.recipe == "paper":
                self.policy = self._algorithm1(problem, start, validation, known)
            else:
                watched = paused or bool(callbacks)
                self.policy = self._standard_recipe(problem, start, validation, known, watched=watched)
            self.trainer = Trainer(self.policy, callbacks, "last" if others or settings.keep_epoch == "last" else keep)

    def threads(self) -> AbstractContextManager[None]:
        """Compute with as many threads as the problem's shape asks for; wrap many epochs in one block."""
        return limited_threads(self.n_threads)

    @property
    def done(self) -> bool:
        """Whether training has ended."""
        return self.trainer.done

    def advance(self) -> HistoryRow:
        """Run one epoch more and return its row of the history."""
        with self.threads():
            return self.trainer.advance()

    @property
    def kept_row(self) -> HistoryRow:
        """The history's row of the epoch that would be kept."""
        return self.trainer.kept_row

    def finish(self) -> Fitted:
        """Return the model (of several targets, the first one's) at its best epoch so far."""
        with limited_threads(self.n_threads):
            return finished(
                self._model(0),
                self._data,
                unseen=self._unseen,
                weights_before=self._weights_before,
                kernel=KERNEL in self._kinds and self._data.whole is None and self._unseen,
                n_jobs=self._n_jobs,
            )

    def effects(self) -> list[TaskEffects]:
        """Return what each target's model rests on, without the rest of what makes a model."""
        if self._data.sparse:
            raise InputError(
                "Effects of all pairs are compared between fits, which a sparse support has not: set support='dense', "
                "or take fewer columns."
            )
        with limited_threads(self.n_threads):
            return [
                task_effects(self._model(number), data.training.X, data.training.weight)
                for number, data in enumerate(self._targets)
            ]

    def _start(self, graph: GraphTerms, cache: GlassoCache | None) -> Start:
        """Return where the matrices begin; on a sparse support everything comes from the rows."""
        data, settings = self._data, self._settings
        if not data.sparse:
            return start_of(settings.method, graph, cache)
        rows = data.training
        try:
            start = sparse_start(
                graph,
                data.scaler.transform(rows.X),
                rows.weight,
                edges_of_theta_alone=settings.sparse or settings.method == "glasso",
                n_jobs=self._n_jobs,
            )
        except PenaltyTooSmall as error:
            enough = f"l1_penalty={error.penalty:g}"
            if settings.l1_penalty is None:
                enough = f"l1_scale={rounded_up(error.penalty / graph.usual_penalty):g}"
            raise InputError(
                f"The penalty of {graph.l1_penalty:.3g} {error.why}: set {enough} or more, or take fewer columns."
            ) from error
        bound = settings.spectral_bound
        if bound is not None and start.norm > bound:
            raise InputError(
                f"spectral_bound={bound:.3g} is below the largest eigenvalue of the sparse precision, "
                f"{start.norm:.3g}, and is not enforced on a sparse support: raise it, or leave it out."
            )
        self._graph = replace(graph, spectral_bound=max(graph.spectral_bound, start.norm))
        self._data = replace(data, emp_cov=start.covariance)
        return start

    def _problem(self) -> JointProblem:
        data, settings = self._data, self._settings
        return JointProblem(
            network=new_network(settings, *self._sizes, self._roster[0][0], self._network, self._seed).to(
                self._device, self._dtype
            ),
            rows=self._tensors([one.training for one in self._targets]),
            task_loss=data.target.task_loss,
            metric=data.target.metric,
            graph=GraphTerms.of(settings, data.emp_cov, data.weight),
            l2_penalty=settings.l2_penalty,
            scale_shift=settings.scale_shift,
            windows=None if data.whole is None else data.whole.learned_windows(data.target),
        )

    def _algorithm1(
        self, problem: JointProblem, start: Start, validation: TensorRows | None, known: Snapshot | None
    ) -> Algorithm1:
        """Return the paper's epochs: one network, full batches."""
        settings, network = self._settings, problem.network
        if self._carried:
            network.requires_grad_(False).load_state_dict(self._carried[0])
        if known is not None:
            network.load_state_dict(known.networks[0])
            if settings.method in LEARNED:
                start = replace(start, theta=known.theta[0], theta_task=known.theta_task[0])
        schedule = Schedule(
            settings.learning_rate,
            settings.theta_steps,
            settings.task_steps,
            settings.weight_steps,
            settings.step1,
            settings.step2,
            settings.max_epochs,
            settings.patience,
            settings.sparse,
        )
        if settings.monotone:
            return Monotone(problem, schedule, start, validation, self._seed)
        return Algorithm1(problem, settings.method, schedule, start, validation, self._seed)

    def _standard_recipe(
        self,
        problem: JointProblem,
        start: Start,
        validation: TensorRows | None,
        known: Snapshot | None,
        *,
        watched: bool,
    ) -> StandardRecipe:
        """Return the standard recipe's epochs: members of every kind, mini-batches."""
        settings, members = self._settings, self._members()
        plan = Plan(
            settings.learning_rate,
            settings.batch_size,
            settings.n_epochs,
            settings.theta_every,
            settings.input_noise,
            sparse=settings.sparse,
        )
        if settings.readout == "several" and known is None and self._data.training.X.size >= TRIED_FROM:
            given_up = self._given_up(problem, members, plan, start)
            self._roster = [one for one in self._roster if one[0].name not in given_up]
            members = [member for member in members if member.kind not in given_up]
        method = settings.method
        return StandardRecipe(problem, method, members, plan, start, validation, known, self._n_jobs, watched=watched)

    def _tensors(self, tables: Sequence[Table]) -> TensorRows:
        """Return rows as the networks take them; the tables have the same rows, each with a target of its own."""
        rows, device = tables[0], self._device
        x = torch.from_numpy(self._data.scaler.transform(rows.X)).to(self._dtype).unsqueeze(-1)
        y = torch.cat([one.target.tensor(table.y) for one, table in zip(self._targets, tables, strict=False)])
        y = y.to(self._dtype) if y.is_floating_point() else y
        # Only shares count. Divided by a power of two, which rounds nothing, the smallest and largest fit float32.
        weight = torch.from_numpy(np.ldexp(rows.weight, -int(np.frexp(rows.weight.mean())[1])))
        return TensorRows(x.to(device), y.to(device), weight.to(device, self._dtype))

    def _deal_folds(self, data: TrainingData, resume: Fitted | None) -> tuple[IndexArray, ...]:
        """Return the rows of each fold; the same as before where training goes on with the same rows."""
        settings = self._settings
        if data.whole is not None:
            return data.whole.folds
        if settings.n_members == 1 and data.validation is not None:
            return (np.array([], dtype=np.intp),)
        if resume is not None and self._unseen:
            return resume.folds
        dealer = np.random.RandomState(np.random.MT19937(np.random.SeedSequence([self._seed, 1])))
        strata = None if isinstance(data.target, NumberTarget) else data.training.y
        n_folds = 1 + max(fold for _, fold in self._roster)
        fewest = n_folds if settings.readout == "several" else FEWEST_FOLDS
        return tuple(left_out_rows(data.training, n_folds, strata, dealer, fewest))

    def _members(self) -> list[Member]:
        """Make the networks, target by target. One's seeds depend neither on the others nor on the target."""
        settings, target, training = self._settings, self._data.target, self._data.training
        n_rows = len(training)
        sources = np.random.SeedSequence(self._seed).spawn(len(self._roster))
        seeds = [source.generate_state(2) for source in sources]
        members: list[Member] = []
        for first_row in range(0, n_rows * len(self._targets), n_rows):  # see TensorRows
            for (first_weights, order), (kind, fold) in zip(seeds, self._roster, strict=True):
                network = new_network(settings, *self._sizes, kind, self._network, int(first_weights))
                if self._carried:
                    network.requires_grad_(False).load_state_dict(self._carried[len(members)])
                left_out = self._folds[fold]
                rows = np.setdiff1d(np.arange(n_rows), left_out)
                link = getattr(network, "link", None)
                if isinstance(link, QuantileLink) and isinstance(target, NumberTarget) and not self._carried:
                    link.fit(target.tensor(training.y[rows]).numpy(), training.weight[rows])
                made = network.to(self._device, self._dtype)
                shares = kind.noise, kind.batch, fold
                members.append(Member(made, kind.name, first_row + rows, first_row + left_out, int(order), *shares))
        return members

    def _given_up(self, problem: JointProblem, members: Sequence[Member], plan: Plan, start: Start) -> set[str]:
        """Train kinds that differ in their noise alone for a short while; return the worse of each two."""
        twins = {kind.name: kind.twin for kind, _ in self._roster if kind.twin is not None}
        if not any(map(len, self._folds)):  # nothing to judge by
            return set(twins)
        pairs = zip(members, self._roster, strict=True)
        tried = [one for one, (_, fold) in pairs if fold < TRIAL_FOLDS and one.kind in {*twins, *twins.values()}]
        short = replace(plan, max_epochs=max(1, round(TRIAL * plan.max_epochs)), sparse=False)
        losses = trial_losses(problem, self._settings.method, tried, short, start, self._n_jobs)
        return {twin if losses[name] < (1.0 - BETTER_BY) * losses[twin] else name for name, twin in twins.items()}

    def _model(self, number: int) -> Fitted:
        """Return a target's model with all networks, but for what it says of the task and of its error."""
        data, settings = self._targets[number], self._settings
        emp_cov = self._data.emp_cov  # of the rows, which all targets share
        n_members = len(self._roster)
        trained = self.trainer.result(slice(number * n_members, (number + 1) * n_members))
        if trained.note:
            warnings.warn(f"The precision solver {trained.note}.", PrecisionNetWarning, stacklevel=4)
        kept = trained.kept
        networks, roster = [], list(self._roster)
        for (kind, _), state in zip(roster, kept.networks, strict=True):
            # Predictions are float64: a row then gets the same number, to about 1e-15, whatever stands beside it.
            network = new_network(settings, *self._sizes, kind, self._network).double().eval()
            network.load_state_dict({name: tensor.cpu() for name, tensor in state.items()})
            networks.append(network)
        on_theta = settings.sparse and settings.recipe == "paper"
        matrices = kept.theta if on_theta else kept.theta_task
        if settings.readout == "several" and any(map(len, self._folds)):
            rows, x = data.training, data.scaler.transform(data.training.X)
            for kind in (kind for kind in self._kinds if kind.solved):
                if self._solved is not None:
                    solved = [one for name, one in self._solved if name == kind.name]
                elif kind.kernel:  # its networks follow from all others
                    continue
                else:
                    lasso = kind is LASSO
                    solutions = linear_solutions(x, rows.y, rows.weight, self._folds, data.target, lasso=lasso)
                    solved = list(map(solved_network, solutions))
                folds = [*range(len(solved) - 1), ALL_ROWS][: len(solved)]
                roster += [(kind, fold) for fold in folds]
                networks += solved
            matrices = with_means(matrices, len(networks) - len(matrices))
        return Fitted(
            settings=settings,
            column_names=data.column_names,
            target_name=data.target_name,
            target=data.target,
            scaler=data.scaler,
            medians=data.medians,
            encoder=data.encoder,
            n_missing=data.n_missing,
            n_rows=data.n_rows,
            weight=data.weight,
            covariance=emp_cov,
            precision=trained.theta,
            task_precision=kept.theta_task.mean(axis=0),
            member_matrices=matrices,
            scale=trained.scale,
            networks=tuple(networks),
            member_kinds=tuple(kind.name for kind, _ in roster),
            member_folds=np.array([fold for _, fold in roster]),
            member_weights=np.full(len(roster), 1.0 / len(roster)),
            fold_weights=np.ones(len(roster)),
            l1_penalty=self._graph.l1_penalty,
            spectral_bound=self._graph.spectral_bound,
            history=pd.DataFrame(trained.history).astype({"epoch": int, "n_zeros": int}),
            best_epoch=kept.epoch,
            center=data.scaler.transform(data.mean),
            task_nodes=np.zeros(data.training.X.shape[1]),
            task_graph=0.0 * trained.theta,
            out_of_fold=OutOfFold(data.row_ids, np.empty(0), np.empty(0, dtype=np.intp), {}),
            calibration=None,
            reference=None,
            folds=self._folds,
            # Where members have learned from rows that they leave out now, no later fit may take these folds for clean.
            rows_hash=data.training.hash() if self._unseen else hashlib.sha256(b"learned from before").hexdigest(),
        )


def _refuse_other_rows(targets: Sequence[TrainingData], settings: Settings, resume: Fitted | None) -> None:
    """Targets that share a run have the same rows in the same order, and members to themselves."""
    first = targets[0].training
    for other in (one.training for one in targets[1:]):
        same = all(np.array_equal(getattr(first, part), getattr(other, part)) for part in ("X", "weight", "group"))
        numbers = isinstance(targets[0].target, NumberTarget)  # classes are dealt into folds by the target
        alike = settings.recipe == "standard" and settings.readout != "several"
        if not (same and numbers and alike) or resume is not None:
            raise InputError(
                "Only numbers are fitted together, by the standard recipe, with members alike (readout='both'), from "
                "the start, where no two rows have the same columns: fit these targets one by one."
            )


def snapshot_of(
    fitted: Fitted, settings: Settings, data: TrainingData, factory: NetworkFactory | None
) -> Snapshot | None:
    """Return the state that training goes on from, or None where the model has another shape.

    Kinds that were dropped stay so; linear and kernel networks are solved anew, the latter not on other rows, which no
    networks have left out: a model that is mostly one is fitted from the start there.
    """
    before, totals = fitted.settings, fitted.kind_totals
    mostly_kernel = totals.get(KERNEL.name, 0.0) > 0.5 * sum(totals.values())
    same = (
        fitted.n_features == data.training.X.shape[1]
        and fitted.target.n_outputs == data.target.n_outputs
        and before.recipe == settings.recipe
        and before.method == settings.method
        and before.readout == settings.readout
        and before.n_members == settings.n_members
        and before.target_scale == settings.target_scale
        and fitted.on_support == data.sparse
        and not (learns_logarithm(fitted.target) and data.training.y.min() <= 0.0)
        and not (mostly_kernel and data.whole is None and fitted.rows_hash != data.training.hash())
    )
    kinds = kinds_of(data, settings)
    roster = [one for one in settings.members(len(fitted.folds), kinds) if one[0].name in fitted.member_kinds]
    if not same or not roster:
        return None
    trained = [i for i, kind in enumerate(fitted.member_kinds) if kind in {kind.name for kind, _ in roster}]
    theta = fitted.precision if data.sparse else np.repeat(fitted.precision[None], len(trained), axis=0)
    networks = [dict(fitted.networks[i].state_dict()) for i in trained]
    for (kind, _), state in zip(roster, networks, strict=True):
        fresh = new_network(settings, fitted.n_features, data.target.n_outputs, kind, factory).state_dict()
        if {name: t.shape for name, t in fresh.items()} != {name: t.shape for name, t in state.items()}:
            return None
    return Snapshot(fitted.best_epoch, theta, fitted.member_matrices[trained], networks)
