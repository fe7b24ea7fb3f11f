"""From training data to a fitted model: the problem, its networks and members, the training, and what is kept."""

from __future__ import annotations

import copy
import hashlib
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd
import torch
from torch import nn

from precisionnet.errors import InputError, PrecisionNetWarning
from precisionnet.estimators.explanation import task_effects
from precisionnet.estimators.fitted import Fitted, OutOfFold, training_device
from precisionnet.estimators.intervals import calibrate
from precisionnet.estimators.preparation import TrainingData
from precisionnet.estimators.rows import Table, left_out_rows
from precisionnet.estimators.targets import NumberTarget
from precisionnet.joint.algorithm1 import Algorithm1, Schedule
from precisionnet.joint.problem import GlassoCache, GraphTerms, JointProblem, TensorRows, start_of
from precisionnet.joint.standard import Member, Plan, StandardRecipe
from precisionnet.joint.trainer import Callback, HistoryRow, Snapshot, Trained, Trainer
from precisionnet.nn import PrecisionNetwork
from precisionnet.nn.network import seeded
from precisionnet.parameters import LEARNED, Settings
from precisionnet.precision import spectral_bound
from precisionnet.threads import limited_threads, threads_for
from precisionnet.types import FloatArray, IndexArray

NetworkFactory = Callable[[int, int], nn.Module]
"""(n_nodes, n_outputs) -> a network called as ``network(x, shift)``, x of shape (batch, nodes, 1)."""


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
    run = TrainingRun(data, settings, network=network, callbacks=callbacks, n_jobs=n_jobs, resume=resume)
    with limited_threads(run.n_threads):
        while not run.trainer.done:
            run.trainer.advance()
        return run.finish()


class TrainingRun:
    """Training that goes on epoch by epoch, so that a search may pause it or give it up.

    ``cache`` is shared by runs on the same rows, so that they solve each graphical lasso once; ``keep`` says whether
    the best epoch or the last one is returned.
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
    ) -> None:
        self._data, self._settings, self._network = data, settings, network
        self._sizes = data.training.X.shape[1], data.target.n_outputs
        self._dtype, self._device = getattr(torch, settings.dtype), training_device(settings.device)
        self.n_threads = 1
        """Threads that training computes with: by the problem's shape alone."""
        if settings.recipe == "paper":  # full batches; the standard recipe's are small however large the table is
            self.n_threads = threads_for(data.training.X.size * settings.widest)
        self._seed = int(data.rng.randint(2**31 - 1))
        self._same_rows = True
        known = None if resume is None else _snapshot(resume, settings, data, network)
        if resume is not None and known is not None:
            self._same_rows = resume.rows_hash == data.training.hash()
        with limited_threads(self.n_threads):
            problem = self._problem()
            self._graph = problem.graph
            start = start_of(settings.method, problem.graph, cache)
            validation = None if data.validation is None else self._tensors(data.validation)
            self._folds: tuple[IndexArray, ...] = ()
            policy: Algorithm1 | StandardRecipe
            if settings.recipe == "paper":
                if known is not None:
                    problem.network.load_state_dict(known.networks[0])
                    if settings.method in LEARNED:
                        start = replace(start, theta=known.theta[0], theta_task=known.theta_task[0])
                schedule = Schedule(
                    settings.learning_rate,
                    settings.theta_steps,
                    settings.task_steps,
                    settings.weight_steps,
                    settings.step1,
                    settings.max_epochs,
                    settings.patience,
                    settings.sparse,
                )
                policy = Algorithm1(problem, settings.method, schedule, start, validation, self._seed)
            else:
                members = self._members(resume if known is not None else None)
                self._folds = tuple(member.left_out for member in members)
                plan = Plan(
                    settings.learning_rate,
                    settings.batch_size,
                    settings.n_epochs,
                    settings.theta_every,
                    settings.input_noise,
                    sparse=settings.sparse,
                )
                policy = StandardRecipe(problem, settings.method, members, plan, start, validation, known, n_jobs)
            self.trainer = Trainer(policy, callbacks, keep)

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
        """Return the model at its best epoch so far."""
        data = self._data
        with limited_threads(self.n_threads):
            trained = self.trainer.result()
            if trained.note:
                warnings.warn(f"The precision solver {trained.note}.", PrecisionNetWarning, stacklevel=4)
            fitted = self._fitted(trained)
            effects = task_effects(fitted, data.training.X, data.training.weight)
            return self._with_unseen(replace(fitted, task_nodes=effects.nodes, task_graph=effects.edges))

    def _problem(self) -> JointProblem:
        data, settings = self._data, self._settings
        rate = float(np.sqrt(np.log(self._sizes[0]) / data.training.weight.sum()))
        bound = settings.spectral_bound
        graph = GraphTerms(
            emp_cov=data.emp_cov,
            l1_penalty=settings.l1_scale * rate if settings.l1_penalty is None else settings.l1_penalty,
            task_weight=settings.task_weight,
            coupling=settings.coupling if settings.method == "joint" else 0.0,  # the others have one matrix
            ridge=settings.ridge,
            spectral_bound=spectral_bound(data.emp_cov) if bound is None else bound,
            usual_penalty=rate,
        )
        return JointProblem(
            network=new_network(settings, *self._sizes, settings.readouts[0], self._network, self._seed).to(
                self._device, self._dtype
            ),
            rows=self._tensors(data.training),
            task_loss=data.target.task_loss,
            metric=data.target.metric,
            graph=graph,
            l2_penalty=settings.l2_penalty,
            scale_shift=settings.scale_shift,
        )

    def _tensors(self, table: Table) -> TensorRows:
        x = torch.from_numpy(self._data.scaler.transform(table.X)).to(self._dtype).unsqueeze(-1)
        y = self._data.target.tensor(table.y)
        y = y.to(self._dtype) if y.is_floating_point() else y
        weight = torch.from_numpy(table.weight).to(self._dtype)
        return TensorRows(x.to(self._device), y.to(self._device), weight.to(self._device))

    def _members(self, resume: Fitted | None) -> list[Member]:
        """Make the members, and deal out the rows that each leaves out.

        The folds are the same as before where training goes on with the same rows. A member's seeds do not depend on
        how many others there are.
        """
        data, settings = self._data, self._settings
        folds: Sequence[IndexArray]
        if settings.n_members == 1 and data.validation is not None:
            folds = [np.array([], dtype=np.intp)]
        elif resume is not None and self._same_rows:
            folds = resume.folds
        else:
            dealer = np.random.RandomState(np.random.MT19937(np.random.SeedSequence([self._seed, 1])))
            strata = None if isinstance(data.target, NumberTarget) else data.training.y
            folds = left_out_rows(data.training, settings.n_members, strata, dealer)
        sources = np.random.SeedSequence(self._seed).spawn(settings.n_members)
        members = []
        for source, left_out, readout in zip(sources, folds, settings.readouts, strict=True):
            first_weights, order = source.generate_state(2)
            network = new_network(settings, *self._sizes, readout, self._network, int(first_weights))
            rows = np.setdiff1d(np.arange(len(data.training)), left_out)
            members.append(Member(network.to(self._device, self._dtype), readout, rows, left_out, int(order)))
        return members

    def _fitted(self, trained: Trained) -> Fitted:
        """Put the model together, but for what it says of the task and of its error."""
        data, settings, kept = self._data, self._settings, trained.kept
        networks = []
        for readout, state in zip(settings.readouts, kept.networks, strict=True):
            # Predictions are float64: a row then gets the same number, to about 1e-15, whatever stands beside it.
            network = new_network(settings, *self._sizes, readout, self._network).double().eval()
            network.load_state_dict({name: tensor.cpu() for name, tensor in state.items()})
            networks.append(network)
        on_theta = settings.sparse and settings.recipe == "paper"
        matrices = kept.theta if on_theta else kept.theta_task
        return Fitted(
            settings=settings,
            column_names=data.column_names,
            target_name=data.target_name,
            target=data.target,
            scaler=data.scaler,
            medians=data.medians,
            n_missing=data.n_missing,
            n_rows=data.n_rows,
            covariance=data.emp_cov,
            precision=trained.theta,
            task_precision=kept.theta_task.mean(axis=0),
            member_matrices=matrices,
            scale=trained.scale,
            networks=tuple(networks),
            l1_penalty=self._graph.l1_penalty,
            spectral_bound=self._graph.spectral_bound,
            history=pd.DataFrame(trained.history).astype({"epoch": int, "n_zeros": int}),
            best_epoch=kept.epoch,
            center=data.scaler.transform(np.average(data.training.X, axis=0, weights=data.training.weight)),
            task_nodes=np.zeros(len(trained.theta)),
            task_graph=np.zeros_like(trained.theta),
            out_of_fold=OutOfFold(data.row_ids, np.empty(0), {}),
            calibration=None,
            folds=self._folds,
            # Where members have learned from rows that they leave out now, no later fit may take these folds for clean.
            rows_hash=data.training.hash() if self._same_rows else hashlib.sha256(b"learned from before").hexdigest(),
        )

    def _with_unseen(self, fitted: Fitted) -> Fitted:
        """Add what is known of the error: the finished networks on rows that training kept from them."""
        data = self._data
        left_out = any(len(fold) for fold in self._folds) and self._same_rows
        if left_out:
            member = np.repeat(np.arange(len(self._folds)), [len(fold) for fold in self._folds])
            rows = data.training.take(np.concatenate(self._folds))
        else:  # what a single network was validated on; no rows where it was not, or where all were learned from before
            no_rows = data.training.take(np.array([], dtype=np.intp))
            use_validation = data.validation is not None and self._same_rows and not any(map(len, self._folds))
            rows = data.validation if use_validation and data.validation is not None else no_rows
            member = np.zeros(len(rows), dtype=np.intp)
        output = np.empty((len(rows), data.target.n_outputs))
        for index in np.unique(member):
            taken = member == index
            output[taken] = fitted.outputs(rows.X[taken], lambda one: one[0], np.array([index]))
        meaning, calibration = data.target.meaning(output), None
        if isinstance(data.target, NumberTarget) and len(rows):
            targets = np.concatenate([data.training.y, rows.y])
            n_folds = len(fitted.networks)
            calibration = calibrate(member, rows.y, meaning, rows.weight, rows.X, n_folds, targets)
        known = np.full((data.places.max() + 2, *meaning.shape[1:]), np.nan)  # the last one is for a place of -1
        if left_out:
            known[rows.place] = meaning
            errors = data.target.errors_out_of_bag(output, rows.y, rows.weight)
        else:
            errors = data.target.errors_out_of_bag(output[:0], rows.y[:0], rows.weight[:0])
        return replace(fitted, out_of_fold=OutOfFold(data.row_ids, known[data.places], errors), calibration=calibration)


def new_network(
    settings: Settings,
    n_nodes: int,
    n_outputs: int,
    readout: str,
    factory: NetworkFactory | None = None,
    seed: int = 0,
) -> nn.Module:
    """Return an untrained network; its first weights depend on the seed alone."""
    with seeded(seed):
        if factory is None:
            return PrecisionNetwork(
                n_nodes,
                n_outputs=n_outputs,
                n_layers=settings.n_layers,
                n_filters=settings.n_filters,
                order=settings.order,
                readout=readout,
                readout_width=settings.readout_width,
                activation=settings.activation,
                batch_norm=settings.batch_norm,
            )
        made = copy.deepcopy(factory(n_nodes, n_outputs))  # a factory may hand out the same module every time
        if not isinstance(made, nn.Module):
            raise InputError(f"network must return a torch.nn.Module, got {type(made).__name__}.")
        _refuse_other_outputs(made, n_nodes, n_outputs)
    return made


@torch.no_grad()
def _refuse_other_outputs(network: nn.Module, n_nodes: int, n_outputs: int) -> None:
    """Call a foreign network once: what has another shape would be spread over the rows without a word."""
    output = copy.deepcopy(network).float().eval()(torch.zeros(2, n_nodes, 1), torch.eye(n_nodes))
    shape = tuple(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
    if shape != (2, n_outputs):
        raise InputError(
            f"The network must map x of shape (batch, {n_nodes}, 1) and a matrix to (batch, {n_outputs}); of two rows "
            f"it made {shape} in place of (2, {n_outputs})."
        )


def _snapshot(
    fitted: Fitted, settings: Settings, data: TrainingData, factory: NetworkFactory | None
) -> Snapshot | None:
    """Return the state that training goes on from, or None where the model has another shape."""
    before = fitted.settings
    same = (
        fitted.n_features == data.training.X.shape[1]
        and fitted.target.n_outputs == data.target.n_outputs
        and before.recipe == settings.recipe
        and before.method == settings.method
        and before.readouts == settings.readouts
    )
    if not same:
        return None
    theta: FloatArray = np.repeat(fitted.precision[None], len(fitted.networks), axis=0)
    networks = [dict(network.state_dict()) for network in fitted.networks]
    for readout, state in zip(settings.readouts, networks, strict=True):
        fresh = new_network(settings, fitted.n_features, data.target.n_outputs, readout, factory).state_dict()
        if {name: t.shape for name, t in fresh.items()} != {name: t.shape for name, t in state.items()}:
            return None
    return Snapshot(fitted.best_epoch, theta, fitted.member_matrices, networks)
