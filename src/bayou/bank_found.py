"""What a bank has found, as numbers and in some lines for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayou.bank_changes import Change, ChangePoint, Snapshots
from bayou.contracts import Mask, Matrix, Vector
from bayou.errors import InvalidSpec
from bayou.members import Member
from bayou.numerics.bank_belief import CHANGES, STEPS, BankBelief, BankPlan, slice_of

LEAST_BELIEVED = 1e-200  # with less, a chain has forgotten who of some was better

LEAST = 0.005  # what is less probable is not told
MOST_CHANGES = 3


class Settings:
    """What a bank believes of its members, and of what they differ in."""

    members: tuple[Member, ...]
    belief: Any  # with chains (k, m), which sum to one

    @property
    def drift_probability(self) -> float:
        """How probable it is that the stream drifts at all: that a member whose weights walk is the best."""
        return float(sum(p for drift, p in self.settings("drift").items() if drift > 0.0))

    @property
    def weights(self) -> Vector:
        """What is believed of each member: its probability."""
        weights: Vector = self.belief.chains.sum(axis=0)
        return weights

    @property
    def switching_weights(self) -> Vector:
        """What is believed of each rate of switching."""
        weights: Vector = self.belief.chains.sum(axis=1)
        return weights

    def settings(self, name: str) -> dict[Any, float]:
        """How probable each value of a setting is: "drift", "prior_variance", or a field of the likelihoods.

        Members whose likelihood has no such field count under None.

        >>> from bayou import Bank, FlipProbit, Member, Probit
        >>> bank = Bank([Member(Probit()), Member(FlipProbit(0.1)), Member(FlipProbit(0.1), drift=1e-3)], n_features=1)
        >>> bank.settings("flip_rate")
        {None: 0.3333333333333333, 0.1: 0.6666666666666666}
        """
        found: dict[Any, float] = {}
        for member, weight in zip(self.members, self.weights.tolist(), strict=True):
            value = getattr(member, name, getattr(member.likelihood, name, None))
            found[value] = found.get(value, 0.0) + weight
        if set(found) == {None}:
            raise InvalidSpec(f"`name` must be a setting of some member; got {name!r}.")
        return found

    def found(self) -> str:
        """What was found, in some lines for people."""
        return "\n".join(drift_and_noise(self))


class Findings(Settings):
    """What a bank has found: who is believed, which settings, what changed, and the weights of the inputs."""

    n_features: int
    belief: BankBelief
    plan: BankPlan
    snapshots: Snapshots

    @property
    def n_latents(self) -> int:
        """One, or one per class."""
        return self.members[0].n_latents

    @property
    def n_steps(self) -> int:
        """How many examples were forecast or learnt."""
        return int(self.belief.pulse[STEPS])

    @property
    def awake(self) -> Mask:
        """Which members are awake."""
        awake: Mask = self.belief.rest <= 0.0
        return awake

    @property
    def drift_probability(self) -> float:
        """How probable it is that the stream drifts at all: that a member whose weights walk is the best, or one that
        began anew.
        """
        moves = self.plan.drift > 0.0
        moves |= (self.plan.restarts > 0) & (self.belief.born > 0.0)
        return float(self.weights[moves].sum())

    def change_points(self) -> list[ChangePoint]:
        """Rows at which all has changed, with how probable that was when it was most: the latest 64 of those found."""
        count, most = int(self.belief.pulse[CHANGES]), len(self.belief.changes)
        kept = [self.belief.changes[i % most] for i in range(max(count - most, 0), count)]
        return [ChangePoint(int(row), float(probability)) for row, probability in kept]

    def weights_of_inputs(self, scales: Vector | None = None, latent: int = 0) -> tuple[Vector, Matrix]:
        """Mean and covariance of the weights of the inputs, by the members that have no waves, each times its scale.

        Those of one ``latent`` if there are several, one per class. Members are weighed as the chain does that is
        believed most; or, if it believes in none of them, by what they gave to the latest targets.
        """
        shares = self._shares_of_plain()
        d, factors = self.n_features, np.ones(len(shares)) if scales is None else scales
        parts = [(m, share) for m, share in enumerate(shares.tolist()) if share > 0.0]
        means = {m: factors[m] * self.mean_of(m, latent)[:d] for m, _ in parts}
        mean: Vector = np.sum([share * means[m] for m, share in parts], axis=0)
        covariance = np.zeros((d, d))
        for m, share in parts:
            noise = self.belief.noise[m, 1] / self.belief.noise[m, 0] if self.members[m].learns_noise else 1.0
            apart = means[m] - mean
            own = self.covariance_of(m, latent)[:d, :d]
            covariance += share * (factors[m] ** 2 * noise * own + np.outer(apart, apart))
        return mean, covariance

    def _weights_now(self) -> tuple[Vector, Vector]:
        """Mean and variance of the weights of the inputs, of all latents one behind the other."""
        told = [self.weights_of_inputs(latent=c) for c in range(self.n_latents)]
        return np.concatenate([mean for mean, _ in told]), np.concatenate([np.diagonal(own) for _, own in told])

    def _shares_of_plain(self) -> Vector:
        """What is believed of each member among those that are linear in the inputs."""
        for wanted in (self.awake & (self.plan.group < 0), self.plan.group < 0, self.awake):
            if wanted.any():
                break
        believed = self.belief.chains[np.argmax(self.switching_weights)]
        merit = np.where(wanted, self.belief.merit, -np.inf)
        relative = np.where(wanted, believed, 0.0)
        if relative.max() < LEAST_BELIEVED:
            relative = np.exp(merit - merit.max())
        shares: Vector = relative / relative.sum()
        return shares

    def what_changed(self, since: int = 0) -> list[Change]:
        """How the weight of each input has moved since a row, those that moved by most deviations first."""
        return self.snapshots.changes(self._weights_now(), since)

    def found(self) -> str:
        """What was found, in some lines for people."""
        return told(self)

    def mean_of(self, m: int, latent: int = 0) -> Vector:
        """What a member expects of its weights; of one latent, if there are several."""
        mean: Vector = self.belief.mean[slice_of(self.plan, m, latent)[0]]
        return mean

    def covariance_of(self, m: int, latent: int = 0) -> Matrix:
        """The covariance of a member's weights; of one latent, if there are several."""
        _, square, size = slice_of(self.plan, m, latent)
        covariance: Matrix = self.belief.covariance[square].reshape(size, size)
        return covariance

    @property
    def nbytes(self) -> int:
        """Bytes of all that is believed: as many however long the stream."""
        return sum(array.nbytes for array in (*self.belief, *self.plan)) + self.snapshots.nbytes


def told(bank: Findings) -> str:
    """Drift, label noise, what bends, changes, and what it costs."""
    lines = drift_and_noise(bank)
    bends = sum(p for waves, p in _by(bank, "waves").items() if waves is not None)
    lines.append(f"bends with probability {bends:.2f}")
    changes = bank.change_points()
    if changes:
        latest = ", ".join(f"row {row:,} ({probability:.2f})" for row, probability in changes[-MOST_CHANGES:])
        lines.append(f"changes of everything: {len(changes)}; the latest at {latest}")
    lines.append(f"{int(bank.awake.sum())} of {len(bank.members)} members awake; {bank.nbytes:,} bytes")
    return "\n".join(lines)


def drift_and_noise(bank: Settings) -> list[str]:
    """How fast weights walk, how many labels are wrong, and how large weights are."""
    lines = [f"drifts with probability {bank.drift_probability:.2f}; per row, of the prior variance: " + _drifts(bank)]
    if any(hasattr(member.likelihood, "flip_rate") for member in bank.members):
        rates = {rate or 0.0: p for rate, p in bank.settings("flip_rate").items()}
        lines.append(f"wrong labels: {sum(rate * p for rate, p in rates.items()):.3f} ({_listed(rates)})")
    if len(sizes := _sizes(bank)) > 1:
        lines.append(f"prior variance of weights: {_listed(sizes)}")
    return lines


def _by(bank: Findings, name: str) -> dict[Any, float]:
    return bank.settings(name) if any(getattr(member, name) is not None for member in bank.members) else {None: 1.0}


def _sizes(bank: Settings) -> dict[float, float]:
    """How probable each prior variance is, of members that have one for all weights."""
    return {size: p for size, p in bank.settings("prior_variance").items() if isinstance(size, (int, float))}


def _drifts(bank: Settings) -> str:
    return _listed(bank.settings("drift"))


def _listed(found: Mapping[float, float]) -> str:
    return ", ".join(f"{value:g}: {p:.2f}" for value, p in sorted(found.items()) if p >= LEAST)
