import { type Static, Type } from "@sinclair/typebox";
import { type About, endpointsWith } from "./about.ts";
import * as t from "./schema.ts";

const MAX_LIST_CHARACTERS = 8_000_000;
const MAX_ACCEPTED = 1_000;

const ModelListFields = t.object({
  source: t.text(500, "where the list comes from, a text"),
  // One text, because a long list has more JSON values than other bodies may.
  models: t.text(MAX_LIST_CHARACTERS, "the JSON text of a list of models at hosts, a text"),
  accept: Type.Optional(
    Type.Array(t.text(128, "the id of a model"), {
      maxItems: MAX_ACCEPTED,
      description: `a list of at most ${MAX_ACCEPTED} ids of models`,
    }),
  ),
  apply: Type.Optional(t.boolean("true or false")),
});

const ListedChange = t.object({
  model: Type.String(),
  host: Type.String(),
  change: t.oneOf(
    ["new", "changed", "kept", "refused", "gone"],
    "`kept`: the configuration file lists the model, and stays as it is; `refused`: it cannot be sold as the list has it; `gone`: the list lacks it, and it stays on offer",
  ),
  differences: t.texts,
  doubts: t.several(Type.String(), {
    description: "why a new or changed model is applied only if `accept` names it, or why it is refused",
  }),
  applied: Type.Boolean(),
});

const ModelListAnswer = t.object({
  version: t.integer("of the models in force; 0 before any list was applied", { minimum: 0 }),
  applied: t.boolean("this request made that version"),
  unchanged: t.count,
  changes: t.several(ListedChange),
  pending_nodes: t.several(Type.String(), {
    description:
      "nodes of the store that had not applied it yet when this was answered; they do within a second of reaching the store",
  }),
});
export type ModelListAnswer = Static<typeof ModelListAnswer>;

const RestoredAnswer = t.object({
  version: t.count,
  restored: t.integer("the version whose models are in force again; 0: those of the configuration", {
    minimum: 0,
  }),
  pending_nodes: t.texts,
});
export type RestoredAnswer = Static<typeof RestoredAnswer>;

/** What `gateway models sync` asks of a gateway. */
export const MODEL_LISTS = endpointsWith(
  { who: ["admin"], role: "admin" },
  {
    apply: {
      summary: "Compares a model list with what is on offer, and applies it",
      details:
        "Each row of `models` has `id`, `host`, `model` (its name there), and as far as the list says so `name`, `context_length`, `max_output_tokens`, `price` (as in the configuration file), `inputs`, `tools` and `reasoning`. Without `apply: true` nothing changes. What is applied holds in all processes of the store, until another list or the configuration file says otherwise.",
      body: ModelListFields,
      answers: { 200: ModelListAnswer },
    },
    undo: {
      summary: "Goes back to the models from before the last applied model list",
      answers: { 200: RestoredAnswer },
    },
  },
) satisfies Record<string, About>;
