import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** The page around every page: where one can go, and what is shown now. */
export function Frame({ places, current, links, foot, children }: FrameProps) {
  const name = places.find(([path]) => path === current)?.[1] ?? "Not found";
  useEffect(() => {
    document.title = `${name} · Gateway`;
  }, [name]);
  const menu = useRef<HTMLElement>(null);
  useEffect(() => {
    // On a telephone the menu is one line, which is longer than the window, and a telephone is turned.
    const show = () =>
      menu.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
    show();
    addEventListener("resize", show);
    return () => removeEventListener("resize", show);
  }, [current, places.length]);
  return (
    <div class="frame">
      <button type="button" class="skip" onClick={skip}>
        Skip to content
      </button>
      <header class="side">
        <a class="brand" href="#/">
          <Mark />
          <span>Gateway</span>
        </a>
        <nav aria-label="Pages" ref={menu}>
          {places.map(([path, name]) => (
            <a key={path} href={`#/${path}`} aria-current={path === current ? "page" : undefined}>
              {name}
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
        <footer class="foot-links narrow-only">{links}</footer>
      </main>
    </div>
  );
}

/** No link to `#main`: the address's hash is the route. */
function skip(): void {
  document.getElementById("main")?.focus();
}

interface FrameProps {
  /** Path behind `#/`, and its name. */
  readonly places: readonly (readonly [string, string])[];
  readonly current: string;
  /** To pages of other applications; where the window is narrow, at the page's end. */
  readonly links: ComponentChildren;
  readonly foot: ComponentChildren;
  readonly children: ComponentChildren;
}

/** The page of somebody who is not inside yet. */
export const Entrance = ({
  title,
  lead,
  children,
}: {
  title: string;
  lead: ComponentChildren;
  children: ComponentChildren;
}) => (
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

export const Head = ({
  title,
  lead,
  children,
}: {
  title: string;
  lead?: string;
  children?: ComponentChildren;
}) => (
  <div class="head">
    <div>
      <h1>{title}</h1>
      {lead !== undefined && <p class="lead">{lead}</p>}
    </div>
    {children !== undefined && <div class="row">{children}</div>}
  </div>
);
