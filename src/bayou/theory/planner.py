"""How many labels a linear classifier needs: the learning curves, in the units of someone who has to pay for labels.

    labels = n_features alpha(error),   y = cot(pi error)^2
    full                  alpha = y / g(y)                      as the exact posterior learns, all labels at once
    diagonal, spherical   alpha = integral from 0 to y of dy / g(y)

with g of `bayou.theory.overlaps`. `ASSUMPTIONS` says of whom this is true.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import integrate

from bayou.contracts import Vector
from bayou.errors import InvalidSpec
from bayou.theory.curves import label_error, perceptron_curve
from bayou.theory.overlaps import gain

_KINDS = {"full": "batch_bayes", "diagonal": "spherical", "spherical": "spherical"}
LEAST_ERROR = 1e-100  # below, the labels could not be counted
_SMALL = 1e-8  # of y: up to here g is g(0)

ASSUMPTIONS = (
    "Two classes, told apart by the sign of w . x + noise: a plane through the origin of the features as given.",
    "Features are independent, of mean 0 and one scale; correlated or unequal features leave the full family where it "
    "is in the end, but cost the others more labels: see `bayou.theory.asymptotics`.",
    "Every feature matters alike: the weights are drawn from one normal distribution, which is the learner's prior.",
    "The learner has the right noise: Probit of noise_scale^2 = noise * (variance of w . x), or Step if there is none.",
    "Many features, about 50 and more. With 10, single runs scatter, and on average the diagonal and the spherical "
    "family have errors up to a sixth smaller than planned.",
    "Labels come at random, and each is used once.",
)
_OF_THE_FULL_FAMILY = (
    "FullGaussian is planned as the exact posterior, all labels at once. One pass needs more of them: in simulations "
    "of 100 features no more than 3 % where a tenth of the labels is wrong, about 10 % where a twentieth is, 20 % "
    "where a hundredth is and 30 % where none are; less where the error is far below the rate of wrong labels.",
)


@dataclass(frozen=True, eq=False)
class PredictedCurve:
    """A learning curve to lay over a real run.

    ``error`` is the chance to disagree with the true plane on a new input, ``label_error`` that to disagree with a new
    label: the two differ by the noise of the labels, and only the second can be counted in a real run.
    """

    family: str
    noise: float
    n_features: int
    n_examples: Vector
    error: Vector
    label_error: Vector

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the prediction to do so."""
        return assumptions(self.family)

    def __str__(self) -> str:
        lines = [f"{self.family} family, {self.n_features} features, noise {self.noise:g}"]
        lines += ["  examples     error  label error"]
        columns = zip(self.n_examples, self.error, self.label_error, strict=True)
        lines += [f"{n:10g}  {error:8.5f}     {seen:8.5f}" for n, error, seen in columns]
        return "\n".join([*lines, "if:", *(f"  - {line}" for line in self.assumptions)])


def assumptions(family: str = "full") -> tuple[str, ...]:
    """What must hold for the plans of a family to do so."""
    _check(1, 0.0, family)
    return ASSUMPTIONS + (_OF_THE_FULL_FAMILY if family == "full" else ())


def noise_of_flips(flip_rate: float) -> float:
    """The noise that makes this fraction of labels wrong: tan(pi rate)^2.

    >>> round(noise_of_flips(0.1), 4)
    0.1056
    """
    if not 0.0 <= flip_rate < 0.5:
        raise InvalidSpec(f"`flip_rate` must be in [0, 0.5); got {flip_rate!r}.")
    return math.tan(math.pi * flip_rate) ** 2


def labels_needed(error: float, n_features: int, noise: float = 0.0, family: str = "full") -> int:
    """How many labels bring the error down to this, on average, if `ASSUMPTIONS` hold.

    ``error`` is the chance to disagree with the true plane, without the noise of labels; ``noise`` is the variance of
    that noise over the variance of w . x (see `noise_of_flips`); ``family`` is "full", "diagonal" or "spherical".

    >>> labels_needed(0.05, n_features=100)
    868
    >>> labels_needed(0.05, n_features=100, noise=noise_of_flips(0.1), family="diagonal")
    2578
    """
    _check(n_features, noise, family)
    if not LEAST_ERROR < error < 0.5:
        raise InvalidSpec(f"`error` must lie between {LEAST_ERROR} and 0.5; got {error!r}.")
    y = math.tan(math.pi * error) ** -2
    alpha = y / gain(y, noise) if family == "full" else _online_alpha(y, noise)
    return math.ceil(n_features * alpha)


def _online_alpha(y: float, noise: float) -> float:
    """The integral of dy / g, in log y."""
    if y <= _SMALL:
        return y / gain(0.0, noise)

    def slope(log_y: float, _: Vector) -> list[float]:
        return [math.exp(log_y) / gain(math.exp(log_y), noise)]

    span = (math.log(_SMALL), math.log(y))
    solution = integrate.solve_ivp(slope, span, [_SMALL / gain(0.0, noise)], "DOP853", rtol=1e-11, atol=0.0)
    return float(solution.y[0, -1])


def predicted_curve(n_features: int, n_examples: ArrayLike, noise: float = 0.0, family: str = "full") -> PredictedCurve:
    """What errors to expect after so many examples, on average, if `ASSUMPTIONS` hold.

    >>> curve = predicted_curve(n_features=50, n_examples=[100, 1000], noise=noise_of_flips(0.1))
    >>> curve.error.round(4), curve.label_error.round(4)
    (array([...]), array([...]))
    """
    _check(n_features, noise, family)
    counts = np.atleast_1d(np.array(n_examples, dtype=np.float64))
    if counts.ndim != 1 or not np.all(np.isfinite(counts) & (counts >= 0.0)):
        raise InvalidSpec(f"`n_examples` must be finite numbers, none negative, in one row; got {n_examples!r}.")
    curve = perceptron_curve(_KINDS[family], counts / n_features, noise)
    return PredictedCurve(family, float(noise), int(n_features), counts, curve.error, label_error(curve.error, noise))


def _check(n_features: int, noise: float, family: str) -> None:
    if family not in _KINDS:
        raise InvalidSpec(f"`family` must be one of {', '.join(map(repr, _KINDS))}; got {family!r}.")
    if not (isinstance(n_features, (int, np.integer)) and n_features >= 1):
        raise InvalidSpec(f"`n_features` must be a whole number, at least 1; got {n_features!r}.")
    if not 0.0 <= noise < math.inf:
        raise InvalidSpec(f"`noise` must be finite and not negative; got {noise!r}.")
