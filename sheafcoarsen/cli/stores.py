"""Commands on stores: coarsen, describe and verify."""

import argparse
import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

import sheafcoarsen as sc
from sheafcoarsen import distributed as dist
from sheafcoarsen.cli.inputs import refuse_options
from sheafcoarsen.cli.outputs import facts, print_json, show
from sheafcoarsen.modes import local_operator_of
from sheafcoarsen.partition import Method


def coarsen_store(args: argparse.Namespace) -> int:
    """Coarsen a store into another store, and check the result."""
    options = ("out", "report", "dim", "vertices", "signed", "verbose")
    refuse_options(args, options, "cannot be combined with --store, which names the output")
    if args.weights == "sheaf":
        raise ValueError(
            "--weights sheaf needs all maps in memory and cannot be combined with --store: omit it"
        )
    source = dist.open_store(args.input)
    if not isinstance(source, dist.SheafStore):
        raise ValueError(f"{args.input} holds a partition, not a sheaf")
    edges, dims, _ = source.topology()
    method: Method = args.method or "auto"
    if method == "spectral":  # the modes of the graph, since maps may exceed the memory
        graph = sc.CellularSheaf.constant(edges, n_vertices=len(dims))
    else:  # edge stalks of dimension 0: only the graph and the vertex stalks determine the clusters
        graph = sc.CellularSheaf.from_flat(edges, [], [], dims, np.zeros(len(edges), np.int64))
    P = sc.select(graph, args.clusters, method, seed=args.seed or 0)
    operator = local_operator_of(args.local_operator or "internal")
    if not args.json:
        print(dist.estimate(source, P, args.rank, args.shards, operator))
    client = None if args.scheduler is None else dist.connect(args.scheduler)
    C = dist.coarsen(
        source,
        args.store,
        P,
        args.rank,
        local_operator=operator,
        n_shards=args.shards,
        client=client,
        progress=args.progress,
    )
    status = print_checks([C], args)
    if not args.json:
        print(C.sheaf)
    if client is not None:
        client.close()
    return status


def about_store(args: argparse.Namespace) -> int:
    """Describe a store, or check its coarsening or levels with random probes."""
    message = "applies to graphs, not to stores: omit it"
    refuse_options(args, ("dim", "vertices", "signed"), message)
    found: Any
    try:
        found = dist.open_store(args.input)
    except dist.StoreError:  # not one sheaf or partition
        found = dist.open_levels(args.input)
    else:
        try:
            found = dist.open_coarsening(args.input)
        except dist.StoreError:  # not a coarsening, or its source no longer exists
            if args.command == "verify":
                raise
    if args.command == "verify":
        return print_checks([found] if isinstance(found, dist.StoredCoarsening) else found, args)
    print_json(facts(found)) if args.json else show(found)
    return 0


def print_checks(levels: Iterable[Any], args: argparse.Namespace) -> int:
    """Print the results of checking each coarsening, stored or not; return the exit status."""
    found = []
    for C in levels:
        result = C.verify() if isinstance(C, dist.StoredCoarsening) else sc.verify(C)
        checks = [dataclasses.asdict(check) for check in result]
        found.append({"passed": bool(result.passed), "checks": checks})
        if not args.json:
            print(C)
            print(result)
    passed = all(level["passed"] for level in found)
    if args.json:
        print_json({"passed": passed, "levels": found})
    return 0 if passed else 1
