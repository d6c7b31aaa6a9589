import { type Quantiles, type Spread, table } from "../figures.ts";
import type { PeersRun } from "../peers.ts";
import { AGENT_LOADS } from "./agents.ts";
import { KINDS } from "./kinds.ts";
import type { Flood, Memory, PeerResult } from "./result.ts";

/** The run as Markdown tables: one peer a row. */
export function tables({ peers, skipped }: PeersRun): string {
  const bare = peers.find(({ name }) => name === "bare host");
  const nginx = peers.find(({ name }) => name === "nginx");
  const parts: string[] = [];
  if (peers.some(({ usPerRequest, usPerEvent }) => !Number.isNaN(usPerRequest.median + usPerEvent.median)))
    parts.push(section("CPU and throughput", costs(peers, nginx)));
  if (peers.some(({ usPerEventOf }) => Object.keys(usPerEventOf).length > 0))
    parts.push(
      section(
        "CPU of an event by kind of stream (host → client), µs; of a whole answer assembled of 500",
        kinds(peers),
      ),
    );
  if (peers.some(({ usPerAgentsAnswer }) => Object.keys(usPerAgentsAnswer).length > 0))
    parts.push(section("CPU of an answer to an agent's request, µs", agents(peers)));
  if (peers.some(({ latencyMs }) => Object.keys(latencyMs).length > 0))
    parts.push(
      section(
        "Latency added to the bare host's, ms: p50 / p99 of whole answers, by connections",
        added(peers, bare),
      ),
    );
  if (peers.some(({ firstByteMs: { halfLoad } }) => !Number.isNaN(halfLoad.p50)))
    parts.push(
      section(
        "First byte added to the bare host's, and the gap between events, ms: p50 / p99",
        streams(peers, bare),
      ),
    );
  if (peers.some(({ memory }) => memory !== null)) parts.push(section("Memory", memories(peers)));
  if (peers.some(({ faults }) => faults !== null)) parts.push(section("Faults and floods", faults(peers)));
  parts.push(section("What was measured", settings(peers)));
  if (skipped.length > 0)
    parts.push(`Left out: ${skipped.map(({ name, why }) => `${name} (${why})`).join("; ")}.\n`);
  return parts.join("\n");
}

type Row = readonly string[];

const section = (title: string, [head, ...rows]: readonly Row[]): string =>
  `### ${title}\n\n${table(head!, rows)}\n`;

function costs(peers: readonly PeerResult[], nginx: PeerResult | undefined): Row[] {
  // A short run of nginx may take less CPU than one tick of its clock.
  const over = (own: number, its: number | undefined) => (its ? ` (${(own / its).toFixed(2)} ×)` : "");
  return [
    [
      "",
      "CPU µs a request (÷ nginx)",
      "lowest to highest",
      "CPU µs an SSE event (÷ nginx)",
      "streams",
      "requests/s",
    ],
    ...peers.map(({ name, usPerRequest, usPerEvent, requestsPerSecond, streams: count }) => [
      name,
      `${usPerRequest.median.toFixed(1)}${over(usPerRequest.median, nginx?.usPerRequest.median)}`,
      `${usPerRequest.low.toFixed(1)} to ${usPerRequest.high.toFixed(1)}`,
      `${usPerEvent.median.toFixed(1)}${over(usPerEvent.median, nginx?.usPerEvent.median)}`,
      `${count}`,
      Math.round(requestsPerSecond.median).toLocaleString("en"),
    ]),
  ];
}

function kinds(peers: readonly PeerResult[]): Row[] {
  const figure = (one: Spread | null | undefined) =>
    one === undefined || one === null || Number.isNaN(one.median) ? "–" : one.median.toFixed(1);
  return [
    ["", "chat", ...KINDS.map(({ name }) => name), "assembled"],
    ...peers.map(({ name, usPerEvent, usPerEventOf, usPerAssembled }) => [
      name,
      figure(usPerEvent),
      ...KINDS.map((kind) => figure(usPerEventOf[kind.name])),
      figure(usPerAssembled),
    ]),
  ];
}

function agents(peers: readonly PeerResult[]): Row[] {
  return [
    ["", ...peers.map(({ name }) => name)],
    ...AGENT_LOADS.map(({ name }) => [
      name,
      ...peers.map(({ usPerAgentsAnswer: { [name]: us } }) =>
        us === undefined ? "–" : Math.round(us.median).toLocaleString("en"),
      ),
    ]),
  ];
}

const pair = ({ p50, p99 }: Quantiles): string =>
  Number.isNaN(p50) ? "–" : `${p50.toFixed(2)} / ${p99.toFixed(2)}`;

/** The bare host's own row stays what it is. */
function beyond(own: Quantiles, bare: Quantiles | undefined): string {
  if (bare === undefined || own === bare) return pair(own);
  return pair({ p50: own.p50 - bare.p50, p99: own.p99 - bare.p99 });
}

function added(peers: readonly PeerResult[], bare: PeerResult | undefined): Row[] {
  const connections = Object.keys(peers[0]?.latencyMs ?? {}).map(Number);
  return [
    ["", ...connections.map(String)],
    ...peers.map(({ name, latencyMs }) => [
      name,
      ...connections.map((count) => beyond(latencyMs[count]!, bare?.latencyMs[count])),
    ]),
  ];
}

function streams(peers: readonly PeerResult[], bare: PeerResult | undefined): Row[] {
  const first = bare?.firstByteMs;
  return [
    ["", "64 streams, first token at once", "first token after 300 ms", "64 connections, half load", "gap"],
    ...peers.map(({ name, firstByteMs: { steady, thinking, halfLoad }, gapMs }) => [
      name,
      beyond(steady, first?.steady),
      beyond(thinking, first?.thinking),
      `${beyond(halfLoad, first?.halfLoad)} at ${Math.round(halfLoad.streamsPerSecond / 2).toLocaleString("en")}/s`,
      pair(gapMs),
    ]),
  ];
}

const mb = (bytes: number): string => (bytes / 1_048_576).toFixed(0);

function memories(peers: readonly PeerResult[]): Row[] {
  const sizes = [...new Set(peers.flatMap(({ memory }) => memory?.open.map((one) => one.streams) ?? []))];
  return [
    ["", "idle MB", ...sizes.flatMap((size) => [`${size.toLocaleString("en")} streams`, "KiB a stream"])],
    ...peers.flatMap(({ name, memory }) =>
      memory === null ? [] : [[name, mb(memory.idleBytes), ...sizes.flatMap((size) => held(memory, size))]],
    ),
  ];
}

function held({ idleBytes, open }: Memory, size: number): Row {
  const one = open.find(({ streams: count }) => count === size);
  if (one === undefined) return ["–", "–"];
  if (one.bytes === null) return [one.why ?? "", "–"];
  return [mb(one.bytes), ((one.bytes - idleBytes) / size / 1_024).toFixed(1)];
}

const flood = (one: Flood | null): string =>
  one === null ? "–" : `${one.usEach.toFixed(0)} µs, ${Math.round(one.perSecond).toLocaleString("en")}/s`;

function faults(peers: readonly PeerResult[]): Row[] {
  return [
    [
      "",
      "killed, started → first 200, ms",
      "host back → first 200, ms",
      "413 each",
      "bad key each",
      "gap p99 of 64 streams, ms",
      "next to bodies of 10 MB",
    ],
    ...peers.flatMap(({ name, faults: one }) =>
      one === null
        ? []
        : [
            [
              name,
              one.recoverMs.toFixed(0),
              one.hostBackMs?.toFixed(1) ?? "not within 60 s",
              flood(one.tooLarge),
              flood(one.badKey),
              one.largeBody.without.p99.toFixed(1),
              `${one.largeBody.with.p99.toFixed(1)} (${one.largeBody.answered})`,
            ],
          ],
    ),
  ];
}

const settings = (peers: readonly PeerResult[]): Row[] => [
  ["", "version", "settings"],
  ...peers.map(({ name, version, settings: how }) => [name, version, how]),
];
