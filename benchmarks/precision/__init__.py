"""The graphical lasso against its peers: problems x solvers x one stopping measure.

    make bench-precision                                         everything, peers included
    python -m benchmarks.precision.run --quick                   tiny sizes, under a minute
    python -m benchmarks.precision.run --list                    the problems and solvers there are
    python -m benchmarks.precision.run --only sparse_rule --largest 1000 --solver skglm
    python -m benchmarks.precision.run --only from_rows_grid --smallest 50000 --solver precisionnet --limit 3600

``problems.py`` lists the problems (``catalogue``), from 50 to 100,000 variables, ``solvers.py`` the solvers
(``SOLVERS``): a further one is a line more there (``docs/extending.md``). Above 10,000 variables a problem is given by
rows alone. Without ``--largest`` those are run as well, which takes hours: at 100,000 the proof looks at every pair of
columns, on one thread, for about half an hour. ``--only``, ``--smallest`` and ``--largest`` run them one by one.

Every solver, ours too, runs in its own process on one thread; only the call that solves is timed. The measure is the
same for all: the relative duality gap of the matrix that came back, computed by ``measure.py`` from that matrix alone.
A solver's tolerance is tightened until the gap is small enough; the time is that of the loosest tolerance that did it.
One row departs from this: ``scikit-learn`` is asked for 1e-6 at once, as a user without a certificate has to, which
costs it far more than it needs. ``scikit-learn tuned`` is held to the rule: compare that one with the other peers.
"""
