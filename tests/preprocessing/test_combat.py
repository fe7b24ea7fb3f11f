"""What ComBat promises: sites gone, biology kept, only training rows seen, each row by itself."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError

from precisionnet.errors import InputError, PrecisionNetWarning
from precisionnet.preprocessing import ComBat
from precisionnet.preprocessing.site_effects import parametric_posterior, site_effect
from tests.preprocessing.conftest import SIZES, make_study

FITTED = ("mean_", "scale_", "coef_", "site_location_", "site_variance_", "site_counts_")
KINDS = [{}, {"parametric": False}, {"mean_only": True}, {"empirical_bayes": False}]


def same_fit(a, b) -> bool:
    return a.sites_ == b.sites_ and all(np.array_equal(getattr(a, name), getattr(b, name)) for name in FITTED)


def test_sites_are_gone_and_biology_is_kept():
    study = make_study({"a": 150, "b": 120, "c": 90, "d": 60}, seed=1)
    harmonised = ComBat().fit_transform(study.X, site=study.site, covariates=study.people)

    def mean_correlation(values):
        pairs = zip(np.asarray(values).T, study.biology.to_numpy().T, strict=True)
        return np.mean([np.corrcoef(x, b)[0, 1] for x, b in pairs])

    assert mean_correlation(study.X) < 0.75
    assert mean_correlation(harmonised) > 0.95
    slopes, true = (np.polyfit(study.people.age, np.asarray(v), 1)[0] for v in (harmonised, study.biology))
    np.testing.assert_allclose(slopes, true, atol=0.015)
    residual = harmonised - study.biology
    between = pd.DataFrame(residual).groupby(study.site.to_numpy()).mean()
    assert np.ptp(between, axis=0).max() < 0.6  # the shifts were several units
    spread = pd.DataFrame(harmonised).groupby(study.site.to_numpy()).std()
    assert (spread.max() / spread.min()).max() < 1.5  # it was up to 4


def test_without_covariates_what_differs_between_sites_goes_with_them(study):
    """Age differs between the sites: kept only where it is named."""
    ages = study.people.age.groupby(study.site.to_numpy()).mean()
    for kept, low, high in ((None, -0.2, 0.2), (study.people[["age"]], 0.7, 1.3)):
        X = ComBat(empirical_bayes=False).fit_transform(study.X, site=study.site, covariates=kept)
        means = pd.DataFrame(X).mean(axis=1).groupby(study.site.to_numpy()).mean()
        slope = np.polyfit(ages, means, 1)[0]
        within = np.polyfit(study.people.age, study.biology.mean(axis=1), 1)[0]
        assert low < slope / within < high


@pytest.mark.parametrize(
    ("parameters", "n_features", "ceiling"),
    [
        ({}, 8, 0.4),
        ({"empirical_bayes": False}, 8, 0.4),
        ({"empirical_bayes": False, "mean_only": True}, 8, 0.4),
        ({"parametric": False}, 60, 0.65),  # a prior of 60 points is coarse for shifts as large as these
    ],
)
def test_a_classifier_of_sites_falls_to_chance_on_new_rows(parameters, n_features, ceiling):
    """A quarter is chance."""
    study = make_study(dict.fromkeys("abcd", 100), n_features=n_features, seed=2)
    train, test = slice(0, 250), slice(250, None)
    combat = ComBat(**parameters).fit(study.X[train], site=study.site[train])
    scores = {}
    for name, prepare in {"raw": lambda X, s: X, "harmonised": lambda X, s: combat.transform(X, site=s)}.items():
        model = LinearDiscriminantAnalysis().fit(prepare(study.X[train], study.site[train]), study.site[train])
        scores[name] = model.score(prepare(study.X[test], study.site[test]), study.site[test])
    assert scores["raw"] > 0.85
    assert scores["harmonised"] < ceiling


@pytest.mark.parametrize("parameters", KINDS)
@pytest.mark.parametrize("with_covariates", [False, True])
def test_a_row_is_transformed_by_itself(study, parameters, with_covariates):
    kept = study.people if with_covariates else None
    combat = ComBat(**parameters).fit(study.X, site=study.site, covariates=kept)
    whole = combat.transform(study.X, site=study.site, covariates=kept)
    order = np.random.default_rng(0).permutation(len(study.X))
    for rows in (order, order[:37], order[:2], order[:1]):
        some = None if kept is None else kept.iloc[rows]
        alone = combat.transform(study.X.iloc[rows], site=study.site.iloc[rows], covariates=some)
        np.testing.assert_array_equal(alone, whole[rows])
    np.testing.assert_array_equal(whole, ComBat(**parameters).fit_transform(study.X, site=study.site, covariates=kept))


def test_transforming_changes_no_fitted_number(study):
    combat = ComBat(unseen_sites="own_rows").fit(study.X[:80], site=study.site[:80])
    before = pickle.loads(pickle.dumps(combat))  # noqa: S301
    combat.transform(study.X[80:] * 1e6, site=study.site[80:])
    combat.transform(study.X[80:], site=["elsewhere"] * 30)
    assert same_fit(before, combat)


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), factor=st.floats(0.01, 1000), offset=st.floats(-1000, 1000))
def test_units_do_not_matter(seed, factor, offset):
    study = make_study({"a": 9, "b": 14, "c": 6}, n_features=5, seed=seed)
    plain = ComBat().fit_transform(study.X, site=study.site, covariates=study.people)
    moved = ComBat().fit_transform(study.X * factor + offset, site=study.site, covariates=study.people)
    np.testing.assert_allclose(moved, plain * factor + offset, rtol=1e-6, atol=1e-6 * factor)


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), parameters=st.sampled_from(KINDS))
def test_order_of_rows_columns_and_names_of_sites_do_not_matter(seed, parameters):
    study = make_study({"a": 9, "b": 14, "c": 6}, n_features=5, seed=seed)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(29), rng.permutation(5)
    plain = ComBat(**parameters).fit_transform(study.X, site=study.site)
    names = study.site.map({"a": 3, "b": 1, "c": 2})
    other = ComBat(**parameters).fit_transform(study.X.iloc[rows, columns], site=names.iloc[rows])
    np.testing.assert_allclose(other, plain[np.ix_(rows, columns)], atol=1e-9)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 30), p=st.integers(2, 40))
def test_the_posterior_solves_its_equations(seed, n, p):
    rng = np.random.default_rng(seed)
    z = rng.normal(rng.normal(), rng.uniform(0.3, 3), (n, p)) * rng.uniform(0.5, 2, p) + rng.normal(0, 1, p)
    g, d = z.mean(axis=0), z.var(axis=0, ddof=1)
    location, variance = site_effect(z)
    G, T2, M, S2 = g.mean(), g.var(ddof=1), d.mean(), d.var(ddof=1)
    A, B = 2 + M**2 / S2, M + M**3 / S2
    np.testing.assert_allclose(location, (n * T2 * g + variance * G) / (n * T2 + variance), rtol=1e-9, atol=1e-9)
    about = ((z - location) ** 2).sum(axis=0)
    np.testing.assert_allclose(variance, (about / 2 + B) / (n / 2 + A - 1), rtol=1e-9)
    assert (np.abs(location - G) <= np.abs(g - G) + 1e-12).all()  # shrunk towards the site's own mean effect


def test_columns_of_equal_variance_are_no_special_case():
    g, d = np.array([0.0, 1.0]), np.array([2.0, 2.0])
    location, variance = parametric_posterior(g, d, 4 * d, 5)
    np.testing.assert_allclose(variance, 2.0)
    np.testing.assert_allclose(location, [1 / 4.5, 3.5 / 4.5])  # (5 * 0.5 * g + 2 * 0.5) / (5 * 0.5 + 2)


def test_with_much_data_shrinkage_fades():
    study = make_study({"a": 4000, "b": 4000}, seed=4)
    shrunk = ComBat().fit(study.X, site=study.site)
    plain = ComBat(empirical_bayes=False).fit(study.X, site=study.site)
    np.testing.assert_allclose(shrunk.site_location_, plain.site_location_, atol=0.01)
    np.testing.assert_allclose(shrunk.site_variance_, plain.site_variance_, rtol=0.02)


def test_one_column_is_plain_location_and_scale(study):
    one = study.X[["roi0"]]
    for parametric in (True, False):
        shrunk = ComBat(parametric=parametric).fit_transform(one, site=study.site)
        plain = ComBat(empirical_bayes=False).fit_transform(one, site=study.site)
        np.testing.assert_array_equal(shrunk, plain)


# sites


def test_unseen_sites_are_refused_by_default(study):
    combat = ComBat().fit(study.X, site=study.site)
    site = study.site.replace("south", "moon")
    with pytest.raises(
        InputError, match=r"Site 'moon' \(13 of 110 rows\) was not .* unseen_sites='own_rows' .* 'pass'"
    ):
        combat.transform(study.X, site=site)


def test_labels_are_compared_as_given(study):
    numbers = study.site.map({name: i for i, name in enumerate(SIZES)})
    combat = ComBat().fit(study.X, site=numbers)
    assert combat.sites_ == [0, 1, 2, 3]
    whole = combat.transform(study.X, site=numbers)
    for same in (numbers.tolist(), numbers.to_numpy(), numbers.astype("category"), numbers.to_frame(), tuple(numbers)):
        np.testing.assert_array_equal(combat.transform(study.X, site=same), whole)
    with pytest.raises(InputError, match="Site '0', '1', '2' and 1 more .* 1 is not '1'"):
        combat.transform(study.X, site=numbers.astype(str))
    mixed = [1 if name == "north" else name for name in study.site]
    assert ComBat().fit(study.X, site=mixed).sites_ == [1, "east", "south", "west"]


def test_unseen_sites_may_pass_with_a_warning(study):
    combat = ComBat(unseen_sites="pass").fit(study.X[:60], site=study.site[:60])
    site = study.site[60:].replace("south", "moon")
    with pytest.warns(PrecisionNetWarning, match=r"Site 'moon' .* left as they are"):
        out = combat.transform(study.X[60:], site=site)
    moon = (site == "moon").to_numpy()
    np.testing.assert_array_equal(out[moon], study.X[60:][moon])
    known = combat.transform(study.X[60:][~moon], site=site[~moon])
    np.testing.assert_array_equal(out[~moon], known)


def test_unseen_sites_may_be_estimated_from_their_own_rows():
    study = make_study(dict.fromkeys("abcd", 80), seed=5)
    new = (study.site == "d").to_numpy()
    combat = ComBat(unseen_sites="own_rows").fit(study.X[~new], site=study.site[~new], covariates=study.people[~new])
    out = combat.transform(study.X, site=study.site, covariates=study.people)
    off = (out - study.biology).groupby(study.site.to_numpy()).mean()
    assert np.abs(off.loc["d"] - off.loc[list("abc")].mean()).max() < 0.6
    before = (study.X - study.biology).groupby(study.site.to_numpy()).mean()
    assert np.abs(before.loc["d"] - before.loc[list("abc")].mean()).max() > 1.5
    known = combat.transform(study.X[~new], site=study.site[~new], covariates=study.people[~new])
    np.testing.assert_array_equal(out[~new], known)
    one = np.flatnonzero(new)[:1]
    with pytest.raises(InputError, match="Site 'd' was not .* has 1 row here: .* at least 2, better 20"):
        combat.transform(study.X.iloc[one], site=["d"], covariates=study.people.iloc[one])


def test_a_site_with_one_row_is_shifted_not_scaled(study):
    site = study.site.copy()
    site.iloc[0] = "lonely"
    with pytest.warns(PrecisionNetWarning, match="Site 'lonely' has one row"):
        combat = ComBat().fit(study.X, site=site)
    row = combat.sites_.index("lonely")
    assert (combat.site_variance_[row] == 1).all()
    assert np.abs(combat.site_location_[row]).max() > 0
    assert np.isfinite(combat.transform(study.X, site=site)).all()


def test_a_single_site_passes_through_with_a_warning(study):
    with pytest.warns(PrecisionNetWarning, match="All 110 rows are of site 'here'"):
        out = ComBat().fit_transform(study.X, site=["here"] * 110)
    np.testing.assert_array_equal(out, study.X)


# columns


def test_a_constant_column_passes_through(study):
    X = study.X.assign(flat=0.1)
    out = ComBat().fit_transform(X, site=study.site, covariates=study.people)
    np.testing.assert_array_equal(out[:, -1], X.flat)
    np.testing.assert_array_equal(
        out[:, :-1], ComBat().fit_transform(study.X, site=study.site, covariates=study.people)
    )
    new = ComBat().fit(X, site=study.site).transform(X.assign(flat=7.0), site=study.site)
    assert (new[:, -1] == 7.0).all()


def test_a_column_that_is_a_covariate_passes_through(study):
    X = study.X.assign(years=study.people.age * 2)
    out = ComBat().fit_transform(X, site=study.site, covariates=study.people)
    np.testing.assert_array_equal(out[:, -1], X.years)


def test_a_column_that_only_varies_between_sites_is_reported(study):
    X = study.X.assign(scanner=study.site.map({name: 0.1 * i for i, name in enumerate(SIZES)}))
    with pytest.warns(PrecisionNetWarning, match="Column 'scanner' varies only between sites"):
        out = ComBat().fit_transform(X, site=study.site)
    np.testing.assert_array_equal(out[:, -1], X.scanner)


def test_a_column_constant_in_one_site_keeps_its_scale_there(study):
    X = study.X.assign(roi0=study.X.roi0.mask(study.site == "south", 4.0))
    for parameters in KINDS:
        assert np.isfinite(ComBat(**parameters).fit_transform(X, site=study.site)).all()
    plain = ComBat(empirical_bayes=False).fit(X, site=study.site)
    assert plain.site_variance_[plain.sites_.index("south"), 0] == 1


# covariates


def test_covariates_of_every_kind(study):
    frame = study.people
    expected = ComBat().fit_transform(study.X, site=study.site, covariates=frame)
    for same in (
        frame[["age", "dx", "sex"]],
        frame.astype({"sex": "category", "dx": "string"}),
        frame.to_numpy(),
        frame.to_numpy().tolist(),
    ):
        out = ComBat().fit_transform(study.X, site=study.site, covariates=same)
        np.testing.assert_allclose(out, expected, atol=1e-10)
    age = ComBat().fit_transform(study.X, site=study.site, covariates=frame[["age"]])
    for same in (
        frame.age,
        frame.age.to_numpy(),
        frame.age.tolist(),
        frame.age.to_numpy()[:, None],
        frame.age.rename(None),
    ):
        np.testing.assert_array_equal(ComBat().fit_transform(study.X, site=study.site, covariates=same), age)
    fitted = ComBat().fit(study.X, site=study.site, covariates=frame)
    assert fitted.covariate_names_ == ["sex=m", "dx=b", "dx=c", "age"]
    assert fitted.coef_.shape == (4, 8)
    np.testing.assert_array_equal(fitted.transform(study.X, site=study.site, covariates=frame.iloc[:, ::-1]), expected)


def test_covariates_that_repeat_each_other_share_their_effect(study):
    once = ComBat().fit_transform(study.X, site=study.site, covariates=study.people[["age"]])
    twice = study.people[["age"]].assign(months=study.people.age * 12)
    np.testing.assert_allclose(ComBat().fit_transform(study.X, site=study.site, covariates=twice), once, atol=1e-9)


def test_the_target_among_the_covariates_gets_a_warning(study):
    age, sex = study.people.age, study.people.sex
    fit = ComBat().fit
    for y in (age, age * -12 + 3, age + 1e-4, age.to_numpy(), age.tolist()):
        with pytest.warns(PrecisionNetWarning, match="Covariate 'age' is the target y"):
            fit(study.X, y, site=study.site, covariates=study.people)
    for y in (sex, sex.map({"f": 0, "m": 1}), sex.map({"f": "woman", "m": "man"}).astype("category")):
        with pytest.warns(PrecisionNetWarning, match="Covariate 'sex' is the target y"):
            fit(study.X, y, site=study.site, covariates=study.people)
    fit(study.X, study.y, site=study.site, covariates=study.people)  # and no warning where it is another
    fit(study.X, [f"id{i}" for i in range(110)], site=study.site, covariates=study.people)


# bad input

BAD_FIT = {
    "no site": ({"site": None}, "ComBat.fit needs site"),
    "one label": ({"site": "north"}, "site must hold one label per row"),
    "two columns": ({"site": np.zeros((110, 2))}, "site must hold one label per row"),
    "short": ({"site": ["a"] * 109}, "site has 109 labels and X has 110 rows"),
    "NaN": ({"site": [None, np.nan] + ["a"] * 108}, r"site is missing in 2 of 110 rows \(row 1 is the first"),
    "every row a site": ({"site": list(range(110))}, "n_samples=110 rows for 110 sites"),
    "short covariates": ({"covariates": np.zeros((9, 2))}, "covariates have 9 rows and X has 110"),
    "no covariates": ({"covariates": 5}, "covariates must be a data frame"),
    "a dictionary": ({"covariates": {"age": [1] * 110}}, "covariates must be a data frame"),
    "dates": ({"covariates": pd.date_range("2020-01-01", periods=110).to_series()}, "use numbers, text or categories"),
    "numbers as text": (
        {"covariates": np.arange(110).astype(str)},
        "Covariate '0' is text with 110 levels in 110 rows",
    ),
    "mixed": ({"covariates": ["a", 1] * 55}, "Covariate '0' mixes text and numbers"),
    "infinity": ({"covariates": np.full(110, np.inf)}, "Covariate '0' holds infinity"),
}


@pytest.mark.parametrize("what", list(BAD_FIT))
def test_bad_sites_and_covariates_get_a_sentence(study, what):
    given, sentence = BAD_FIT[what]
    with pytest.raises(InputError, match=sentence) as caught:
        ComBat().fit(study.X, **{"site": study.site} | given)
    assert "\n" not in str(caught.value)


BAD_ROWS = {
    "NaN": (lambda X: X.mask(X > 14), r"contains NaN in \d+ of 110 rows \(column 'roi"),
    "infinity": (lambda X: X.assign(roi3=np.inf), r"contains infinity in 110 of 110 rows \(column 'roi3'\)"),
    "huge": (lambda X: X.assign(roi3=1e200), r"values beyond 1e\+100 .*'roi3'"),
    "text": (lambda X: X.assign(who="me"), "Column 'who' does not hold numbers"),
}


@pytest.mark.parametrize("what", list(BAD_ROWS))
def test_bad_rows_get_a_sentence(study, what):
    change, sentence = BAD_ROWS[what]
    with pytest.raises(InputError, match=sentence):
        ComBat().fit(change(study.X), site=study.site)


def test_covariates_with_missing_values_or_twice_the_same_are_refused(study):
    with pytest.raises(InputError, match=r"Covariate 'age' is missing in \d+ of 110 rows"):
        ComBat().fit(
            study.X, site=study.site, covariates=study.people.assign(age=study.people.age.mask(study.people.age > 50))
        )
    with pytest.raises(InputError, match="Covariate 'age' stands there more than once"):
        ComBat().fit(study.X, site=study.site, covariates=study.people[["age", "age"]])


def test_a_covariate_that_is_the_site_is_refused(study):
    where = study.people.assign(coast=study.site.isin(["east", "west"]))
    with pytest.raises(InputError, match="Covariate 'coast' does not vary within sites"):
        ComBat().fit(study.X, site=study.site, covariates=where)


def test_transform_needs_what_fit_had(study):
    combat = ComBat().fit(study.X, site=study.site, covariates=study.people)
    with pytest.raises(InputError, match=r"fitted with covariates to keep \('sex', 'dx', 'age'\): give"):
        combat.transform(study.X, site=study.site)
    with pytest.raises(InputError, match="covariates are 'age', and were 'sex', 'dx', 'age'"):
        combat.transform(study.X, site=study.site, covariates=study.people[["age"]])
    with pytest.raises(
        InputError, match=r"Covariate 'dx' has level 'd', which no row given to fit had \('a', 'b', 'c'\)"
    ):
        combat.transform(study.X, site=study.site, covariates=study.people.replace({"dx": {"c": "d"}}))
    with pytest.raises(InputError, match="Covariate 'age' held numbers in fit and holds 'old' now"):
        combat.transform(study.X, site=study.site, covariates=study.people.assign(age="old"))
    with pytest.raises(InputError, match="ComBat.transform needs site"):
        combat.transform(study.X)
    with pytest.raises(InputError, match="fitted without covariates"):
        ComBat().fit(study.X, site=study.site).transform(study.X, site=study.site, covariates=study.people)
    with pytest.raises(ValueError, match="feature names"):
        combat.transform(study.X.rename(columns={"roi0": "other"}), site=study.site, covariates=study.people)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"unseen_sites": "own_row"}, r"unseen_sites must be one of .*got 'own_row' \(did you mean 'own_rows'\?\)"),
        ({"unseen_sites": None}, "unseen_sites must be one of"),
        ({"empirical_bayes": "yes"}, "empirical_bayes must be True or False"),
        ({"mean_only": 1}, "mean_only must be True or False"),
    ],
)
def test_bad_parameters_get_a_sentence(study, parameters, sentence):
    with pytest.raises(InputError, match=sentence):
        ComBat(**parameters).fit(study.X, site=study.site)


def test_a_model_that_is_not_fitted_says_so(study):
    with pytest.raises(NotFittedError):
        ComBat().transform(study.X, site=study.site)
    combat = ComBat().fit(study.X, site=study.site)
    with pytest.raises(InputError):
        combat.fit(study.X, site=None)
    with pytest.raises(NotFittedError):
        combat.transform(study.X, site=study.site)


def test_names_clones_and_pickles(study):
    combat = ComBat(mean_only=True).set_output(transform="pandas")
    out = combat.fit_transform(study.X, site=study.site, covariates=study.people)
    assert list(out.columns) == list(combat.get_feature_names_out()) == list(study.X.columns)
    assert out.index.equals(study.X.index)
    again = pickle.loads(pickle.dumps(combat))  # noqa: S301
    pd.testing.assert_frame_equal(again.transform(study.X, site=study.site, covariates=study.people), out)
    assert clone(combat).get_params() == combat.get_params()
    assert not hasattr(clone(combat), "sites_")


def test_the_given_table_is_left_alone(study):
    before = [study.X.copy(), study.site.copy(), study.people.copy()]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ComBat().fit_transform(study.X, site=study.site, covariates=study.people)
    pd.testing.assert_frame_equal(study.X, before[0])
    pd.testing.assert_series_equal(study.site, before[1])
    pd.testing.assert_frame_equal(study.people, before[2])
