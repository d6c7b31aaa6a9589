import type { ComponentChildren } from "preact";
import { ApiRefusal, sentenceOf } from "../api.ts";
import type { Resource } from "../resource.ts";
import { Button } from "./button.tsx";

/** What went wrong, in the gateway's own words, with the way to the errors reference. */
export function Problem({ error }: { error: unknown }) {
  if (error === null || error === undefined) return null;
  return (
    <div class="notice bad-notice" role="alert">
      <p>{sentenceOf(error)}</p>
      {error instanceof ApiRefusal && (
        <p class="small">
          <a href={`docs/errors#${error.code}`} target="_blank" rel="noreferrer">
            {error.code}
          </a>
          {error.receipt !== null && <span class="soft"> · {error.receipt}</span>}
        </p>
      )}
    </div>
  );
}

/** A paragraph that stands out; `more` are paragraphs after it. */
export const Note = ({ tone, more, children }: NoteProps) => (
  <div class={`notice ${tone}-notice`} role="status">
    <p>{children}</p>
    {more}
  </div>
);

interface NoteProps {
  readonly tone: "plain" | "warn" | "good";
  readonly more?: ComponentChildren;
  readonly children: ComponentChildren;
}

/**
 * The content of a page once its data is there; a quiet placeholder before, and the problem instead when
 * there is one.
 */
export const Loaded = <T,>({ of, children }: LoadedProps<T>) =>
  of.data === null && of.error === null ? (
    <Waiting />
  ) : (
    <>
      <Problem error={of.error} />
      {of.data === null ? <Button label="Try again" onClick={of.reload} /> : children(of.data)}
    </>
  );

interface LoadedProps<T> {
  readonly of: Resource<T>;
  readonly children: (data: T) => ComponentChildren;
}

/** The same of rows; `empty` is in their place where there are none. */
export const Listed = <T,>({ of, empty, children }: ListedProps<T>) => (
  <Loaded of={of}>{(rows) => (rows.length === 0 ? empty : children(rows))}</Loaded>
);

interface ListedProps<T> {
  readonly of: Resource<readonly T[]>;
  readonly empty: ComponentChildren;
  readonly children: (rows: readonly T[]) => ComponentChildren;
}

const Waiting = () => (
  <div class="waiting" role="status">
    <span class="unseen">Loading</span>
    <i />
    <i />
    <i />
  </div>
);

/** In the place of rows, where there are none: what to do about it. */
export const Empty = ({ title, children }: { title: string; children?: ComponentChildren }) => (
  <div class="empty">
    <h3>{title}</h3>
    {children !== undefined && <p class="soft">{children}</p>}
  </div>
);
