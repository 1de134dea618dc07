# SPDX-License-Identifier: GPL-2.0-or-later

# tests/unit/test_NAME.c: one program each, linked with every archive but the mains.
UNIT_TESTS := $(patsubst tests/unit/%.c,$(O)/tests/unit/%,$(sort $(wildcard tests/unit/test_*.c)))
TEST_ARCHIVES := $(call archives,client daemon worker symbolize report proto common)
TEST_LIBS := -lbpf -lsystemd -ljansson -lzstd -lz -lcap -lseccomp -ldw -lelf -liberty -lpthread -lcmocka

$(O)/tests/unit/%: tests/unit/%.c $(TEST_ARCHIVES)
	@mkdir -p $(@D)
	$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP $(ALL_LDFLAGS) -o $@ $< -Wl,--start-group $(TEST_ARCHIVES) -Wl,--end-group $(TEST_LIBS)
