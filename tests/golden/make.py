"""Golden model files: what was saved once must load for ever, say what it said then, and go on learning.

    python tests/golden/make.py

writes the models of `MODELS` that have no file yet, each with the answers that it gave. A file that exists is never
rewritten: it stands for all the files that users have. To add one, add a line to `MODELS` and run this script; for a
kind of model that is not a `Learner`, also say in `_tell` and `_teach` how it predicts and how it learns.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import bayou
from bayou import Learner, MomentMatching

HERE = Path(__file__).parent
N_FEATURES = 3
PLAUSIBLE = np.array([-1.0, 1.0, 0.0, 2.0, 0.25, -1.5])  # of which a likelihood takes those that it can produce


def _learner(likelihood: Any, posterior: Any, rule: Any = None, n_features: int = N_FEATURES) -> Learner:
    return Learner(likelihood, posterior, rule or MomentMatching(), n_features)


MODELS: dict[str, Callable[[], Any]] = {
    "learner-full": lambda: _learner(
        bayou.Probit(), bayou.FullGaussian(prior_variance=(1.0, 2.0, 0.1), prior_mean=0.5)
    ),
    "learner-diagonal": lambda: _learner(bayou.Logistic(), bayou.DiagonalGaussian(projection="precision")),
    "learner-diagonal-float32": lambda: _learner(bayou.Poisson(), bayou.DiagonalGaussian(dtype="float32")),
    "learner-low-rank": lambda: _learner(bayou.StudentT(), bayou.LowRankGaussian(rank=1), bayou.Variational()),
    "learner-normal-inverse-gamma": lambda: _learner(
        bayou.Gaussian(2.0), bayou.NormalInverseGamma(), bayou.Linearized()
    ),
    "learner-spherical": lambda: _learner(bayou.Ordinal((-0.5, 0.5)), bayou.SphericalGaussian(), bayou.Iterated()),
    "learner-binary": lambda: _learner(bayou.Probit(2.0), bayou.BinaryWeights(prior_mean=(0.2, 0.0, -0.1))),
    "learner-online-gradient": lambda: _learner(bayou.Logistic(), bayou.OnlineGradient(rate=0.5), bayou.Linearized()),
    "learner-natural-gradient": lambda: _learner(bayou.Gaussian(), bayou.NaturalGradient(), bayou.Linearized()),
    "learner-normalised-gradient": lambda: _learner(
        bayou.Gaussian(), bayou.NormalisedGradient(decay=0.1, prior_mean=(0.2, 0.0, -0.1))
    ),
    "learner-recursive-least-squares": lambda: _learner(bayou.Gaussian(), bayou.RecursiveLeastSquares(0.8)),
    "learner-rosenblatt": lambda: _learner(bayou.Probit(), bayou.Rosenblatt(rate=0.5)),
    "learner-variational-perceptron": lambda: _learner(bayou.Probit(), bayou.VariationalPerceptron((1.0, 0.5, 0.0))),
    "learner-scheduled-point": lambda: _learner(
        bayou.Probit(), bayou.ScheduledPoint(bayou.AdaptiveRate(), prior_mean=(0.2, 0.0, -0.1))
    ),
    "learner-shifted-point": lambda: _learner(
        bayou.Probit(), bayou.ShiftedPoint("mean", bayou.PowerLawRate(2.0, largest=0.5))
    ),
    "learner-function-norm": lambda: _learner(
        bayou.Gaussian(0.5),
        bayou.FunctionNorm(
            bayou.LearntStiffness(0.1), bayou.CubicSplines(3, (-2.0, 2.0)), features="functions", learn_noise=True
        ),
        n_features=6,
    ),
    "learner-function-norm-of-classes": lambda: _learner(
        bayou.Softmax(3), bayou.FunctionNorm(bayou.GeometricStiffness(0.3), bayou.Polynomials(2, (-2.0, 2.0)))
    ),
    "learner-incremental-risk": lambda: bayou.IncrementalRiskLearner(
        bayou.Network((2,)),
        bayou.Gaussian(),
        bayou.FunctionNorm(learn_noise=True),
        MomentMatching(),
        ((-2.0, 2.0),) * 3,
    ),
    "conformal-classifier": lambda: bayou.ConformalClassifier(
        bayou.OnlineClassifier(posterior=bayou.DiagonalGaussian())
    ),
    "conformal-regressor": lambda: bayou.ConformalRegressor(
        bayou.OnlineRegressor(posterior=bayou.NormalInverseGamma(10.0)), coverage=0.8
    ),
    "function-of-classes": lambda: bayou.IncrementalRiskClassifier("polynomial"),
    "function-of-numbers": bayou.IncrementalRiskRegressor,
    "function-of-numbers-bayesian": lambda: bayou.IncrementalRiskRegressor(
        "additive", bayou.NormalInverseGamma(30.0), domain=((-2.0, 2.0),) * 3
    ),
    "two-views": lambda: bayou.BayesianCCA(half_life=200.0),
    "mixture": lambda: bayou.HarmonyMixture(n_clusters=4),
    "local-factors": lambda: bayou.LocalFactorAnalysis(n_clusters=4, n_factors=1),
    "local-functions": lambda: bayou.SubspaceRegressor(n_clusters=4),
    "binary-factors": lambda: bayou.BinaryFactorAnalysis(3, n_starts=2),
    "rival-penalised": lambda: bayou.RivalPenalisedClustering(4),
    "learner-sparse-float32": lambda: bayou.SparseLearner(
        bayou.StudentT(), bayou.SparseDiagonalGaussian(0.5), MomentMatching(), N_FEATURES + 1, constant=2.0
    ),
    "learner-softmax": lambda: _learner(bayou.Softmax(3), bayou.FullGaussian()),
    "learner-network": lambda: bayou.FunctionLearner(
        bayou.Network((2,)), bayou.Gaussian(), bayou.FullGaussian(), MomentMatching(), N_FEATURES, learn_noise=True
    ),
    "network-of-classes": lambda: bayou.NetworkClassifier(2, posterior=bayou.DiagonalGaussian()),
    "network-of-numbers": lambda: bayou.OnlineNetwork(2, posterior=bayou.LowRankGaussian(rank=2)),
    "normalised-perceptron": bayou.NormalisedPerceptron,
    "shifted-perceptron": lambda: bayou.ShiftedPerceptron("projection"),
    "classifier": lambda: bayou.OnlineClassifier(posterior=bayou.DiagonalGaussian()),
    "classifier-of-three": bayou.OnlineClassifier,
    "classifier-of-two-bank": lambda: bayou.OnlineClassifier(budget=bayou.Budget(n_bytes=20_000.0)),
    "regressor-bank": lambda: bayou.OnlineRegressor(budget=bayou.Budget(n_bytes=20_000.0)),
    "counter-bank": lambda: bayou.OnlineCounter(budget=bayou.Budget(n_bytes=20_000.0)),
    "classifier-of-three-bank": lambda: bayou.OnlineClassifier(budget=bayou.Budget(microseconds=6.0)),
    "classifier-hashed-float32": lambda: bayou.OnlineClassifier(
        encoder=bayou.Hashing(10, signed=True, interactions=(("kind", "x0"),))
    ),
    "classifier-that-waits": lambda: bayou.OnlineClassifier(encoder=bayou.Hashing(10, text=("words",))),
    "regressor-that-waits": lambda: bayou.OnlineRegressor(budget=bayou.Budget(n_bytes=20_000.0)),
    "regressor": bayou.OnlineRegressor,
    "counter": lambda: bayou.OnlineCounter(likelihood=bayou.NegativeBinomial(), standardize=False),
    "regressor-of-dicts": bayou.OnlineRegressor,
}
LABELS = {
    "classifier": ("no", "yes"),
    "classifier-hashed-float32": ("no", "yes"),
    "classifier-that-waits": ("no", "yes"),
    "classifier-of-three": (2, 0, 1),
    "classifier-of-three-bank": (2, 0, 1),
    "classifier-of-two-bank": ("no", "yes"),
    "conformal-classifier": ("no", "perhaps", "yes"),
    "function-of-classes": (1, 0, 2),
    "network-of-classes": (1, 0, 2),
    "normalised-perceptron": ("no", "yes"),
    "shifted-perceptron": (0, 1),
}
# Examples that wait for their targets. The files of these two are of a version that had them in the header.
WAITING: dict[str, list[Any]] = {
    "classifier-that-waits": [
        {"x0": 0.5, "kind": "low", "words": 'a "word" in \n 漢字'},
        {"x0": float("nan"), "kind": None, "words": ""},
        {"kind": "high", "words": "another word"},
    ],
    "regressor-that-waits": [np.array([0.5, -1.25, 0.1]), np.array([np.nan, 1.0, -0.0])],
}


def _rows(start: int, n: int, width: int = N_FEATURES) -> Any:
    """Rows without randomness and without rounding."""
    return ((np.arange(start, start + n * width) * 37) % 19 - 9.0).reshape(n, width) / 8.0


def _dicts(start: int, n: int) -> list[dict[str, float]]:
    """The same rows by name, with a value missing here and there."""
    return [
        {f"x{j}": value for j, value in enumerate(row) if (j + i) % 4} for i, row in enumerate(_rows(start, n).tolist())
    ]


def _table(start: int, n: int) -> dict[str, list[Any]]:
    """The same with a category beside them, of which some are missing."""
    rows = _rows(start, n)
    kinds = [None if value == 0.0 else "high" if value > 0.0 else "low" for value in rows[:, 1].tolist()]
    return {"x0": rows[:, 0].tolist(), "kind": kinds}


def _inputs(model: Any, start: int, n: int) -> Any:
    """Rows as a model takes them: a table where it has an encoder, with words where these are expected."""
    if getattr(model, "encoder", None) is None:
        return _rows(start, n)
    words = {name: [f"word {row % 5}" for row in range(start, start + n)] for name in model.encoder.text}
    return _table(start, n) | words


def _tell(model: Any) -> dict[str, Any]:
    """What a model knows, in numbers."""
    if isinstance(model, Learner):
        prediction = model.predict_many(_rows(1000, 5, _width(model)))
        told = {"latent mean": prediction.latent.mean.tolist(), "latent variance": prediction.latent.variance.tolist()}
        return told | {
            "mean": prediction.mean.tolist(),
            "n_examples": model.n_examples,
            "log_evidence": model.log_evidence,
        }
    if isinstance(model, bayou.BayesianCCA):
        told = {"n_examples": model.n_examples_, "n_correlations": model.n_correlations_}
        return told | {"mean": model.predict_interval(_rows(1000, 5)).tolist()}
    if isinstance(model, bayou.HarmonyMixture):
        told = {"n_examples": model.n_examples_, "shares": model.weights_.tolist()}
        return told | {"mean": model.score_samples(_rows(1000, 5)).tolist()}
    if isinstance(model, bayou.SubspaceRegressor):
        told = {"n_examples": model.n_examples_, "shares": model.weights_.tolist()}
        return told | {"mean": model.predict_interval(_rows(1000, 5)).tolist()}
    if isinstance(model, bayou.BinaryFactorAnalysis):
        told = {"n_examples": model.n_examples_, "components": model.components_.tolist()}
        return told | {"mean": model.score_samples(_rows(1000, 5)).tolist()}
    if isinstance(model, bayou.RivalPenalisedClustering):
        told = {"n_examples": model.n_examples_, "centres": model.cluster_centers_.tolist()}
        return told | {"mean": model.transform(_rows(1000, 5)).tolist()}
    if isinstance(model, bayou.ConformalRegressor):
        told = {"n_examples": model.n_examples_, "coverage": model.coverage_, "stretch": model.stretch_}
        return told | {"mean": model.predict_interval(_rows(1000, 5)).tolist()}
    if isinstance(model, bayou.ConformalClassifier):
        told = {"n_examples": model.n_examples_, "coverage": model.coverage_, "left out": model.left_out_}
        sets = model.predict_set(_rows(1000, 5)).astype(int).tolist()
        return told | {
            "classes": model.classes_.tolist(),
            "sets": sets,
            "mean": model.predict_proba(_rows(1000, 5)).tolist(),
        }
    told = {"n_examples": model.n_examples_, "log_evidence": model.log_evidence_}
    if getattr(model, "encoder", None) is not None:
        return told | {
            "mean": model.predict_proba(_inputs(model, 1000, 5)).tolist(),
            "names": sorted(model.inspect(3).names),
        }
    if hasattr(model, "coef_"):
        told["coef"] = model.coef_.tolist()
    if isinstance(model, bayou.OnlineClassifier):
        told["classes"] = model.classes_.tolist()
        return told | {"mean": model.predict_proba(_rows(1000, 5)).tolist()}
    if not hasattr(model, "n_features_in_"):
        return told | {"mean": [model.predict_one(x) for x in _dicts(1000, 5)]}
    return told | {"mean": model.predict_quantiles(_rows(1000, 5)).tolist()}


def _teach(model: Any, start: int, name: str = "") -> None:
    """Let a model learn some rows."""
    if isinstance(model, (bayou.ConformalClassifier, bayou.OnlineClassifier)):
        labels = list(model.classes_) if hasattr(model, "classes_") else LABELS[name]
        model.partial_fit(_inputs(model, start, 12), [labels[(i + start) * 5 % 7 % len(labels)] for i in range(12)])
    elif name == "regressor-of-dicts" or (not isinstance(model, Learner) and getattr(model, "_names", None)):
        for i, x in enumerate(_dicts(start, 12)):
            model.learn_one(x, float((start + i) % 5 - 1))
    elif isinstance(model, bayou.BayesianCCA):
        rows, others = _rows(start, 60), (np.arange(start, start + 120) * 53 % 23 - 11.0).reshape(60, 2) / 16.0
        model.partial_fit(rows, rows[:, :2] * [1.0, -0.25] + others)
    elif isinstance(model, bayou.HarmonyMixture):
        model.partial_fit(_rows(start, 120))  # enough for a stream to have begun
    elif isinstance(model, bayou.SubspaceRegressor):
        rows = _rows(start, 120)  # enough for a stream to have begun
        noise = (np.arange(start, start + 120) * 53 % 23 - 11.0) / 32.0
        model.partial_fit(rows, np.where(rows[:, 0] < 0.0, 2.0 + rows[:, 1], -rows[:, 1]) + noise)
    elif isinstance(model, (bayou.BinaryFactorAnalysis, bayou.RivalPenalisedClustering)):
        model.partial_fit(_rows(start, 210))  # enough for a stream to have begun
    elif not isinstance(model, Learner):
        model.partial_fit(_rows(start, 12), (np.arange(start, start + 12) * 3 % 5).astype(float))
    else:
        targets = PLAUSIBLE[model.likelihood.accepts(PLAUSIBLE)]
        model.learn_many(_rows(start, 12, _width(model)), targets[np.arange(start, start + 12) * 7 % 5 % targets.size])


def _width(learner: Learner) -> int:
    return learner.n_columns if isinstance(learner, bayou.SparseLearner) else learner.n_features


def answers(model: Any) -> dict[str, Any]:
    """What a model says now, and after it has learnt more."""
    now = _tell(model)
    _teach(model, 500)
    return {"now": now, "later": _tell(model)}


def main() -> None:
    for name, make in MODELS.items():
        if not (HERE / f"{name}.bayou").exists():
            model = make()
            _teach(model, 0, name)
            if name in WAITING:
                model.forecast_many(WAITING[name])
            bayou.save(model, HERE / f"{name}.bayou")
            (HERE / f"{name}.json").write_text(json.dumps(answers(model), indent=1) + "\n")


if __name__ == "__main__":
    main()
