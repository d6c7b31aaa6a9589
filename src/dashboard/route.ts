import { useEffect, useState } from "preact/hooks";

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
  return path.split("/").filter(Boolean).map(decodeURIComponent);
};

/** Filters that live in the address, so that a filtered page can be linked and survives going back. */
export function useQuery<N extends string>(
  names: readonly N[],
): [Readonly<Record<N, string>>, (values: Readonly<Record<N, string>>) => void] {
  const [values, setValues] = useState(() => readQuery(names));
  useHash(() => setValues(readQuery(names)));
  const change = (next: Readonly<Record<N, string>>) => {
    const query = new URLSearchParams(
      names.map((name) => [name, next[name]]).filter(([, value]) => value !== ""),
    );
    const path = location.hash.replace(/\?.*$/, "");
    history.replaceState(null, "", query.size === 0 ? path : `${path}?${query}`);
    setValues(next);
  };
  return [values, change];
}

/** The same, with what the field of each filter takes. */
export function useFilters<N extends string>(names: readonly N[]) {
  const [filters, setFilters] = useQuery(names);
  const field = (name: N) => ({
    value: filters[name],
    onValue: (value: string) => setFilters({ ...filters, [name]: value }),
  });
  return { filters, setFilters, field };
}

function readQuery<N extends string>(names: readonly N[]): Readonly<Record<N, string>> {
  const query = new URLSearchParams(/\?(.*)$/.exec(location.hash)?.[1] ?? "");
  return Object.fromEntries(names.map((name) => [name, query.get(name) ?? ""])) as Record<N, string>;
}
