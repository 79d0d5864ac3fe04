"""Order parameters from production kernels: closed special cases, the printed equations, and simulation."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, special

from bayou import (
    DiagonalGaussian,
    FlipProbit,
    FullGaussian,
    Gaussian,
    Iterated,
    Learner,
    Linearized,
    Logistic,
    MomentMatching,
    Poisson,
    Probit,
    SphericalGaussian,
    Step,
    StudentT,
    Variational,
)
from bayou.contracts import Posterior, Rule, ScalarLikelihood
from bayou.errors import ImproperBelief, InvalidSpec
from bayou.numerics.jit import COMPILED
from bayou.theory import Inputs, Teacher, order_parameters, perceptron_curve

compiled = pytest.mark.skipif(not COMPILED, reason="integrals over kernels need compiled ones")


@compiled
@pytest.mark.parametrize("likelihood", [Step(), Probit(0.8)], ids=repr)
def test_spherical_perceptrons_follow_their_closed_curve(likelihood: ScalarLikelihood) -> None:
    """From no knowledge Q = R = 1 - c, and all of it is one equation: at alpha = 1e6 as well."""
    noise = likelihood.noise_scale**2 if isinstance(likelihood, Probit) else 0.0
    alpha = [1e6, 1e-20, 1e-3, 10.0]
    learnt = order_parameters(likelihood, SphericalGaussian(), alpha)
    curve = perceptron_curve("spherical", alpha, noise)
    assert learnt.error == pytest.approx(curve.error, rel=1e-9)
    assert learnt.c == pytest.approx(curve.variance, rel=1e-9)
    assert pytest.approx(curve.norm, rel=1e-9) == learnt.Q
    assert pytest.approx(curve.norm, rel=1e-9) == learnt.R


def bona_slopes(_: float, state: np.ndarray) -> list[float]:
    """de Oliveira & Alamino 2007, (17), (18), (22 corrected): averages over t of density 2 phi(t) Phi(t / sqrt(r))."""
    Q, zeta, rho = state
    r = 1.0 / rho**2 - 1.0
    B = math.sqrt(Q / zeta)

    def ratio(t: float) -> float:
        return math.sqrt(2.0 / math.pi) / float(special.erfcx(-B * t / math.sqrt(2.0)))

    def normal(t: float) -> float:
        return math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)

    def average(function: object) -> float:
        ends = np.array([-9.0, -3.0, -1.0, 0.0, 1.0, 3.0, 9.0])
        return sum(integrate.quad(function, low, high, epsrel=1e-9)[0] for low, high in pairwise(ends))

    def density(t: float) -> float:
        return 2.0 * normal(t) * float(special.ndtr(t / math.sqrt(r)))

    A1 = average(lambda t: density(t) * ratio(t) ** 2)
    A2 = average(lambda t: density(t) * t * ratio(t))
    A3 = average(lambda t: 2.0 * math.sqrt(1.0 - rho**2) * normal(t) * normal(t / math.sqrt(r)) * ratio(t))
    return [
        2.0 * math.sqrt(Q * zeta) * A2 + zeta * A1,
        -zeta * (B * A2 + A1),
        math.sqrt(zeta / Q) * A3 - 0.5 * rho * (zeta / Q) * A1,
    ]


@compiled
def test_scalar_bona_from_elsewhere_follows_its_equations() -> None:
    start, alpha = (0.2, 0.5), [0.3, 3.0]
    learnt = order_parameters(Step(), SphericalGaussian(1.5), alpha, start=start)
    state = [start[1], 1.5, start[0] / math.sqrt(start[1])]
    wanted = integrate.solve_ivp(bona_slopes, (0.0, 3.0), state, "RK45", alpha, rtol=1e-7, atol=1e-9).y
    assert pytest.approx(wanted[0], rel=2e-7) == learnt.Q
    assert learnt.c == pytest.approx(wanted[1], rel=2e-7)
    assert learnt.overlap == pytest.approx(wanted[2], rel=2e-7)


@compiled
def test_scalar_bona_forgets_its_start() -> None:
    """de Oliveira & Alamino 2007: the same 0.88 / alpha in the end, but more errors on the way."""
    alpha = [3.0, 1e5]
    elsewhere = order_parameters(Step(), SphericalGaussian(), alpha, start=(0.0, 1.0)).error
    from_nothing = perceptron_curve("spherical", alpha).error
    assert elsewhere[0] > 1.05 * from_nothing[0]
    assert elsewhere[1] == pytest.approx(from_nothing[1], rel=1e-3)
    at_once = order_parameters(Step(), SphericalGaussian(), [0.0], start=(0.3, 1.0))
    assert (at_once.R[0], at_once.Q[0], at_once.c[0]) == pytest.approx((0.3, 1.0, 1.0))
    for start in ((0.0, 0.0), (0.3, 1.0)):
        assert order_parameters(Step(), SphericalGaussian(), [], start=start).error.size == 0


@compiled
def test_without_noise_the_direction_does_not_know_the_scale() -> None:
    learnt = [order_parameters(Step(), SphericalGaussian(c), [0.5, 5.0]) for c in (1.0, 100.0)]
    assert learnt[0].error == pytest.approx(learnt[1].error, rel=1e-9)
    assert 100.0 * learnt[0].c == pytest.approx(learnt[1].c, rel=1e-9)


@compiled
def test_a_belief_that_collapses_says_so() -> None:
    """Without noise in mind, noisy labels make the variance fall exponentially: there is no late time."""
    with pytest.raises(ImproperBelief, match="the belief collapses at alpha = "):
        order_parameters(Step(), SphericalGaussian(), [1e4], Teacher(Probit(0.9)))


@compiled
def test_regression_follows_its_closed_form() -> None:
    """dy/dalpha = 1 / (noise + 1 - Q), y = Q / (1 - Q): then noise y + log(1 + y) = alpha."""
    noise, alpha = 0.5, np.array([0.1, 3.0, 20.0])
    learnt = order_parameters(Gaussian(noise), DiagonalGaussian(), alpha)
    y = learnt.Q / (1.0 - learnt.Q)
    assert noise * y + np.log1p(y) == pytest.approx(alpha, rel=1e-8)
    assert pytest.approx(learnt.Q, rel=1e-9) == learnt.R
    assert learnt.c == pytest.approx(1.0 - learnt.Q, rel=1e-8)


def simulated(
    likelihood: ScalarLikelihood,
    posterior: Posterior[object],
    rule: Rule,
    alphas: list[float],
    label_noise: float,
    variances: tuple[float, ...],
    n: int,
    runs: int,
) -> np.ndarray:
    """Production learners: R and Q per block and error, a row per alpha, a page per run."""
    rng = np.random.default_rng(4)
    blocks = np.repeat(np.arange(len(variances)), n // len(variances))
    v = np.array(variances)[blocks]
    pages = []
    for _ in range(runs):
        w = rng.standard_normal(n)
        for block in range(len(variances)):
            w[blocks == block] /= math.sqrt(np.mean(w[blocks == block] ** 2))
        learner = Learner(likelihood, posterior, rule, n)
        page = []
        for alpha in alphas:
            x = rng.standard_normal((round(alpha * n) - learner.n_examples, n)) * np.sqrt(v / n)
            learner.learn_many(x, np.sign(x @ w + label_noise * rng.standard_normal(len(x))))
            mean = learner.belief.mean
            rho = (v * mean) @ w / math.sqrt(((v * mean) @ mean) * ((v * w) @ w))
            R, Q = ([np.mean((mean * other)[blocks == b]) for b in range(len(variances))] for other in (w, mean))
            page.append([*R, *Q, math.acos(rho) / math.pi])
        pages.append(page)
    return np.array(pages)


@compiled
@pytest.mark.parametrize(
    ("likelihood", "rule", "label_noise"),
    [
        (Probit(0.3), MomentMatching(), 0.9),  # believes in less noise than there is
        (Step(), MomentMatching(), 0.2),  # believes in none
        (FlipProbit(0.1, 0.5), MomentMatching(), 0.5),
        (Logistic(), Variational(), 0.5),
        (Logistic(), Linearized(), 0.5),
        (Probit(0.5), Iterated(), 0.5),
    ],
    ids=repr,
)
def test_learners_of_any_kind_follow_the_dynamics(likelihood: ScalarLikelihood, rule: Rule, label_noise: float) -> None:
    """N = 300; four standard errors, with 1.5 % for so few weights."""
    alphas = [0.5, 4.0]
    learnt = order_parameters(likelihood, SphericalGaussian(), alphas, Teacher(Probit(label_noise)), rule)
    pages = simulated(likelihood, SphericalGaussian(), rule, alphas, label_noise, (1.0,), 300, 24)
    predicted = np.column_stack([learnt.R, learnt.Q, learnt.error])
    allowed = 4.0 * pages.std(axis=0) / math.sqrt(24) + 0.015 * predicted
    assert np.all(np.abs(pages.mean(axis=0) - predicted) < allowed)


@compiled
@pytest.mark.parametrize("posterior", [SphericalGaussian(), DiagonalGaussian()], ids=repr)
def test_learners_of_unequal_inputs_follow_their_blocks(posterior: Posterior[object]) -> None:
    """N = 400; four standard errors, with 1.5 % for so few weights."""
    alphas, variances = [1.0, 8.0], (2.0, 0.2)
    learnt = order_parameters(Probit(0.5), posterior, alphas, inputs=Inputs(variances))
    pages = simulated(Probit(0.5), posterior, MomentMatching(), alphas, 0.5, variances, 400, 16)
    predicted = np.column_stack([learnt.R, learnt.Q, learnt.error])
    allowed = 4.0 * pages.std(axis=0) / 4.0 + 0.015 * predicted
    assert np.all(np.abs(pages.mean(axis=0) - predicted) < allowed)


@compiled
def test_blocks_that_are_equal_are_one() -> None:
    alpha = [10.0, 0.0, 1e-20, 0.1]
    blocks = order_parameters(Probit(0.5), SphericalGaussian(), alpha, inputs=Inputs((3.0, 3.0), (0.3, 0.7)))
    whole = order_parameters(Probit(0.5), SphericalGaussian(), alpha, inputs=Inputs((3.0,)))
    scaled = order_parameters(Probit(0.5), SphericalGaussian(3.0), alpha, Teacher(Probit(0.5), norm=3.0))
    for name in ("R", "Q", "c"):
        for block in range(2):
            assert getattr(blocks, name)[:, block] == pytest.approx(getattr(whole, name), rel=1e-8)
        assert getattr(scaled, name) == pytest.approx(3.0 * getattr(whole, name), rel=1e-9)
    assert blocks.error == pytest.approx(whole.error, rel=1e-8)
    assert blocks.error[1] == 0.5


@compiled
def test_a_well_informed_diagonal_belief_is_true_of_every_block() -> None:
    """Inputs that differ in scale: R = Q = 1 - c holds for each on its own."""
    learnt = order_parameters(Probit(0.7), DiagonalGaussian(), [0.3, 30.0], inputs=Inputs((4.0, 1.0, 0.1)))
    assert pytest.approx(learnt.Q, rel=1e-7) == learnt.R
    assert learnt.c == pytest.approx(1.0 - learnt.Q, rel=1e-7)


@compiled
def test_a_direction_that_is_seldom_seen_is_learnt_slowly_by_one_variance() -> None:
    """Spherical: (w - w*)^2 falls as alpha^-2a with a = v / mean v (Opper 1998, section 4), here a = 0.1 and 1.9."""
    alpha = np.array([300.0, 600.0])
    learnt = order_parameters(Gaussian(0.5), SphericalGaussian(), alpha, inputs=Inputs((1.9, 0.1)))
    missed = 1.0 - 2.0 * learnt.R + learnt.Q
    slopes = np.log(missed[1] / missed[0]) / math.log(2.0)
    assert slopes == pytest.approx([-1.0, -0.2], abs=0.02)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: order_parameters(Probit(), FullGaussian(), [1.0]), "`posterior` must be SphericalGaussian or Diag"),
        (lambda: order_parameters(Probit(), DiagonalGaussian((1.0, 2.0)), [1.0]), "must have one prior variance"),
        (lambda: order_parameters(Probit(), SphericalGaussian(1.0, 0.5), [1.0]), "the prior mean 0; got Spherical"),
        (
            lambda: order_parameters(Probit(), DiagonalGaussian(projection="precision"), [1.0]),
            "`posterior` must keep the moments of its weights; got Diag",
        ),
        (lambda: order_parameters(Poisson(), SphericalGaussian(), [1.0]), "must have targets -1 and \\+1, or be Gaus"),
        (lambda: order_parameters(StudentT(), SphericalGaussian(), [1.0]), "or be Gaussian; got StudentT"),
        (lambda: order_parameters(Gaussian(), SphericalGaussian(), [1.0], Teacher(Step())), "cannot learn the targets"),
        (lambda: order_parameters(Step(), SphericalGaussian(), [1.0], rule=Linearized()), "has no slope"),
        (lambda: order_parameters(Step(), SphericalGaussian(), [-1.0]), "`alphas` must be finite .*; got \\[-1.0\\]"),
        (
            lambda: order_parameters(Step(), SphericalGaussian(), [1.0], start=(0.1, math.inf)),
            "`start` must be R and Q",
        ),
        (lambda: order_parameters(Step(), SphericalGaussian(), [1.0], start=(1.0, 0.5)), "R\\^2 < Q \\* 1, or both 0"),
        (
            lambda: order_parameters(Step(), SphericalGaussian(), [1.0], inputs=Inputs((1.0, 2.0)), start=(0.0, 1.0)),
            "`start` must be \\(0, 0\\)",
        ),
        (lambda: Teacher(Step(), norm=0.0), "`norm` must be positive and finite; got 0.0"),
        (lambda: Inputs(()), "`variances` must be positive and finite, at least one; got \\(\\)"),
        (lambda: Inputs((1.0, -1.0)), "`variances` must be positive .*; got \\(1.0, -1.0\\)"),
        (lambda: Inputs((1.0, 1.0), (0.5, 0.6)), "with the sum 1; got \\(0.5, 0.6\\)"),
    ],
)
def test_what_has_no_dynamics_says_why(make: object, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        make()  # type: ignore[operator]
