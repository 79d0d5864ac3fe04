"""``python -m benchmarks.streams [--only NAME] [--rows N] [--quick] [--data FOLDER] [--trees] [--out FOLDER]``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from benchmarks import machine
from benchmarks.streams.bandits import bandits
from benchmarks.streams.contenders import BASELINES, OURSELVES, Contender
from benchmarks.streams.files import FILES
from benchmarks.streams.late import LATE
from benchmarks.streams.linear import linear
from benchmarks.streams.made import MADE, ROWS
from benchmarks.streams.picture import draw
from benchmarks.streams.scores import Goal, Score, goals, score
from benchmarks.streams.stream import Stream
from benchmarks.streams.table import EXPLAINED, show, write
from benchmarks.streams.trees import trees

QUICK_ROWS = 1000
TREE_ROWS = 5000
BANDIT_ROWS = 20_000
WIDTH = 180
Say = Callable[[str], None]


def main(arguments: list[str] | None = None) -> None:
    """Measure stream by stream; print each at once, then write all."""
    chosen = parse(arguments)
    console = Console(width=max(Console().width, WIDTH))  # a wider line wraps, a narrower table hides
    peers = [*linear(), *bandits(chosen.bandit_rows), *(trees(chosen.tree_rows) if chosen.trees else [])]
    contenders = [*OURSELVES, *LATE, *peers, *BASELINES]
    say: Say = lambda line: console.print(line, highlight=False)  # noqa: E731
    say(EXPLAINED)
    for contender in contenders:
        if contender.missing:
            say(f"skipped: {contender.name}: {contender.missing}")
    if not chosen.trees:
        say("skipped: forests; add --trees")
    scores: list[list[Score]] = []
    wanted: list[Goal] = []
    for stream in streams(chosen, say):
        scores.append(measure(stream, contenders, console))
        wanted += goals(scores[-1])
        show(stream, scores[-1], goals(scores[-1]), console)
    facts = {"versions": machine.versions(), "settings": EXPLAINED}
    write(chosen.out / "streams.json", [one for part in scores for one in part], wanted, facts)
    say(f"written to {chosen.out / 'streams.json'}")
    if find_spec("matplotlib") is None:
        say("skipped: the picture: matplotlib is not installed")
    elif scores:
        draw(scores, chosen.out / "streams.png")
        say(f"drawn in {chosen.out / 'streams.png'}")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    names = ", ".join([*MADE, *FILES])
    parser = argparse.ArgumentParser("benchmarks.streams", description="Predict, then learn: compared with peers.")
    parser.add_argument("--only", nargs="+", choices=[*MADE, *FILES], metavar="NAME", help=names)
    parser.add_argument("--rows", type=int, metavar="N", help="the first N rows of each stream")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS:,} rows of the streams that need no files")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="where the files are")
    parser.add_argument("--trees", action="store_true", help="forests too, which are slow")
    parser.add_argument("--tree-rows", type=int, default=TREE_ROWS, metavar="N", help=f"for forests; {TREE_ROWS:,}")
    parser.add_argument(
        "--bandit-rows", type=int, default=BANDIT_ROWS, metavar="N", help=f"for bayesianbandits; {BANDIT_ROWS:,}"
    )
    parser.add_argument("--out", type=Path, default=Path("out/streams"), metavar="FOLDER", help="for JSON and picture")
    chosen = parser.parse_args(arguments)
    if chosen.quick:
        chosen.rows = min(chosen.rows or QUICK_ROWS, QUICK_ROWS)
    return chosen


def streams(chosen: argparse.Namespace, say: Say) -> Iterator[Stream]:
    """Those that were asked for, or all; what is absent is said."""
    for name in chosen.only or (MADE if chosen.quick else [*MADE, *FILES]):
        if name in MADE:
            yield MADE[name](ROWS if chosen.rows is None else chosen.rows)
        elif chosen.data is None:
            say(f"skipped: {name}: give the folder of its files with --data")
        else:
            try:
                yield FILES[name](chosen.data).first(chosen.rows)
            except FileNotFoundError:
                say(f"skipped: {name}: its files are not in {chosen.data}")


def measure(stream: Stream, contenders: Sequence[Contender], console: Console) -> list[Score]:
    """Of each contender that is there and takes such a stream; ours too on the rows of those that are given fewer."""
    taking = [contender for contender in contenders if not contender.missing and contender.takes(stream)]
    found, ours = [], {}
    with console.status("") as status:
        for contender in taking:
            status.update(f"{stream.name}, {len(stream):,} rows: {contender.name}")
            predicted = contender.run(stream)
            found.append(score(stream, contender, predicted))
            if contender.kind == "ours":
                ours[contender] = predicted
    for rows in sorted({one.rows for one in found} - {len(stream)}):
        found += [score(stream, contender, predicted.first(rows)) for contender, predicted in ours.items()]
    return found


if __name__ == "__main__":
    main()
