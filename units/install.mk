# SPDX-License-Identifier: GPL-2.0-or-later
#
# make install DESTDIR=… prefix=…: directories of systemd from its pkg-config file, below $(prefix) when that is
# not /usr, so that an unprivileged prefix works.

systemd_variable = $(shell $(PKG_CONFIG) --variable=$(1) systemd 2>/dev/null)
below_prefix = $(if $(filter /usr,$(prefix)),$(call systemd_variable,$(1)),$(prefix)/lib/$(2))
unitdir ?= $(call below_prefix,systemdsystemunitdir,systemd/system)
presetdir ?= $(call below_prefix,systemdsystempresetdir,systemd/system-preset)
sysusersdir ?= $(call below_prefix,sysusersdir,sysusers.d)
catalogdir ?= $(call below_prefix,catalogdir,systemd/catalog)

MAN1 := $(wildcard docs/*.1)
MAN5 := $(wildcard docs/*.5)
MAN7 := $(wildcard docs/*.7)
MAN8 := $(wildcard docs/*.8)
TO = $(DESTDIR)

$(O)/units/startprofd.service: units/startprofd.service.in Makefile
	@mkdir -p $(@D)
	sed 's|@libexecdir@|$(libexecdir)|g' $< > $@

install: all $(O)/units/startprofd.service
	install -D -m 755 $(O)/startprof $(TO)$(bindir)/startprof
	install -D -m 755 -t $(TO)$(libexecdir) $(O)/startprofd $(O)/startprof-worker
	install -D -m 644 -t $(TO)$(unitdir) units/startprofd.socket $(O)/units/startprofd.service
	install -D -m 644 units/startprof.preset $(TO)$(presetdir)/90-startprof.preset
	install -D -m 644 units/startprof.sysusers $(TO)$(sysusersdir)/startprof.conf
	install -D -m 644 units/startprof.catalog $(TO)$(catalogdir)/startprof.catalog
	$(if $(MAN1),install -D -m 644 -t $(TO)$(mandir)/man1 $(MAN1))
	$(if $(MAN5),install -D -m 644 -t $(TO)$(mandir)/man5 $(MAN5))
	$(if $(MAN7),install -D -m 644 -t $(TO)$(mandir)/man7 $(MAN7))
	$(if $(MAN8),install -D -m 644 -t $(TO)$(mandir)/man8 $(MAN8))
.PHONY: install
