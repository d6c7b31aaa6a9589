/** Small SVG plots: bars on a logarithmic axis, because the values lie a factor of a thousand apart. */

export interface Bar {
  readonly name: string;
  readonly value: number;
  /** Ours. */
  readonly strong: boolean;
}

export interface Panel {
  readonly title: string;
  readonly bars: readonly Bar[];
}

/** Panels in two columns, on a ground of their own so that they can be read on any page. */
export function bars(title: string, panels: readonly Panel[]): string {
  const heights = rowsOf(panels).map((row) => Math.max(...row.map(heightOf)));
  const height = TITLE + heights.reduce((sum, one) => sum + one, 0) + MARGIN;
  const body = panels.map((panel, index) => {
    const row = index >> 1;
    const top = TITLE + heights.slice(0, row).reduce((sum, one) => sum + one, 0);
    return `<g transform="translate(${MARGIN + (index % 2) * (PANEL + MARGIN)},${top})">${drawn(panel)}</g>`;
  });
  return svg(2 * PANEL + 3 * MARGIN, height, title, body.join("\n"));
}

export interface Line {
  readonly name: string;
  readonly strong: boolean;
  /** x, y; both above 0. */
  readonly points: readonly (readonly [number, number])[];
}

/** Both axes logarithmic. */
export function lines(title: string, xTitle: string, all: readonly Line[]): string {
  const points = all.flatMap((line) => line.points);
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const [xAxis, yAxis] = [exactAxis(xs, WIDE), axis(ys, TALL)];
  const at = ([x, y]: readonly [number, number]) =>
    `${(LABEL + xAxis.at(x)).toFixed(1)},${(TITLE + TALL - yAxis.at(y)).toFixed(1)}`;
  const grid = yAxis.ticks.map((tick) => {
    const y = TITLE + TALL - yAxis.at(tick);
    return `<line x1="${LABEL}" x2="${LABEL + WIDE}" y1="${y}" y2="${y}" stroke="${FAINT}"/>${text(LABEL - 8, y + 4, number(tick), "end")}`;
  });
  const under = [...new Set(xs)].map((x) =>
    text(LABEL + xAxis.at(x), TITLE + TALL + 20, number(x), "middle"),
  );
  const ends = apart(all.map(({ points: own }) => TITLE + TALL - yAxis.at(own.at(-1)![1]) + 4));
  const curves = all.map(({ name, strong, points: own }, index) => {
    const color = strong ? STRONG : SHADES[index % SHADES.length]!;
    const label = text(LABEL + WIDE + 10, ends[index]!, name, "start", color, strong);
    return `<polyline fill="none" stroke="${color}" stroke-width="${strong ? 3 : 1.5}" points="${own.map(at).join(" ")}"/>${label}`;
  });
  const below = text(LABEL + WIDE / 2, TITLE + TALL + 42, xTitle, "middle");
  return svg(
    LABEL + WIDE + LABEL,
    TITLE + TALL + 60,
    title,
    [...grid, ...under, ...curves, below].join("\n"),
  );
}

const MARGIN = 24;
const TITLE = 52;
const PANEL = 430;
const LABEL = 116;
const ROW = 26;
const PANEL_TITLE = 26;
const VALUE = 60;
const WIDE = 520;
const TALL = 300;
const STRONG = "#c2410c";
const FAINT = "#e2e8f0";
const INK = "#334155";
const SHADES = ["#64748b", "#0f766e", "#4338ca", "#a16207", "#9d174d", "#3f6212"];

const rowsOf = (panels: readonly Panel[]): Panel[][] =>
  Array.from({ length: Math.ceil(panels.length / 2) }, (_, row) => panels.slice(2 * row, 2 * row + 2));

const heightOf = ({ bars: all }: Panel): number => PANEL_TITLE + all.length * ROW + MARGIN;

function drawn({ title, bars: all }: Panel): string {
  const width = PANEL - LABEL - VALUE;
  const scale = axis(
    all.map(({ value }) => value),
    width,
  );
  const rows = all.map(({ name, value, strong }, index) => {
    const top = PANEL_TITLE + index * ROW;
    const length = Math.max(2, scale.at(value));
    const color = strong ? STRONG : "#94a3b8";
    return [
      text(LABEL - 8, top + 15, name, "end", INK, strong),
      `<rect x="${LABEL}" y="${top + 3}" width="${length.toFixed(1)}" height="${ROW - 9}" rx="2" fill="${color}"/>`,
      text(LABEL + length + 6, top + 15, number(value), "start", INK, strong),
    ].join("");
  });
  return `${text(0, 10, title, "start", INK, true)}${rows.join("\n")}`;
}

interface Axis {
  at(value: number): number;
  readonly ticks: readonly number[];
}

/** From a power of ten at or below the least value to the greatest. */
function axis(values: readonly number[], length: number): Axis {
  const low = Math.floor(Math.log10(Math.min(...values) / 1.5));
  const high = Math.max(low + 1, Math.log10(Math.max(...values)));
  const ticks = Array.from({ length: Math.floor(high) - low + 1 }, (_, power) => 10 ** (low + power));
  return { at: (value) => ((Math.log10(value) - low) / (high - low)) * length, ticks };
}

/** From the least value to the greatest. */
function exactAxis(values: readonly number[], length: number): Pick<Axis, "at"> {
  const [low, high] = [Math.log(Math.min(...values)), Math.log(Math.max(...values))];
  return { at: (value) => ((Math.log(value) - low) / (high - low || 1)) * length };
}

/** Labels moved down until none covers another. */
function apart(tops: readonly number[]): number[] {
  const moved = [...tops];
  const order = tops.map((_, index) => index).sort((a, b) => tops[a]! - tops[b]!);
  for (const [rank, index] of order.entries()) {
    if (rank > 0) moved[index] = Math.max(moved[index]!, moved[order[rank - 1]!]! + LINE);
  }
  return moved;
}

const LINE = 15;

function number(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString("en");
  return `${Number(value.toPrecision(2))}`;
}

function text(x: number, y: number, words: string, anchor: string, color = INK, bold = false): string {
  const safe = words.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="${color}"${bold ? ' font-weight="600"' : ""}>${safe}</text>`;
}

const svg = (width: number, height: number, title: string, body: string): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" font-family="system-ui, sans-serif" font-size="12">
<rect width="${width}" height="${height}" rx="8" fill="#fff"/>
<g font-size="15">${text(MARGIN, 28, title, "start", INK, true)}</g>
${body}
</svg>
`;
