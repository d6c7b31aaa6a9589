/** What the gateway that runs here answers to a GET of this path; rejects where no answer comes in time. */
export type LocalGateway = (path: string) => Promise<Response>;

export const localGateway =
  (url: string, token: string | null, fetch: typeof globalThis.fetch): LocalGateway =>
  (path) =>
    fetch(url + path, {
      headers: token === null ? {} : { authorization: `Bearer ${token}` },
      redirect: "manual",
      signal: AbortSignal.timeout(ANSWER_MS),
    });

const ANSWER_MS = 5_000;
