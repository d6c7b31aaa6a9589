/** One event for the operator; `fields` never hold keys, hashes, prompts or answers. */
export type Log = (event: string, fields?: Readonly<Record<string, unknown>>) => void;
