"""trees.py - the copies of the project in which mutants are built and run.

    base = Tree(folder, cc="cc"); base.take(root); steps = base.steps()
    work = Tree(other, cc="cc"); work.mirror(base); ...; work.mirror(base)

The base tree is built whole and never changed afterwards. The work tree is its copy, times of
files included, so that `make` there rebuilds what one changed source needs and nothing else; to
mirror it again undoes everything.

The steps of a tree are what its `make test` hands to tests/run.sh, learnt from make itself, not
from a list that would grow old: make runs with a RUN that writes its arguments down.
"""
import collections
import filecmp
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

# Without -g two objects are the same if their bytes are. A program that cannot reach a function
# does not hold it, so that it is the unchanged program when that function is mutated.
FLAGS = ["B=build", "CFLAGS=-O2 -ffunction-sections -fdata-sections", "LDFLAGS=-Wl,--gc-sections"]
MEMORY = 6 << 30                   # of one process; the tests themselves stay below 4 GB
FILE_SIZE = 1 << 30
SPARE_SECONDS = 2                  # above four times what a step takes

# What tests/run.sh asks of the last line; read here, without its dozen processes.
TALLY = re.compile(r"(?:^|\n)(\d+) passed, (\d+) failed\n\Z")

Step = collections.namedtuple("Step", "argv cpu wall key")

# Programs that run for long have short versions, which run long before them and see most.
SHORT = {
    "prop": (["--core", "--cases", "6400"], ["--cases", "0", "--sql", "2000"]),
    "prop_train": (["--cases", "2000"],),
    "prop_window": (["--cases", "2000"],),
}
# The halves of a program that are also programs by themselves; together they are the whole.
HALVES = {"prop": (["--core"], ["--cases", "0"])}


def program(argv):
    return os.path.basename(argv[0])


def name_of(argv):
    return " ".join(os.path.basename(a) if "/" in a else a for a in argv)


def split(argv):
    """One step for each test file, so that the first failure stops the rest."""
    files = [a for a in argv[1:] if a.endswith(".test")]
    if len(files) > 1:
        others = [a for a in argv if a not in files]
        return [others + [f] for f in files]
    if len(argv) == 1 and program(argv) in SHORT:
        return [argv + more for more in SHORT[program(argv)]] + \
            [argv + more for more in HALVES.get(program(argv), ([],))]
    return [argv]


def limits(cpu):
    def set_limits():
        os.setsid()
        seconds = int(4 * cpu) + SPARE_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_SIZE, FILE_SIZE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return set_limits


def ended(pid, seconds):
    """Waits for a child's end, and leaves it unreaped: so long nobody else can get its number."""
    end, pause = time.monotonic() + seconds, 0.001
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if time.monotonic() > end:
            return False
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
    return True


class Tree:
    def __init__(self, folder, cc, flags=FLAGS):
        self.folder, self.cc, self.flags = folder, cc, flags
        os.makedirs(folder, exist_ok=True)
        self.scratch = folder + ".tmp"

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def files(self):
        """Path -> (time, size) of every file, paths from the tree's root."""
        out = {}
        for folder, _, names in os.walk(self.folder):
            for name in names:
                full = os.path.join(folder, name)
                s = os.lstat(full)
                out[os.path.relpath(full, self.folder)] = (s.st_mtime_ns, s.st_size)
        return out

    def take(self, root):
        """Makes the sources those of root; what did not change keeps its time."""
        wanted = set()
        for folder, folders, names in os.walk(root):
            if folder == root:
                folders[:] = [f for f in folders if f not in ("build", ".git")]
                names = [n for n in names if not n.endswith((".so", ".dylib")) and n != ".git"]
            folders[:] = [f for f in folders if f != "__pycache__"]
            for name in names:
                relative = os.path.relpath(os.path.join(folder, name), root)
                wanted.add(relative)
                here = self.path(relative)
                if os.path.exists(here) and filecmp.cmp(here, os.path.join(root, relative), False):
                    continue
                os.makedirs(os.path.dirname(here), exist_ok=True)
                shutil.copy(os.path.join(root, relative), here)
        for relative in self.files():
            built = relative.startswith("build" + os.sep) or os.sep not in relative and \
                relative.endswith((".so", ".dylib"))
            if relative not in wanted and not built:
                os.remove(self.path(relative))

    def mirror(self, base):
        """Makes this tree what base is. Returns how many files that took."""
        theirs, ours, n = base.files(), self.files(), 0
        for relative, stamp in theirs.items():
            if ours.get(relative) != stamp:
                os.makedirs(os.path.dirname(self.path(relative)), exist_ok=True)
                shutil.copy2(base.path(relative), self.path(relative))
                n += 1
        for relative in ours.keys() - theirs.keys():
            os.remove(self.path(relative))
            n += 1
        shutil.rmtree(self.scratch, ignore_errors=True)
        os.makedirs(self.scratch)
        return n

    def make(self, *targets):
        """Whether make made them."""
        command = ["make", "-s", "CC=" + self.cc, *self.flags, *targets]
        return subprocess.run(command, cwd=self.folder, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0

    def steps(self):
        """Builds all that `make test` needs; the commands it checks with, in its order."""
        notes = self.folder + ".steps"
        if os.path.exists(notes):
            os.remove(notes)
        run = "RUN=%s %s --note %s" % (sys.executable, os.path.join(os.path.dirname(
            os.path.abspath(__file__)), "mutate.py"), notes)
        done = subprocess.run(["make", "-s", "CC=" + self.cc, *self.flags, "test", run],
                              cwd=self.folder, capture_output=True, text=True)
        if not os.path.exists(notes):
            sys.exit("make test does not build:\n" + done.stdout + done.stderr)
        with open(notes, encoding="utf-8") as f:
            argvs = [line.rstrip("\n").split("\t") for line in f]
        return [argv for argv in argvs if not argv[0].startswith("tests/mutate/")]

    def run(self, argv, cpu=3600.0, wall=3600.0):
        """Runs a step as make test would. (passed, how it failed, CPU seconds, seconds)"""
        environment = dict(os.environ, TMPDIR=self.scratch, LC_ALL="C")
        log = self.scratch + "/log"
        os.makedirs(self.scratch, exist_ok=True)
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        with open(log, "w+b") as out:
            p = subprocess.Popen(argv, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                                 stdout=out, stderr=subprocess.STDOUT, preexec_fn=limits(cpu))
            how = "" if ended(p.pid, 20 * wall + 40) else "hangs"
            try:
                os.killpg(p.pid, signal.SIGKILL)  # it, or what it has left behind
            except ProcessLookupError:
                pass
            p.wait()
            out.seek(max(0, out.tell() - 2000))
            text = out.read().decode("utf-8", "replace")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        tally = TALLY.search(text)
        passed = p.returncode == 0 and tally and int(tally[1]) > 0 and int(tally[2]) == 0
        if not passed and not how:
            slow = p.returncode == -signal.SIGXCPU or used > int(4 * cpu) + SPARE_SECONDS - 1
            how = "too slow" if slow else text
        return bool(passed), how, used, time.monotonic() - start
