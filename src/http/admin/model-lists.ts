import { MODEL_LISTS } from "../../api/model-lists.ts";
import { invalidField, refused } from "../../units/errors/refusal.ts";
import type { Endpoint } from "../endpoint.ts";
import { operation } from "../operation.ts";
import { ok } from "../reply.ts";

/** Models and prices from lists, without a restart: docs/hosts.md. */
export const adminModelListEndpoints = (): Endpoint[] => [
  operation("POST /admin/models", MODEL_LISTS.apply, async ({ fields }, { config }) => {
    const { source, models, accept = [], apply = false } = fields;
    const rows = rowsIn(models);
    if (rows === null)
      return invalidField("models", "`models` must be the JSON text of a list of models at hosts.");
    const answer = await config.modelLists.apply({ source, rows, accept, apply });
    return refused(answer) ? answer : ok(answer);
  }),
  operation("POST /admin/models/undo", MODEL_LISTS.undo, async (_, { config }) => {
    const answer = await config.modelLists.undo();
    return refused(answer) ? answer : ok(answer);
  }),
];

function rowsIn(text: string): readonly unknown[] | null {
  try {
    const rows: unknown = JSON.parse(text);
    return Array.isArray(rows) ? rows : null;
  } catch {
    return null;
  }
}
