import type { ComponentChildren } from "preact";
import { ApiRefusal, sentenceOf } from "../api.ts";
import type { Resource } from "../resource.ts";

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

export const Note = ({
  tone,
  children,
}: {
  tone: "plain" | "warn" | "good";
  children: ComponentChildren;
}) => (
  <div class={`notice ${tone}-notice`} role="status">
    {children}
  </div>
);

/**
 * The content of a page once its data is there; a quiet placeholder before, and the problem instead when
 * there is one.
 */
export function Loaded<T>({ of, children }: { of: Resource<T>; children: (data: T) => ComponentChildren }) {
  if (of.data === null && of.error === null) return <Waiting />;
  if (of.data !== null) {
    return (
      <>
        <Problem error={of.error} />
        {children(of.data)}
      </>
    );
  }
  return (
    <>
      <Problem error={of.error} />
      <button type="button" class="quiet" onClick={of.reload}>
        Try again
      </button>
    </>
  );
}

const Waiting = () => (
  <div class="waiting" role="status">
    <span class="unseen">Loading</span>
    <i />
    <i />
    <i />
  </div>
);

export const Empty = ({ title, children }: { title: string; children?: ComponentChildren }) => (
  <div class="empty">
    <h3>{title}</h3>
    {children}
  </div>
);
