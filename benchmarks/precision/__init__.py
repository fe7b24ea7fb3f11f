"""The graphical lasso against its peers: problems x solvers x one stopping measure.

    make bench-precision                                         everything, peers included
    python -m benchmarks.precision.run --quick                   tiny sizes, under a minute
    python -m benchmarks.precision.run --only sparse_rule        one family

Every solver, ours too, runs in its own process on one thread; only the call that solves is timed. The measure is the
same for all: the relative duality gap of the matrix that came back, computed by ``measure.py`` from that matrix alone.
A solver's tolerance is tightened until the gap is small enough; the time is that of the loosest tolerance that did it.
One row departs from this: ``scikit-learn`` is asked for 1e-6 at once, as a user without a certificate has to, which
costs it far more than it needs. ``scikit-learn tuned`` is held to the rule: compare that one with the other peers.
"""
