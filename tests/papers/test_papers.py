"""The quick claims hold, the errata fail, and a learner that is wrong does not get away with it."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from bayou import Probit, SphericalGaussian
from bayou.numerics.jit import COMPILED
from bayou.papers.__main__ import PAPERS
from bayou.papers.claims import Effort, judge
from bayou.papers.deoliveira2007 import errata
from bayou.papers.deoliveira2007 import figure_1 as bona
from bayou.papers.ensembles import Student, Threshold, run_replicas
from bayou.papers.opper1998 import figure_1, figure_2, section_6, section_8
from bayou.papers.xu import counting
from bayou.theory import perceptron_curve
from tests.papers.quick import QuickRun

ERRATA = {
    (claim.paper, claim.item, claim.quantity)
    for paper in PAPERS.values()
    for experiment in paper.experiments
    for claim in experiment.claims
    if claim.erratum
}


def test_quick_claims_hold_but_for_the_errata(quick_run: QuickRun) -> None:
    """Each within 3 of its own standard errors, with seed 0."""
    failed = {(row["paper"], row["item"], row["quantity"]) for row in quick_run.rows if not row["holds"]}
    assert failed == ERRATA
    assert quick_run.code == 0
    assert {item for _, item, _ in ERRATA} >= {"(8.12)", "(22)", "(2)"}


def test_a_failing_claim_has_its_reason(quick_run: QuickRun) -> None:
    for row in quick_run.rows:
        assert row["holds"] or row["note"]


def test_table_1_to_three_digits(quick_run: QuickRun) -> None:
    names = ("Rosenblatt", "variational: ", "BOnA", "batch Bayes")
    factors = [round(quick_run.find("Table I", name)["theory"], 3) for name in names]
    assert factors == [0.278, 0.883, 0.883, 0.442]
    assert [quick_run.find("Table I", name)["printed"] for name in names] == [0.28, 0.88, 0.88, 0.44]


def test_limits_of_the_scalar_bona_to_four_digits(quick_run: QuickRun) -> None:
    error = quick_run.find("Fig. 1", "e_g × alpha, alpha = 1e+06, four")
    variance = quick_run.find("Fig. 1", "zeta × alpha²")
    assert (round(error["theory"], 4), round(variance["theory"], 3)) == (0.8834, 7.702)
    assert (round(error["printed"], 4), round(variance["printed"], 3)) == (0.8834, 7.702)


def test_perfect_generalisation(quick_run: QuickRun) -> None:
    assert quick_run.find("Sec. 6", "perfect")["theory"] == pytest.approx(4.3682, abs=5e-5)


@pytest.mark.skipif(not COMPILED, reason="ensembles need compiled kernels")
@pytest.mark.parametrize("noise_scale", [1.0, 30.0])
def test_a_wrong_likelihood_breaks_a_learning_curve(noise_scale: float) -> None:
    """A student that is mistaken about the noise misses its curve by ten standard errors (below 1 %)."""
    student = Student(Probit(noise_scale), SphericalGaussian())
    found = run_replicas([student], figure_2.WORLD, [1000], 300).at(1000)
    assert found.standard_error < 0.01 * found.mean
    (theory,) = perceptron_curve("spherical", [20.0], figure_2.NOISE).error
    assert not judge(figure_2.CLAIMS["spherical", 20.0], float(theory), found, quick=True).holds


@pytest.mark.skipif(not COMPILED, reason="ensembles need compiled kernels")
def test_the_theory_of_the_scalar_bona_does_not_follow_a_wrong_student(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bona, "STUDENT", Student(Probit(), SphericalGaussian()))
    found = run_replicas([bona.STUDENT], bona.WORLD, [5000], 20, measure=bona.error_and_variance)
    error, variance = bona.judge_points([found], Effort(quick=True))
    curve = perceptron_curve("spherical", [10.0])
    assert (error.theory, variance.theory) == pytest.approx((curve.error[0], curve.variance[0]), rel=1e-9)
    assert not variance.holds


def test_what_is_allowed_for_few_weights_is_one_in_their_number() -> None:
    """And nothing is allowed for anything else, such as few examples."""
    for paper in PAPERS.values():
        for experiment in paper.experiments:
            for claim in experiment.claims:
                numbers = [float(number) for number in re.findall(r"N = (\d+)", claim.quantity)]
                assert claim.finite_size in (0.0, *(1.0 / number for number in numbers)), claim.quantity


def test_information_of_the_toy() -> None:
    """The bound of Fig. 1 is that of an integral done otherwise."""
    x = np.linspace(-1.0, 1.0, 200_001)
    z = (x - 0.1) / 0.5
    density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    above = 0.5 * (1.0 + np.vectorize(math.erf)(z / math.sqrt(2.0)))
    information = np.mean(density**2 / (above * (1.0 - above))) / 0.5**2
    assert figure_1.information() == pytest.approx(information, rel=1e-4)


@pytest.mark.parametrize("toy", section_8.FOREIGN, ids=lambda toy: toy.name)
def test_foreign_models(toy: section_8.WrongStep | section_8.WrongMean) -> None:
    """The excess is least at the best weight, and A is its curvature there."""
    A, B = toy.information
    assert abs(B / A - 1.0) > 0.3  # far from true
    step = 1e-3
    beside = [toy.excess(toy.best + shift, toy.model_scale) for shift in (-step, 0.0, step)]
    assert beside[1] == pytest.approx(0.0, abs=1e-15)
    assert (beside[0] + beside[2]) / step**2 == pytest.approx(A, rel=1e-4)
    assert (beside[2] - beside[0]) / (2.0 * step) == pytest.approx(0.0, abs=1e-5 * A)


def test_a_true_model_has_one_information() -> None:
    toy = section_8.WrongStep("true", Threshold(0.1, 0.5), 0.5)
    assert toy.best == pytest.approx(0.1, abs=1e-12)
    np.testing.assert_allclose(toy.information, figure_1.information(), rtol=1e-10)


def test_printed_22_stands_still_where_it_should_move() -> None:
    """On r = zeta / Q, where every run from no knowledge stays, the two terms of (22) as printed cancel."""
    Q, zeta = 0.3, 0.7
    r = zeta / Q
    assert errata.slopes(Q, zeta, r, errata.AS_PRINTED)[2] == pytest.approx(0.0, abs=1e-14)
    assert errata.slopes(Q, zeta, r, errata.CORRECTED)[2] > 0.1


def test_corrected_22_is_the_curve_of_the_spherical_family() -> None:
    alphas = np.array([0.1, 1.0, 10.0, 100.0])
    ours = errata.generalisation_error(alphas, errata.CORRECTED)
    np.testing.assert_allclose(ours, perceptron_curve("spherical", alphas).error, rtol=1e-5)


def test_perfect_alpha_is_where_the_error_vanishes() -> None:
    alpha = section_6.perfect_alpha()
    below, above = perceptron_curve("ising", [alpha - 1e-4, alpha + 1e-4]).error
    assert below > 0.0 == above


def test_the_picture_of_selection_has_every_method(quick_run: QuickRun) -> None:
    told = (quick_run.folder / "xu-selection.csv").read_text(encoding="utf-8")
    assert all(method in told for method in counting.METHODS)
