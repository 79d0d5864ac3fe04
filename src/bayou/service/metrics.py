"""What Prometheus is told: one prefix, base units, few labels."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from bayou.service.hub import Hub

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
DELAYS = (0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 86_400.0, 7 * 86_400.0)
ASKED = re.compile("/v1/models/([^/]*):predict|/v2/models/([^/]*)/infer")
GAUGES = {
    "state_bytes": "Bytes of the latest version.",
    "pending_labels": "Predictions that wait for their labels.",
    "logloss": "Of all rows, each predicted before it was learnt.",
    "ece_ratio": "Expected calibration error of all rows.",
    "drift_rate": "Variance that weights gain per row, as expected.",
    "noise_rate": "Share of labels that are flipped, as expected.",
}


class Metrics:
    """Counts requests as they come; what models know is asked when the page is."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.known: Collection[str] = ()  # other names would be labels without end
        self._counted: set[tuple[str, str]] = set()
        self._requests = Counter(
            "bayou_predict_requests", "Requests for predictions.", ("model", "code"), registry=self._registry
        )
        self._seconds = Histogram(
            "bayou_predict_duration_seconds", "Until they were answered.", buckets=SECONDS, registry=self._registry
        )
        self._delays = Histogram(
            "bayou_label_delay_seconds",
            "From predictions to their labels.",
            ("model",),
            buckets=DELAYS,
            registry=self._registry,
        )

    def seen(self, path: str, status: int, seconds: float) -> None:
        """A request was answered."""
        found = ASKED.fullmatch(path)
        if found is not None:
            name = found[1] or found[2]
            labels = (name if name in self.known else "", str(status))
            self._counted.add(labels)
            self._requests.labels(*labels).inc()
            self._seconds.observe(seconds)

    def labelled(self, name: str, delays: Iterable[float]) -> None:
        """Labels have come, so late."""
        each = self._delays.labels(name)
        for delay in delays:
            each.observe(delay)

    def forget(self, name: str) -> None:
        """A model is no more, and its name no longer a label."""
        with suppress(KeyError):
            self._delays.remove(name)
        for labels in [one for one in self._counted if one[0] == name]:
            self._counted.remove(labels)
            self._requests.remove(*labels)

    async def page(self, hub: Hub) -> bytes:
        """As Prometheus reads it."""
        names = sorted(hub.lanes)
        found = await asyncio.gather(*map(hub.latest_status, names))
        told = {name: status for name, status in zip(names, found, strict=True) if status is not None}
        models = CollectorRegistry()
        models.register(_Models(told, {name: lane.rate.total for name, lane in hub.lanes.items()}))
        return generate_latest(self._registry) + generate_latest(models)


class _Models:
    def __init__(self, told: dict[str, Any], learnt: dict[str, int]) -> None:
        self._told, self._learnt = told, learnt

    def describe(self) -> list[Any]:
        return []

    def collect(self) -> Iterable[Any]:
        learnt = CounterMetricFamily("bayou_learn_examples", "Examples learnt since the start.", labels=("model",))
        for name, count in self._learnt.items():
            learnt.add_metric((name,), count)
        info = GaugeMetricFamily("bayou_model_info", "Always 1.", labels=("model", "version", "task"))
        cover = GaugeMetricFamily(
            "bayou_interval_coverage_ratio", "Targets in their intervals.", labels=("model", "level")
        )
        gauges = {key: GaugeMetricFamily(f"bayou_{key}", about, labels=("model",)) for key, about in GAUGES.items()}
        for name, status in self._told.items():
            info.add_metric((name, str(status["version"]), status["task"]), 1.0)
            for key, value in _values(status).items():
                if value is not None:
                    gauges[key].add_metric((name,), value)
            if status["coverage"] is not None and status["coverage"]["value"] is not None:
                cover.add_metric((name, str(status["coverage"]["level"])), status["coverage"]["value"])
        return [learnt, info, cover, *gauges.values()]


def _values(status: dict[str, Any]) -> dict[str, float | None]:
    scores = {name: score["value"] for name, score in status["scores"].items()}
    return {
        "state_bytes": status["state_bytes"],
        "pending_labels": status["pending"],
        "logloss": scores.get("log_loss"),
        "ece_ratio": scores.get("ece"),
        "drift_rate": _expected(status["found"].get("drift")),
        "noise_rate": _expected(status["found"].get("flip_rate")),
    }


def _expected(found: list[list[Any]] | None) -> float | None:
    """The mean of what is thought possible."""
    try:
        return None if found is None else sum(float(value or 0.0) * p for value, p in found)  # none: no such noise
    except (TypeError, ValueError):
        return None
