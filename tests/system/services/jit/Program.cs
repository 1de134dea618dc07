// SPDX-License-Identifier: GPL-2.0-or-later

// Burns CPU time for some milliseconds in a method of its own.
var clock = System.Diagnostics.Stopwatch.StartNew();
long steps = 0;
while (clock.ElapsedMilliseconds < int.Parse(args[0]))
    steps += Numbers.CollatzSteps(27);
return steps > 0 ? 0 : 1;

static class Numbers
{
    [System.Runtime.CompilerServices.MethodImpl(System.Runtime.CompilerServices.MethodImplOptions.NoInlining)]
    public static long CollatzSteps(long n)
    {
        long steps = 0;
        for (; n != 1; steps++)
            n = n % 2 == 0 ? n / 2 : 3 * n + 1;
        return steps;
    }
}
