r"""Bounds on the error of Step 1: the paper's, and the linear ones of ``docs/theory.md``.

With D = theta - theta_0, k = k_min, alpha = task_weight, gamma = coupling and delta = ||theta_0 - theta_task||_F, and
where the penalty covers the noise of the covariance off the diagonal,

    linear   ||D||_F <= A / [(1 - alpha) k^2 / (2 tau) + gamma / 2],  tau = (1 + k R)^2, wherever that is at most R
    sharper  ||D||_F <= the root r of  r [(1 - alpha) k^2 / (1 + k r) + gamma] = A

with A = (1 - alpha) nu + gamma delta, nu = (c_1 (1 + 1 / epsilon_1) + c_2) r_T. Neither has the error on its right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

TINY = 1e-18
"""Absolute error of a zero; the relative one is that of rounding."""


@dataclass(frozen=True)
class BoundTerms:
    """What the bounds are made of.

    Parameters
    ----------
    k_min : float
        Smallest eigenvalue of the true covariance.
    noise : float
        nu, what the noise of the covariance and the penalty add.
    task_weight : float
        alpha.
    coupling : float
        gamma.
    distance : float
        Frobenius distance of theta_task from the truth.

    Examples
    --------
    >>> from precisionnet.paper.theorem_bounds import BoundTerms, linear_bound, sharper_bound
    >>> terms = BoundTerms(k_min=1.0, noise=0.01, task_weight=0.5, coupling=10.0, distance=0.1)
    >>> sharper_bound(terms) < linear_bound(terms)
    True
    """

    k_min: float
    noise: float
    task_weight: float
    coupling: float
    distance: float

    @property
    def pull(self) -> float:
        """A: the slope with which the loss can fall as theta leaves the truth."""
        return (1.0 - self.task_weight) * self.noise + self.coupling * self.distance


def tau(k_min: float, radius: float) -> float:
    """Return (1 + k_min * radius)^2: on a ball, the log-determinant is curved by k_min^2 / tau at least.

    Parameters
    ----------
    k_min : float
        Smallest eigenvalue of the true covariance.
    radius : float
        Radius of the ball around the true precision.

    Returns
    -------
    float
        tau.

    Examples
    --------
    >>> from precisionnet.paper.theorem_bounds import tau
    >>> tau(0.5, 2.0)
    4.0
    """
    return (1.0 + k_min * radius) ** 2


def linear_bound(terms: BoundTerms) -> float:
    """Return the linear bound with the radius that makes it smallest; infinite where no radius is allowed.

    Parameters
    ----------
    terms : BoundTerms
        What the bound is made of.

    Returns
    -------
    float
        The bound on the Frobenius error.

    Examples
    --------
    >>> from precisionnet.paper.theorem_bounds import BoundTerms, linear_bound
    >>> round(linear_bound(BoundTerms(k_min=1.0, noise=0.0, task_weight=0.5, coupling=10.0, distance=0.1)), 3)
    0.193
    """
    k, gamma, pull = terms.k_min, terms.coupling, 2.0 * terms.k_min * terms.pull
    curvature = (1.0 - terms.task_weight) * k**2
    if pull == 0.0:
        return 0.0

    def excess(x: float) -> float:
        """The radius x / k less its bound, times what is positive: a radius is allowed where this is not negative."""
        return curvature * x + (gamma * x - pull) * (1.0 + x) ** 2

    # The bound grows with the radius, so the smallest allowed radius is best: the first zero of a cubic that begins
    # below zero. It lies before the cubic's first peak, if that reaches zero, and else where gamma x is near the pull.
    steep, slope = 4.0 * gamma - 2.0 * pull, curvature + gamma - 2.0 * pull  # of 3 gamma x^2 + steep x + slope
    discriminant = steep**2 - 12.0 * gamma * slope
    if steep < 0.0 < slope and discriminant > 0.0:
        peak = 2.0 * slope / (np.sqrt(discriminant) - steep)
        if excess(peak) >= 0.0:
            return float(brentq(excess, 0.0, peak, xtol=TINY)) / k
    return float(brentq(excess, 0.0, pull / gamma, xtol=TINY)) / k if gamma > 0.0 else float("inf")


def sharper_bound(terms: BoundTerms) -> float:
    """Return the bound that follows from the optimality condition; infinite where there is none.

    Parameters
    ----------
    terms : BoundTerms
        What the bound is made of.

    Returns
    -------
    float
        The bound on the Frobenius error.

    Examples
    --------
    >>> from precisionnet.paper.theorem_bounds import BoundTerms, sharper_bound
    >>> round(sharper_bound(BoundTerms(k_min=1.0, noise=0.0, task_weight=0.5, coupling=10.0, distance=0.1)), 3)
    0.096
    """
    k, gamma, pull = terms.k_min, terms.coupling, terms.pull
    # gamma k r^2 + b r - A = 0, the positive root without cancellation
    b = (1.0 - terms.task_weight) * k**2 + gamma - pull * k
    if gamma == 0.0:
        return pull / b if b > 0 else float("inf")
    root = float(np.sqrt(b**2 + 4.0 * gamma * k * pull))
    return 2.0 * pull / (b + root) if b > 0 else (root - b) / (2.0 * gamma * k)
