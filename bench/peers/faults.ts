/**
 * What happens to a peer when things go wrong around it: it is killed, its host goes away, clients misbehave.
 */
import { quantiles } from "../figures.ts";
import { load, type Target } from "../load.ts";
import { type Measured, onMeasuredCore } from "../processes.ts";
import { startHost } from "../scene.ts";
import { BODY_BYTES, type Installed, PACES, type Subject } from "./peer.ts";
import type { Faults, Flood } from "./result.ts";
import { bodyOf } from "./rounds.ts";

/** Leaves `subject` and `host` ended; both are started again on the way, in the same places. */
export async function measureFaults(
  installed: Installed,
  subject: Subject,
  host: Measured,
  folder: string,
  seconds: number,
): Promise<Faults> {
  await load(subject.target, { body: bodyOf(subject.prefix, "burst", false), connections: 64, seconds });
  const tooLarge = subject.refusesLarge
    ? await flood(subject, subject.target, seconds, 413, BODY_BYTES + 1)
    : null;
  const badKey = subject.stranger === undefined ? null : await flood(subject, subject.stranger, seconds, 401);
  const largeBody = await nextToLargeBodies(subject, seconds);
  const recovered = await killed(installed, subject, host, folder, seconds);
  const hostBackMs = await hostGone(recovered.subject, host);
  await recovered.subject.process.stop();
  return { tooLarge, badKey, largeBody, recoverMs: recovered.ms, hostBackMs };
}

/** Null when it refuses with another status than it ought to. */
async function flood(
  { process, prefix }: Subject,
  target: Target,
  seconds: number,
  status: number,
  claimedBytes = 0,
): Promise<Flood | null> {
  const beforeUs = process.cpuUs();
  const timings = await load(target, {
    body: bodyOf(prefix, "burst", false),
    connections: 64,
    seconds,
    claimedBytes,
  });
  const refused = timings.statuses[status] ?? 0;
  if (refused < timings.failures * MOST || refused === 0) return null;
  return {
    status,
    perSecond: refused / timings.seconds,
    usEach: (process.cpuUs() - beforeUs) / refused,
  };
}

/** A connection that is closed while refused may show as no answer at all. */
const MOST = 0.9;

async function nextToLargeBodies(subject: Subject, seconds: number): Promise<Faults["largeBody"]> {
  const { target, prefix } = subject;
  const streams = () =>
    load(target, {
      body: bodyOf(prefix, "steady", true),
      connections: 64,
      requests: 64 * Math.ceil(seconds),
    });
  const without = quantiles((await streams()).gapMs);
  const done = new AbortController();
  const large = load(target, {
    body: bodyOf(prefix, "burst", false, "word ".repeat((BODY_BYTES - 1_024) / 5)),
    connections: 1,
    perSecond: 2,
    seconds: 60,
    signal: done.signal,
  });
  const disturbed = await streams();
  done.abort();
  const { statuses } = await large;
  const answered = Object.entries(statuses).map(([status, times]) => `${times} × ${status}`);
  return { without, with: quantiles(disturbed.gapMs), answered: answered.join(", ") };
}

async function killed(
  installed: Installed,
  subject: Subject,
  host: Measured,
  folder: string,
  seconds: number,
): Promise<{ subject: Subject; ms: number }> {
  const body = bodyOf(subject.prefix, "burst", false);
  const busy = load(subject.target, { body, connections: 64, seconds: seconds + 5 }).catch(() => null);
  await Bun.sleep(seconds * 500);
  await subject.process.stop("SIGKILL");
  await busy;
  const startedMs = performance.now();
  const again = await onMeasuredCore(() => installed.start(host.port, folder));
  await firstAnswer(again);
  return { subject: again, ms: performance.now() - startedMs };
}

/** Null when it does not serve within a minute. */
async function hostGone(subject: Subject, host: Measured): Promise<number | null> {
  await host.stop("SIGKILL");
  const untilMs = performance.now() + 1_000;
  while (performance.now() < untilMs) await answers(subject);
  const again = await startHost(host.port);
  const startedMs = performance.now();
  const served = await firstAnswer(subject).then(
    () => performance.now() - startedMs,
    () => null,
  );
  await again.stop();
  return served;
}

async function firstAnswer(subject: Subject): Promise<void> {
  const untilMs = performance.now() + RECOVER_MS;
  while (performance.now() < untilMs) {
    if (await answers(subject)) return;
    await Bun.sleep(2);
  }
  throw new Error(`no 200 within ${RECOVER_MS / 1_000} s`);
}

const RECOVER_MS = 60_000;

async function answers({ target, prefix }: Subject): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${target.port}${target.path}`, {
      method: "POST",
      headers: { ...target.headers, "content-type": "application/json" },
      body: bodyOf(prefix, "burst", false),
      signal: AbortSignal.timeout(5_000),
    });
    return (await response.text()).includes("pong") && response.ok;
  } catch {
    return false;
  }
}

/** That it relays what the host says, whole, before anything is measured. */
export async function verify({ target, prefix }: Subject): Promise<void> {
  for (const stream of [false, true]) {
    const response = await fetch(`http://127.0.0.1:${target.port}${target.path}`, {
      method: "POST",
      headers: { ...target.headers, "content-type": "application/json" },
      body: bodyOf(prefix, "burst", stream),
    });
    const text = await response.text();
    const deltas = text.split('" token"').length - 1;
    const right = stream
      ? deltas === DELTAS && text.trimEnd().endsWith("data: [DONE]")
      : text.includes("pong");
    if (!response.ok || !right) throw new Error(`it answered ${response.status}: ${text.slice(0, 200)}`);
  }
}

const DELTAS = Number(PACES.burst.split("-")[2]);
