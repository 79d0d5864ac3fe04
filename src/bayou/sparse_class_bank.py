"""A bank for sparse rows whose targets are three classes or more: each member has a latent, and weights, per class."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayou.contracts import Matrix, State, Vector, VectorLikelihood
from bayou.likelihoods import Logistic, Softmax
from bayou.members import Member
from bayou.mixed_classes import MixedClasses
from bayou.numerics.chains import FAINTEST
from bayou.numerics.sparse_class_banks import class_room, learn_sparse_classes, predict_sparse_classes
from bayou.posteriors.sparse_diagonal_gaussian import SparseDiagonalBelief
from bayou.sparse_bank import DTYPE, SparseBank

_ENTRIES: dict[str, Any] = {}
# The logistic function is close to the normal one of its argument over this.
LOGISTIC_OVER_PROBIT = 1.702


class SparseClassBank(SparseBank):
    """A `SparseBank` of members of `Softmax`: 8 bytes per weight, member and class, and 8 per feature.

    >>> import scipy.sparse
    >>> from bayou import Member, Softmax, SparseClassBank
    >>> rows = scipy.sparse.csr_array([[0.0, 0.0, 1.0], [2.0, 0.0, 0.0]])
    >>> bank = SparseClassBank([Member(Softmax(3), drift) for drift in (0.0, 1e-4)], n_features=3)
    >>> _ = bank.learn_many(rows, [2, 0])
    >>> bank.predict_many(rows).probabilities.argmax(axis=1)
    array([2, 0])
    """

    _is_of_classes = True

    def _prepare(self) -> None:
        self._kernels: Any = np.zeros(0)  # of classes there is one kind of member
        self._params = np.zeros((len(self.members), 1))
        self._room: Any = class_room(self.n_latents, len(self.members), DTYPE)
        self._prepare_entries(_ENTRIES, predict_sparse_classes, learn_sparse_classes)

    def _said_of(self, n: int) -> tuple[Any, Matrix, Vector]:
        """Room for the probabilities that members give, for their shares, and for what all gave to the targets."""
        return np.empty((n, len(self.members), self.n_latents)), np.empty((n, len(self.members))), np.empty(n)

    def _mixed(self, record: Any, shares: Matrix, evidence: Vector | None) -> Any:
        return MixedClasses(record, shares, evidence=evidence)

    @property
    def likelihood(self) -> VectorLikelihood:  # type: ignore[override]  # of several latents
        """That of all members."""
        likelihood = self.members[0].likelihood
        assert isinstance(likelihood, Softmax)
        return likelihood

    def by_class(self) -> Any:
        """What is believed of the weights: (features, classes, 2, members), a view."""
        return self.belief.weights.reshape(self.n_features, self.n_latents, 2, len(self.members))

    def weights_told(self) -> SparseDiagonalBelief:
        """Mean and variance of each weight of each class, by all members together."""
        shares = self.weights.astype(DTYPE)
        means, variances = (self.by_class()[:, :, part] for part in (0, 1))
        mean = means @ shares
        variance = (variances + (means - mean[..., None]) ** 2) @ shares
        return SparseDiagonalBelief(np.ascontiguousarray(np.stack([mean.T, variance.T], axis=2)))

    def retell_some(self, places: Any, scale: Vector, shift: Vector) -> None:
        """Go on with these features told otherwise: see `bayou.contracts.Posterior.retell`, of these weights alone."""
        for c in range(self.n_latents):
            self._retell_weights(self.by_class()[:, c], places, scale, shift)

    def carry(self, known: SparseBank, rarity: float) -> None:
        """Begin with what a bank of one class less knows; the new class has the prior, but for how rare it is so far.

        Of two classes each has half of their one latent, against each other, as logits.
        """
        last, own, partners = self.n_latents - 1, self.by_class(), self._partners(known)
        for m, old in enumerate(partners):
            if isinstance(known, SparseClassBank):
                own[:, :last, :, m] = known.by_class()[:, :, :, old]
                continue
            likelihood = known.members[old].likelihood
            logits = 1.0 if isinstance(likelihood, Logistic) else LOGISTIC_OVER_PROBIT
            logits /= getattr(likelihood, "noise_scale", 1.0)
            was = known.belief.weights[:, :, old]
            for c, sign in enumerate((-0.5, 0.5)):
                own[:, c, 0, m], own[:, c, 1, m] = sign * logits * was[:, 0], 0.5 * logits**2 * was[:, 1]
        if self.constant:
            own[-1, last, 0] = own[-1, :last, 0].mean(axis=0) - rarity / self.constant
        self.belief.seen[...], self.belief.steps[...] = known.belief.seen, known.belief.steps
        alike = np.array([partners.count(old) for old in partners], dtype=np.float64)
        self.belief.chains[...] = np.maximum(known.belief.chains[:, partners] / alike, FAINTEST)
        self.belief.chains[...] /= self.belief.chains.sum()
        self.n_examples, self.log_evidence = known.n_examples, known.log_evidence

    def _partners(self, known: SparseBank) -> list[int]:
        """For each member that of another bank which is most like it, in drift before size."""

        def apart(member: Member, other: Member) -> tuple[float, float]:
            drifts, sizes = (member.drift, other.drift), (member.prior_variance, other.prior_variance)
            by_drift = abs(math.log10(max(drifts[0], 1e-9)) - math.log10(max(drifts[1], 1e-9)))
            return by_drift, abs(math.log(float(sizes[0]) / float(sizes[1])))  # type: ignore[arg-type]  # one for all

        others = range(len(known.members))
        return [min(others, key=lambda old: apart(member, known.members[old])) for member in self.members]


def sparse_bank(members: Any, n_features: int, constant: float = 0.0) -> SparseBank:
    """A bank of such members for sparse rows, of numbers or of classes."""
    kind = SparseClassBank if members[0].n_latents > 1 else SparseBank
    return kind(members, n_features, constant)


def bank_from_state(state: State) -> SparseBank:
    """The bank of sparse rows that this data describes."""
    kind = SparseClassBank if any(member.n_latents > 1 for member in state.config["members"]) else SparseBank
    return kind.from_state(state)


__all__ = ["SparseClassBank", "bank_from_state", "sparse_bank"]
