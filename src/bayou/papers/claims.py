"""What a paper claims, and how a claim is judged: the paper's number, the theory's, and that of a simulation.

The paper's number must agree with theory to within its tolerance, the simulation with theory to within three standard
errors. Where there is no theory, the paper's number stands in its place. A claim that fails stays listed, with the
reason; where a paper is known to be wrong the claim is an erratum, and what it should say is a claim of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from bayou.papers.ensembles import Ensemble, Estimate, Measure, Student, World, run_replicas
from bayou.papers.figures import Drawing

Source: TypeAlias = Literal["stated", "read off the plot", "derived"]
STANDARD_ERRORS = 3.0  # so far a simulation may lie from theory
ROUNDING = 1e-9  # relative: what is left where nothing is random


@dataclass(frozen=True)
class Claim:
    """A number of a paper.

    ``tolerance`` is how far theory may lie from what is printed: for a stated number half a unit of its last digit.
    ``resolution`` is the largest standard error, relative to theory, with which a full simulation may speak.
    ``finite_size`` is how far, relative to it, a theory of infinitely many weights may be off for those simulated.
    ``erratum`` says what is wrong with the claim, if it is known to be wrong.
    """

    paper: str
    item: str
    quantity: str
    printed: float | None = None
    source: Source = "derived"
    tolerance: float | None = None
    resolution: float | None = None
    finite_size: float = 0.0
    quick: bool = True
    erratum: str = ""


@dataclass(frozen=True)
class Verdict:
    """A claim, what was found, and whether the claim holds."""

    claim: Claim
    theory: float | None
    simulation: float | None
    standard_error: float | None
    holds: bool
    note: str

    @property
    def expected(self) -> bool:
        """Whether it came out as it should: errata are to fail, all else to hold."""
        return self.holds != bool(self.claim.erratum)

    def as_dict(self) -> dict[str, Any]:
        """For files and for other programs."""
        claim = self.claim
        return {
            "paper": claim.paper,
            "item": claim.item,
            "quantity": claim.quantity,
            "printed": claim.printed,
            "theory": self.theory,
            "simulation": self.simulation,
            "standard_error": self.standard_error,
            "tolerance": claim.tolerance,
            "holds": self.holds,
            "note": self.note,
        }


def judge(
    claim: Claim,
    theory: float | Estimate | None = None,
    simulation: Estimate | None = None,
    *,
    quick: bool = False,
    note: str = "",
) -> Verdict:
    """Compare the columns; a theory that was itself sampled comes with its standard error."""
    expected = theory if isinstance(theory, Estimate) or theory is None else Estimate(theory, 0.0)
    remarks, reasons = [claim.erratum, note], []
    if claim.printed is not None and claim.tolerance is not None and expected is not None:
        gap = abs(claim.printed - expected.mean)
        if not gap <= claim.tolerance + STANDARD_ERRORS * expected.standard_error:
            reasons.append(f"paper and theory differ by {gap:.3g}, allowed {claim.tolerance:.3g}")
    reference = expected
    if reference is None and claim.printed is not None:
        reference = Estimate(claim.printed, 0.0)
    if simulation is not None and reference is not None:
        spread = (simulation.standard_error**2 + reference.standard_error**2) ** 0.5
        allowed = STANDARD_ERRORS * spread + (ROUNDING + claim.finite_size) * abs(reference.mean)
        if expected is None:
            allowed += claim.tolerance or 0.0
        gap = abs(simulation.mean - reference.mean)
        if not gap <= allowed:
            named = "paper" if expected is None else "theory"
            reasons.append(f"simulation and {named} differ by {gap:.3g}, with a standard error of {spread:.2g}")
        elif gap > STANDARD_ERRORS * spread + ROUNDING * abs(reference.mean) and claim.finite_size:
            remarks.append(f"{gap / spread:.1f} standard errors off, within what a finite size explains")
        limit = None if claim.resolution is None else claim.resolution * abs(reference.mean)
        if limit is not None and not quick and not simulation.standard_error <= limit:
            reasons.append(f"the standard error is above {limit:.3g}: too few replicas")
    if (simulation is None and claim.printed is None) or reference is None:
        reasons.append("nothing to compare with")
    return Verdict(
        claim,
        None if expected is None else expected.mean,
        None if simulation is None else simulation.mean,
        None if simulation is None else simulation.standard_error,
        not reasons,
        "; ".join(filter(None, remarks + reasons)),
    )


@dataclass(frozen=True)
class Effort:
    """How much work to do: quick ensembles are smaller, and their standard errors larger.

    ``watch`` is told of every ensemble, by how many replicas it has; what it returns is called after each of them.
    """

    quick: bool = False
    seed: int = 0
    threads: int | None = None  # all cores
    watch: Callable[[int], Callable[[], None]] | None = None

    def replicas(self, full: int, quick: int) -> int:
        """How many."""
        return quick if self.quick else full

    def ensemble(
        self,
        students: Sequence[Student],
        world: World,
        times: Sequence[int],
        *,
        full: int,
        quick: int,
        measure: Measure | None = None,
    ) -> Ensemble:
        """So many replicas in a full or a quick run: see `bayou.papers.ensembles.run_replicas`."""
        n_replicas = self.replicas(full, quick)
        done = None if self.watch is None else self.watch(n_replicas)
        return run_replicas(
            students, world, times, n_replicas, measure=measure, seed=self.seed, threads=self.threads, done=done
        )


@dataclass(frozen=True)
class Findings:
    """What an experiment has found, and what there is to draw."""

    verdicts: tuple[Verdict, ...]
    pictures: tuple[Drawing, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """Claims that are judged by the same runs; ``item`` is what the paper calls what they are about."""

    item: str
    title: str
    claims: tuple[Claim, ...]
    run: Callable[[Effort], Findings]

    def judged(self, quick: bool) -> tuple[Claim, ...]:
        """The claims that a run looks at."""
        return tuple(claim for claim in self.claims if claim.quick or not quick)


@dataclass(frozen=True)
class Paper:
    """A paper, as what can be checked of it."""

    name: str
    citation: str
    experiments: tuple[Experiment, ...]

    @property
    def figures(self) -> tuple[int, ...]:
        """The numbers of those figures that are drawn again."""
        items = [experiment.item for experiment in self.experiments]
        return tuple(int(item.removeprefix("Fig. ")) for item in items if item.startswith("Fig. "))

    def select(self, figure: int | None = None, quick: bool = False) -> tuple[Experiment, ...]:
        """The experiments about one figure, or all; without those that have nothing to say in a quick run."""
        wanted = [item for item in self.experiments if figure is None or item.item == f"Fig. {figure}"]
        return tuple(experiment for experiment in wanted if experiment.judged(quick))
