"""The exact answers to the programs on network traces and of FLEX."""

from __future__ import annotations

import itertools
from typing import Any

import pandas as pd
from answers import TAIL, Groups, Moment, Near, Noisy, One, Rank

Frames = dict[str, pd.DataFrame]


def trace_packets(frames: Frames) -> dict[str, Any]:
    packets = frames["packets"]
    below = [(packets.length < 100 * i).sum() for i in range(1, 17)]
    web = packets[packets.port.isin([80, 443, 8080])]
    begun = packets[packets["flags"] == "S"].time // 600
    return {
        "sizes": Groups(
            ("length",), {"n": Noisy(packets.groupby("length").size(), 1)}, [40, 52, 576, 1420, 1492, 1500]
        ),
        "ports": Groups(
            ("port", "proto"),
            {"n": Noisy(packets.groupby(["port", "proto"]).size(), 1)},
            list(itertools.product([22, 25, 53, 80, 443, 8080], ["tcp", "udp"])),
        ),
        "cdf": [Near(n, TAIL * (i + 1)) for i, n in enumerate(below)],
        "begun": Groups(("ten",), {"n": Noisy(begun.value_counts(), 1)}, range(6)),
        "web": Noisy(web.length.sum(), 1500),
        "middle": Rank(packets.length[packets.port.isin([80, 443])], 0.5, 1, 1),
    }


def trace_flows(frames: Frames) -> dict[str, Any]:
    packets = frames["packets"]
    host = packets.groupby("source")
    busy = packets[packets.port.isin([80, 443])].groupby("source").size()
    flows = packets.groupby(["source", "target"]).size()
    span = host.time.max() - host.time.min()
    assert flows.groupby("source").size().max() <= 60
    return {
        "busy": Noisy((busy > 12).sum(), 1),
        "bytes": Rank(host.length.sum(), 0.5, 1, 1, 60_000 / 4096),
        "flows": Groups(("packets",), {"n": Noisy(flows.value_counts(), 60 / 10)}, [1, 2]),
        "fan_out": Groups(("tens",), {"n": Noisy((host.target.nunique() // 10).value_counts(), 1)}, range(5)),
        "span": Moment("avg", span, -3600, 3600, 1, 2),
        "ports": Groups(
            ("port",), {"n": Noisy(packets.groupby("port").source.nunique(), 6)}, [22, 25, 53, 80, 443, 8080]
        ),
    }


def flex_trips(frames: Frames) -> dict[str, Any]:
    trips, drivers = frames["trips"], frames["drivers"]
    there = trips.merge(frames["towns"], on="city").groupby("country").size()
    driven = trips.merge(drivers, on="driver")
    return {
        "completed": Noisy((trips.status == "completed").sum(), 8),
        "countries": Groups(("country",), {"n": Noisy(there, 8)}, ["IE", "NL", "NO", "PT", "US"]),
        "vehicles": Groups(("vehicle",), {"n": Noisy(driven.groupby("vehicle").size(), 8)}, ["bike", "car", "van"]),
        "riders": Groups(
            ("city",), {"n": Noisy(trips.groupby("city").rider.nunique(), 5)}, sorted(trips.city.unique())
        ),
        "at_home": Noisy((driven.city == driven.home).sum(), 8),
        "frequent": Noisy((trips.groupby("rider").size() >= 5).sum(), 1),
    }


def flex_triangles(frames: Frames) -> dict[str, Any]:
    edges, trips, orders = frames["edges"], frames["trips"], frames["orders"]
    cells = trips.groupby(["city", "status"]).size()
    return {
        "parity": Groups(("key1",), {"n": Noisy((edges.friend % 2).value_counts(), 12)}, [0, 1]),
        "paths": Noisy((edges.groupby("node").size() ** 2).sum(), 576 / 10),
        "cells": Groups(
            ("city", "status"),
            {"n": Noisy(cells, 1)},
            list(itertools.product(sorted(trips.city.unique()), ["cancelled", "completed"])),
        ),
        "dear": Noisy(((trips.hour < 12) & (trips.fare > 20)).sum(), 1),
        "twice": Noisy((orders.groupby(["customer", "month"]).size() >= 2).sum(), 2),
    }


def trace_order(frames: Frames) -> dict[str, Any]:
    packets = frames["packets"].sort_values(["source", "time"])
    host = packets.groupby("source")
    assert host.size().max() <= 60 and not packets.duplicated(["source", "time"]).any()
    pause = packets.time - host.time.shift(1)
    begins = pause.isna() | (pause > 300)
    flags = packets.groupby([host["flags"].shift(1), "flags"]).size()
    kinds = ["A", "F", "PA", "S", "SA"]
    times = begins.groupby(packets.source).sum().clip(1, 8)
    lost = [(host.size() - k).clip(lower=0).sum() / len(packets) for k in range(1, 61)]
    return {
        "gap": Moment("avg", (host.time.shift(-1) - packets.time).dropna(), 0, 600, 60, 20),
        "late": Noisy((packets.sequence < host.sequence.cummax()).sum(), 60 / 4),
        "flags": Groups(("previous", "value"), {"n": Noisy(flags, 60 / 10)}, list(itertools.product(kinds, kinds))),
        "active": Noisy(begins.sum(), 60 / 4),
        "often": Groups(("times",), {"n": Noisy(times.value_counts(), 1 / 2)}, range(1, 9)),
        "rows": One([k + 1 for k in range(60) if 0.03 < lost[k] <= 0.1]),
    }
