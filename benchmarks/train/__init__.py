"""Algorithm 1 at ABIDE's size: ours against a plain PyTorch program, TAGConv, and scikit-learn.

    make bench-train                                    writes results/train_bench.csv and .md
    python -m benchmarks.train.run --quick              a small table, one repeat, under a minute

``task.py`` is the table and the recipe, ``reference.py`` the plain program, ``tagconv.py`` the same program with
PyTorch Geometric's filter, ``ours.py`` the library. All networks start at the same weights and the same precision and
take the same steps (``tests/test_train_benchmark.py`` holds them to it), so a faster one is not one that does less.
``epochs.py`` times an epoch, ``to_target.py`` the way to a validation error that the reference reaches. ``before.py``
sets whole fits beside those of an earlier checkout.
"""
