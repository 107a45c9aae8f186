"""reach.py - which functions each step of `make test` runs, so that the others need no asking.

    reach = Reach(folder, cc, base, steps); reach.may_notice(argv, file, first, last)

The tree is built a third time, with gcov's counters and without inlining, and every step is run
once. A mutant of a function that a step never enters cannot change what the step does. Where that
is not certain the step counts as one that may notice: code outside functions, functions that are
always inlined, programs that fork (children that end by _exit leave no counts), steps that were
not run here or did not pass here. Needs gcc and its gcov-dump.
"""
import glob
import json
import os
import re
import subprocess

import trees

FLAGS = ["B=build", "CFLAGS=-O1 -fno-inline --coverage"]
FORKS = ("prop",)
FUNCTION = re.compile(r"FUNCTION ident=(\d+),(?:.*`\w+' (.*?):(\d+):)?")


def dump(files):
    return subprocess.run(["gcov-dump", *files], capture_output=True, text=True,
                          errors="replace").stdout.split("\n")


class Reach:
    def __init__(self, folder, cc, base, steps):
        self.tree, self.path = trees.Tree(folder, cc, FLAGS), folder + ".json"
        self.steps = {}  # name -> (key, the functions that it enters or None)
        self.own = {}    # file -> the lines at which a function with counts of its own begins
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as f:
                self.steps = json.load(f)
        wanted = {name: step for name, step in steps.items()
                  if trees.program(step[0]) not in FORKS
                  and self.steps.get(name, ("",))[0] != step[1]}
        self.steps = {name: self.steps[name] for name in self.steps
                      if name in steps and self.steps[name][0] == steps[name][1]}
        if wanted:
            self.tree.take(base)
            self.tree.steps()
            self.measure(wanted)
        for where in self.places().values():
            self.own.setdefault(where[0], set()).add(where[1])

    def places(self):
        """(object, ident) -> (file, line of the function)"""
        out, stem = {}, None
        for line in dump(glob.glob(self.tree.path("build", "*", "*.gcno"))):
            stem = line.split(".gcno:", 1)[0]
            m = FUNCTION.search(line)
            if m and m.group(2):
                out[stem, m.group(1)] = (os.path.normpath(m.group(2)), int(m.group(3)))
        return out

    def measure(self, wanted):
        places = self.places()
        for name, (argv, key) in wanted.items():
            for old in glob.glob(self.tree.path("build", "*", "*.gcda")):
                os.remove(old)
            passed, _, _, _ = self.tree.run(argv)
            self.steps[name] = (key, sorted(self.entered(places)) if passed else None)
            with open(self.path, "w", encoding="utf-8") as f:
                json.dump(self.steps, f)

    def entered(self, places):
        out, ident = set(), None
        for line in dump(glob.glob(self.tree.path("build", "*", "*.gcda"))):
            m = FUNCTION.search(line)
            if m:
                ident = (line.split(".gcda:", 1)[0], m.group(1))
            elif "COUNTERS arcs" in line and "(all zero)" not in line and ident in places:
                out.add("%s:%d" % places[ident])
        return out

    def may_notice(self, argv, file, first, last):
        """Whether the step can enter the function in these lines of a file; None: not in one."""
        entered = self.steps.get(" ".join(argv), ("", None))[1]
        own = [n for n in self.own.get(file, ()) if first is not None and first <= n <= last]
        if entered is None or not own:
            return True
        return any("%s:%d" % (file, n) in entered for n in own)
