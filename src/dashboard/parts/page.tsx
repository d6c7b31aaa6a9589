import { type ComponentChildren, type ComponentProps, Fragment, type FunctionComponent } from "preact";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import { ApiRefusal, sentenceOf } from "../api.ts";
import type { Resource } from "../resource.ts";
import { Button } from "./button.tsx";

/** A page of an application, behind `#/` and its path. */
export interface AppPage {
  readonly path: string;
  /** What the menu calls it. */
  readonly name: string;
  readonly page: FunctionComponent;
  /** The page of one of those that it lists, by the id behind its path. */
  readonly one?: FunctionComponent<{ readonly id: string }>;
}

const isAt =
  ([first = ""]: readonly string[]) =>
  ({ path }: Pick<AppPage, "path">): boolean =>
    path === first;

/** What is shown at a route; the page of another id begins again. */
export function PageAt({ route, pages }: { route: readonly string[]; pages: readonly AppPage[] }) {
  const page = pages.find(isAt(route));
  const [, id] = route;
  if (page === undefined) return <Head title="Not found" lead="There is no such page." />;
  const { page: Page, one: One } = page;
  return id === undefined || One === undefined ? <Page /> : <One key={id} id={id} />;
}

/** The page around every page: where one can go, and what is shown now. */
export function Frame({ pages, route, links, foot, children }: FrameProps) {
  const current = pages.find(isAt(route));
  const name = current?.name ?? "Not found";
  useEffect(() => {
    document.title = `${name} · Gateway`;
  }, [name]);
  const start = useRef<HTMLParagraphElement>(null);
  // As after a page load: screen readers announce the page, and Tab begins at its top. Browsers would go on from where
  // the focus was, or from what the last page had there.
  useLayoutEffect(() => start.current?.focus({ preventScroll: true }), [route]);
  const menu = useRef<HTMLElement>(null);
  useEffect(() => {
    // On a telephone the menu is one line, which is longer than the window, and a telephone is turned.
    const show = () =>
      menu.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
    show();
    addEventListener("resize", show);
    return () => removeEventListener("resize", show);
  }, [name, pages.length]);
  return (
    <div class="frame">
      <p class="page-start" tabIndex={-1} ref={start}>
        {name}
      </p>
      <button type="button" class="skip" onClick={skip}>
        Skip to content
      </button>
      <header class="side">
        <a class="brand" href="#/">
          <Mark />
          <span>Gateway</span>
        </a>
        <nav aria-label="Pages" ref={menu}>
          {pages.map((page) => (
            <a key={page.path} href={`#/${page.path}`} aria-current={page === current ? "page" : undefined}>
              {page.name}
            </a>
          ))}
        </nav>
        <div class="side-foot">
          {links}
          {foot}
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {children}
        <footer class="foot-links">{links}</footer>
      </main>
    </div>
  );
}

/** No link to `#main`: the address's hash is the route. */
function skip(): void {
  document.getElementById("main")?.focus();
}

interface FrameProps {
  readonly pages: readonly Pick<AppPage, "path" | "name">[];
  readonly route: readonly string[];
  /** To pages of other applications; where the window is narrow, at the page's end. */
  readonly links: ComponentChildren;
  readonly foot: ComponentChildren;
  readonly children: ComponentChildren;
}

/** The page of somebody who is not inside yet. */
export const Entrance = ({ title, lead, children }: HeadProps) => (
  <main class="welcome" id="main">
    <div class="welcome-head">
      <Mark />
      <h1>{title}</h1>
      {lead !== null && <p class="lead">{lead}</p>}
    </div>
    {children}
  </main>
);

const Mark = () => (
  <svg class="mark" viewBox="0 0 32 32" width="30" height="30" aria-hidden="true">
    <rect width="32" height="32" rx="9" />
    <path d="M8 11h9M8 16h16M8 21h6" />
  </svg>
);

/** What a page is, and what can be done on it. */
export const Head = ({ title, lead, children }: HeadProps) => (
  <div class="head">
    <div>
      <h1>{title}</h1>
      {lead !== undefined && <p class="lead">{lead}</p>}
    </div>
    {children !== undefined && <div class="row">{children}</div>}
  </div>
);

interface HeadProps {
  readonly title: string;
  readonly lead?: ComponentChildren;
  readonly children?: ComponentChildren;
}

/** The way back to the list that a page's subject is in. */
export const Crumb = ({ to, name }: { to: string; name: string }) => (
  <p class="crumb">
    <a href={`#/${to}`}>{name}</a>
  </p>
);

/** A part of a page under a heading of its own. */
export function Section({ title, children, ...attributes }: SectionProps) {
  const id = useId();
  return (
    <section {...attributes} aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  );
}

interface SectionProps {
  readonly title: string;
  readonly class?: string;
  readonly children: ComponentChildren;
}

/** Facts and what they are called, some of them with a class of their own; null where there is nothing to tell. */
export const Facts = ({ of }: { of: readonly (Fact | null)[] }) => (
  <dl class="facts">
    {of.map((fact) => {
      if (fact === null) return null;
      const [name, value, className] = fact;
      return (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd class={className}>{value}</dd>
        </Fragment>
      );
    })}
  </dl>
);

export type Fact = readonly [name: string, value: ComponentChildren, className?: string];

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

/** One number that matters. `bound` says "at most" or "at least" where it is not exact. */
export const Figure = ({ label, value, href, hint, bound = "" }: FigureProps) => (
  <div class="card figure">
    <div class="soft small">{label}</div>
    <div class={value.length > LONG ? "figure-value long" : "figure-value"}>
      {href === undefined ? value : <a href={href}>{value}</a>}
    </div>
    {bound !== "" && <div class="soft small">{bound.trim()}</div>}
    {hint !== undefined && <div class="soft small">{hint}</div>}
  </div>
);

interface FigureProps {
  readonly label: string;
  readonly value: string;
  readonly href?: string;
  readonly hint?: string;
  readonly bound?: string;
}

/** An amount below a cent has up to twelve characters, which would break in two. */
const LONG = 9;

/** Where a link leads that somebody else may have sent: nothing changes before it is said what will. */
export const Confirmation = ({ title, lead, notice, button, onDone, children }: ConfirmationProps) => (
  <Entrance title={title} lead={lead}>
    {notice}
    <section class="card stack">
      {children}
      <div class="row">
        {button !== null && <Button variant="primary" {...button} />}
        <Button label="Not now" onClick={onDone} />
      </div>
    </section>
  </Entrance>
);

interface ConfirmationProps {
  readonly title: string;
  readonly lead: ComponentChildren;
  readonly notice?: ComponentChildren;
  /** Null while it is not known what the link would do. */
  readonly button: Pick<ComponentProps<typeof Button>, "label" | "action" | "onClick"> | null;
  readonly onDone: () => void;
  readonly children: ComponentChildren;
}
