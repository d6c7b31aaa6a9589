import { useEffect, useState } from "preact/hooks";
import { unescaped } from "../units/percent-encoding.ts";
import { withQuery } from "./api.ts";

/**
 * The part of the address behind `#/`: `keys`, `receipts/rcpt_…`. The server never sees it and needs no rule
 * for it.
 */
export function useRoute(): readonly string[] {
  const [parts, setParts] = useState(read);
  useHash(() => {
    setParts(read());
    window.scrollTo(0, 0);
  });
  return parts;
}

/** Also calls if the hash changed after the first drawing, before an effect could listen. */
function useHash(changed: () => void): void {
  const [drawn] = useState(() => location.hash);
  useEffect(() => {
    if (location.hash !== drawn) changed();
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
}

export const go = (path: string): void => {
  location.hash = `#/${path}`;
};

const read = (): string[] => {
  const path = /^#\/([^?]*)/.exec(location.hash)?.[1] ?? "";
  return path.split("/").filter(Boolean).map(unescaped);
};

/**
 * Filters that live in the address, so that a filtered page can be linked and survives going back. `unless` is what each
 * is where the address has none; `field` is what its field takes.
 */
export function useFilters<N extends string>(
  names: readonly N[],
  unless?: Readonly<Partial<Record<N, string>>>,
) {
  const [given, setGiven] = useState(() => readQuery(names));
  useHash(() => setGiven(readQuery(names)));
  const change = (some: Partial<Record<N, string>>) => {
    const next = { ...given, ...some };
    history.replaceState(null, "", withQuery(location.hash.replace(/\?.*$/, ""), next));
    setGiven(next);
  };
  const valueIn = (name: N): string => given[name] || (unless?.[name] ?? "");
  const field = (name: N) => ({
    value: valueIn(name),
    onValue: (value: string) => change({ [name]: value } as Partial<Record<N, string>>),
  });
  const filters = Object.fromEntries(names.map((name) => [name, valueIn(name)])) as Record<N, string>;
  return { filters, change, field };
}

function readQuery<N extends string>(names: readonly N[]): Readonly<Record<N, string>> {
  const query = new URLSearchParams(/\?(.*)$/.exec(location.hash)?.[1] ?? "");
  return Object.fromEntries(names.map((name) => [name, query.get(name) ?? ""])) as Record<N, string>;
}
