"""A bank for rows of which few entries are not zero: members whose weights are each by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayou.bank import SWITCHING
from bayou.bank_found import Settings, drift_and_noise
from bayou.bank_merging import FIRST_UNITS, retold_noise
from bayou.contracts import Array, Kernel, Matrix, ScalarLikelihood, SparseRows, State, Vector
from bayou.errors import ImproperBelief, InvalidSpec, ModelFileError, ShapeMismatch
from bayou.members import Member
from bayou.mixed_prediction import MixedPrediction
from bayou.numerics.bank_belief import N_RECORDS
from bayou.numerics.bank_weights import FIRST_NOISE
from bayou.numerics.factor import aligned
from bayou.numerics.jit import COMPILED, entry_point
from bayou.numerics.pointers import scalar_kernels
from bayou.numerics.sparse_banks import (
    SparseBankBelief,
    SparseBankPlan,
    SparseBankRoom,
    learn_sparse_bank,
    predict_sparse_bank,
)
from bayou.numerics.sparse_rows import checked, sparse_rows
from bayou.numerics.validation import checked_weights
from bayou.posteriors import SparseDiagonalGaussian
from bayou.posteriors.sparse_diagonal_gaussian import SparseDiagonalBelief
from bayou.rules import MomentMatching

EQUAL_WEIGHTS: Vector = np.zeros(0)
_ENTRIES: dict[str, Any] = {}
DTYPE = np.dtype(np.float32)


class SparseBank(Settings):
    """Members that learn side by side from sparse rows, and say what the mixture of them says.

    They differ in likelihood, drift, prior variance and noise, and have no correlations between weights; in all else
    this is a `Bank`, but that none sleeps. With a ``constant`` there is one feature more than columns, the last, which
    has that value in every row. Memory is 8 bytes per weight and member, and 8 per weight.

    >>> import scipy.sparse
    >>> from bayou import Member, Probit, SparseBank
    >>> rows = scipy.sparse.csr_array([[0.0, 0.0, 1.0], [2.0, 0.0, 0.0]])
    >>> bank = SparseBank([Member(Probit(), drift) for drift in (0.0, 1e-4)], n_features=3)
    >>> _ = bank.learn_many(rows, [1, -1])
    >>> bank.predict_many(rows).mean.round(2)
    array([ 0.34, -0.59])
    """

    _is_of_classes = False

    def __init__(
        self,
        members: Sequence[Member],
        n_features: int,
        constant: float = 0.0,
        switching: Sequence[float] = SWITCHING,
    ) -> None:
        self.members, self.switching = tuple(members), tuple(float(rate) for rate in switching)
        self.n_features, self.constant = int(n_features), float(constant)
        self._check_specs(n_features)
        self.n_examples, self.log_evidence = 0, 0.0
        ceiling = np.array([member.prior_variance for member in self.members], dtype=DTYPE)
        drift = np.array([member.drift for member in self.members], dtype=DTYPE)
        keeps = np.array([member.noise_kept for member in self.members])
        tails = np.array([member.tails for member in self.members], dtype=np.float64)
        shape = len(self.switching), len(self.members)
        self.plan = SparseBankPlan(ceiling, drift * ceiling, np.array(self.switching), self.constant, keeps, tails)
        self.belief = SparseBankBelief(
            weights=aligned((self.n_features * self.n_latents, 2, shape[1]), DTYPE.name),
            seen=np.zeros(self.n_features, np.int64),
            steps=np.zeros(1, np.int64),
            chains=np.full(shape, 1.0 / np.prod(shape)),
            noise=np.tile(FIRST_NOISE, (shape[1], 1)),
        )
        self.belief.weights[:, 0], self.belief.weights[:, 1] = 0.0, ceiling
        self._prepare()

    def _check_specs(self, n_features: Any) -> None:
        if not self.members or not all(isinstance(member, Member) for member in self.members):
            raise InvalidSpec(f"`members` must be one or more of Member(...); got {self.members!r}.")
        for member in self.members:
            noise = {"noise_memory": member.noise_memory, "tails": member.tails}
            plain = Member(member.likelihood, member.drift, member.prior_variance, **noise)  # type: ignore[arg-type]  # fields
            if member != plain or (member.n_latents > 1) != self._is_of_classes or member.jitters:
                kind = "Softmax" if self._is_of_classes else "a likelihood of one latent"
                raise InvalidSpec(
                    f"members for sparse rows differ in {kind}, drift, prior_variance, noise of numbers; got {member}."
                )
            if not isinstance(member.prior_variance, (int, float)):
                raise InvalidSpec(f"`prior_variance` must be one for all weights; got {member.prior_variance!r}.")
        if len({member.learns_noise for member in self.members}) > 1:
            raise InvalidSpec(f"`members` must all have a `noise_memory`, or none; got {list(self.members)}.")
        ranges = {member.likelihood.target_range for member in self.members}
        if len(ranges) > 1:
            raise InvalidSpec(f"`members` must have likelihoods of the same targets; got ranges {sorted(ranges)}.")
        if not self.switching or not all(0.0 <= rate <= 1.0 for rate in self.switching):
            raise InvalidSpec(f"`switching` must be one or more rates from 0 to 1; got {self.switching!r}.")
        if not (isinstance(n_features, (int, np.integer)) and n_features >= 1):
            raise InvalidSpec(f"`n_features` must be a whole number, at least 1; got {n_features!r}.")
        if not np.isfinite(self.constant):
            raise InvalidSpec(f"`constant` must be finite; got {self.constant!r}.")

    def _prepare(self) -> None:
        """Compile what is not yet on disk, and lay out what every call needs."""
        kinds: dict[Any, Any] = {type(member.likelihood): member.likelihood for member in self.members}
        tables = {kind: scalar_kernels(likelihood, MomentMatching()) for kind, likelihood in kinds.items()}
        kernels = [tables[type(member.likelihood)] for member in self.members]
        self._kernels: Any = np.array(kernels) if COMPILED else kernels
        params = [member.likelihood.params for member in self.members]
        self._params = np.zeros((len(params), max(1, *(part.size for part in params))))
        for row, part in zip(self._params, params, strict=True):
            row[: part.size] = part
        count = len(self.members)
        singles, doubles = ([np.zeros(count, kind) for _ in range(n)] for kind, n in ((DTYPE, 5), (np.float64, 2)))
        self._room = SparseBankRoom(*singles, *doubles)
        self._prepare_entries(_ENTRIES, predict_sparse_bank, learn_sparse_bank)

    def _prepare_entries(self, entries: dict[str, Any], predicts: Kernel, learns: Kernel) -> None:
        """Compile passes for arguments as these, which have the same types in every bank of a kind."""
        self._starts, self._target = np.zeros(2, np.int64), np.zeros(1)
        self._one = self._said_of(1)
        if not entries:
            record, shares, evidence = self._one
            rows = self._starts, np.zeros(0, np.int32), np.zeros(0, DTYPE)
            known = self.belief, self.plan, self._kernels, self._params, *rows
            entries["predict"] = entry_point(predicts, *known, record, self._room)
            said = record, shares, evidence, self._room
            entries["learn"] = entry_point(learns, *known, self._target, EQUAL_WEIGHTS, *said)
        self._entries = entries

    def _mixed(self, record: Matrix, shares: Matrix, evidence: Vector | None) -> Any:
        """What was said, as one; without ``evidence``, members were asked for a target of 1."""
        return MixedPrediction(self._likelihoods, record, shares, evidence=evidence, asked_for_one=evidence is None)

    def _said_of(self, n: int) -> tuple[Matrix, Matrix, Vector]:
        """Room for what members say of so many rows, for their shares, and for what all gave to the targets."""
        return np.empty((n, len(self.members), N_RECORDS)), np.empty((n, len(self.members))), np.empty(n)

    @property
    def n_columns(self) -> int:
        """How many columns rows have: the features, less that which is constant."""
        return self.n_features - (self.constant != 0.0)

    @property
    def likelihood(self) -> ScalarLikelihood:
        """That of the first member: all take the same targets."""
        likelihood = self.members[0].likelihood
        assert isinstance(likelihood, ScalarLikelihood)
        return likelihood

    @property
    def n_latents(self) -> int:
        """One, or one per class."""
        return self.members[0].n_latents

    @property
    def learns_noise(self) -> bool:
        """Whether all members learn the noise, so that targets may be told in any units."""
        return all(member.learns_noise for member in self.members)

    @property
    def posterior(self) -> SparseDiagonalGaussian:
        """That of the first member."""
        return SparseDiagonalGaussian(prior_variance=self.members[0].prior_variance)

    @property
    def nbytes(self) -> int:
        """Bytes of all that is believed: as many however long the stream."""
        return sum(array.nbytes for array in self.belief)

    def found(self) -> str:
        """What was found, in some lines for people."""
        return "\n".join([*drift_and_noise(self), f"{len(self.members)} members; {self.nbytes:,} bytes"])

    # --- predicting and learning

    def _checked(self, features: Any) -> tuple[SparseRows, bool]:
        return checked(sparse_rows(features, self.n_columns), self.n_columns, DTYPE)

    def _known(self, rows: SparseRows) -> tuple[Any, ...]:
        return self.belief, self.plan, self._kernels, self._params, rows.starts, rows.columns, rows.values

    def predict_many(self, features: Any) -> MixedPrediction:
        """What is known of the target of each row, if it is the next."""
        return self.predict_unchecked(self._checked(features)[0])

    def predict_unchecked(self, rows: SparseRows) -> MixedPrediction:
        """The same of rows that are known to be right."""
        record, shares, _ = self._said_of(len(rows))
        self._entries["predict"](*self._known(rows), record, self._room)
        shares[...] = self._room.shares
        said: MixedPrediction = self._mixed(record, shares, None)
        return said

    def predict_entries(self, columns: NDArray[np.int32], values: Array) -> MixedPrediction:
        """What is known of the target of one row, by its columns and values; it is not checked."""
        return self.predict_unchecked(SparseRows(np.array([0, columns.size]), columns, values, self.n_columns))

    def learn_many(
        self, features: Any, targets: ArrayLike, weights: ArrayLike | None = None, tell: bool = True
    ) -> MixedPrediction:
        """Learn from the rows in order; returns the predictions made before each target was used.

        Unless it is to ``tell`` all, they know what was given to the targets, and nothing else.
        """
        rows, large = self._checked(features)
        wanted = np.require(targets, np.float64, ["C", "W"])
        if wanted.shape != (len(rows),):
            raise ShapeMismatch(f"`targets` must have one value per row, {len(rows)}; got shape {wanted.shape}.")
        for likelihood in set(self._likelihoods):
            likelihood.check_targets(wanted)
        counts = EQUAL_WEIGHTS if weights is None else checked_weights(weights, len(rows))
        before = [array.copy() for array in self.belief] if large else None
        try:
            return self.learn_unchecked(rows, wanted, counts, tell)
        except ImproperBelief:
            for array, saved in zip(self.belief, before or self.belief, strict=True):
                array[...] = saved
            raise

    def learn_unchecked(
        self, rows: SparseRows, targets: Vector, weights: Vector = EQUAL_WEIGHTS, tell: bool = True
    ) -> MixedPrediction:
        """Learn rows that are known to be right: as `bayou.numerics.sparse_rows.checked` gives them, none large."""
        record, shares, _ = self._said_of(len(rows) if tell else 0)
        evidence = np.empty(len(rows))
        done = self._entries["learn"](*self._known(rows), targets, weights, record, shares, evidence, self._room)
        if done < len(rows):
            raise ImproperBelief(
                f"row {done} has a latent that is not finite: its features are too large for what is believed of the "
                "weights. No row was learnt."
            )
        self.n_examples += len(rows)
        self.log_evidence += float(evidence.sum())
        said: MixedPrediction = self._mixed(record, shares, evidence)
        return said

    def learn_entries(self, columns: NDArray[np.int32], values: Array, y: float) -> None:
        """Learn one row by its columns and values, and a legal target: the short way, in which nothing is checked."""
        self._starts[1], self._target[0] = columns.size, y
        rows = SparseRows(self._starts, columns, values, self.n_columns)
        if self._entries["learn"](*self._known(rows), self._target, EQUAL_WEIGHTS, *self._one, self._room) == 0:
            raise ImproperBelief("the example has a latent that is not finite; it was not learnt.")
        self.n_examples += 1
        self.log_evidence += float(self._one[2][0])

    @property
    def _likelihoods(self) -> list[ScalarLikelihood]:
        return [member.likelihood for member in self.members]  # type: ignore[misc]  # checked when it was made

    # --- what was learnt

    def weights_told(self) -> SparseDiagonalBelief:
        """Mean and variance of each weight, by all members together."""
        shares = self.weights.astype(DTYPE)
        noise = np.where(self.plan.keeps >= 0.0, self.belief.noise[:, 1] / self.belief.noise[:, 0], 1.0).astype(DTYPE)
        means, variances = self.belief.weights[:, 0], self.belief.weights[:, 1]
        mean = means @ shares
        variance = (noise * variances + (means - mean[:, None]) ** 2) @ shares
        return SparseDiagonalBelief(np.stack([mean, variance], axis=1))

    def retell_some(self, places: NDArray[Any], scale: Vector, shift: Vector) -> None:
        """Go on with these features told otherwise: see `bayou.contracts.Posterior.retell`, of these weights alone."""
        self._retell_weights(self.belief.weights, places, scale, shift)

    def _retell_weights(self, weights: Array, places: NDArray[Any], scale: Vector, shift: Vector) -> None:
        posterior = self.posterior
        for m in range(len(self.members)):
            own = weights[:, :, m]
            some = SparseDiagonalBelief(np.ascontiguousarray(own[places]))
            posterior.retell(some, scale, shift)
            own[places] = some.weights

    def retell_targets(self, ratio: float, shift: float) -> None:
        """Go on with targets that are ``ratio * y + shift``, by members that learn the noise; see `bayou.Bank`."""
        belief, learnt = self.belief, float(self.belief.steps[0])
        belief.weights[:, 0] *= ratio
        if self.constant:
            belief.weights[-1, 0] += shift / self.constant
        retold_noise(belief.noise, learnt, ratio)
        if learnt <= FIRST_UNITS:
            belief.chains[...] = 1.0 / belief.chains.size

    # --- as data

    def to_state(self) -> State:
        """All that this bank is, as data."""
        config = {
            "members": list(self.members),
            "switching": list(self.switching),
            "n_features": self.n_features,
            "constant": self.constant,
            "n_examples": self.n_examples,
            "log_evidence": self.log_evidence,
        }
        return State(config, {f"belief.{name}": array for name, array in self.belief._asdict().items()})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The bank that this data describes; it continues to the last bit."""
        config = state.config
        rows = config["n_features"] * max((member.n_latents for member in config["members"]), default=1)
        if rows != (held := len(state.arrays["belief.weights"])):  # before memory is given to it
            raise ModelFileError(f"`belief.weights` must have {rows!r} rows; got {held}.")
        bank = cls(config["members"], config["n_features"], config["constant"], config["switching"])
        for name, own in bank.belief._asdict().items():
            saved = state.arrays.get("belief.noise", own) if name == "noise" else state.arrays[f"belief.{name}"]
            if saved.shape != own.shape or saved.dtype != own.dtype or not np.isfinite(saved).all():
                raise ModelFileError(
                    f"`belief.{name}` must be finite {own.dtype} of shape {own.shape}; got {saved.dtype} of "
                    f"{saved.shape}."
                )
            own[...] = saved
        weights, chains = bank.belief.weights, bank.belief.chains
        if not (np.all(weights[:, 1] > 0.0) and np.all(bank.belief.noise > 0.0)):
            raise ImproperBelief("variances must be positive.")
        if not (np.all(chains > 0.0) and abs(chains.sum() - 1.0) < 1e-6):
            raise ImproperBelief(f"weights of members must be positive and sum to 1; got {chains.sum()}.")
        if not (np.all(bank.belief.seen >= 0) and np.all(bank.belief.seen <= bank.belief.steps[0])):
            raise ImproperBelief("no weight may have been seen after the latest row.")
        bank.n_examples, bank.log_evidence = int(config["n_examples"]), float(config["log_evidence"])
        return bank

    def __getstate__(self) -> dict[str, Any]:
        return {"state": self.to_state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        config, arrays = state["state"]
        self.__dict__.update(self.from_state(State(config, {name: a.copy() for name, a in arrays.items()})).__dict__)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self.members)!r}, n_features={self.n_features}, constant={self.constant})"


__all__ = ["SparseBank", "SparseBankBelief"]
