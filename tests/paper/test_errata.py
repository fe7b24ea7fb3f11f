"""The errata: what is printed is not true somewhere, what should stand there is true everywhere; and the linear bounds."""

from __future__ import annotations

import numpy as np
import pytest

from precisionnet.paper.errata import ERRATA, check_errata, draw
from precisionnet.paper.theorem_bounds import BoundTerms, linear_bound, sharper_bound, tau


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


def test_without_coupling_a_bound_needs_little_noise():
    quiet, loud = (BoundTerms(1.0, noise, 0.5, 0.0, 0.0) for noise in (0.1, 2.0))
    assert linear_bound(quiet) <= 1.0
    assert sharper_bound(quiet) == pytest.approx(0.1 / 0.9)
    assert linear_bound(loud) == sharper_bound(loud) == np.inf
    assert linear_bound(BoundTerms(1.0, 0.0, 0.5, 10.0, 0.0)) == 0.0


def test_the_sharper_bound_holds_on_draws():
    rng = np.random.default_rng(2)
    for _ in range(60):
        one = draw(rng)
        noise = one.emp_cov - one.cov_true
        off = noise - np.diag(np.diag(noise))
        covered = type(one)(**vars(one) | {"l1_penalty": float(np.abs(off).max())})
        nu = 2.0 * covered.l1_penalty * np.sqrt(noise.size - len(noise)) + float(np.linalg.norm(np.diag(noise)))
        terms = BoundTerms(one.k_min, nu, one.task_weight, one.coupling, float(np.linalg.norm(one.away)))
        error = float(np.linalg.norm(covered.minimiser() - one.theta_true))
        assert error <= sharper_bound(terms) * (1.0 + 1e-6)
