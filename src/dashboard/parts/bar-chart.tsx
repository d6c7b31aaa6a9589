import { useState } from "preact/hooks";

/**
 * Stacked bars over time. Made of elements, not drawn: they take their colours from the style sheet, and each
 * bar can be reached with the keyboard and read aloud.
 */
export function BarChart({ title, bars, series, format, axis, isMost = false }: BarChartProps) {
  const [shown, setShown] = useState<Bar | null>(null);
  // One stop for Tab; within the chart, arrows go from bar to bar.
  const [reached, setReached] = useState(bars.length - 1);
  const top = niceCeiling(Math.max(...bars.map(totalOf), 0));
  const lines = [top, top / 2, 0];
  const onAxis = axis?.(lines) ?? format;
  const whole = isMost
    ? `${format(Math.max(...bars.map(totalOf), 0))} at most`
    : `${format(bars.reduce((sum, bar) => sum + totalOf(bar), 0))} in total`;
  return (
    <figure class="chart">
      <figcaption>
        <h3>{title}</h3>
        <span class="soft small" aria-live="polite">
          {shown === null ? whole : `${shown.label}: ${format(totalOf(shown))}`}
        </span>
      </figcaption>
      <div class="chart-area">
        <div class="chart-lines" aria-hidden="true">
          {lines.map((line) => (
            <span key={line}>{onAxis(line)}</span>
          ))}
        </div>
        <ul class="chart-bars" onMouseLeave={() => setShown(null)}>
          {bars.map((bar, index) => (
            <li key={bar.label}>
              <button
                type="button"
                class="chart-bar"
                aria-label={`${bar.label}: ${spoken(bar, series, format)}`}
                tabIndex={index === Math.min(reached, bars.length - 1) ? 0 : -1}
                onKeyDown={(event) => {
                  const to = index + (STEPS[event.key] ?? 0);
                  if (to === index || bars[to] === undefined) return;
                  setReached(to);
                  const { parentElement: item } = event.currentTarget;
                  item?.parentElement?.children[to]?.querySelector("button")?.focus();
                }}
                onMouseEnter={() => setShown(bar)}
                onFocus={() => setShown(bar)}
                onBlur={() => setShown(null)}
              >
                {bar.values.map((value, index) => (
                  <i
                    key={series[index]}
                    style={{ height: `${(value / top) * 100}%`, background: colour(index) }}
                  />
                ))}
              </button>
            </li>
          ))}
        </ul>
      </div>
      <div
        class="chart-ends soft small"
        aria-hidden="true"
        style={{ gridTemplateColumns: `repeat(${bars.length}, minmax(0, 1fr))` }}
      >
        {ticksOf(bars.length).map((index) => (
          <span key={index} style={{ gridColumn: index + 1 }}>
            {bars[index]!.label}
          </span>
        ))}
      </div>
      <ul class="legend small">
        {series.map((name, index) => (
          <li key={name}>
            <i style={{ background: colour(index) }} />
            {name}
            {shown !== null && <span class="soft"> {format(shown.values[index]!)}</span>}
          </li>
        ))}
      </ul>
    </figure>
  );
}

interface BarChartProps {
  readonly title: string;
  readonly bars: readonly Bar[];
  /** At most `MAX_SERIES`. */
  readonly series: readonly string[];
  readonly format: (value: number) => string;
  /** The highest bar is named, not the sum of all, which would mean nothing. */
  readonly isMost?: boolean | undefined;
  /** How the values on the axis are written, so that they read as one column; `format` unless given. */
  readonly axis?: (values: readonly number[]) => (value: number) => string;
}

export interface Bar {
  readonly label: string;
  /** One for each series. */
  readonly values: readonly number[];
}

/** As many colours as the style sheet has. */
export const MAX_SERIES = 6;

/** Bars whose time is written beneath them: the last, and some before it, each as far from the next. */
function ticksOf(bars: number): number[] {
  const step = Math.max(1, Math.ceil((bars - 1) / (MAX_TICKS - 1)));
  return [...Array(bars).keys()].filter((index) => (bars - 1 - index) % step === 0);
}

const MAX_TICKS = 5;

const STEPS: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1 };

const colour = (index: number): string => `var(--series-${index + 1})`;

const totalOf = ({ values }: Bar): number => values.reduce((sum, value) => sum + value, 0);

function spoken(bar: Bar, series: readonly string[], format: (value: number) => string): string {
  const parts = series
    .map((name, index) => [name, bar.values[index]!] as const)
    .filter(([, value]) => value > 0);
  return parts.length === 0 ? "nothing" : parts.map(([name, value]) => `${name} ${format(value)}`).join(", ");
}

/** The next of 1, 2, 5, 10, 20 …, so that the lines stand at round numbers. */
function niceCeiling(most: number): number {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  const step = [1, 2, 4, 6, 8, 10].find((factor) => factor * power >= most)!;
  return step * power;
}
