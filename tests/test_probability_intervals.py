"""Intervals of probabilities, beside samples of the weights."""

import numpy as np
import pytest
from scipy.special import expit, ndtr

from bayou import Bank, FlipProbit, FullGaussian, Learner, Logistic, Member, MomentMatching, OnlineClassifier, Probit
from bayou.errors import InvalidSpec
from bayou.probability_intervals import probability_interval

N_SAMPLES = 200_000
RNG = np.random.default_rng(5)
X = RNG.normal(size=(300, 3))
Y = np.where(RNG.random(300) < expit(X @ [1.0, -2.0, 0.5]), 1.0, -1.0)
ASKED = RNG.normal(size=(8, 3))


@pytest.mark.parametrize(
    ("likelihood", "link"),
    [(Logistic(), expit), (Probit(), ndtr), (FlipProbit(0.1), lambda f: 0.1 + 0.8 * ndtr(f))],
)
@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_ends_are_quantiles_over_sampled_weights(likelihood, link, coverage):
    """A quantile of so many samples has a standard error of 0.001 in level; the rest is one in 256."""
    learner = Learner(likelihood, FullGaussian(2.0), MomentMatching(), n_features=3)
    learner.learn_many(X[:40], Y[:40])
    weights = RNG.multivariate_normal(learner.belief.mean, learner.posterior.covariance(learner.belief), N_SAMPLES)
    ends = probability_interval(learner.predict_many(ASKED), coverage)
    sampled = link(ASKED @ weights.T)
    below, up_to = ((sampled[:, :, None] < ends[:, None, :] + shift).mean(axis=1) for shift in (-1e-9, 1e-9))
    levels = np.array([0.5 - coverage / 2, 0.5 + coverage / 2])
    assert np.all((below < levels + 0.006) & (up_to > levels - 0.006))  # many are the same where flips bound them


def test_a_bank_mixes_its_members():
    bank = Bank([Member(Logistic()), Member(Logistic(), drift=0.01), Member(FlipProbit(0.2))], n_features=3)
    bank.learn_many(X, Y)
    said = bank.predict_many(ASKED)
    samples = []
    for share, member, latent in zip(said.shares.T, bank.members, said.latents, strict=True):
        link = expit if isinstance(member.likelihood, Logistic) else lambda f: 0.2 + 0.6 * ndtr(f)
        count = np.round(share * N_SAMPLES).astype(int)
        normal = [RNG.normal(m, np.sqrt(v), n) for m, v, n in zip(latent.mean, latent.variance, count, strict=True)]
        samples.append([link(f) for f in normal])
    ends = probability_interval(said)
    for row, (low, high) in enumerate(ends):
        sampled = np.concatenate([member[row] for member in samples])
        assert np.mean(sampled < low) == pytest.approx(0.05, abs=0.006)
        assert np.mean(sampled < high) == pytest.approx(0.95, abs=0.006)


def test_a_classifier_is_surer_the_more_it_has_learnt():
    labels, widths = np.where(Y > 0.0, "yes", "no"), []
    for count in (20, 300):
        model = OnlineClassifier().partial_fit(X[:count], labels[:count])
        ends, second = model.predict_proba_interval(ASKED), model.predict_proba(ASKED)[:, 1]
        assert np.all((ends[:, 0] <= second) & (second <= ends[:, 1]))
        widths.append(np.mean(ends[:, 1] - ends[:, 0]))
    assert widths[1] < 0.6 * widths[0]
    turned = OnlineClassifier().partial_fit(X[::-1], np.where(Y > 0.0, "a", "b")[::-1])
    assert np.all(turned.predict_proba_interval(ASKED)[:, 0] <= turned.predict_proba(ASKED)[:, 1])


def test_what_is_said_lies_within_however_lopsided_it_is():
    """Far out, most members are sure and a few are not: the mean is beyond what nine tenths of the belief say."""
    clear = np.where(X[:, 0] > 0.0, "yes", "no")
    model = OnlineClassifier().partial_fit(X, clear)
    far = np.outer([-30.0, -10.0, -3.0, 3.0, 10.0, 30.0], [1.0, 0.0, 0.0])
    ends, said = model.predict_proba_interval(far), model.predict_proba(far)[:, 1]
    assert np.all((ends[:, 0] <= said) & (said <= ends[:, 1]))


def test_what_has_no_interval_says_so():
    model = OnlineClassifier().partial_fit(X, np.arange(300) % 3)
    with pytest.raises(InvalidSpec, match="two classes; got 3"):
        model.predict_proba_interval(ASKED)
    with pytest.raises(InvalidSpec, match="coverage"):
        OnlineClassifier().partial_fit(X, Y).predict_proba_interval(ASKED, 1.5)
