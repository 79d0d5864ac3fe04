"""A run as one page of HTML, to be kept or sent: no script, nothing from outside, pictures as SVG in the page.

Names and classes come from the data, and are escaped wherever they stand.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from bayou.bank_found import Findings, Settings
from bayou.errors import InvalidSpec
from bayou.estimators.table_model import CLASSES
from bayou.evaluation.metrics import CalibrationError
from bayou.evaluation.report_pictures import (
    curve_picture,
    drift_picture,
    places_picture,
    reliability_picture,
    shortened,
    weights_picture,
)
from bayou.evaluation.report_theory import Expected, doubts, expected
from bayou.evaluation.score_names import FULL_NAMES, number
from bayou.evaluation.stream_scores import LEVEL, NumberStream
from bayou.evaluation.table_run import TableRun

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
STYLE = """
body { margin: 0 auto; padding: 1rem; max-width: 44rem; background: #fff; color: #222;
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.5rem; line-height: 1.25 } h2 { font-size: 1.2rem; margin: 2rem 0 .5rem }
table { border-collapse: collapse; width: 100%; font-size: .9rem }
th[scope=row] { font-weight: normal; color: #555; white-space: nowrap }
th, td { text-align: left; padding: .25rem .5rem .25rem 0; border-bottom: 1px solid #ddd; vertical-align: top }
td + td.number, th.number { text-align: right; overflow-wrap: normal; font-variant-numeric: tabular-nums }
tr.baseline td { color: #555 }
figure { margin: 1rem 0 } figure svg { width: 100%; height: auto; max-width: 34rem; display: block }
figcaption p { margin: .4rem 0 }
figcaption, .note { font-size: .9rem; color: #444 }
pre { white-space: pre-wrap; font-size: .85rem; background: #f6f6f6; padding: .5rem }
"""
# Scores of the model, each with the baselines that stand beside it.
BESIDE = {
    "log_loss": ("majority_log_loss",),
    "accuracy": ("majority_accuracy", "no_change_accuracy"),
    "rmse": ("mean_rmse", "no_change_rmse"),
}
# Panels of the learning curve: score, title, label of the axis, baselines and their names.
PANELS = {
    "classes": [
        ("log_loss", "Log loss", "nats per row", {"majority_log_loss": "class frequencies"}),
        ("error", "Error rate", "wrong rows", {"majority_accuracy": "majority", "no_change_accuracy": "last label"}),
    ],
    "numbers": [
        ("nlpd", "Negative log density", "nats per row", {}),
        ("rmse", "RMSE", "units of the target", {"mean_rmse": "mean so far", "no_change_rmse": "last target"}),
    ],
}
STRONGEST = 20
MOST_COLUMNS = 200
LONGEST = 120  # letters of a name


def report_page(run: TableRun) -> str:
    """All that a run has found, as a page.

    >>> import polars as pl
    >>> from bayou import TableModel
    >>> from bayou.evaluation import TableRun, report_page
    >>> table = pl.DataFrame({"x": list(range(200)), "y": [n % 7 < 3 for n in range(200)]})
    >>> run = TableRun(TableModel("y"), "made")
    >>> for _ in run.over([table]):
    ...     pass
    >>> page = report_page(run)
    >>> page[:15], page.count("<section")
    ('<!doctype html>', 6)
    """
    if not run.has_scores:
        raise InvalidSpec("a report needs a run that has scored rows; this one has none.")
    target = _text(run.model.target.text)
    parts = [_learnt(run), _scores(run), _curve(run), _calibration(run), _weights(run), _drift(run)]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{target}: a report of bayou</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{target}</h1>\n" + "\n".join(parts) + "\n</main>\n</body>\n</html>\n"
    )


# --- the sections


def _learnt(run: TableRun) -> str:
    model = run.model
    facts = [("target", _text(model.target.text)), ("task", _text(model.task))]
    if model.classes:
        facts.append(("classes", _text(", ".join(shortened(str(label)) for label in model.classes))))
    facts += [("rows", f"{run.rows:,}" + ("" if run.finished else " so far: the run was broken off"))]
    if run.without_target:
        facts.append(("rows without a target", f"{run.without_target:,}, which were not learnt"))
    if model.n_rows > run.scores.rows + run.delay:
        facts.append(("rows in all", f"{model.n_rows:,}, with those of earlier runs"))
    facts.append(("source", _text(_file_name(run.source))))
    if run.delay:
        facts.append(("delay", f"targets are known {run.delay:,} rows late"))
    if model.weight is not None:
        facts.append(("weights of rows", _text(model.weight)))
    chosen, *_ = model.summary().note.splitlines() or [""]
    facts.append(("learns by", _text(chosen)))
    kinds = list(model.kinds().items())
    columns = _table(["column", "taken for"], ([_text(name), _text(kind)] for name, kind in kinds[:MOST_COLUMNS]))
    more = f"<p>and {len(kinds) - MOST_COLUMNS:,} more columns.</p>" if len(kinds) > MOST_COLUMNS else ""
    return _section("learnt", "What was learnt", _facts(facts) + f"<h3>Columns</h3>{columns}{more}")


def _scores(run: TableRun) -> str:
    values, errors = run.scores.values(), run.scores.errors()
    of_baselines = {name for names in BESIDE.values() for name in names}
    order = [name for name in values if name not in of_baselines]
    rows: list[list[str]] = []
    marked: set[int] = set()
    for name in order:
        for each in (name, *(other for other in BESIDE.get(name, ()) if other in values)):
            if math.isnan(values[each]):
                continue
            if each != name:
                marked.add(len(rows))
            title = FULL_NAMES.get(each, each)
            rows.append([_text(title), number(each, values[each]), number(each, errors[each])])
    told = "<p>Every row was predicted before it was learnt. Grey rows need no inputs: baselines to beat.</p>"
    table = _table(["score", "value", "± standard error"], rows, numbers=(1, 2), marked=marked)
    return _section("scores", "Scores", told + table)


def _curve(run: TableRun) -> str:
    kind = "classes" if run.model.task in CLASSES else "numbers"
    panels = [(*panel, expected(run, panel[0])) for panel in PANELS[kind]]
    svg, outside = curve_picture(run, panels)
    words = [
        "Each point is a window of rows since the point before. Its error bar takes the scatter of the whole run, and "
        "is left out where that leaves the frame."
    ]
    if outside:
        words[0] += f" Windows above the frame, which are left out: {outside}."
    theories = [(title, theory) for _, title, _, _, theory in panels]
    told = dict.fromkeys(f"{title}. {theory.words}" for title, theory in theories if isinstance(theory, Expected))
    words += told or dict.fromkeys(theory for _, theory in theories if isinstance(theory, str))
    if told:
        words.append(
            "Where the broken lines end was taken from the last half of the rows, the rest is predicted. "
            + doubts(run.model)
        )
    return _section("curve", "Learning curve", _figure(svg, *filter(None, words)))


def _calibration(run: TableRun) -> str:
    scores = run.scores
    if isinstance(scores, NumberStream):
        of_counts = " Of counts the middle of the step is taken." if scores.counts_only else ""
        caption = (
            "Above, the share of each predictive distribution that was below its target: flat if predictions are "
            f"true, within the broken lines for 95 % of the bars.{of_counts} Below, distances from the mean in "
            "predicted deviations; what is beyond 5 is counted at the edge."
        )
        return _section("calibration", "Calibration", _figure(places_picture(scores), caption) + _coverage_note(scores))
    calibration = scores.metrics["ece"]
    assert isinstance(calibration, CalibrationError)
    two = run.model.task == "binary" and len(run.model.classes) == 2
    of_what = f"{shortened(str(run.model.classes[1]))} came" if two else "the most probable class came"
    caption = (
        f"How often {of_what}, where it was given some probability; bars are two binomial standard errors (Wilson). "
        "Below, how many rows were given each probability."
    )
    figure = _figure(reliability_picture(calibration, of_what), caption)
    return _section("calibration", "Calibration", figure + _class_note(run, calibration))


def _class_note(run: TableRun, calibration: CalibrationError) -> str:
    value, error, noise = calibration.value, calibration.standard_error, calibration.noise
    told = (
        f"Probabilities differ from frequencies by {value:.2%} ± {error:.2%} on average; true probabilities would seem "
        f"to differ by {noise:.2%} on so many rows by chance alone. "
    )
    if value - noise <= 2.0 * error:
        told += "So nothing is to be seen that speaks against these probabilities."
    else:
        told += "So they are off by more than chance explains: see in which bins."
    own = [line for line in run.model.summary().note.splitlines() if line.startswith("calibrated:")]
    return _note(told, *own)


def _coverage_note(scores: NumberStream) -> str:
    covered, error = scores.values()["coverage"], scores.errors()["coverage"]
    told = f"Intervals of {LEVEL:.0%} covered {covered:.1%} ± {error:.1%} of the targets. "
    gap = covered - LEVEL
    if abs(gap) <= 2.0 * error:
        told += "That is what was promised, within two standard errors."
    elif gap < 0.0:
        told += "That is less than promised: intervals are too narrow, early or in parts of the stream."
    elif scores.counts_only:
        told += "That is more than promised; of counts that is to be expected, as an interval covers whole numbers."
    else:
        told += "That is more than promised: intervals are wider than need be."
    return _note(told)


def _weights(run: TableRun) -> str:
    scaled = run.model.summary_per_deviation()
    if not scaled.names:
        return _section("weights", "Strongest weights", "<p>There are no weights to tell of.</p>")
    distance = np.abs(scaled.mean) / np.where(scaled.deviation > 0.0, scaled.deviation, np.inf)
    surest = np.argsort(-distance, kind="stable")[:STRONGEST]
    order = surest[np.argsort(-np.abs(scaled.mean[surest]), kind="stable")]
    shown, raw = scaled.taken(order), run.model.summary().taken(order)
    caption = (
        f"The {len(order)} weights farthest from zero in their own deviations, the largest first, with "
        f"{scaled.coverage:.0%} intervals. Weights are per deviation of the input in the picture, so that they can be "
        "compared, and per unit in the table. Categories and other zeros and ones keep their unit."
    )
    rows = [
        [_text(name), f"{mean:.4g}", f"{deviation:.3g}", f"{low:.4g} to {high:.4g}", f"{sign:.3f}"]
        for name, mean, deviation, (low, high), sign in zip(
            raw.names, raw.mean, raw.deviation, raw.interval, raw.sign_probability, strict=True
        )
    ]
    head = ["weight", "mean", "sd", f"{raw.coverage:.0%} interval", "P(sign)"]
    table = _table(head, rows, numbers=(1, 2, 3, 4))
    return _section("weights", "Strongest weights", _figure(weights_picture(shown), caption) + table)


def _drift(run: TableRun) -> str:
    bank = run.model.estimator._learner_
    if not isinstance(bank, Settings):
        told = "<p>One learner learns here, not a bank of them: it takes the stream to be the same all along.</p>"
        return _section("drift", "Drift", told)
    caption = (
        "How probable each rate is at which weights may wander, in parts of their prior variance per row; "
        f"the stream drifts{' or has begun anew' if isinstance(bank, Findings) else ''} "
        f"with probability {bank.drift_probability:.2f}. "
    )
    if not isinstance(bank, Findings):
        caption += "No member of this bank begins anew: rows at which all has changed are not looked for."
    elif bank.change_points():
        caption += "Below, rows at which all seems to have changed, with how probable that was when it was most."
    else:
        caption += "No row was found at which all has changed."
    found = f"<h3>What the bank found</h3><pre>{escape(bank.found())}</pre>"
    return _section("drift", "Drift", _figure(drift_picture(bank), caption) + found)


# --- HTML


def _text(text: str) -> str:
    """Escaped, on one line, and no longer than can be read."""
    return escape(shortened(text, LONGEST) if len(text) > LONGEST or not text.isprintable() else text)


def _file_name(source: str) -> str:
    """Without its folder, which is nobody's business."""
    if source == "-":
        return "standard input"
    return re.split(r"[/\\]", source.rstrip("/\\"))[-1] or "a folder"


def _section(name: str, title: str, inside: str) -> str:
    return f'<section id="{name}">\n<h2>{title}</h2>\n{inside}\n</section>'


def _figure(svg: str, *caption: str) -> str:
    paragraphs = "".join(f"<p>{escape(text.strip())}</p>" for text in caption)
    return f"<figure>{svg}<figcaption>{paragraphs}</figcaption></figure>"


def _note(*lines: str) -> str:
    return "".join(f'<p class="note">{escape(line)}</p>' for line in lines)


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    lines = [f'<tr><th scope="row">{name}</th><td>{told}</td></tr>' for name, told in facts]
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def _table(
    head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = (), marked: Iterable[int] = ()
) -> str:
    """Cells are HTML already."""
    kinds = [' class="number"' if column in numbers else "" for column in range(len(head))]
    titles = "".join(f'<th scope="col"{kind}>{title}</th>' for title, kind in zip(head, kinds, strict=True))
    lines = [f"<thead><tr>{titles}</tr></thead>"]
    grey = set(marked)
    for place, row in enumerate(rows):
        cells = "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(row, kinds, strict=True))
        lines.append(f'<tr class="baseline">{cells}</tr>' if place in grey else f"<tr>{cells}</tr>")
    return "<table>\n" + "\n".join(lines) + "\n</table>"
