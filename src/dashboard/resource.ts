import { createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import type { List } from "../api/schema.ts";
import { Api, type Query, withQuery } from "./api.ts";

const ApiContext = createContext(new Api(null));
/** For what is inside: the API with the visitor's credential. */
export const ApiProvider = ApiContext.Provider;
export const useApi = (): Api => useContext(ApiContext);

/**
 * Something that has to be asked for. What was known stays while it is asked for again, and when that fails:
 * a page that flickers, or loses what somebody typed because a line was down for a moment, is worse than one
 * that is a little old.
 */
export interface Resource<T> {
  readonly data: T | null;
  readonly error: unknown;
  reload(): void;
}

/**
 * Asks when first shown, whenever a value of `on` changes, and on `reload`; late answers to old questions are
 * dropped.
 */
export function useResource<T>(load: (api: Api) => Promise<T>, on: readonly unknown[]): Resource<T> {
  const api = useApi();
  const [state, setState] = useState<{ data: T | null; error: unknown }>({ data: null, error: null });
  const [round, setRound] = useState(0);
  const latest = useRef(0);
  useEffect(() => {
    const mine = ++latest.current;
    load(api).then(
      (data) => mine === latest.current && setState({ data, error: null }),
      (error) => mine === latest.current && setState(({ data }) => ({ data, error })),
    );
  }, [api, round, ...on]);
  return { ...state, reload: () => setRound((before) => before + 1) };
}

/** Asks again every ten seconds, while the page is in sight. */
export function useLive({ reload }: Pick<Resource<unknown>, "reload">): void {
  const latest = useRef(reload);
  latest.current = reload;
  useEffect(() => {
    const timer = setInterval(() => document.hidden || latest.current(), LIVE_MS);
    return () => clearInterval(timer);
  }, []);
}

const LIVE_MS = 10_000;

/** The answer to one request of the API, asked for as above. */
export function useGet<T>(path: string, query: Query = {}): Resource<T> {
  const whole = withQuery(path, query);
  return useResource((api) => api.get<T>(whole), [whole]);
}

/** The rows of a list that the API answers with. */
export function useList<T>(path: string, query: Query = {}): Resource<readonly T[]> {
  const { data, ...rest } = useGet<List<T>>(path, query);
  return { ...rest, data: data?.data ?? null };
}

/** An action behind a button: whether it is under way, and what went wrong the last time. */
export interface Action<A extends unknown[] = []> {
  readonly busy: boolean;
  readonly error: unknown;
  run(...args: A): Promise<void>;
}

export function useAction<A extends unknown[]>(act: (...args: A) => Promise<void>): Action<A> {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const running = useRef(false);
  const run = async (...args: A): Promise<void> => {
    // A double click must not create two keys.
    if (running.current) return;
    running.current = true;
    setBusy(true);
    setError(null);
    try {
      await act(...args);
    } catch (problem) {
      setError(problem);
    } finally {
      running.current = false;
      setBusy(false);
    }
  };
  return { run, busy, error };
}
