#!/usr/bin/env python3
"""coverage.py - which lines and branches of src/ and ext/ the tests reach, and why not the others.

    coverage.py BUILD REASONS [--write]    BUILD: folder of objects made with --coverage, after a run

Prints a table by file, counted by gcov over every object of BUILD and added up by line of source:
a function of a header counts as reached when it is in any file that includes it. A branch is one
way out of one condition, so `a && b` has four.

REASONS (COVERAGE.md) names each line and branch that no test reaches by the text of its line, under
the heading that says why, so that it stays true when lines move:

    - `src/doc.c:doc_text`
      - 1 line: `return false;`
      - 2 branches: `if (a && b) {`

Counts behind the function's name, without texts, hold for any of its lines: of code that threads
reach in one run and not in the next. The last line is "N passed, N failed": a function with
anything that is not explained fails, as do an explanation of a function or a text that is not
there, a total of lines below LEAST, and a build in which gcov finds nothing. An explanation of
something that is reached is noted, not failed: what threads and processors do differs from run to
run. --write writes the list anew: what is explained and still unreached stays, with the numbers as
they are now, under its heading; the rest comes under a heading of its own, to be explained.
"""
import collections
import glob
import json
import os
import re
import subprocess
import sys

LEAST = 95.0  # per cent of all lines
HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
UNEXPLAINED = "## Not explained"
KINDS = ("line", "branch")


def measure(build):
    """{file: {line: count}}, {file: {line: {number of branches: counts}}}"""
    lines = collections.defaultdict(lambda: collections.defaultdict(int))
    branches = collections.defaultdict(lambda: collections.defaultdict(dict))
    for data in sorted(glob.glob(os.path.join(HERE, build, "*", "*.gcda"))):
        out = subprocess.run(["gcov", "--json-format", "--stdout", "-b", data], cwd=HERE, check=True,
                             capture_output=True).stdout
        for report in map(json.loads, out.splitlines()):
            for source in report["files"]:
                name = os.path.relpath(os.path.join(HERE, source["file"]), HERE)
                if not re.match(r"(src|ext)/", name):
                    continue
                for line in source["lines"]:
                    at = line["line_number"]
                    lines[name][at] += line["count"]
                    counts = [b["count"] for b in line["branches"]]
                    if counts:
                        known = branches[name][at].setdefault(len(counts), [0] * len(counts))
                        known[:] = map(sum, zip(known, counts))
    return lines, branches


def source_text(name):
    """The lines of a file by number, from 1, without the space around them."""
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return [""] + [line.strip() for line in file.read().split("\n")]


def functions(name):
    """The function that each line of a file is in: the last name before a bracket in column 0."""
    where, current = {}, "?"
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        for at, line in enumerate(file, 1):
            found = re.match(r"(?:#define )?[A-Za-z][^;=/]*?\b(\w+)\(", line)
            if found and not line.startswith(("#if", "#elif", "#include")):
                current = found.group(1)
            where[at] = current
    return where


def read_reasons(path):
    """[(heading, {(file, function): Counter of (kind, text)})], text None: any; and the prose."""
    groups, prose, key = [], [], None
    with open(path, encoding="utf-8") as file:
        for line in file.read().split("\n"):
            named = re.match(r"- `([^`:]+):(\w+)`(.*)", line)
            item = re.match(r"  - (\d+) (line|branch)(?:e?s)?: `` (.*) ``$", line) or \
                re.match(r"  - (\d+) (line|branch)(?:e?s)?: `(.*)`$", line)
            if named:
                key = named.group(1), named.group(2)
                for n, kind in re.findall(r"(\d+) (line|branch)", named.group(3)):
                    groups[-1][1][key][kind, None] += int(n)
            elif item:
                groups[-1][1][key][item.group(2), item.group(3)] += int(item.group(1))
            else:
                if line.startswith("## "):
                    groups.append((line, collections.defaultdict(collections.Counter)))
                    prose.append([])
                elif not groups:
                    groups.append(("", collections.defaultdict(collections.Counter)))
                    prose.append([])
                prose[-1].append(line)
    return groups, prose


def amount(n, kind):
    return "%d %s%s" % (n, kind, "" if n == 1 else "s" if kind == "line" else "es")


def write_reasons(path, groups, prose, missed):
    """The same prose, with what is missed now."""
    left = {key: collections.Counter(found) for key, found in missed.items()}
    out = []
    for (heading, known), text in zip(groups, prose):
        if heading == UNEXPLAINED:
            continue
        entries = []
        for key in sorted(known):
            allowed, lines = known[key], []
            loose = {kind: allowed[kind, None] for kind in KINDS if allowed[kind, None]}
            for kind in KINDS:
                for what in sorted(t for k, t in allowed if k == kind and t is not None):
                    n = min(left.get(key, {}).get((kind, what), 0), allowed[kind, what])
                    if n:
                        left[key][kind, what] -= n
                        lines.append((n, kind, what))
            if loose:
                for kind, what in list(left.get(key, ())):
                    if kind in loose:
                        del left[key][kind, what]
                entries.append("- `%s:%s` %s" % (key + (", ".join(
                    amount(n, kind) for kind, n in loose.items()),)))
            elif lines:
                entries.append("- `%s:%s`" % key)
            entries += item_lines(lines)
        out += ["\n".join(text).strip("\n"), ""] + entries + ([""] if entries else [])
    rest = {key: +found for key, found in left.items() if +found}
    if rest:
        out += [UNEXPLAINED, ""]
        for key in sorted(rest):
            out.append("- `%s:%s`" % key)
            out += item_lines([(n, kind, what) for (kind, what), n in sorted(rest[key].items())])
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out).strip("\n") + "\n")


def item_lines(items):
    return ["  - %s: %s" % (amount(n, kind), "`` %s ``" % what if "`" in what else "`%s`" % what)
            for n, kind, what in items]


def percent(reached, all_there):
    return 100.0 * reached / all_there if all_there else 100.0


def print_row(name, row):
    print("%-24s %6d %6d %6.1f   %8d %6d %6.1f" %
          (name, row[0], row[1], percent(row[1], row[0]), row[2], row[3], percent(row[3], row[2])))


def find_missed(lines, branches):
    """{(file, function): Counter of (kind, text)}, {the same: numbers of lines}, and the total."""
    missed = collections.defaultdict(collections.Counter)
    places = collections.defaultdict(set)
    total = [0, 0, 0, 0]
    print("%-24s %6s %6s %6s   %8s %6s %6s" % ("", "lines", "run", "%", "branches", "taken", "%"))
    for name in sorted(lines):
        where, text = functions(name), source_text(name)
        row = [0, 0, 0, 0]
        for at, count in lines[name].items():
            key = name, where[at]
            row[0] += 1
            row[1] += count != 0
            if count == 0:  # says of its branches all there is to say
                missed[key]["line", text[at]] += 1
                places[key, "line", text[at]].add(at)
                continue
            for counts in branches[name][at].values():
                row[2] += len(counts)
                row[3] += sum(n != 0 for n in counts)
                if counts.count(0):
                    missed[key]["branch", text[at]] += counts.count(0)
                    places[key, "branch", text[at]].add(at)
        total = list(map(sum, zip(total, row)))
        print_row(name, row)
    print_row("total", total)
    return missed, places, total


def unexplained(found, known):
    """What of the Counter `found` the Counter `known` does not explain."""
    loose = {kind: known[kind, None] for kind in KINDS}
    over = []
    for (kind, text), n in sorted(found.items()):
        n -= known[kind, text]
        used = min(max(n, 0), loose[kind])
        loose[kind] -= used
        if n > used:
            over.append((n - used, kind, text))
    return over


def main():
    build, reasons = sys.argv[1], sys.argv[2]
    missed, places, total = find_missed(*measure(build))
    groups, prose = read_reasons(reasons)
    if "--write" in sys.argv:
        write_reasons(reasons, groups, prose, missed)
        groups, prose = read_reasons(reasons)
    known = collections.defaultdict(collections.Counter)
    for heading, of_group in groups:
        for key, counts in of_group.items():
            if heading != UNEXPLAINED:
                known[key].update(counts)
    passed = failed = 0
    for key in sorted(missed):
        over = unexplained(missed[key], known[key])
        passed += not over
        failed += bool(over)
        for n, kind, text in over:
            print("not explained: %s:%s, line %s: %s of `%s`" %
                  (key + (", ".join(map(str, sorted(places[key, kind, text]))), amount(n, kind), text)))
    for key in sorted(known):
        name, function = key
        there = os.path.exists(os.path.join(HERE, name))
        if not there or function not in functions(name).values():
            failed += 1
            print("explained, but not there: %s:%s" % key)
            continue
        text = source_text(name)
        for (kind, what), n in sorted(known[key].items(), key=str):
            if what is not None and what not in text:
                failed += 1
                print("explained, but not there: %s:%s: `%s`" % (key + (what,)))
            elif what is not None and missed[key][kind, what] < n:
                print("note: %s:%s: reached, though explained: %s of `%s`" %
                      (key + (amount(n - missed[key][kind, what], kind), what)))
    if percent(total[1], total[0]) >= LEAST:
        passed += 1
    else:
        failed += 1
        print("of all lines %.1f %% are run; at least %.1f %% are wanted" %
              (percent(total[1], total[0]), LEAST))
    print("%d passed, %d failed" % (passed, failed))
    sys.exit(failed != 0 or total[0] == 0)


main()
