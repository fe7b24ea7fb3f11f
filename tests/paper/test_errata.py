"""The errata: what is printed is not true somewhere, what should stand there is true everywhere; and the linear bounds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from precisionnet.paper.errata import ERRATA, check_errata, draw
from precisionnet.paper.theorem_bounds import BoundTerms, linear_bound, sharper_bound, tau

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def checked():
    return check_errata(80, random_state=1)


def test_corrected_lines_hold_on_a_few_draws():
    assert not any(one.corrected_fails for one in check_errata(4, random_state=2))


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(ERRATA)), ids=[erratum.where for erratum in ERRATA])
def test_printed_fails_and_corrected_holds(checked, place):
    found = checked[place]
    assert found.printed_fails > 0
    assert found.corrected_fails == 0


@pytest.mark.slow
def test_rates_are_about_what_the_draws_say(checked):
    """Term 4's order is wrong wherever theta is on theta_task's side of the truth, which is where Step 1 puts it."""
    rate = {found.erratum.where: found.printed_fails for found in checked}
    assert rate["Appendix, Term 4, middle line"] > 0.5
    assert 0.02 < rate["Appendix, Term 2, trace"] < 0.5


def test_a_truth_of_one_number_breaks_the_printed_tau():
    """Covariance 50, precision 12 times the true one: the printed inequality asks for more than there is."""
    k, grown = 50.0, 12.0
    error = (grown - 1.0) / k
    left = k * error - np.log(grown)
    assert left < k**2 * error**2 / (2.0 * max(4.0, 1.0 + k * error**2))
    assert left >= k**2 * error**2 / (2.0 * tau(k, error))


def test_bounds_solve_their_equations():
    rng = np.random.default_rng(0)
    for _ in range(200):
        k, noise, coupling, distance = 10.0 ** rng.uniform(-2, 2, 4)
        terms = BoundTerms(k, noise, rng.uniform(0.05, 0.95), coupling, distance)
        sharp, linear, weight = sharper_bound(terms), linear_bound(terms), 1.0 - terms.task_weight
        assert sharp * (weight * k**2 / (1.0 + k * sharp) + coupling) == pytest.approx(terms.pull, rel=1e-6)
        curvature = weight * k**2 / (2.0 * tau(k, linear)) + coupling / 2.0
        assert linear * curvature == pytest.approx(terms.pull, rel=1e-4)
        assert sharp <= linear <= 2.0 * terms.pull / coupling


def test_the_linear_bound_is_the_smallest_of_all_radii():
    """Also where the coupling is so small that few radii are allowed, all of them far below that of no curvature."""
    rng = np.random.default_rng(1)
    tight = 0
    for _ in range(300):
        k, noise, distance = 10.0 ** rng.uniform(-1, 1, 3) * (1.0, 0.1, 1e-3)
        terms = BoundTerms(k, noise, rng.uniform(0.05, 0.95), 10.0 ** rng.uniform(-12, 0), distance)
        found = linear_bound(terms)
        radii = np.geomspace(1e-4 / k, 2.0 * terms.pull / terms.coupling, 2000)
        curvature = (1.0 - terms.task_weight) * k**2 / (2.0 * (1.0 + k * radii) ** 2) + terms.coupling / 2.0
        bounds = terms.pull / curvature
        assert found <= bounds[bounds <= radii].min() * (1.0 + 1e-9)
        tight += found < 1.0 / k
    assert 50 < tight < 250  # both kinds were drawn
    assert linear_bound(BoundTerms(1.0, 0.04, 0.5, 1e-12, 0.0)) == pytest.approx(
        linear_bound(BoundTerms(1.0, 0.04, 0.5, 0.0, 0.0)), rel=1e-9
    )


def test_without_coupling_a_bound_needs_little_noise():
    quiet, loud = (BoundTerms(1.0, noise, 0.5, 0.0, 0.0) for noise in (0.1, 2.0))
    assert linear_bound(quiet) <= 1.0
    assert sharper_bound(quiet) == pytest.approx(0.1 / 0.9)
    assert linear_bound(loud) == sharper_bound(loud) == np.inf
    assert linear_bound(BoundTerms(1.0, 0.0, 0.5, 10.0, 0.0)) == 0.0


def covered(one):
    """The draw with a penalty that covers the noise off the diagonal, what the bounds are made of, and the error."""
    noise = one.emp_cov - one.cov_true
    off = noise - np.diag(np.diag(noise))
    one = type(one)(**vars(one) | {"l1_penalty": float(np.abs(off).max())})
    nu = 2.0 * one.l1_penalty * np.sqrt(noise.size - len(noise)) + float(np.linalg.norm(np.diag(noise)))
    terms = BoundTerms(one.k_min, nu, one.task_weight, one.coupling, float(np.linalg.norm(one.away)))
    return one, terms, float(np.linalg.norm(one.minimiser() - one.theta_true))


def test_the_bounds_hold_on_draws_and_the_linear_one_on_every_ball_that_is_allowed():
    rng = np.random.default_rng(2)
    for _ in range(60):
        one, terms, error = covered(draw(rng))
        assert error <= sharper_bound(terms) * (1.0 + 1e-6)
        best = linear_bound(terms)
        for radius in (1.0 / one.k_min, 2.0 * terms.pull / one.coupling, *best * np.geomspace(1e-2, 1e2, 9)):
            curvature = (1.0 - one.task_weight) * one.k_min**2 / (2.0 * tau(one.k_min, radius)) + one.coupling / 2.0
            bound = terms.pull / curvature
            if bound <= radius:
                assert error <= bound * (1.0 + 1e-6)
                assert best <= bound * (1.0 + 1e-3)


def test_the_loss_rises_at_least_as_the_proof_says():
    """Line (*) of the proof, for errors of any size."""
    rng = np.random.default_rng(3)
    for _ in range(100):
        one, terms, _ = covered(draw(rng))
        r = one.distance
        curvature = (1.0 - one.task_weight) * one.k_min**2 / (2.0 * tau(one.k_min, r)) + one.coupling / 2.0
        grown, truth = one.loss(one.theta), one.loss(one.theta_true)
        assert grown - truth >= r * (r * curvature - terms.pull) - 1e-9 * (abs(grown) + abs(truth))


def test_the_committed_solves_keep_both_bounds():
    lines = (ROOT / "results" / "theorem" / "rows.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row.get("linear_bound")]
    assert len(rows) > 1000
    assert all(row["frobenius_error"] <= row["sharper_bound"] <= row["linear_bound"] for row in rows)
