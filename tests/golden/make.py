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


def _learner(likelihood: Any, posterior: Any, rule: Any = None) -> Learner:
    return Learner(likelihood, posterior, rule or MomentMatching(), N_FEATURES)


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
    "learner-softmax": lambda: _learner(bayou.Softmax(3), bayou.FullGaussian()),
}


def _rows(start: int, n: int) -> Any:
    """Rows without randomness and without rounding."""
    return ((np.arange(start, start + n * N_FEATURES) * 37) % 19 - 9.0).reshape(n, N_FEATURES) / 8.0


def _tell(model: Any) -> dict[str, Any]:
    """What a model knows, in numbers."""
    prediction = model.predict_many(_rows(1000, 5))
    return {
        "latent mean": prediction.latent.mean.tolist(),
        "latent variance": prediction.latent.variance.tolist(),
        "mean": prediction.mean.tolist(),
        "n_examples": model.n_examples,
        "log_evidence": model.log_evidence,
    }


def _teach(model: Any, start: int) -> None:
    """Let a model learn some rows."""
    targets = PLAUSIBLE[model.likelihood.accepts(PLAUSIBLE)]
    model.learn_many(_rows(start, 12), targets[np.arange(start, start + 12) * 7 % 5 % targets.size])


def answers(model: Any) -> dict[str, Any]:
    """What a model says now, and after it has learnt more."""
    now = _tell(model)
    _teach(model, 500)
    return {"now": now, "later": _tell(model)}


def main() -> None:
    for name, make in MODELS.items():
        if not (HERE / f"{name}.bayou").exists():
            model = make()
            _teach(model, 0)
            bayou.save(model, HERE / f"{name}.bayou")
            (HERE / f"{name}.json").write_text(json.dumps(answers(model), indent=1) + "\n")


if __name__ == "__main__":
    main()
