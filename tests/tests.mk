# SPDX-License-Identifier: GPL-2.0-or-later
#
# make check: everything but vm. make check T=unit/procfs or T=system: a part. make check-build: what needs
# neither root nor network. A test that needs more than a program is an executable tests/TIER/run.

TEST_ARCHIVES := $(call archives,client daemon worker symbolize report proto common)
TEST_LIBS := -lbpf -lsystemd -ljansson -lzstd -lz -llzma -lcap -lseccomp -lmd -liberty -lpthread
LINK_TEST = $(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP $(ALL_LDFLAGS) -o $@ $< $(MORE) \
	-Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(TEST_LIBS)

# tests/unit/test_NAME.c: one program each.
UNIT_TESTS := $(patsubst %.c,$(O)/%,$(sort $(wildcard tests/unit/test_*.c)))
$(O)/tests/unit/%: tests/unit/%.c $(TEST_ARCHIVES) $(PROGRAMS)
	@mkdir -p $(@D)
	$(LINK_TEST) -lcmocka

# tests/fuzz/fuzz_NAME.c: an LLVMFuzzerTestOneInput(); here it replays tests/fuzz/corpus/NAME/.
FUZZ_TESTS := $(patsubst %.c,$(O)/%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
# No archive with a main(): libFuzzer brings its own.
FUZZ_ARCHIVES := $(call archives,symbolize report proto common)
$(O)/tests/fuzz/%: MORE = tests/fuzz/replay.c
$(O)/tests/fuzz/%: tests/fuzz/%.c tests/fuzz/replay.c $(FUZZ_ARCHIVES)
	@mkdir -p $(@D)
	$(LINK_TEST) -DCORPUS='"tests/fuzz/corpus/$(patsubst fuzz_%,%,$*)"'

# The same entry points under libFuzzer: make fuzz T=60 (seconds each).
FUZZERS := $(patsubst tests/fuzz/fuzz_%.c,$(O)-fuzz/fuzzers/%,$(wildcard tests/fuzz/fuzz_*.c))
fuzz:
	$(call install_packages,libclang-rt-$(shell $(CLANG) -dumpversion | cut -d. -f1)-dev)
	$(MAKE) O=$(O)-fuzz CC=clang SANITIZE=fuzzer-no-link,address,undefined $(FUZZERS)
	for f in $(notdir $(FUZZERS)); do $(O)-fuzz/fuzzers/$$f -max_total_time=$(or $(T),60) $(O)-fuzz/corpus/$$f tests/fuzz/corpus/$$f || exit 1; done
$(O)/fuzzers/%: tests/fuzz/fuzz_%.c $(FUZZ_ARCHIVES)
	@mkdir -p $(@D) $(O)/corpus/$*
	$(LINK_TEST) -fsanitize=fuzzer

# tests/replay/run: described recordings and their reports.
REPLAY := $(O)/tests/replay/replay
$(REPLAY): tests/replay/replay.c tests/replay/description.c $(call archives,report proto common)
	@mkdir -p $(@D)
	$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(filter %.c,$^) -Wl,--start-group $(filter %.a,$^) \
		-Wl,--end-group -ljansson -lzstd -lz
EXTRA_TESTS += $(REPLAY)

tests-built: all $(UNIT_TESTS) $(EXTRA_TESTS)
sanitized-built: all $(UNIT_TESTS) $(FUZZ_TESTS)

build-tests:
	$(MAKE) WERROR=-Werror tests-built
	$(MAKE) WERROR=-Werror O=$(O)-asan SANITIZE=address,undefined CFLAGS="-O1 -g" sanitized-built

TIERS_BUILD := unit unit-asan unit-valgrind bpf_native fuzz replay client debuginfod
TIERS_ALL := lint $(TIERS_BUILD) unwind nativeaot bpf system browser exports package
present = $(foreach t,$(1),$(if $(filter unit% fuzz,$(t))$(wildcard tests/$(t)/run),$(t)))

check: deps-check
	@$(MAKE) --no-print-directory -s build-tests
	@tests/run --build $(O) --only "$(T)" $(call present,$(TIERS_ALL))
check-build:
	@$(MAKE) --no-print-directory -s build-tests
	@tests/run --build $(O) --only "$(T)" $(call present,$(TIERS_BUILD))
# Debian's kernels 5.10, 6.1 and 6.12 in virtual machines: make check-vm T=vm/5.10 or T=vm/5.10.storm.
check-vm: deps-vm
	@$(MAKE) --no-print-directory -s all
	@tests/run --build $(O) --only "$(T)" vm
lint:
	@tests/run --build $(O) lint
.PHONY: tests-built sanitized-built build-tests check check-build check-vm lint fuzz
