"""python -m bayou.papers: what the papers claim, and whether it holds."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bayou.papers import barkai1995, buschermoehle2013, deoliveira2007, opper1998, wang2007, xu
from bayou.papers.claims import Claim, Effort, Experiment, Findings, Paper, Verdict
from bayou.papers.figures import draw, require_matplotlib, write_data
from bayou.papers.speed import CORES, speed_of_replicas

_ALL = (opper1998.PAPER, deoliveira2007.PAPER, barkai1995.PAPER, buschermoehle2013.PAPER, wang2007.PAPER, xu.PAPER)
PAPERS = {paper.name: paper for paper in _ALL}
OUTPUT = Path("out/papers")
MISUSED = 2  # the exit code of argparse, too
ROUNDS = 9  # of which the median counts

Watch = Callable[[int], Callable[[], None]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 if every claim came out as it should: errata failing, all else holding."""
    chosen = _parser().parse_args(arguments)
    try:
        return int(chosen.command(chosen))
    except (_Misuse, ImportError, OSError) as problem:
        print(f"bayou.papers: {problem}", file=sys.stderr)  # noqa: T201  # a command speaks
        return MISUSED


class _Misuse(Exception):
    """What was asked for does not exist."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bayou.papers", description=__doc__)
    commands = parser.add_subparsers(required=True)
    listing = commands.add_parser("list", help="the papers and their claims, without running anything")
    listing.set_defaults(command=_list)
    running = commands.add_parser("run", help="judge claims, draw figures")
    running.set_defaults(command=_run)
    running.add_argument("paper", nargs="?", help=f"one of {', '.join(PAPERS)}")
    running.add_argument("--all", action="store_true", help="every paper")
    running.add_argument("--figure", type=int, help="only what is about this figure")
    running.add_argument("--quick", action="store_true", help="smaller ensembles, with larger standard errors")
    running.add_argument("--seed", type=_whole(0), default=0)
    running.add_argument("--threads", type=_whole(1), default=CORES, help="all cores, unless given")
    running.add_argument(
        "--output", type=Path, default=OUTPUT, help=f"folder for figures and data; {OUTPUT} unless given"
    )
    for command in (listing, running):
        command.add_argument("--json", action="store_true", help="print claims as JSON, and nothing else")
    speed = commands.add_parser("speed", help="how fast the ensemble of Opper's Fig. 2 is, on one core and on all")
    speed.set_defaults(command=_speed)
    speed.add_argument("--replicas", type=_whole(1), default=500)
    return parser


def _whole(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"must be a whole number, at least {least}; got {text!r}")
        return int(text)

    return number


def _list(chosen: argparse.Namespace) -> int:
    claims = [claim for paper in PAPERS.values() for item in paper.experiments for claim in item.claims]
    if chosen.json:
        _print_json([vars(claim) for claim in claims])
        return 0
    table = _table("Claims", "paper", "item", "quantity", "printed", "source", "quick")
    for claim in claims:
        source = claim.source if claim.printed is not None else ""
        table.add_row(*_named(claim), _number(claim.printed), source, "yes" if claim.quick else "")
    for paper in PAPERS.values():
        _console().print(f"{paper.name}: {paper.citation}", markup=False)
    _console().print(table)
    return 0


def _run(chosen: argparse.Namespace) -> int:
    experiments = [item for paper in _papers(chosen) for item in _experiments(paper, chosen)]
    require_matplotlib()
    if not chosen.json:
        _console()
    chosen.output.mkdir(parents=True, exist_ok=True)
    verdicts: list[Verdict] = []
    with _progress(show=not chosen.json) as begin:
        for experiment in experiments:
            effort = Effort(chosen.quick, chosen.seed, chosen.threads, begin(experiment))
            findings = experiment.run(effort)
            verdicts += findings.verdicts
            _write(findings, chosen.output)
    rows = [verdict.as_dict() for verdict in verdicts]
    (chosen.output / "claims.json").write_text(json.dumps(rows, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if chosen.json:
        _print_json(rows)
    else:
        _print_verdicts(verdicts, chosen.output)
    return 0 if all(verdict.expected for verdict in verdicts) else 1


def _papers(chosen: argparse.Namespace) -> list[Paper]:
    if chosen.all == (chosen.paper is not None):
        raise _Misuse(f"name one paper, of {', '.join(PAPERS)}, or give --all.")
    if chosen.all:
        return list(PAPERS.values())
    if chosen.paper not in PAPERS:
        raise _Misuse(f"there is no paper {chosen.paper!r}; there are {', '.join(PAPERS)}.")
    return [PAPERS[chosen.paper]]


def _experiments(paper: Paper, chosen: argparse.Namespace) -> tuple[Experiment, ...]:
    if chosen.figure is not None and chosen.figure not in paper.figures:
        known = ", ".join(map(str, paper.figures))
        raise _Misuse(f"{paper.name} has no figure {chosen.figure} here; it has {known}.")
    return paper.select(chosen.figure, chosen.quick)


def _write(findings: Findings, folder: Path) -> None:
    for picture in findings.pictures:
        write_data(picture, folder / f"{picture.name}.csv")
        draw(picture, folder / f"{picture.name}.png")


def _speed(chosen: argparse.Namespace) -> int:
    speed = speed_of_replicas(chosen.replicas, ROUNDS)
    for threads, microseconds in ((1, speed.one), (CORES, speed.all)):
        text = f"{threads} threads: {1e6 / microseconds:,.0f} replica-examples per second"
        _console().print(text, markup=False)
    _console().print(f"{CORES} threads are {speed.ratio:.2f} times as fast as one", markup=False)
    return 0


def _print_json(rows: list[dict[str, Any]]) -> None:
    print(json.dumps(rows, indent=2, ensure_ascii=False))  # noqa: T201  # a command speaks


def _print_verdicts(verdicts: list[Verdict], folder: Path) -> None:
    table = _table("Claims", "paper", "item", "quantity", "printed", "theory", "simulation", "holds", "note")
    for verdict in verdicts:
        simulation = _number(verdict.simulation)
        if verdict.standard_error is not None:
            simulation += f" ± {verdict.standard_error:.2g}"
        holds = "yes" if verdict.holds else "no"
        style = None if verdict.holds else "yellow" if verdict.expected else "bold red"
        numbers = _number(verdict.claim.printed), _number(verdict.theory), simulation
        table.add_row(*_named(verdict.claim), *numbers, holds, verdict.note, style=style)
    console = _console()
    console.print(table)
    held = sum(verdict.holds for verdict in verdicts)
    errata = sum(bool(verdict.claim.erratum) and not verdict.holds for verdict in verdicts)
    surprises = sum(not verdict.expected for verdict in verdicts)
    summary = f"{held} of {len(verdicts)} claims hold; {errata} are known errors of the papers"
    console.print(f"{summary}; {surprises} came out other than they should.", markup=False)
    console.print(f"Figures and data: {folder}", markup=False)


def _named(claim: Claim) -> tuple[str, str, str]:
    return claim.paper, claim.item, claim.quantity


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.5g}"


def _console() -> Any:
    try:
        from rich.console import Console  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise ImportError('tables are printed with rich, which is missing: pip install "bayou[demo]"') from error
    width = None if sys.stdout.isatty() else 220  # a file has no width to respect
    return Console(highlight=False, width=width)


def _table(title: str, *columns: str) -> Any:
    _console()  # says what to install
    from rich.table import Table  # noqa: PLC0415  # an extra

    table = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in ("printed", "theory", "simulation") else "left")
    return table


@contextmanager
def _progress(show: bool) -> Iterator[Callable[[Experiment], Watch | None]]:
    """A bar per ensemble, on a terminal; what is yielded makes the watch of an experiment."""
    if not (show and sys.stdout.isatty()):
        yield lambda experiment: None
        return
    _console()
    from rich.progress import Progress  # noqa: PLC0415  # an extra

    with Progress(console=_console(), transient=True) as bars:

        def begin(experiment: Experiment) -> Watch:
            def watch(n_replicas: int) -> Callable[[], None]:
                task = bars.add_task(f"{experiment.claims[0].paper} {experiment.item}", total=n_replicas)
                return lambda: bars.advance(task)

            return watch

        yield begin


if __name__ == "__main__":
    sys.exit(main())
