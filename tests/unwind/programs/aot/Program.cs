// SPDX-License-Identifier: GPL-2.0-or-later
// What services in C# do when they start: they walk directories, make many objects (and collect them), match
// text, throw, dispatch through interfaces and delegates, and wait for tasks.
using System.Text;
using System.Text.RegularExpressions;

interface IShape { double Area(); }
record Square(double Side) : IShape { public double Area() => Side * Side; }
record Circle(double Radius) : IShape { public double Area() => Radius * Radius * Math.PI; }
record struct Ring(double Inner, double Outer) : IShape { public readonly double Area() => Outer * Outer - Inner * Inner; }

static class Program
{
    static readonly Dictionary<string, List<object>> Seen = new();

    static int Walk(string directory, int depth)
    {
        var files = 0;
        try
        {
            files = Directory.GetFiles(directory).Length;
            if (depth > 0)
                foreach (var child in Directory.GetDirectories(directory))
                    files += Walk(child, depth - 1);
        }
        catch (UnauthorizedAccessException) { }
        catch (DirectoryNotFoundException) { }
        return files;
    }

    static double Allocate(int round)
    {
        var shapes = new List<IShape>();
        for (var i = 0; i < 3000; i++)
            shapes.Add((i % 3) switch { 0 => new Square(i), 1 => new Circle(i), _ => new Ring(i, i + 1) });
        Seen[$"round {round % 50}"] = shapes.Cast<object>().Where(s => s is not Circle).ToList();
        return shapes.OrderBy(s => s.Area()).Sum(s => s.Area());
    }

    static int Match(int round)
    {
        var text = new StringBuilder();
        for (var i = 0; i < 200; i++)
            text.Append("key").Append(i * round).Append("=value; ");
        return Regex.Matches(text.ToString(), "(?<key>[a-z]+[0-9]+)=(?<value>[^;]*)").Count(m => m.Groups["key"].Length > 4);
    }

    static int Throw(int depth)
    {
        if (depth == 0)
            throw new InvalidOperationException("at the bottom");
        try { return Throw(depth - 1) + 1; }
        finally { Seen.Remove($"round {depth}"); }
    }

    static async Task<double> Work(int round)
    {
        await Task.Yield();
        try { Throw(5); }
        catch (InvalidOperationException) { }
        return Allocate(round) + Match(round);
    }

    static async Task Main(string[] args)
    {
        double total = Walk("/usr/share", 3);
        for (var round = 0; round < int.Parse(args[0]); round++)
        {
            var tasks = Enumerable.Range(round, 3).Select(Work).ToArray();
            await Task.WhenAll(tasks);
            total += tasks.Sum(t => t.Result);
            if (round % 20 == 0)
                GC.Collect();
        }
        Console.WriteLine(total);
    }
}
