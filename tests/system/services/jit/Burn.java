// SPDX-License-Identifier: GPL-2.0-or-later

import java.nio.file.Files;
import java.nio.file.Path;

/** Burn MILLISECONDS FILE: burns CPU time in a method of its own until FILE is there, and so long after it. */
public final class Burn {
    static long collatzSteps(long n) {
        long steps = 0;
        for (; n != 1; steps++)
            n = n % 2 == 0 ? n / 2 : 3 * n + 1;
        return steps;
    }

    static long collatzFor(long milliseconds) {
        long end = System.nanoTime() + milliseconds * 1_000_000, steps = 0;
        while (System.nanoTime() < end)
            for (int i = 0; i < 1000; i++)
                steps += collatzSteps(27);
        return steps;
    }

    public static void main(String[] arguments) throws Exception {
        long steps = collatzFor(Long.parseLong(arguments[0]));
        Files.createFile(Path.of(arguments[1]));
        while (steps > 0)
            steps += collatzFor(100);
    }
}
