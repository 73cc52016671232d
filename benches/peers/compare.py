#!/usr/bin/env python3
"""mxrt and its peers, interleaved, on the same machine: one row of the table of goals after the
other.

    make bench-peers                                     every row (some two hours)
    make bench-peers ARGS="resnet18_v1 callers-8"  these rows
    make bench-peers ARGS="--list"                 their names
    make bench-peers ARGS="--table"                what has been measured so far, as one table

Every engine is a process of its own that is driven over pipes, in an environment of its own (made
the first time; about 1 GB, and 6 GB for the files of all networks). In each round every engine has
its turn, and each round begins with another engine; one or two callers have many brief turns. A
turn in which other programs took more than --quiet cores does not count and is repeated. Peers are
tried in several settings for each number of callers, and the best is measured; rows of networks in
float32 have the peers as installed too, without any setting. All compute in float32 unless the row
or a cell says otherwise; OpenVINO is given. MXNet has a column with --peers onnxruntime openvino
mxnet. Rows are kept as JSON in build/peers/results.
"""

from __future__ import annotations

import argparse
import sys
import time

import environments
import footprint
import latency
import report
import throughput
from lanes import Bench, Options

RESULTS = environments.BUILD / "results"
ROWS = {**throughput.ROWS, **latency.ROWS, **footprint.ROWS}


def table(rows: list[str]) -> str:
    """The rows that have been measured, followed by the means of the networks."""
    results = report.saved(RESULTS, rows)
    means = [
        report.mean_of_networks(results, environments.NETWORKS, "1 caller"),
        report.mean_of_networks(results, list(throughput.EIGHT_CALLERS.values()), "8 callers"),
    ]
    return report.markdown([*results, *(mean for mean in means if mean is not None)])


def main() -> int:
    """Measures and prints; the exit status says whether every row could be measured."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], epilog=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", metavar="ROW", help="rows to measure (all)")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    parser.add_argument("--table", action="store_true", help="print what has been measured; measure nothing")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5, help="of a turn of over 2 callers (960: at least 4)")
    parser.add_argument(
        "--peers", nargs="+", default=["onnxruntime", "openvino"], choices=list(environments.NEWEST_PYTHON)
    )
    parser.add_argument("--quiet", type=float, default=Options.quiet, help="cores that other programs may take")
    args = parser.parse_args()
    if args.list:
        print("\n".join(ROWS))
        return 0
    if unknown := [row for row in args.rows if row not in ROWS]:
        parser.error(f"there is no row {', '.join(unknown)}; --list names them")
    if args.table:
        print(table(list(ROWS)))
        return 0
    environments.BUILD.mkdir(parents=True, exist_ok=True)
    rows, failed = args.rows or list(ROWS), []
    for row in rows:
        environments.say(f"== {row}")
        begin = time.monotonic()
        try:
            with Bench(Options(args.rounds, args.seconds, args.peers, args.quiet)) as bench:
                result = ROWS[row](bench)
                result.notes += bench.notes
            report.save(result, RESULTS)
            environments.say(f"{report.markdown([result])}\n({time.monotonic() - begin:.0f} s)")
        except (RuntimeError, OSError, environments.PeerError) as error:
            failed.append(row)
            environments.say(f"{row} was not measured: {error}")
    print(table([row for row in rows if row not in failed]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
