// SPDX-License-Identifier: GPL-2.0-or-later
// Every kind of method calls Trace.Print(), which prints the stack trace that the runtime makes.
using System.Collections;
using System.Runtime.CompilerServices;
using static System.Runtime.CompilerServices.MethodImplOptions;
using My_App.Core_Stuff;

new Box<string>("x").Map<int, long>(s => { Trace.Print(); return s.Length; }, out _);
new Box<int>(1).Visit(new Box<int>.Node<string>(), [1], new int[1, 1, 1]);
foreach (var i in Streams.Twice(2)) _ = i;
await foreach (var i in Streams.Count(1)) _ = i;
await Streams.Later(1);
_ = new Money_2(1) + new Money_2(2);
_ = (int) new Money_2(1);
_ = new Money_2(3).CompareTo(new Money_2(4));
((IThing) new Thing()).Do(1);
((IThing) new Thing()).Default();
((IThing<string>) new Thing()).Make("x");
_ = new Thing()["k"];
new Thing().Changed += (_, _) => { };
foreach (var i in (IEnumerable<string>) new Bag<string>()) _ = i;
_ = Outer<string>.Inner<int>.Name("x", 2);
_ = new Deep.Level1.Level2().Go<long, string>(1, "x");
Filters.Try(() => throw new InvalidOperationException("wanted"));
Filters.Nested();
Pointers.Run();
_ = new Lazy<int>(() => { Trace.Print(); return 1; }).Value;
new[] { 3, 1, 2 }.AsSpan().Sort((a, b) => { Trace.Print(); return a - b; });
new Thread(() => Local(2)).Start();
GC.KeepAlive(new WithStatic());
return;

static int Local(int n)
{
    if (n > 0) return Local(n - 1) + 1;
    Trace.Print();
    return 0;
}

namespace My_App.Core_Stuff
{
    public static class Trace
    {
        static readonly object one = new();
        public static void Print() { lock (one) Console.WriteLine(Environment.StackTrace); }
    }

    public class Box<T>(T value)
    {
        public class Node<U> { public U? Held; }
        public Box<U> Map<U, V>(Func<T, U> map, out V? other) { other = default; Trace.Print(); return new Box<U>(map(value)); }
        [MethodImpl(NoInlining)] public void Visit(Node<string> node, List<T> list, T[,,] cube) { Trace.Print(); }
    }

    public class Bag<T> : IEnumerable<T>
    {
        IEnumerator<T> IEnumerable<T>.GetEnumerator() { Trace.Print(); yield return default!; }
        IEnumerator IEnumerable.GetEnumerator() { Trace.Print(); return Array.Empty<T>().GetEnumerator(); }
    }

    public readonly struct Money_2(int amount) : IComparable<Money_2>
    {
        readonly int amount = amount;
        [MethodImpl(NoInlining)] public static Money_2 operator +(Money_2 a, Money_2 b) { Trace.Print(); return new(a.amount + b.amount); }
        [MethodImpl(NoInlining)] public static explicit operator int(Money_2 m) { Trace.Print(); return m.amount; }
        [MethodImpl(NoInlining)] public int CompareTo(Money_2 other) { Trace.Print(); return amount - other.amount; }
    }

    public interface IThing
    {
        int Do(int x);
        [MethodImpl(NoInlining)] int Default() { Trace.Print(); return Do(1); }
    }

    public interface IThing<T> { T Make(T x); }

    public class Thing : IThing, IThing<string>
    {
        public event EventHandler Changed { [MethodImpl(NoInlining)] add { Trace.Print(); } remove { } }
        public string this[string key] { [MethodImpl(NoInlining)] get { Trace.Print(); return key; } }
        int IThing.Do(int x)
        {
            int y = x;
            Func<int, int> f = a => { Func<int> g = () => { Trace.Print(); return a + y; }; return g(); };
            return f(2) + Sub(3);
            [MethodImpl(NoInlining)] int Sub(int q) { Trace.Print(); return q + y; }
        }
        string IThing<string>.Make(string x) { Trace.Print(); return string.Concat(x.Select(c => { Trace.Print(); return c; })); }
    }

    public static class Streams
    {
        public static async IAsyncEnumerable<int> Count(int n) { await Task.Yield(); Trace.Print(); yield return n; }
        public static IEnumerable<int> Twice(int n) { Trace.Print(); yield return n; yield return n; }
        public static async Task<int> Later(int n)
        {
            await Task.Delay(1);
            Trace.Print();
            return await Task.Run(async () => { await Task.Yield(); Trace.Print(); return n + await L(); });
            async ValueTask<int> L() { await Task.Yield(); Trace.Print(); return 2; }
        }
    }

    public class Outer<T>
    {
        public class Inner<U>
        {
            [MethodImpl(NoInlining)] public static string Name(T t, U u) { Func<U, string> f = z => { Trace.Print(); return $"{t}{z}"; }; return f(u); }
        }
    }

    public class Deep
    {
        public class Level1
        {
            public class Level2
            {
                public string Go<T, U>(T t, U u) { Trace.Print(); return string.Concat(Enumerable.Range(0, 1).Select(i => { Trace.Print(); return $"{t}{u}{i}"; })); }
            }
        }
    }

    public static class Filters
    {
        static bool When(Exception e) { Trace.Print(); return e.Message == "wanted"; }
        public static void Try(Action a)
        {
            try { a(); }
            catch (Exception e) when (When(e)) { Trace.Print(); }
            finally { Trace.Print(); }
        }
        public static void Nested()
        {
            try
            {
                try { throw new FormatException(); }
                finally { Trace.Print(); }
            }
            catch (FormatException) { Trace.Print(); }
        }
    }

    public static unsafe class Pointers
    {
        [MethodImpl(NoInlining)] public static void Call(int x) => Trace.Print();
        public static void Run() { int v = 1; Take(&v, ref v, in v, &Call); }
        [MethodImpl(NoInlining)] public static void Take(int* p, ref int r, in int i, delegate*<int, void> f) { Trace.Print(); f(*p + r + i); }
    }

    public class WithStatic
    {
        static readonly int first = First();
        static int First() { Trace.Print(); return 1; }
        public int Held = first;
    }
}
