// SPDX-License-Identifier: GPL-2.0-or-later
using Service;

var builder = Host.CreateApplicationBuilder(args);
builder.Services.AddSystemd();
builder.Services.AddHostedService<Worker>();
builder.Build().Run();

namespace Service
{
    public class Worker(ILogger<Worker> logger) : BackgroundService
    {
        protected override async Task ExecuteAsync(CancellationToken stop)
        {
            while (!stop.IsCancellationRequested)
            {
                logger.LogInformation("running at {time}", DateTimeOffset.Now);
                await Task.Delay(1000, stop);
            }
        }
    }
}
