# SPDX-License-Identifier: GPL-2.0-or-later
#
# What apt brings. Quick when all is there; -o keeps a half-configured machine from asking questions.

BUILD_PACKAGES := gcc make pkg-config clang llvm bpftool libbpf-dev libelf-dev libdw-dev libsystemd-dev \
	libjansson-dev zlib1g-dev libzstd-dev liblzma-dev libmd-dev libseccomp-dev libcap-dev libiberty-dev libdebuginfod-dev
TRY_PACKAGES := systemd-container mmdebstrap dbus python3
VM_PACKAGES := $(TRY_PACKAGES) qemu-system-x86 e2fsprogs libc6-dev util-linux
CHECK_PACKAGES := $(TRY_PACKAGES) libcmocka-dev clang-format clang-tidy cppcheck valgrind gdb lld binutils elfutils debuginfod mandoc \
	chromium chromium-driver git g++ perl libdevel-nytprof-perl libdw-dev dwz util-linux passwd

# Language run-times that only tests use may be there without a package.
missing_command = $(if $(shell command -v $(1) 2>/dev/null),,$(2))
CHECK_PACKAGES += $(call missing_command,jcmd,default-jdk-headless) $(call missing_command,rustc,rustc) $(call missing_command,node,nodejs) $(call missing_command,npm,npm) $(call missing_command,go,golang-go) $(call missing_command,openssl,openssl)

# systemd's pkg-config file, which names the directories of units, is in systemd itself up to Debian 12.
BUILD_PACKAGES += $(if $(shell . /etc/os-release 2>/dev/null && [ "$$ID$$VERSION_ID" = debian12 ] && echo y),systemd,systemd-dev)

define install_packages
	@missing=; for package in $(1); do \
		case $$(dpkg-query -W -f '$${db:Status-Abbrev}' $$package 2>/dev/null) in ii*) ;; *) missing="$$missing $$package" ;; esac; \
	done; \
	if [ -n "$$(echo $$missing)" ]; then \
		[ "$$(id -u)" = 0 ] || { echo "missing:$$missing; run as root: make $@"; exit 1; }; \
		echo "installing:$$missing"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	fi
endef

deps:
	$(call install_packages,$(BUILD_PACKAGES))
deps-try: deps
	$(call install_packages,$(TRY_PACKAGES))
print-build-packages:
	@echo $(BUILD_PACKAGES)
deps-check: deps
	$(call install_packages,$(CHECK_PACKAGES))
deps-vm: deps
	$(call install_packages,$(VM_PACKAGES))
.PHONY: deps deps-try deps-check deps-vm print-build-packages

# make try: the bundled demo in a container; make try UNIT=foo.service: a unit of this machine.
try: deps-try
	@$(MAKE) --no-print-directory -s all
ifeq ($(UNIT),)
	@BUILD=$(O) scripts/try
else
	@scripts/try-unit $(O) "$(UNIT)" $(OPTIONS)
endif
.PHONY: try

# make bench: what profiling costs; BENCH=arming for one row, BENCH=symbols for what names cost.
bench: deps-check
	@$(MAKE) --no-print-directory -s all
	@[ "$(BENCH)" = symbols ] || BUILD=$(O) tests/bench/run $(BENCH)
	@[ "$(or $(BENCH),symbols)" != symbols ] || BUILD=$(O) tests/bench/symbols
.PHONY: bench
