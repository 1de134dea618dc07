# SPDX-License-Identifier: GPL-2.0-or-later
#
# startprof: make deps, make, make check, make try, make bench, make install. See HACKING.md.

ifneq ($(shell uname -m),x86_64)
$(error startprof runs on x86-64 only for now (this machine is $(shell uname -m)))
endif

VERSION := $(shell cat VERSION)

prefix ?= /usr/local
bindir ?= $(prefix)/bin
libexecdir ?= $(prefix)/libexec/startprof
mandir ?= $(prefix)/share/man
docdir ?= $(prefix)/share/doc/startprof

CC ?= gcc
CLANG ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/bin/bpftool) bpftool)
PKG_CONFIG ?= pkg-config
O ?= build
WERROR ?=

CFLAGS ?= -O2 -g
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wno-unused-parameter $(WERROR)
HARDEN := -fstack-protector-strong -fPIE -D_FORTIFY_SOURCE=2
ifneq ($(SANITIZE),)
HARDEN := -fPIE -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer
LDFLAGS += -fsanitize=$(SANITIZE)
endif
LIBS_common :=
PKGS := libbpf libelf libdw libdebuginfod libsystemd jansson zlib libzstd liblzma libmd libcap libseccomp
PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(filter-out libcap libseccomp,$(PKGS)) 2>/dev/null)
ALL_CPPFLAGS = -D_GNU_SOURCE -I. -I$(O) -DSTARTPROF_VERSION='"$(VERSION)"' -DSTARTPROF_LIBEXECDIR='"$(libexecdir)"' $(CPPFLAGS)
ALL_CFLAGS = -std=gnu11 $(WARNINGS) $(HARDEN) -include common/banned.h -ffile-prefix-map=$(CURDIR)=. $(PKG_CFLAGS) $(CFLAGS)
ALL_LDFLAGS = -pie -Wl,-z,relro,-z,now,--as-needed $(LDFLAGS)

MODULES := common proto daemon symbolize worker report client
objects = $(patsubst %.c,$(O)/%.o,$(sort $(wildcard $(1)/*.c)))
PROGRAMS := $(O)/startprofd $(O)/startprof-worker $(O)/startprof

all: $(PROGRAMS)
.PHONY: all
.DELETE_ON_ERROR:

# ---- the kernel side ----

BPF_SOURCES := $(sort $(wildcard bpf/*.bpf.c))
BPF_SKELETONS := $(patsubst bpf/%.bpf.c,$(O)/bpf/%.skel.h,$(BPF_SOURCES))
BPF_CFLAGS := -g -O2 -target bpf -mcpu=v3 -D__TARGET_ARCH_x86 -I. -Wall -Werror -ffile-prefix-map=$(CURDIR)=. \
	-fdebug-compilation-dir=. -idirafter /usr/include/x86_64-linux-gnu

# Kept: make would take them for intermediate files.
.SECONDARY: $(patsubst bpf/%.bpf.c,$(O)/bpf/%.bpf.o,$(BPF_SOURCES))
$(O)/bpf/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h) proto/event.h
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -c $< -o $(@:.o=.raw.o)
	$(BPFTOOL) gen object $@ $(@:.o=.raw.o)

$(O)/bpf/%.skel.h: $(O)/bpf/%.bpf.o
	$(BPFTOOL) gen skeleton $< name $(subst -,_,$*) > $@

$(call objects,daemon): $(BPF_SKELETONS)

# ---- the programs ----

# The place of the worker is compiled in: another prefix at `make install` builds that again.
$(O)/.libexecdir: FORCE
	@mkdir -p $(@D)
	@echo '$(libexecdir)' | cmp -s - $@ || echo '$(libexecdir)' > $@
FORCE:
.PHONY: FORCE
$(O)/proto/worker_link.o: $(O)/.libexecdir

# What is embedded by .incbin no compiler reports as a dependency.
$(O)/proto/varlink.o: $(wildcard proto/*.varlink)
$(O)/report/svg.o: report/flamegraph.css report/flamegraph.js

$(O)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

archives = $(foreach m,$(1),$(O)/lib$(m).a)
define archive_rule
$(O)/lib$(1).a: $(call objects,$(1))
	@rm -f $$@
	$$(AR) rcsD $$@ $$^
endef
$(foreach m,$(MODULES),$(eval $(call archive_rule,$(m))))

# main() of each program lives in its module's main.c, so tests can link the archives without it.
MAIN_daemon := $(O)/daemon/main.o
MAIN_worker := $(O)/worker/main.o
MAIN_client := $(O)/client/main.o

LINK = $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group
$(O)/startprofd: $(MAIN_daemon) $(call archives,daemon proto common)
	$(LINK) -lbpf -lsystemd -ljansson -lzstd -lcap -lpthread
$(O)/startprof-worker: $(MAIN_worker) $(call archives,worker symbolize report proto common)
	$(LINK) -ldw -lelf -ljansson -lzstd -lz -llzma -lseccomp -lmd -liberty
$(O)/startprof: $(MAIN_client) $(call archives,client report symbolize proto common)
	$(LINK) -lsystemd -ljansson -lzstd -lz -llzma -ldw -lelf -liberty

-include $(shell find $(O) -name '*.d' -type f 2>/dev/null)

# ---- the rest, by topic ----

include tests/setup.mk
include tests/tests.mk
include units/install.mk

clean:
	rm -rf $(O)
.PHONY: clean
