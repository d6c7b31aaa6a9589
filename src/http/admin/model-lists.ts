import { MODEL_LISTS } from "../../api/model-lists.ts";
import { invalidField } from "../../units/errors/refusal.ts";
import { operation } from "../operation.ts";

/** Models and prices from lists, without a restart: docs/hosts.md. */
export const adminModelListEndpoints = () => [
  operation("POST /admin/models", MODEL_LISTS.apply, async ({ fields }, { config }) => {
    const { source, models, accept = [], apply = false } = fields;
    const rows = rowsIn(models);
    if (rows === null)
      return invalidField("models", "`models` must be the JSON text of a list of models at hosts.");
    return config.modelLists.apply({ source, rows, accept, apply });
  }),
  operation("POST /admin/models/undo", MODEL_LISTS.undo, (_, { config }) => config.modelLists.undo()),
];

function rowsIn(text: string): readonly unknown[] | null {
  try {
    const rows: unknown = JSON.parse(text);
    return Array.isArray(rows) ? rows : null;
  } catch {
    return null;
  }
}
