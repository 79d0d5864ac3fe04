"""Learners that differ in what a user would otherwise have to tune, weighed by how well they explain the stream.

    predict with every member -> mix by what is believed of each -> (y) -> every member learns, and all are weighed

Each member's log evidence says how well its settings explain the stream so far. The members share the features, and one
compiled pass takes rows through all of them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from bayou.bank_changes import Snapshots
from bayou.bank_classes import carried
from bayou.bank_found import Findings
from bayou.bank_layout import draw_waves, extended, plan_of, prior_of, room_for
from bayou.bank_merging import combined, retold, retold_targets
from bayou.contracts import Mask, Matrix, State, Vector
from bayou.errors import ImproperBelief, InvalidSpec, ModelFileError, ShapeMismatch
from bayou.learner import rows_and_mask
from bayou.members import Member
from bayou.mixed_classes import MixedClasses
from bayou.mixed_prediction import MixedPrediction
from bayou.numerics.bank_belief import (
    CHANGES,
    LEARNT,
    LOSS,
    N_RECORDS,
    STEPS,
    USUAL,
    BankBelief,
    blocks_of,
    by_member,
    side_by_side,
    slice_of,
)
from bayou.numerics.bank_jumps import LATEST_JUMP
from bayou.numerics.bank_weights import BLOCK, foresee
from bayou.numerics.banks import forecast_bank, learn_bank, learn_late, predict_bank
from bayou.numerics.class_banks import forecast_classes, learn_classes, learn_late_class, predict_classes
from bayou.numerics.finite import any_large
from bayou.numerics.jit import COMPILED, entry_point
from bayou.numerics.pointers import scalar_kernels
from bayou.numerics.validation import checked_weights
from bayou.rules import MomentMatching

# How often the best member may change, per row: never, and up to every tenth.
SWITCHING = (0.0, 1e-4, 1e-3, 1e-2, 1e-1)
LATER = ("usual", "jumps")  # what beliefs got after files had been written without it
_NONE_MISSING: Mask = np.zeros((0, 0), dtype=np.bool_)
_EQUAL_WEIGHTS: Vector = np.zeros(0)
_ENTRIES: dict[bool, dict[str, Any]] = {}  # whether targets are classes, and the passes of such banks
_PASSES: dict[bool, tuple[Any, ...]] = {
    False: (predict_bank, learn_bank, forecast_bank, learn_late),
    True: (predict_classes, learn_classes, forecast_classes, learn_late_class),
}
Said = MixedPrediction | MixedClasses


class Forecast(NamedTuple):
    """What a bank has said of one example whose target comes later: `Bank.learn_late` takes it with the target.

    ``step`` is when: how many examples were forecast or learnt before. ``shares`` are what each chain (k, m) foresaw.
    """

    features: Matrix
    missing: Mask
    past: Vector
    record: Matrix
    shares: Matrix
    step: int
    prediction: Said

    def seen_as(self, features: Matrix, missing: Mask | None) -> Forecast:
        """The same of an example whose features are told otherwise by now."""
        return self._replace(features=features, missing=_NONE_MISSING if missing is None else missing)


class Bank(Findings):
    """Members that learn side by side from a stream, and say what the mixture of them says.

    ``switching`` are rates, per row, at which the best member may change; they are weighed as the members are. With a
    ``budget``, in microseconds per row, members sleep while they are hopeless, and are tried again now and then;
    without one none sleeps. The memory is fixed when it is made. ``learn_many`` is the same as a loop of ``learn_one``,
    in chunks of any size. A bad input raises before anything is learnt.

    >>> from bayou import Bank, Member, Probit
    >>> bank = Bank([Member(Probit(), drift) for drift in (0.0, 1e-4, 1e-2)], n_features=2)
    >>> _ = bank.learn_many([[1.0, 0.5], [-1.0, 0.2], [0.7, -1.0]], [1, -1, 1])
    >>> round(bank.predict_one([1.0, 0.0]).mean, 2)
    0.6
    >>> bank.weights.round(2)
    array([0.33, 0.33, 0.33])
    """

    def __init__(
        self,
        members: Sequence[Member],
        n_features: int,
        switching: Sequence[float] = SWITCHING,
        budget: float | None = None,
    ) -> None:
        self.members, self.switching = tuple(members), tuple(float(rate) for rate in switching)
        self.budget = budget
        self._check_specs(n_features)
        self.n_features, self.n_examples, self.log_evidence = int(n_features), 0, 0.0
        self.plan = plan_of(self.members, self.n_features, self.switching, budget)
        self.belief = prior_of(self.members, self.plan, self.n_features)
        self.snapshots = Snapshots(self.n_features, self.n_latents)
        self._prepare()

    def _check_specs(self, n_features: int) -> None:
        if not self.members or not all(isinstance(member, Member) for member in self.members):
            raise InvalidSpec(f"`members` must be one or more of Member(...); got {self.members!r}.")
        ranges = {member.likelihood.target_range for member in self.members}
        if len(ranges) > 1 or len({member.n_latents for member in self.members}) > 1:
            raise InvalidSpec(f"`members` must have likelihoods of the same targets; got ranges {sorted(ranges)}.")
        if not self.switching or not all(0.0 <= rate <= 1.0 for rate in self.switching):
            raise InvalidSpec(f"`switching` must be one or more rates from 0 to 1; got {self.switching!r}.")
        if not (isinstance(n_features, (int, np.integer)) and n_features >= 1):
            raise InvalidSpec(f"`n_features` must be a whole number, at least 1; got {n_features!r}.")
        if not (self.budget is None or self.budget > 0.0):
            raise InvalidSpec(f"`budget` must be a number of microseconds above 0, or None; got {self.budget!r}.")

    def _prepare(self) -> None:
        """Compile what is not yet on disk, and lay out what every call needs."""
        self._kernels, self._likelihoods = self._tables(), tuple(member.likelihood for member in self.members)
        params = [member.likelihood.params for member in self.members]
        self._params = np.zeros((len(params), max(1, *(part.size for part in params))))
        for row, part in zip(self._params, params, strict=True):
            row[: part.size] = part
        self._room = room_for(self.members, self.plan)
        self._one, self._evidence = self._said_of(1), np.empty(1)
        entries = _ENTRIES.get(self._has_classes)  # arguments have the same types in every bank of a kind
        if entries is None:
            entries = _ENTRIES[self._has_classes] = self._entries()
        self._predict, self._foresee, self._learn = (entries[name] for name in ("predict", "foresee", "learn"))
        self._forecast, self._learn_late = entries["forecast"], entries["learn_late"]

    def _tables(self) -> Any:
        """The addresses of each member's likelihood; classes need none."""
        if self._has_classes:
            return np.zeros((0, 0), dtype=np.int64)
        kinds: dict[Any, Any] = {type(member.likelihood): member.likelihood for member in self.members}
        tables = {kind: scalar_kernels(likelihood, MomentMatching()) for kind, likelihood in kinds.items()}
        kernels = [tables[type(member.likelihood)] for member in self.members]
        return np.array(kernels) if COMPILED else kernels

    def _entries(self) -> dict[str, Any]:
        rows, (record, shares) = np.zeros((1, self.n_features)), self._one
        known, room = (self.belief, self.plan), self._room
        given = self._kernels, self._params, rows, _NONE_MISSING, np.zeros(1), _EQUAL_WEIGHTS
        late = rows, _NONE_MISSING, self.belief.past, 0.0, 0.0, record, self.belief.chains, 0.0, room
        asked = self._kernels, self._params, rows, _NONE_MISSING
        predicts, learns, forecasts, learns_late = _PASSES[self._has_classes]
        return {
            "predict": entry_point(predicts, *known, *asked, 0.0, record, room),
            "foresee": entry_point(foresee, *known, 0.0, room.shares),
            "learn": entry_point(learns, *known, *given, record, shares, np.zeros(1), room),
            "forecast": entry_point(forecasts, *known, *asked, record, self.belief.chains[None], room),
            "learn_late": entry_point(learns_late, *known, self._kernels, self._params, *late),
        }

    def _said_of(self, n: int) -> tuple[Matrix, Matrix]:
        """Room for what members say of so many rows, and for their shares."""
        numbers = self.n_latents if self._has_classes else N_RECORDS
        return np.empty((n, len(self.members), numbers)), np.empty((n, len(self.members)))

    @property
    def _has_classes(self) -> bool:
        return self.n_latents > 1

    @property
    def likelihood(self) -> Any:
        """That of the first member: all take the same targets."""
        return self.members[0].likelihood

    @property
    def learns_noise(self) -> bool:
        """Whether all members learn the size of the noise."""
        return all(member.learns_noise for member in self.members)

    # --- predicting

    def predict_one(self, features: ArrayLike, ahead: float = 0.0) -> Said:
        """What is known of the target of one example."""
        return self._predicted(*self._rows(np.atleast_2d(np.asarray(features, np.float64)), None), ahead, True)

    def predict_many(self, features: ArrayLike, missing: Mask | None = None, ahead: float = 0.0) -> Said:
        """What is known of the target of each row, if it is the next; or one so many steps ``ahead`` of that."""
        return self._predicted(*self._rows(features, missing), ahead, False)

    def _predicted(self, rows: Matrix, mask: Mask, ahead: float, single: bool) -> Said:
        if not (math.isfinite(ahead) and ahead >= 0.0):
            raise InvalidSpec(f"`ahead` must be a number of steps, at least 0; got {ahead!r}.")
        any_large(rows)
        record, _ = self._said_of(len(rows))
        asked = self._kernels, self._params, rows, mask, float(ahead), record, self._room
        self._predict(self.belief, self.plan, *asked)
        shares = np.empty(len(self.members))
        self._foresee(self.belief, self.plan, float(ahead), shares)
        return self._said(record, np.broadcast_to(shares, record.shape[:2]), single, asked=True)

    def _said(
        self,
        record: Matrix,
        shares: Matrix,
        single: bool = False,
        evidence: Vector | None = None,
        asked: bool = False,
    ) -> Said:
        if self._has_classes:
            return MixedClasses(record, shares, single, evidence)
        return MixedPrediction(self._likelihoods, record, shares, single, evidence, asked)

    # --- learning

    def learn_one(self, features: ArrayLike, y: float, weight: float = 1.0) -> Said:
        """Learn from one example; returns the prediction made before the target was used."""
        row = np.atleast_2d(np.asarray(features, np.float64))
        return self._learn_rows(row, np.array([y], np.float64), checked_weights([weight], 1), None, single=True)

    def learn_many(
        self,
        features: ArrayLike,
        targets: ArrayLike,
        weights: ArrayLike | None = None,
        missing: Mask | None = None,
    ) -> Said:
        """Learn from the rows in order; returns the predictions made before each target was used.

        ``missing`` marks features that are unknown: they count as drawn from N(0, 1), independent of all others.
        """
        wanted = np.require(targets, np.float64, ["C", "W"])
        counts = _EQUAL_WEIGHTS if weights is None else checked_weights(weights, wanted.size)
        return self._learn_rows(features, wanted, counts, missing)

    def _learn_rows(
        self, features: ArrayLike, targets: Vector, counts: Vector, missing: Mask | None, single: bool = False
    ) -> Said:
        rows, mask = self._rows(features, missing)
        if targets.shape != (len(rows),):
            raise ShapeMismatch(f"`targets` must have one value per row, {len(rows)}; got shape {targets.shape}.")
        for likelihood in {member.likelihood for member in self.members}:
            likelihood.check_targets(targets)
        before = [array.copy() for array in self.belief] if any_large(rows) else None
        record, shares = self._said_of(len(rows))
        evidence = np.empty(len(rows))
        start = 0
        while start < len(rows):
            part = slice(start, min(start + self.snapshots.until_next(self.n_examples + start), len(rows)))
            given = rows[part], mask[part], targets[part], counts[part], record[part], shares[part], evidence[part]
            done = self._learn(self.belief, self.plan, self._kernels, self._params, *given, self._room)
            if done < part.stop - part.start:
                self._refuse(start + done, before)
            start = part.stop
            self.snapshots.look(self.n_examples + start, self._weights_now)
        self.n_examples += len(rows)
        self.log_evidence += float(evidence.sum())
        return self._said(record, shares, single, evidence)

    def learn_row(self, row: Vector, mask: Mask, y: float) -> None:
        """Learn from finite features, with a mask of one row or none, and a legal target: none of them is checked."""
        record, shares = self._one
        given = row.reshape(1, -1), mask, np.array([y], np.float64), _EQUAL_WEIGHTS, record, shares, self._evidence
        if not self._learn(self.belief, self.plan, self._kernels, self._params, *given, self._room):
            raise ImproperBelief("the example has a latent that is not finite; it was not learnt.")
        self.n_examples += 1
        self.log_evidence += float(self._evidence[0])
        self.snapshots.look(self.n_examples, self._weights_now)

    @property
    def latest_evidence(self) -> float:
        """Log probability that was given to the latest target of `learn_row`."""
        return float(self._evidence[0])

    def _refuse(self, row: int, before: list[Any] | None) -> None:
        """Go back to what was believed, and say why."""
        for array, saved in zip(self.belief, before or self.belief, strict=True):
            array[...] = saved
        raise ImproperBelief(
            f"row {row} has a latent that is not finite: its features are too large for what is believed of the "
            "weights. No row was learnt."
        )

    def forecast(self, features: ArrayLike, missing: Mask | None = None) -> Forecast:
        """Say what is known of an example whose target comes later, and let its time pass."""
        one = np.atleast_2d(np.asarray(features, np.float64))
        if len(one) != 1:
            raise ShapeMismatch(f"`features` must be one example; got {len(one)}.")
        return self.forecast_many(one, None if missing is None else np.atleast_2d(missing))[1][0]

    def forecast_many(self, features: ArrayLike, missing: Mask | None = None) -> tuple[Said, list[Forecast]]:
        """`forecast` of each row, in order: what is said of all of them, and each for itself."""
        rows, mask = self._rows(np.array(features, np.float64), missing)
        any_large(rows)
        past, before, chains = self.belief.past, self.n_steps, self.belief.chains
        record, of_chains = self._said_of(len(rows))[0], np.empty((len(rows), *chains.shape))
        asked = self._kernels, self._params, rows, mask, record, of_chains, self._room
        self._forecast(self.belief, self.plan, *asked)
        shares = of_chains.sum(axis=1)
        each = []
        for n in range(len(rows)):  # nothing is shared: what waits for its target keeps no other in memory
            own = slice(n, n + 1)
            mine = record[own].copy()
            said = self._said(mine, shares[own].copy(), single=True, asked=True)
            known = rows[own].copy(), mask[own].copy(), past.copy(), mine, of_chains[n].copy()
            each.append(Forecast(*known, before + n + 1, said))
        return self._said(record, shares, asked=True), each

    def learn_late(self, forecast: Forecast, y: float, then: float | None = None) -> None:
        """Learn the target of an example that was forecast, once, however many were since.

        Members are weighed by what they said when they were asked. Weights may have walked since: so much less does the
        target tell of what they are now. Learnt at once it is the same as by `learn_one`. ``then`` is the target in the
        units of the forecast, if these were others.
        """
        for likelihood in {member.likelihood for member in self.members}:
            likelihood.check_targets(np.array([y], np.float64))
        rows, mask, past, record, shares, step, _ = forecast
        if record.shape != self._one[0].shape or rows.shape != (1, self.n_features) or step > self.n_steps:
            raise ShapeMismatch("`forecast` must be one of this bank.")
        in_units_then = float(y if then is None else then)
        said = rows, mask, past, float(y), in_units_then, record, shares, float(self.n_steps - step), self._room
        value = self._learn_late(self.belief, self.plan, self._kernels, self._params, *said)
        if value != value:
            raise ImproperBelief("the example has a latent that is not finite; it was not learnt.")
        self.n_examples += 1
        self.log_evidence += value
        self.snapshots.look(self.n_examples, self._weights_now)

    def _rows(self, features: ArrayLike, missing: Mask | None) -> tuple[Matrix, Mask]:
        return rows_and_mask(features, missing, self.n_features, np.float64)  # type: ignore[return-value]  # of float64

    # --- other inputs, other units, other banks

    def extend(self, n_features: int) -> None:
        """Make room for more inputs, of which nothing is known but the prior."""
        if n_features < self.n_features:
            raise ShapeMismatch(f"`n_features` can only grow from {self.n_features}; got {n_features}.")
        wider = plan_of(self.members, n_features, self.switching, self.budget)
        self.belief = extended(self.members, self.belief, self.plan, wider, self.n_features)
        self.plan, self.n_features = wider, n_features
        self.snapshots.extend(n_features, self.n_latents)
        self._prepare()

    def with_one_class_more(self, members: Sequence[Member], constant: float) -> Bank:
        """A bank of classes to which one was added, by members like those here, that knows what this one does.

        The new class has the prior; if the first input is always a ``constant`` other than 0, its weight tells how rare
        the class is so far. A bank of targets -1 and +1 becomes one of three classes.
        """
        wider = Bank(members, self.n_features, self.switching, self.budget)
        rarity = math.log(1.0 + self.n_examples) / constant if constant else 0.0
        carried(self, wider, rarity)
        wider.n_examples, wider.log_evidence = self.n_examples, self.log_evidence
        if self._has_classes:
            wider.snapshots = copy.deepcopy(self.snapshots)
            wider.snapshots.extend(self.n_features, wider.n_latents)
        return wider

    def retell(self, scale: Vector, shift: Vector, bent: bool = True) -> None:
        """Go on with inputs that are told otherwise: see `bayou.contracts.Posterior.retell`. Waves stay as they are.

        Without ``bent``, members that have waves are not told: `begin_waves` must follow.
        """
        retold(self.belief, self.plan, scale, shift, bent)
        self.snapshots.retell(scale, shift)

    def retell_targets(self, ratio: float, shift: float) -> None:
        """Go on with targets that are ``ratio * y + shift``, by members that learn the noise.

        Without a shift the first input may be anything; else it is the constant 1.
        """
        retold_targets(self.belief, self.plan, self.n_features, ratio, shift)
        belief = self.belief
        belief.pulse[USUAL] += math.log(ratio)
        belief.pulse[LOSS] += (belief.pulse[LEARNT] % BLOCK) * math.log(ratio)
        self.snapshots.retell_targets(ratio, shift)

    def begin_waves(self) -> None:
        """Draw waves anew, for the inputs as they are told now; their members begin anew, believed as they were."""
        draw_waves(self.members, self.belief.frequency, self.belief.phase)
        blocks = blocks_of(self.plan)
        for m in np.flatnonzero(blocks.group >= 0).tolist():
            at, square, size = slice_of(blocks, m)
            self.belief.mean[at], self.belief.covariance[square] = blocks.origin[at], 0.0
            np.fill_diagonal(self.belief.covariance[square].reshape(size, size), blocks.ceiling[at])

    def merged(self, others: Sequence[Bank]) -> Bank:
        """What this bank and others like it know together, member by member, if no row was learnt by two of them.

        It is the prior times what each has learnt beyond it: exact for Gaussian targets without drift. Of weights that
        walk it is what they know of them now. Members are weighed by what they would have given to all rows, one after
        another: exact as well, with a ``switching`` of 0 alone; with other rates as if none had switched.
        """
        return self._combined([(1.0, bank) for bank in (self, *others)])

    def without(self, part: Bank) -> Bank:
        """What this bank knows without what a part of its rows has taught another like it."""
        return self._combined([(1.0, self), (-1.0, part)])

    def _combined(self, parts: Sequence[tuple[float, Bank]]) -> Bank:
        specs = ("members", "switching", "n_features", "budget")
        for _, bank in parts:
            if any(getattr(bank, name) != getattr(self, name) for name in specs):
                raise InvalidSpec(f"banks must have the same members, switching, features and budget; got {bank!r}.")
        total = Bank(self.members, self.n_features, self.switching, self.budget)
        evidence = sum(share * bank.log_evidence for share, bank in parts)
        total.log_evidence = combined(total.belief, self.plan, [(s, bank.belief) for s, bank in parts], evidence)
        total.n_examples = sum(int(share) * bank.n_examples for share, bank in parts)
        return total

    def copy(self) -> Bank:
        """A bank that knows the same and learns on its own."""
        return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Bank:
        """Quicker than by way of data: what never changes is shared."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.belief = self.belief._replace(**{name: one.copy() for name, one in self.belief._asdict().items()})
        other.snapshots = copy.deepcopy(self.snapshots, memo)
        other._room = room_for(self.members, self.plan)
        other._one, other._evidence = self._said_of(1), np.empty(1)
        return other

    # --- as data

    def to_state(self) -> State:
        """All that this bank is, as data."""
        config = {
            "members": list(self.members),
            "switching": list(self.switching),
            "budget": self.budget,
            "n_features": self.n_features,
            "n_examples": self.n_examples,
            "log_evidence": self.log_evidence,
        }
        belief = by_member(self.belief, self.plan)
        arrays = {f"belief.{name}": array for name, array in belief._asdict().items()}
        return State(config, arrays | self.snapshots.to_arrays())

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The bank that this data describes; it continues to the last bit."""
        config = state.config
        needed = sum(member.n_latents * member.n_features(config["n_features"]) ** 2 for member in config["members"])
        if needed != (held := state.arrays["belief.covariance"].size):  # before memory is given to it
            raise ModelFileError(f"`belief.covariance` must have {needed} numbers, as its members tell; got {held}.")
        bank = cls(config["members"], config["n_features"], config["switching"], config["budget"])
        for name, own in bank.belief._asdict().items():
            if name in LATER and f"belief.{name}" not in state.arrays:  # files of before do not have it
                continue
            saved = state.arrays[f"belief.{name}"]
            if saved.shape != own.shape or saved.dtype != own.dtype or not np.isfinite(saved).all():
                raise ModelFileError(
                    f"`belief.{name}` must be finite {own.dtype} of shape {own.shape}; got {saved.dtype} of "
                    f"{saved.shape}."
                )
            own[...] = saved
        bank.belief = side_by_side(bank.belief, bank.plan)
        bank._check_belief()
        bank.snapshots.load(state.arrays)
        bank.n_examples, bank.log_evidence = int(config["n_examples"]), float(config["log_evidence"])
        return bank

    def _check_belief(self) -> None:
        """Raise unless the belief is one that kernels may trust."""
        belief = self.belief
        blocks = product(range(len(self.members)), range(self.n_latents))
        if not all(np.all(np.diagonal(self.covariance_of(m, c)) > 0.0) for m, c in blocks):
            raise ImproperBelief("variances must be positive.")
        if not (np.all(belief.chains > 0.0) and abs(belief.chains.sum() - 1.0) < 1e-6):
            raise ImproperBelief(f"weights of members must be positive and sum to 1; got {belief.chains.sum()}.")
        if not (np.all(belief.usual >= 0.0) and abs(belief.usual.sum() - 1.0) < 1e-6):
            raise ImproperBelief(f"what is believed of late must sum to 1; got {belief.usual.sum()}.")
        if not (
            np.all(belief.noise > 0.0)
            and np.all(belief.jumps >= 0.0)
            and np.all(belief.jumps[:, :LATEST_JUMP] > 0.0)
            and np.all(belief.pulse[[STEPS, CHANGES]] >= 0.0)
            and self.awake.any()
        ):
            raise ImproperBelief("noise must be positive, counts not negative, and some member awake.")

    def __getstate__(self) -> dict[str, Any]:
        return {"state": self.to_state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        config, arrays = state["state"]
        self.__dict__.update(self.from_state(State(config, {name: a.copy() for name, a in arrays.items()})).__dict__)

    def __repr__(self) -> str:
        return f"Bank({list(self.members)!r}, n_features={self.n_features}, switching={self.switching!r})"


__all__ = ["SWITCHING", "Bank", "BankBelief", "Forecast"]
