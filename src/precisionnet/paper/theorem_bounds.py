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

RADII = 200
"""Radii of the ball that are tried."""


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
    k, alpha, gamma, pull = terms.k_min, terms.task_weight, terms.coupling, terms.pull

    def at(radius: float) -> float:
        return pull / ((1.0 - alpha) * k**2 / (2.0 * tau(k, radius)) + 0.5 * gamma)

    # Every radius with at(radius) <= radius is allowed, and at() grows: the smallest such radius is best. From radius 0
    # on, radius -> at(radius) climbs to the smallest one with at(radius) = radius.
    largest = 2.0 * pull / gamma if gamma > 0 else 1.0 / k
    if at(largest) > largest:
        return float("inf")
    radii = np.linspace(0.0, largest, RADII)
    first = int(np.argmax([at(radius) <= radius for radius in radii]))
    if first == 0:
        return 0.0
    return float(brentq(lambda radius: at(radius) - radius, radii[first - 1], radii[first], xtol=1e-15))


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
