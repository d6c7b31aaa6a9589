import { below, type Flapping, type Minute } from "./flapping.ts";

/** The run with knowledge of health over the one without, minute by minute, as SVG. */
export function plotFlapping(knowing: Flapping, blind: Flapping): string {
  const { downs, minutes } = knowing;
  const flapping = downs.filter((host) => host.downs.length > 0);
  const top = TITLE + flapping.length * STRIP;
  const panels = PANELS.map((panel, at) => {
    const y = top + at * (PANEL + GAP) + GAP;
    return [
      `<text x="${LEFT}" y="${y - 8}" class="t">${panel.title}</text>`,
      ...panel.ticks.map((tick) => gridLine(y + PANEL * (1 - panel.height(tick)), panel.label(tick))),
      line(blind.minutes, panel, y, "blind"),
      line(minutes, panel, y, "knowing"),
    ].join("\n");
  });
  const height = top + PANELS.length * (PANEL + GAP) + GAP;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}">
<title>Half of the hosts flapping: served, attempts and first tokens with and without health</title>
<style>text{font:11px sans-serif;fill:#333}.t{font-weight:600}.grid{stroke:#ddd}.knowing{stroke:#0a7d33;fill:none;stroke-width:1.5}.blind{stroke:#c33;fill:none;stroke-width:1;stroke-dasharray:3 2}.down{fill:#c33}.up{fill:#cfe8d5}</style>
<rect width="${WIDTH}" height="${height}" fill="#fff"/>
<text x="${LEFT}" y="16" class="t">Half of the hosts flapping, ${minutes.length} simulated minutes</text>
<text x="${LEFT}" y="32">solid: plans know the hosts' health; dashed: they do not. Red: the host is down.</text>
${flapping.map((host, at) => strip(host.id, host.downs, TITLE + at * STRIP, minutes.length)).join("\n")}
${panels.join("\n")}
</svg>
`;
}

const WIDTH = 760;
const LEFT = 110;
const RIGHT = 16;
const TITLE = 44;
const STRIP = 16;
const PANEL = 80;
const GAP = 28;
const INNER = WIDTH - LEFT - RIGHT;

interface Panel {
  readonly title: string;
  readonly ticks: readonly number[];
  label(tick: number): string;
  value(minute: Minute): number;
  /** Y position of a value from 0 to 1. */
  height(value: number): number;
}

const PANELS: readonly Panel[] = [
  {
    title: "requests served",
    ticks: [0.5, 0.75, 1],
    label: (tick) => `${tick * 100}%`,
    value: ({ served, requests }) => served / requests,
    height: (value) => Math.max(0, value * 2 - 1),
  },
  {
    title: "attempts a request",
    ticks: [1, 1.5, 2, 3],
    label: String,
    value: ({ attempts, requests }) => attempts / requests,
    height: (value) => (value - 1) / 2,
  },
  {
    title: "first token, p99 of each minute",
    ticks: [0.5, 1, 3, 10, 30],
    label: (tick) => `${tick} s`,
    value: ({ firstTokensMs }) => below(0.99, firstTokensMs) / 1_000,
    height: (value) => Math.log(value / 0.5) / Math.log(60),
  },
];

const gridLine = (y: number, label: string): string =>
  `<line x1="${LEFT}" x2="${LEFT + INNER}" y1="${y.toFixed(1)}" y2="${y.toFixed(1)}" class="grid"/><text x="${LEFT - 6}" y="${(y + 4).toFixed(1)}" text-anchor="end">${label}</text>`;

function line(minutes: readonly Minute[], { value, height }: Panel, y: number, kind: string): string {
  const points = minutes.map((minute, at) => {
    const x = LEFT + ((at + 0.5) / minutes.length) * INNER;
    return `${x.toFixed(1)},${(y + PANEL * (1 - Math.min(1, Math.max(0, height(value(minute)))))).toFixed(1)}`;
  });
  return `<polyline class="${kind}" points="${points.join(" ")}"/>`;
}

function strip(
  id: string,
  downs: readonly (readonly [number, number])[],
  y: number,
  minutes: number,
): string {
  const x = (ms: number) => LEFT + Math.min(1, ms / (minutes * 60_000)) * INNER;
  const bars = downs.map(([from, to]) => {
    const width = x(to) - x(from);
    return width <= 0
      ? ""
      : `<rect class="down" x="${x(from).toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${STRIP - 4}"/>`;
  });
  return `<text x="${LEFT - 6}" y="${y + 10}" text-anchor="end">${id}</text><rect class="up" x="${LEFT}" y="${y}" width="${INNER}" height="${STRIP - 4}"/>${bars.join("")}`;
}
