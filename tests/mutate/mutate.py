#!/usr/bin/env python3
"""mutate.py - would `make test` notice? Changes the sources in one place at a time and asks it.

    mutate.py [--seed S] [--mutants N] [--root .] [--out build/mutate] [--only GLOB] [--quick T]
              [--jobs J] [--report]

From the seed it picks N mutants: over the files of src/ and ext/ in proportion to the lines that
can be changed, at least one each, over the kinds of sites.py by WEIGHTS, never twice in one place.
Left out are generated tables, code that this compiler or this processor does not run, and mutants
that do not compile or give the same object files (-O2): the next pick takes their place. Each file
has its own sequence, so a change to one file leaves the mutants of the others.

Each mutant is built in a copy of the tree, then the steps of `make test` run, nearest and quickest
first, until one fails, hangs (four times its usual CPU time) or wants too much memory. A program
that is byte for byte the unchanged one is not run unless it loads the extension; nor is a step that
never enters the changed function (reach.py). Answers go to OUT/results.jsonl as they come and are
kept: what was killed stays so as long as its file does, what lives is asked only those steps that
it has not passed. Remove OUT to begin anew.

--quick T leaves out steps of more than T seconds, and asks the others without finding out first
which of them enter the function; what lives through them is `open`, and a later run with a longer
T, or without, goes on from there.
--report asks nothing and gives the figures of what is known.
--only takes files that fit the glob.

What lives is explained in SURVIVORS.md, in lines of the form
    - FILE KIND `` line as it was `` → `` line as it became `` why
below the headings "## Equivalent" (no input can tell it from the original) and "## Survivors" (some
could, no test does). The verdicts go to OUT/mutants.tsv too, a line each.
Last line: N passed (killed, or explained), N failed (alive without a reason).
"""
import argparse
import collections
import fnmatch
import glob
import hashlib
import json
import multiprocessing
import os
import random
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import reach  # noqa: E402
import sites  # noqa: E402
import trees  # noqa: E402

WEIGHTS = {"compare": 4, "constant": 4, "condition": 3, "delete": 3, "sign": 2, "logic": 2,
           "return": 2, "bits": 2, "not": 1, "jump": 1}
NOT_WRITTEN = ("src/unicode_table.c", "src/builtin_data.c")  # generated; embedded data
NO_PART_OF_TEST = ("build/", "bpe.", "tests/mutate/", "tests/evidence/")
PROCESSOR = {"HAVE_AVX512": "avx512_vbmi2", "HAVE_AVX2": "avx2"}

SLOW = (9999.0, 9999.0, "")  # longer than --quick; nobody has waited to see how long

Mutant = collections.namedtuple("Mutant", "file line kind start end text was becomes function")


def active_lines(root, file, cc):
    """The lines of code that are compiled here and that this processor can run."""
    with open(os.path.join(root, file), encoding="utf-8") as f:
        text = f.read()
    lines, directives = text.split("\n"), sites.directive_lines(text)
    if not re.search(r"^\s*#\s*(if|elif|else)", re.sub(r"\A.*?#define \w+_H\n", "", text, 1,
                                                       re.DOTALL), re.MULTILINE):
        return set(range(1, len(lines) + 1))
    flags = open("/proc/cpuinfo", encoding="utf-8").read().split() \
        if os.path.exists("/proc/cpuinfo") else None
    marked = []
    for n, line in enumerate(lines, 1):
        if n not in directives:
            line = "@@%d@@" % n
        for name, flag in PROCESSOR.items():
            if flags is not None and flag not in flags:
                line = re.sub(r"^#ifdef %s\b" % name, "#if 0", line)
        marked.append(line)
    folder = os.path.join(root, os.path.dirname(file))
    out = subprocess.run([cc, "-E", "-P", "-std=c11", "-I", folder, "-x", "c", "-"], text=True,
                         input="\n".join(marked), capture_output=True, check=True).stdout
    return {int(n) for n in re.findall(r"@@(\d+)@@", out.replace(" ", ""))}


def squeezed(text):
    return " ".join(text.split())


class Source:
    """A file and the sequence of its mutants."""

    def __init__(self, root, file, cc, seed):
        self.file = file
        with open(os.path.join(root, file), encoding="utf-8") as f:
            self.text = f.read()
        self.sites = sites.sites(self.text, active_lines(root, file, cc))
        self.functions = sites.functions(self.text)
        self.weight = len({s.line for s in self.sites})
        self.rng = random.Random("%s:%s" % (seed, file))
        self.left = {k: [s for s in self.sites if s.kind == k] for k in sites.KINDS}
        self.taken = set()

    def pick(self):
        """The next mutant, or None when there is none left."""
        while True:
            kinds = [k for k in sites.KINDS if self.left[k]]
            if not kinds:
                return None
            kind = self.rng.choices(kinds, [WEIGHTS[k] for k in kinds])[0]
            s = self.left[kind].pop(self.rng.randrange(len(self.left[kind])))
            becomes = self.rng.choice(s.variants) if s.variants else None
            if becomes is not None and (s.start, s.end) not in self.taken:
                self.taken.add((s.start, s.end))
                return self.mutant(s, becomes)

    def mutant(self, s, becomes):
        first = self.text.rfind("\n", 0, s.start) + 1
        last = self.text.find("\n", s.end)
        text = self.text[:s.start] + becomes + self.text[s.end:]
        return Mutant(self.file, s.line, s.kind, s.start, s.end, text,
                      squeezed(self.text[first:last]),
                      squeezed(self.text[first:s.start] + becomes + self.text[s.end:last]),
                      next((f for f in self.functions if f[0] <= s.line <= f[1]), (None, None)))


def quotas(sources, n):
    """How many of n mutants each file gets: by largest remainders, 1 or more, at most its sites."""
    total = sum(s.weight for s in sources)
    share = {s.file: n * s.weight / total for s in sources}
    out = {s.file: min(len(s.sites), max(1, int(share[s.file]))) for s in sources}
    by_rest = sorted(sources, key=lambda s: (int(share[s.file]) - share[s.file], s.file))
    while sum(out.values()) < n:
        grown = False
        for s in by_rest:
            if sum(out.values()) < n and out[s.file] < len(s.sites):
                out[s.file] += 1
                grown = True
        if not grown:
            break
    return out


class Results:
    """What is known of mutants, by what they are; kept in a file as it becomes known."""

    def __init__(self, path):
        self.path, self.known = path, {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                for line in f:
                    r = json.loads(line)
                    self.known[r["key"]] = r

    def add(self, r):
        self.known[r["key"]] = r
        with open(self.path, "a", encoding="utf-8") as f:
            f.write(json.dumps(r) + "\n")


def key_of(m, source):
    what = "\0".join([m.file, hashlib.sha256(source.text.encode()).hexdigest(), str(m.start),
                      m.text])
    return hashlib.sha256(what.encode()).hexdigest()[:16]


def cost(step):
    """What it takes; a program with the extension linked in repeats what another has shown."""
    repeats = "-static" in step.argv[0] and "--oom" not in step.argv
    return step.cpu + (5 if repeats else 0)


class Runner:
    def __init__(self, root, out, cc, quick):
        self.out, self.cc, self.quick = out, cc, quick
        self.base, self.work = trees.Tree(out + "/base", cc), None
        self.times = out + "/times.json"
        self.base.take(root)
        self.tree_key = self.fingerprint()
        self.order = self.measure(self.commands(out + "/commands.json"))
        self.reach = reach.Reach(out + "/reach", cc, self.base.folder,
                                 {" ".join(s.argv): (s.argv, s.key) for s in self.order
                                  if not quick})
        self.static = {s.argv[0]: self.needs_no_extension(s.argv) for s in self.order}

    def use_tree(self, number):
        self.work = trees.Tree("%s/work%d" % (self.out, number), self.cc)
        self.work.mirror(self.base)

    def fingerprint(self):
        h = hashlib.sha256()
        for relative in sorted(self.base.files()):
            if not relative.startswith(NO_PART_OF_TEST):
                with open(self.base.path(relative), "rb") as f:
                    h.update(relative.encode() + b"\0" + hashlib.sha256(f.read()).digest())
        return h.hexdigest()[:16]

    def step_key(self, argv):
        """What a step's answer depends on, beside a mutant: program, extension, files it names.
        Scripts may read anything: the whole tree."""
        h = hashlib.sha256(" ".join(argv).encode())
        named = [argv[0], "bpe.so"] + argv[1:]
        if not argv[0].startswith("build/bin/"):
            h.update(self.tree_key.encode())
        for path in named:
            full = self.base.path(path)
            if os.path.isdir(full):
                for name in sorted(os.listdir(full)):
                    if os.path.isfile(os.path.join(full, name)):
                        with open(os.path.join(full, name), "rb") as f:
                            h.update(f.read())
            elif os.path.exists(full):
                with open(full, "rb") as f:
                    h.update(f.read())
        return h.hexdigest()[:16]

    def commands(self, path):
        """What `make test` checks with, asked once for each Makefile and set of files."""
        h = hashlib.sha256(open(self.base.path("Makefile"), "rb").read())
        for relative in sorted(self.base.files()):
            if not relative.startswith(NO_PART_OF_TEST):
                h.update(relative.encode() + b"\0")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                known = json.load(f)
            if known["tree"] == h.hexdigest():
                built = os.path.join("build", "bin")
                programs = os.listdir(self.base.path(built))
                if self.base.make("bpe.so", *(built + "/" + p for p in programs if "." not in p)):
                    return known["commands"]
        commands = self.base.steps()
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"tree": h.hexdigest(), "commands": commands}, f)
        return commands

    def measure(self, commands):
        """Runs every step on the unchanged tree: all must pass. What is known is not run again."""
        known = {}  # name -> CPU seconds, seconds, the key of the step that passed
        if os.path.exists(self.times):
            with open(self.times, encoding="utf-8") as f:
                known = json.load(f)
        out = []
        for argv in [a for c in commands for a in trees.split(c)]:
            name, step_key = " ".join(argv), self.step_key(argv)
            cpu, wall, key = known.get(name, (0, 0, ""))
            if key != step_key and not (self.quick and cpu > self.quick):
                passed, how, cpu, wall = self.base.run(argv, self.quick / 4 if self.quick else 900)
                if not passed and not (self.quick and how == "too slow"):
                    sys.exit("fails without any mutant: %s\n%s" % (name, how))
                known[name] = (round(cpu, 3), round(wall, 3), step_key) if passed else SLOW
                with open(self.times, "w", encoding="utf-8") as f:
                    json.dump(known, f, indent=0)
            out.append(trees.Step(argv, *known[name][:2], step_key))
        return sorted(out, key=cost)

    def needs_no_extension(self, argv):
        """Whether it is a compiled program that cannot load anything."""
        if not argv[0].startswith("build/bin/"):
            return False
        symbols = subprocess.run(["nm", "-D", self.base.path(argv[0])], capture_output=True,
                                 text=True).stdout
        return "load_extension" not in symbols

    def near(self, file):
        """A function from a step to how near it is to a file: how much of their names agrees."""
        stem = re.sub(r"^(fn|tab|agg)_", "", os.path.splitext(os.path.basename(file))[0])

        def nearness(step):
            last = os.path.basename(step.argv[-1]).replace(".test", "")
            for prefix in ("unit_", "replay-"):
                last = last[len(prefix):] if last.startswith(prefix) else last
            same = len(os.path.commonprefix([stem, last]))
            return same if same >= 3 and step.cpu < 2 else 0
        return nearness

    def objects(self, file):
        """The objects of src/ and ext/ that are made from a source or a header."""
        if file.endswith(".c"):
            return ["build/" + file[:-1] + "o"]
        out = []
        for d in glob.glob(self.base.path("build", "src", "*.d")) + \
                glob.glob(self.base.path("build", "ext", "*.d")):
            with open(d, encoding="utf-8") as f:
                if re.search(r"[ /]%s\b" % re.escape(os.path.basename(file)), f.read()):
                    out.append(os.path.relpath(d[:-1] + "o", self.base.folder))
        return sorted(out)

    def same(self, file):
        with open(self.base.path(file), "rb") as a, open(self.work.path(file), "rb") as b:
            return a.read() == b.read()

    def build(self, m):
        """Puts the mutant in place; 'compile' or 'same' when it does not count."""
        with open(self.work.path(m.file), "w", encoding="utf-8") as f:
            f.write(m.text)
        objects = self.objects(m.file)
        if not self.work.make(*objects):
            return "compile"
        return "same" if all(self.same(o) for o in objects) else ""

    def to_run(self, m, passed):
        """(the steps that may notice m and have not passed with it, whether --quick left some out)
        """
        near, out, left_out = self.near(m.file), [], False
        for step in sorted(self.order, key=near, reverse=True):  # stable: then by their time
            if step.key in passed or not self.reach.may_notice(step.argv, m.file, *m.function):
                continue
            if self.quick and cost(step) > self.quick and not near(step):
                left_out = True
            else:
                out.append(step)
        return out, left_out

    def test(self, m, steps, passed):
        """(what failed, how) of the first step that does; the others go to `passed`."""
        for step in steps:
            if step.argv[0].startswith("build/bin/"):
                if not self.work.make(step.argv[0]):
                    return trees.name_of(step.argv), "does not build"
                if self.same(step.argv[0]) and self.static[step.argv[0]] or \
                        step.argv[-1] == "--core" and m.file.startswith("ext/"):
                    passed.append(step.key)
                    continue
            good, how, _, _ = self.work.run(step.argv, step.cpu, step.wall)
            if not good:
                return trees.name_of(step.argv), how
            passed.append(step.key)
        return "", ""

    def answer(self, m, old):
        """What becomes of m: a new record, or the old one where nothing is left to ask."""
        start = time.monotonic()
        if old and old["verdict"] in ("killed", "compile", "same"):
            return old
        passed = list(old.get("passed", ())) if old else []
        steps, left_out = self.to_run(m, set(passed))
        verdict, by, how = "open" if left_out else "lives", "", ""
        if not steps and old:
            return old if old["verdict"] == verdict else dict(old, verdict=verdict)
        refused = self.build(m)
        if not refused:
            refused = "" if self.work.make("bpe.so") else "compile"
        if not refused:
            by, how = self.test(m, steps, passed)
        self.work.mirror(self.base)
        return dict(file=m.file, line=m.line, kind=m.kind, was=m.was, becomes=m.becomes,
                    verdict=refused or ("killed" if by else verdict), by=by, how=how,
                    passed=[] if by or refused else passed,
                    seconds=round(time.monotonic() - start, 1))


def what(r):
    """What an explanation names a mutant by."""
    return r["file"], r["was"], r["becomes"]


def explained(folder):
    """(file, line as it was, as it became) -> [("equivalent" or "survives", why), ...], one for
    each mutant of which that is true."""
    out, verdict = collections.defaultdict(list), None
    path = os.path.join(folder, "SURVIVORS.md")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            for line in f:
                if line.startswith("## "):
                    verdict = {"## Equivalent": "equivalent",
                               "## Survivors": "survives"}.get(line.strip())
                m = re.match(r"- (\S+) \w+ `` (.*?) `` → `` (.*?) `` (.+)$", line)
                if m and verdict:
                    out[m.group(1), m.group(2), m.group(3)].append((verdict, m.group(4)))
    return out


def judge(counted, reasons):
    """Gives what lives the verdict of SURVIVORS.md, if it is there, and takes that one away."""
    out = []
    for r in sorted(counted, key=lambda r: (r["file"], r["line"])):
        if r["verdict"] != "killed" and reasons[what(r)]:
            verdict, why = reasons[what(r)].pop(0)
            r = dict(r, verdict=verdict, how=why)
        out.append(r)
    return out


def write_tsv(path, command, judged):
    """All verdicts; `how` only of those that live, since the others' is a program's output."""
    with open(path, "w", encoding="utf-8") as f:
        f.write("# Written by tests/mutate/mutate.py at its end: what it was told, then a line for "
                "each mutant.\n# %s\n" % command)
        f.write("file\tline\tkind\twas\tbecomes\tverdict\tkilled by\n")
        for r in judged:
            f.write("%s\t%d\t%s\t%s\t%s\t%s\t%s\n" % (
                r["file"], r["line"], r["kind"], r["was"], r["becomes"], r["verdict"], r["by"]))


VERDICTS = ("killed", "equivalent", "survives", "open", "lives")


def table(title, judged, name):
    """Verdicts of all mutants, of one name each."""
    counts = collections.defaultdict(collections.Counter)
    for r in judged:
        counts[name(r)][r["verdict"]] += 1
    print("\n%-24s %7s" % (title, "mutants") + "".join(" %10s" % v for v in VERDICTS))
    for row in sorted(counts):
        print("%-24s %7d" % (row, sum(counts[row].values())) +
              "".join(" %10d" % counts[row][v] for v in VERDICTS))


def report(judged, dropped, unasked, unused):
    """Prints all figures; (how many are killed or explained, how many are not)"""
    n = collections.Counter(r["verdict"] for r in judged)
    table("kind", judged, lambda r: r["kind"])
    table("folder", judged, lambda r: os.path.dirname(r["file"]))
    table("file", judged, lambda r: r["file"])
    print("\nkilled by")
    for by, k in collections.Counter(r["by"] for r in judged if r["verdict"] == "killed") \
            .most_common():
        print("%6d  %s" % (k, by))
    print("\nalive")
    for r in judged:
        if r["verdict"] != "killed":
            print("- %s %s `` %s `` → `` %s `` %s" % (
                r["file"], r["kind"], r["was"], r["becomes"],
                "%s: %s" % (r["verdict"], r["how"]) if r["verdict"] in ("equivalent", "survives")
                else "(%s, line %d)" % (r["verdict"], r["line"])))
    told = len(judged) - n["equivalent"]
    print("\n%d mutants: %d killed (%.1f %%), %d equivalent, %d survive, %d live without a reason; of "
          "those that can be told from the original %.1f %% killed" % (
              len(judged), n["killed"], 100 * n["killed"] / max(1, len(judged)), n["equivalent"],
              n["survives"], n["open"] + n["lives"], 100 * n["killed"] / max(1, told)))
    print("%d were not asked all steps; %d more do not compile, %d give the same objects" % (
        unasked, dropped["compile"], dropped["same"]))
    if unused > 0:
        print("%d reasons of SURVIVORS.md are for none of these mutants" % unused)
    unexplained = n["open"] + n["lives"]
    return len(judged) - unexplained, unexplained


def ask(source, wanted, runner, results):
    """(answers of `wanted` more mutants of a file, how many others did not count)"""
    counted, dropped = [], collections.Counter()
    while len(counted) < wanted:
        m = source.pick()
        if m is None:
            break
        key = key_of(m, source)
        old = results.known.get(key)
        r = dict(runner.answer(m, old), key=key)
        if r != old:
            results.add(r)
            print("%-8s %6.1f s  %s:%d %s  %s" % (r["verdict"], r["seconds"], m.file, m.line,
                                                  m.kind, r["by"] or m.becomes), flush=True)
        if r["verdict"] in ("compile", "same"):
            dropped[r["verdict"]] += 1
        else:
            counted.append(r)
    return counted, dropped


def worker(number, tasks, answers, runner, results):
    """One of the processes: a tree of its own, file after file."""
    runner.use_tree(number)
    for source, wanted in iter(tasks.get, None):
        answers.put((source.file, ask(source, wanted, runner, results)))


def choose_and_run(sources, n, jobs, runner, results):
    """Asks for mutants of each file until it has its share."""
    share, answers, tasks = quotas(sources, n), multiprocessing.Queue(), multiprocessing.Queue()
    for s in sources:
        tasks.put((s, share[s.file]))
    for _ in range(jobs):
        tasks.put(None)
    workers = [multiprocessing.Process(target=worker, args=(i, tasks, answers, runner, results))
               for i in range(jobs)]
    for w in workers:
        w.start()
    by_file = dict(answers.get() for _ in sources)
    for w in workers:
        w.join()
    counted = [r for s in sources for r in by_file[s.file][0]]
    return counted, sum((d for _, d in by_file.values()), collections.Counter())


def recall(sources, n, results):
    """What choose_and_run would give if nothing could be asked."""
    share, counted, dropped = quotas(sources, n), [], collections.Counter()
    for source in sources:
        wanted = len(counted) + share[source.file]
        while len(counted) < wanted:
            m = source.pick()
            if m is None:
                break
            r = results.known.get(key_of(m, source)) or dict(
                file=m.file, line=m.line, kind=m.kind, was=m.was, becomes=m.becomes,
                verdict="open", by="", how="")
            if r["verdict"] in ("compile", "same"):
                dropped[r["verdict"]] += 1
            else:
                counted.append(r)
    return counted, dropped


def main():
    if sys.argv[1:2] == ["--note"]:
        with open(sys.argv[2], "a", encoding="utf-8") as f:
            f.write("\t".join(sys.argv[3:]) + "\n")
        return 0
    a = argparse.ArgumentParser()
    a.add_argument("--seed", default="1")
    a.add_argument("--mutants", type=int, default=320)
    a.add_argument("--root", default=".")
    a.add_argument("--out", default="build/mutate")
    a.add_argument("--only", default="*")
    a.add_argument("--quick", type=float)
    a.add_argument("--jobs", type=int, default=1)
    a.add_argument("--report", action="store_true")
    o = a.parse_args()
    cc, root, out = os.environ.get("CC", "cc"), os.path.abspath(o.root), os.path.abspath(o.out)
    files = sorted(os.path.relpath(p, root) for d in ("src", "ext") for p in
                   glob.glob(os.path.join(root, d, "*.[ch]")))
    sources = [Source(root, f, cc, o.seed) for f in files
               if f not in NOT_WRITTEN and fnmatch.fnmatch(f, o.only)]
    sources = [s for s in sources if s.sites]
    os.makedirs(out, exist_ok=True)
    version = subprocess.run([cc, "--version"], capture_output=True, text=True).stdout
    print("mutate: seed %s, %d mutants of %d places in %d files; %s" % (
        o.seed, o.mutants, sum(len(s.sites) for s in sources), len(sources),
        version.split("\n")[0]), flush=True)
    results = Results(out + "/results.jsonl")
    if o.report:
        counted, dropped = recall(sources, o.mutants, results)
    else:
        runner = Runner(root, out, cc, o.quick)
        print("%d steps, %.0f s of CPU" % (len(runner.order), sum(s.cpu for s in runner.order)),
              flush=True)
        counted, dropped = choose_and_run(sources, o.mutants, o.jobs, runner, results)
    reasons = explained(os.path.join(root, "tests", "mutate"))
    judged = judge(counted, reasons)
    write_tsv(out + "/mutants.tsv", "mutate.py --seed %s --mutants %d --only '%s'; %s" % (
        o.seed, o.mutants, o.only, version.split("\n")[0]), judged)
    passed, failed = report(judged, dropped, sum(r["verdict"] == "open" for r in counted),
                            sum(map(len, reasons.values())))
    print("%d passed, %d failed" % (passed, failed))
    return failed > 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
