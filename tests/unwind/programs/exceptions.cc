/* SPDX-License-Identifier: GPL-2.0-or-later */
// Throws through several frames with destructors, over and over: libgcc and libstdc++ unwind while being unwound.
#include <stdexcept>
#include <string>

struct guard {
        explicit guard(long *n) : count(n) {}
        ~guard() { ++*count; }
        long *count;
};

static long cleaned;

__attribute__((noinline)) static void fail(int n) {
        guard g(&cleaned);

        if (n % 7 == 0)
                throw std::runtime_error(std::to_string(n));
        if (n % 3 == 0)
                throw n;
}

__attribute__((noinline)) static void middle(int depth, int n) {
        guard g(&cleaned);

        if (depth > 0)
                middle(depth - 1, n);
        else
                fail(n);
}

int main() {
        long caught = 0;

        for (int i = 0; i < 600000; i++)
                try {
                        middle(i % 20, i);
                } catch (const std::exception &e) {
                        caught += static_cast<long>(std::string(e.what()).size());
                } catch (int n) {
                        caught += n;
                }
        return caught + cleaned == 0;
}
