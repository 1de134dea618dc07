/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/macro.h"
#include "daemon/address.h"

static void expect(const void *address, size_t bytes, const char *text) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        address_text(&b, address, bytes);
        assert_string_equal(buf_text(&b), text);
}

static void internet_addresses_have_a_port(void **state) {
        struct sockaddr_storage roomy = {};
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(53) };
        struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(443) };

        in.sin_addr.s_addr = htonl(0x7f000035);
        in6.sin6_addr.s6_addr[15] = 1;
        expect(&in, sizeof(in), "inet:127.0.0.53:53");
        memcpy(&roomy, &in, sizeof(in));
        expect(&roomy, sizeof(roomy), "inet:127.0.0.53:53");
        expect(&in6, sizeof(in6), "inet6:[::1]:443");
}

static void unix_addresses_are_paths_or_abstract_names(void **state) {
        struct sockaddr_un un = { .sun_family = AF_UNIX, .sun_path = "/run/x" };
        struct sockaddr_un abstract = { .sun_family = AF_UNIX, .sun_path = "\0name" };

        expect(&un, sizeof(un), "unix:/run/x");
        expect(&un, 2 + 4, "unix:/run");
        expect(&abstract, 2 + 5, "unix:@name");
        expect(&abstract, 2, "unix:");
}

static void every_truncation_is_within_bounds(void **state) {
        struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };

        for (size_t n = 0; n <= sizeof(in6); n++) {
                _cleanup_(buf_done) struct buf b = BUF_NULL;
                _cleanup_free_ void *copy = malloc(n + 1);

                memcpy(copy, &in6, n);
                address_text(&b, copy, n);
                assert_true(n < 2 ? b.size == 0 : b.size > 0);
        }
}

static void other_families_have_a_number(void **state) {
        struct sockaddr_storage other = { .ss_family = 38 }, netlink = { .ss_family = AF_NETLINK };

        expect(&other, sizeof(other), "family:38");
        expect(&other, 2, "family:38");
        expect(&netlink, 12, "netlink");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(internet_addresses_have_a_port),
                cmocka_unit_test(unix_addresses_are_paths_or_abstract_names),
                cmocka_unit_test(every_truncation_is_within_bounds),
                cmocka_unit_test(other_families_have_a_number),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
