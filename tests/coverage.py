#!/usr/bin/env python3
"""coverage.py - which lines and branches of src/ and ext/ the tests reach, and why not the others.

    coverage.py BUILD REASONS [--list]    BUILD: folder of objects made with --coverage, after a run

Prints a table by file, counted by gcov over every object of BUILD and added up by line of source:
a function of a header counts as reached when it is in any file that includes it. A branch is one
way out of one condition, so `a && b` has four.

REASONS (COVERAGE.md) explains what no test reaches, keyed by file and function, so that it stays
true when lines move:

    - `src/doc.c:doc_text` 1 line, 3 branches

says that there may be as many, under the heading that says why. The last line is "N passed, N
failed": a function with more than is explained fails, as do an explanation of a function that
is not there, a total of lines below LEAST, and a build in which gcov finds nothing. An
explanation that allows more than is unreached is noted, not failed: what threads and processors
do differs from run to run. --list prints what is unreached, by line, for whoever looks.
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


def functions(name):
    """The function that each line of a file is in: the last name before a bracket in column 0."""
    where, current, text = {}, "?", open(os.path.join(HERE, name)).read().split("\n")
    for at, line in enumerate(text, 1):
        found = re.match(r"(?:#define )?[A-Za-z][^;=/]*?\b(\w+)\(", line)
        if found and not line.startswith(("#if", "#elif", "#include")):
            current = found.group(1)
        where[at] = current
    return where


def explained(path):
    """{(file, function): [lines, branches]}; the same function under two headings adds up."""
    known = collections.defaultdict(lambda: [0, 0])
    for line in open(path):
        found = re.match(r"- `([^`:]+):(\w+)`((?:,? \d+ (?:lines?|branch(?:es)?))+)", line)
        if found:
            for n, what in re.findall(r"(\d+) (line|branch)", found.group(3)):
                known[found.group(1), found.group(2)][what == "branch"] += int(n)
    return known


def percent(reached, all_there):
    return 100.0 * reached / all_there if all_there else 100.0


def main():
    build, reasons = sys.argv[1], sys.argv[2]
    lines, branches = measure(build)
    missed = collections.defaultdict(lambda: [[], []])
    total = [0, 0, 0, 0]
    print("%-24s %6s %6s %6s   %8s %6s %6s" % ("", "lines", "run", "%", "branches", "taken", "%"))
    for name in sorted(lines):
        where = functions(name)
        for at, count in lines[name].items():
            if count == 0:
                missed[name, where[at]][0].append(at)
        n_branches = n_taken = 0
        for at, groups in branches[name].items():
            if lines[name][at] == 0:  # the line says it already
                groups = {}
            for counts in groups.values():
                n_branches += len(counts)
                n_taken += sum(count != 0 for count in counts)
                missed[name, where[at]][1] += [at] * counts.count(0)
        n_run = sum(count != 0 for count in lines[name].values())
        row = [len(lines[name]), n_run, n_branches, n_taken]
        total = list(map(sum, zip(total, row)))
        print("%-24s %6d %6d %6.1f   %8d %6d %6.1f" % (name, row[0], row[1], percent(row[1], row[0]),
                                                     row[2], row[3], percent(row[3], row[2])))
    print("%-24s %6d %6d %6.1f   %8d %6d %6.1f" % ("total", total[0], total[1], percent(total[1], total[0]),
                                                 total[2], total[3], percent(total[3], total[2])))
    known = explained(reasons)
    passed = failed = 0
    for key in sorted(missed):
        unreached, untaken = missed[key]
        if "--list" in sys.argv:
            print("%s:%s lines %s branches %s" % (key + (sorted(unreached), sorted(untaken))))
        if not unreached and not untaken:
            continue
        may = known.get(key, [0, 0])
        if len(unreached) <= may[0] and len(untaken) <= may[1]:
            passed += 1
            if [len(unreached), len(untaken)] != may:
                print("note: %s:%s has %d lines, %d branches; explained are %d, %d" %
                      (key + (len(unreached), len(untaken)) + tuple(may)))
            continue
        failed += 1
        print("not explained: %s:%s: lines %s; branches at %s; explained are %d, %d" %
              (key + (sorted(unreached), sorted(untaken)) + tuple(may)))
    for name, function in sorted(known):
        if not os.path.exists(os.path.join(HERE, name)) or function not in functions(name).values():
            failed += 1
            print("explained, but not there: %s:%s" % (name, function))
        elif (name, function) not in missed or not any(missed[name, function]):
            print("note: %s:%s is reached whole" % (name, function))
    if percent(total[1], total[0]) >= LEAST:
        passed += 1
    else:
        failed += 1
        print("of all lines %.1f %% are run; at least %.1f %% are wanted" %
              (percent(total[1], total[0]), LEAST))
    print("%d passed, %d failed" % (passed, failed))
    sys.exit(failed != 0 or not lines)


main()
