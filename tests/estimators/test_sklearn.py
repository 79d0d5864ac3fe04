"""scikit-learn's own checks of an estimator."""

from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from bayou.estimators import NormalisedPerceptron, OnlineClassifier, OnlineCounter, OnlineRegressor, ShiftedPerceptron
from bayou.posteriors import DiagonalGaussian
from bayou.schedules import PowerLawRate

ONE_PASS = (
    "The check shuffles weighted and repeated rows differently. One pass learns in the order of the rows, and what a "
    "row teaches depends on what came before. In one order a weight of k is the row k times: test_rows."
)
WHOLE_NUMBERS = "The check gives fractions as targets; counts are whole numbers, and a fraction is refused by name."
FRACTIONS = [
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_regressor_data_not_an_array",
    "check_regressors_no_decision_function",
    "check_regressors_train",
]


def expected_failures(estimator: Any) -> dict[str, str]:
    expected = {f"check_sample_weight_equivalence_on_{kind}_data": ONE_PASS for kind in ("dense", "sparse")}
    if isinstance(estimator, OnlineCounter):
        expected |= dict.fromkeys(FRACTIONS, WHOLE_NUMBERS)
    return expected


@parametrize_with_checks(
    [
        OnlineClassifier(),
        OnlineRegressor(),
        OnlineCounter(),
        OnlineClassifier(posterior=DiagonalGaussian(), standardize=False),
        NormalisedPerceptron(),
        NormalisedPerceptron(PowerLawRate(2.0, power=0.5), normalise=False, standardize=False),
        ShiftedPerceptron(),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks_pass(estimator: Any, check: Any) -> None:
    """A check of scikit-learn's raises where it is not met."""
    check(estimator)
