"""Who learns: a bank, where nothing was set that it would find and it can be afforded, or one learner."""

from __future__ import annotations

import math
from typing import Any

from bayou.bank import Bank
from bayou.contracts import Likelihood, Posterior, Rule, SparsePosterior
from bayou.errors import InvalidSpec
from bayou.estimators.choice import AUTO, Choice, choose
from bayou.estimators.encoded_inputs import EncodedInputs
from bayou.estimators.standard_members import Budget, affordable, affordable_sparse, usual_budget
from bayou.learner import Learner
from bayou.members import Member
from bayou.posteriors import SparseDiagonalGaussian
from bayou.rules import MomentMatching
from bayou.sparse_bank import SparseBank
from bayou.sparse_class_bank import sparse_bank
from bayou.sparse_learner import SparseLearner


class ChosenLearner(EncodedInputs):
    """Chooses by what was set, by how many columns there are, and by what may be spent."""

    likelihood: Likelihood | None
    posterior: Posterior[Any] | str | None
    rule: Rule | None
    budget: Budget | None
    n_waves: int
    # Of weights of which a row has few: their largest prior variance, that of the sum of all that a row has, and how
    # much the intercept's is wider than the largest.
    _sparse_variance, _row_variance, _intercept_wider = 1.0, math.inf, 1.0

    # --- the parts that estimators fill in

    def _default_likelihood(self) -> Likelihood:
        raise InvalidSpec(f"{type(self).__name__} has no likelihood of its own")

    def _default_posterior(self) -> Posterior[Any]:
        raise InvalidSpec(f"{type(self).__name__} has no posterior of its own")

    def _standard_members(self) -> list[Member]:
        """The members of the bank that learns by default; none if there is no bank."""
        return []

    def _sparse_members(self, prior_variance: float) -> list[Member]:
        """Those of a bank for sparse rows, whose weights have about this prior variance."""
        return []

    def _new_bank(self) -> Bank | SparseBank:
        """A bank of the members that were chosen."""
        members, n_inputs = self._choice.members, self._first + self._frame.mean.size
        if self._inputs is not None:
            constant = self._intercept if self._first else 0.0
            return sparse_bank(members, self._first + self._inputs.n_columns, constant)
        budget = usual_budget(members, n_inputs) if self.budget is None else self.budget
        return Bank(members, n_inputs, budget=budget.microseconds)

    def _new_learner(self, likelihood: Likelihood) -> Any:
        """A bank if one was chosen, or else a learner of this likelihood."""
        return self._new_bank() if self._choice.members else self._learner(likelihood)

    def _learner(self, likelihood: Likelihood) -> Learner:
        """A new learner for the inputs known so far."""
        posterior, rule = self._choice.posterior, MomentMatching() if self.rule is None else self.rule
        if self._inputs is None:
            return Learner(likelihood, posterior, rule, self._first + self._frame.mean.size)
        if not isinstance(posterior, SparsePosterior):  # of those that were given, not chosen
            raise InvalidSpec(f"sparse rows take a posterior such as SparseDiagonalGaussian(); got {posterior!r}.")
        constant = self._intercept if self._first else 0.0
        return SparseLearner(likelihood, posterior, rule, self._first + self._inputs.n_columns, constant)

    def _choose(self, n_columns: int) -> Choice:
        """The posterior for rows of so many columns."""
        if isinstance(self.posterior, Posterior) or (self.posterior is not None and not self._takes_sparse):
            return Choice(self.posterior, "")  # type: ignore[arg-type]  # those without sparse rows say what they take
        if self.posterior is not None and self.posterior != AUTO:
            raise InvalidSpec(f"`posterior` must be a Posterior, None or {AUTO!r}; got {self.posterior!r}.")
        if not self._takes_sparse:
            return Choice(self._default_posterior(), "")
        variance = min(self._sparse_variance, self._row_variance / max(self._entries, 1.0))
        narrower = variance / (self._sparse_variance * self._intercept_wider)
        sparse = SparseDiagonalGaussian(prior_variance=variance)
        if self.encoder is not None:
            why = f"each weight by itself: {self.encoder.n_columns:,} columns, hashed; a row has few"
            return self._choose_sparse_members(Choice(sparse, why, narrower), self.encoder.n_columns)
        choice = choose(self._default_posterior(), sparse, n_columns, self._given_sparse)
        if choice.posterior is sparse:
            return self._choose_sparse_members(choice._replace(narrower=narrower), n_columns)
        return self._choose_members(choice, n_columns)

    def _choose_sparse_members(self, choice: Choice, n_columns: int) -> Choice:
        """A bank for sparse rows, where nothing was set that it would find, and a budget was.

        It takes several times as long as one learner, which is made for speed.
        """
        self._check_budget()
        if self.likelihood is not None or self.rule is not None or self.budget is None:
            return choice
        standard = self._sparse_members(float(choice.posterior.prior_variance))  # type: ignore[attr-defined]  # it is sparse
        members = affordable_sparse(standard, self._first + n_columns, self._entries, self.budget)
        return choice._replace(why=f"{len(members)} members; {choice.why}", members=members) if members else choice

    def _check_budget(self) -> None:
        if not (self.budget is None or isinstance(self.budget, Budget)):
            raise InvalidSpec(f"`budget` must be Budget(...) or None; got {self.budget!r}.")

    def _choose_members(self, choice: Choice, n_columns: int) -> Choice:
        """A bank, where nothing was set that it would find, and its members can be afforded."""
        self._check_budget()
        if self.likelihood is not None or self.rule is not None:
            return choice
        if not (isinstance(self.n_waves, int) and not isinstance(self.n_waves, bool) and self.n_waves >= 1):
            raise InvalidSpec(f"`n_waves` must be a whole number, at least 1; got {self.n_waves!r}.")
        standard = self._standard_members()
        budget = usual_budget(standard, self._first + n_columns) if self.budget is None else self.budget
        members = affordable(standard, self._first + n_columns, budget)
        if not members:
            return choice
        spent = f"up to {budget.microseconds:.4g} us a row"
        why = f"{len(members)} members, weighed by evidence; {spent}: {n_columns} columns"
        return choice._replace(why=why, members=members)

    @property
    def _bank(self) -> Bank | None:
        """The bank that learns, if one does."""
        learner: Any = self._learner_
        return learner if isinstance(learner, Bank) else None

    @property
    def bank_(self) -> Any:
        """The `Bank` that learns, or the `SparseBank`: what it believes of drift, noise and scales."""
        self._check_begun()
        if not isinstance(self._learner_, (Bank, SparseBank)):
            raise InvalidSpec(f"this {type(self).__name__} has no bank: {self._note().splitlines()[0]}.")
        return self._learner_

    @property
    def _sparse_learner(self) -> SparseLearner | SparseBank:
        assert isinstance(self._learner_, (SparseLearner, SparseBank))
        return self._learner_
