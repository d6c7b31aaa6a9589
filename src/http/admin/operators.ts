import { OPERATORS, type OperatorAnswer, type OperatorWithToken } from "../../api/operators.ts";
import {
  type KnownOperator,
  MAX_OPERATORS,
  newOperatorToken,
  type StoredOperator,
} from "../../customers/operators/operator.ts";
import { type EpochMs, isoTime } from "../../units/clock.ts";
import { invalidField, type Refusal, refused } from "../../units/errors/refusal.ts";
import { TAKEN_NAMES } from "../../units/operator-roles.ts";
import { hashSecret } from "../../units/secret-hash.ts";
import type { HttpDeps } from "../deps.ts";
import { readTime, repeated } from "../fields.ts";
import { operation } from "../operation.ts";
import { list } from "../reply.ts";
import { FIRST_OPERATOR } from "./token.ts";

/** Who operates the gateway, and with which role. */
export const operatorEndpoints = () => [
  operation("GET /admin/me", OPERATORS.me, ({ exchange }) => view(exchange.operator!)),
  operation("GET /admin/operators", OPERATORS.list, async (_, deps) => {
    const stored = (await deps.books.operators.list()).map(storedView);
    return list([view(FIRST_OPERATOR), ...deps.config.settings.operators.map(configuredView), ...stored]);
  }),
  operation("POST /admin/operators", OPERATORS.add, async ({ fields }, deps) => {
    const { name, role, expires_at } = fields;
    if (isTaken(name, deps)) return takenName(name);
    const expiresAt = expiryOf(expires_at, deps);
    if (refused(expiresAt)) return expiresAt;
    const token = newOperatorToken(deps.random);
    const createdAt = deps.clock.now();
    const added = await deps.books.operators.change(name, (known, others) =>
      known !== null
        ? takenName(name)
        : others >= MAX_OPERATORS
          ? invalidField(
              "name",
              `There are ${MAX_OPERATORS} operators, the most there can be. Remove one first.`,
            )
          : { name, role, expiresAt: expiresAt ?? null, createdAt, tokenHash: hashSecret(token) },
    );
    return refused(added) ? added : withToken(added as StoredOperator, token);
  }),
  operation("POST /admin/operators/:name/rotate", OPERATORS.rotate, async ({ params, fields }, deps) => {
    const expiresAt = expiryOf(fields.expires_at, deps);
    if (refused(expiresAt)) return expiresAt;
    const token = newOperatorToken(deps.random);
    const rotated = await deps.books.operators.change(params.name, (known) => {
      if (known === null) return unknownOperator(params.name, deps);
      const end = expiresAt === undefined ? known.expiresAt : expiresAt;
      return end !== null && end <= deps.clock.now()
        ? invalidField("expires_at", `\`${known.name}\` has expired: send a later \`expires_at\`, or null.`)
        : { ...known, expiresAt: end, tokenHash: hashSecret(token) };
    });
    return refused(rotated) ? rotated : withToken(rotated as StoredOperator, token);
  }),
  operation("DELETE /admin/operators/:name", OPERATORS.remove, async ({ params: { name } }, deps) => {
    const removed = await deps.books.operators.change(name, (known) =>
      known === null ? unknownOperator(name, deps) : "remove",
    );
    return refused(removed) ? removed : { name, removed: true as const };
  }),
];

const isTaken = (name: string, { config }: HttpDeps): boolean =>
  TAKEN_NAMES.includes(name) || config.settings.operators.some((one) => one.name === name);

const takenName = (name: string): Refusal =>
  invalidField("name", `\`${name}\` is taken. Send another \`name\`, or rotate the token of this one.`);

const unknownOperator = (name: string, { config }: HttpDeps): Refusal =>
  config.settings.operators.some((one) => one.name === name)
    ? invalidField("name", `\`${repeated(name)}\` is in the configuration: change it there, and reload.`)
    : invalidField("name", `There is no operator \`${repeated(name)}\`. GET /admin/operators lists them.`);

/** Undefined where none is named. */
function expiryOf(text: string | null | undefined, deps: HttpDeps): EpochMs | null | undefined | Refusal {
  if (text == null) return text;
  const at = readTime("expires_at", text);
  if (refused(at)) return at;
  return at > deps.clock.now() ? at : invalidField("expires_at", "`expires_at` must be in the future.");
}

const view = ({ name, role, source, createdAt, expiresAt }: KnownOperator): OperatorAnswer => ({
  name,
  object: "operator",
  role,
  source,
  created_at: createdAt === null ? null : isoTime(createdAt),
  expires_at: expiresAt === null ? null : isoTime(expiresAt),
});

const storedView = (operator: StoredOperator): OperatorAnswer => view({ ...operator, source: "store" });

const configuredView = ({ name, role }: Pick<KnownOperator, "name" | "role">): OperatorAnswer =>
  view({ name, role, source: "configuration", createdAt: null, expiresAt: null });

const withToken = (operator: StoredOperator, token: string): OperatorWithToken => ({
  ...storedView(operator),
  token,
});
