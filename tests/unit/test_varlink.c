/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/fd.h"
#include "proto/varlink.h"

/* Two calls and a reply, one behind the other, as a client that does not wait sends them. */
static const char stream[] = "{\"method\":\"a.b.C\"}\0"
                             "{\"method\":\"a.b.D\",\"parameters\":{\"x\":\"\\u00fc\"},\"more\":true}\0"
                             "{\"parameters\":{}}";

static unsigned take_all(struct varlink_input *in) {
        unsigned n = 0;
        json_t *message;
        int r;

        while ((r = varlink_input_next(in, &message)) > 0) {
                json_decref(message);
                n++;
        }
        assert_int_equal(r, 0);
        return n;
}

static void messages_come_out_whole_at_every_split(void **state) {
        for (size_t first = 0; first <= sizeof(stream); first++)
                for (size_t second = first; second <= sizeof(stream); second++) {
                        struct varlink_input in = VARLINK_INPUT(4096);
                        unsigned n = 0;

                        assert_int_equal(varlink_input_feed(&in, stream, first), 0);
                        n += take_all(&in);
                        assert_int_equal(varlink_input_feed(&in, stream + first, second - first), 0);
                        n += take_all(&in);
                        assert_int_equal(varlink_input_feed(&in, stream + second, sizeof(stream) - second),
                                         0);
                        n += take_all(&in);

                        assert_int_equal(n, 3);
                        assert_int_equal(varlink_input_position(&in), sizeof(stream));
                        varlink_input_done(&in);
                }
}

static void a_truncated_message_is_never_given_out(void **state) {
        size_t bytes = strlen(stream) + 1;

        for (size_t cut = 0; cut < bytes; cut++) {
                struct varlink_input in = VARLINK_INPUT(4096);
                json_t *message = NULL;

                assert_int_equal(varlink_input_feed(&in, stream, cut), 0);
                assert_int_equal(varlink_input_next(&in, &message), 0);
                assert_null(message);
                varlink_input_done(&in);
        }
}

static void the_limit_counts_with_and_without_an_end(void **state) {
        static const char message[] = "{\"method\":\"a.b.C\"}";
        json_t *m = NULL;

        for (size_t max = 1; max < sizeof(message); max++) {
                struct varlink_input in = VARLINK_INPUT(max);

                /* The NUL has not come yet, but it would be too late. */
                assert_int_equal(varlink_input_feed(&in, message, max), 0);
                assert_int_equal(varlink_input_next(&in, &m), -EMSGSIZE);
                varlink_input_done(&in);

                assert_int_equal(varlink_input_feed(&in, message, sizeof(message)), 0);
                assert_int_equal(varlink_input_next(&in, &m), -EMSGSIZE);
                varlink_input_done(&in);
        }
        assert_null(m);

        struct varlink_input in = VARLINK_INPUT(sizeof(message));
        assert_int_equal(varlink_input_feed(&in, message, sizeof(message)), 0);
        assert_int_equal(varlink_input_next(&in, &m), 1);
        json_decref(m);
        varlink_input_done(&in);
}

static void what_is_no_object_is_refused(void **state) {
        static const char *const garbage[] = {
                "",
                "x",
                "{",
                "[]",
                "1",
                "\"text\"",
                "null",
                "{} {}",
                "{\"a\":1,\"a\":2}",
                "{\"a\":\"\xff\"}",
                "{\"a\":1e999}",
                "\x7f"
                "ELF",
        };

        for (size_t i = 0; i < ARRAY_SIZE(garbage); i++) {
                struct varlink_input in = VARLINK_INPUT(4096);
                json_t *m = NULL;

                assert_int_equal(varlink_input_feed(&in, garbage[i], strlen(garbage[i]) + 1), 0);
                assert_int_equal(varlink_input_next(&in, &m), -EBADMSG);
                assert_null(m);
                varlink_input_done(&in);
        }
}

static void nesting_without_end_is_refused(void **state) {
        struct varlink_input in = VARLINK_INPUT(VARLINK_CALL_MAX);
        char deep[60000];
        json_t *m = NULL;

        memset(deep, '[', sizeof(deep) - 1);
        deep[sizeof(deep) - 1] = 0;
        assert_int_equal(varlink_input_feed(&in, "{\"a\":", 5), 0);
        assert_int_equal(varlink_input_feed(&in, deep, sizeof(deep)), 0);
        assert_int_equal(varlink_input_next(&in, &m), -EBADMSG);
        varlink_input_done(&in);
}

static json_t *parse(const char *text) {
        json_t *m = json_loads(text, 0, NULL);

        assert_non_null(m);
        return m;
}

static void calls_survive_the_way_there_and_back(void **state) {
        json_t *parameters = parse("{\"unit\":\"a.service\"}"), *message;
        struct varlink_call call = { .method = "a.b.C", .parameters = parameters, .more = true }, again = {};
        char *data = NULL;
        size_t bytes;

        assert_int_equal(varlink_call_encode(&call, &data, &bytes), 0);
        assert_int_equal(bytes, strlen(data) + 1);
        message = parse(data);
        assert_int_equal(varlink_call_decode(message, &again), 0);
        assert_string_equal(again.method, "a.b.C");
        assert_true(json_equal(again.parameters, parameters));
        assert_true(again.more);
        assert_false(again.oneway);

        free(data);
        json_decref(message);
        json_decref(parameters);
}

static void replies_survive_the_way_there_and_back(void **state) {
        struct varlink_reply reply = { .error = "a.b.Error" }, again = {};
        json_t *message;
        char *data = NULL;
        size_t bytes;

        assert_int_equal(varlink_reply_encode(&reply, &data, &bytes), 0);
        message = parse(data);
        assert_int_equal(varlink_reply_decode(message, &again), 0);
        assert_string_equal(again.error, "a.b.Error");
        assert_non_null(again.parameters);
        assert_false(again.continues);
        free(data);
        json_decref(message);
}

static void unknown_members_are_ignored(void **state) {
        json_t *m = parse("{\"method\":\"a.b.C\",\"new\":[1,2],\"parameters\":null}");
        struct varlink_call call = {};

        assert_int_equal(varlink_call_decode(m, &call), 0);
        assert_null(call.parameters);
        json_decref(m);
}

static void calls_with_members_of_the_wrong_type_are_refused(void **state) {
        static const char *const bad[] = {
                "{}",
                "{\"method\":1}",
                "{\"method\":null}",
                "{\"method\":\"a\",\"parameters\":[]}",
                "{\"method\":\"a\",\"more\":1}",
                "{\"method\":\"a\",\"oneway\":\"yes\"}",
                "{\"method\":\"a\",\"upgrade\":true}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct varlink_call call = { .method = "before" };
                json_t *m = parse(bad[i]);

                assert_int_equal(varlink_call_decode(m, &call), -EBADMSG);
                assert_string_equal(call.method, "before");
                json_decref(m);
        }
}

static void an_error_does_not_continue(void **state) {
        struct varlink_reply reply;
        json_t *m = parse("{\"error\":\"a.b.C\",\"continues\":true}");

        assert_int_equal(varlink_reply_decode(m, &reply), -EBADMSG);
        json_decref(m);
}

static void members_are_typed(void **state) {
        json_t *m = parse("{\"n\":7,\"neg\":-1,\"real\":1.5,\"s\":\"x\",\"z\":null,\"t\":true}");
        const char *s = "before";
        uint64_t n = 99;
        bool t = false;

        assert_int_equal(varlink_get_u64(m, "n", &n), 1);
        assert_int_equal(n, 7);
        n = 99;
        assert_int_equal(varlink_get_u64(m, "neg", &n), -EINVAL);
        assert_int_equal(varlink_get_u64(m, "real", &n), -EINVAL);
        assert_int_equal(varlink_get_u64(m, "s", &n), -EINVAL);
        assert_int_equal(varlink_get_u64(m, "z", &n), 0);
        assert_int_equal(varlink_get_u64(m, "absent", &n), 0);
        assert_int_equal(varlink_get_u64(NULL, "n", &n), 0);
        assert_int_equal(n, 99);
        assert_int_equal(varlink_get_string(m, "n", &s), -EINVAL);
        assert_string_equal(s, "before");
        assert_int_equal(varlink_get_string(m, "s", &s), 1);
        assert_string_equal(s, "x");
        assert_int_equal(varlink_get_bool(m, "t", &t), 1);
        assert_true(t);
        json_decref(m);
}

static void texts_that_are_no_utf8_can_be_sent(void **state) {
        json_t *s = varlink_string("a\xff"
                                   "b");

        assert_non_null(s);
        assert_string_equal(json_string_value(s), "a\xef\xbf\xbd"
                                                  "b");
        json_decref(s);
}

static void a_reader_that_is_too_slow_is_noticed(void **state) {
        struct varlink_output *out = varlink_output_new(10);

        assert_non_null(out);
        assert_int_equal(varlink_output_add(out, strdup("123456"), 7, -EBADF), 0);
        assert_int_equal(varlink_output_add(out, strdup("789"), 4, -EBADF), -ENOBUFS);
        assert_false(varlink_output_empty(out));
        varlink_output_free(out);
}

static void a_message_larger_than_the_socket_goes_in_pieces(void **state) {
        int pair[2];
        struct varlink_output *out = varlink_output_new(VARLINK_REPLY_MAX);
        struct varlink_input in = VARLINK_INPUT(VARLINK_REPLY_MAX);
        size_t large = 1 << 20, got_large = 0;
        unsigned messages = 0;
        char *text = malloc(large);

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        assert_non_null(text);
        memset(text, ' ', large);
        memcpy(text, "{}", 2);
        text[large - 1] = 0;
        assert_int_equal(varlink_output_add(out, text, large, -EBADF), 0);
        assert_int_equal(varlink_output_add(out, strdup("{}"), 3, -EBADF), 0);

        while (messages < 2) {
                char data[65536];
                ssize_t n;
                json_t *m;

                assert_true(varlink_output_flush(out, pair[0]) >= 0);
                n = recv(pair[1], data, sizeof(data), 0);
                assert_true(n > 0);
                got_large += (size_t) n;
                assert_int_equal(varlink_input_feed(&in, data, (size_t) n), 0);
                while (varlink_input_next(&in, &m) == 1) {
                        messages++;
                        json_decref(m);
                }
        }
        assert_int_equal(got_large, large + 3);
        assert_true(varlink_output_empty(out));

        varlink_output_free(out);
        varlink_input_done(&in);
        close(pair[0]);
        close(pair[1]);
}

struct server {
        char path[64];
        int listening, peer;
};

static void server_start(struct server *s) {
        struct sockaddr_un a = { .sun_family = AF_UNIX };

        snprintf(s->path, sizeof(s->path), "/tmp/test-varlink-%d", getpid());
        unlink(s->path);
        memcpy(a.sun_path, s->path, strlen(s->path));
        s->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(s->listening, (struct sockaddr *) &a, sizeof(a)), 0);
        assert_int_equal(listen(s->listening, 5), 0);
}

static void server_stop(struct server *s) {
        close(s->peer);
        close(s->listening);
        unlink(s->path);
}

static void a_client_gets_replies_in_order_with_the_descriptor(void **state) {
        struct server server;
        struct varlink_client *c = NULL;
        struct varlink_output *out = varlink_output_new(VARLINK_REPLY_MAX);
        struct varlink_answer a = VARLINK_ANSWER_NULL;
        char data[4096];
        int fd;

        server_start(&server);
        assert_int_equal(varlink_client_new(server.path, UINT64_MAX, &c), 0);
        server.peer = accept(server.listening, NULL, NULL);
        assert_int_equal(varlink_client_call(c, "a.b.C", NULL, true, UINT64_MAX), 0);
        assert_true(recv(server.peer, data, sizeof(data), 0) > 0);
        assert_string_equal(data, "{\"method\":\"a.b.C\",\"more\":true}");

        assert_int_equal(varlink_client_next(c, 0, &a), -ETIMEDOUT);
        fd = fd_new_sealed("test", "hello", 5);
        assert_true(fd >= 0);
        assert_int_equal(varlink_output_add(out, strdup("{\"continues\":true}"), 19, -EBADF), 0);
        assert_int_equal(varlink_output_add(out, strdup("{\"parameters\":{\"size\":5}}"), 26, fd), 0);
        assert_int_equal(varlink_output_add(out, strdup("{\"error\":\"a.b.E\"}"), 18, -EBADF), 0);
        assert_int_equal(varlink_output_flush(out, server.peer), 1);

        assert_int_equal(varlink_client_next(c, UINT64_MAX, &a), 0);
        assert_true(a.continues);
        assert_true(a.fd < 0);
        varlink_answer_done(&a);
        assert_int_equal(varlink_client_next(c, UINT64_MAX, &a), 0);
        assert_true(a.fd >= 0);
        assert_true(fd_is_sealed(a.fd));
        varlink_answer_done(&a);
        assert_int_equal(varlink_client_next(c, UINT64_MAX, &a), 0);
        assert_string_equal(a.error, "a.b.E");
        assert_true(a.fd < 0);
        varlink_answer_done(&a);

        close(server.peer);
        assert_int_equal(varlink_client_next(c, UINT64_MAX, &a), -ECONNRESET);
        varlink_output_free(out);
        varlink_client_free(c);
        server_stop(&server);
}

static void a_client_refuses_nonsense(void **state) {
        struct server server;
        struct varlink_client *c = NULL;
        struct varlink_answer a = VARLINK_ANSWER_NULL;

        server_start(&server);
        assert_int_equal(varlink_client_new(server.path, UINT64_MAX, &c), 0);
        server.peer = accept(server.listening, NULL, NULL);
        assert_int_equal(send(server.peer, "HTTP/1.1 400\r\n", 15, 0), 15);
        assert_int_equal(varlink_client_next(c, UINT64_MAX, &a), -EBADMSG);
        assert_null(a.message);
        varlink_client_free(c);
        server_stop(&server);
}

static void a_missing_socket_is_told(void **state) {
        struct varlink_client *c = NULL;
        char longest[200];

        assert_int_equal(varlink_client_new("/nonexistent/socket", UINT64_MAX, &c), -ENOENT);
        memset(longest, 'x', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = 0;
        assert_int_equal(varlink_client_new(longest, UINT64_MAX, &c), -ENAMETOOLONG);
        assert_null(c);
}

static void the_interface_texts_are_embedded(void **state) {
        assert_non_null(strstr(varlink_profiler_description, "\ninterface " PROFILER_INTERFACE "\n"));
        assert_non_null(strstr(varlink_profiler_description, "error Failed (reason: string)\n"));
        assert_non_null(strstr(varlink_service_description, "\ninterface " VARLINK_SERVICE "\n"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(messages_come_out_whole_at_every_split),
                cmocka_unit_test(a_truncated_message_is_never_given_out),
                cmocka_unit_test(the_limit_counts_with_and_without_an_end),
                cmocka_unit_test(what_is_no_object_is_refused),
                cmocka_unit_test(nesting_without_end_is_refused),
                cmocka_unit_test(calls_survive_the_way_there_and_back),
                cmocka_unit_test(replies_survive_the_way_there_and_back),
                cmocka_unit_test(unknown_members_are_ignored),
                cmocka_unit_test(calls_with_members_of_the_wrong_type_are_refused),
                cmocka_unit_test(an_error_does_not_continue),
                cmocka_unit_test(members_are_typed),
                cmocka_unit_test(texts_that_are_no_utf8_can_be_sent),
                cmocka_unit_test(a_reader_that_is_too_slow_is_noticed),
                cmocka_unit_test(a_message_larger_than_the_socket_goes_in_pieces),
                cmocka_unit_test(a_client_gets_replies_in_order_with_the_descriptor),
                cmocka_unit_test(a_client_refuses_nonsense),
                cmocka_unit_test(a_missing_socket_is_told),
                cmocka_unit_test(the_interface_texts_are_embedded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
