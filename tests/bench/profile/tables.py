# SPDX-License-Identifier: Apache-2.0
"""Plain text tables and the few statistics that scripts/bench prints."""

import statistics


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def ratio(ours, peer):
    if ours is None or not peer:
        return None
    return ours / peer


def number(value, decimals):
    return "-" if value is None else f"{value:.{decimals}f}"


def print_table(header, rows):
    """Columns as wide as needed; the first is text, the others are figures."""
    rows = [[str(cell) for cell in row] for row in [header] + rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    for i, row in enumerate(rows):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width)
                  for cell, width in zip(row[1:], widths[1:])]
        print("  " + "  ".join(cells).rstrip())
        if i == 0:
            print("  " + "  ".join("-" * width for width in widths))
    print(flush=True)
