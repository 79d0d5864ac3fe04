"""READ FIRST. The abstractions that every part of bayou is made of.

A model has a latent ``f = w . x``, a belief ``q(w)`` and a likelihood ``p(y | f)``. Whatever the approximation, one
example tells the belief two numbers, a slope and a precision, together called a *site*:

    marginal    mean = w . x,  variance = x' C x                    the belief, seen through one example
    site        slope, precision                                    from the likelihood, by a rule
    absorb      gain = 1 / (1 + precision * variance)
                w += gain * slope * C x        C -= gain * precision * (C x)(C x)'

Likelihoods, rules and posteriors never see each other: they meet in `bayou.learner`. There are three kinds of things:

    spec      a frozen dataclass: hyper-parameters only, equal by value, ``eval(repr(spec)) == spec``
    belief    a NamedTuple of arrays, owned by one learner; only learn, absorb and forget write into it
    kernel    a module-level compiled function: numbers and arrays in, numbers out; never raises
"""

from bayou.contracts.data import Array, Code, Kernel, Latent, Mask, Matrix, Spec, State, Vector
from bayou.contracts.functions import Basis, Function, Growth, Schedule, Stiffness
from bayou.contracts.likelihoods import Likelihood, Rule, ScalarLikelihood, VectorLikelihood
from bayou.contracts.posteriors import Posterior, SparsePosterior
from bayou.contracts.sparse_rows import SparseRows

__all__ = [
    "Array",
    "Basis",
    "Code",
    "Function",
    "Growth",
    "Kernel",
    "Latent",
    "Likelihood",
    "Mask",
    "Matrix",
    "Posterior",
    "Rule",
    "ScalarLikelihood",
    "Schedule",
    "SparsePosterior",
    "SparseRows",
    "Spec",
    "State",
    "Stiffness",
    "Vector",
    "VectorLikelihood",
]
