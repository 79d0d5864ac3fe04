"""The commands and their options. What they do is loaded when they are run."""

from __future__ import annotations

from typing import Annotated

import typer

from bayou.cli.errors import fail, told_in_one_line
from bayou.cli.loading import loading
from bayou.cli.names import split

app = typer.Typer(
    name="bayou",
    help="Learn from streams in one pass: calibrated, nothing to tune.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Sources = Annotated[
    str | None, typer.Argument(help="A file, a folder, a pattern, or - for standard input.", show_default=False)
]
Data = Annotated[str | None, typer.Option("--data", "-d", help="The source, as VW spells it.", show_default=False)]
Format = Annotated[
    str | None,
    typer.Option("--format", help="csv, tsv, parquet, ipc, json, libsvm or vw; found if not told.", show_default=False),
]
TableFormat = Annotated[
    str | None,
    typer.Option("--format", help="csv, tsv, parquet, ipc or json; found if not told.", show_default=False),
]
Header = Annotated[
    str | None,
    typer.Option("--header", help="The names of the columns, where the first line has none.", show_default=False),
]
OnError = Annotated[str, typer.Option("--on-error", help="Of rows that cannot be read: stop, or skip and count them.")]
Task = Annotated[str, typer.Option(help="Of a model that is made: auto, binary, multiclass, regression or count.")]
Names = Annotated[str, typer.Option(help="Columns, separated by commas.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="One JSON object per report.")]
TokenFile = Annotated[
    str | None, typer.Option(help="The token of the server is in this file; else in BAYOU_TOKEN.", show_default=False)
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
Model = Annotated[str | None, typer.Option("--model", "-f", help="The model file.", show_default=False)]
ModelFile = Annotated[str, typer.Argument(help="A model file.", show_default=False)]
Rate = Annotated[str | None, typer.Option("-l", "--learning_rate", hidden=True)]


@app.command()
def learn(
    source: Sources = None,
    target: Annotated[
        str | None,
        typer.Option("--target", help="A column, or a comparison as 'delay > 15'.", show_default=False),
    ] = None,
    model: Model = None,
    initial: Annotated[
        str | None, typer.Option("--initial", "-i", help="A model to begin with.", show_default=False)
    ] = None,
    data: Data = None,
    task: Annotated[str, typer.Option(help="auto, binary, multiclass, regression or count.")] = "auto",
    delay: Annotated[int, typer.Option(help="Targets are known so many rows late.")] = 0,
    numeric: Names = "",
    categorical: Names = "",
    text: Names = "",
    time: Names = "",
    ignore: Names = "",
    weight: Annotated[str | None, typer.Option(help="A column of weights.", show_default=False)] = None,
    interactions: Annotated[
        list[str] | None, typer.Option("--interactions", "-q", help="A pair of columns, as a,b.", show_default=False)
    ] = None,
    basis: Annotated[str | None, typer.Option(help="fourier:300, spline or polynomial:3.", show_default=False)] = None,
    bits: Annotated[int, typer.Option("--bits", "-b", help="Hashed rows have 2^bits weights.")] = 18,
    hashed: Annotated[
        bool | None, typer.Option("--hashed/--dense", help="Whether rows are hashed; found out if not told.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="Microseconds per row that a model may take.", show_default=False)
    ] = None,
    format: Format = None,
    header: Header = None,
    on_error: OnError = "stop",
    save_every: Annotated[
        int | None, typer.Option(help="Save the model after so many rows, too.", show_default=False)
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a run was broken off.")] = False,
    predictions: Annotated[
        str | None,
        typer.Option("--predictions", "-p", help="Write what was said of each row here.", show_default=False),
    ] = None,
    test_only: Annotated[bool, typer.Option("--test-only", "-t", help="Predict and score, learn nothing.")] = False,
    workers: Annotated[
        int | None, typer.Option(help="Learn the files side by side, by so many processes.", show_default=False)
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(help="The same on Dask: the address of a scheduler, or local.", show_default=False),
    ] = None,
    shards: Annotated[
        int | None, typer.Option(help="How many parts workers take the source in.", show_default=False)
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Of refinement, at most, by workers.", show_default="3, of hashed rows 1")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    learning_rate: Rate = None,
) -> None:
    """Learn a column of a table from the others, predicting each row before it is learnt."""
    _no_rate(learning_rate)
    with told_in_one_line():
        with loading():
            from bayou.cli.asked import Asked  # noqa: PLC0415  # when it is run
            from bayou.cli.learn import run  # noqa: PLC0415

        asked = Asked(
            source=_one_source(source, data),
            target=target,
            model=model,
            initial=initial,
            task=task,
            delay=delay,
            numeric=split(numeric),
            categorical=split(categorical),
            text=split(text),
            time=split(time),
            ignore=split(ignore),
            weight=weight,
            interactions=tuple(split(pair) for pair in interactions or ()),
            basis=basis,
            bits=bits,
            hashed=hashed,
            budget=budget,
            format=format,
            header=_names(header),
            on_error=on_error,
            save_every=save_every,
            resume=resume,
            predictions=predictions,
            test_only=test_only,
            json=json,
            quiet=quiet,
        )
        if workers is not None or dask is not None:
            from bayou.cli.shards import Workers  # noqa: PLC0415
            from bayou.cli.shards import run as run_shards  # noqa: PLC0415

            raise typer.Exit(run_shards(asked, Workers(workers, dask, shards, rounds)))
        raise typer.Exit(run(asked))


@app.command()
def predict(
    model: ModelFile,
    source: Sources = None,
    output: Annotated[
        str, typer.Option("--output", "-o", "-p", help="A file (.csv, .parquet, .jsonl), or - for standard output.")
    ] = "-",
    coverage: Annotated[float, typer.Option(help="Of intervals.")] = 0.9,
    data: Data = None,
    format: Format = None,
    header: Header = None,
    on_error: OnError = "stop",
) -> None:
    """Predict each row: probabilities of classes, or numbers with intervals."""
    with told_in_one_line():
        with loading():
            from bayou.cli.predict import run  # noqa: PLC0415

        run(model, _one_source(source, data), output, coverage, format, _names(header), on_error)


@app.command()
def inspect(
    model: ModelFile,
    number: Annotated[int, typer.Option("--number", "-n", help="How many weights to tell.")] = 20,
    coverage: Annotated[float, typer.Option(help="Of intervals.")] = 0.9,
    json: Json = False,
) -> None:
    """What a model has learnt: weights with intervals, noise and drift, evidence, size, and what was chosen why."""
    with told_in_one_line():
        with loading():
            from bayou.cli.inspect import run  # noqa: PLC0415

        run(model, number, coverage, json)


@app.command()
def evaluate(
    model: ModelFile,
    source: Sources = None,
    against: Annotated[
        str | None, typer.Option(help="Another model, compared on the same rows.", show_default=False)
    ] = None,
    learn: Annotated[bool, typer.Option("--learn/--no-learn", help="Whether rows are learnt once predicted.")] = True,
    delay: Annotated[int, typer.Option(help="Targets are known so many rows late.")] = 0,
    window: Annotated[int, typer.Option(help="Rows of the sliding window.")] = 1000,
    half_life: Annotated[float, typer.Option(help="Rows after which a row counts half as much.")] = 1000.0,
    data: Data = None,
    format: Format = None,
    header: Header = None,
    on_error: OnError = "stop",
    json: Json = False,
) -> None:
    """Score a model on a source: in all, in a sliding window, and fading; or two models against each other."""
    with told_in_one_line():
        with loading():
            from bayou.cli.evaluate import run  # noqa: PLC0415

        told = _one_source(source, data), against, learn, delay, window, half_life, format, _names(header)
        run(model, *told, on_error, json)


@app.command()
def compare(
    source: Sources = None,
    target: Annotated[str, typer.Option("--target", help="A column, or a comparison as 'delay > 15'.")] = "",
    setting: Annotated[
        list[str] | None,
        typer.Option("--setting", "-s", help="Options of `learn`, in quotes; once per setting.", show_default=False),
    ] = None,
    data: Data = None,
    format: Format = None,
    header: Header = None,
    on_error: OnError = "stop",
    json: Json = False,
) -> None:
    """Two or more settings over one read of the source: -s '' -s '--basis spline' -s '--budget 5'."""
    with told_in_one_line():
        with loading():
            from bayou.cli.compare import run  # noqa: PLC0415

        run(_one_source(source, data), target, setting or [], format, _names(header), on_error, json)


@app.command()
def bench(
    source: Sources = None,
    target: Annotated[
        str | None,
        typer.Option("--target", help="A column, or a comparison as 'delay > 15'.", show_default=False),
    ] = None,
    rows: Annotated[int, typer.Option(help="The most rows to take.")] = 50_000,
    task: Annotated[str, typer.Option(help="auto, binary, multiclass, regression or count.")] = "auto",
    ignore: Names = "",
    hashed: Annotated[
        bool | None, typer.Option("--hashed/--dense", help="Of libsvm and VW, whether rows are hashed.")
    ] = None,
    data: Data = None,
    format: Format = None,
    header: Header = None,
    on_error: OnError = "stop",
    json: Json = False,
) -> None:
    """The default model beside River, scikit-learn and VW, as far as installed, on the same rows; or on a known set."""
    with told_in_one_line():
        from bayou.cli.asked import Asked  # noqa: PLC0415
        from bayou.cli.bench import run  # noqa: PLC0415

        asked = Asked(
            source="" if source is None and data is None else _one_source(source, data),
            target=target,
            task=task,
            ignore=split(ignore),
            hashed=hashed,
            format=format,
            header=_names(header),
            on_error=on_error,
            json=json,
        )
        run(asked, rows)


@app.command()
def merge(
    models: Annotated[list[str], typer.Argument(help="Model files, of different rows.", show_default=False)],
    output: Annotated[str, typer.Option("--output", "-o", help="The model file to write.", show_default=False)],
    subtract: Annotated[
        bool, typer.Option("--subtract", help="Take the others away from the first, which has learnt their rows, too.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """What models that learnt different rows know together; or, with --subtract, one without a part of its rows."""
    with told_in_one_line():
        with loading():
            from bayou.cli.merge import run  # noqa: PLC0415

        run(models, output, subtract, quiet)


@app.command()
def report(
    model: ModelFile,
    output: Annotated[str, typer.Option("--output", "-o", help="The page to write.")] = "report.html",
) -> None:
    """One page about a run: scores, learning curve, calibration, weights and drift. It needs no network."""
    with told_in_one_line():
        with loading():
            from bayou.cli.report import run  # noqa: PLC0415

        run(model, output)


@app.command()
def serve(
    store: Annotated[str, typer.Option(help="The file that keeps all models.")] = "bayou.db",
    host: Annotated[str, typer.Option(help="Any but this machine itself needs a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8000,
    sync: Annotated[str, typer.Option(help="normal: outlives the process; full: the loss of power, too.")] = "normal",
    token_file: TokenFile = None,
    follow: Annotated[
        list[str] | None,
        typer.Option(
            help="MODEL=SOURCE to learn from, more than once if need be: a growing file, - for standard input, or "
            "redis://127.0.0.1:6379/STREAM?group=bayou.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", help="What models that are followed and not there yet learn.", show_default=False),
    ] = None,
    task: Task = "auto",
    on_error: OnError = "stop",
) -> None:
    """Models behind HTTP that learn while they answer, and lose nothing."""
    with told_in_one_line():
        from bayou.cli.serve import run  # noqa: PLC0415

        run(store, host, port, sync, token_file, follow or [], target, task, on_error)


@app.command()
def push(
    source: Sources = None,
    model: Annotated[str, typer.Option("--model", help="The name of the model there.", show_default=False)] = "",
    to: Annotated[str, typer.Option(help="The address of the server.")] = "http://127.0.0.1:8000",
    target: Annotated[
        str | None, typer.Option("--target", help="Make the model, if it is not there.", show_default=False)
    ] = None,
    task: Task = "auto",
    rows: Annotated[int, typer.Option(min=1, max=10_000, help="Rows that are sent at a time.")] = 1000,
    token_file: TokenFile = None,
    data: Data = None,
    format: TableFormat = None,
    header: Header = None,
    on_error: OnError = "stop",
    quiet: Quiet = False,
) -> None:
    """Send a file to a server that learns it. Sent again, with the same name, rows and --rows, it counts once."""
    with told_in_one_line():
        from bayou.cli.push import Asked, run  # noqa: PLC0415

        what = _one_source(source, data), model, target, task, rows, format, _names(header), on_error, quiet
        run(Asked(*what), to, token_file)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def papers(context: typer.Context) -> None:
    """Reproduce figures and tables of the papers: list, run NAME, run --all."""
    from bayou.papers.__main__ import main as run  # noqa: PLC0415

    raise typer.Exit(run(context.args) or 0)


@app.command()
def version() -> None:
    """The version of bayou and of what it stands on."""
    from importlib.metadata import PackageNotFoundError  # noqa: PLC0415
    from importlib.metadata import version as of  # noqa: PLC0415

    from bayou import __version__  # noqa: PLC0415

    typer.echo(f"bayou {__version__}")
    for name in ("numpy", "numba", "scipy", "scikit-learn", "polars", "pyarrow"):
        try:
            typer.echo(f"{name} {of(name)}")
        except PackageNotFoundError:
            typer.echo(f"{name} is not installed")


def _one_source(source: str | None, data: str | None) -> str:
    if (source is None) == (data is None):
        raise fail("name one source: a file, a folder, a pattern, or - for standard input.")
    return source or data or "-"


def _names(header: str | None) -> tuple[str, ...] | None:
    return None if header is None else split(header)


def _no_rate(rate: str | None) -> None:
    if rate is not None:
        typer.echo(
            f"there is no learning rate: every step is as large as what is known allows; -l {rate} is ignored.",
            err=True,
        )
