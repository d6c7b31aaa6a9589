import { expect, test } from "bun:test";
import { join } from "node:path";
import { ConfigError } from "../../../src/config/problem.ts";
import { Supervisor, WorkersEnded } from "../../../src/server/workers/supervisor.ts";
import { systemClock } from "../../../src/units/clock.ts";

test("a port that is taken stops the start of all workers, and is named with what to set", async () => {
  const other = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const started = Supervisor.start({
    workers: 2,
    isKept: false,
    command: [process.execPath, join(import.meta.dir, "../../../src/main.ts")],
    env: {},
    hostname: "127.0.0.1",
    port: other.port,
    dataFolder: "/nonexistent",
    socketFolder: null,
    clock: systemClock,
    log() {},
  });
  const why = await started.then(
    () => null,
    (error: Error) => error,
  );
  other.stop(true);
  expect(why).toBeInstanceOf(ConfigError);
  expect(why!.message).toContain(`cannot listen on 127.0.0.1:${other.port} (EADDRINUSE). Set HOST`);
});

test("workers that do not start are counted, and their own messages say why", async () => {
  const started = Supervisor.start({
    workers: 2,
    isKept: false,
    command: [process.execPath, join(import.meta.dir, "../../../src/main.ts")],
    env: { GATEWAY_CONFIG: "/nonexistent/gateway.yaml" },
    hostname: "127.0.0.1",
    port: 0,
    dataFolder: "/nonexistent",
    socketFolder: null,
    clock: systemClock,
    log() {},
  });
  const why = await started.then(
    () => null,
    (error: Error) => error,
  );
  expect(why).toBeInstanceOf(WorkersEnded);
  expect(why!.message).toBe("2 of 2 workers did not start; why is said above by each of them.");
}, 600_000);
